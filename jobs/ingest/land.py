"""What a task does with one input file: digest it, check every row in SQL, write the good rows and the bad ones as a
file each.

It commits nothing, so a task that runs twice leaves only files that nobody knows.
"""
from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass, replace
from typing import Any

from jobs.engine import kernel
from jobs.engine.kernel import Connection
from jobs.ingest.conversions import Conversion, conversion
from jobs.ingest.reading import BAD_LINE, MARK, BrokenFile, IngestInput, InputRows, found, refusal
from jobs.pipeline.model import Stream
from jobs.storage import disk, failpoints, places, tables
from jobs.storage.places import size_and_time
from jobs.storage.tables import File
from optimizer.errors import failed
from optimizer.expression.casting import sql_type
from optimizer.expression.dialect import identifier, string

NEVER = -(2**62)                       # a last boundary before every row's


@dataclass(frozen=True)
class LandOrder:
    """One file, or a range of rows of one, and all that judging it takes; times in microseconds."""

    stream: Stream
    input: IngestInput
    root: str                          # the stream table's folder
    aside: str                         # the quarantine table's
    ingest: int
    batch: int
    last: int | None                   # the last boundary that has begun
    now: int
    part: tuple[int, int] | None = None
    known: frozenset[str] = frozenset()      # digests that this path had before
    # expectations of a row: a reason, and SQL over its values that is true where it fails
    rules: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Landed:
    """`rows` are those on time.

    `events` and `boundaries` the least and greatest of all stored rows; `refused` says why the file was not taken.
    """

    input: IngestInput
    good: File | None = None
    bad: File | None = None
    rows: int = 0
    late: int = 0
    quarantined: int = 0
    events: tuple[int, int] | None = None
    boundaries: tuple[int, int] | None = None
    refused: str | None = None
    known: bool = False                # its content came before: nothing was written
    ignored: str = ""                  # what of the file was left out


def land(item: LandOrder) -> Landed:
    failpoints.at("ingest.before-land")
    if item.input.format == MARK:
        return Landed(item.input)
    try:
        return _land(item)
    except (BrokenFile, OSError, kernel.Error) as error:
        kernel.discard()
        if disk.code_of(error) == "disk-full":
            raise disk.explained(error, tempfile.gettempdir()) or error from error
        if isinstance(error, kernel.EXHAUSTED):
            hint = "give tasks more memory with FOREBAY_TASK_MEMORY, or cut the file into smaller ones"
            message = f"{item.input.name} could not be taken in: it needs more memory than a task has"
            raise failed("out-of-resources", message, hint) from error
        return Landed(item.input, refused=refusal(error, item.input))


def _land(item: LandOrder) -> Landed:
    size, modified = size_and_time(item.input.path)
    source = replace(item.input, size=size, modified=modified, digest=item.input.digest or _digest(item))
    if source.digest in item.known:
        return Landed(source, known=True)
    con = kernel.shared()
    try:
        landed = _judged(con, item, source)
    finally:
        con.close()
    if size_and_time(item.input.path) != (size, modified):
        _forget(item, landed)
        raise BrokenFile("it changed while it was read")
    failpoints.at("ingest.after-land")
    return landed


def _judged(con: Connection, item: LandOrder, source: IngestInput) -> Landed:
    rows = found(con, source, tuple(item.stream.columns), item.stream.sensitive, item.part)
    if item.stream.event_time not in rows.columns:
        raise BrokenFile(f"it has no column {item.stream.event_time}, the event time; it has {', '.join(rows.columns)}")
    values = {name: _converted(rows, name, item) for name in item.stream.columns}
    judged = _verdict(rows, values, item)
    counts = con.execute(_COUNTS.format(judged=judged)).fetchall()
    good = [c for c in counts if c[0] is None]
    bad = sum(c[2] for c in counts if c[0] is not None)
    if bad and all(c[0] == BAD_LINE for c in counts):
        raise BrokenFile("no line of it is a JSON object")
    on_time, late = (sum(c[2] for c in good if bool(c[1]) is is_late) for is_late in (False, True))
    landed = Landed(source, rows=on_time, late=late, quarantined=bad, ignored=rows.ignored)
    if good:
        landed = replace(landed, events=(min(c[3] for c in good), max(c[4] for c in good)),
                         boundaries=(min(c[5] for c in good), max(c[6] for c in good)))
        order = "" if _ordered(landed, good) else "ORDER BY _boundary"
        landed = replace(landed, good=_write(con, item.root, f"{_good(judged, item, bad > 0)} {order}"))
        failpoints.at("ingest.after-good")
    return replace(landed, bad=_write(con, item.aside, _bad(judged, item))) if bad else landed


def _ordered(landed: Landed, good: list[tuple[Any, ...]]) -> bool:
    """Whether the rows already lie by boundary, as far as the counts tell."""
    assert landed.boundaries is not None
    return landed.boundaries[0] == landed.boundaries[1] or not landed.quarantined and len(good) == 1 and bool(
        good[0][7])


