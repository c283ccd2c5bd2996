"""Answers at several moments, out of the partials that a plan has: of several windows that end at one boundary, and of
several boundaries in one statement.

What leaves the longest window at e counts at t in a window that is shorter by `longer` iff e ≥ t + longer (DESIGN,
"Many windows, one state"). So windows that end together are suffixes of one another: each partial gets the number of
the shortest window that holds it, `_b`, partials are merged by it, and a window is the sum of the numbers up to its
own. Only of one boundary: two joined rows can be together in a long window and in none of its parts.

Where one statement answers several boundaries, each window that ends at one of them is a row of `due`. A partial meets
those at which it counts, and is joined and merged by them as by any other key.

Work is that of an average boundary: a window of slide s ends at one in s/step of them. Which of the windows that end
together is the longest is taken as if windows ended independently of one another.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from optimizer.expression import dialect as d
from optimizer.expression.expr import Column
from optimizer.expression.types import BIGINT
from optimizer.plan import table
from optimizer.plan.lowering import Lowering
from optimizer.plan.merging import longest, step
from optimizer.plan.operators.answer import NODE
from optimizer.plan.operators.join import group_columns, joined, merged_answer, out_columns
from optimizer.plan.operators.operator import Boundary, Expected, Work
from optimizer.plan.operators.panes import level_of, spanning, view_of
from optimizer.plan.program import Definition, Step
from optimizer.query.model import WINDOW_NAME, NamedWindow, Query
from optimizer.query.shape import Attribute
from optimizer.statistics.cardinality import Flow, Sizes, distinct

# Lengths beyond which telling the number of a partial by comparing takes longer than merging more numbers.
FEW = 30
WindowsShown = Sequence[tuple[NamedWindow, int]]      # windows that end at a boundary, each with how much shorter it is
# Partials of a window so much shorter than the longest, out of a view.
OneWindow = Callable[[int, str], str]
# The same of several, by `_b`: the place in the list, from the shortest, of the first that holds them.
SeveralWindows = Callable[[Sequence[int], str], str]
# An input's partials as a join reads them, an item of FROM: of this input, out of these rows, by these columns more.
Members = Callable[[int, str, tuple[str, ...]], str]
MOMENT_COLUMNS = ("_t", "_window")      # of rows that one statement gives for several boundaries


class Moment(NamedTuple):
    """A window that ends at a boundary: what counts then and stays to `ends` is in it; `Moment(70, 70)` without name.
    """

    at: int
    ends: int
    window: str = ""


def answer(ctx: Lowering, t: int | str, sql: str) -> str:
    """An answer's partials at t, a boundary or a column, in the types that they are handed over in."""
    columns = ", ".join(f"CAST({name} AS {d.name(kind, ctx.dialect)}) AS {name}" for name, kind in out_columns(ctx))
    return f"SELECT CAST({t} AS BIGINT) AS _t, {columns} FROM ({sql}) AS q"


def step_of(ctx: Lowering, boundary: Boundary, define: tuple[Definition, ...], one: OneWindow,
            several: SeveralWindows) -> Step:
    """After `define`, of one window its answer, of several those that end at the boundary, each by its name."""
    t, windows = boundary.at, ctx.shape.query.windows
    if not windows:
        return Step(t, define, answer(ctx, t, one(0, table.of_input(0))))
    shown = sorted(ctx.shape.query.shown(t), key=lambda pair: (view_of(ctx, pair[0]), -pair[1]))
    if not shown:
        return Step(t, define, answer(ctx, t, f"SELECT * FROM ({one(0, table.of_input(0))}) AS q WHERE FALSE"))
    slices: list[Definition] = []
    answers: list[str] = []
    for view, group in groupby(shown, key=lambda pair: view_of(ctx, pair[0])):
        same_view = list(group)
        if ctx.plan.sharing == "each" or len(same_view) == 1:
            name, others = named_columns(ctx)
            for window, longer in same_view:
                window_name = d.string(window.name, ctx.dialect)
                answers.append(f"SELECT {window_name} AS {name}, {others} FROM ({one(longer, view)}) AS q")
            continue
        lengths = sorted({longer for _, longer in same_view}, reverse=True)
        sliced = table.slices(len(slices), boundary.number)
        slices.append(Definition(sliced, several(lengths, view), is_table=True))
        answers.append(_suffixes(ctx, t, sliced, same_view, lengths))
    return Step(t, (*define, *slices), " UNION ALL ".join(answer(ctx, t, sql) for sql in answers))


