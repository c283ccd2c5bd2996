"""What a task does with one input file: digest it, check every row in SQL, write the good rows and the bad ones as a
file each.

It commits nothing, so a task that runs twice only leaves files that no table names.
"""
from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass, replace
from typing import NamedTuple

from jobs.engine import kernel
from jobs.engine.kernel import Connection
from jobs.ingest.conversions import Conversion, conversion
from jobs.ingest.reading import BAD_LINE, MARK, BrokenFile, IngestInput, InputRows, open_input, refusal
from jobs.pipeline.model import Stream
from jobs.storage import disk, failpoints, places, tables
from jobs.storage.places import size_and_time
from jobs.storage.tables import File
from optimizer.errors import failed
from optimizer.expression.casting import sql_type
from optimizer.expression.dialect import identifier, string

NEVER = -(2**62)                       # a last boundary before every row's
CHANGED = ("its content changed since it was taken in under this name, and its rows would count twice; three ways out: "
           "put the new rows into a file of another name; put the file back as it was; write `changed_files: add` into "
           "the stream's source, which takes a changed file in whole once more (`replace`, its rows in the place of "
           "those before, is not there yet)")


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
    known_digests: frozenset[str] = frozenset()      # of contents that this path had before
    # expectations of a row: a reason, and SQL over its values that is true where it fails
    rules: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Landed:
    """How a file, or a range of its rows, was taken in; `refused` says why it was not.

    `rows` are those on time; `events` and `boundaries` are the least and the greatest of all stored rows.
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
    came_before: bool = False          # with this content: nothing was written
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
    if source.digest in item.known_digests:
        return Landed(source, came_before=True)
    if source.digest and item.known_digests and _refuses_changes(item):
        return Landed(source, refused=CHANGED)
    con = kernel.shared()
    try:
        landed = _judge_and_write(con, item, source)
    finally:
        con.close()
    if size_and_time(item.input.path) != (size, modified):
        forget(item, landed)
        raise BrokenFile("it changed while it was read")
    failpoints.at("ingest.after-land")
    return landed


def _refuses_changes(item: LandOrder) -> bool:
    """Other kinds of input have names of which the content is another each time, as a topic's."""
    source = item.stream.source
    return item.input.kind == "files" and (source is None or source.changed_files == "refuse")


class _RowCount(NamedTuple):
    """Rows of a file with one reason against them (None: they are good), on time or late; a row of _COUNTS."""

    reason: str | None
    late: bool | None
    rows: int
    first_event: int
    last_event: int
    first_boundary: int
    last_boundary: int
    ordered: bool


def _judge_and_write(con: Connection, item: LandOrder, source: IngestInput) -> Landed:
    """Good rows into the stream's table, bad ones into its quarantine; nothing is committed."""
    rows = open_input(con, source, tuple(item.stream.columns), item.stream.sensitive, item.part)
    if item.stream.event_time not in rows.columns:
        raise BrokenFile(f"it has no column {item.stream.event_time}, the event time; it has {', '.join(rows.columns)}")
    judged = _judged_sql(rows, _conversions(rows, item), item)
    counts = [_RowCount(*row) for row in con.execute(_COUNTS.format(judged=judged)).fetchall()]
    good = [count for count in counts if count.reason is None]
    bad = sum(count.rows for count in counts if count.reason is not None)
    if bad and all(count.reason == BAD_LINE for count in counts):
        raise BrokenFile("no line of it is a JSON object")
    late = sum(count.rows for count in good if count.late)
    on_time = sum(count.rows for count in good) - late
    landed = Landed(source, rows=on_time, late=late, quarantined=bad, ignored=rows.ignored)
    if good:
        first, last = min(count.first_boundary for count in good), max(count.last_boundary for count in good)
        events = min(count.first_event for count in good), max(count.last_event for count in good)
        lies_by_boundary = first == last or not bad and len(good) == 1 and good[0].ordered
        order = "" if lies_by_boundary else "ORDER BY _boundary"
        file = write_rows(con, item.root, f"{_good_rows(judged, item, bad > 0)} {order}")
        landed = replace(landed, events=events, boundaries=(first, last), good=file)
        failpoints.at("ingest.after-good")
    return replace(landed, bad=write_rows(con, item.aside, _bad_rows(judged, item))) if bad else landed


