"""How a value found in a file becomes one of a declared type, as DuckDB SQL that is NULL where it cannot; nothing is
guessed, and nothing is read here.

A fraction is no integer; a number out of range, NaN for a decimal, an infinite instant or one outside the years 1 to
9999 is no value. Decimals are rounded to their scale, halves away from zero, nanoseconds cut to microseconds towards
the past. Instants without an offset are UTC.
"""
from __future__ import annotations

from dataclasses import dataclass

from optimizer.expression.casting import sql_type
from optimizer.expression.types import Type

SIGNED = {"TINYINT": 1, "SMALLINT": 2, "INTEGER": 4, "BIGINT": 8, "HUGEINT": 16}
UNSIGNED = {"UTINYINT": 1, "USMALLINT": 2, "UINTEGER": 4, "UBIGINT": 8, "UHUGEINT": 16}
WHOLE = r"\s*[+-]?\d{1,40}(\.0*)?\s*"
NUMBER = r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*"
SPECIAL = r"\s*[+-]?(nan|inf|infinity)\s*"
BOOLEAN = r"\s*([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])\s*"
ISO_DATE = r"\s*\d{4}-\d{2}-\d{2}\s*"
ISO_UTC = r"\s*\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,12})?)?(Z|[+-]00(:?00)?)?)?\s*"
# as RFC 3339 has it; the engine takes +25:00 for a day and an hour
OFFSET = r"[+-]([01]\d|2[0-3])(:?[0-5]\d)?"
ISO_OFFSET = rf"\s*\d{{4}}-\d{{2}}-\d{{2}}[T ]\d{{2}}:\d{{2}}(:\d{{2}}(\.\d{{1,12}})?)?{OFFSET}\s*"
_NOTHING = ""
_FIRST, _LAST = -62135596800000000, 253402300799999999      # the years 1 to 9999, in microseconds


@dataclass(frozen=True)
class Conversion:
    """`value` is SQL of the declared type, NULL where the value in the file is none.

    `bad` says so, and is empty where that cannot be.
    """

    value: str
    bad: str


def conversion(raw_type: str, declared: Type, raw: str) -> Conversion:
    """`raw_type` is a DuckDB type's name, `raw` an SQL expression of it."""
    to = sql_type(declared, "duckdb")
    if raw_type == '"NULL"':
        return Conversion(f"CAST(NULL AS {to})", _NOTHING)
    value, sure = _BY_NAME[declared.name](_family(raw_type), raw_type, to, raw)
    return Conversion(value, _NOTHING if sure else f"({raw} IS NOT NULL AND {value} IS NULL)")


def _family(raw_type: str) -> str:
    if raw_type in SIGNED or raw_type in UNSIGNED:
        return "whole"
    if raw_type in ("FLOAT", "DOUBLE"):
        return "floating"
    if raw_type in ("VARCHAR", "BLOB", "BOOLEAN", "DATE", "UUID"):
        return raw_type.lower()
    if raw_type.startswith("DECIMAL") and not raw_type.endswith("]"):
        return "decimal"
    return "instant" if raw_type.startswith("TIMESTAMP") and not raw_type.endswith("]") else "other"


def _text(raw_type: str, raw: str) -> str:
    return f"TRY(decode({raw}))" if raw_type == "BLOB" else raw


def _whole(family: str, raw_type: str, to: str, raw: str) -> tuple[str, bool]:
    if family == "whole":
        width = SIGNED[to]
        fits = SIGNED.get(raw_type, 99) <= width or UNSIGNED.get(raw_type, 99) < width
        if not fits:
            return f"TRY_CAST({raw} AS {to})", False
        return (raw if raw_type == to else f"CAST({raw} AS {to})"), True
    if family in ("floating", "decimal"):
        return f"(CASE WHEN {raw} = trunc({raw}) THEN TRY_CAST({raw} AS {to}) END)", False
    return _matching(family, raw_type, to, raw, WHOLE)


