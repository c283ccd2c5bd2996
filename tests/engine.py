"""Plans run over plain Parquet files, boundary by boundary, with state carried as the runner carries it; no Delta, no ledger, no Spark: what a task does, and nothing else."""
from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.parquet as pq

from jobs import kernel, tables
from jobs.work import Order, Outcome, perform
from optimizer.final import final
from optimizer.plan import Plan
from optimizer.program import BEGINNING, Program, Source
from optimizer.query import Query
from optimizer.sets import Lowering
from optimizer.shape import shape
from optimizer.steps import program


@dataclass
class Folder:
    """Stream and relation rows as files, and one plan's state."""

    root: str = field(default_factory=lambda: tempfile.mkdtemp(prefix="forebay-test-"))
    rows: dict[str, list[tables.File]] = field(default_factory=dict)
    state: dict[str, list[tuple[int, tables.File]]] = field(default_factory=dict)

    def add(self, source: str, rows: pa.Table) -> None:
        os.makedirs(os.path.join(self.root, source), exist_ok=True)
        name = tables.unique("rows")
        pq.write_table(rows, os.path.join(self.root, source, name))
        self.rows.setdefault(source, []).append(tables.describe(os.path.join(self.root, source), name))


def run(query: Query, plan: Plan, folder: Folder, groups: list[tuple[int, ...]], parts: int = 1, previous: int = BEGINNING) -> dict[int, pa.Table]:
    """The answers at the boundaries, in runs of several boundaries each."""
    answers: dict[int, pa.Table] = {}
    for boundaries in groups:
        outcomes = [perform(_order(query, plan, folder, boundaries, previous, parts, part)) for part in range(parts)]
        failure = next((o.failed for o in outcomes if o.failed), None)
        if failure:
            raise RuntimeError(failure)
        answers.update(_answers(query, plan, folder, outcomes, boundaries))
        _keep(plan, query, folder, outcomes, boundaries, parts)
        previous = boundaries[-1]
    return answers


def _order(query: Query, plan: Plan, folder: Folder, boundaries: tuple[int, ...], previous: int, parts: int, part: int) -> Order:
    low = Lowering(shape(query), plan, parts=parts, part=part)
    programs = [program(replace(low, narrow=n), boundaries, previous, _floor(query, folder, previous)) for n in (True, False)]
    files = {s.name: _files(s, query, folder, parts, part) for s in programs[0].sources}
    kept = {w.set: os.path.join(folder.root, "state", w.set) for w in programs[0].writes}
    rows_to = os.path.join(folder.root, "answers") if query.returns_rows else None
    return Order("q", part, programs[0], programs[1], files, kept, f"b{boundaries[-1]}", rows_to)


def _floor(query: Query, folder: Folder, previous: int) -> int:
    times = [f.low[i.event_time] for i in query.inputs if i.event_time for f in folder.rows.get(i.source, []) if f.high["_boundary"] > previous]
    return min(times, default=0)


def _files(source: Source, query: Query, folder: Folder, parts: int, part: int) -> tuple[str, ...]:
    if source.kind == "state":
        mine = [f.path for p, f in folder.state.get(source.of, []) if not source.dealt or p % parts == part]
        return tuple(os.path.join(folder.root, "state", source.of, f) for f in mine)
    stamp = next((i.event_time for i in query.inputs if i.source == source.of), None) or ""
    found = [f for f in folder.rows.get(source.of, []) if source.kind == "relation" or any(
        f.high["_boundary"] > r.after and f.low["_boundary"] <= r.upto and f.high[stamp] >= r.since and f.low[stamp] < r.until for r in source.ranges)]
    return tuple(os.path.join(folder.root, source.of, f.path) for n, f in enumerate(found) if not source.dealt or n % parts == part)


def _answers(query: Query, plan: Plan, folder: Folder, outcomes: list[Outcome], boundaries: tuple[int, ...]) -> dict[int, pa.Table]:
    con = kernel.connect()
    if query.returns_rows:
        files = tuple(os.path.join(folder.root, "answers", f.path) for o in outcomes for s, f in o.written if s == "")
        if not files:
            return {t: None for t in boundaries}
        rows = kernel.table(con, f"SELECT * FROM read_parquet({kernel.file_list(files)})")
    else:
        con.register("partials", pa.concat_tables([o.partials for o in outcomes]))
        con.register("due", pa.table({"_t": pa.array(boundaries, pa.int64())}))
        rows = kernel.table(con, final(Lowering(shape(query), plan, narrow=False)))
    con.register("answer_rows", rows)
    return {t: kernel.table(con, f"SELECT * EXCLUDE (boundary) FROM answer_rows WHERE epoch_us(boundary) = {t}") for t in boundaries}


def _keep(plan: Plan, query: Query, folder: Folder, outcomes: list[Outcome], boundaries: tuple[int, ...], parts: int) -> None:
    low = Lowering(shape(query), plan, parts=parts)
    made: Program = program(low, boundaries, BEGINNING)
    for write in made.writes:
        new = [(o.part, f) for o in outcomes for s, f in o.written if s == write.set]
        old = folder.state.get(write.set, []) if write.append else []
        ends = next((c for c in ("_out", "_e") if c in dict(write.columns)), None)
        folder.state[write.set] = [(p, f) for p, f in old + new if ends is None or f.high[ends] >= boundaries[-1]]
