"""What follows from what was observed, as people read it: overlap, skew, the size of a join.

Figures of one query, nothing is sampled or priced here.
"""
from __future__ import annotations

from math import prod
from typing import Any

from optimizer.query.model import Query
from optimizer.query.shape import shape
from optimizer.statistics.cardinality import distinct
from optimizer.statistics.observed import ClassObserved, Observed


def inputs(query: Query, known: Observed) -> list[dict[str, Any]]:
    """Of each input what was found.

    Of several join keys the one with the most values, distinct combinations as a full window has them.
    """
    asked = shape(query)
    found = []
    for i, (declared, one) in enumerate(zip(query.inputs, known.inputs)):
        mine = [known.classes[c] for c, members in enumerate(asked.keys) if any(j == i for j, _ in members)]
        key = max(mine, key=lambda k: k.keys, default=None)
        combinations = distinct(one.combinations, one.rows * one.selectivity)
        found.append({
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
            "groups": known.groups,
            "fanout": fanout(known),
            "weight": known.weight
        })
    return found


def overlap(key: ClassObserved) -> float:
    """The share of key values that all inputs have."""
    total = both = 0.0
    for part, each in _parts(key):
        present = list(zip(*part.rows.values()))
        total += each * sum(1 for p in present if any(p))
        both += each * sum(1 for p in present if all(p))
    return both / total if total else 0.0


def heaviest(key: ClassObserved, i: int | None = None) -> float:
    """The largest share of an input's rows that one key value has."""
    return max((share for part, _ in _parts(key) for j, shares in part.rows.items() if i in (None, j)
                for share in shares), default=0.0)


def agreement(key: ClassObserved) -> float:
    """The chance that a row of each input agree."""
    return min(sum(each * sum(map(prod, zip(*part.rows.values()))) for part, each in _parts(key)), 1.0)


def fanout(known: Observed) -> float:
    """Joined rows of full windows: as counted, else as the samples let expect."""
    if known.fanout is not None:
        return known.fanout
    return prod(i.rows * i.selectivity for i in known.inputs) * prod(agreement(c) for c in known.classes)


def _parts(key: ClassObserved) -> list[tuple[ClassObserved, float]]:
    """The sample, each key for as many as it stands for, and the heavy keys, each for itself."""
    return [(key, 1 / key.share)] + ([(key.heavy, 1.0)] if key.heavy else [])
