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
    def came_before(self) -> bool:
        return self.landed[0].came_before

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


def commit(pipeline: Pipeline, warehouse: Warehouse, name: str, inputs: Sequence[LandedInput], clock: int) -> None:
    """Commits the rows, with a record of all that follows; then what follows, which can be done again."""
    if not inputs:
        return
    table = stream_table(pipeline, warehouse, pipeline.streams[name])
    number = table.transaction(APPLICATION) + 1
    files = [file for landed in inputs for file in landed.files]
    quarantined = [file for landed in inputs for file in landed.aside]
    record = {"ingest": number, "files": [asdict(_record(name, landed, number, clock)) for landed in inputs],
              "quarantine": [asdict(file) for file in quarantined]}
    failpoints.at("ingest.before-stream")
    table.commit(files, (), (APPLICATION, number), {METADATA: json.dumps(record)})
    failpoints.at("ingest.after-stream")
    _finish(warehouse, name, record)


@dataclass(frozen=True)
class Departure:
    """Rows that leave a stream for its quarantine: the files that had them, those with what is left, the rows set
    aside, how many, and the first and last event time that are left (None: no row is).
    """

    old: tuple[File, ...]
    staying: tuple[File, ...]
    aside: File
    rows: int
    span: tuple[int, int] | None


def depart(warehouse: Warehouse, name: str, departure: Departure, clock: int) -> None:
    """Rows leave the stream and are in its quarantine, as an ingest of its own: after a crash it is finished, or taken
    back.
    """
    stream = warehouse.latest(f"streams/{name}")
    number = stream.transaction(APPLICATION) + 1
    first, last = departure.span or (None, None)
    row = Record(name, intake.DEPARTURE, f"{intake.DEPARTURE}:{number}", 0, 0, "", -departure.rows, 0, departure.rows,
                 number, clock, first_event=first, last_event=last)
    record = {"ingest": number, "files": [asdict(row)], "quarantine": [asdict(departure.aside)],
              "left": [asdict(file) for file in departure.old]}
    failpoints.at("ingest.before-depart")
    stream.commit(departure.staying, [file.path for file in departure.old], (APPLICATION, number),
                  {METADATA: json.dumps(record)})
    failpoints.at("ingest.after-depart")
    _finish(warehouse, name, record)


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
    if _are_files_whole(warehouse, name, version, record):
        _finish(warehouse, name, record)
    else:
        _undo(warehouse, name, version, record)
    failpoints.at("ingest.after-recover")
    return True


def _are_files_whole(warehouse: Warehouse, name: str, version: int, record: Mapping[str, Any]) -> bool:
    """Whether all files of the ingest are there as they were written.

    A power cut may have left less than the log knows: they are on the disk for certain only when the ledger knows them.
    """
    stream = warehouse.latest(f"streams/{name}")
    aside = warehouse.path("quarantine", name)
    are_whole = [tables.whole(places.join(aside, file["path"]), file["size"]) for file in record["quarantine"]]
    return all(are_whole) and not stream.broken(delta_log.read(stream.path, version).added)


def _undo(warehouse: Warehouse, name: str, version: int, record: Mapping[str, Any]) -> None:
    """Takes the ingest back: its inputs are not known to the ledger, so the next ingest takes them again."""
    number, stream = record["ingest"], warehouse.latest(f"streams/{name}")
    left = [File(**file) for file in record.get("left", ())]
    present = {file.path for file in stream.files()}
    added = [path for path in delta_log.read(stream.path, version).added if path in present]
    if added or left:
        stream.commit([file for file in left if file.path not in present], added)
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


def _finish(warehouse: Warehouse, name: str, record: Mapping[str, Any]) -> None:
    """The commits after the first, each unless it is there.

    The ledger's is the last, so that its number says that all are.
    """
    number = record["ingest"]
    if record["quarantine"]:
        aside = warehouse.latest(f"quarantine/{name}", QUARANTINE)
        if aside.transaction(APPLICATION) < number:
            failpoints.at("ingest.before-quarantine")
            aside.commit([File(**file) for file in record["quarantine"]], (), (APPLICATION, number))
            failpoints.at("ingest.after-quarantine")
    files = intake.files_table(warehouse)
    if files.transaction(application(name)) < number:
        places.sync(warehouse.root)      # files are on the disk before a row says that they are there
        failpoints.at("ingest.before-files")
        intake.append(files, [Record(**fields) for fields in record["files"]], (application(name), number))
        failpoints.at("ingest.after-files")


def _record(name: str, landed: LandedInput, number: int, clock: int) -> Record:
    source, parts = landed.landed[0].input, landed.landed
    events = [event for part in parts for event in part.events or ()]
    boundaries = [boundary for part in parts for boundary in part.boundaries or ()]
    return Record(name, source.kind, source.name, source.size, source.modified, source.digest or "",
                  sum(part.rows for part in parts), sum(part.late for part in parts),
                  sum(part.quarantined for part in parts), number, clock, min(boundaries, default=None),
                  max(boundaries, default=None), min(events, default=None), max(events, default=None))
