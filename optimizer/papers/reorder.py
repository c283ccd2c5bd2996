"""Join order of many queries at once (paper E, section 4, Fig. 7b): iterative dynamic programming in which a subquery's
cost is divided by those that share it.
"""
from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

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
    steps_by_query: dict[str, list[Step]] = {q: [] for q in queries if q not in fixed}
    nodes: dict[str, list[Node]] = {}
    for q in steps_by_query:
        nodes[q] = [frozenset({source}) for source in sorted(queries[q].sources)]
    computed = {_shared_name(q, step, group) for q, steps in fixed.items() for step in steps}
    while any(len(left) > 1 for left in nodes.values()):
        _add_a_join_to_each(queries, nodes, steps_by_query, computed, price, group)
    return {**fixed, **{q: tuple(steps) for q, steps in steps_by_query.items()}}


def _add_a_join_to_each(queries: Mapping[str, Joins], nodes: dict[str, list[Node]],
                        steps_by_query: dict[str, list[Step]], computed: set[Hashable], price: Price,
                        group: GroupOf) -> None:
    """Every unfinished query gets one more join, the subqueries of least shared cost first.

    All queries that share a subquery get it at once; one that is `computed` already costs nothing more.
    """
    sharers: dict[Hashable, dict[str, Step]] = {}
    for q, of_query in nodes.items():
        for one, other in combinations(of_query, 2):
            if queries[q].linked(one, other):
                sharers.setdefault(_shared_name(q, (one, other), group), {})[q] = (one, other)
    waiting = {q for q, of_query in nodes.items() if len(of_query) > 1}
    while waiting:
        costs: dict[Hashable, float] = {}
        step_by_query: dict[Hashable, dict[str, Step]] = {}
        for name, all_sharers in sharers.items():
            still = step_by_query[name] = {q: step for q, step in all_sharers.items() if q in waiting}
            if still:
                first = min(still)
                costs[name] = 0.0 if name in computed else price(first, *still[first]) / len(still)
        best = min(costs, key=lambda name: (costs[name], repr(name)))
        for q, (left, right) in step_by_query[best].items():
            steps_by_query[q].append((left, right))
            nodes[q] = [node for node in nodes[q] if node not in (left, right)] + [left | right]
            waiting.discard(q)
        computed.add(best)


def _shared_name(q: str, step: Step, group: GroupOf) -> Hashable:
    """Equal for the queries that share the subquery: the same two nodes, in one query group."""
    left, right = step
    return tuple(sorted((tuple(sorted(left)), tuple(sorted(right))))), group(q, left | right)


def replanned(queries: Mapping[str, Joins], before: Orders, changed: Iterable[str], price: Price,
              group: GroupOf) -> dict[str, tuple[Step, ...]]:
    """After queries came or went: only what they touch, unless more than FULL of all changed.

    Touched are the queries that came, and those in a query group with one that came or went."""
    changed = set(changed)
    if len(changed) > FULL * max(len(queries), 1):
        return orders(queries, price, group)

    def query_groups(q: str) -> set[Hashable]:
        return {group(q, frozenset(edge)) for edge in queries[q].edges}

    changed_groups = set().union(*(query_groups(q) for q in changed if q in queries))
    touched = changed | {q for q in queries if query_groups(q) & changed_groups}
    return orders(queries, price, group, {q: steps for q, steps in before.items() if q in queries and q not in touched})
