"""Instants as people read them; no clock here."""
from __future__ import annotations

from datetime import datetime, timedelta, timezone

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def iso(us: int) -> str:
    """Microseconds since 1970 as ISO 8601: `iso(1_767_225_610_000_000)` is 2026-01-01T00:00:10Z; a fraction only where there is one."""
    return (EPOCH + timedelta(microseconds=us)).strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".") + "Z"
