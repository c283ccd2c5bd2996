"""A value that a person wrote, as the text of one of a column's type that SQL can cast without failing.

What is none is refused.
"""
from __future__ import annotations

import math
from datetime import date, datetime, timezone
from decimal import Decimal, InvalidOperation

from optimizer.errors import ForebayError
from optimizer.expression.types import DOUBLE, INTEGERS, Type


def literal(text: str, kind: Type) -> str:
    """The value's canonical text."""
    try:
        return _text(text.strip() if kind.name != "string" else text, kind)
    except (ValueError, InvalidOperation, OverflowError):
        raise ForebayError("bad-value", f"{text!r} is no {kind}", hint=_hint(kind)) from None


def number(text: str) -> str:
    return literal(text, DOUBLE)


def count(text: str) -> str:
    """A whole number from 0 on."""
    if not text.strip().isdecimal() or len(text.strip()) > 18:
        raise ForebayError("bad-value", f"{text!r} is no number of rows or characters",
                           hint="write a whole number from 0 on")
    return str(int(text))


def share(text: str) -> str:
    if not 0 <= float(number(text)) <= 1:
        raise ForebayError("bad-value", f"{text!r} is no share", hint="write a number from 0 to 1")
    return number(text)


def comparable(text: str, kind: Type) -> int | Decimal | float | str:
    """What tells whether one bound lies below another."""
    if kind.floating:
        return float(text)
    return Decimal(text) if kind.exact else text


def _text(text: str, kind: Type) -> str:
    if kind.integral:
        number_ = int(text)
        limit = 2 ** (8 * INTEGERS[kind.name] - 1)
        return str(number_) if -limit <= number_ < limit else _no(str(number_))
    if kind.name == "decimal":
        value, most = Decimal(text), 10 ** (kind.precision - kind.scale)
        # digits that the type cannot hold would be rounded away
        fits = value.is_finite() and abs(value) < most and value == round(value, kind.scale)
        return f"{value:f}" if fits else _no(str(value))
    if kind.floating:
        return repr(float(text)) if math.isfinite(float(text)) else _no(str(float(text)))
    if kind.name == "boolean":
        return {"true": "true", "false": "false"}.get(text.lower()) or _no(text)
    if kind.name == "date":
        return date.fromisoformat(text).isoformat()
    if kind.name == "timestamp":
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=timezone.utc)).astimezone(
            timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f+00")
    return text


def _no(text: str) -> str:
    raise ValueError(text)


def _hint(kind: Type) -> str:
    shown = {
        "boolean": "write true or false",
        "date": "write it as 2013-01-02",
        "timestamp": "write it as 2013-01-02T00:00:00Z"
    }
    return shown.get(kind.name, f"write a value that a column of type {kind} can have")
