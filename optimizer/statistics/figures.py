"""What follows from a query's statistics, as people read it: overlap, skew, the size of a join.

Nothing is sampled or priced here.
"""
from __future__ import annotations

from itertools import chain
from math import prod
from typing import Any

from optimizer.query.model import Query
from optimizer.query.shape import shape
from optimizer.statistics.cardinality import distinct
from optimizer.statistics.model import KeyStatistics, QueryStatistics


def inputs(query: Query, statistics: QueryStatistics) -> list[dict[str, Any]]:
    """The figures of each input.

    Of several join keys the one with the most values, distinct combinations as a full window has them.
    """
    joined_inputs = shape(query).joined_inputs()
    figures = []
    for i, (declared, one) in enumerate(zip(query.inputs, statistics.inputs)):
        keys = [key for key, joined in zip(statistics.classes, joined_inputs) if i in joined]
        key = max(keys, key=lambda k: k.keys, default=None)
        combinations = distinct(one.combinations, one.rows * one.selectivity)
        figures.append({
            "alias": declared.alias,
            "source": declared.source,
            "rate": one.rate,
            "window": one.rows,
            "selectivity": one.selectivity,
            "late": one.late,
            "combinations": combinations,
            "keys": key.keys if key else None,
            "overlap": overlap(key) if key else None,
            "heaviest": heaviest(key, i) if key else None,
            "groups": statistics.groups,
            "fanout": fanout(statistics),
            "weight": statistics.weight
        })
    return figures


def overlap(key: KeyStatistics) -> float:
    """The share of key values that all inputs have."""
    anywhere = everywhere = 0.0
    for part, weight in _parts(key):
        shares_by_value = list(zip(*part.rows.values()))
        anywhere += weight * sum(1 for shares in shares_by_value if any(shares))
        everywhere += weight * sum(1 for shares in shares_by_value if all(shares))
    return everywhere / anywhere if anywhere else 0.0


def heaviest(key: KeyStatistics, i: int | None = None) -> float:
    """The largest share of an input's rows that one key value has."""
    shares = [shares for part, _ in _parts(key) for j, shares in part.rows.items() if i in (None, j)]
    return max(chain.from_iterable(shares), default=0.0)


def agreement(key: KeyStatistics) -> float:
    """The chance that a row of each input agree."""
    return min(sum(weight * sum(map(prod, zip(*part.rows.values()))) for part, weight in _parts(key)), 1.0)


def fanout(statistics: QueryStatistics) -> float:
    """Joined rows of full windows: as counted, else as the samples let expect."""
    if statistics.fanout is not None:
        return statistics.fanout
    return prod(i.rows * i.selectivity for i in statistics.inputs) * prod(map(agreement, statistics.classes))


def _parts(key: KeyStatistics) -> list[tuple[KeyStatistics, float]]:
    """The sample, each key for as many as it stands for, and the heavy keys, each for itself."""
    return [(key, 1 / key.share)] + ([(key.heavy, 1.0)] if key.heavy else [])