def step_at_moments(ctx: Lowering, boundaries: Sequence[Boundary], members: Members) -> Step:
    """One statement answers these boundaries, for each view that windows are merged from."""
    moments_by_view, last = _moments(ctx, boundaries), boundaries[-1].at
    if not moments_by_view:
        rows = _at_moments(ctx, table.of_input(0), [Moment(last, last)], members)
        return Step(last, (), answer(ctx, "_t", f"SELECT * FROM ({rows}) AS q WHERE FALSE"))
    answers = [_at_moments(ctx, view, moments, members) for view, moments in moments_by_view.items()]
    return Step(last, (), " UNION ALL ".join(answer(ctx, "_t", sql) for sql in answers))


def merged_at_moments(ctx: Lowering, boundaries: Sequence[Boundary], kept: str) -> str:
    """The answers at these boundaries out of partials (`_in`, `_e`) of a kept answer."""
    last = boundaries[-1].at
    moments = [moment for of_view in _moments(ctx, boundaries).values() for moment in of_view]
    rows = f"SELECT q.*, due._t, due._window FROM {kept} AS q JOIN {_due(ctx, moments or [Moment(last, last)])} "
    sql = merged_answer(ctx, f"{rows}ON q._in <= due._t AND q._e >= due._ends", extra=MOMENT_COLUMNS)
    return answer(ctx, "_t", _named(ctx, sql) if moments else f"SELECT * FROM ({sql}) AS q WHERE FALSE")


def number(ends: str, t: int, lengths: Sequence[int]) -> str:
    """`_b` of what counts up to and including `ends`; nobody asks of what no window holds.

    Of more than FEW lengths each end has a number of its own.
    """
    if len(lengths) > FEW:
        return f"-({ends})"
    cases = " ".join(f"WHEN {ends} >= {t + longer} THEN {place}" for place, longer in enumerate(lengths[:-1]))
    return f"CASE {cases} ELSE {len(lengths) - 1} END" if cases else "0"


def frequency(query: Query, window: NamedWindow) -> float:
    """At what share of boundaries the window ends."""
    return step(query) / window.slide


def chance_to_be_longest(query: Query, windows: Sequence[NamedWindow]) -> Iterator[tuple[NamedWindow, float]]:
    """Each window, and at what share of boundaries it is the longest that ends."""
    no_longer_one = 1.0
    for window in sorted(windows, key=lambda w: -w.range):
        yield window, no_longer_one * frequency(query, window)
        no_longer_one *= 1 - frequency(query, window)


def suffix_work(expected: Expected, windows: Sequence[NamedWindow]) -> Work:
    """Slices between the ends of windows are kept; each window is the sum of those up to its own."""
    query, groups, width = expected.ctx.shape.query, expected.sizes.groups, expected.answer_width
    ending = sum(frequency(query, window) for window in windows)
    any_ends = sum(chance for _, chance in chance_to_be_longest(query, windows))
    together = ending / any_ends if any_ends else 0.0
    values = ending * groups * width
    yield NODE, {"keep": values, "statements": any_ends, "look": ending * groups, "group": values * (together + 1) / 2,
                 "made": 2 * values}


def scaled(expected: Expected, size: int) -> Expected:
    """What is expected of a window of this range."""
    share, sizes = size / longest(expected.ctx.shape.query), expected.sizes
    if share == 1:
        return expected
    flows = tuple(_shorter(sizes, i, share) if flow.panes > 1 else flow for i, flow in enumerate(sizes.flows))
    remembered: dict[object, float | tuple[float, ...]] = {"correction": sizes.correction()}
    return expected.of_window(replace(sizes, flows=flows, _known=remembered, _orders={}))


