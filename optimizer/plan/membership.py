"""SQL of when a raw row counts: the boundaries [_in, _out] at which it is in W(t), its instants for row queries, ranges
of rows to read; windows only.

Times are integer microseconds. `_in` and `_out` are rounded to the boundaries at which the query is published (up and
down), so partials that enter and leave together are one. `_in` = 0 says "long since": only comparisons with later
boundaries remain.
"""
from __future__ import annotations

from dataclasses import dataclass

from optimizer.expression import dialect as d
from optimizer.expression.types import BIGINT
from optimizer.plan.lowering import Lowering
from optimizer.query.windows import ALWAYS, MICROSECOND, Window

INTERVAL = (("_in", BIGINT), ("_out", BIGINT))
FOREVER = ("CAST(0 AS BIGINT)", f"CAST({ALWAYS} AS BIGINT)")      # a relation's row


@dataclass(frozen=True)
class Range:
    """Rows with after < `_boundary` ≤ upto and since ≤ event time < until; microseconds."""

    after: int
    upto: int
    since: int = -ALWAYS
    until: int = ALWAYS


@dataclass(frozen=True)
class Counting:
    """When a row of a stream counts, as `bounds` says it in SQL: rows of which this says the same enter and leave
    together.
    """

    window: Window
    every: int

    def interval(self, boundary: int, stamp: int) -> tuple[int, int]:
        """[_in, _out] of a row that boundary `boundary` first counts, by its event time."""
        enters = max(boundary, self.window.enters(stamp, MICROSECOND)) if self.window.kind == "hopping" else boundary
        leaves = self.window.leaves(stamp, MICROSECOND)
        return -(-enters // self.every
                 ) * self.every, leaves if self.window.kind == "landmark" else leaves // self.every * self.every


def known(low: Lowering) -> str:
    """The boundary that first counts a stored row."""
    return d.identifier("_boundary", low.dialect)


def bounds(low: Lowering, i: int) -> tuple[str, str]:
    """[_in, _out] of a raw row: DESIGN's table, taken at the instant of the row and rounded to published boundaries."""
    window, every = low.window(i), low.shape.query.every
    if window is None:
        return FOREVER
    came = d.micros(known(low), low.dialect)
    enters = f"greatest({came}, {_slid(low, i, window)})" if window.kind == "hopping" else came
    leaves = _leaves(low, i, window)
    up = f"{d.div(f'{enters} + {every - 1}', every, low.dialect)} * {every}"
    return up, leaves if window.kind == "landmark" else f"{d.div(leaves, every, low.dialect)} * {every}"


def instants(low: Lowering, i: int) -> tuple[str, str]:
    """The closed interval of instants at which a raw row is in its window: what row queries compare (tick = 1 µs)."""
    window = low.window(i)
    if window is None:
        return FOREVER
    return _slid(low, i, window) if window.kind == "hopping" else f"{_event_time(low, i)} + 1", _leaves(low, i, window)


def inside(window: Window, t: int) -> Range:
    """Raw rows of W(t), said by event time so that files and row groups can be skipped."""
    until = t // window.slide * window.slide if window.kind == "hopping" else ALWAYS
    return Range(-ALWAYS, t, window.oldest(t), until)


def within(low: Lowering, i: int, ranges: tuple[Range, ...]) -> str:
    """The rows of the ranges, said to the engine as well: files hold more than what is needed of them."""
    stamp = _stamp(low, i)

    def one(r: Range) -> str:
        terms = [f"{known(low)} <= {d.instant(r.upto, low.dialect)}"
                 ] + ([f"{known(low)} > {d.instant(r.after, low.dialect)}"] if r.after > 0 else [])
        terms += [f"{stamp} >= {d.instant(r.since, low.dialect)}"] if r.since > 0 else []
        return " AND ".join(terms + ([f"{stamp} < {d.instant(r.until, low.dialect)}"] if r.until < ALWAYS else []))

    return "(" + " OR ".join(f"({one(r)})" for r in ranges) + ")"


def _slid(low: Lowering, i: int, window: Window) -> str:
    """The first end of a hopping window after the row."""
    return f"{d.div(_event_time(low, i), window.slide, low.dialect)} * {window.slide} + {window.slide}"


def _leaves(low: Lowering, i: int, window: Window) -> str:
    """The last instant at which the row counts."""
    ts = _event_time(low, i)
    if window.kind == "sliding":
        return f"{ts} + {window.range}"
    if window.kind == "tumbling":
        return f"{d.div(ts, window.range, low.dialect)} * {window.range} + {window.range}"
    if window.kind == "hopping":
        return f"{d.div(f'{ts} + {window.range}', window.slide, low.dialect)} * {window.slide} + {window.slide - 1}"
    return FOREVER[1]


def _event_time(low: Lowering, i: int) -> str:
    return d.micros(_stamp(low, i), low.dialect)


def _stamp(low: Lowering, i: int) -> str:
    stamp = low.shape.query.inputs[i].event_time
    assert stamp is not None
    return d.identifier(stamp, low.dialect)
