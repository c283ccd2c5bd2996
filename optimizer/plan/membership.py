"""SQL of when a raw row counts, by its window: the boundaries [_in, _out] at which it is in W(t), its instants for row
queries, ranges of rows to read.

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
    """When a row of a stream counts: in Python what `bounds` is in SQL. Rows of one interval enter and leave together.
    """

    window: Window
    every: int

    def interval(self, boundary: int, stamp: int) -> tuple[int, int]:
        """[_in, _out] of a row that boundary `boundary` first counts, by its event time."""
        enters = max(boundary, self.window.enters(stamp, MICROSECOND)) if self.window.kind == "hopping" else boundary
        leaves = self.window.leaves(stamp, MICROSECOND)
        first = -(-enters // self.every) * self.every
        last = leaves if self.window.kind == "landmark" else leaves // self.every * self.every
        return first, last


def first_boundary(ctx: Lowering) -> str:
    """The boundary that first counts a stored row."""
    return d.identifier("_boundary", ctx.dialect)


def bounds(ctx: Lowering, i: int) -> tuple[str, str]:
    """[_in, _out] of a raw row: DESIGN's table, taken at the instant of the row and rounded to published boundaries."""
    window, every = ctx.window(i), ctx.shape.query.every
    if window is None:
        return FOREVER
    came = d.micros(first_boundary(ctx), ctx.dialect)
    enters = f"greatest({came}, {_first_end(ctx, i, window)})" if window.kind == "hopping" else came
    leaves = _leaves(ctx, i, window)
    first = f"{d.div(f'{enters} + {every - 1}', every, ctx.dialect)} * {every}"
    last = leaves if window.kind == "landmark" else f"{d.div(leaves, every, ctx.dialect)} * {every}"
    return first, last


def instants(ctx: Lowering, i: int) -> tuple[str, str]:
    """The closed interval of instants at which a raw row is in its window: what row queries compare (tick = 1 µs)."""
    window = ctx.window(i)
    if window is None:
        return FOREVER
    enters = _first_end(ctx, i, window) if window.kind == "hopping" else f"{_event_time(ctx, i)} + 1"
    return enters, _leaves(ctx, i, window)


def inside(window: Window, t: int) -> Range:
    """Raw rows of W(t) by event time, so that files and row groups can be skipped."""
    until = t // window.slide * window.slide if window.kind == "hopping" else ALWAYS
    return Range(-ALWAYS, t, window.oldest(t), until)


def separately(ctx: Lowering, i: int, ranges: tuple[Range, ...]) -> list[str]:
    """A condition a range, no row in two of them: of one OR over two columns a reader of Parquet cannot tell which row
    groups it may skip, which takes four times as long where files are large.
    """
    conditions = [within(ctx, i, (r,)) for r in ranges]
    return [" AND ".join([condition, *(f"NOT {before}" for before in conditions[:n])])
            for n, condition in enumerate(conditions)]


def within(ctx: Lowering, i: int, ranges: tuple[Range, ...]) -> str:
    """The condition that a row is in one of the ranges: files hold more rows than those."""
    boundary, stamp = first_boundary(ctx), _stamp(ctx, i)

    def in_range(r: Range) -> str:
        terms = [f"{boundary} <= {d.instant(r.upto, ctx.dialect)}"]
        if r.after > 0:
            terms.append(f"{boundary} > {d.instant(r.after, ctx.dialect)}")
        if r.since > 0:
            terms.append(f"{stamp} >= {d.instant(r.since, ctx.dialect)}")
        if r.until < ALWAYS:
            terms.append(f"{stamp} < {d.instant(r.until, ctx.dialect)}")
        return f"({' AND '.join(terms)})"

    return f"({' OR '.join(map(in_range, ranges))})"


def _first_end(ctx: Lowering, i: int, window: Window) -> str:
    """The first end of a hopping window after the row."""
    return f"{d.div(_event_time(ctx, i), window.slide, ctx.dialect)} * {window.slide} + {window.slide}"


def _leaves(ctx: Lowering, i: int, window: Window) -> str:
    """The last instant at which the row counts."""
    ts = _event_time(ctx, i)
    if window.kind == "sliding":
        return f"{ts} + {window.range}"
    if window.kind == "tumbling":
        return f"{d.div(ts, window.range, ctx.dialect)} * {window.range} + {window.range}"
    if window.kind == "hopping":
        return f"{d.div(f'{ts} + {window.range}', window.slide, ctx.dialect)} * {window.slide} + {window.slide - 1}"
    return FOREVER[1]


def _event_time(ctx: Lowering, i: int) -> str:
    return d.micros(_stamp(ctx, i), ctx.dialect)


def _stamp(ctx: Lowering, i: int) -> str:
    stamp = ctx.shape.query.inputs[i].event_time
    assert stamp is not None
    return d.identifier(stamp, ctx.dialect)
