"""Partials by pane: an input that aggregates early, kept by the boundaries between which its rows count.

For `SELECT page, COUNT(*) FROM views [WINDOW 1 HOUR] GROUP BY page` and a boundary every ten minutes, `panes0` gets a
file a boundary, with a row a page of what came. What has left the window is not read; files merge now and then.

A query with several windows may keep coarser panes beside them, *levels* (paper D's factor windows): a level of length
f and hop h holds instances [u, u + f) that end at multiples of h, each merged from the level below when it ends; a row
that comes later is a partial of its own in each of those that hold it. A working row of any level has `_out` = u + R, R
the longest range, so a window's condition is the same at all levels: of overlapping instances too, those that begin and
have ended within it make the whole window, and so do those of them that reach from end to end (`spanning`). In state
`_out` says how long something reads it, and files leave early. Tumbling levels (h = f) are right for every function
that has partials, hopping ones for MIN and MAX only.
"""
from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from optimizer.coverage.algebra import Window
from optimizer.expression import dialect as d
from optimizer.plan import table
from optimizer.plan.division import dealt
from optimizer.plan.lowering import Lowering
from optimizer.plan.membership import INTERVAL
from optimizer.plan.merging import keeps, longest, parent, source, step, stride
from optimizer.plan.operators.operator import (
    Boundary,
    Expected,
    InputOperator,
    KeptSet,
    Operator,
    Run,
    Work,
    append,
    counts,
    live_rows,
    long_since,
    merged_file,
    set_node,
)
from optimizer.plan.operators.scan import TIME_COLUMNS, Scan
from optimizer.plan.operators.sets import grouped, names, own_keys, rows_where, set_words, stored_columns, working
from optimizer.plan.program import Definition, Fragment, Source, StateSet, Write
from optimizer.query.model import NamedWindow
from optimizer.statistics.cardinality import distinct

LOOKS = 3      # at each partial of overlapping instances: when it enters and leaves, whether it is one that is taken


@dataclass(frozen=True)
class Panes(InputOperator):
    """The operator: what came is early aggregated by interval and added to state, older panes are read from it.

    `Panes(Scan(0), levels=(Level(0, Window(60_000_000, 60_000_000)),))` keeps minutes beside its panes.
    """

    scan: Scan
    levels: tuple[Level, ...] = ()

    @property
    def input(self) -> int:      # type: ignore[override]
        return self.scan.input

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.scan,)

    def kept(self, ctx: Lowering) -> tuple[KeptSet, ...]:
        return (PaneSet(self.input), *self.levels)

    def sources(self, ctx: Lowering, run: Run) -> tuple[Source, ...]:
        if run.from_nothing:
            return self.scan.sources(ctx, run)
        panes = PaneSet(self.input).source(ctx)
        return (*self.scan.sources(ctx, run), panes, *(level.source(ctx) for level in self.levels))

    def fragments(self, ctx: Lowering, run: Run) -> tuple[Fragment, ...]:
        return self.scan.fragments(ctx, run)

    def setup(self, ctx: Lowering, run: Run) -> tuple[Definition, ...]:
        """What came, by interval; that and what state holds of older boundaries; then each level's."""
        i, rows = self.input, f"({self.scan.rows(ctx, run)}) AS q"
        if run.from_nothing:      # what counts already is merged however it came: under UNTIL NOW to a row a group
            merged_times = f"{', '.join(names(ctx, i))}, {long_since(run.counted_before)}, _out"
            rows = f"(SELECT {merged_times} FROM {rows} WHERE _in <= _out) AS of_window"
        new = table.new(PaneSet(i).state(ctx).name)
        came = Definition(new, grouped(ctx, i, rows, ("_in", "_out"), where="_in <= _out"), is_table=True)
        columns = ", ".join([*names(ctx, i), "_in", "_out"])
        if run.from_nothing:
            members = Definition(table.of_input(i), f"SELECT {columns} FROM {new}", is_table=False)
        else:
            since = run.previous if ctx.plan.keeping == "retract" else run.boundaries[0]
            older = PaneSet(i).rows(ctx, since)
            is_table = len(run.boundaries) > 1 or ctx.plan.keeps_answer
            members = Definition(table.of_input(i), f"SELECT {columns} FROM {new} UNION ALL {older}", is_table)
        return (came, members, *(definition for level in self.levels for definition in level.setup(ctx, run)))

    def members(self, ctx: Lowering, run: Run, boundary: Boundary) -> str:
        return rows_where(ctx, self.input, table.of_input(self.input), counts(boundary.at))

    def work(self, expected: Expected) -> Work:
        ctx, i, flow = expected.ctx, self.input, expected.flow(self.input)
        share, width = expected.shares[i], expected.width(i) + len(INTERVAL)
        rows, files, partials = (flow.came, 1.0, flow.pane)
        if expected.from_nothing:
            leave_together = flow.stored < flow.by_pane
            rows, files, partials = flow.window, flow.panes, flow.set if leave_together else flow.by_pane
        read = flow.read if expected.from_nothing else flow.arriving
        yield from self.scan.reading_work(expected, read, files, flow.columns + TIME_COLUMNS * flow.mixed, rows)
        reached, new_values = self.scan.reached(expected, rows), partials * share * width
        yield set_node(ctx, i), {"times": reached * flow.mixed, "group": reached * width, "made": new_values,
                                 "keep": new_values, "state_write": new_values, "statements": 2}
        if not expected.from_nothing and not windows_read_panes(ctx):
            read_share = share if dealt(ctx, i) else 1.0
            yield set_node(ctx, i), {"state_read": flow.stored * read_share * width,
                                     "files": expected.files(flow.panes * read_share)}
        if ctx.plan.keeps_answer:      # input_{i} is a table; `retract` also looks at what leaves
            leaving = flow.pane if ctx.plan.keeping == "retract" and flow.left and not expected.from_nothing else 0.0
            yield set_node(ctx, i), {"keep": (flow.stored + leaving) * share * width}
        for level in self.levels:
            yield from level.work(expected)

    def words(self, ctx: Lowering) -> str:
        return set_words(ctx, self.input, [part.state(ctx).name for part in self.kept(ctx)])


