"""Prices of every reading between windows asked for and candidates, as a search looks them up.

Which candidates are taken is not known here.
"""
from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from optimizer.coverage.algebra import Window
from optimizer.coverage.graph import Number, Prices

Offers = tuple[tuple[Number, int], ...]
Row = tuple[Number, dict[int, Number]]


@dataclass(frozen=True)
class PriceTable:
    """Nodes are numbered: first the windows asked for, then the candidates. `_known` remembers what was priced, since a
    search asks for it again and again: a node's price where only windows asked for can be read, and what it pays with
    each candidate, where that is no less the same."""

    nodes: tuple[Window, ...]
    asked: int
    model: Prices
    _known: dict[int, Row] = field(default_factory=dict, compare=False)
    _sorted: dict[int, Offers] = field(default_factory=dict, compare=False)
    _served: dict[int, Offers] = field(default_factory=dict, compare=False)

    @property
    def windows(self) -> range:
        return range(self.asked)

    @property
    def candidates(self) -> range:
        return range(self.asked, len(self.nodes))

    def pays(self, node: int, candidate: int) -> Number:
        """Its price where windows asked for and this candidate can be read."""
        alone, known = self._known.get(node) or self._row(node)
        price = known.get(candidate)
        return self._priced(node, candidate, alone, known) if price is None else price

    def offers(self, node: int) -> Offers:
        """Candidates that make it cheaper, cheapest first: (price, candidate)."""
        if node not in self._sorted:
            alone = self._row(node)[0]
            self._sorted[node] = tuple(sorted((p, c) for c in self.candidates if (p := self.pays(node, c)) < alone))
        return self._sorted[node]

    def served(self, candidate: int) -> Offers:
        """The windows asked for that are cheaper read from a candidate: (price, window)."""
        if candidate not in self._served:
            self._served[candidate] = tuple(
                (p, n) for n in self.windows if (p := self.pays(n, candidate)) < self._row(n)[0])
        return self._served[candidate]

    def least(self, node: int, allowed: Collection[int]) -> Number:
        return next((price for price, c in self.offers(node) if c in allowed), self._row(node)[0])

    def current(self, node: int, chosen: Collection[int]) -> Number:
        """The same for few candidates."""
        alone, known = self._known.get(node) or self._row(node)
        best = alone
        for candidate in chosen:
            price = known.get(candidate)
            if price is None:
                price = self._priced(node, candidate, alone, known)
            if price < best:
                best = price
        return best

    def cost(self, chosen: Collection[int]) -> Number:
        return sum(self.current(n, chosen) for n in (*self.windows, *chosen))

    def _row(self, node: int) -> Row:
        if node not in self._known:
            w = self.nodes[node]
            found = [p for fine in self.nodes[:self.asked] if (p := self.model.reading(w, fine)) is not None]
            self._known[node] = (min([self.model.rows(w), *found]), {})
        return self._known[node]

    def _priced(self, node: int, candidate: int, alone: Number, known: dict[int, Number]) -> Number:
        price = self.model.reading(self.nodes[node], self.nodes[candidate])
        known[candidate] = alone if price is None or price > alone else price
        return known[candidate]


def table(windows: Collection[Window], possible: Sequence[Window], model: Prices) -> PriceTable:
    return PriceTable((*sorted(windows), *possible), len(windows), model)
