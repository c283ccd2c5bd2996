"""One input file as rows that DuckDB can ask about: its columns as found, what makes a row no row, the row as JSON; it
judges no value and writes nothing.

Parquet is read where it lies; lines of JSON and CSV are parsed once, into a temporary table of texts.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from jobs.engine import kernel
from jobs.engine.kernel import Connection
from jobs.ingest import texts
from jobs.ingest.texts import BAD_LONG, LINE, BrokenFile, Dialect, Part
from jobs.storage import places
from optimizer.errors import first_line
from optimizer.expression.dialect import identifier, string

__all__ = ["BAD_LINE", "MARK", "BrokenFile", "IngestInput", "InputRows", "identifier", "open_input"]
MARK = "mark"                          # the format of an input without rows: it says how far a source was read
BAD_LINE = "not a JSON object"
# Of JSON lines, the slowest format, that one process takes in. Data frames have no size, and are there already.
BYTES_A_SECOND = 10e6


@dataclass(frozen=True)
class IngestInput:
    """Something to take in once: `name` is what the ledger knows it by, `path` the file to read.

    `digest` is given where it is not to be the content's; `constants` are a table's partition values, which are not in
    its files.
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
class InputRows:
    """Rows of an input. `columns`: name → (SQL, DuckDB type); `ignored` says what of the file is left out.

    The others are SQL: a row's JSON, its origin, why it is none, its first undeclared key.
    """

    rows: str
    columns: Mapping[str, tuple[str, str]]
    row: str
    source: str
    broken: str = "NULL"
    unknown: str = "NULL"
    ignored: str = ""


def open_input(con: Connection, item: IngestInput, declared: tuple[str, ...], sensitive: frozenset[str],
               part: tuple[int, int] | None = None) -> InputRows:
    """Opens an input; `part` is a range of a Parquet file's row numbers."""
    if item.format == "parquet":
        return _parquet(con, item, sensitive, part)
    if item.format not in _READERS:
        raise BrokenFile("its name does not end as a Parquet, JSON lines or CSV file's")
    return _READERS[item.format](con, item, declared, sensitive)


def _parquet(con: Connection, item: IngestInput, sensitive: frozenset[str], part: tuple[int, int] | None) -> InputRows:
    file = f"read_parquet({kernel.files(con, (item.path,))}, union_by_name = false)"
    types = con.execute(f"DESCRIBE SELECT * FROM {file}").fetchall()
    _distinct_in(con, item, [name for name, *_ in types])
    columns = {}
    for name, kind, *_ in types:
        column = identifier(name)
        if kind in ("FLOAT", "DOUBLE"):
            # Footers leave NaN out of their bounds and the engine believes them: it would take NaN for a number between
            # the two.
            column = f"CASE WHEN isnan({column}) THEN CAST('NaN' AS {kind}) ELSE {column} END"
        columns[name] = column, kind
    for name, value in item.constants.items():
        columns[name] = "CAST(NULL AS VARCHAR)" if value is None else string(value), "VARCHAR"
    rows = file
    if part is not None:
        rows = f"(SELECT * FROM {file} WHERE file_row_number >= {part[0]} AND file_row_number < {part[1]})"
    return InputRows(rows, columns, row_as_json(columns, sensitive), string(item.name))


def _distinct_in(con: Connection, item: IngestInput, names: Sequence[str]) -> None:
    """The engine numbers columns of one name, and those without one: where a name looks so, the file is asked for its
    names.
    """
    if any(re.fullmatch(r"C\d+|.*_\d+", name, re.DOTALL) for name in names):
        schema = f"parquet_schema({kernel.listed(con, (item.path,))})"
        footer = con.execute(f"SELECT name, coalesce(num_children, 0) FROM {schema}").fetchall()
        inner, top = 0, []
        for name, children in footer[1:]:
            top += [] if inner else [name]
            inner = max(inner - 1, 0) + children
        if "" in top:
            raise BrokenFile(f"column {top.index('') + 1} of {len(top)} has no name")
        _distinct(top)