_COUNTS = """SELECT reason, late, count(*), min(event), max(event), min(boundary), max(boundary), bool_and(ordered)
    FROM (
    SELECT reason, late, event, boundary, boundary >= coalesce(lag(boundary) OVER (), 0) AS ordered FROM ({judged}))
    GROUP BY ALL"""


def _converted(rows: InputRows, name: str, item: LandOrder) -> Conversion:
    """A declared column the file does not have is NULL."""
    if name not in rows.columns:
        return Conversion(f"CAST(NULL AS {sql_type(item.stream.columns[name], 'duckdb')})", "")
    raw, kind = rows.columns[name]
    return conversion(kind, item.stream.columns[name], raw)


def _verdict(rows: InputRows, values: dict[str, Conversion], item: LandOrder) -> str:
    """Each row with its values (v0, v1 …), event time, boundary and the reason against it."""
    columns = ", ".join(f"{c.value} AS v{i}" for i, c in enumerate(values.values()))
    bad = "".join(f" WHEN {c.bad} THEN {string(f'bad type: column {name}')}" for name, c in values.items() if c.bad)
    event = f"v{list(values).index(item.stream.event_time)}"
    last = NEVER if item.last is None else item.last
    return f"""SELECT *, CASE WHEN flaw IS NOT NULL THEN flaw WHEN event IS NULL THEN 'event time is NULL'
        WHEN event < 0 THEN 'event time before 1970'
        WHEN event > {item.now + item.stream.ahead} THEN 'event time ahead of the clock'
        {_strange(rows, item)}{_unexpected(item)}
        WHEN late AND {last} - event > {item.stream.lateness} THEN 'too late' END AS reason FROM (
        SELECT *, due <= {last} AS late, CASE WHEN due <= {last} THEN {last + item.batch} ELSE due END AS boundary FROM
        (
        SELECT *, event - event % {item.batch} + {item.batch} AS due FROM (
        SELECT *, epoch_us({event}) AS event FROM (
        SELECT {columns}, {rows.row} AS "row", {rows.source} AS source, {rows.unknown} AS strange,
        {_undeclared(rows, item)} AS undeclared,
            CASE WHEN ({rows.broken}) IS NOT NULL THEN {rows.broken}{bad} END AS flaw FROM {rows.rows}))))"""


def _undeclared(rows: InputRows, item: LandOrder) -> str:
    others = [name for name in rows.columns if name not in item.stream.columns]
    tests = "".join(f" WHEN {rows.columns[name][0]} IS NOT NULL THEN {string(name)}" for name in others)
    return f"CASE{tests} END" if tests else "NULL"


def _strange(rows: InputRows, item: LandOrder) -> str:
    if item.stream.unknown_columns == "drop":
        return ""
    return "WHEN coalesce(strange, undeclared) IS NOT NULL THEN 'unknown column ' || coalesce(strange, undeclared)"


def _unexpected(item: LandOrder) -> str:
    return "".join(f" WHEN {fails} THEN {string(reason)}" for reason, fails in item.rules)


def _good(judged: str, item: LandOrder, mixed: bool) -> str:
    columns = ", ".join(f"v{i} AS {identifier(name)}" for i, name in enumerate(item.stream.columns))
    where = " WHERE reason IS NULL" if mixed else ""
    return (f"SELECT {columns}, make_timestamptz(boundary) AS _boundary, source AS _source, CAST({item.ingest} AS "
            f"BIGINT) AS _ingest FROM ({judged}){where}")


def _bad(judged: str, item: LandOrder) -> str:
    # The engine knows that some of these rows are never NULL and would write so; files of one table are to have one
    # schema.
    row = """nullif(CAST("row" AS VARCHAR), '')"""
    return f"""SELECT reason AS _reason, {row} AS _row, source AS _source, CAST({item.ingest} AS BIGINT) AS _ingest,
        make_timestamptz({item.now}) AS _at FROM ({judged}) WHERE reason IS NOT NULL"""


def _write(con: Connection, root: str, sql: str) -> File:
    name = tables.unique("rows")
    with disk.writing(root), places.draft(root) as here:
        path = os.path.join(here, name)
        try:
            con.execute(f"COPY ({sql}) TO {string(path)} (FORMAT parquet, COMPRESSION snappy)")
        except BaseException:
            if os.path.exists(path):
                os.unlink(path)
            raise
        return tables.describe(here, name)


def _digest(item: LandOrder) -> str | None:
    """Of the whole file, by the task that has its first rows."""
    if item.part is not None and item.part[0] > 0:
        return None
    with places.opened(item.input.path) as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _forget(item: LandOrder, landed: Landed) -> None:
    for root, file in ((item.root, landed.good), (item.aside, landed.bad)):
        if file is not None:
            places.delete(places.join(root, file.path))
