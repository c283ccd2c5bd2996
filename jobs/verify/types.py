"""Types and values of recomputed expressions: DuckDB types by Spark's rules of how they widen, and decimal division,
which DuckDB lacks.

No syntax here.
"""
from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal

from optimizer.errors import failed

INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
DIGITS = dict(zip(INTEGERS, (3, 5, 10, 20)))
SPELLED = {
    "string": "VARCHAR",
    "int": "INTEGER",
    "long": "BIGINT",
    "timestamp": "TIMESTAMPTZ",
    "short": "SMALLINT",
    "byte": "TINYINT"
}


@dataclass(frozen=True)
class Kind:
    """A DuckDB type; precision and scale only for DECIMAL."""

    name: str
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"DECIMAL({self.precision},{self.scale})" if self.name == "DECIMAL" else self.name


@dataclass(frozen=True)
class Typed:
    """SQL text, its type, whether evaluating it may raise, and how many digits it has if it is an integer constant."""

    sql: str
    kind: Kind
    fallible: bool = False
    digits: int = 0


NULL, BOOLEAN, DOUBLE, FLOAT, VARCHAR, TINYINT, SMALLINT, INTEGER, BIGINT, TIMESTAMPTZ, DATE = (Kind(n) for n in (
    "NULL", "BOOLEAN", "DOUBLE", "FLOAT", "VARCHAR", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "TIMESTAMPTZ", "DATE"))


def kind_of(text: str) -> Kind:
    """From a type as users spell it: `bigint`, `decimal(10,2)`."""
    name, _, rest = text.strip().lower().rstrip(")").partition("(")
    if name in ("decimal", "numeric", "dec"):
        precision, _, scale = (rest or "10,0").partition(",")
        return Kind("DECIMAL", int(precision), int(scale or 0))
    return Kind(SPELLED.get(name.strip(), name.strip().upper()))


def bounded(precision: int, scale: int) -> Kind:
    """Spark's DecimalType.adjustPrecisionScale: beyond 38 digits the scale gives way, but keeps at least 6."""
    if precision <= 38:
        return Kind("DECIMAL", precision, scale)
    return Kind("DECIMAL", 38, max(38 - (precision - scale), min(scale, 6)))


def cast(value: Typed, kind: Kind) -> Typed:
    return value if value.kind == kind else replace(value, sql=converted("CAST", value, kind), kind=kind, digits=0)


CONSTANT = re.compile(r"'(?:[^']|'')*'")
BLANK = r"[\x00-\x20\x7F]*"
PATTERNS = {
    "BOOLEAN": "(t|true|y|yes|1|f|false|n|no|0)",
    "DOUBLE": r"([+-]?(?:inf(?:inity)?|nan|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?))[fd]?",
    "DECIMAL": r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)"
}


def converted(word: str, value: Typed, kind: Kind) -> str:
    """CAST or TRY_CAST as Spark's ANSI mode means it."""
    source, sql = value.kind, value.sql
    if source == kind:
        return sql
    if source == NULL:
        return f"CAST(NULL AS {kind})"
    if kind == VARCHAR:
        return as_text(value)
    if source == VARCHAR:
        return _read(word, sql, kind)
    if source.name in ("FLOAT", "DOUBLE"):
        return _from_floating(word, value, kind)
    if source.name == "DECIMAL" and kind.name in INTEGERS:
        return f"{word}(trunc({sql}) AS {kind})"
    if source.name == "DECIMAL" and kind.name in ("FLOAT", "DOUBLE"):
        return f"CAST(CAST({sql} AS VARCHAR) AS {kind})"
    if source == TIMESTAMPTZ:
        return f"CAST(make_timestamp(epoch_us({sql})) AS {kind})"
    if source == DATE and kind == TIMESTAMPTZ:
        return f"make_timestamptz(epoch_us(CAST({sql} AS TIMESTAMP)))"
    return f"{word}({sql} AS {kind})"


