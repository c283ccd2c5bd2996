"""How the windows of one query are merged from one another: levels and their readers, as numbers (paper D's coverage
graph over what is kept); no SQL.

A level is a window whose instances are kept, asked for or not (factor windows). With these given, each window and each
level reads the level of which the fewest instances make it, else the panes. Instances of a tumbling level are disjoint,
so they make a window for every function that has partials ("partitioned by", Theorem 4); those of a hopping one
overlap, which does MIN and MAX no harm ("covered by", Theorem 1). Of the instances that cover a window as many suffice
as reach from end to end ("spanned by", beyond the paper).
"""
from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import chain
from math import gcd

from optimizer.coverage.algebra import COVERED, PARTITIONED, SPANNED, CoverRelation, Window
from optimizer.coverage.factors import with_factors
from optimizer.coverage.graph import Prices, cheapest, prices
from optimizer.coverage.search import best
from optimizer.query.model import NamedWindow, Query

SHARING = {
    "each": "each window by itself",
    "together": "one pass for windows that end together, each a suffix of the next"
}
Pair = tuple[int, int]
Levels = tuple[Window, ...]            # in microseconds; each is longer than the one before
OVERLAP_SAFE = ("min", "max")          # functions that a row may enter twice
# what making and storing a partial costs, in partials read (optimizer.cost.measured: state_write + made over state_read
# + group)
MADE = 10
# what a level costs a boundary whatever it holds (a commit, a statement), in partials read: of many groups little, of
# few much
FIXED = (0, 2)
PERIODS = 1000         # of paper D that our search looks at: in one, a hopping window may have a single instance
MOST = 60              # windows up to which levels are looked for: beyond, the search takes longer than a batch


def longest(query: Query) -> int:
    return next(i.window.range for i in query.inputs if i.window)


def step(query: Query) -> int:
    """The length of a pane."""
    # the envelope moves by what divides all lengths (optimizer.sql.azure)
    return next(i.window.slide for i in query.inputs if i.window)


def relation(query: Query) -> CoverRelation:
    """What the query's functions ask of the windows that they are merged from: Theorems 5 and 6."""
    may_overlap = all(aggregate.function in OVERLAP_SAFE for aggregate in query.aggregates)
    return COVERED if may_overlap else PARTITIONED


def instances(window: NamedWindow | Window, level: Window | None, pane: int) -> int | None:
    """How many instances of a level, or panes, make one of the window, at least; None where they do not.

    Of a window that is a level itself its own instance.
    """
    coarse, fine = Window(window.range, window.slide), level or Window(pane, pane)
    return 1 if coarse == fine else SPANNED.reads(coarse, fine)


def stride(level: Window) -> int:
    """From one instance to the next of those that reach from end to end of a window: as far as leaves no gap."""
    return level.range // level.slide * level.slide


def source(levels: Levels, window: NamedWindow | Window) -> Window | None:
    """The level that a window is merged from, that with the fewest instances; None: the panes."""
    counts = [(count, level) for level in levels if (count := instances(window, level, 0)) is not None]
    return min(counts)[1] if counts else None


def parent(levels: Levels, level: Window) -> Window | None:
    """The level that a level is merged from."""
    return source(tuple(other for other in levels if other.range < level.range), level)


def keeps(query: Query, levels: Levels) -> dict[Window | None, int]:
    """How long after its begin an instance of each level that is read (None: a pane) is needed: as long as its longest
    reader.
    """
    readers = [(source(levels, window), window.range) for window in query.windows]
    readers += [(parent(levels, level), level.range) for level in levels]
    longest_reader: dict[Window | None, int] = {}
    for level, size in readers:
        longest_reader[level] = max(longest_reader.get(level, 0), size)
    return longest_reader


def unfit(query: Query, levels: Levels) -> str | None:
    """Why these are no levels of the query's windows; None if they are."""
    pane = step(query)
    wrong = next((f for f in levels if f.range <= pane or f.range % pane or f.slide % pane), None)
    if wrong is not None:
        return f"a level of {wrong} µs is not made of panes of {pane} µs"
    hopping = next((f for f in levels if not f.tumbling), None)
    if hopping is not None and relation(query) != COVERED:
        return f"instances of a level of {hopping} µs overlap: only MIN and MAX can be merged from them"
    read = keeps(query, levels)
    unread = next((f for f in levels if f not in read), None)
    return None if unread is None else f"nothing reads a level of {unread} µs"


def choices(query: Query) -> tuple[Levels, ...]:
    """Levels worth a price: none, those of the query's own windows (Algorithm 1), the paper's factor windows, those of
    our search. Where instances may overlap, by all relations: hopping levels are fewer, tumbling ones cheaper to make.
    """
    if len(query.windows) > MOST:
        return ((),)
    pairs = tuple(sorted((window.range, window.slide) for window in query.windows))
    found = _choices(pairs, PARTITIONED)
    if relation(query) == COVERED:
        found += _choices(pairs, COVERED) + _choices(pairs, SPANNED)
    return tuple(dict.fromkeys(levels for levels in found if not unfit(query, levels)))


@lru_cache(maxsize=256)
def _choices(pairs: tuple[Pair, ...], cover: CoverRelation) -> tuple[Levels, ...]:
    unit = gcd(*chain.from_iterable(pairs))
    windows = [Window(size // unit, slide // unit) for size, slide in pairs]
    model = prices(windows, cover)
    graphs = [cheapest(windows, model), with_factors(windows, model)]
    steady = PERIODS * model.period
    for fixed in FIXED:
        dearer = Prices(steady, cover, instance=MADE, window=fixed * steady)
        graphs.append(best(windows, dearer).graph)
    levels: list[Levels] = [()]
    levels += [_levels({window for window, _ in graph.edges}, unit) for graph in graphs]
    levels += [_levels(graph.factors, unit) for graph in graphs]
    return tuple(dict.fromkeys(levels))


def _levels(windows: Iterable[Window], unit: int) -> Levels:
    """The windows in microseconds, of one length that with the shortest hop; W(1, 1) is the panes themselves."""
    by_range: dict[int, Window] = {}
    for window in sorted(windows, reverse=True):
        if window.range > 1:
            by_range[window.range] = Window(window.range * unit, window.slide * unit)
    return tuple(sorted(by_range.values()))
