"""Spark's ANSI type rules: the common type of operands, the decimal that arithmetic gives, constants.

No rule that Spark does not have.
"""
from __future__ import annotations

import re
import struct
from dataclasses import replace
from datetime import datetime, timezone
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

from optimizer.errors import ForebayError
from optimizer.expression.expr import Call, Expr, Literal
from optimizer.expression.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTEGERS,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    Type,
    decimal,
)
from optimizer.time import EPOCH, micros

_NUMBER = re.compile(r"(-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(L|S|Y|D|F|BD|)", re.IGNORECASE)
_SUFFIXES = {"L": BIGINT, "S": SMALLINT, "Y": TINYINT}
_PRECEDENCE = ("tinyint", "smallint", "int", "bigint", "float", "double")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_TRUTHS = {**dict.fromkeys(("t", "true", "y", "yes", "1"), True), **dict.fromkeys(("f", "false", "n", "no", "0"),
                                                                                  False)}
_EXACT = Context(prec=100, rounding=ROUND_HALF_UP)
_MOMENT = re.compile(
    r"\s*(\d{4})-(\d{1,2})-(\d{1,2})(?:[ "
    r"T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6})0*)?)?\s*(Z|UTC|[+-]\d{1,2}:\d{2})?)?\s*"
)


def mismatch(message: str, hint: str | None = None) -> ForebayError:
    return ForebayError("type-mismatch", message, hint=hint)


def as_decimal(kind: Type, literal: Expr | None = None) -> Type:
    """The decimal that holds an exact type.

    A whole constant takes only the digits it has, as in Spark's DecimalPrecision, which leaves TINYINT out.
    """
    if kind.name == "decimal":
        return kind
    if isinstance(literal, Literal) and isinstance(literal.value, int) and kind != TINYINT:
        return decimal(len(str(abs(literal.value))), 0)
    return decimal(_DIGITS[kind.name], 0)


def _wider(left: Type, right: Type) -> Type:
    """Spark's widerDecimalType.

    What would exceed 38 digits is refused, because there Spark rounds operands before it compares.
    """
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    if whole + scale > 38:
        raise mismatch(f"{left} and {right} have no common type of 38 digits", "cast one side to fewer digits")
    return decimal(whole + scale, scale)


def common(left: Type, right: Type) -> Type:
    """The type both are cast to where values meet: comparison, CASE, COALESCE, IN.

    Refused where Spark would have to guess.
    """
    if left == right:
        return left
    if left.numeric and right.numeric:
        if left.name in _PRECEDENCE and right.name in _PRECEDENCE:
            name = _PRECEDENCE[max(_PRECEDENCE.index(left.name), _PRECEDENCE.index(right.name))]
            return DOUBLE if name == "float" else Type(name)
        return DOUBLE if left.floating or right.floating else _wider(as_decimal(left), as_decimal(right))
    if {left.name, right.name} == {"date", "timestamp"}:
        return TIMESTAMP
    if STRING in (left, right):      # Spark's AnsiTypeCoercion.findWiderTypeForString
        other = right if left == STRING else left
        return BIGINT if other.integral else DOUBLE if other.numeric else other
    raise mismatch(f"{left} and {right} have no common type",
                   f"cast one side, for instance CAST(… AS {left if right.name == 'string' else right})")


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
    """A timestamp or date literal.

    None where the text is not one. Only the unambiguous forms of those that Spark reads.
    """
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


def coerce(expr: Expr, to: Type) -> Expr:
    """`expr` as `to`, by an implicit cast; constants are converted here and now."""
    if expr.type == to:
        return expr
    if isinstance(expr, Literal) and expr.value is None:
        return replace(expr, type=to)
    if isinstance(expr, Literal) and expr.type == STRING and to in (TIMESTAMP, DATE):
        return _temporal(str(expr.value), to)
    if isinstance(expr, Literal) and expr.type == STRING and to in (BIGINT, DOUBLE, BOOLEAN):
        return _read_now(str(expr.value), to)
    if isinstance(expr, Literal) and isinstance(
            expr.value, (int, Decimal)) and expr.type.exact and not isinstance(expr.value, bool):
        constant = _exact_constant(expr.value, to)
        if constant is not None:
            return constant
    return Call("cast", (expr,), to)


