"""What windows hold after rates have changed: at a boundary, and on average over the next ones.

A window of ten minutes, whose stream falls from 1,000 rows a second to 10, still holds 600,000 rows at the change,
303,000 after five minutes, and 6,000 from the tenth on. Prices by the new rate alone would be far too low until then.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

from optimizer.query.model import Query
from optimizer.query.windows import SECOND
from optimizer.statistics.model import InputStatistics, QueryStatistics

FALLEN = 1.2      # rows of a window over those that its rate would bring, from which they count


def are_emptying(statistics: QueryStatistics) -> bool:
    """Whether a window held so many rows of a higher rate, when it was last sampled, that it matters."""
    return any(map(_has_fallen, statistics.inputs))


def windows_at(query: Query, statistics: QueryStatistics, boundary: int | None = None) -> QueryStatistics:
    """With the rows that windows hold at that boundary (the one last sampled, if none is named) where they empty.

    Windows that fill count as full: what they hold would price the first batches better, but those are dearer for other
    reasons too (samples, files nobody has read yet), and what costs learnt of them would be too much for full windows.
    """
    age = 0 if boundary is None or statistics.at is None else max(boundary - statistics.at, 0)

    def rows(i: int) -> float:
        one, window = statistics.inputs[i], query.inputs[i].window
        if window is None or not _has_fallen(one):
            return one.rows
        return one.rows + (one.present - one.rows) * _left(age, window.range)

    return _with_rows(statistics, rows, are_held=True) if are_emptying(statistics) else statistics


def over_horizon(query: Query, statistics: QueryStatistics, boundaries: int) -> QueryStatistics:
    """With the rows that windows which are emptying hold on average at so many boundaries after the one sampled."""
    if not are_emptying(statistics):
        return statistics
    horizon = round(boundaries * max(statistics.batch, query.every / SECOND) * SECOND)

    def rows(i: int) -> float:
        one, window = statistics.inputs[i], query.inputs[i].window
        if window is None or not _has_fallen(one) or horizon <= 0:
            return one.rows
        ends = min(window.range, horizon)      # the mean of a line down to there, and of what stays after it
        share = (1 + _left(ends, window.range)) / 2 * ends / horizon
        return one.rows + (one.present - one.rows) * share

    return _with_rows(statistics, rows)


def _has_fallen(one: InputStatistics) -> bool:
    return one.present > FALLEN * one.rows


def _left(age: int, length: int) -> float:
    """Of the rows that a window held, the share that it still holds."""
    return max(1.0 - age / length, 0.0) if length else 1.0


def _with_rows(statistics: QueryStatistics, rows: Callable[[int], float], are_held: bool = False) -> QueryStatistics:
    """A fan-out that was counted grows and shrinks with the windows. `are_held`: they hold these rows now."""
    inputs = tuple(replace(one, rows=rows(i)) for i, one in enumerate(statistics.inputs))
    if are_held:
        inputs = tuple(replace(one, present=one.rows) if one.present else one for one in inputs)
    fanout = statistics.fanout
    if fanout is not None:
        pairs = zip(inputs, statistics.inputs)
        fanout *= prod(one.rows / before.rows for one, before in pairs if before.rows > 0)
    return replace(statistics, inputs=inputs, fanout=fanout)