_COUNTS = """SELECT reason, late, count(*), min(event), max(event), min(boundary), max(boundary), bool_and(ordered)
    FROM (
    SELECT reason, late, event, boundary, boundary >= coalesce(lag(boundary) OVER (), 0) AS ordered FROM ({judged}))
    GROUP BY ALL"""


def _conversions(rows: InputRows, item: LandOrder) -> dict[str, Conversion]:
    """By declared column; one that the file does not have is NULL."""
    conversions = {}
    for name, declared in item.stream.columns.items():
        if name in rows.columns:
            raw, raw_type = rows.columns[name]
            conversions[name] = conversion(raw_type, declared, raw)
        else:
            conversions[name] = Conversion(f"CAST(NULL AS {sql_type(declared, 'duckdb')})", "")
    return conversions


def _judged_sql(rows: InputRows, values: dict[str, Conversion], item: LandOrder) -> str:
    """Each row with its values (v0, v1 …), event time, boundary and the reason against it."""
    columns = ", ".join(f"{c.value} AS v{i}" for i, c in enumerate(values.values()))
    bad = "".join(f" WHEN {c.bad} THEN {string(f'bad type: column {name}')}" for name, c in values.items() if c.bad)
    event = f"v{list(values).index(item.stream.event_time)}"
    last = NEVER if item.last is None else item.last
    unknown_column = ""
    if item.stream.unknown_columns != "drop":
        unknown_column = ("WHEN coalesce(strange, undeclared) IS NOT NULL "
                          "THEN 'unknown column ' || coalesce(strange, undeclared)")
    others = [name for name in rows.columns if name not in item.stream.columns]
    tests = "".join(f" WHEN {rows.columns[name][0]} IS NOT NULL THEN {string(name)}" for name in others)
    first_undeclared = f"CASE{tests} END" if tests else "NULL"      # column of the file with a value in the row
    unexpected = "".join(f" WHEN {fails} THEN {string(reason)}" for reason, fails in item.rules)
    return f"""SELECT *, CASE WHEN flaw IS NOT NULL THEN flaw WHEN event IS NULL THEN 'event time is NULL'
        WHEN event < 0 THEN 'event time before 1970'
        WHEN event > {item.now + item.stream.ahead} THEN 'event time ahead of the clock'
        {unknown_column}{unexpected}
        WHEN late AND {last} - event > {item.stream.lateness} THEN 'too late' END AS reason FROM (
        SELECT *, due <= {last} AS late, CASE WHEN due <= {last} THEN {last + item.batch} ELSE due END AS boundary FROM
        (
        SELECT *, event - event % {item.batch} + {item.batch} AS due FROM (
        SELECT *, epoch_us({event}) AS event FROM (
        SELECT {columns}, {rows.row} AS "row", {rows.source} AS source, {rows.unknown} AS strange,
        {first_undeclared} AS undeclared,
            CASE WHEN ({rows.broken}) IS NOT NULL THEN {rows.broken}{bad} END AS flaw FROM {rows.rows}))))"""


def _good_rows(judged: str, item: LandOrder, mixed: bool) -> str:
    columns = ", ".join(f"v{i} AS {identifier(name)}" for i, name in enumerate(item.stream.columns))
    where = " WHERE reason IS NULL" if mixed else ""
    return (f"SELECT {columns}, make_timestamptz(boundary) AS _boundary, source AS _source, CAST({item.ingest} AS "
            f"BIGINT) AS _ingest FROM ({judged}){where}")


def _bad_rows(judged: str, item: LandOrder) -> str:
    # The engine knows that some of these rows are never NULL and would write so; files of one table are to have one
    # schema.
    row = """nullif(CAST("row" AS VARCHAR), '')"""
    return f"""SELECT reason AS _reason, {row} AS _row, source AS _source, CAST({item.ingest} AS BIGINT) AS _ingest,
        make_timestamptz({item.now}) AS _at FROM ({judged}) WHERE reason IS NOT NULL"""


def write_rows(con: Connection, root: str, sql: str) -> File:
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


def forget(item: LandOrder, landed: Landed) -> None:
    """Deletes what was written of an input that is not to be taken."""
    for root, file in ((item.root, landed.good), (item.aside, landed.bad)):
        if file is not None:
            places.delete(places.join(root, file.path))
