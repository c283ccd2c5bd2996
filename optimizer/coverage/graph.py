"""What windows cost over one period and from which window each is best read (paper D, §III-B, Algorithm 1).

A graph is a forest by construction.
"""
from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm

from optimizer.coverage.algebra import CoverRelation, Window

Number = int | Fraction


@dataclass(frozen=True)
class Prices:
    """What windows cost over one period: `Prices(120, PARTITIONED)` is the paper's model of 20, 30 and 40.

    `period` is R, `rate` is η. `row`, `partial`, `instance` and `window` weigh a row read, another window's instance
    read, an instance made, and a window evaluated at all: (1, 1, 0, 0) is the paper's model, measured ones make costs
    times. `difference`: an instance by subtraction, beside what it reads.
    """

    period: int
    relation: CoverRelation
    rate: Number = 1
    row: Number = 1
    partial: Number = 1
    instance: Number = 0
    window: Number = 0
    difference: Number = 0

    def __post_init__(self) -> None:
        weights = (self.row, self.partial, self.instance, self.window, self.difference)
        if self.rate <= 0 or self.period <= 0 or min(weights) < 0:
            raise ValueError(f"period {self.period}, rate {self.rate}: both are positive, and no weight is negative")

    def instances(self, window: Window) -> Number:
        """Eq. 1: n = 1 + (R − r)/s; a fraction where the slide does not divide, the mean over periods."""
        steps, rest = divmod(self.period - window.range, window.slide)
        return 1 + steps if not rest else 1 + steps + Fraction(rest, window.slide)

    def rows(self, window: Window) -> Number:
        """n·η·r: read from the rows."""
        slid = self.rate * window.slide if self.relation.subtracts else None
        return self.row * self._each(window, self.rate * window.range, slid) + self._made(window)

    def reading(self, coarse: Window, fine: Window) -> Number | None:
        """n·M(coarse, fine): read from another window's instances (Observation 1)."""
        count = self.relation.reads(coarse, fine)
        if count is None:
            return None
        return self.partial * self._each(coarse, count, self._slid(coarse, fine)) + self._made(coarse)

    def _made(self, window: Window) -> Number:
        return self.instance * self.instances(window) + self.window

    def _slid(self, coarse: Window, fine: Window) -> int | None:
        step = Window(coarse.slide, coarse.slide)
        if not self.relation.subtracts or coarse.tumbling:
            return None
        return 1 if step == fine else self.relation.reads(step, fine)

    def _each(self, window: Window, full: Number, slid: Number | None) -> Number:
        """All instances in full.

        Or, where that is less, each but the first from the one before: itself, what came, what left.
        """
        n = self.instances(window)
        return n * full if slid is None else min(n * full, self._moved(n, full, slid))

    def _moved(self, n: Number, full: Number, slid: Number) -> Number:
        return full + (n - 1) * (1 + 2 * slid + self.difference)

    def subtracts(self, window: Window, source: Window | None) -> bool:
        """Whether taking away what leaves is cheaper than adding up each instance."""
        full: Number | None
        slid: Number | None
        if source is None:
            full = self.rate * window.range
            slid = self.rate * window.slide if self.relation.subtracts else None
        else:
            full, slid = self.relation.reads(window, source), self._slid(window, source)
        n = self.instances(window)
        return full is not None and slid is not None and self._moved(n, full, slid) < n * full


@dataclass(frozen=True)
class Graph:
    """Each window with the window it reads, None for the rows; `factors` are the windows that nobody asked for."""

    reads: tuple[tuple[Window, Window | None], ...]
    factors: frozenset[Window]
    prices: Prices

    def __post_init__(self) -> None:
        if any(source is not None and (source not in self.parents or self.prices.relation.reads(w, source) is None)
               for w, source in self.reads):
            raise ValueError("a window reads one that is not there or does not make it")

    @cached_property
    def parents(self) -> dict[Window, Window | None]:
        return dict(self.reads)

    def price(self, window: Window) -> Number:
        source = self.parents[window]
        price = self.prices.rows(window) if source is None else self.prices.reading(window, source)
        assert price is not None
        return whole(price)

    @cached_property
    def cost(self) -> Number:
        return whole(sum(self.price(w) for w in self.parents))

    @property
    def edges(self) -> tuple[tuple[Window, Window], ...]:
        """From the window that is read to the one that reads."""
        return tuple(sorted((source, w) for w, source in self.reads if source is not None))


def whole(number: Number) -> Number:
    return int(number) if number.denominator == 1 else number


def prices(windows: Collection[Window], relation: CoverRelation, rate: Number = 1) -> Prices:
    """The paper's: R is the least common multiple of all ranges."""
    return Prices(lcm(*(w.range for w in windows)), relation, rate)


def as_written(windows: Iterable[Window], model: Prices) -> Graph:
    """Every window from the rows."""
    return Graph(tuple((w, None) for w in sorted(windows)), frozenset(), model)


def cheapest(windows: Collection[Window], model: Prices, factors: Collection[Window] = ()) -> Graph:
    """Algorithm 1 over these windows and factor windows; a factor window that nobody would read is left out."""
    useful = set(factors) - set(windows)
    while True:
        nodes = sorted({*windows, *useful})
        reads = tuple((window, _source(window, nodes, model)) for window in nodes)
        sources = {source for _, source in reads}
        if useful <= sources:
            return Graph(reads, frozenset(useful), model)
        useful &= sources


def _source(window: Window, nodes: Iterable[Window], model: Prices) -> Window | None:
    """The cheapest to read; of equals the rows, then the longest."""
    best, source = model.rows(window), None
    for fine in nodes:
        price = model.reading(window, fine)
        if price is not None and (price < best or price == best and source is not None):
            best, source = price, fine
    return source
