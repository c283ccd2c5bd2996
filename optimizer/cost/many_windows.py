"""Work of the answer's step of a query with several windows (optimizer.plan.operators.many,
optimizer.plan.operators.levels), as each window is read and levels are filled.

A boundary is an average one: a window of slide s ends at one in s/step of them. Of windows that end together the longest one's partials are read once; which
is the longest is taken as if windows ended independently of one another.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from optimizer.cost.tally import Tally
from optimizer.plan.lowering import Lowering
from optimizer.plan.merging import keeps, longest, parent, source, step
from optimizer.query.model import NamedWindow, Query
from optimizer.statistics.cardinality import Flow, Sizes, distinct

TIMES = 2                          # columns of a partial that say when it counts
Rows = Callable[[int], float]      # partials that a range holds


def recompute(tally: Tally, alone: Callable[[Tally], None]) -> None:
    """`alone` counts the work of one window whose range is that of the sizes."""
    query, plan = tally.low.shape.query, tally.low.plan
    if len(plan.digits) == 1 and plan.digits[0] and plan.layout == "panes":
        for level in (None, *plan.levels):
            _window_reads(tally, [w for w in query.windows if source(plan.levels, w) == level], level)
        for level in plan.levels:
            _filling(tally, level)
    elif plan.sharing == "each":
        for window in query.windows:
            _times(tally, frequency(query, window), window.range, alone)
    else:
        for window, chance in longest_of(query, query.windows):
            _times(tally, chance, window.range, alone)
        _suffixes(tally, query.windows)


def expire(tally: Tally, before: float, width: int) -> None:
    """What reading an expiring answer's `before` rows, of that width, takes beyond reading them once."""
    query = tally.low.shape.query
    if tally.low.plan.sharing == "together":
        return _suffixes(tally, query.windows)
    reads = sum(frequency(query, w) for w in query.windows)
    again = max(reads - 1, 0.0) / tally.low.parts
    tally.add("Late aggregation", state_read=again * before * width, group=again * before * width, made=reads * tally.sizes.answer(before) * tally.answer)


def frequency(query: Query, window: NamedWindow) -> float:
    return step(query) / window.slide


def longest_of(query: Query, windows: Sequence[NamedWindow]) -> Iterator[tuple[NamedWindow, float]]:
    """Each window, and how often it is the longest that ends."""
    none = 1.0
    for window in sorted(windows, key=lambda w: -w.range):
        yield window, none * frequency(query, window)
        none *= 1 - frequency(query, window)


def stored(low: Lowering, found: Sizes, kind: str) -> float:
    """Rows of the panes, or of a level, that are kept."""
    query, levels = low.shape.query, low.plan.levels
    level = None if kind == "panes" else levels[int(kind.strip("level_"))]
    return _partials(query, found, level) * keeps(query, levels)[level] / (level or step(query))


def _partials(query: Query, found: Sizes, level: int | None) -> float:
    """Of one instance of a level, or of one pane."""
    f = found.flows[0]
    if level is None:
        return f.pane
    return distinct(found.observed.inputs[0].combinations if found.shape.attributes[0] else 1.0, f.came * level / step(query))


def _held(tally: Tally, level: int | None) -> Rows:
    query = tally.low.shape.query
    return lambda size: _partials(query, tally.sizes, level) * size / (level or step(query))


def _window_reads(tally: Tally, windows: Sequence[NamedWindow], level: int | None) -> None:
    query, rows = tally.low.shape.query, _held(tally, level)
    together = tally.low.plan.sharing == "together" and len(windows) > 1
    for window, often in longest_of(query, windows) if together else ((w, frequency(query, w)) for w in windows):
        _read(tally, level, often, rows(window.range))
        tally.add("Late aggregation", statements=often, group=often * rows(window.range) * tally.part(0) * tally.answer)
        tally.add("Late aggregation", made=0.0 if together else often * tally.sizes.answer(rows(window.range)) * tally.answer)
    if together:
        _suffixes(tally, windows)


def _read(tally: Tally, level: int | None, often: float, rows: float) -> None:
    """Partials of a range out of state: their own columns, and the times of all that stand in the same files, of which each boundary or instance adds one."""
    if tally.new:
        return tally.add(tally.set(0), look=often * rows * tally.part(0))
    query, part = tally.low.shape.query, often * tally.part(0)
    length, kept = level or step(query), keeps(query, tally.low.plan.levels)[level]
    tally.add(tally.set(0), state_read=part * (rows * tally.width(0) + TIMES * _held(tally, level)(kept)))
    tally.add(tally.set(0), files=often * tally.files(kept / length * tally.part(0)))


def _suffixes(tally: Tally, windows: Sequence[NamedWindow]) -> None:
    """Slices between the ends of windows, kept; each window is the sum of those up to its own."""
    query, groups = tally.low.shape.query, tally.sizes.answer(float("inf"))
    shown = sum(frequency(query, w) for w in windows)
    some = sum(chance for _, chance in longest_of(query, windows))
    each = shown / some if some else 0.0
    kept = shown * groups * tally.answer
    tally.add("Late aggregation", keep=kept, statements=some, look=shown * groups, group=kept * (each + 1) / 2, made=2 * kept)


def _filling(tally: Tally, level: int) -> None:
    """An instance of a level is merged from the level below when it ends."""
    query, below = tally.low.shape.query, parent(tally.low.plan.levels, level)
    often, rows, made = step(query) / level, _held(tally, below)(level), _partials(query, tally.sizes, level)
    if tally.new:
        often = longest(query) / level
    _read(tally, below, often, rows)
    width, share = tally.width(0) + 2, often * tally.part(0)
    tally.add(tally.set(0), group=share * rows * width, made=share * made * width, keep=share * made * width, state_write=share * made * width, statements=1)


def _times(tally: Tally, often: float, size: int, alone: Callable[[Tally], None]) -> None:
    """The work of one window of this range, so often."""
    one = Tally(tally.low, _scaled(tally.sizes, size / longest(tally.low.shape.query)), tally.new, tally.age, tally.kept)
    alone(one)
    for node, amounts in one.counted.items():
        tally.add(node, **{kind: often * amount for kind, amount in amounts.items()})


def _scaled(found: Sizes, share: float) -> Sizes:
    """The sizes of a window that is a share of the longest."""
    if share == 1:
        return found
    known: dict[object, float | tuple[float, ...]] = {"correction": found.correction()}
    return replace(found, flows=tuple(_shorter(found, i, share) if f.panes > 1 else f for i, f in enumerate(found.flows)), _known=known, _orders={})


def _shorter(found: Sizes, i: int, share: float) -> Flow:
    f = found.flows[i]
    merged = distinct(found.observed.inputs[i].combinations, f.window * share) if found.shape.attributes[i] else f.set
    return replace(f, window=f.window * share, stored=f.stored * share, by_pane=f.by_pane * share, panes=f.panes * share, set=min(merged, f.set))
