"""The scan of an input: its rows that pass its selections, read from files, or sent by the tasks that read them.

`input_0` is these rows where the join reads them as they are. An input that aggregates early is made from them: at each
boundary anew (`EarlyAggregate`, below), by pane (panes.py) or as running totals (running.py).
"""
from __future__ import annotations

from dataclasses import dataclass, replace

from optimizer.expression import dialect as d
from optimizer.expression.types import BIGINT, TIMESTAMP
from optimizer.plan import table
from optimizer.plan.division import by_key, dealt, divided, is_exchanged
from optimizer.plan.lowering import Lowering
from optimizer.plan.membership import INTERVAL, Counting, Range, inside, separately
from optimizer.plan.operators.operator import (
    Boundary,
    Expected,
    InputOperator,
    Operator,
    Run,
    Work,
    counts,
    scan_node,
    set_node,
)
from optimizer.plan.operators.sets import grouped, raw, rows_where, set_words, stored_columns, working
from optimizer.plan.program import Columns, Definition, Fragment, Source
from optimizer.plan.wording import list_as_written, window_in_words
from optimizer.query.shape import raw_columns
from optimizer.query.windows import ALWAYS

INTERVAL_COLUMNS = 3      # of a row in a temporary table beside its own: _in, _out, _known
TIME_COLUMNS = 2          # more to read where a file's bounds do not prove its rows' times: event time and _boundary