def _read(word: str, sql: str, kind: Kind) -> str:
    """Text as a number or truth: the forms that Spark reads, each spelled out.

    Times are constants, which any reader reads alike.
    """
    if kind in (DATE, TIMESTAMPTZ):
        if not CONSTANT.fullmatch(sql):
            raise failed("cannot-verify", f"text as {kind} cannot be recomputed independently",
                         "use --engine jvm, which runs Spark's own cast")
        return f"{word}({sql} AS {kind})"
    pattern = r"([+-]?[0-9]+)" if kind.name in INTEGERS else PATTERNS[kind.name]
    text = f"regexp_extract({sql}, '(?i)^{BLANK}{pattern}{BLANK}$', 1)"
    if kind.name == "DECIMAL":
        wide = f"{word}({text} AS DECIMAL(38,{kind.scale}))"
        return f"{word}(CAST({wide} AS VARCHAR) AS {kind})"      # an exponent can be too large unnoticed
    if kind == BOOLEAN:
        return (f"{word}(CASE WHEN lower({text}) IN ('y', 'yes') THEN 'true' WHEN lower({text}) IN ('n', 'no') THEN "
                f"'false' ELSE {text} END AS BOOLEAN)")
    return f"{word}({text} AS {kind})"


def _from_floating(word: str, value: Typed, kind: Kind) -> str:
    sql = value.sql
    if kind.name in INTEGERS:
        plain = f"{word}(trunc({sql}) AS {kind})"
        return (f"(CASE WHEN {sql} = CAST('{2**63}' AS {value.kind}) THEN {2**63 - 1} ELSE {plain} "
                "END)" if kind == BIGINT else plain)
    if kind == FLOAT:
        beyond = (f"WHEN abs({sql}) >= CAST('3.4028235677973366e38' AS DOUBLE) THEN CAST(CASE WHEN {sql} > 0 THEN "
                  "'inf' ELSE '-inf' END AS FLOAT)")
        return f"(CASE WHEN isnan({sql}) THEN CAST('nan' AS FLOAT) {beyond} ELSE CAST({sql} AS FLOAT) END)"
    if kind.name != "DECIMAL":
        return f"CAST({sql} AS {kind})"
    text = (f"CASE WHEN abs({sql}) < CAST('1e{kind.precision - kind.scale}' AS DOUBLE) THEN CAST(CAST({sql} AS DOUBLE) "
            "AS VARCHAR) ELSE 'too large' END")
    wide = f"{word}({text} AS DECIMAL({min(38, kind.precision + 1)},{kind.scale}))"
    return f"(CASE WHEN isfinite({sql}) THEN {word}({wide} AS {kind}) END)"


def widest(values: list[Typed]) -> Kind:
    """The common type of comparisons, CASE, COALESCE."""
    kinds = [v.kind for v in values if v.kind != NULL]
    names = {k.name for k in kinds}
    if "VARCHAR" in names and not names <= {"VARCHAR", "DATE", "TIMESTAMPTZ"}:
        raise failed("cannot-verify", "text beside numbers cannot be recomputed independently",
                     "use --engine jvm, which runs Spark's own casts")
    if names and names <= set(INTEGERS):
        return Kind(max(names, key=INTEGERS.index))
    if names <= {*INTEGERS, "DECIMAL"} and names:
        parts = [as_decimal(Typed("", k)) for k in kinds]
        scale = max(p.scale for p in parts)
        return bounded(max(p.precision - p.scale for p in parts) + scale, scale)
    if names & {"FLOAT", "DOUBLE"}:
        return Kind("FLOAT") if names == {"FLOAT"} else DOUBLE
    return next((k for k in (TIMESTAMPTZ, DATE) if k in kinds), kinds[0] if kinds else NULL)


def as_decimal(value: Typed) -> Kind:
    return value.kind if value.kind.name == "DECIMAL" else Kind("DECIMAL", value.digits or DIGITS[value.kind.name], 0)


def one_zero(value: Typed) -> Typed:
    """A grouping value: the zeros of both signs are one, 0.0."""
    floating = value.kind.name in ("FLOAT", "DOUBLE")
    return replace(
        value,
        sql=f"(CASE WHEN {value.sql} = 0 THEN CAST(0 AS {value.kind}) ELSE {value.sql} END)") if floating else value


