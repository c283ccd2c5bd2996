"""Query groups by cost (paper E, section 4, Fig. 7a): pairs that gain by sharing, grown by the same test, with
hysteresis where groups stand; nothing is run.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations

Cost = Callable[[frozenset[str]], float]
Groups = tuple[frozenset[str], ...]
# of the cost apart: by so much sharing must win for a group to be joined, and lose for one to be left
HYSTERESIS = 0.1


def groups(queries: Iterable[str], shared: Cost, standing: Groups = ()) -> Groups:
    """`shared` is what a set of queries costs together (of one: alone). Finding the best groups is NP-hard; this is the
    paper's greedy way.

    Of groups that stand, members that no longer gain leave first; then queries that are in none try each, then each
    other.
    """
    names = tuple(sorted(set(queries)))
    thinned = [_thin(group & frozenset(names), shared) for group in standing]
    remaining = [group for group in thinned if len(group) > 1]
    bias = HYSTERESIS if standing else 0.0
    free = sorted(set(names).difference(*remaining))
    grown = [_grow(group, free, shared, bias) for group in remaining]
    while pair := _best_pair(free, shared, bias):
        for query in pair:
            free.remove(query)
        grown.append(_grow(pair, free, shared, bias))
    return (*grown, *(frozenset({query}) for query in free))


def gain(group: frozenset[str], others: frozenset[str], shared: Cost) -> float:
    """What sharing saves, as a share of the cost apart."""
    apart = shared(group) + shared(others)
    return 1.0 - shared(group | others) / apart if apart > 0 else 0.0


def _thin(group: frozenset[str], shared: Cost) -> frozenset[str]:
    """The group without those that cost more in it than beside it by more than the hysteresis, the worst first."""
    while len(group) > 1:
        worst = min(sorted(group), key=lambda q: gain(group - {q}, frozenset({q}), shared))
        if gain(group - {worst}, frozenset({worst}), shared) >= -HYSTERESIS:
            break
        group -= {worst}
    return group


def _best_pair(free: list[str], shared: Cost, bias: float) -> frozenset[str] | None:
    pairs = [frozenset(p) for p in combinations(free, 2)]
    gains = {p: gain(frozenset({min(p)}), frozenset({max(p)}), shared) for p in pairs}
    best = max(pairs, key=lambda p: gains[p], default=None)
    return best if best is not None and gains[best] > bias else None


def _grow(group: frozenset[str], free: list[str], shared: Cost, bias: float) -> frozenset[str]:
    """The group with every free query that it gains by; each is removed from `free`."""
    for q in list(free):
        if gain(group, frozenset({q}), shared) > bias:
            group |= {q}
            free.remove(q)
    return group
