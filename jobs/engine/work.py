"""One task's work on one query: run a program's statements over files, hand over the answer's partials, write state
files; commits nothing.

Pure but for the files it reads and adds: the same order gives the same rows, in a Spark task or in this process.
"""
from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from jobs.engine import kernel
from jobs.engine.partials import Collected, DividedPartials, Handover
from jobs.storage import places, tables
from optimizer.errors import first_line
from optimizer.expression import dialect as d
from optimizer.plan.program import Codes, Program, Source

Made = TypeVar("Made")


@dataclass(frozen=True)
class TimedFiles:
    """Files of which every row's times can be taken for these: nothing that is asked of them has another answer."""

    paths: tuple[str, ...]
    boundary: int
    stamp: int


@dataclass(frozen=True)
class TaskOrder:
    """What one task is to do for one query: statements, and the files that they read.

    `TaskOrder("top", 0, 2, narrow, wide, {"files_0": ("/data/shop/streams/views/a.parquet",)}, {}, "b7")` is the
    first of two parts of the query `top` in batch 7. `narrow` computes sums in 64 bits and is tried first, `wide` in
    128. `files` are absolute paths by source name, in a store with how it is reached (see jobs.storage.places);
    `folders` where each state set is kept.

    Of `certain` files times need not be read. `received` is what tasks sent before, by source. `rows_to` are the
    folders in which the task itself writes the answers of row queries, by number; `owner` is their column that says
    whose row it is, where they are of several queries. `handover` says where partials are left that are many; None:
    they are handed over in memory. At `until`, seconds since 1970 by the task's clock, it is stopped.
    """

    query: str
    part: int
    parts: int
    narrow: Program
    wide: Program
    files: Mapping[str, tuple[str, ...]]
    folders: Mapping[str, str]
    label: str
    rows_to: Mapping[int, str] = field(default_factory=dict)
    owner: str | None = None
    certain: Mapping[str, tuple[TimedFiles, ...]] = field(default_factory=dict)
    received: Mapping[str, tuple[bytes, ...]] = field(default_factory=dict)
    handover: Handover | None = None
    until: float | None = None

    @property
    def is_late(self) -> bool:
        return self.until is not None and time.time() > self.until

    @property
    def shuffled(self) -> bool:
        """Whether what it sends goes to the tasks of its keys, not to all."""
        return any(f.parted for f in self.narrow.before)


@dataclass(frozen=True)
class TaskResult:
    """What one task hands to the driver: partials of the answer, and the files that it wrote, by state set.

    `TaskResult("top", 0, partials, (("totals0", file),), seconds=0.2)` has an answer, and `TaskResult("top", 0,
    failed="division by zero")` none: `failed` is the query's own error, not the task's. `exhausted` says what did not
    fit into the task's memory. `further` are answers of other shapes, by number; rows of row queries are in files
    (`rows`), by number as well. Partials that are many are `divided`, by number; or merged already, by a task that has
    whole groups: `merged` is what that gave. Where time was up, `done` is the share of its work that was done by then,
    and there is nothing else.
    """

    query: str
    part: int
    partials: pa.Table | None = None
    written: tuple[tuple[str, tables.File], ...] = ()
    failed: str | None = None
    exhausted: str | None = None
    seconds: float = 0.0
    read_rows: Mapping[str, int] = field(default_factory=dict)
    further: Mapping[int, pa.Table] = field(default_factory=dict)
    rows: Mapping[int, tuple[tables.File, ...]] = field(default_factory=dict)
    divided: Mapping[int, tuple[DividedPartials, ...]] = field(default_factory=dict)
    merged: tuple[Any, ...] = ()
    done: float = 1.0

    def answer(self, number: int) -> pa.Table | None:
        return self.further.get(number) if number else self.partials

    def row_count(self, number: int) -> int:
        """Of an answer's partials, wherever they are."""
        rows = self.answer(number)
        in_memory = 0 if rows is None else rows.num_rows
        return in_memory + sum(file.rows for file in self.divided.get(number, ()))


