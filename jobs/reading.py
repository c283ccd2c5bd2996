"""One input file as rows that DuckDB can ask about: its columns as found, what makes a row no row, the row as JSON; it judges no value and writes nothing.

Parquet is read where it lies; lines of JSON and CSV are parsed once, into a temporary table of texts.
"""
from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from jobs import kernel, places
from jobs.kernel import Connection, quoted

LINE = 4 << 20                         # bytes a line may have
MARK = "mark"                          # the format of an input without rows: it says how far a source was read
BAD_LINE = "not a JSON object"
BAD_FIELDS = "wrong number of fields"


@dataclass(frozen=True)
class Input:
    """Something to take in once: `name` is what the ledger knows it by, `path` the file to read.

    `digest` is given where it is not to be the content's; `constants` are a table's partition values, which are not in its files.
    """

    kind: str                          # files, delta, kafka, hand
    name: str
    path: str
    format: str                        # parquet, json, csv, kafka
    size: int = 0
    modified: int = 0                  # nanoseconds
    digest: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """Rows of an input. `columns`: name → (SQL, DuckDB type). The others are SQL: a row's JSON, its origin, why it is none, its first undeclared key."""

    rows: str
    columns: Mapping[str, tuple[str, str]]
    row: str
    source: str
    broken: str = "NULL"
    unknown: str = "NULL"


class Broken(Exception):
    """The file as a whole cannot be taken."""


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def found(con: Connection, item: Input, declared: tuple[str, ...], sensitive: frozenset[str], part: tuple[int, int] | None = None) -> Found:
    """Opens an input; `part` is a range of a Parquet file's row numbers."""
    if item.format == "parquet":
        return _parquet(con, item, sensitive, part)
    if item.format not in _READERS:
        raise Broken("its name does not end as a Parquet, JSON lines or CSV file's")
    return _READERS[item.format](con, item, declared, sensitive)


def _parquet(con: Connection, item: Input, sensitive: frozenset[str], part: tuple[int, int] | None) -> Found:
    file = f"read_parquet({kernel.files(con, (item.path,))}, hive_partitioning=false, union_by_name=false)"
    types = con.execute(f"DESCRIBE SELECT * FROM {file}").fetchall()
    columns = {name: (_own(identifier(name), kind), kind) for name, kind, *_ in types}
    columns.update({k: ("CAST(NULL AS VARCHAR)" if v is None else quoted(v), "VARCHAR") for k, v in item.constants.items()})
    rows = file if part is None else f"(SELECT * FROM {file} WHERE file_row_number >= {part[0]} AND file_row_number < {part[1]})"
    return Found(rows, columns, _row(columns, sensitive), quoted(item.name))


def _own(column: str, kind: str) -> str:
    """A column as its rows tell it. Footers leave NaN out of their bounds and the engine believes them: it would take NaN for a number between the two."""
    return f"CASE WHEN isnan({column}) THEN CAST('NaN' AS {kind}) ELSE {column} END" if kind in ("FLOAT", "DOUBLE") else column


def _csv(con: Connection, item: Input, declared: tuple[str, ...], sensitive: frozenset[str]) -> Found:
    """Fields of a line that does not fit the header are nobody's: the line is kept as it came."""
    delimiter, quote, null = (item.options.get(k, d) for k, d in (("delimiter", ","), ("quote", '"'), ("null", "")))
    with places.fetched(item.path) as path:
        names = _header(path, delimiter, quote)
        fields = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(names)))
        con.execute(f"""CREATE OR REPLACE TEMP TABLE found AS SELECT *, CAST(NULL AS VARCHAR) AS line FROM read_csv(
            {quoted(path)}, columns={{{fields}}}, delim={quoted(delimiter)}, quote={quoted(quote)}, escape={quoted(quote)}, nullstr={quoted(null)},
            header=true, auto_detect=false, allow_quoted_nulls=false, store_rejects=true, max_line_size={LINE})""")
    con.execute("INSERT INTO found BY NAME SELECT any_value(csv_line) AS line FROM reject_errors GROUP BY scan_id, file_id, line, line_byte_position")
    con.execute("DROP TABLE reject_errors; DROP TABLE reject_scans")
    columns = {name: (f"c{i}", "VARCHAR") for i, name in enumerate(names)}
    row = f"CASE WHEN line IS NULL THEN {_row(columns, sensitive)} ELSE {_hidden('to_json(line)', sensitive)} END"
    return Found("found", columns, row, quoted(item.name), f"CASE WHEN line IS NOT NULL THEN '{BAD_FIELDS}' END")


