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
    """Nodes are numbered: first the windows asked for, `window_count` of them, then the candidates.

    `_rows` remembers prices, since a search looks them up again and again: a node's price where only windows asked for
    can be read, and what it pays with each candidate, where that is no less the same.
    """

    nodes: tuple[Window, ...]
    window_count: int
    model: Prices
    _rows: dict[int, Row] = field(default_factory=dict, compare=False)
    _sorted: dict[int, Offers] = field(default_factory=dict, compare=False)
    _served: dict[int, Offers] = field(default_factory=dict, compare=False)

    @property
    def windows(self) -> range:
        return range(self.window_count)

    @property
    def candidates(self) -> range:
        return range(self.window_count, len(self.nodes))

    def pays(self, node: int, candidate: int) -> Number:
        """Its price where windows asked for and this candidate can be read."""
        alone, with_candidate = self._rows.get(node) or self._row(node)
        price = with_candidate.get(candidate)
        return self._price(node, candidate, alone, with_candidate) if price is None else price

    def offers(self, node: int) -> Offers:
        """Candidates that make it cheaper, cheapest first: (price, candidate)."""
        if node not in self._sorted:
            alone = self._row(node)[0]
            offers = [(self.pays(node, candidate), candidate) for candidate in self.candidates]
            self._sorted[node] = tuple(sorted(offer for offer in offers if offer[0] < alone))
        return self._sorted[node]

    def served(self, candidate: int) -> Offers:
        """The windows asked for that are cheaper read from a candidate: (price, window)."""
        if candidate not in self._served:
            offers = [(self.pays(window, candidate), window) for window in self.windows]
            self._served[candidate] = tuple((price, n) for price, n in offers if price < self._row(n)[0])
        return self._served[candidate]

    def least(self, node: int, allowed: Collection[int]) -> Number:
        return next((price for price, c in self.offers(node) if c in allowed), self._row(node)[0])

    def current(self, node: int, chosen: Collection[int]) -> Number:
        """The same for few candidates."""
        alone, with_candidate = self._rows.get(node) or self._row(node)
        best = alone
        for candidate in chosen:
            price = with_candidate.get(candidate)
            if price is None:
                price = self._price(node, candidate, alone, with_candidate)
            if price < best:
                best = price
        return best

    def cost(self, chosen: Collection[int]) -> Number:
        return sum(self.current(n, chosen) for n in (*self.windows, *chosen))

    def _row(self, node: int) -> Row:
        if node not in self._rows:
            window = self.nodes[node]
            prices = [self.model.reading(window, fine) for fine in self.nodes[:self.window_count]]
            self._rows[node] = (min([self.model.rows(window), *(price for price in prices if price is not None)]), {})
        return self._rows[node]

    def _price(self, node: int, candidate: int, alone: Number, with_candidate: dict[int, Number]) -> Number:
        price = self.model.reading(self.nodes[node], self.nodes[candidate])
        with_candidate[candidate] = alone if price is None or price > alone else price
        return with_candidate[candidate]


def table(windows: Collection[Window], possible: Sequence[Window], model: Prices) -> PriceTable:
    return PriceTable((*sorted(windows), *possible), len(windows), model)