@dataclass(frozen=True)
class Scan(InputOperator):
    """Input `input`'s rows as partials of count 1, of a relation all, of a stream those in the ranges that are needed.
    """

    input: int

    def source(self, ctx: Lowering, run: Run) -> Source:
        """The stored rows that it reads."""
        i, declared = self.input, ctx.shape.query.inputs[self.input]
        columns = read_columns(ctx, i)
        if declared.window is None:
            return Source(table.files(i), "relation", declared.source, columns=columns)
        ranges = (inside(declared.window, run.boundaries[0]),) if self.is_exact(ctx, run) else _needed(ctx, i, run)
        source = Source(table.files(i), "stream", declared.source, ranges, columns, dealt(ctx, i))
        if declared.event_time in {column.name for column in raw_columns(ctx.shape, i)}:
            return source
        counting = None if self.is_exact(ctx, run) else Counting(declared.window, ctx.shape.query.every)
        return replace(source, stamp=declared.event_time, counting=counting)

    def is_exact(self, ctx: Lowering, run: Run) -> bool:
        """Whether input_{i} is just the window at the only boundary, so that no row needs to say when it counts."""
        if ctx.window(self.input) is None or not is_read_anew(ctx, self.input):
            return False
        return len(run.boundaries) == 1 and ctx.plan.keeping == "recompute" and not ctx.shape.query.windows

    def sources(self, ctx: Lowering, run: Run) -> tuple[Source, ...]:
        source = self.source(ctx, run)
        if not is_exchanged(ctx, self.input):
            return (source,)
        columns = self._sent_columns(ctx, run)
        return (Source(table.received(self.input), "exchange", source.of, columns=columns),)

    def rows(self, ctx: Lowering, run: Run) -> str:
        """A SELECT of its rows; of a stream whose rows cross an exchange, of what the tasks sent."""
        i = self.input
        if is_exchanged(ctx, i):
            columns = ", ".join([*working(ctx, i), *(name for name, _ in self._times(ctx, run))])
            return f"SELECT {columns} FROM {table.received(i)}"
        return self._read(ctx, run)

    def fragments(self, ctx: Lowering, run: Run) -> tuple[Fragment, ...]:
        """What each task sends of the files that it reads: partials, if the input aggregates early, else rows."""
        i = self.input
        if not is_exchanged(ctx, i):
            return ()
        whole, columns = replace(ctx, parts=1, part=0), self._sent_columns(ctx, run)
        rows = self._read(whole, run)
        times = tuple(name for name, _ in self._times(ctx, run))
        sent = grouped(whole, i, f"({rows}) AS q", times) if ctx.early(i) else rows
        selected = ", ".join(f"CAST({name} AS {d.name(kind, ctx.dialect)}) AS {name}" for name, kind in columns)
        part = ""
        if by_key(ctx):
            common = ctx.shape.common_key()
            assert common is not None
            part = f", {d.part_of([common[i].name], ctx.parts, ctx.dialect)} AS _part"
        sql = f"SELECT {selected}{part} FROM ({sent}) AS q"
        return (Fragment(table.received(i), replace(self.source(ctx, run), dealt=True), sql, columns, bool(part)),)

    def setup(self, ctx: Lowering, run: Run) -> tuple[Definition, ...]:
        return (Definition(table.of_input(self.input), self.rows(ctx, run), is_table=not self.is_exact(ctx, run)),)

    def members(self, ctx: Lowering, run: Run, boundary: Boundary) -> str:
        where = "TRUE" if self.is_exact(ctx, run) else counts(boundary.at)
        return rows_where(ctx, self.input, table.of_input(self.input), where)

    def work(self, expected: Expected) -> Work:
        """Its rows, read each time. Where no bounds prove when they count, a table of them with their intervals."""
        ctx, i, flow = expected.ctx, self.input, expected.flow(self.input)
        if ctx.window(i) is None:
            yield from self.relation_work(expected)
            yield scan_node(ctx, i), {"keep": flow.window * expected.shares[i] * (expected.width(i) + len(INTERVAL))}
            return
        returns_rows = ctx.shape.query.returns_rows
        exact = ctx.plan.keeping == "recompute" and not returns_rows and not ctx.shape.query.windows
        mixed = flow.mixed or returns_rows
        columns = flow.columns + (flow.timed if exact else TIME_COLUMNS * mixed)
        leaving = 1.0 if ctx.plan.keeping == "retract" and flow.left and not expected.from_nothing else 0.0
        passing = flow.window + leaving * flow.left
        yield from self.reading_work(expected, flow.read + leaving * flow.leaving, flow.panes + leaving, columns,
                                     passing)
        if not exact:
            reached = self.reached(expected, passing)
            width = expected.width(i) + INTERVAL_COLUMNS
            yield scan_node(ctx, i), {"times": reached * mixed, "keep": reached * width, "statements": 1}

    def relation_work(self, expected: Expected) -> Work:
        flow = expected.flow(self.input)
        yield scan_node(expected.ctx, self.input), {
            "scan": flow.read * max(flow.columns, 1),
            "files": 1,
            "statements": 1
        }

    def reading_work(self, expected: Expected, rows: float, files: float, columns: float, passing: float) -> Work:
        """`rows` of the stream read from so many files; of the `passing` ones what crosses an exchange is sent."""
        ctx, i = expected.ctx, self.input
        share = 1 / ctx.parts if is_exchanged(ctx, i) or dealt(ctx, i) else 1.0
        read = {"scan": rows * max(columns, 1) * share, "files": max(files * share, 1.0), "statements": 1}
        yield scan_node(ctx, i), read
        if not is_exchanged(ctx, i):
            return
        sent = self._sent_rows(expected, passing)
        if ctx.early(i):
            width = expected.width(i)
            yield set_node(ctx, i), {"group": passing * share * width, "made": sent * share * width}
        yield scan_node(ctx, i), {"exchange": sent * expected.shares[i], "statements": 1}

    def reached(self, expected: Expected, passing: float) -> float:
        """Rows, or partials that tasks have sent, that this task has of `passing` rows."""
        sent = self._sent_rows(expected, passing) if is_exchanged(expected.ctx, self.input) else passing
        return sent * expected.shares[self.input]

    def words(self, ctx: Lowering) -> str:
        query, declared = ctx.shape.query, ctx.shape.query.inputs[self.input]
        selections = list_as_written(query, ctx.shape.selections[self.input], " and ")
        where = f", where {selections}" if selections else ""
        window = window_in_words(declared.window) if declared.window else "a relation's version at t"
        share = " (divided)" if divided(ctx, self.input) else ""
        return f"Scan {declared.source} as {declared.alias}, {window}{where}{share}"

    def _read(self, ctx: Lowering, run: Run) -> str:
        i = self.input
        if ctx.window(i) is None:
            return raw(ctx, i, table.files(i))
        interval, ranges = not self.is_exact(ctx, run), self.source(ctx, run).ranges
        return " UNION ALL ".join(raw(ctx, i, table.files(i), interval, where) for where in separately(ctx, i, ranges))

    def _times(self, ctx: Lowering, run: Run) -> Columns:
        return () if self.is_exact(ctx, run) else (*INTERVAL, ("_known", BIGINT))

    def _sent_columns(self, ctx: Lowering, run: Run) -> Columns:
        return stored_columns(ctx, self.input) + self._times(ctx, run)

    def _sent_rows(self, expected: Expected, passing: float) -> float:
        """Rows that cross the exchange, or the partials that those who read them make of them."""
        flow = expected.flow(self.input)
        if not expected.ctx.early(self.input):
            return passing
        partials = max(passing / flow.came * flow.pane, flow.set) if flow.came else flow.set
        return min(partials, passing)