@dataclass(frozen=True)
class PaneSet:
    """State of input `input`: a row for each combination of its attributes and interval."""

    input: int

    def state(self, ctx: Lowering) -> StateSet:
        return StateSet("panes", self.input, stored_columns(ctx, self.input) + INTERVAL)

    def source(self, ctx: Lowering) -> Source:
        state = self.state(ctx)
        return Source(table.kept(state.name), "state", state.name, columns=state.columns,
                      dealt=dealt(ctx, self.input))

    def rows(self, ctx: Lowering, since: int) -> str:
        """What state holds for this task, as working rows."""
        if ctx.plan.levels:
            return _level_rows(ctx, None, since)
        columns, kept = ", ".join(working(ctx, self.input)), table.kept(self.state(ctx).name)
        return f"SELECT {columns}, _in, _out FROM {kept} WHERE _out >= {since}{own_keys(ctx, self.input)}"

    def write(self, ctx: Lowering, run: Run) -> Write:
        state, moved, last = self.state(ctx), earlier(ctx, None), run.state_as_of
        rows = f"{table.new(state.name)} WHERE _out >= {last + moved}{run.own_arrivals}"
        write = append(ctx, state, rows, last, moved)
        return replace(write, every_part=True) if run.share else write

    def merge_files(self, ctx: Lowering, files: str, boundary: int, since: int) -> str:
        return _merged_panes(ctx, self.state(ctx), files, boundary)

    def stored_rows(self, expected: Expected) -> float:
        if expected.ctx.plan.levels:
            return _stored_instances(expected, None)
        return expected.flow(self.input).stored