def _csv(con: Connection, item: IngestInput, declared: tuple[str, ...], sensitive: frozenset[str]) -> InputRows:
    """A line that does not fit the header has no columns: it is stored whole."""
    dialect = Dialect(**item.options)
    with places.fetched(item.path) as path:
        survey, names = texts.survey(path, dialect), texts.header(path, dialect)
        named = _named(names)
        if survey.stray or _filled(con, texts.rows(path, len(names), dialect), len(names)) != survey.lines - 1:
            _filled(con, texts.strict_rows(path, len(names), dialect), len(names))
    columns = {name: (f"c{i}", "VARCHAR") for i, name in named.items()}
    row = (f"CASE WHEN line IS NULL THEN {row_as_json(columns, sensitive)} "
           f"ELSE {_hidden('to_json(line)', sensitive)} END")
    ignored = "its first column has no name, as an index has, and is left out" if len(named) < len(names) else ""
    return InputRows("found", columns, row, string(item.name), "reason", ignored=ignored)


def _named(names: Sequence[str]) -> dict[int, str]:
    """The columns by their place. The first may have no name: pandas writes an index so."""
    named = {i: name for i, name in enumerate(names) if i or name}
    if "" in named.values() or not named:
        raise BrokenFile(f"column {names.index('', 1) + 1 if named else 1} of {len(names)} has no name")
    _distinct(list(named.values()))
    return named


def _distinct(names: Sequence[str]) -> None:
    """Names that differ only in case are one name to the engines."""
    by_lower: dict[str, str] = {}
    for name in names:
        other = by_lower.get(name.lower())
        if other is not None:
            alike = f"it names the column {name} twice"
            raise BrokenFile(alike if other == name else f"its columns {other} and {name} differ only in case")
        by_lower[name.lower()] = name


def _filled(con: Connection, parts: Iterable[Part], width: int) -> int:
    """Puts the parts of a file into a table, and counts rows and bad lines."""
    count, columns = 0, ", ".join(f"c{i} VARCHAR" for i in range(width))
    con.execute(f"CREATE OR REPLACE TEMP TABLE found ({columns}, line VARCHAR, reason VARCHAR)")
    for part in parts:
        count += part.total
        if part.rows is not None and part.rows.num_rows:
            con.register("part", pa.Table.from_batches([part.rows]))
            con.execute("INSERT INTO found BY NAME FROM part")
        if part.bad:
            lines_and_reasons = [list(column) for column in zip(*part.bad)]
            con.execute("INSERT INTO found BY NAME SELECT unnest(?) AS line, unnest(?) AS reason", lines_and_reasons)
    return count


def _json(con: Connection, item: IngestInput, declared: tuple[str, ...], sensitive: frozenset[str]) -> InputRows:
    """Each line as one text, so that a broken line is one bad row."""
    with places.fetched(item.path) as path:
        parts = ({"line": part} for part in texts.lines(path))
        lines = f"SELECT line, {string(item.name)} AS source FROM part WHERE line <> ''"
        return _objects(con, lines, declared, sensitive, parts)


def _kafka(con: Connection, item: IngestInput, declared: tuple[str, ...], sensitive: frozenset[str]) -> InputRows:
    """Messages as the staging wrote them; a message without a value is a row without columns."""
    file = f"read_parquet({kernel.files(con, (item.path,))})"
    messages = (f"SELECT coalesce(TRY(decode(value)), CASE WHEN value IS NULL THEN '{{}}' ELSE CAST(value AS VARCHAR) "
                f"END) AS line, partition FROM {file}")
    return _objects(con, f"SELECT line, {string(item.name + '/')} || partition AS source FROM ({messages})", declared,
                    sensitive)


