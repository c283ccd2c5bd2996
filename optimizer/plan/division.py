"""Which task has what of an input: every joined combination is made by exactly one of the parts.

No SQL but the condition on a hash.
"""
from __future__ import annotations

from optimizer.expression import dialect as d
from optimizer.plan.lowering import Lowering


def pivot(low: Lowering) -> int:
    """The input that is divided among the tasks when a common key does not divide all: the plan's, else a stream that
    does not aggregate early, if any.
    """
    if low.plan.divided is not None:
        return low.plan.divided
    streams = [i for i, x in enumerate(low.shape.query.inputs) if x.is_stream]
    return next((i for i in streams if not low.early(i)), streams[0])


def by_key(low: Lowering) -> bool:
    """Whether the key that all inputs share divides all of them."""
    return low.plan.exchange in ("partition", "shuffle")


def divided(low: Lowering, i: int) -> bool:
    """Whether a task holds only its part of input i (else all of it, as every task does)."""
    return by_key(low) or i == pivot(low)


def ahead(low: Lowering, i: int) -> bool:
    """Whether the rows of stream i are read, each by one task, before they are sent to whichever tasks need them."""
    exchange = low.plan.exchange
    return low.parts > 1 and low.window(i) is not None and (exchange == "shuffle"
                                                            or exchange == "broadcast" and i != pivot(low))


def dealt(low: Lowering, i: int) -> bool:
    """Whether tasks share input i file by file: partials add up wherever they are, but what is subtracted has to meet
    its sum again (see `share`).
    """
    return not by_key(low) and i == pivot(low) and low.plan.keeping in ("recompute", "expire")


def share(low: Lowering, i: int, attributes: list[str]) -> str | None:
    """Which of input i's partials are this task's, by a hash of the key that all inputs share, or of all attributes of
    the one input that is divided.

    By hash, not by file, wherever partials are subtracted: what leaves must meet the total it once entered, or
    leftovers that cancel pile up.
    """
    if low.parts == 1:
        return None
    if by_key(low):
        common = low.shape.common_key()
        if common is None:      # one input, by what it is grouped by
            return _mine(low, attributes)
        return _mine(low, [attributes[low.shape.attributes[i].index(common[i])]])
    return _mine(low, attributes) if i == pivot(low) and not dealt(low, i) else None


def _mine(low: Lowering, columns: list[str]) -> str:
    if not columns:
        return "TRUE" if low.part == 0 else "FALSE"
    return f"{d.part_of(columns, low.parts, low.dialect)} = {low.part}"
