"""Instants and lengths of time, in microseconds everywhere: as datetimes, as people read and write them.

No clock here.
"""
from __future__ import annotations

from datetime import datetime, timedelta, timezone

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
UNITS = {"microsecond": 1, "millisecond": 1_000, "second": 10**6, "minute": 60 * 10**6, "hour": 3_600 * 10**6,
         "day": 86_400 * 10**6, "week": 7 * 86_400 * 10**6}
DAY = UNITS["day"]
SHOWN_UNITS = (("d", DAY), ("h", UNITS["hour"]), ("min", UNITS["minute"]), ("s", UNITS["second"]), ("ms", 1_000),
               ("µs", 1))
_MICROSECOND = timedelta(microseconds=1)


def instant(us: int) -> datetime:
    """Microseconds since 1970 as a datetime: `instant(0)` is EPOCH."""
    return EPOCH + us * _MICROSECOND


def micros(value: datetime) -> int:
    """Microseconds since 1970; a time without zone is UTC."""
    return ((value if value.tzinfo else value.replace(tzinfo=timezone.utc)) - EPOCH) // _MICROSECOND


def iso(us: int) -> str:
    """As ISO 8601: `iso(1_767_225_610_000_000)` is 2026-01-01T00:00:10Z; microseconds only where there are any."""
    at = instant(us).replace(tzinfo=None)
    return at.isoformat(timespec="microseconds" if at.microsecond else "seconds") + "Z"


def unit(name: str) -> int | None:
    """The length of a unit as people write it, `unit("Hours")`; None of months and what else has no fixed length."""
    return UNITS.get(name.lower()) or UNITS.get(name.lower().removesuffix("s"))


def span(us: int) -> str:
    """A length as people read it, in the largest unit that divides it: `span(600_000_000)` is 10 min."""
    name, length = next((name, length) for name, length in SHOWN_UNITS if us % length == 0)
    return f"{us // length} {name}"
