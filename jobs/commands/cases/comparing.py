"""Values of an answer as a person writes them and as a table has them; rows of two answers held against each other.

Numbers are compared as the column's type: whole ones and decimals to the last digit, doubles within TOLERANCE of the
larger one, instants as instants; NULL equals NULL, NaN equals NaN.
"""
from __future__ import annotations

import math
import re
import struct
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa

from jobs.commands.cases.model import Row, Value
from jobs.pipeline.lines import Entry, refused, text
from optimizer.expression.types import TIMESTAMP, Type
from optimizer.time import instant, micros

TOLERANCE = 1e-9         # relative, as the README promises of doubles
_WHOLE = re.compile(r"[+-]?\d+(\.0*)?")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_SPECIAL = re.compile(r"[+-]?\.?(nan|inf|infinity)", re.I)      # YAML writes them with a point before
_WRITTEN = {
    "boolean": "write true or false",
    "date": "write it as 2025-01-31",
    "timestamp": "write it as 2025-01-31T09:10:00Z (ISO 8601; no zone means UTC)"
}


def typed(entry: Entry, kind: Type) -> Value:
    """A value as it is written, of a column of this type."""
    if entry.empty:
        return None
    written = text(entry)
    try:
        return _value(written.strip() if kind.name != "string" else written, kind)
    except (ValueError, OverflowError):
        hint = _WRITTEN.get(kind.name, "write a whole number" if kind.integral else "write a number")
        raise refused(entry, "bad-value", f"{entry.where} is {written!r}, not a value of its type {kind}",
                      f"{hint}, or null") from None


def moment(entry: Entry) -> int:
    """An instant, in microseconds since 1970."""
    value = typed(entry, TIMESTAMP)
    if not isinstance(value, int):
        raise refused(entry, "bad-time", f"{entry.where} is empty, not a time", _WRITTEN["timestamp"])
    return value


def _value(written: str, kind: Type) -> Value:
    if kind.name == "string":
        return written
    if kind.name == "boolean":
        return _boolean(written)
    if kind.name == "date":
        return date.fromisoformat(written)
    if kind.name == "timestamp":
        return micros(datetime.fromisoformat(written.upper()))
    if kind.floating:
        return _floating(written, kind)
    if not (_WHOLE if kind.integral else _NUMBER).fullmatch(written):
        raise ValueError(written)
    return int(written.partition(".")[0]) if kind.integral else Decimal(written)


def _floating(written: str, kind: Type) -> float:
    """Of FLOAT the value that such a column has in its place."""
    if _SPECIAL.fullmatch(written):
        return float(written.replace(".", ""))
    if not _NUMBER.fullmatch(written):
        raise ValueError(written)
    value = float(written)
    return value if kind.name == "double" else float(struct.unpack("f", struct.pack("f", value))[0])


def _boolean(written: str) -> bool:
    if written.lower() not in ("true", "false"):
        raise ValueError(written)
    return written.lower() == "true"


def rows_of(answer: pa.Table, columns: Sequence[tuple[str, Type]]) -> list[Row]:
    """The rows of a table on these columns."""
    values = []
    for name, kind in columns:
        column = answer.column(name)
        values.append((column.cast(pa.int64()) if kind.name == "timestamp" else column).to_pylist())
    return list(zip(*values)) if values else [()] * answer.num_rows


def unmatched(expected: Iterable[Row], answer: Iterable[Row], columns: Sequence[tuple[str, Type]]
              ) -> tuple[list[Row], list[Row]]:
    """The expected rows that the answer lacks, and the rows of the answer that nobody expects."""
    floating = [kind.floating for _, kind in columns]
    rows_by_exact = defaultdict[Row, list[Row]](list)
    for row in answer:
        rows_by_exact[_exact(row, floating)].append(row)
    missing = []
    for row in expected:
        candidates = rows_by_exact.get(_exact(row, floating), [])
        place = next((i for i, candidate in enumerate(candidates) if _near(row, candidate, floating)), None)
        if place is None:
            missing.append(row)
        else:
            del candidates[place]
    return missing, [row for rows in rows_by_exact.values() for row in rows]


def _exact(row: Row, floating: Sequence[bool]) -> Row:
    return tuple(value for value, is_floating in zip(row, floating) if not is_floating)


def _near(row: Row, other: Row, floating: Sequence[bool]) -> bool:
    return all(_equal(a, b) for a, b, is_floating in zip(row, other, floating) if is_floating)


def _equal(a: Value, b: Value) -> bool:
    if not isinstance(a, float) or not isinstance(b, float):
        return a is None and b is None
    return math.isnan(a) and math.isnan(b) or math.isclose(a, b, rel_tol=TOLERANCE)


def shown(row: Row, columns: Sequence[tuple[str, Type]]) -> dict[str, object]:
    """A row by column, instants as datetimes."""
    return {name: instant(value) if kind.name == "timestamp" and isinstance(value, int) else value
            for (name, kind), value in zip(columns, row)}
