"""New input into the stream tables, each once: a stream table's commit is the ingest, and what follows it can be redone from that commit; it decides no boundary and runs no query."""
from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from jobs import failpoints, intake, sources, tables
from jobs.config import Pipeline, Stream
from jobs.intake import Known, Record, application
from jobs.land import Item, Landed, land
from jobs.lines import suggest
from jobs.reading import MARK, Input
from jobs.schema import QUARANTINE, stream_schema
from jobs.tables import File, Table
from optimizer.errors import ForebayError, failed

APPLICATION = "ingest"
METADATA = "forebay.ingest"
FILES_A_COMMIT = 256
ROWS_A_TASK = 500_000
LARGE = 2 << 20                        # bytes from which a Parquet file's number of rows is looked up
LOOK_BACK = 100                        # commits after an ingest, by maintenance, in which recovery still finds it


class LedgerView(Protocol):
    @property
    def last_begun(self) -> int | None: ...


class Runs(Protocol):
    """Where tasks run; see jobs.tasks."""

    def map(self, function: Callable[[Item], Landed], items: Iterable[Item]) -> list[Landed]: ...


@dataclass(frozen=True)
class Outcome:
    """One input as its tasks landed it."""

    landed: tuple[Landed, ...]

    @property
    def refused(self) -> str | None:
        return next((part.refused for part in self.landed if part.refused), None)

    @property
    def known(self) -> bool:
        return self.landed[0].known

    @property
    def files(self) -> tuple[File, ...]:
        return tuple(part.good for part in self.landed if part.good)

    @property
    def aside(self) -> tuple[File, ...]:
        return tuple(part.bad for part in self.landed if part.bad)


def now() -> int:
    return time.time_ns() // 1000


def stream_path(pipeline: Pipeline, stream: str) -> str:
    return os.path.join(pipeline.warehouse, "streams", stream)


def quarantine_path(pipeline: Pipeline, stream: str) -> str:
    return os.path.join(pipeline.warehouse, "quarantine", stream)


def ingest(pipeline: Pipeline, ledger: LedgerView, tasks: Any, only: Mapping[str, Sequence[Any]] | None = None, clock: Callable[[], int] = now) -> dict[str, Any]:
    """`only`: paths or data frames by stream; without it, every source. The answer counts by stream, and names under `refused` the files that could not be taken."""
    recover(pipeline)
    sources.clear(pipeline)
    try:
        return _taken(pipeline, ledger.last_begun, tasks, _given(pipeline, only), clock)
    finally:
        sources.clear(pipeline)


def _taken(pipeline: Pipeline, last: int | None, tasks: Any, given: Mapping[str, list[Input]], clock: Callable[[], int]) -> dict[str, Any]:
    done: dict[str, Any] = {name: {"files": 0, "rows": 0, "quarantined": 0, "late": 0} for name in (given or pipeline.streams)}
    refused: list[dict[str, str]] = []
    for name in done:
        _stream_table(pipeline, pipeline.streams[name])
    waiting = {name: sources.pending(pipeline, pipeline.streams[name], tasks, given.get(name)) for name in done}
    while any(waiting.values()):
        turn = {name: inputs[:FILES_A_COMMIT] for name, inputs in waiting.items() if inputs}
        waiting = {name: inputs[FILES_A_COMMIT:] for name, inputs in waiting.items()}
        for name, outcomes in _landed(pipeline, turn, last, clock(), tasks).items():
            refused += [{"stream": name, "path": o.landed[0].input.name, "reason": o.refused} for o in outcomes if o.refused]
            _commit(pipeline, name, [o for o in outcomes if not o.refused], clock())
            _count(done[name], [o for o in outcomes if not o.refused and not o.known])
    return {"streams": done, "refused": refused}


def _given(pipeline: Pipeline, only: Mapping[str, Sequence[Any]] | None) -> dict[str, list[Input]]:
    """What was handed over, checked whole before anything changes."""
    for name in only or ():
        if name not in pipeline.streams:
            raise ForebayError("unknown-stream", f"{name!r} is not a stream of {pipeline.name}", hint=suggest(name, pipeline.streams))
    return {name: sources.handed(pipeline, pipeline.streams[name], things) for name, things in (only or {}).items()}


def recover(pipeline: Pipeline) -> list[str]:
    """Finishes what a crash left undone after a stream table's commit; names the streams."""
    return [name for name in pipeline.streams if _recovered(pipeline, name)]


def _recovered(pipeline: Pipeline, name: str) -> bool:
    if not tables.exists(stream_path(pipeline, name)):
        return False
    stream, files = tables.open_table(stream_path(pipeline, name)), intake.files_table(pipeline)
    number = stream.transaction(APPLICATION)
    if files.transaction(application(name)) >= number:
        return False
    failpoints.at("ingest.before-recover")
    said = next((entry[METADATA] for entry in stream.history(LOOK_BACK) if METADATA in entry and json.loads(str(entry[METADATA]))["ingest"] == number), None)
    if said is None:
        raise failed("damaged-table", f"ingest {number} of {name} was begun, and no commit of its stream table tells what it took", "restore warehouse/streams from a copy; see `forebay doctor`")
    _finish(pipeline, name, json.loads(str(said)))
    failpoints.at("ingest.after-recover")
    return True


