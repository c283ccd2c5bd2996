"""A price is the local costs of a plan's nodes.

Totals, comparison and printing are defined here once, for every model; no formula is here.
"""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Price:
    """`parts` are node names with what each node costs by itself, inputs excluded; `equation` is where the formula
    stands.

    `outside` says why the equation does not cover what is priced: it is then the nearest one, empty where it is the
    paper's own case.
    """

    parts: tuple[tuple[str, float], ...]
    unit: str
    equation: str
    outside: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        return sum(cost for _, cost in self.parts)

    def of(self, node: str) -> float:
        """The local cost of one node; 0 for a node that the plan does not have."""
        return sum(cost for name, cost in self.parts if name == node)