@dataclass(frozen=True)
class EarlyAggregate(InputOperator):
    """Partials made from an input's rows, nothing kept: of a stream's window at the boundary, of a relation once a
    run. A run of several boundaries makes a stream's by interval, once for all of them.

    `EarlyAggregate(Scan(1))` is `γ by p.section: COUNT(*)` of the second input.
    """

    scan: Scan

    @property
    def input(self) -> int:      # type: ignore[override]
        return self.scan.input

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.scan,)

    def sources(self, ctx: Lowering, run: Run) -> tuple[Source, ...]:
        return self.scan.sources(ctx, run)

    def fragments(self, ctx: Lowering, run: Run) -> tuple[Fragment, ...]:
        return self.scan.fragments(ctx, run)

    def setup(self, ctx: Lowering, run: Run) -> tuple[Definition, ...]:
        if ctx.window(self.input) is not None and len(run.boundaries) == 1:
            return self.scan.setup(ctx, run)
        rows = f"({self.scan.rows(ctx, run)}) AS q"
        return (Definition(table.of_input(self.input), grouped(ctx, self.input, rows, ("_in", "_out")), is_table=True),)

    def members(self, ctx: Lowering, run: Run, boundary: Boundary) -> str:
        return self.scan.members(ctx, run, boundary)

    def work(self, expected: Expected) -> Work:
        ctx, flow = expected.ctx, expected.flow(self.input)
        if ctx.window(self.input) is not None:
            yield from self.scan.work(expected)
            return
        share_width = expected.shares[self.input] * (expected.width(self.input) + len(INTERVAL))
        yield from self.scan.relation_work(expected)
        yield set_node(ctx, self.input), {"group": flow.window * share_width, "made": flow.set * share_width,
                                          "keep": flow.set * share_width}

    def words(self, ctx: Lowering) -> str:
        return set_words(ctx, self.input)


def read_columns(ctx: Lowering, i: int) -> Columns:
    """The stored columns that the SQL over input i names."""
    declared = ctx.shape.query.inputs[i]
    columns = {column.name: column.type for column in raw_columns(ctx.shape, i)}
    times = {declared.event_time or "": TIMESTAMP, "_boundary": TIMESTAMP} if declared.is_stream else {}
    return tuple((columns | times).items())


def is_read_anew(ctx: Lowering, i: int) -> bool:
    """Whether the window's rows of stream i are read for each batch, as they are or to be aggregated."""
    return not ctx.early(i) or ctx.plan.keeping == "recompute" and ctx.plan.layout == "raw"


def _needed(ctx: Lowering, i: int, run: Run) -> tuple[Range, ...]:
    """Raw rows that the program reads of stream i: no more than what came or leaves where state holds the rest."""
    window, since = ctx.window(i), max(run.previous, 0)
    assert window is not None
    anew = run.from_nothing or ctx.plan.keeping != "retract"      # which asks for what was there before, too
    whole = Range(-ALWAYS, run.last, window.oldest(run.boundaries[0] if anew else since))
    if run.from_nothing or is_read_anew(ctx, i):
        return (whole,)
    came = Range(run.previous, run.last, window.oldest(run.boundaries[0]) if run.share else -ALWAYS)
    if ctx.plan.keeping != "running":
        return (came,)
    entering: tuple[Range, ...] = ()
    if window.kind == "hopping":
        entering = (Range(-ALWAYS, run.last, since // window.slide * window.slide),)
    leaving: tuple[Range, ...] = ()
    if window.kind != "landmark":
        leaving = (Range(-ALWAYS, run.last, window.oldest(since), window.oldest(run.last)),)
    return (came, *entering, *leaving)
