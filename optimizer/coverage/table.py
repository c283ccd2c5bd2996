"""Prices of every reading between windows asked for and candidates, as a search looks them up; which candidates are taken is not known here."""
from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from optimizer.coverage.algebra import Window
from optimizer.coverage.graph import Number, Prices

Offers = tuple[tuple[Number, int], ...]


@dataclass(frozen=True)
class Table:
    """Nodes are numbered: first the windows asked for, then the candidates. `_known` remembers what was priced."""

    nodes: tuple[Window, ...]
    asked: int
    model: Prices
    _known: dict[int, tuple[Number, dict[int, Number]]] = field(default_factory=dict, compare=False)
    _sorted: dict[int, Offers] = field(default_factory=dict, compare=False)
    _served: dict[int, Offers] = field(default_factory=dict, compare=False)

    @property
    def windows(self) -> range:
        return range(self.asked)

    @property
    def candidates(self) -> range:
        return range(self.asked, len(self.nodes))

    def without(self, node: int) -> Number:
        """The price of a node where only windows asked for can be read."""
        return self._row(node)[0]

    def offer(self, node: int, candidate: int) -> Number | None:
        """Its price read from a candidate, if that is less."""
        known = self._row(node)[1]
        if candidate not in known:
            price = self.model.reading(self.nodes[node], self.nodes[candidate])
            known[candidate] = self.without(node) if price is None else min(price, self.without(node))
        return known[candidate] if known[candidate] < self.without(node) else None

    def offers(self, node: int) -> Offers:
        """All of them, cheapest first."""
        if node not in self._sorted:
            self._sorted[node] = tuple(sorted((p, c) for c in self.candidates if (p := self.offer(node, c)) is not None))
        return self._sorted[node]

    def served(self, candidate: int) -> Offers:
        """The windows asked for that are cheaper read from a candidate: (price, window)."""
        if candidate not in self._served:
            self._served[candidate] = tuple((p, n) for n in self.windows if (p := self.offer(n, candidate)) is not None)
        return self._served[candidate]

    def least(self, node: int, allowed: Collection[int]) -> Number:
        return next((price for price, c in self.offers(node) if c in allowed), self.without(node))

    def current(self, node: int, chosen: Collection[int]) -> Number:
        """The same for few candidates."""
        return min([self.without(node), *(p for c in chosen if (p := self.offer(node, c)) is not None)])

    def cost(self, chosen: Collection[int]) -> Number:
        return sum(self.current(n, chosen) for n in (*self.windows, *chosen))

    def _row(self, node: int) -> tuple[Number, dict[int, Number]]:
        if node not in self._known:
            w = self.nodes[node]
            found = [p for fine in self.nodes[:self.asked] if (p := self.model.reading(w, fine)) is not None]
            self._known[node] = (min([self.model.rows(w), *found]), {})
        return self._known[node]


def table(windows: Collection[Window], possible: Sequence[Window], model: Prices) -> Table:
    return Table((*sorted(windows), *possible), len(windows), model)