@dataclass(frozen=True)
class Sent:
    """What one task sends before an exchange: partials of a source, for the task with number `part` or for all (None).

    `failed` or `exhausted` say why there are none; one that `is_late` was stopped. `seconds` are what the sender took,
    for all that it sent.
    """

    query: str
    source: str = ""
    part: int | None = None
    rows: bytes = b""
    failed: str | None = None
    exhausted: str | None = None
    seconds: float = 0.0
    is_late: bool = False


class _TimeIsUp(Exception):
    """Ends an order whose time is up, after this share of its work."""

    def __init__(self, done: float) -> None:
        super().__init__(f"{done:.2f} of the work is done")
        self.done = done


class _Progress:
    """How far an order has got; the share of its work is 0 until its first step is done."""

    def __init__(self, started: float, steps: int) -> None:
        self.done = 0.0
        self._started, self._steps = started, steps
        self._began_steps = started

    def begin_steps(self) -> None:
        self._began_steps = time.perf_counter()

    def finish_step(self, number: int) -> None:
        stepping, share = time.perf_counter() - self._began_steps, number / self._steps
        self.done = _done(self._began_steps - self._started, stepping, share)


def perform(order: TaskOrder, sent: Sequence[Sent] = ()) -> TaskResult:
    """An order's answer and state; where its data raise an error, a result that says so.

    Its seconds are its own and, of those who sent rows, the slowest one's: it had to wait for them.
    """
    started = time.perf_counter() - max((s.seconds for s in sent if s.query == order.query), default=0.0)
    broken = next((s for s in sent if s.failed or s.exhausted), None)
    if broken:
        return TaskResult(order.query, order.part, failed=broken.failed, exhausted=broken.exhausted)
    if order.is_late or any(s.is_late for s in sent if s.query == order.query):
        return TaskResult(order.query, order.part, done=0.0)
    order = _with_received(order, sent)
    try:
        return replace(_narrow_or_wide(order, _run), seconds=time.perf_counter() - started)
    except kernel.EXHAUSTED as error:
        return TaskResult(order.query, order.part, exhausted=first_line(error), seconds=time.perf_counter() - started)
    except kernel.Error as error:
        return TaskResult(order.query, order.part, failed=_message_of_data_error(error),
                          seconds=time.perf_counter() - started)
    except _TimeIsUp as stop:
        return TaskResult(order.query, order.part, done=stop.done, seconds=time.perf_counter() - started)


def prepare(order: TaskOrder) -> list[Sent]:
    """This task's share of what crosses the exchange."""
    started = time.perf_counter()
    try:
        sent = _narrow_or_wide(order, _send)
        return [replace(one, seconds=time.perf_counter() - started) for one in sent]
    except kernel.EXHAUSTED as error:
        return [Sent(order.query, exhausted=first_line(error))]
    except kernel.Error as error:
        return [Sent(order.query, failed=_message_of_data_error(error))]
    except _TimeIsUp:
        return [Sent(order.query, is_late=True)]


@dataclass(frozen=True)
class Joining:
    """Performs an order with what was sent to all."""

    sent: tuple[Sent, ...]

    def __call__(self, order: TaskOrder) -> TaskResult:
        return perform(order, [s for s in self.sent if s.query == order.query])


def sending(placed: tuple[int, TaskOrder]) -> list[tuple[int, bytes]]:
    """What the order at a position sends, by the position it goes to: a query's orders stand together, in the order of
    their parts.
    """
    position, order = placed
    first = position - order.part      # of the query's orders
    messages = []
    for sent in prepare(order):
        receivers = range(order.parts) if sent.part is None else (sent.part,)
        messages += [(first + to, pickle.dumps(sent)) for to in receivers]
    return messages


@dataclass(frozen=True)
class Receiving:
    """Performs the order of a position with what reached it."""

    orders: tuple[TaskOrder, ...]

    def __call__(self, to: int, payloads: list[bytes]) -> TaskResult:
        return perform(self.orders[to], [pickle.loads(payload) for payload in payloads])


def _narrow_or_wide(order: TaskOrder, run: Callable[[TaskOrder, Program], Made]) -> Made:
    """By the narrow program; where that overflows or fails, by the wide one, whose outcome counts."""
    try:
        return run(order, order.narrow)
    except kernel.Error as error:
        if not kernel.about_data(error):
            kernel.discard()
            raise
        if order.narrow == order.wide:
            raise
    try:
        return run(order, order.wide)
    except kernel.Error as error:
        if not kernel.about_data(error):
            kernel.discard()
        raise


