"""Plans run over plain Parquet files, with state carried as the runner carries it: what a task does, and no Delta,
ledger or Spark.
"""
from __future__ import annotations

import os
import shutil
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.batch import alone, large
from jobs.batch.works import Context
from jobs.engine import jvm, kernel
from jobs.engine.partials import Handover
from jobs.engine.reach import Split, dealt, meets, split
from jobs.engine.tasks import Tasks
from jobs.engine.work import Sent, TaskOrder, TaskResult, perform, prepare, write_file
from jobs.storage import tables
from optimizer.plan.division import boundary_runs, may_divide_boundaries, whole_groups
from optimizer.plan.final import published
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import Plan
from optimizer.plan.operators.operator import Run
from optimizer.plan.program import BEGINNING, Program, Source
from optimizer.plan.tree import merge_files, program, program_of_run, state_sets
from optimizer.query.model import Query
from optimizer.query.shape import shape


class Failed(Exception):
    """The query's own failure: a value of its answer cannot be computed."""


@dataclass
class Folder:
    """Stream and relation rows as files, and one plan's state."""

    root: str = field(default_factory=lambda: tempfile.mkdtemp(prefix="forebay-test-"))
    rows: dict[str, list[tables.File]] = field(default_factory=dict)
    state: dict[str, list[tables.File]] = field(default_factory=dict)

    def add(self, source: str, rows: pa.Table) -> None:
        os.makedirs(os.path.join(self.root, source), exist_ok=True)
        self.rows.setdefault(source,
                             []).append(tables.write(os.path.join(self.root, source), rows, tables.unique("rows")))

    def replace(self, source: str, rows: pa.Table) -> None:
        """A relation's new version."""
        self.rows.pop(source, None)
        self.add(source, rows)

    def remove(self) -> None:
        shutil.rmtree(self.root)


def run(query: Query, plan: Plan, folder: Folder, groups: Sequence[tuple[int, ...]], parts: int = 1,
        previous: int = BEGINNING, by_tasks: bool = False) -> dict[int, pa.Table]:
    """The answers at the boundaries, in runs of several boundaries each."""
    answers: dict[int, pa.Table] = {}
    for boundaries in groups:
        answers.update(together(query, plan, folder, boundaries, parts, previous, by_tasks))
        previous = boundaries[-1]
    return answers


def together(query: Query, plan: Plan, folder: Folder, boundaries: tuple[int, ...], parts: int = 1,
             previous: int = BEGINNING, by_tasks: bool = False) -> dict[int, pa.Table]:
    """One run of the tasks for several boundaries, in this process; a failure leaves the state as it was."""
    asked = Ask(query, plan, folder, boundaries, parts, previous, by_tasks)
    return taken(asked, performed(orders(asked)))


@dataclass(frozen=True)
class Ask:
    """What one run is to answer; whoever runs its orders gives the outcomes to `taken`."""

    query: Query
    plan: Plan
    folder: Folder
    boundaries: tuple[int, ...]
    parts: int
    previous: int
    by_tasks: bool = False      # whether tasks merge what they would hand over, however little it is

    def program(self, low: Lowering) -> Program:
        return program(low, self.boundaries, self.previous, _floor(self.query, self.folder, self.previous))

    @property
    def runs(self) -> list[Run]:
        """One for each task, where tasks divide the boundaries: about every other time that they may."""
        if not self._divides_boundaries or not may_divide_boundaries(shape(self.query), self.plan):
            return []
        divided = boundary_runs(dict.fromkeys(self.boundaries, 1.0), 2 if shape(self.query).whole else self.parts)
        return [Run(own, self.previous, share=share) for own, share in divided] if len(divided) > 1 else []

    @property
    def _divides_boundaries(self) -> bool:
        return zlib.crc32(repr((self.boundaries, self.plan.order)).encode()) % 2 == 0

    @property
    def rows_to(self) -> dict[int, str]:
        return {0: os.path.join(self.folder.root, "answers")} if self.query.returns_rows else {}


def orders(asked: Ask) -> list[TaskOrder]:
    if asked.runs:
        return [_order_of_run(asked, number, run) for number, run in enumerate(asked.runs)]
    return [_order(asked, part) for part in range(asked.parts)]


def performed(asked: list[TaskOrder]) -> list[TaskResult]:
    sent: list[Sent] = [s for order in asked if order.narrow.before for s in prepare(order)]
    return [perform(order, sent) for order in asked]


