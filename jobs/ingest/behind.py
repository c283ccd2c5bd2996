"""Rows so old that they would open boundaries without end leave for quarantine, as long as no boundary has begun.

One wrong timestamp of 1971 would open millions of boundaries. `behind` in forebay.yml counts back from the newest row
of any stream; without it rows leave that a long silence parts from all that came after. Both hold for rows of every
ingest so far: which rows are old shows only when newer ones come.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jobs.engine import kernel
from jobs.engine.kernel import Connection
from jobs.ingest import register as intake
from jobs.ingest.commit import Departure, depart, stream_table
from jobs.ingest.land import write_rows
from jobs.ingest.reading import row_as_json
from jobs.ingest.silences import LONG, long_silences
from jobs.pipeline.model import ENDLESS, Pipeline, Stream
from jobs.pipeline.warehouse import Warehouse
from jobs.storage import places
from jobs.storage.tables import File
from optimizer.expression.dialect import identifier, string
from optimizer.query.windows import SECOND
from optimizer.time import iso

BEHIND = "event time too far behind the newest row"
BEFORE_A_GAP = f"event time before a gap of more than {LONG:,} boundaries"


@dataclass(frozen=True)
class Gone:
    """Rows of a stream that went to quarantine, by the number of the ingest that had brought them, and why.

    `Gone("views", {0: 1}, "…")` is one row of the first ingest.
    """

    stream: str
    rows: Mapping[int, int]
    note: str


def settle(pipeline: Pipeline, warehouse: Warehouse, clock: int) -> list[Gone]:
    """Takes the rows out that are too old. Only while no boundary has begun; the caller holds the pipeline."""
    return [*_behind(pipeline, warehouse, clock), *_before_a_gap(pipeline, warehouse, clock)]


def _behind(pipeline: Pipeline, warehouse: Warehouse, clock: int) -> list[Gone]:
    """By `behind`, of the streams that have it."""
    marks = intake.watermarks(warehouse, pipeline.streams)
    newest = max((mark.latest for mark in marks.values()), default=0)
    departures = []
    for name, mark in marks.items():
        limit = pipeline.streams[name].behind
        if limit is not None and limit < ENDLESS and mark.earliest < newest - limit:
            rows = _take_out(pipeline, warehouse, pipeline.streams[name], newest - limit, BEHIND, clock)
            why = f"they are more than `behind: {limit / SECOND:g} seconds` before the newest row, of {iso(newest)}"
            departures.append(Gone(name, rows, f"stream {name}: {_counted(rows)} to quarantine: {why}"))
    return departures


def _before_a_gap(pipeline: Pipeline, warehouse: Warehouse, clock: int) -> list[Gone]:
    """By what lies between them and all later rows, of the streams without `behind`."""
    marks = intake.watermarks(warehouse, pipeline.streams)
    span = max((m.latest for m in marks.values()), default=0) - min((m.earliest for m in marks.values()), default=0)
    silences = long_silences(warehouse, pipeline.streams, pipeline.batch) if span // pipeline.batch > LONG else []
    if not silences:
        return []
    last, departures = silences[-1], []
    for name, mark in marks.items():
        if pipeline.streams[name].behind is None and mark.earliest < last.after:
            rows = _take_out(pipeline, warehouse, pipeline.streams[name], last.after, BEFORE_A_GAP, clock)
            count = last.boundaries(pipeline.batch)
            why = (f"no stream has a row in {count:,} boundaries between {iso(last.after)} and {iso(last.until)}; a "
                   "warehouse of its own with `behind: for ever` in forebay.yml would keep them")
            departures.append(Gone(name, rows, f"stream {name}: {_counted(rows)} to quarantine: {why}"))
    return departures


def _counted(rows: Mapping[int, int]) -> str:
    count = sum(rows.values())
    return f"{count:,} {'row' if count == 1 else 'rows'} went"


def _take_out(pipeline: Pipeline, warehouse: Warehouse, stream: Stream, cutoff: int, reason: str,
              clock: int) -> dict[int, int]:
    """The stream's rows with an event time before the cutoff, into its quarantine; how many, by ingest."""
    table = stream_table(pipeline, warehouse, stream)
    old = tuple(file for file in table.files() if file.low.get(stream.event_time, cutoff - 1) < cutoff)
    con = kernel.shared()
    try:
        rows = f"read_parquet({kernel.files(con, tuple(places.join(table.path, file.path) for file in old))})"
        is_old = f"{identifier(stream.event_time)} < make_timestamptz({cutoff})"
        counts = dict(con.execute(f"SELECT _ingest, count(*) FROM {rows} WHERE {is_old} GROUP BY ALL").fetchall())
        aside = write_rows(con, warehouse.path("quarantine", stream.name), f"""SELECT
            nullif({string(reason)}, '') AS _reason, nullif(CAST({_as_json(con, rows, stream)} AS VARCHAR), '') AS _row,
            _source, _ingest, make_timestamptz({clock}) AS _at FROM {rows} WHERE {is_old}""")
        staying = [file for old_file in old for file in _staying(con, table.path, stream, old_file, cutoff)]
        others = [file for file in table.files() if file not in old]
        span = _span(con, table.path, stream, [*staying, *others])
    finally:
        con.close()
    depart(warehouse, stream.name, Departure(old, tuple(staying), aside, sum(counts.values()), span), clock)
    return counts


def _staying(con: Connection, root: str, stream: Stream, file: File, cutoff: int) -> list[File]:
    """None or one: the rows of the file from the cutoff on, in a file of their own."""
    if file.high.get(stream.event_time, cutoff) < cutoff:
        return []
    columns = ", ".join(map(identifier, (*stream.columns, "_boundary", "_source", "_ingest")))
    rows = f"read_parquet({kernel.files(con, (places.join(root, file.path),))})"
    later = (f"SELECT {columns} FROM {rows} WHERE {identifier(stream.event_time)} >= make_timestamptz({cutoff}) "
             "ORDER BY _boundary")
    written = write_rows(con, root, later)
    return [written] if written.rows else []


def _span(con: Connection, root: str, stream: Stream, files: list[File]) -> tuple[int, int] | None:
    """The first and the last event time that are left; None where no row is."""
    if not files:
        return None
    event = identifier(stream.event_time)
    paths = tuple(places.join(root, file.path) for file in files)
    sql = f"SELECT min(epoch_us({event})), max(epoch_us({event})) FROM read_parquet({kernel.files(con, paths)})"
    first, last = con.execute(sql).fetchall()[0]
    return None if first is None else (first, last)


def _as_json(con: Connection, rows: str, stream: Stream) -> str:
    types = {name: kind for name, kind, *_ in con.execute(f"DESCRIBE SELECT * FROM {rows}").fetchall()}
    columns = {name: (identifier(name), types[name]) for name in stream.columns}
    return row_as_json(columns, stream.sensitive)