def _message_of_data_error(error: kernel.Error) -> str:
    """Of an error that a row brought about; any other ends the batch."""
    if not kernel.about_data(error):
        raise error
    return first_line(error)


def _send(order: TaskOrder, program: Program) -> list[Sent]:
    con = kernel.shared()
    try:
        with kernel.interrupted_at(con, order.until):
            return _fragments(con, order, program)
    except kernel.INTERRUPTED as stop:
        raise _TimeIsUp(0.0) from stop
    finally:
        con.close()


def _fragments(con: kernel.Connection, order: TaskOrder, program: Program) -> list[Sent]:
    sent = []
    for fragment in program.before:
        source = fragment.source
        con.execute(f"CREATE TEMP VIEW {source.name} AS {_source(con, order, source)}")
        rows = kernel.table(con, fragment.sql)
        shares: list[tuple[int | None, pa.Table]] = [(None, rows)]
        if fragment.parted:
            shares = [(k, rows.filter(pc.equal(rows["_part"], k)).drop_columns(["_part"]))
                      for k in range(order.parts)]
        sent += [Sent(order.query, fragment.name, k, packed(share)) for k, share in shares if share.num_rows]
    return sent


def _with_received(order: TaskOrder, sent: Sequence[Sent]) -> TaskOrder:
    """The order with what was sent to it, by source."""
    to_it = [s for s in sent if s.query == order.query and s.part in (None, order.part)]
    received: dict[str, tuple[bytes, ...]] = {}
    for s in to_it:
        received[s.source] = (*received.get(s.source, ()), s.rows)
    return replace(order, received=received) if to_it else order


