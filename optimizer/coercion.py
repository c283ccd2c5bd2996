"""Spark's ANSI type rules: the common type of operands, the decimal that arithmetic gives, constants; no rule that Spark does not have."""
from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import ROUND_HALF_UP, Context, Decimal

from optimizer.errors import ForebayError
from optimizer.expr import Call, Expr, Literal
from optimizer.types import BIGINT, DATE, DOUBLE, INT, INTEGERS, STRING, TIMESTAMP, Type, decimal

_PRECEDENCE = ("tinyint", "smallint", "int", "bigint", "float", "double")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_EXACT = Context(prec=100, rounding=ROUND_HALF_UP)
_MOMENT = re.compile(r"\s*(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6})0*)?)?\s*(Z|UTC|[+-]\d{1,2}:\d{2})?)?\s*")


def mismatch(message: str, hint: str | None = None) -> ForebayError:
    return ForebayError("type-mismatch", message, hint=hint)


def as_decimal(kind: Type, literal: Expr | None = None) -> Type:
    """The decimal that holds an exact type; an integer literal takes only the digits it has, as Spark's DecimalPrecision does."""
    if kind.name == "decimal":
        return kind
    if isinstance(literal, Literal) and isinstance(literal.value, int):
        return decimal(len(str(abs(literal.value))), 0)
    return decimal(_DIGITS[kind.name], 0)


def _wider(left: Type, right: Type) -> Type:
    """Spark's widerDecimalType; what would exceed 38 digits is refused, because there Spark rounds operands before it compares."""
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    if whole + scale > 38:
        raise mismatch(f"{left} and {right} have no common type of 38 digits", "cast one side to fewer digits")
    return decimal(whole + scale, scale)


def common(left: Type, right: Type) -> Type:
    """The type both are cast to where values meet: comparison, CASE, COALESCE, IN; refused where Spark would have to guess."""
    if left == right:
        return left
    if left.numeric and right.numeric:
        if left.name in _PRECEDENCE and right.name in _PRECEDENCE:
            name = _PRECEDENCE[max(_PRECEDENCE.index(left.name), _PRECEDENCE.index(right.name))]
            return DOUBLE if name == "float" else Type(name)
        return DOUBLE if left.floating or right.floating else _wider(as_decimal(left), as_decimal(right))
    if {left.name, right.name} == {"date", "timestamp"}:
        return TIMESTAMP
    raise mismatch(f"{left} and {right} have no common type", f"cast one side, for instance CAST(… AS {left if right.name == 'string' else right})")


def _adjusted(precision: int, scale: int) -> Type:
    """Spark's adjustPrecisionScale with allowPrecisionLoss: beyond 38 digits the scale gives way, down to 6."""
    if precision <= 38:
        return decimal(precision, scale)
    whole = precision - scale
    return decimal(38, max(38 - whole, min(scale, 6)))


def arithmetic(operation: str, left: Type, right: Type) -> Type:
    """The decimal that `left operation right` gives."""
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    if operation in ("add", "subtract"):
        scale = max(s1, s2)
        return _adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)
    if operation == "multiply":
        return _adjusted(p1 + p2 + 1, s1 + s2)
    if operation == "divide":
        scale = max(6, s1 + p2 + 1)
        return _adjusted(p1 - s1 + s2 + scale, scale)
    return _adjusted(min(p1 - s1, p2 - s2) + max(s1, s2), max(s1, s2))


def bounded(precision: int, scale: int) -> Type:
    """DecimalType.bounded, the rule of SUM and AVG."""
    return decimal(min(38, precision), min(38, scale))


def moment(text: str) -> datetime | None:
    """A timestamp or date literal; None where the text is not one. Only the unambiguous forms of those that Spark reads."""
    match = _MOMENT.fullmatch(text)
    if not match:
        return None
    year, month, day, hour, minute, second = (int(g or 0) for g in match.groups()[:6])
    zone = match[8] or "Z"
    offset = "+00:00" if zone in ("Z", "UTC") else f"{zone[0]}{int(zone[1:].split(':')[0]):02d}:{zone.split(':')[1]}"
    try:
        micros = int((match[7] or "0").ljust(6, "0"))
        zoned = datetime.fromisoformat(f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}{offset}")
        return zoned.replace(microsecond=micros).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None


def micros(value: datetime) -> int:
    gap = value - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (gap.days * 86_400 + gap.seconds) * 1_000_000 + gap.microseconds


def coerce(expr: Expr, to: Type) -> Expr:
    """`expr` as `to`, by an implicit cast; constants are converted here and now."""
    if expr.type == to:
        return expr
    if isinstance(expr, Literal) and expr.value is None:
        return replace(expr, type=to)
    if isinstance(expr, Literal) and expr.type == STRING and to in (TIMESTAMP, DATE):
        return _temporal(str(expr.value), to)
    if isinstance(expr, Literal) and isinstance(expr.value, (int, Decimal)) and expr.type.exact and not isinstance(expr.value, bool):
        constant = _exact_constant(expr.value, to)
        if constant is not None:
            return constant
    return Call("cast", (expr,), to)


def _temporal(text: str, to: Type) -> Literal:
    """A string constant where a timestamp or date is wanted."""
    value = moment(text)
    if value is None or (to == DATE and ":" in text):
        form = "2013-01-02" if to == DATE else "2013-01-02 03:04:05"
        raise ForebayError("bad-literal", f"{text!r} is not a {to}", hint=f"write it as '{form}'")
    days = (value.date() - date(1970, 1, 1)).days
    return Literal(days, DATE) if to == DATE else Literal(micros(value), TIMESTAMP)


def _exact_constant(value: int | Decimal, to: Type) -> Literal | None:
    """An exact constant in a wider exact type or double; None where the cast rounds or can fail, which is then left to the engine."""
    if to == DOUBLE and isinstance(value, int) and abs(value) <= 2**53:
        return Literal(float(value), DOUBLE)
    if to.integral and isinstance(value, int) and fits(value, to):
        return Literal(value, to)
    if to.name == "decimal":
        number = Decimal(value)
        scaled = _EXACT.quantize(number, Decimal(1).scaleb(-to.scale))
        if scaled == number and abs(scaled) < _EXACT.power(Decimal(10), to.precision - to.scale):
            return Literal(scaled, to)
    return None


def fits(value: int, to: Type) -> bool:
    half = 1 << (8 * INTEGERS[to.name] - 1)
    return -half <= value < half


def number(text: str) -> Literal:
    """A numeric literal as Spark types it: INT, BIGINT or DECIMAL; with an exponent DOUBLE."""
    if re.fullmatch(r"-?\d+", text):
        value = int(text)
        for kind in (INT, BIGINT):
            if fits(value, kind):
                return Literal(value, kind)
        return _decimal_literal(text)
    return _double_literal(text) if "e" in text.lower() else _decimal_literal(text)


def _double_literal(text: str) -> Literal:
    if abs(float(text)) == float("inf"):
        raise ForebayError("bad-literal", f"{text} is larger than any double", hint="the largest is 1.7976931348623157e308")
    return Literal(float(text), DOUBLE)


def _decimal_literal(text: str) -> Literal:
    value = Decimal(text)
    shape = value.as_tuple()
    scale = max(0, -int(shape.exponent))
    precision = max(len("".join(map(str, shape.digits)).lstrip("0")) or 1, scale)
    if precision > 38:
        raise ForebayError("bad-literal", f"{text} has {precision} digits", hint="a decimal has at most 38; write an exponent (1e40) for a double")
    return Literal(value, decimal(max(precision, 1), scale))
