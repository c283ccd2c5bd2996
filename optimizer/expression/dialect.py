"""The few words in which the two engines' SQL differ where plans are concerned.

What a scalar expression needs is in optimizer.expression.scalar.
"""
from __future__ import annotations

from collections.abc import Sequence

from optimizer import time
from optimizer.expression.types import Type

LATEST = 253_402_300_799_000_000        # 9999-12-31T23:59:59Z, the last instant both engines write


def identifier(name: str, dialect: str = "duckdb") -> str:
    """A name of a column or table: `identifier("page")` is "page" in DuckDB, with backticks in Spark."""
    return '"' + name.replace('"', '""') + '"' if dialect == "duckdb" else "`" + name.replace("`", "``") + "`"


def string(text: str, dialect: str = "duckdb") -> str:
    """A constant of text: `string("page")` is 'page'."""
    if dialect == "spark":
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return "'" + text.replace("'", "''") + "'"


def instant(us: int, dialect: str) -> str:
    """A literal of the event-time type."""
    text = time.instant(min(max(us, 0), LATEST)).strftime("%Y-%m-%d %H:%M:%S.%f")
    return f"TIMESTAMPTZ '{text}+00'" if dialect == "duckdb" else f"TIMESTAMP '{text}Z'"


def micros(sql: str, dialect: str) -> str:
    return f"epoch_us({sql})" if dialect == "duckdb" else f"unix_micros({sql})"


def from_micros(sql: str, dialect: str) -> str:
    """The instant of an integer column, as the engine's timestamp type in UTC."""
    return f"CAST(make_timestamp({sql}) AS TIMESTAMPTZ)" if dialect == "duckdb" else f"timestamp_micros({sql})"


def div(sql: str, by: int, dialect: str) -> str:
    return f"({sql}) // {by}" if dialect == "duckdb" else f"(({sql}) div {by}L)"


def part_of(columns: list[str], parts: int, dialect: str) -> str:
    """The task a key belongs to; the two engines' hashes differ, so one batch uses one engine's throughout."""
    listed = ", ".join(columns)
    return f"hash({listed}) % {parts}" if dialect == "duckdb" else f"pmod(hash({listed}), {parts})"


def hashed(columns: Sequence[str], dialect: str) -> str:
    """63 bits of a hash of the values, as an integer that is not negative.

    Equal values of one type have equal hashes in one engine.
    """
    listed = ", ".join(columns)
    return f"hash({listed}) >> 1" if dialect == "duckdb" else f"xxhash64({listed}) & {2**63 - 1}"


def wide(type_: Type, dialect: str, narrow: bool) -> str:
    """The type in which values of `type_` are added and multiplied by counts without rounding.

    `narrow` is 64-bit integers: several times faster, and DuckDB raises instead of wrapping, so a batch that overflows
    is computed again in 128 bits.
    """
    if type_.floating:
        return "DOUBLE"
    if type_.name == "decimal":
        return f"DECIMAL(38,{type_.scale})"
    if dialect == "duckdb":
        return "BIGINT" if narrow else "HUGEINT"
    return "DECIMAL(38,0)"


def stored(type_: Type) -> Type:
    """How an additive state is kept in files: both engines read it back without loss."""
    return Type("double") if type_.floating else Type("decimal", 38, type_.scale)


def name(type_: Type, dialect: str) -> str:
    """A column type as the engine writes it."""
    if dialect == "duckdb":
        return {"string": "VARCHAR", "int": "INTEGER", "timestamp": "TIMESTAMPTZ"}.get(type_.name, str(type_).upper())
    return str(type_).upper()


def times(value: str, type_: Type, count: str, dialect: str) -> str:
    """value · count, exactly.

    Spark would cut the scale of DECIMAL(38,s) × BIGINT; as (27,s) × (10,0) it keeps it and raises on overflow.
    """
    if dialect == "spark" and type_.name == "decimal":
        return f"CAST({value} AS DECIMAL(27,{type_.scale})) * CAST({count} AS DECIMAL(10,0))"
    return f"{value} * {count}"


def failure(message: str, dialect: str) -> str:
    return f"{'error' if dialect == 'duckdb' else 'raise_error'}({string(message, dialect)})"