def packed(rows: pa.Table) -> bytes:
    """As rows travel between tasks."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def _run(order: TaskOrder, program: Program) -> TaskResult:
    progress, con = _Progress(time.perf_counter(), len(program.steps)), kernel.shared()
    try:
        with kernel.interrupted_at(con, order.until):
            return _statements(con, order, program, progress)
    except kernel.INTERRUPTED as stop:
        raise _TimeIsUp(progress.done) from stop
    finally:
        con.close()


def _statements(con: kernel.Connection, order: TaskOrder, program: Program, progress: _Progress) -> TaskResult:
    for source in program.sources:
        received = order.received.get(source.name)
        if received:
            rows = pa.concat_tables([pa.ipc.open_stream(packed_rows).read_all() for packed_rows in received])
            con.register(source.name, rows)
        else:
            con.execute(f"CREATE TEMP VIEW {source.name} AS {_source(con, order, source)}")
    _define(con, program.setup)
    _code(con, program.codes)
    with ExitStack() as collecting:
        selects, answers = _answer(con, order, program, collecting, progress)
        written, label = [], f"{order.label}-{order.part}"
        row_files = {number: tuple(_write_rows(con, order, number, of_number, label))
                     for number, of_number in selects.items()}
        for write in program.writes:
            if write.every_part or order.part == 0:
                files = write_file(con, write.sql, order.folders[write.set], label)
                written += [(write.set, file) for file in files]
    return replace(_result(order, answers, written), rows=row_files)


def _write_rows(con: kernel.Connection, order: TaskOrder, number: int, selects: Sequence[str],
                label: str) -> list[tables.File]:
    """The rows of all boundaries as one file: they are made on the way into it."""
    owner = f"{order.owner}, " if order.owner else ""
    sql = (f"SELECT {owner}{d.from_micros('_t', 'duckdb')} AS boundary, * EXCLUDE ({owner}_t) "
           f"FROM ({' UNION ALL '.join(selects)}) AS q")
    return write_file(con, sql, order.rows_to[number], label)


def _answer(con: kernel.Connection, order: TaskOrder, program: Program, collecting: ExitStack,
            progress: _Progress) -> tuple[dict[int, list[str]], dict[int, Collected]]:
    """What is asked for the rows of row queries, or the partials of each answer, by number."""
    selects, answers = dict[int, list[str]](), dict[int, Collected]()
    progress.begin_steps()
    for number, step in enumerate(program.steps, 1):
        if order.is_late:      # between two statements nothing was there to interrupt
            raise _TimeIsUp(progress.done)
        _define(con, step.define)
        if order.rows_to:
            selects.setdefault(step.number, []).append(f"({step.answer})")
        else:
            if step.number not in answers:
                answers[step.number] = collecting.enter_context(Collected(order.handover, step.number))
            answers[step.number].add(kernel.table(con, step.answer))
        for name in step.drop:
            con.execute(f"DROP TABLE {name}")
        progress.finish_step(number)
    return selects, answers


def _done(setup: float, stepping: float, steps: float) -> float:
    """The share of an order's seconds that have passed, when this share of its steps is done.

    What is read for all boundaries before the first one is less for fewer of them.
    """
    return (setup + stepping) / (setup + stepping / steps) if stepping else steps


def _result(order: TaskOrder, answers: Mapping[int, Collected],
            written: list[tuple[str, tables.File]]) -> TaskResult:
    """Where the task has whole groups, its files are merged here."""
    tables_by_number = {number: rows for number, each in answers.items() if (rows := each.in_memory()) is not None}
    divided = {number: (each.divided,) for number, each in answers.items() if each.divided is not None}
    merged: tuple[Any, ...] = ()
    if order.handover is not None and order.handover.merge_here is not None:
        for file, in divided.values():
            merged += order.handover.merge_here(file)
            places.delete(file.path)
        divided = {}
    return TaskResult(order.query, order.part, tables_by_number.pop(0, None), tuple(written),
                      further=tables_by_number, divided=divided, merged=merged)


def _define(con: kernel.Connection, relations: tuple[tuple[str, str, bool], ...]) -> None:
    for name, sql, materialised in relations:
        con.execute(f"CREATE TEMP {'TABLE' if materialised else 'VIEW'} {name} AS {sql}")


def _code(con: kernel.Connection, codes: Codes | None) -> None:
    """Strings become numbers."""
    if codes is not None:
        for name, values in codes.types:
            con.execute(f"CREATE TEMP TYPE {name} AS ENUM ({values})")
        _define(con, codes.tables)
        for name in codes.drop:
            con.execute(f"DROP TABLE {name}")


def _source(con: kernel.Connection, order: TaskOrder, source: Source) -> str:
    return relation(con, source, order.files.get(source.name, ()), order.certain.get(source.name, ()))


def relation(con: kernel.Connection, source: Source, files: tuple[str, ...],
             certain: tuple[TimedFiles, ...] = ()) -> str:
    """The SQL of a source: its files, or an empty relation of its columns."""
    if not files and not certain:
        nulls = [f"CAST(NULL AS {d.name(kind, 'duckdb')}) AS {d.identifier(name)}" for name, kind in source.columns]
        return f"SELECT {', '.join(nulls) or '1 AS _nothing'} WHERE FALSE"
    columns = ", ".join(d.identifier(name) for name, _ in source.columns) if certain else "*"
    selects = [f"SELECT {columns} FROM read_parquet({kernel.files(con, files)})"] if files else []
    for timed in certain:
        selects.append(f"SELECT {_columns_with_times(source, timed)} "
                       f"FROM read_parquet({kernel.files(con, timed.paths)})")
    return " UNION ALL ".join(selects)


def _columns_with_times(source: Source, timed: TimedFiles) -> str:
    """A source's columns with times known beforehand: two columns less to read, to round and to compare."""
    times = {source.stamp: d.instant(timed.stamp, "duckdb"), "_boundary": d.instant(timed.boundary, "duckdb")}
    names = [(name, d.identifier(name)) for name, _ in source.columns]
    return ", ".join(f"{times[name]} AS {identifier}" if name in times else identifier for name, identifier in names)


def write_file(con: kernel.Connection, sql: str, folder: str, label: str) -> list[tables.File]:
    """Writes a query's rows as one file, none for no rows.

    The name is unique: a task may run twice, and only what the driver commits exists.
    """
    name = tables.unique(label)
    with places.draft(folder) as here:
        path = os.path.join(here, name)
        count = con.execute(f"COPY ({sql}) TO {d.string(path)} (FORMAT parquet, COMPRESSION snappy)").fetchone()
        if not count or not count[0]:
            os.unlink(path)
            return []
        return [tables.describe(here, name)]