def _read_now(text: str, to: Type) -> Literal:
    """A string constant beside numbers or truths; what is none would fail every row."""
    trimmed = text.strip("".join(map(chr, range(33))) + "\x7f")
    if to == BOOLEAN and trimmed.lower() in _TRUTHS:
        return Literal(_TRUTHS[trimmed.lower()], BOOLEAN)
    if to == BIGINT and re.fullmatch(r"[+-]?[0-9]+", trimmed) and fits(int(trimmed), BIGINT):
        return Literal(int(trimmed), BIGINT)
    if to == DOUBLE and re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", trimmed) and (
            abs(float(trimmed)) <= 1.7976931348623157e308):
        return Literal(float(trimmed), DOUBLE)
    raise ForebayError("bad-literal", f"{text!r} is not a {to}", hint=f"beside this a text is read as {to}, as in "
                                                                      f"Spark")


def _temporal(text: str, to: Type) -> Literal:
    """A string constant where a timestamp or date is wanted."""
    value = moment(text)
    if value is None or (to == DATE and ":" in text):
        form = "2013-01-02" if to == DATE else "2013-01-02 03:04:05"
        raise ForebayError("bad-literal", f"{text!r} is not a {to}", hint=f"write it as '{form}'")
    days = (value.date() - EPOCH.date()).days
    return Literal(days, DATE) if to == DATE else Literal(micros(value), TIMESTAMP)


def _exact_constant(value: int | Decimal, to: Type) -> Literal | None:
    """An exact constant in a wider exact type or double.

    None where the cast rounds or can fail, which is then left to the engine.
    """
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
    """A numeric literal as Spark types it: INT, BIGINT or DECIMAL by its size, with an exponent DOUBLE.

    L, S, Y, D, F and BD choose.
    """
    match = _NUMBER.fullmatch(text)
    if not match:
        raise ForebayError("bad-literal", f"{text} is not a number",
                           hint="numbers are written 12, 1.5, 1e3, with L, S, Y, D, F or BD after them for their type")
    digits, suffix = match[1], match[2].upper()
    whole = re.fullmatch(r"-?\d+", digits)
    if suffix in _SUFFIXES:
        return _whole_literal(text, digits if whole else "", _SUFFIXES[suffix])
    if suffix in ("D", "F") or not suffix and "e" in digits.lower():
        return _floating_literal(digits, FLOAT if suffix == "F" else DOUBLE)
    kinds = [kind for kind in (INT, BIGINT) if whole and not suffix and fits(int(digits), kind)]
    return Literal(int(digits), kinds[0]) if kinds else _decimal_literal(digits)


def _whole_literal(text: str, digits: str, kind: Type) -> Literal:
    if not digits or not fits(int(digits), kind):
        half = 1 << (8 * INTEGERS[kind.name] - 1)
        raise ForebayError("bad-literal", f"{text} is not a {kind}",
                           hint=f"a {kind} is a whole number from {-half} to {half - 1}")
    return Literal(int(digits), kind)


def _floating_literal(digits: str, kind: Type) -> Literal:
    largest = "3.4028234663852886e38" if kind == FLOAT else "1.7976931348623157e308"
    if abs(Decimal(digits)) > Decimal(largest):
        raise ForebayError("bad-literal", f"{digits} is larger than any {kind}", hint=f"the largest is {largest}")
    return Literal(_nearest_float(digits) if kind == FLOAT else float(digits), kind)


def _nearest_float(digits: str) -> float:
    """The nearest of 32 bits, even at a tie; by way of a double alone it would be rounded twice."""
    bits: int = struct.unpack("<i", struct.pack("<f", abs(float(digits))))[0]
    near: list[float] = [
        struct.unpack("<f", struct.pack("<i", b))[0] for b in (bits, bits - 1, bits + 1) if 0 <= b < 0x7F800000
    ]
    exact = abs(Fraction(Decimal(digits)))
    nearest = min(near, key=lambda f: abs(Fraction(f) - exact))
    return -nearest if digits.startswith("-") else nearest


def _decimal_literal(text: str) -> Literal:
    value = Decimal(text)
    shape = value.as_tuple()
    exponent = int(shape.exponent)
    scale = max(0, -exponent)
    precision = max(len("".join(map(str, shape.digits)).lstrip("0")) + max(0, exponent), scale, 1)
    if precision > 38:
        raise ForebayError("bad-literal", f"{text} has {precision} digits",
                           hint="a decimal has at most 38; write an exponent (1e40) for a double")
    return Literal(_EXACT.quantize(value, Decimal(1).scaleb(-scale)), decimal(precision, scale))
