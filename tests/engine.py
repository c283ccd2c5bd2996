"""Plans run over plain Parquet files, with state carried as the runner carries it: what a task does, and no Delta, ledger or Spark."""
from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.parquet as pq

from jobs import kernel, tables
from jobs.reach import dealt, inside, meets
from jobs.work import Order, Outcome, perform, prepare, write_file
from optimizer.compaction import compaction
from optimizer.final import final
from optimizer.lowering import Lowering
from optimizer.plan import Plan
from optimizer.program import BEGINNING, Program, Source, state_sets
from optimizer.query import Query
from optimizer.shape import shape
from optimizer.steps import program


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
        name = tables.unique("rows")
        pq.write_table(rows, os.path.join(self.root, source, name))
        self.rows.setdefault(source, []).append(tables.describe(os.path.join(self.root, source), name))

    def replace(self, source: str, rows: pa.Table) -> None:
        """A relation's new version."""
        self.rows.pop(source, None)
        self.add(source, rows)

    def remove(self) -> None:
        shutil.rmtree(self.root)


def run(query: Query, plan: Plan, folder: Folder, groups: Sequence[tuple[int, ...]], parts: int = 1, previous: int = BEGINNING) -> dict[int, pa.Table]:
    """The answers at the boundaries, in runs of several boundaries each."""
    answers: dict[int, pa.Table] = {}
    for boundaries in groups:
        answers.update(together(query, plan, folder, boundaries, parts, previous))
        previous = boundaries[-1]
    return answers


def together(query: Query, plan: Plan, folder: Folder, boundaries: tuple[int, ...], parts: int = 1, previous: int = BEGINNING) -> dict[int, pa.Table]:
    """One run of the tasks for several boundaries; a failure leaves the state as it was."""
    orders = [_order(query, plan, folder, boundaries, previous, parts, part) for part in range(parts)]
    sent = [s for order in orders if order.narrow.before for s in prepare(order)]
    outcomes = [perform(order, sent) for order in orders]
    failure = next((o.failed for o in outcomes if o.failed), None)
    if failure:
        raise Failed(failure)
    answers = _answers(query, plan, folder, outcomes, boundaries)
    _keep(_program(Lowering(shape(query), plan, parts=parts), boundaries, previous), folder, outcomes, boundaries[-1])
    return answers


def _program(low: Lowering, boundaries: tuple[int, ...], previous: int, floor: int = 0) -> Program:
    return program(low, boundaries, previous, floor)


def _order(query: Query, plan: Plan, folder: Folder, boundaries: tuple[int, ...], previous: int, parts: int, part: int) -> Order:
    low = Lowering(shape(query), plan, parts=parts, part=part)
    narrow, wide = (_program(replace(low, narrow=n), boundaries, previous, _floor(query, folder, previous)) for n in (True, False))
    sources = [*(s for s in narrow.sources if s.kind != "exchange"), *(f.source for f in narrow.before)]
    found = {s.name: _files(s, query, folder, parts, part) for s in sources}
    files, certain = ({name: pair[k] for name, pair in found.items()} for k in (0, 1))
    kept = {w.set: os.path.join(folder.root, "state", w.set) for w in narrow.writes}
    rows_to = os.path.join(folder.root, "answers") if query.returns_rows else None
    return Order("q", part, parts, narrow, wide, files, kept, f"b{boundaries[-1]}", rows_to, certain)


def _floor(query: Query, folder: Folder, previous: int) -> int:
    times = [f.low[i.event_time] for i in query.inputs if i.event_time for f in folder.rows.get(i.source, []) if f.rows and f.high["_boundary"] > previous]
    return min(times, default=0)


def _files(source: Source, query: Query, folder: Folder, parts: int, part: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Files to read whole, and those of which all rows are in the range."""
    if source.kind == "state":
        place, found = os.path.join("state", source.of), folder.state.get(source.of, [])
    else:
        stamp = next((i.event_time for i in query.inputs if i.source == source.of), None) or ""
        place, found = source.of, [f for f in folder.rows.get(source.of, []) if source.kind == "relation" or any(meets(f, stamp, r) for r in source.ranges)]
    mine = [f for f in (dealt(found, parts)[part] if source.dealt else found) if f.rows]
    sure = [f for f in mine if source.stamp and inside(f, source.stamp, source.ranges[0])]

    def places(files: list[tables.File]) -> tuple[str, ...]:
        return tuple(os.path.join(folder.root, place, f.path) for f in files)

    return places([f for f in mine if f not in sure]), places(sure)


def _answers(query: Query, plan: Plan, folder: Folder, outcomes: list[Outcome], boundaries: tuple[int, ...]) -> dict[int, pa.Table]:
    con = kernel.shared()
    if query.returns_rows:
        files = tuple(os.path.join(folder.root, "answers", f.path) for o in outcomes for s, f in o.written if s == "")
        rows = kernel.table(con, f"SELECT * FROM read_parquet({kernel.file_list(files)})") if files else None
    else:
        con.register("partials", pa.concat_tables([o.partials for o in outcomes if o.partials is not None]))
        con.register("due", pa.table({"_t": pa.array(boundaries, pa.int64())}))
        try:
            rows = kernel.table(con, final(Lowering(shape(query), plan, narrow=False)))
        except kernel.Error as error:
            if not kernel.about_data(error):
                raise
            raise Failed(str(error).splitlines()[0]) from error
    return {t: _at(rows, t) if rows is not None else _nothing(query) for t in boundaries}


def _at(rows: pa.Table, t: int) -> pa.Table:
    mine = [n for n, at in enumerate(rows.column("boundary").cast(pa.int64()).to_pylist()) if at == t]
    return rows.take(pa.array(mine, pa.int64())).drop_columns(["boundary"])


def _nothing(query: Query) -> pa.Table:
    return pa.table({name: pa.nulls(0) for name, _ in query.columns})


def _keep(made: Program, folder: Folder, outcomes: list[Outcome], last: int) -> None:
    """Files in which everything has ended leave with the batch; sets that stand for one boundary are replaced."""
    for write in made.writes:
        new = [f for o in outcomes for s, f in o.written if s == write.set]
        old = folder.state.get(write.set, []) if write.append else []
        ends = next((c for c in ("_out", "_e") if c in dict(write.columns)), None)
        folder.state[write.set] = [f for f in old + new if ends is None or f.high[ends] >= last]


def compact(query: Query, plan: Plan, folder: Folder, boundary: int) -> None:
    """Makes one file of each set's many, as maintenance does between batches."""
    low, con = Lowering(shape(query), plan, narrow=False), kernel.shared()
    for kept in state_sets(low):
        place, files = os.path.join(folder.root, "state", kept.name), folder.state.get(kept.name, [])
        if kept.ends is not None and len(files) > 1:
            source = f"read_parquet({kernel.file_list(tuple(os.path.join(place, f.path) for f in files))})"
            folder.state[kept.name] = write_file(con, compaction(low, kept.name, source, boundary), place, "merged")
    con.close()
