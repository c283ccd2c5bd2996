"""What has come in: warehouse/ledger/files, one row an input.

It is written after the stream table's commit, which is the ingest, and can be redone from it. And what was refused, as
far as quarantine has it.
"""
from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.engine import kernel
from jobs.engine.small_tables import ask
from jobs.pipeline.schema import FILES
from jobs.pipeline.warehouse import Warehouse
from jobs.storage import places, tables
from jobs.storage.tables import Table
from optimizer.expression.dialect import string
from optimizer.time import instant

DEPARTURE = "behind"                   # kind of the record of rows that left a stream again, counted as fewer
INGEST = "ingest"                      # under this name a stream's table says the number of its last ingest
FEW = 500                              # rows of a file that are read as Python values
MANY = 32                              # files of this table that are read one by one; more are made one
_INSTANTS = ("first_boundary", "last_boundary", "first_event", "last_event", "at")


@dataclass(frozen=True)
class Record:
    """One input as it was taken; times in microseconds, `modified` in nanoseconds."""

    stream: str
    kind: str
    path: str
    size: int
    modified: int
    digest: str
    rows: int
    late: int
    quarantined: int
    ingest: int
    at: int
    first_boundary: int | None = None
    last_boundary: int | None = None
    first_event: int | None = None
    last_event: int | None = None


class KnownPath(NamedTuple):
    """What the ledger knows of one path."""

    states: frozenset[tuple[int, int]]      # (size, modified)
    digests: frozenset[str]


class Watermark(NamedTuple):
    """The least and greatest event time stored, and the wall clock's time when rows last came; microseconds."""

    earliest: int
    latest: int
    arrived: int


def application(stream: str) -> str:
    """The name under which the table of files has the number of the stream's last ingest."""
    return f"ingest:{stream}"


def files_table(warehouse: Warehouse) -> Table:
    return warehouse.latest("ledger/files", FILES)


def known_paths(warehouse: Warehouse, stream: str) -> dict[str, KnownPath]:
    rows = _ask(warehouse, "SELECT path, list((size, modified)), list(DISTINCT digest) FROM files "
                           f"WHERE stream = {string(stream)} GROUP BY path")
    return {path: KnownPath(frozenset(states), frozenset(digests)) for path, states, digests in rows}


def last(warehouse: Warehouse, stream: str, path: str) -> str | None:
    """The newest digest under a path: how far a topic or a table was read."""
    where = f"stream = {string(stream)} AND path = {string(path)}"
    rows = _ask(warehouse, f"SELECT arg_max(digest, ingest) FROM files WHERE {where}")
    return rows[0][0] if rows else None


class ArrivedFiles:
    """What the files of `ledger/files` say of each stream; each file is read once, since none ever changes.

    `ArrivedFiles().watermarks(warehouse, ["views"])` is what `watermarks` gives, cheaper the second time.
    """

    def __init__(self) -> None:
        self._by_file: dict[str, dict[str, Watermark] | None] = {}      # None: it tells of a departure

    def watermarks(self, warehouse: Warehouse, streams: Collection[str]) -> dict[str, Watermark]:
        """Where rows have left a stream again, all files have to be asked together."""
        table = files_table(warehouse)
        paths = {file.path: file.rows for file in table.files()}
        self._by_file = {path: self._by_file[path] if path in self._by_file else _of_file(table, path, rows)
                         for path, rows in paths.items()}
        marks: dict[str, Watermark] = {}
        for of_file in self._by_file.values():
            if of_file is None:
                return watermarks(warehouse, streams)
            for stream, mark in of_file.items():
                before = marks.get(stream, mark)
                marks[stream] = Watermark(min(before.earliest, mark.earliest), max(before.latest, mark.latest),
                                          max(before.arrived, mark.arrived))
        return {stream: mark for stream, mark in marks.items() if stream in streams}