def _header(path: str, delimiter: str, quote: str) -> list[str]:
    opened = gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")
    with opened as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        names = next(csv.reader(text, delimiter=delimiter, quotechar=quote), [])
    if not names:
        raise Broken("it has no header line")
    if len(set(names)) < len(names):
        raise Broken(f"its header names {next(n for n in names if names.count(n) > 1)} twice")
    return names


def _json(con: Connection, item: Input, declared: tuple[str, ...], sensitive: frozenset[str]) -> Found:
    """Each line as one text (no JSON has the byte 1 in it), so that a broken line is one bad row."""
    with places.fetched(item.path) as path:
        lines = f"""read_csv({quoted(path)}, columns={{'line': 'VARCHAR'}}, delim='\x01', quote='', escape='', nullstr='', header=false, auto_detect=false,
            max_line_size={LINE}, strict_mode=false)"""
        return _objects(con, f"SELECT line, {quoted(item.name)} AS source FROM {lines} WHERE line IS NOT NULL", declared, sensitive)


def _kafka(con: Connection, item: Input, declared: tuple[str, ...], sensitive: frozenset[str]) -> Found:
    """Messages as the staging wrote them; a message without a value is a row without columns."""
    file = f"read_parquet({kernel.files(con, (item.path,))})"
    messages = f"SELECT coalesce(TRY(decode(value)), CASE WHEN value IS NULL THEN '{{}}' ELSE CAST(value AS VARCHAR) END) AS line, partition FROM {file}"
    return _objects(con, f"SELECT line, {quoted(item.name + '/')} || partition AS source FROM ({messages})", declared, sensitive)


def _objects(con: Connection, lines: str, declared: tuple[str, ...], sensitive: frozenset[str]) -> Found:
    """JSON texts: declared keys as texts of their own, and the first key that is not declared and has a value."""
    shape = "{" + ", ".join(f'"{name}": "VARCHAR"' for name in declared) + "}"
    picked = "".join(f", struct_extract(o, {quoted(name)}) AS c{i}" for i, name in enumerate(declared))
    known = "[" + ", ".join(map(quoted, declared)) + "]"
    pointer = "'/' || replace(replace(k, '~', '~0'), '/', '~1')"
    strange = f"list_filter(list_filter(json_keys(line), lambda k: NOT list_contains({known}, k)), lambda k: json_type(line, {pointer}) <> 'NULL')[1]"
    con.execute(f"""CREATE OR REPLACE TEMP TABLE found AS SELECT line, source, good{picked}, CASE WHEN good THEN {strange} END AS strange FROM (
        SELECT line, source, good, CASE WHEN good THEN json_transform(line, {quoted(shape)}) END AS o FROM (
        SELECT line, source, CASE WHEN json_valid(line) THEN json_type(line) = 'OBJECT' ELSE false END AS good FROM ({lines})))""")
    columns = {name: (f"c{i}", "VARCHAR") for i, name in enumerate(declared)}
    row = f"CASE WHEN good THEN {_redacted(sensitive)} ELSE {_hidden('to_json(line)', sensitive)} END"
    return Found("found", columns, row, "source", f"CASE WHEN NOT good THEN '{BAD_LINE}' END", "strange")


def _redacted(sensitive: frozenset[str]) -> str:
    text = "CAST(line AS JSON)"
    for name in sorted(sensitive):
        text = f"CASE WHEN json_exists(line, '$.\"{name}\"') THEN json_merge_patch({text}, '{{\"{name}\":\"***\"}}') ELSE {text} END"
    return text


def _hidden(text: str, sensitive: frozenset[str]) -> str:
    """A line that could not be taken apart may show what must not be seen."""
    return "to_json('***')" if sensitive else text


def _row(columns: Mapping[str, tuple[str, str]], sensitive: frozenset[str]) -> str:
    """A row as JSON; what JSON numbers cannot hold is text."""
    def member(name: str, sql: str, kind: str) -> str:
        if name in sensitive:
            return f"{identifier(name)} := CASE WHEN {sql} IS NOT NULL THEN '***' END"
        if kind.startswith(("DECIMAL", "HUGEINT", "UHUGEINT")) and not kind.endswith("]"):
            return f"{identifier(name)} := CAST({sql} AS VARCHAR)"
        if kind in ("FLOAT", "DOUBLE"):
            return f"{identifier(name)} := CASE WHEN isfinite({sql}) THEN to_json({sql}) ELSE to_json(CAST({sql} AS VARCHAR)) END"
        return f"{identifier(name)} := {sql}"

    return f"to_json(struct_pack({', '.join(member(name, *c) for name, c in columns.items())}))"


_READERS: dict[str, Callable[[Connection, Input, tuple[str, ...], frozenset[str]], Found]] = {"csv": _csv, "json": _json, "kafka": _kafka}
