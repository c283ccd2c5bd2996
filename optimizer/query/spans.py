"""Lengths of time as people read them; no rounding, so a length is told in the largest unit that divides it."""
from __future__ import annotations

from optimizer.query.windows import SECOND

UNITS = (("d", 86_400 * SECOND), ("h", 3_600 * SECOND), ("min", 60 * SECOND), ("s", SECOND), ("ms", 1_000), ("µs", 1))


def span(microseconds: int) -> str:
    name, unit = next((n, u) for n, u in UNITS if microseconds % u == 0)
    return f"{microseconds // unit} {name}"