def taken(asked: Ask, outcomes: list[TaskResult]) -> dict[int, pa.Table]:
    """The answers, and the state for the next run."""
    failure = next((o.failed for o in outcomes if o.failed), None)
    if failure:
        raise Failed(failure)
    answers = _answers(asked, outcomes)
    made = asked.program(Lowering(shape(asked.query), asked.plan, parts=asked.parts))
    _keep(made, asked.folder, outcomes, asked.boundaries[-1], asked.plan.invalidation == "insert")
    return answers


def _order(asked: Ask, part: int) -> TaskOrder:
    low = Lowering(shape(asked.query), asked.plan, parts=asked.parts, part=part, complete=_complete(asked),
                   together=_together(asked.boundaries), coded=len(asked.boundaries) % 2 == 0)
    return _order_by(asked, low, part, *(asked.program(replace(low, narrow=n)) for n in (True, False)))


def _order_of_run(asked: Ask, number: int, run: Run) -> TaskOrder:
    low = Lowering(shape(asked.query), asked.plan, complete=_complete(asked), together=_together(run.boundaries),
                   coded=len(run.boundaries) % 2 == 0)
    return _order_by(asked, low, number, *(program_of_run(replace(low, narrow=n), run) for n in (True, False)))


def _order_by(asked: Ask, low: Lowering, part: int, narrow: Program, wide: Program) -> TaskOrder:
    sources = [*(s for s in narrow.sources if s.kind != "exchange"), *(f.source for f in narrow.before)]
    found = {s.name: _files(s, asked.query, asked.folder, low.parts, low.part) for s in sources}
    files, certain = {n: p[0] for n, p in found.items()}, {n: p[1] for n, p in found.items()}
    place = _handover(asked, low) if asked.by_tasks else None
    return TaskOrder("q", part, asked.parts, narrow, wide, files, _folders(asked.folder, narrow),
                     f"b{asked.boundaries[-1]}", asked.rows_to, certain=certain, handover=place)


def _handover(asked: Ask, low: Lowering) -> Handover:
    here = _merge(asked) if whole_groups(low) else None
    return Handover(os.path.join(asked.folder.root, "handover"), 0, alone.groupings(asked.query), here)


def _merge(asked: Ask) -> alone.QueryMerge:
    repeats = tuple((t, t) for t in asked.boundaries)
    return alone.QueryMerge(("q", 0), (os.path.join(asked.folder.root, "answers"),), "b", asked.boundaries, repeats,
                            alone.summed(asked.query), asked.query, asked.plan)


def _together(boundaries: tuple[int, ...]) -> int:
    """How many boundaries one statement may answer, where a plan has such statements: from one to all of them."""
    return 1 + zlib.crc32(repr(boundaries).encode()) % (len(boundaries) + 1)


def _complete(asked: Ask) -> frozenset[tuple[int, str]]:
    """Columns of streams without NULL in all rows, known before some of these rows count."""
    files = {i: asked.folder.rows.get(x.source, []) for i, x in enumerate(asked.query.inputs) if x.is_stream}
    return frozenset((i, name) for i, found in files.items() for name in (found[0].nulls if found else ()) if all(
        f.nulls.get(name) == 0 for f in found))


def jvm_order(asked: Ask) -> jvm.SparkOrder:
    """The same run in Spark SQL, as one part; streams are read from Delta tables."""
    made = asked.program(Lowering(shape(asked.query), asked.plan, "spark", narrow=False))
    streams = {
        s.name: _delta(asked.folder, s.of) for s in made.sources if s.kind == "stream" and s.of in asked.folder.rows
    }
    files = {s.name: _files(s, asked.query, asked.folder, 1, 0)[0] for s in made.sources if s.name not in streams}
    return jvm.SparkOrder("q", made, streams, files, _folders(asked.folder, made), f"b{asked.boundaries[-1]}",
                          asked.rows_to.get(0))


def _delta(folder: Folder, source: str) -> tuple[str, int]:
    """A stream's files as a Delta table, made when it is first asked for."""
    path = os.path.join(folder.root, source)
    if not tables.exists(path):
        files = folder.rows[source]
        tables.create(path, pq.read_schema(os.path.join(path, files[0].path))).commit(files)
    return path, tables.open_table(path).version


def _folders(folder: Folder, made: Program) -> dict[str, str]:
    return {w.set: os.path.join(folder.root, "state", w.set) for w in made.writes}


