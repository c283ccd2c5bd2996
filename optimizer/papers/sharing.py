"""What a join of several queries costs together and apart, by paper E's own formulas (1) and (2), and its query groups
by cost (section 4, Fig. 7a): pairs that gain by sharing, grown by the same test, with hysteresis where groups stand.

Cardinalities are given, nothing is measured here.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

MOST_EXPANDED = 16          # sets of which (1) is expanded: it has 2^n − 1 terms
Cost = Callable[[frozenset[str]], float]
Groups = tuple[frozenset[str], ...]
# of the cost apart: by so much sharing must win for a group to be joined, and lose for one to be left
HYSTERESIS = 0.1


@dataclass(frozen=True)
class QuerySets:
    """Rows of one stream by the set of queries whose selections they pass: counts of a sample or of all."""

    rows: Mapping[frozenset[str], float]

    def of(self, queries: Iterable[str]) -> float:
        """Crd of the union, counted: what (1) gives, for any number of queries."""
        names = frozenset(queries)
        return sum(n for owners, n in self.rows.items() if owners & names)

    def all_of(self, queries: Iterable[str]) -> float:
        """|A ∩ B ∩ …|."""
        names = frozenset(queries)
        return sum(n for owners, n in self.rows.items() if names <= owners)


def union(queries: Iterable[str], intersection: Callable[[frozenset[str]], float]) -> float:
    """Equation (1): Σ (−1)^(k+1) Σ |intersections of k sets|."""
    names = sorted(set(queries))
    if len(names) > MOST_EXPANDED:
        raise ValueError(f"{len(names)} sets have 2^{len(names)} intersections: count them from query-sets")
    total = 0.0
    for k in range(1, len(names) + 1):
        of_k_sets = sum(intersection(frozenset(sets)) for sets in combinations(names, k))
        total += (-1.0) ** (k + 1) * of_k_sets
    return total


@dataclass(frozen=True)
class Side:
    """One side of a join: its rows, its distinct keys, whether it has to be indexed (a source, or repartitioned)."""

    rows: float
    keys: float
    indexed: bool = True


def cost(left: Side, right: Side, joined: float = 0.0, materialised: bool = False) -> float:
    """Equation (2): b₁·Crd(S₁) + b₂·Crd(S₂) + min(DistKey) + b_m·Crd(S₁ ⋈ S₂)."""
    indexing = left.indexed * left.rows + right.indexed * right.rows
    return indexing + min(left.keys, right.keys) + materialised * joined


@dataclass(frozen=True)
class JoinSizes:
    """A join that several queries ask for, each with its own selections.

    Values of the keys are uniform and independent of the selections.
    """

    left: QuerySets
    right: QuerySets
    left_keys: float
    right_keys: float
    materialised: bool = False

    def together(self, queries: Iterable[str]) -> float:
        """COST(Crd(Q1.V, Q2.V, …) ⋈ Crd(Q1.W, Q2.W, …)), the left hand sides of Fig. 7a."""
        names = tuple(queries)
        a, b = self.left.of(names), self.right.of(names)
        joined = a * b / max(self.left_keys, self.right_keys, 1.0)
        return cost(Side(a, min(self.left_keys, a)), Side(b, min(self.right_keys, b)), joined, self.materialised)

    def apart(self, queries: Iterable[str]) -> float:
        """Their right hand sides: the sum over queries, each alone."""
        return sum(self.together((q,)) for q in queries)


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
