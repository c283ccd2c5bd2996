"""What a join of several queries costs together and apart, by paper E's own formulas (1) and (2).

Cardinalities are given, nothing is measured here.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

MOST_EXPANDED = 16          # sets of which (1) is expanded: it has 2^n − 1 terms


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
