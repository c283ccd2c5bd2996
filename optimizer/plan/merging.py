"""How the windows of one query are merged from one another: levels and their readers, as numbers (paper D's coverage
graph on tumbling levels); no SQL.

Levels are lengths of tumbling windows, asked for or not (factor windows). With these given, each window and each level
reads the longest level that partitions it (Theorem 4), else the panes: of disjoint instances the longest are the
fewest.
"""
from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from itertools import chain
from math import gcd

from optimizer.coverage.algebra import PARTITIONED, Window
from optimizer.coverage.factors import with_factors
from optimizer.coverage.graph import Prices, cheapest, prices
from optimizer.coverage.search import best
from optimizer.query.model import NamedWindow, Query

SHARING = {
    "each": "each window by itself",
    "together": "one pass for windows that end together, each a suffix of the next"
}
Pair = tuple[int, int]
# what making and storing a partial costs, in partials read (optimizer.cost.measured: state_write + made over state_read
# + group)
MADE = 10
# what a level costs a boundary whatever it holds (a commit, a statement), in partials read: of many groups little, of
# few much
FIXED = (0, 2)
MOST = 60              # windows up to which levels are looked for: beyond, the search takes longer than a batch


def longest(query: Query) -> int:
    return next(i.window.range for i in query.inputs if i.window)


def step(query: Query) -> int:
    """The length of a pane."""
    # the envelope moves by what divides all lengths (optimizer.sql.azure)
    return next(i.window.slide for i in query.inputs if i.window)


def source(levels: tuple[int, ...], window: NamedWindow) -> int | None:
    """The level that a window is merged from; None: the panes. Of a window that is a level itself its own instance."""
    return max((f for f in levels if window.range % f == window.slide % f == 0), default=None)


def parent(levels: tuple[int, ...], length: int) -> int | None:
    """The level that a level is merged from."""
    return max((f for f in levels if f < length and length % f == 0), default=None)


def keeps(query: Query, levels: tuple[int, ...]) -> dict[int | None, int]:
    """How long after its begin an instance of each level that is read (None: a pane) is needed: as long as its longest
    reader.
    """
    readers = [(source(levels, window), window.range) for window in query.windows]
    readers += [(parent(levels, length), length) for length in levels]
    longest_reader: dict[int | None, int] = {}
    for level, size in readers:
        longest_reader[level] = max(longest_reader.get(level, 0), size)
    return longest_reader


def unfit(query: Query, levels: tuple[int, ...]) -> str | None:
    """Why these are no levels of the query's windows; None if they are."""
    wrong = next((f for f in levels if f <= step(query) or f % step(query)), None)
    if wrong is not None:
        return f"a level of {wrong} µs is not made of panes of {step(query)} µs"
    unread = next((f for f in levels if f not in keeps(query, levels)), None)
    return None if unread is None else f"nothing reads a level of {unread} µs"


def choices(query: Query) -> tuple[tuple[int, ...], ...]:
    """Levels worth a price: none, those of the query's own windows (Algorithm 1), the paper's factor windows, those of
    our search.
    """
    if len(query.windows) > MOST:
        return ((),)
    return _choices(tuple(sorted((window.range, window.slide) for window in query.windows)))


@lru_cache(maxsize=256)
def _choices(pairs: tuple[Pair, ...]) -> tuple[tuple[int, ...], ...]:
    unit = gcd(*chain.from_iterable(pairs))
    windows = [Window(size // unit, slide // unit) for size, slide in pairs]
    model = prices(windows, PARTITIONED)
    graphs = [cheapest(windows, model), with_factors(windows, model)]
    for fixed in FIXED:
        dearer = Prices(model.period, PARTITIONED, instance=MADE, window=fixed * model.period)
        graphs.append(best(windows, dearer).graph)
    levels: list[tuple[int, ...]] = [()]
    levels += [_levels({window for window, _ in graph.edges}, unit) for graph in graphs]
    levels += [_levels(graph.factors, unit) for graph in graphs]
    return tuple(dict.fromkeys(levels))


def _levels(windows: Collection[Window], unit: int) -> tuple[int, ...]:
    """The windows' lengths; W(1, 1) is the panes themselves."""
    return tuple(sorted({window.range * unit for window in windows if window.range > 1}))
