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


def lines(price: Price) -> tuple[str, ...]:
    """The price as people read it: a line a node with its share, then the total, the source and what is outside of it.
    """
    names = ["total", *(name for name, _ in price.parts)]
    width = max(map(len, names))
    whole = price.total or 1
    nodes = (f"{name:<{width}}  {cost:>14,.6g}  {cost / whole:6.1%}" for name, cost in price.parts)
    return (*nodes, f"{'total':<{width}}  {price.total:>14,.6g}  {price.unit}, {price.equation}",
            *(f"outside the paper: {reason}" for reason in price.outside))
