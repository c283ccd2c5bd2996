"""Join order of many queries at once (paper E, Sec.

4, Fig. 7b): iterative dynamic programming in which a subquery's cost is divided by those that share it.
"""
from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass

FULL = 0.5              # share of all queries that changed beyond which everything is planned anew
Node = frozenset[str]   # the sources below one node of a join tree
Step = tuple[Node, Node]


@dataclass(frozen=True)
class Joins:
    """One query: its sources, and the pairs of them that a predicate joins."""

    sources: frozenset[str]
    edges: frozenset[frozenset[str]]

    def linked(self, left: Node, right: Node) -> bool:
        return any(len(e & left) == 1 and len(e & right) == 1 for e in self.edges)


Price = Callable[[str, Node, Node], float]                # what joining two nodes costs a query's group, unshared
# the query group of a query's subquery: equal where it is shared
GroupOf = Callable[[str, frozenset[str]], Hashable]
Orders = Mapping[str, tuple[Step, ...]]


def orders(queries: Mapping[str, Joins], price: Price, group: GroupOf,
           given: Orders | None = None) -> dict[str, tuple[Step, ...]]:
    """The joins of each query in their order.

    `given` are orders that stand: they are kept, and others may share their subqueries.
    """
    fixed = dict(given or {})
    found: dict[str, list[Step]] = {q: [] for q in queries if q not in fixed}
    nodes = {q: [frozenset({s}) for s in sorted(queries[q].sources)] for q in found}
    made = {_shared_name(q, step, group) for q, steps in fixed.items() for step in steps}
    while any(len(n) > 1 for n in nodes.values()):
        _iteration(queries, nodes, found, made, price, group)
    return {**fixed, **{q: tuple(steps) for q, steps in found.items()}}


def _iteration(queries: Mapping[str, Joins], nodes: dict[str, list[Node]], found: dict[str, list[Step]],
               made: set[Hashable], price: Price, group: GroupOf) -> None:
    """Every unfinished query gets one more join, the subqueries of least shared cost first.

    Who shares a subquery gets it with the first.
    """
    sharers: dict[Hashable, dict[str, Step]] = {}
    for q, own in nodes.items():
        for step in _candidates(queries[q], own):
            sharers.setdefault(_shared_name(q, step, group), {})[q] = step
    waiting = {q for q, own in nodes.items() if len(own) > 1}
    while waiting:
        able = {name: {q: s for q, s in who.items() if q in waiting} for name, who in sharers.items()}
        costs = {name: 0.0 if name in made else price(*_first(who)) / len(who) for name, who in able.items() if who}
        best = min(costs, key=lambda name: (costs[name], repr(name)))
        for q, (left, right) in able[best].items():
            found[q].append((left, right))
            nodes[q] = [n for n in nodes[q] if n not in (left, right)] + [left | right]
            waiting.discard(q)
        made.add(best)


def _candidates(query: Joins, own: list[Node]) -> list[Step]:
    return [(a, b) for k, a in enumerate(own) for b in own[k + 1:] if query.linked(a, b)]


def _shared_name(q: str, step: Step, group: GroupOf) -> Hashable:
    """Equal for the queries that share the subquery: the same two nodes, in one query group."""
    left, right = step
    return tuple(sorted((tuple(sorted(left)), tuple(sorted(right))))), group(q, left | right)


def _first(who: Mapping[str, Step]) -> tuple[str, Node, Node]:
    q = min(who)
    return q, *who[q]


def replanned(queries: Mapping[str, Joins], before: Orders, changed: Iterable[str], price: Price,
              group: GroupOf) -> dict[str, tuple[Step, ...]]:
    """After queries came or went: only what they touch, unless more than FULL of all changed.

    Touched are the queries that came, and those in a query group with one that came or went."""
    moved = set(changed)
    if len(moved) > FULL * max(len(queries), 1):
        return orders(queries, price, group)
    places = {group(q, frozenset(e)) for q in moved if q in queries for e in queries[q].edges}
    touched = moved | {q for q, joins in queries.items() if any(group(q, frozenset(e)) in places for e in joins.edges)}
    return orders(queries, price, group, {q: steps for q, steps in before.items() if q in queries and q not in touched})