@dataclass(frozen=True)
class Level:
    """Coarser panes of a query with several windows: `Level(0, Window(60_000_000, 60_000_000))` holds minutes and is
    its first level, of `Window(60_000_000, 20_000_000)` a minute begins every 20 seconds.
    """

    place: int
    window: Window

    def state(self, ctx: Lowering) -> StateSet:
        return StateSet(f"level{self.place}_", 0, stored_columns(ctx, 0) + INTERVAL)

    def source(self, ctx: Lowering) -> Source:
        state = self.state(ctx)
        return Source(table.kept(state.name), "state", state.name, columns=state.columns, dealt=dealt(ctx, 0))

    def setup(self, ctx: Lowering, run: Run) -> tuple[Definition, ...]:
        """What this run adds to it; all of it."""
        columns, new = ", ".join([*names(ctx, 0), "_in", "_out"]), table.new(self.state(ctx).name)
        older = "" if run.from_nothing else f" UNION ALL {_level_rows(ctx, self.window, run.boundaries[0])}"
        return (Definition(new, self._new(ctx, run), is_table=True),
                Definition(table.of_level(0, self.place), f"SELECT {columns} FROM {new}{older}",
                           len(run.boundaries) > 1))

    def write(self, ctx: Lowering, run: Run) -> Write:
        state, moved = self.state(ctx), earlier(ctx, self.window)
        return append(ctx, state, f"{table.new(state.name)} WHERE _out >= {run.last + moved}", run.last, moved)

    def merge_files(self, ctx: Lowering, files: str, boundary: int, since: int) -> str:
        return _merged_panes(ctx, self.state(ctx), files, boundary)

    def stored_rows(self, expected: Expected) -> float:
        return _stored_instances(expected, self.window)

    def work(self, expected: Expected) -> Work:
        """An instance is merged from the level below when it ends."""
        ctx, query = expected.ctx, expected.ctx.shape.query
        below = parent(ctx.plan.kept_windows, self.window)
        often = (longest(query) if expected.from_nothing else step(query)) / self.window.slide
        rows = spanning_rows(expected, below, self.window.range)
        yield from reading_instances(expected, below, often, instance_rows(expected, below, self.window.range))
        width = (expected.width(0) + len(INTERVAL)) * often * expected.shares[0]
        new_values = _partials(expected, self.window) * width
        yield set_node(ctx, 0), {"group": rows * width, "made": new_values, "keep": new_values,
                                 "state_write": new_values, "statements": 1}

    def _new(self, ctx: Lowering, run: Run) -> str:
        """Instances that end now, and what came too late for those that have ended.

        Where none ends, only rows of this run are looked at. The few that end are picked one by one: every instance of
        each partial would be many times the rows.
        """
        length, hop, far = self.window.range, self.window.slide, longest(ctx.shape.query)
        ends = [] if run.from_nothing else range((run.previous // hop + 1) * hop, run.last + 1, hop)
        level, listed = parent(ctx.plan.kept_windows, self.window), ", ".join(names(ctx, 0))
        below = _view(ctx, level) if run.from_nothing or ends else table.new(_set_name(ctx, level))
        size = step(ctx.shape.query) if level is None else level.range
        of_ended = f"SELECT {listed}, greatest(_in, _u + {length}) AS _in, _u + {far} AS _out FROM "
        ended = f"_u + {length} <= {run.last} AND (_u + {length} > {run.previous} OR _in > {run.previous})"
        begun = self._begun(ctx, below, level)
        if not self._tiled_by(level) and not run.from_nothing and len(ends) <= (length - size) // hop + 1:
            late = f"{below} WHERE _in > {run.previous} AND _out <= {run.previous + far - size}"
            begun = " UNION ALL ".join([*(self._ending(ctx, below, level, end) for end in ends),
                                        self._begun(ctx, f"(SELECT * FROM {late}) AS late", level)])
        return grouped(ctx, 0, f"({of_ended}({begun}) AS q WHERE {ended}) AS q", ("_in", "_out"))

    def _tiled_by(self, level: Window | None) -> bool:
        """Whether each partial of the level belongs to one instance."""
        return self.window.tumbling and (level is None or level.tumbling)

    def _ending(self, ctx: Lowering, below: str, level: Window | None, end: int) -> str:
        """Partials out of `below` that make the instance that ends then."""
        length, far = self.window.range, longest(ctx.shape.query)
        size = step(ctx.shape.query) if level is None else level.range
        spans = spanning(level, f"_out - {far + end - length}", length)
        return (f"SELECT {', '.join(names(ctx, 0))}, _in, CAST({end - length} AS BIGINT) AS _u FROM {below} "
                f"WHERE _out >= {far + end - length} AND _out <= {far + end - size}{spans}")

    def _begun(self, ctx: Lowering, below: str, level: Window | None) -> str:
        """Partials out of `below`, each with the begin `_u` of every instance that it makes: that holds it whole."""
        length, hop, far = self.window.range, self.window.slide, longest(ctx.shape.query)
        columns, size = ", ".join(names(ctx, 0)), step(ctx.shape.query) if level is None else level.range
        if self._tiled_by(level):
            begin = d.div(f"_out - {far}", length, ctx.dialect)
            return f"SELECT {columns}, _in, {begin} * {length} AS _u FROM {below}"
        holding = ", ".join(f"({k * hop})" for k in range((length - size) // hop + 1))
        first_end = f"{d.div(f'_out - {far} + {size + hop - 1}', hop, ctx.dialect)} * {hop}"
        begin = f"{first_end} + _later - {length}"
        spans = spanning(level, f"_out - {far} - ({begin})", length)
        return (f"SELECT {columns}, _in, {begin} AS _u FROM {below} JOIN (VALUES {holding}) AS holding(_later) "
                f"ON {begin} <= _out - {far}{spans}")


def windows_read_panes(ctx: Lowering) -> bool:
    """Whether each of several windows reads its own panes of state (recompute.py), so that no boundary reads all."""
    return bool(ctx.shape.query.windows) and len(ctx.plan.digits) == 1 and ctx.plan.keeping == "recompute"


def view_of(ctx: Lowering, window: NamedWindow) -> str:
    """What a window is merged from, without any level its input's view."""
    return _view(ctx, source(ctx.plan.kept_windows, window))


def level_of(ctx: Lowering, view: str) -> Window | None:
    """The level behind a view; None: the panes."""
    return next((level for level in ctx.plan.kept_windows if _view(ctx, level) == view), None)


def earlier(ctx: Lowering, level: Window | None) -> int:
    """How much earlier than its working `_out` a row leaves state."""
    if not ctx.plan.levels:
        return 0
    return longest(ctx.shape.query) - keeps(ctx.shape.query, ctx.plan.kept_windows)[level]


def spanning(level: Window | None, begin: str, size: int | str) -> str:
    """The end of a condition that leaves, of overlapping instances within a window of this size, as many as reach from
    end to end. `begin`: where an instance begins in the window.
    """
    if level is None or level.tumbling:
        return ""
    return f" AND (({begin}) % {stride(level)} = 0 OR {begin} = {size} - {level.range})"


def spanning_rows(expected: Expected, level: Window | None, size: int) -> float:
    """Partials of the instances of a level, or of the panes, that make a window of this size."""
    if level is None or level.tumbling:
        return instance_rows(expected, level, size)
    return _partials(expected, level) * (1 + ceil((size - level.range) / stride(level)))


def instance_rows(expected: Expected, level: Window | None, size: int) -> float:
    """Partials that a range of this size holds of a level, or of panes."""
    pane = step(expected.ctx.shape.query)
    fine = level or Window(pane, pane)
    return _partials(expected, level) * (1 + (size - fine.range) / fine.slide)


def reading_instances(expected: Expected, level: Window | None, often: float, rows: float) -> Work:
    """Partials of a range out of state, `often` times a boundary: of overlapping instances all, as those that reach
    from end to end stand in files between the others.

    Their own columns, and the times of all that stand in the same files, of which each boundary or instance adds one.
    """
    ctx, query, node = expected.ctx, expected.ctx.shape.query, set_node(expected.ctx, 0)
    if expected.from_nothing:
        yield node, {"look": often * rows * expected.shares[0]}
        return
    hop, needed = level.slide if level else step(query), keeps(query, ctx.plan.kept_windows)[level]
    looked_through = TIME_COLUMNS * instance_rows(expected, level, needed)
    sorted_out = LOOKS * rows if level and not level.tumbling else 0.0
    yield node, {"state_read": often * expected.shares[0] * (rows * expected.width(0) + looked_through),
                 "files": often * expected.files(needed / hop * expected.shares[0]),
                 "look": often * expected.shares[0] * sorted_out}


def _view(ctx: Lowering, level: Window | None) -> str:
    """All partials of a level, or of panes."""
    return table.of_input(0) if level is None else table.of_level(0, ctx.plan.kept_windows.index(level))


def _set_name(ctx: Lowering, level: Window | None) -> str:
    state_set = PaneSet(0) if level is None else Level(ctx.plan.kept_windows.index(level), level)
    return state_set.state(ctx).name


def _level_rows(ctx: Lowering, level: Window | None, since: int) -> str:
    """What state holds of a level, as working rows."""
    moved = earlier(ctx, level)
    ends = f"_out + {moved} AS _out" if moved else "_out"
    kept = table.kept(_set_name(ctx, level))
    return f"SELECT {', '.join(working(ctx, 0))}, _in, {ends} FROM {kept} WHERE _out >= {since}"


def _merged_panes(ctx: Lowering, state: StateSet, files: str, boundary: int) -> str:
    assert state.input is not None
    return merged_file(ctx, state, grouped(ctx, state.input, live_rows(state, files, boundary), ("_in", "_out")))


def _stored_instances(expected: Expected, level: Window | None) -> float:
    query, levels = expected.ctx.shape.query, expected.ctx.plan.kept_windows
    return instance_rows(expected, level, keeps(query, levels)[level])


def _partials(expected: Expected, level: Window | None) -> float:
    """Of one instance of a level, or of one pane."""
    flow, query = expected.flow(0), expected.ctx.shape.query
    if level is None:
        return flow.pane
    combinations = expected.sizes.statistics.inputs[0].combinations if expected.ctx.shape.attributes[0] else 1.0
    return distinct(combinations, flow.came * level.range / step(query))
