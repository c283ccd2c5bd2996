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
ISO_DATE = r"\s*\d{4}-\d{2}-\d{2}\s*"
ISO_UTC = r"\s*\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,12})?)?(Z|[+-]00(:?00)?)?)?\s*"
# as RFC 3339 has it; the engine takes +25:00 for a day and an hour
OFFSET = r"[+-]([01]\d|2[0-3])(:?[0-5]\d)?"
ISO_OFFSET = rf"\s*\d{{4}}-\d{{2}}-\d{{2}}[T ]\d{{2}}:\d{{2}}(:\d{{2}}(\.\d{{1,12}})?)?{OFFSET}\s*"
_NOTHING = ""
_FIRST, _LAST = -62135596800000000, 253402300799999999      # the years 1 to 9999, in microseconds


@dataclass(frozen=True)
class Conversion:
    """`value` is SQL of the declared type, NULL where the found one is none.

    `bad` says so, and is empty where that cannot be.
    """

    value: str
    bad: str


def conversion(found: str, declared: Type, raw: str) -> Conversion:
    """`found` is a DuckDB type's name, `raw` an SQL expression of it."""
    to = sql_type(declared, "duckdb")
    if found == '"NULL"':
        return Conversion(f"CAST(NULL AS {to})", _NOTHING)
    value, sure = _BY_NAME[declared.name](_family(found), found, to, raw)
    return Conversion(value, _NOTHING if sure else f"({raw} IS NOT NULL AND {value} IS NULL)")


def _family(found: str) -> str:
    if found in SIGNED or found in UNSIGNED:
        return "whole"
    if found in ("FLOAT", "DOUBLE"):
        return "floating"
    if found in ("VARCHAR", "BLOB", "BOOLEAN", "DATE", "UUID"):
        return found.lower()
    if found.startswith("DECIMAL") and not found.endswith("]"):
        return "decimal"
    return "instant" if found.startswith("TIMESTAMP") and not found.endswith("]") else "other"


def _text(found: str, raw: str) -> str:
    return f"TRY(decode({raw}))" if found == "BLOB" else raw


def _whole(family: str, found: str, to: str, raw: str) -> tuple[str, bool]:
    if family == "whole":
        width = SIGNED[to]
        fits = SIGNED.get(found, 99) <= width or UNSIGNED.get(found, 99) < width
        return (raw if found == to else f"CAST({raw} AS {to})", True) if fits else (f"TRY_CAST({raw} AS {to})", False)
    if family in ("floating", "decimal"):
        return f"(CASE WHEN {raw} = trunc({raw}) THEN TRY_CAST({raw} AS {to}) END)", False
    return _matching(family, found, to, raw, WHOLE)


def _floating(family: str, found: str, to: str, raw: str) -> tuple[str, bool]:
    if family in ("whole", "decimal") or found == to or (found, to) == ("FLOAT", "DOUBLE"):
        return (raw if found == to else f"CAST({raw} AS {to})"), True
    if family == "floating":
        return f"TRY_CAST({raw} AS {to})", False
    if family not in ("varchar", "blob"):
        return f"CAST(NULL AS {to})", False
    text = _text(found, raw)
    finite = f"regexp_full_match({text}, '{NUMBER}') AND isfinite(TRY_CAST({text} AS {to}))"
    is_number = f"{finite} OR regexp_full_match(lower({text}), '{SPECIAL}')"
    return f"(CASE WHEN {is_number} THEN TRY_CAST({text} AS {to}) END)", False


def _decimal(family: str, found: str, to: str, raw: str) -> tuple[str, bool]:
    if family in ("whole", "floating", "decimal"):
        return (raw, True) if found == to else (f"TRY_CAST({raw} AS {to})", False)
    return _matching(family, found, to, raw, NUMBER)


def _string(family: str, found: str, to: str, raw: str) -> tuple[str, bool]:
    if family == "blob":
        return _text(found, raw), False
    return (raw, True) if family == "varchar" else (f"CAST({raw} AS VARCHAR)",
                                                    True) if family != "other" else ("CAST(NULL AS VARCHAR)", False)


def _boolean(family: str, found: str, to: str, raw: str) -> tuple[str, bool]:
    return (raw, True) if family == "boolean" else _matching(family, found, to, raw,
                                                             r"\s*([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])\s*")


def _date(family: str, found: str, to: str, raw: str) -> tuple[str, bool]:
    value = raw if family == "date" else _matching(family, found, to, raw, ISO_DATE)[0]
    return f"(CASE WHEN {value} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {value} END)", False


def _timestamp(family: str, found: str, to: str, raw: str) -> tuple[str, bool]:
    if family in ("instant", "date"):
        count = _cut(raw) if "_NS" in found else f"TRY(epoch_us({raw}))" if family == "date" else f"epoch_us({raw})"
        # the cast that says the same asks a calendar: 20 times slower
        value = raw if found == to else f"make_timestamptz({count})"
    else:
        utc = _matching(family, found, "TIMESTAMP", raw, ISO_UTC)[0]
        value = f"coalesce(make_timestamptz(epoch_us({utc})), {_matching(family, found, to, raw, ISO_OFFSET)[0]})"
        count = f"epoch_us({value})"
    return f"(CASE WHEN {count} BETWEEN {_FIRST} AND {_LAST} THEN {value} END)", False


def _cut(raw: str) -> str:
    """Nanoseconds to microseconds towards the past: the engine's own cast rounds, and could move a row over a boundary.
    """
    count = f"epoch_ns(CAST({raw} AS TIMESTAMP_NS))"
    return f"(({count} - (({count} % 1000) + 1000) % 1000) // 1000)"


def _matching(family: str, found: str, to: str, raw: str, pattern: str) -> tuple[str, bool]:
    """Texts of one shape only: the engine's own casts take `0x10`, `1_000` and `1.5` for integers."""
    if family not in ("varchar", "blob"):
        return f"CAST(NULL AS {to})", False
    text = _text(found, raw)
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