def _floating(family: str, raw_type: str, to: str, raw: str) -> tuple[str, bool]:
    if family in ("whole", "decimal") or raw_type == to or (raw_type, to) == ("FLOAT", "DOUBLE"):
        return (raw if raw_type == to else f"CAST({raw} AS {to})"), True
    if family == "floating":
        return f"TRY_CAST({raw} AS {to})", False
    if family not in ("varchar", "blob"):
        return f"CAST(NULL AS {to})", False
    text = _text(raw_type, raw)
    finite = f"regexp_full_match({text}, '{NUMBER}') AND isfinite(TRY_CAST({text} AS {to}))"
    is_number = f"{finite} OR regexp_full_match(lower({text}), '{SPECIAL}')"
    return f"(CASE WHEN {is_number} THEN TRY_CAST({text} AS {to}) END)", False


def _decimal(family: str, raw_type: str, to: str, raw: str) -> tuple[str, bool]:
    if family in ("whole", "floating", "decimal"):
        return (raw, True) if raw_type == to else (f"TRY_CAST({raw} AS {to})", False)
    return _matching(family, raw_type, to, raw, NUMBER)


def _string(family: str, raw_type: str, to: str, raw: str) -> tuple[str, bool]:
    if family == "blob":
        return _text(raw_type, raw), False
    if family == "other":
        return "CAST(NULL AS VARCHAR)", False
    return (raw if family == "varchar" else f"CAST({raw} AS VARCHAR)"), True


def _boolean(family: str, raw_type: str, to: str, raw: str) -> tuple[str, bool]:
    return (raw, True) if family == "boolean" else _matching(family, raw_type, to, raw, BOOLEAN)


def _date(family: str, raw_type: str, to: str, raw: str) -> tuple[str, bool]:
    value = raw if family == "date" else _matching(family, raw_type, to, raw, ISO_DATE)[0]
    return f"(CASE WHEN {value} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {value} END)", False


def _timestamp(family: str, raw_type: str, to: str, raw: str) -> tuple[str, bool]:
    if family in ("instant", "date"):
        count = f"TRY(epoch_us({raw}))" if family == "date" else f"epoch_us({raw})"
        if "_NS" in raw_type:
            # cut towards the past: the engine's cast rounds, and could move a row over a boundary
            nanoseconds = f"epoch_ns(CAST({raw} AS TIMESTAMP_NS))"
            count = f"(({nanoseconds} - (({nanoseconds} % 1000) + 1000) % 1000) // 1000)"
        # the cast that says the same asks a calendar: 20 times slower
        value = raw if raw_type == to else f"make_timestamptz({count})"
    else:
        utc = _matching(family, raw_type, "TIMESTAMP", raw, ISO_UTC)[0]
        value = f"coalesce(make_timestamptz(epoch_us({utc})), {_matching(family, raw_type, to, raw, ISO_OFFSET)[0]})"
        count = f"epoch_us({value})"
    return f"(CASE WHEN {count} BETWEEN {_FIRST} AND {_LAST} THEN {value} END)", False


def _matching(family: str, raw_type: str, to: str, raw: str, pattern: str) -> tuple[str, bool]:
    """Texts of one shape only: the engine's own casts take `0x10`, `1_000` and `1.5` for integers."""
    if family not in ("varchar", "blob"):
        return f"CAST(NULL AS {to})", False
    text = _text(raw_type, raw)
    return f"(CASE WHEN regexp_full_match({text}, '{pattern}') THEN TRY_CAST({text} AS {to}) END)", False


_BY_NAME = {
    "tinyint": _whole,
    "smallint": _whole,
    "int": _whole,
    "bigint": _whole,
    "float": _floating,
    "double": _floating,
    "decimal": _decimal,
    "string": _string,
    "boolean": _boolean,
    "date": _date,
    "timestamp": _timestamp
}