def _of_file(table: Table, path: str, rows: int) -> dict[str, Watermark] | None:
    """Small files are read without the engine, which takes ten times as long to open one."""
    if rows > FEW:
        con = kernel.shared()
        try:
            source = f"read_parquet({kernel.files(con, (places.join(table.path, path),))})"
            of_streams = con.execute(f"""SELECT stream, min(epoch_us(first_event)), max(epoch_us(last_event)),
                max(epoch_us("at")), bool_or(kind = {string(DEPARTURE)}) FROM {source} GROUP BY stream""").fetchall()
        finally:
            con.close()
        has_departure = any(departed for *_, departed in of_streams)
        return None if has_departure else {name: Watermark(first, last, at) for name, first, last, at, _ in of_streams
                                           if first is not None}
    with places.opened(places.join(table.path, path)) as file:
        content = pq.ParquetFile(file).read(["stream", "kind", "first_event", "last_event", "at"])
    for name in ("first_event", "last_event", "at"):
        content = content.set_column(content.schema.get_field_index(name), name, content[name].cast(pa.int64()))
    marks: dict[str, Watermark] = {}
    for row in content.to_pylist():
        if row["kind"] == DEPARTURE:
            return None
        if row["first_event"] is not None:
            before = marks.get(row["stream"], Watermark(row["first_event"], row["last_event"], row["at"]))
            marks[row["stream"]] = Watermark(min(before.earliest, row["first_event"]),
                                             max(before.latest, row["last_event"]), max(before.arrived, row["at"]))
    return marks


def watermarks(warehouse: Warehouse, streams: Collection[str]) -> dict[str, Watermark]:
    """Of these streams, by name; one without a row is not there.

    Exact, since Delta's own file statistics are not: they keep milliseconds. The record of a departure says how far the
    rows go that are left; those before it still count some that are not.
    """
    rows = _ask(warehouse, f"""SELECT stream, min(epoch_us(first_event)), max(epoch_us(last_event)), max(epoch_us("at"))
        FROM files LEFT JOIN (
            SELECT stream, max(ingest) AS since FROM files WHERE kind = {string(DEPARTURE)} GROUP BY stream
        ) USING (stream)
        WHERE first_event IS NOT NULL AND ingest >= coalesce(since, 0) GROUP BY stream""")
    return {stream: Watermark(*numbers) for stream, *numbers in rows if stream in streams}


def late(warehouse: Warehouse) -> dict[str, int]:
    """By stream: rows that came late and were stored, since the beginning."""
    return dict(_ask(warehouse, "SELECT stream, CAST(sum(late) AS BIGINT) FROM files GROUP BY stream"))


def refused(warehouse: Warehouse, stream: str, most: int) -> tuple[int, dict[str, int]]:
    """Rows of a stream that are in quarantine, and how many for which reason: the most frequent reasons first, and only
    so many.
    """
    path = f"quarantine/{stream}"
    if not tables.exists(warehouse.path(path)):
        return 0, {}
    aside = warehouse.latest(path)
    reasons = ask(aside, "refused", f"""SELECT _reason, count(*) AS n FROM refused GROUP BY _reason
        ORDER BY n DESC, _reason LIMIT {most}""")
    return sum(file.rows for file in aside.files()), dict(reasons)


def counts(warehouse: Warehouse, like: str = "%") -> tuple[int, int, int]:
    """Rows on time, late and quarantined, of the inputs whose path is like this."""
    sums = ", ".join(f"CAST(coalesce(sum({name}), 0) AS BIGINT)" for name in ('"rows"', "late", "quarantined"))
    counted = _ask(warehouse, f"SELECT {sums} FROM files WHERE path LIKE {string(like)}")
    rows, late, quarantined = counted[0] if counted else (0, 0, 0)
    return rows, late, quarantined


def first_row(warehouse: Warehouse, streams: Collection[str]) -> int | None:
    """The earliest event time of these streams."""
    return min((watermark.earliest for watermark in watermarks(warehouse, streams).values()), default=None)


def append(table: Table, records: Iterable[Record], transaction: tuple[str, int]) -> None:
    """Adds rows, and makes one file of many in the same commit."""
    rows = []
    for record in records:
        row = asdict(record)
        times = {name: instant(row[name]) for name in _INSTANTS if row[name] is not None}
        rows.append({**row, **times})
    table.append(pa.Table.from_pylist(rows, FILES), transaction, most=MANY)


def _ask(warehouse: Warehouse, sql: str) -> list[tuple[Any, ...]]:
    return ask(files_table(warehouse), "files", sql)
