"""Types and values of recomputed expressions: DuckDB types by Spark's rules of how they widen, and decimal division, which DuckDB lacks; no syntax here."""
from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
DIGITS = dict(zip(INTEGERS, (3, 5, 10, 20)))
SPELLED = {"string": "VARCHAR", "int": "INTEGER", "long": "BIGINT", "timestamp": "TIMESTAMPTZ", "short": "SMALLINT", "byte": "TINYINT"}


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


NULL, BOOLEAN, DOUBLE, VARCHAR, INTEGER, BIGINT, TIMESTAMPTZ, DATE = (
    Kind(n) for n in ("NULL", "BOOLEAN", "DOUBLE", "VARCHAR", "INTEGER", "BIGINT", "TIMESTAMPTZ", "DATE"))


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
    return value if value.kind == kind else replace(value, sql=f"CAST({value.sql} AS {kind})", kind=kind, digits=0)


def widest(values: list[Typed]) -> Kind:
    """The common type of comparisons, CASE, COALESCE."""
    kinds = [v.kind for v in values if v.kind != NULL]
    names = {k.name for k in kinds}
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


def unscaled(value: Typed) -> str:
    """The integer behind a decimal."""
    wide = f"CAST({value.sql} AS DECIMAL(38,{value.kind.scale}))"
    return f"CAST({wide} * CAST(1{'0' * value.kind.scale} AS DECIMAL({value.kind.scale + 1},0)) AS HUGEINT)"


def quotient(dividend: Typed, divisor: str, scale: int, kind: Kind) -> str:
    """round_half_up(dividend × 10^(scale) / divisor) × 10^-kind.scale in whole numbers: DuckDB's `/` of decimals is a double."""
    number = f"({unscaled(dividend)} * CAST(1{'0' * (scale - dividend.kind.scale)} AS HUGEINT))"
    rounded = f"((2 * abs({number}) + abs({divisor})) // (2 * abs({divisor})) * sign({number}) * sign({divisor}))"
    least = f"CAST('{Decimal(1).scaleb(-kind.scale):f}' AS DECIMAL({max(1, kind.scale)},{kind.scale}))"
    return f"CAST(CAST({rounded} AS DECIMAL(38,0)) * {least} AS {kind})"