def _objects(con: Connection, lines: str, declared: tuple[str, ...], sensitive: frozenset[str],
             parts: Iterable[Mapping[str, pa.Array]] = ({},)) -> InputRows:
    """JSON texts: declared keys as texts of their own, and the first key that is not declared and has a value.

    `lines` is asked of each part.
    """
    shape = "{" + ", ".join(f'"{name}": "VARCHAR"' for name in declared) + "}"
    picked = "".join(f", struct_extract(o, {string(name)}) AS c{i}" for i, name in enumerate(declared))
    declared_list = "[" + ", ".join(map(string, declared)) + "]"
    pointer = "'/' || replace(replace(k, '~', '~0'), '/', '~1')"
    undeclared = f"list_filter(json_keys(line), lambda k: NOT list_contains({declared_list}, k))"
    strange = f"list_filter({undeclared}, lambda k: json_type(line, {pointer}) <> 'NULL')[1]"
    select = f"""SELECT line, source, good{picked}, CASE WHEN good THEN {strange} END AS strange FROM (
        SELECT line, source, good, CASE WHEN good THEN json_transform(line, {string(shape)}) END AS o FROM (
        SELECT line, source, CASE WHEN strlen(line) <= {LINE} AND json_valid(line) THEN json_type(line) = 'OBJECT' ELSE
        false END AS good
        FROM ({lines})))"""
    for i, part in enumerate(parts):
        if part:
            con.register("part", pa.Table.from_pydict(part))
        con.execute(f"INSERT INTO found {select}" if i else f"CREATE OR REPLACE TEMP TABLE found AS {select}")
    columns = {name: (f"c{i}", "VARCHAR") for i, name in enumerate(declared)}
    row = f"CASE WHEN good THEN {_redacted(sensitive)} ELSE {_hidden('to_json(line)', sensitive)} END"
    broken = f"CASE WHEN good THEN NULL WHEN strlen(line) > {LINE} THEN '{BAD_LONG}' ELSE '{BAD_LINE}' END"
    return InputRows("found", columns, row, "source", broken, "strange")


def _redacted(sensitive: frozenset[str]) -> str:
    text = "CAST(line AS JSON)"
    for name in sorted(sensitive):
        text = (f"CASE WHEN json_exists(line, '$.\"{name}\"') THEN json_merge_patch({text}, '{{\"{name}\":\"***\"}}') "
                f"ELSE {text} END")
    return text


def _hidden(text: str, sensitive: frozenset[str]) -> str:
    """The text, or *** where any column is sensitive: a line that could not be taken apart may hold its values."""
    return "to_json('***')" if sensitive else text


def row_as_json(columns: Mapping[str, tuple[str, str]], sensitive: frozenset[str]) -> str:
    """A row as JSON, under the names as they stand in the file; what JSON numbers cannot hold is text."""
    def value(name: str, sql: str, kind: str) -> str:
        if name in sensitive:
            return f"CASE WHEN {sql} IS NOT NULL THEN '***' END"
        if kind.startswith(("DECIMAL", "HUGEINT", "UHUGEINT")) and not kind.endswith("]"):
            return f"CAST({sql} AS VARCHAR)"
        if kind in ("FLOAT", "DOUBLE"):
            return f"CASE WHEN isfinite({sql}) THEN to_json({sql}) ELSE to_json(CAST({sql} AS VARCHAR)) END"
        return sql

    return f"json_object({', '.join(f'{string(name)}, {value(name, *c)}' for name, c in columns.items())})"


_READERS: dict[str, Callable[[Connection, IngestInput, tuple[str, ...], frozenset[str]], InputRows]] = {
    "csv": _csv,
    "json": _json,
    "kafka": _kafka
}


_DAMAGED = {
    "parquet": "it is no Parquet file, or one that is damaged, cut off, encrypted or of an unsupported kind",
    "json": "its lines cannot be read as JSON",
    "csv": "its lines cannot be read as CSV",
    "kafka": "its messages cannot be read",
}


def refusal(error: BaseException, item: IngestInput) -> str:
    """Why a file is not taken: never in an engine's own words."""
    if isinstance(error, BrokenFile):
        return str(error)
    if isinstance(error, kernel.PROGRAM_ERRORS):
        return "its columns have names or types that no statement can be made of; leave out those that are not declared"
    if isinstance(error, OSError):
        return f"it cannot be read: {(error.strerror or first_line(error)).lower()}"
    return _DAMAGED[item.format]
