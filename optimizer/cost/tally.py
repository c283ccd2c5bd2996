"""A plan being counted: amounts of work by node, and what stands for an input in its joins; which work there is, is not said here."""
from __future__ import annotations

from dataclasses import dataclass, field

from optimizer.plan.division import by_key, pivot
from optimizer.plan.lowering import Lowering
from optimizer.statistics.cardinality import MERGED, Flow, Operand, Sizes


@dataclass
class Tally:
    """A plan being counted. `new` says that its state starts from nothing, `age` how many boundaries ago it did."""

    low: Lowering
    sizes: Sizes
    new: bool
    age: float
    kept: int                 # state sets
    counted: dict[str, dict[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        whole, pivoted = by_key(self.low), pivot(self.low)
        self._parts = tuple(1 / self.low.parts if whole or i == pivoted else 1.0 for i in self.low.inputs)

    def add(self, node: str, **amounts: float) -> None:
        own = self.counted.setdefault(node, {})
        for kind, amount in amounts.items():
            if amount > 0:
                own[kind] = own.get(kind, 0.0) + amount

    def part(self, i: int) -> float:
        """How much of input i's partials one task holds."""
        return self._parts[i]

    def files(self, most: float) -> float:
        """Files of a state set to which each boundary adds one, until they are merged."""
        return max(min(most, self.age, MERGED), 1.0)

    def keys(self, i: int) -> int:
        return len(self.low.shape.attributes[i])

    def width(self, i: int) -> int:
        """Columns of a partial of input i: attributes, count, measures."""
        return self.keys(i) + 1 + len(self.low.shape.own(i))

    @property
    def answer(self) -> int:
        """Columns of an answer's partial."""
        return len(self.low.shape.query.groups) + 1 + len(self.low.shape.measures)

    def scan(self, i: int) -> str:
        return f"Scan {self.low.shape.query.inputs[i].alias}"

    def set(self, i: int) -> str:
        return f"AS {self.low.shape.query.inputs[i].alias}"


def ends_of(found: Sizes) -> float:
    """Boundaries at which combinations of now can end: the fewest of any input, as the member that leaves first ends it."""
    return min((f.ends for f in found.flows if f.left > 0), default=1.0)


def fresh(low: Lowering, found: Sizes) -> float:
    """Answer partials, by group and end, that one boundary adds to an expiring answer."""
    pairs = sum(found.join(arrivals(low, found, i)) for i in low.inputs if low.window(i))
    return found.answer(pairs, ends_of(found))


def arrivals(low: Lowering, found: Sizes, i: int) -> list[Operand]:
    """What came on input i among the members of the others, by pane."""
    return [change(low, found.flows[j], j) if j == i else by_pane(low, found, j) for j in low.plan.order]


def change(low: Lowering, f: Flow, i: int) -> Operand:
    return Operand(i, f.pane, f.came) if low.early(i) else Operand(i, f.came)


def by_pane(low: Lowering, found: Sizes, i: int) -> Operand:
    return found.by_pane(i) if low.early(i) else found.raw(i)


def merged(low: Lowering, found: Sizes, i: int) -> Operand:
    return found.merged(i) if low.early(i) else found.raw(i)