def _floor(query: Query, folder: Folder, previous: int) -> int:
    times = [
        f.low[i.event_time] for i in query.inputs if i.event_time for f in folder.rows.get(i.source, [])
        if f.rows and f.high["_boundary"] > previous
    ]
    return min(times, default=0)


def _files(source: Source, query: Query, folder: Folder, parts: int, part: int) -> Split:
    if source.kind == "state":
        place, found = os.path.join("state", source.of), folder.state.get(source.of, [])
    else:
        stamp = next((i.event_time for i in query.inputs if i.source == source.of), None) or ""
        place, found = source.of, [
            f for f in folder.rows.get(source.of, [])
            if source.kind == "relation" or any(meets(f, stamp, r) for r in source.ranges)
        ]
    mine = [f for f in (dealt(found, parts)[part] if source.dealt else found) if f.rows]
    return split(mine, source, lambda f: os.path.join(folder.root, place, f.path))


def _answers(asked: Ask, outcomes: list[TaskResult]) -> dict[int, pa.Table]:
    query, con = asked.query, kernel.shared()
    if query.returns_rows:
        rows = _read(asked, [f for o in outcomes for f in o.rows.get(0, ())])
    elif any(o.divided or o.merged for o in outcomes):
        rows = _read(asked, _merged_by_tasks(asked, outcomes))
    else:
        con.register("partials", pa.concat_tables([o.partials for o in outcomes if o.partials is not None]))
        con.register("due", pa.table({"_t": pa.array(asked.boundaries, pa.int64())}))
        try:
            rows = kernel.table(con, published(Lowering(shape(query), asked.plan, narrow=False), asked.boundaries))
        except kernel.Error as error:
            if not kernel.about_data(error):
                raise
            raise Failed(str(error).splitlines()[0]) from error
    return {t: _at(rows, t) if rows is not None else _nothing(query) for t in asked.boundaries}


def _read(asked: Ask, answered: Sequence[tables.File]) -> pa.Table | None:
    files = tuple(os.path.join(asked.folder.root, "answers", f.path) for f in answered)
    return kernel.table(kernel.shared(),
                        f"SELECT * FROM read_parquet({kernel.file_list(files)})") if files else None


def _merged_by_tasks(asked: Ask, outcomes: list[TaskResult]) -> Sequence[tables.File]:
    """The files that they write, in as many shares as there are parts."""
    low = Lowering(shape(asked.query), asked.plan, parts=1 if asked.runs else asked.parts)
    context = Context(asked.folder.root, None, Tasks("inline"), None, None)      # type: ignore[arg-type]
    answers = large.merged(context, asked.parts, {"q": _handover(asked, low)}, [_merge(asked)], {"q": outcomes})
    assert whole_groups(low) or os.listdir(os.path.join(asked.folder.root, "handover")) == []
    if answers["q", 0].failed:
        raise Failed(answers["q", 0].failed)
    return answers["q", 0].files


def _at(rows: pa.Table, t: int) -> pa.Table:
    mine = [n for n, at in enumerate(rows.column("boundary").cast(pa.int64()).to_pylist()) if at == t]
    return rows.take(pa.array(mine, pa.int64())).drop_columns(["boundary"])


def _nothing(query: Query) -> pa.Table:
    return pa.table({name: pa.nulls(0) for name, _ in query.columns})


def _keep(made: Program, folder: Folder, outcomes: list[TaskResult], last: int, shed: bool) -> None:
    """Files in which everything has ended leave with the batch, if the plan sheds them.

    Sets that stand for one boundary are replaced.
    """
    for write in made.writes:
        new = [f for o in outcomes for s, f in o.written if s == write.set]
        old = folder.state.get(write.set, []) if write.append else []
        ends = next((c for c in ("_out", "_e") if c in dict(write.columns)), None)
        folder.state[write.set] = [f for f in old + new if ends is None or not shed or f.high[ends] >= last]


def compact(query: Query, plan: Plan, folder: Folder, boundary: int) -> None:
    """Makes one file of each set's many, as maintenance does between batches."""
    low, con = Lowering(shape(query), plan, narrow=False), kernel.shared()
    for kept in state_sets(low):
        place, files = os.path.join(folder.root, "state", kept.name), folder.state.get(kept.name, [])
        if kept.ends is not None and len(files) > 1:
            source = f"read_parquet({kernel.file_list(tuple(os.path.join(place, f.path) for f in files))})"
            folder.state[kept.name] = write_file(con, merge_files(low, kept.name, source, boundary), place, "merged")
    con.close()
