"""Which task has what of an input: every joined combination is made by exactly one of the parts.

Of a batch of many boundaries tasks may also take a run each. No SQL but the condition on a hash.
"""
from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from itertools import accumulate

from optimizer.expression import dialect as d
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import Plan
from optimizer.plan.program import BEGINNING, BoundaryShare
from optimizer.query.shape import Shape


def pivot(ctx: Lowering) -> int:
    """The input that is divided among the tasks when a common key does not divide all: the plan's, else a stream that
    does not aggregate early, if any.
    """
    if ctx.plan.divided is not None:
        return ctx.plan.divided
    query = ctx.shape.query
    streams = [i for i, declared in enumerate(query.inputs) if declared.is_stream and i not in query.semi]
    return next((i for i in streams if not ctx.early(i)), streams[0])


def by_key(ctx: Lowering) -> bool:
    """Whether the key that all inputs share divides all of them."""
    return ctx.plan.exchange in ("partition", "shuffle")


def divided(ctx: Lowering, i: int) -> bool:
    """Whether a task holds only its part of input i (else all of it, as every task does)."""
    return by_key(ctx) or i == pivot(ctx)


def is_exchanged(ctx: Lowering, i: int) -> bool:
    """Whether each row of stream i is read by one task, which sends it to whichever tasks need it."""
    if ctx.parts == 1 or ctx.window(i) is None:
        return False
    return ctx.plan.exchange == "shuffle" or ctx.plan.exchange == "broadcast" and i != pivot(ctx)


def dealt(ctx: Lowering, i: int) -> bool:
    """Whether tasks share input i file by file: partials add up wherever they are, but what is subtracted has to meet
    its sum again (see `share`).
    """
    return not by_key(ctx) and i == pivot(ctx) and ctx.plan.keeping in ("recompute", "expire")


def whole_groups(ctx: Lowering) -> bool:
    """Whether all partials of a group are made by one task.

    They are where tasks divide the rows by what these are grouped by, or by a part of it. What is kept of an answer is
    divided by files.
    """
    if ctx.parts == 1:
        return True
    if ctx.plan.keeps_answer or any(dealt(ctx, i) for i in ctx.inputs):
        return False
    groups = ctx.shape.query.groups
    if len(ctx.inputs) == 1:
        attributes = ctx.shape.attributes[0]
        return bool(attributes) and all(attribute.expr in groups for attribute in attributes)
    common = ctx.shape.common_key() if by_key(ctx) else None
    return common is not None and any(attribute.expr in groups for attribute in common)


def may_divide_boundaries(shape: Shape, plan: Plan) -> bool:
    """Whether tasks can take a run of a batch's boundaries each: where no answer needs that of the boundary before.

    A run reads what its windows hold, and adds to state what enters at its boundaries. Levels are made of one another
    across boundaries.
    """
    return plan.keeping == "recompute" and not plan.levels and not shape.query.returns_rows and plan.place == "tasks"


def boundary_runs(weights: Mapping[int, float], count: int) -> list[tuple[tuple[int, ...], BoundaryShare]]:
    """The boundaries in at most `count` runs of about the same weight: `boundary_runs({60: 1, 120: 1, 180: 2}, 2)` is
    (60, 120) and (180,), each with its share.
    """
    boundaries, before = tuple(weights), list(accumulate(weights.values()))
    count, start = min(count, len(boundaries)), 0
    runs, after = list[tuple[tuple[int, ...], BoundaryShare]](), BEGINNING
    for number in range(1, count + 1):
        even = bisect_left(before, before[-1] * number / count * (1 - 1e-9)) + 1
        if number == count:
            even = len(boundaries)
        end = min(max(even, start + 1), len(boundaries) - (count - number))      # no run is without a boundary
        runs.append((boundaries[start:end], BoundaryShare(after, boundaries[-1])))
        start, after = end, boundaries[end - 1]
    return runs


def share(ctx: Lowering, i: int, attributes: list[str]) -> str | None:
    """Which of input i's partials are this task's, by a hash of the key that all inputs share, or of all attributes of
    the one input that is divided.

    By hash, not by file, wherever partials are subtracted: what leaves must meet the total it once entered, or
    leftovers that cancel pile up.
    """
    if ctx.parts == 1:
        return None
    if by_key(ctx):
        common = ctx.shape.common_key()
        if common is None:      # one input, by what it is grouped by
            return _of_this_task(ctx, attributes)
        return _of_this_task(ctx, [attributes[ctx.shape.attributes[i].index(common[i])]])
    return _of_this_task(ctx, attributes) if i == pivot(ctx) and not dealt(ctx, i) else None


def _of_this_task(ctx: Lowering, columns: list[str]) -> str:
    if not columns:
        return "TRUE" if ctx.part == 0 else "FALSE"
    return f"{d.part_of(columns, ctx.parts, ctx.dialect)} = {ctx.part}"