def _landed(pipeline: Pipeline, turn: Mapping[str, Sequence[Input]], last: int | None, clock: int, tasks: Runs) -> dict[str, list[Outcome]]:
    """One job for all streams; the parts of an input stand together."""
    items = [item for name, inputs in turn.items() for item in _items(pipeline, pipeline.streams[name], inputs, last, clock)]
    landed = tasks.map(land, items)
    outcomes: dict[str, list[Outcome]] = {name: [] for name in turn}
    for (name, _), pairs in groupby(zip(items, landed), key=lambda pair: (pair[0].stream.name, pair[0].input.name)):
        parts = list(pairs)
        outcome = Outcome(tuple(p for _, p in parts))
        if outcome.refused or outcome.known:
            _forget(parts)
            outcome = Outcome((next((p for _, p in parts if p.refused), parts[0][1]),))
        outcomes[name].append(outcome)
    return outcomes


def _forget(parts: Sequence[tuple[Item, Landed]]) -> None:
    """What other parts of the input wrote before one of them found that it is not to be taken."""
    for item, part in parts:
        for root, file in ((item.root, part.good), (item.aside, part.bad)):
            if file is not None:
                os.unlink(os.path.join(root, file.path))


def _items(pipeline: Pipeline, stream: Stream, inputs: Sequence[Input], last: int | None, clock: int) -> list[Item]:
    root, aside = stream_path(pipeline, stream.name), quarantine_path(pipeline, stream.name)
    number, before = _stream_table(pipeline, stream).transaction(APPLICATION) + 1, intake.known(pipeline, stream.name)
    return [Item(stream, i, root, aside, number, pipeline.batch, last, clock, part, before.get(i.name, Known(frozenset(), frozenset())).digests) for i in inputs for part in _parts(i)]


def _parts(item: Input) -> list[tuple[int, int] | None]:
    """Ranges of row numbers for a large Parquet file, so that several tasks share it."""
    if item.format != "parquet" or item.size < LARGE:
        return [None]
    try:
        rows = pq.read_metadata(item.path).num_rows
    except (OSError, pa.ArrowException):
        return [None]
    count = -(-rows // ROWS_A_TASK)
    return [None] if count < 2 else [(rows * i // count, rows * (i + 1) // count) for i in range(count)]


def _stream_table(pipeline: Pipeline, stream: Stream) -> Table:
    table = tables.create(stream_path(pipeline, stream.name), stream_schema(stream.columns))
    there, wanted = [(f.name, f.type) for f in table.schema], [(f.name, f.type) for f in stream_schema(stream.columns)]
    if there != wanted:
        different = [name for name, kind in [*there, *wanted] if (name, kind) not in there or (name, kind) not in wanted]
        raise ForebayError("columns-changed", f"the columns of {stream.name} are not those of its table: {', '.join(dict.fromkeys(different)) or 'their order'}",
                           hint="declare them as they were, or give the stream with the new columns another name")
    return table


def _count(done: dict[str, int], outcomes: Sequence[Outcome]) -> None:
    done["files"] += sum(o.landed[0].input.format != MARK for o in outcomes)
    for part in (part for o in outcomes for part in o.landed):
        done["rows"], done["late"], done["quarantined"] = done["rows"] + part.rows, done["late"] + part.late, done["quarantined"] + part.quarantined


def _commit(pipeline: Pipeline, name: str, outcomes: Sequence[Outcome], clock: int) -> None:
    if not outcomes:
        return
    table = _stream_table(pipeline, pipeline.streams[name])
    number = table.transaction(APPLICATION) + 1
    said = {"ingest": number, "at": clock, "files": [asdict(_record(name, o, number, clock)) for o in outcomes], "quarantine": [_compact(f) for o in outcomes for f in o.aside]}
    failpoints.at("ingest.before-stream")
    table.commit([f for o in outcomes for f in o.files], (), (APPLICATION, number), {METADATA: json.dumps(said)})
    failpoints.at("ingest.after-stream")
    _finish(pipeline, name, said)


def _finish(pipeline: Pipeline, name: str, said: Mapping[str, Any]) -> None:
    """The commits after the first, each unless it is there."""
    number = said["ingest"]
    if said["quarantine"]:
        aside = tables.create(quarantine_path(pipeline, name), QUARANTINE)
        if aside.transaction(APPLICATION) < number:
            failpoints.at("ingest.before-quarantine")
            aside.commit([File(**f) for f in said["quarantine"]], (), (APPLICATION, number))
            failpoints.at("ingest.after-quarantine")
    files = intake.files_table(pipeline)
    if files.transaction(application(name)) < number:
        failpoints.at("ingest.before-files")
        intake.append(files, [Record(**r) for r in said["files"]], (application(name), number))
        failpoints.at("ingest.after-files")


def _compact(file: File) -> dict[str, Any]:
    return {"path": file.path, "rows": file.rows, "size": file.size}


def _record(name: str, outcome: Outcome, number: int, clock: int) -> Record:
    taken, parts = outcome.landed[0].input, outcome.landed
    events, boundaries = [e for p in parts for e in p.events or ()], [b for p in parts for b in p.boundaries or ()]
    return Record(name, taken.kind, taken.name, taken.size, taken.modified, taken.digest or "", sum(p.rows for p in parts), sum(p.late for p in parts), sum(p.quarantined for p in parts), number, clock,
                  min(boundaries, default=None), max(boundaries, default=None), min(events, default=None), max(events, default=None))
