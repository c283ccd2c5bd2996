"""How an ingest becomes true: the stream table's commit says all that the other two tables need, so what a crash leaves
undone can be done from it.
"""
from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from jobs.ingest import agreed
from jobs.ingest import register as intake
from jobs.ingest.land import Landed
from jobs.ingest.register import INGEST as APPLICATION
from jobs.ingest.register import Record, application
from jobs.pipeline.model import Pipeline, Stream
from jobs.pipeline.schema import QUARANTINE, stream_schema
from jobs.pipeline.warehouse import Warehouse
from jobs.storage import delta_log, failpoints, places, tables
from jobs.storage.tables import File, Table
from optimizer.errors import failed

METADATA = "forebay.ingest"
LOOK_BACK = 100                        # commits after an ingest, by maintenance, in which recovery still finds it


@dataclass(frozen=True)
class LandedInput:
    """One input as its tasks landed it, a part of it each."""

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


def stream_table(pipeline: Pipeline, warehouse: Warehouse, stream: Stream) -> Table:
    """The table, created if it is not there; what it was created for stays."""
    properties = agreed.properties(pipeline, stream)
    table = warehouse.latest(f"streams/{stream.name}", stream_schema(stream.columns), properties)
    agreed.check(pipeline, stream, table)
    return table


def commit(pipeline: Pipeline, warehouse: Warehouse, name: str, outcomes: Sequence[LandedInput], clock: int) -> None:
    """The ingest, then what can be done again."""
    if not outcomes:
        return
    table = stream_table(pipeline, warehouse, pipeline.streams[name])
    number = table.transaction(APPLICATION) + 1
    records = [asdict(_record(name, o, number, clock)) for o in outcomes]
    said = {"ingest": number, "files": records, "quarantine": [asdict(f) for o in outcomes for f in o.aside]}
    failpoints.at("ingest.before-stream")
    table.commit([f for o in outcomes for f in o.files], (), (APPLICATION, number), {METADATA: json.dumps(said)})
    failpoints.at("ingest.after-stream")
    _finish(warehouse, name, said)


def recover(warehouse: Warehouse, streams: Iterable[str]) -> list[str]:
    """Finishes what a crash left undone after a stream table's commit; names the streams."""
    return [name for name in streams if _recovered(warehouse, name)]


def _recovered(warehouse: Warehouse, name: str) -> bool:
    if not tables.exists(warehouse.path("streams", name)):
        return False
    stream, files = warehouse.latest(f"streams/{name}"), intake.files_table(warehouse)
    number = stream.transaction(APPLICATION)
    if files.transaction(application(name)) >= number:
        return False
    failpoints.at("ingest.before-recover")
    version, record = _record_of(stream, name, number)
    if _broken(warehouse, name, version, record):
        _undo(warehouse, name, version, record)
    else:
        _finish(warehouse, name, record)
    failpoints.at("ingest.after-recover")
    return True


def _broken(warehouse: Warehouse, name: str, version: int, record: Mapping[str, Any]) -> bool:
    """Whether a power cut has left less of the ingest's files than the log knows: they are on the disk for certain only
    when the ledger knows of them.
    """
    stream = warehouse.latest(f"streams/{name}")
    aside = warehouse.path("quarantine", name)
    files = [tables.whole(places.join(aside, f["path"]), f["size"]) for f in record["quarantine"]]
    return bool(stream.broken(delta_log.read(stream.path, version).added)) or not all(files)


def _undo(warehouse: Warehouse, name: str, version: int, record: Mapping[str, Any]) -> None:
    """The ingest never was: its inputs are not known to the ledger, so the next ingest takes them again."""
    number, stream = record["ingest"], warehouse.latest(f"streams/{name}")
    _take_out(stream, delta_log.read(stream.path, version).added)
    if record["quarantine"] and tables.exists(warehouse.path("quarantine", name)):
        _take_out(warehouse.latest(f"quarantine/{name}"), [f["path"] for f in record["quarantine"]])
    intake.files_table(warehouse).commit(transaction=(application(name), number))


def _take_out(table: Table, names: Collection[str]) -> None:
    present = [f.path for f in table.files() if f.path in names]
    if present:
        table.commit((), present)


def _record_of(stream: Table, name: str, number: int) -> tuple[int, Mapping[str, Any]]:
    """The version of the stream's table that an ingest made, and what it says of itself."""
    for entry in stream.history(LOOK_BACK):
        record: Mapping[str, Any] = json.loads(str(entry.get(METADATA, "{}")))
        if record.get("ingest") == number:
            return int(str(entry["version"])), record
    hint = "restore the table from a copy; see `forebay doctor`"
    raise failed("damaged-table", f"no commit of {stream.path} tells what ingest {number} of {name} took", hint)


def _finish(warehouse: Warehouse, name: str, said: Mapping[str, Any]) -> None:
    """The commits after the first, each unless it is there.

    The ledger's is the last, so that its number says that all are.
    """
    number = said["ingest"]
    if said["quarantine"]:
        aside = warehouse.latest(f"quarantine/{name}", QUARANTINE)
        if aside.transaction(APPLICATION) < number:
            failpoints.at("ingest.before-quarantine")
            aside.commit([File(**f) for f in said["quarantine"]], (), (APPLICATION, number))
            failpoints.at("ingest.after-quarantine")
    files = intake.files_table(warehouse)
    if files.transaction(application(name)) < number:
        places.sync(warehouse.root)      # what this row says is there is on the disk before it
        failpoints.at("ingest.before-files")
        intake.append(files, [Record(**r) for r in said["files"]], (application(name), number))
        failpoints.at("ingest.after-files")


def _record(name: str, outcome: LandedInput, number: int, clock: int) -> Record:
    taken, parts = outcome.landed[0].input, outcome.landed
    events = [e for p in parts for e in p.events or ()]
    boundaries = [b for p in parts for b in p.boundaries or ()]
    return Record(name, taken.kind, taken.name, taken.size, taken.modified, taken.digest or "",
                  sum(p.rows for p in parts), sum(p.late for p in parts), sum(p.quarantined for p in parts), number,
                  clock, min(boundaries, default=None), max(boundaries, default=None), min(events, default=None),
                  max(events, default=None))