def as_text(value: Typed) -> str:
    """The value as Spark writes it: times without a zone, a zero before a decimal's point."""
    if value.kind == TIMESTAMPTZ:
        return f"CAST(make_timestamp(epoch_us({value.sql})) AS VARCHAR)"
    if value.kind.name == "DECIMAL" and value.kind.precision == value.kind.scale < 38:
        return f"CAST(CAST({value.sql} AS DECIMAL({value.kind.precision + 1},{value.kind.scale})) AS VARCHAR)"
    return f"CAST({value.sql} AS VARCHAR)"


def in_calendar(sql: str, kind: Kind) -> str:
    """A day or time that is moved out of the years 1 to 9999 fails, as docs/limits.md has it."""
    first, last = ("0001-01-01", "9999-12-31") if kind == DATE else ("0001-01-01 00:00:00+00",
                                                                     "9999-12-31 23:59:59.999999+00")
    inside = f"({sql}) BETWEEN CAST('{first}' AS {kind}) AND CAST('{last}' AS {kind})"
    return f"(CASE WHEN {inside} THEN {sql} WHEN ({sql}) IS NOT NULL THEN CAST('out of the calendar' AS {kind}) END)"


def unscaled(value: Typed, places: int | None = None) -> str:
    """The integer behind a decimal, or behind it with so many places."""
    scale = value.kind.scale if places is None else places
    text = (f"replace(CAST(CAST({value.sql} AS DECIMAL({min(38, value.kind.precision + 1)},{value.kind.scale})) AS "
            "VARCHAR), '.', '')")
    return f"CAST({text} || '{'0' * (scale - value.kind.scale)}' AS HUGEINT)"


def quotient(dividend: Typed, divisor: str, scale: int, kind: Kind, digits: int = 19) -> str:
    """round_half_up(dividend × 10^(scale) / divisor) × 10^-kind.scale in whole numbers, the divisor one of so many
    digits. DuckDB's `/` of decimals is a double."""
    number, moved = unscaled(dividend), scale - dividend.kind.scale
    if dividend.kind.precision + moved <= 38:
        whole = _half_up(f"({number} * {_power(moved)})", divisor)
    elif digits + moved <= 38:      # as on paper: the quotient first, the rest moved
        whole = (f"(({number} // {divisor}) * {_power(moved)} + "
                 f"{_half_up(f'(({number} % {divisor}) * {_power(moved)})', divisor)})")
    else:
        raise failed("cannot-verify", "a quotient of more than 38 digits on the way cannot be recomputed independently",
                     "use --engine jvm")
    least = f"CAST('{Decimal(1).scaleb(-kind.scale):f}' AS DECIMAL({max(1, kind.scale)},{kind.scale}))"
    return f"CAST(CAST({whole} AS DECIMAL(38,0)) * {least} AS {kind})"


def _power(of_ten: int) -> str:
    return f"CAST('1{'0' * of_ten}' AS HUGEINT)"


def _half_up(n: str, d: str) -> str:
    up = f"CASE WHEN abs({n} % {d}) >= abs({d}) - abs({n} % {d}) THEN sign({n}) * sign({d}) ELSE 0 END"
    return f"({n} // {d} + {up})"


def remainder(left: Typed, right: Typed, kind: Kind) -> str:
    """Of the whole numbers behind both, with as many places as the longer one.

    DuckDB's `%` of decimals is one of doubles.
    """
    scale = max(left.kind.scale, right.kind.scale)
    if max(v.kind.precision + scale - v.kind.scale for v in (left, right)) > 38:
        raise failed("cannot-verify",
                     "a remainder of more than 38 digits on the way cannot be recomputed independently",
                     "use --engine jvm")
    least = f"CAST('{Decimal(1).scaleb(-scale):f}' AS DECIMAL({max(1, scale)},{scale}))"
    return f"CAST(CAST({unscaled(left, scale)} % {unscaled(right, scale)} AS DECIMAL(38,0)) * {least} AS {kind})"