def times(often: float, work: Work) -> Work:
    for node, amounts in work:
        yield node, {kind: often * amount for kind, amount in amounts.items()}


def _shorter(sizes: Sizes, i: int, share: float) -> Flow:
    flow = sizes.flows[i]
    merged = flow.set
    if sizes.shape.attributes[i]:
        merged = distinct(sizes.statistics.inputs[i].combinations, flow.window * share)
    return replace(flow, window=flow.window * share, stored=flow.stored * share, by_pane=flow.by_pane * share,
                   panes=flow.panes * share, set=min(merged, flow.set))


def _moments(ctx: Lowering, boundaries: Sequence[Boundary]) -> dict[str, list[Moment]]:
    """The windows that end at the boundaries, by the view that they are merged from."""
    query, moments = ctx.shape.query, dict[str, list[Moment]]()
    for t in (boundary.at for boundary in boundaries):
        if not query.windows:
            moments.setdefault(table.of_input(0), []).append(Moment(t, t))
        for window, longer in query.shown(t):
            moments.setdefault(view_of(ctx, window), []).append(Moment(t, t + longer, window.name))
    return moments


def _due(ctx: Lowering, moments: Sequence[Moment]) -> str:
    """The moments as an item of FROM."""
    listed = ", ".join(f"({m.at}, {m.ends}, {d.string(m.window, ctx.dialect)})" for m in moments)
    return f"(VALUES {listed}) AS due(_t, _ends, _window)"


def _named(ctx: Lowering, sql: str) -> str:
    """Each window's answers under its name."""
    if not ctx.shape.query.windows:
        return sql
    name, others = named_columns(ctx)
    return f"SELECT _t, _window AS {name}, {others} FROM ({sql}) AS of_windows"


def _at_moments(ctx: Lowering, view: str, moments: Sequence[Moment], members: Members) -> str:
    """The answers at all moments, by `_t`: each partial meets the moments at which it counts, and joins its like."""
    query, level = ctx.shape.query, level_of(ctx, view)
    spans = spanning(level, "(q._out - due._ends)", f"due._t + {longest(query)} - due._ends") if level else ""
    sources, windowed = {}, [i for i in ctx.inputs if ctx.window(i) is not None]
    for i in ctx.inputs:
        rows = view if ctx.plan.levels else table.of_input(i)
        extra: tuple[str, ...] = ()
        if i in windowed:
            rows = (f"(SELECT q.*, due._t, due._window FROM {rows} AS q JOIN {_due(ctx, moments)} "
                    f"ON q._in <= due._t AND q._out >= due._ends{spans}) AS counted")
            extra = MOMENT_COLUMNS
        sources[i] = members(i, rows, extra)
    same_moment = [tuple((i, Attribute(name, Column(i, name, BIGINT))) for i in windowed) for name in MOMENT_COLUMNS]
    of_moments = replace(ctx, shape=replace(ctx.shape, keys=(*ctx.shape.keys, *same_moment)))
    moment = tuple((name, f"v{windowed[0]}.{name}") for name in MOMENT_COLUMNS)
    return _named(ctx, joined(of_moments, sources, extra=moment))


def named_columns(ctx: Lowering) -> tuple[str, str]:
    """The group that is the window's name, and all other columns of an answer."""
    name = group_columns(ctx.shape)[ctx.shape.query.groups.index(WINDOW_NAME)]
    return name, ", ".join(column for column, _ in out_columns(ctx) if column != name)


def _suffixes(ctx: Lowering, t: int, slices: str, shown: WindowsShown, lengths: Sequence[int]) -> str:
    """Each window as the sum of the slices up to its own number (see `number`)."""
    windows = []
    for window, longer in shown:
        last = -(t + longer) if len(lengths) > FEW else lengths.index(longer)
        windows.append(f"({d.string(window.name, ctx.dialect)}, {last})")
    name, others = named_columns(ctx)
    read = (f"SELECT _name AS {name}, {others} FROM {slices} JOIN (VALUES {', '.join(windows)}) "
            "AS windows(_name, _upto) ON _b <= _upto")
    return merged_answer(ctx, read)
