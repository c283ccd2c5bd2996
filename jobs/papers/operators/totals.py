"""The running answer of a join's aggregate: COUNT, SUM, AVG, MAX, MIN by group.

It changes by pairs that come and go and never sees a window.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jobs.papers.operators.arrivals import JoinWindows
from jobs.papers.operators.rings import Ints

LOWEST, HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max      # of nothing: MAX and MIN are NULL


class GroupTotals(NamedTuple):
    """Of one group; None is NULL."""

    pairs: int
    sum: int | None
    max: int | None = None
    min: int | None = None

    @property
    def avg(self) -> float | None:
        return None if self.sum is None else self.sum / self.pairs


class Totals(NamedTuple):
    """A number a group; `most` and `least` only where an operator keeps extremes, which needs one group."""

    pairs: Ints
    sum: Ints
    most: Ints
    least: Ints


def totals(windows: JoinWindows) -> Totals:
    """Of nothing."""
    groups = int(np.prod(windows.groups, dtype=np.int64))
    return Totals(np.zeros(groups, np.int64), np.zeros(groups, np.int64), np.array([LOWEST]), np.array([HIGHEST]))


def answers(totals_: Totals, having: int = 0) -> dict[int, GroupTotals]:
    """By group, those with joined rows and more than `having` of them: HAVING COUNT(*) > having."""
    extremes = (None if totals_.most[0] == LOWEST else int(totals_.most[0]),
                None if totals_.least[0] == HIGHEST else int(totals_.least[0]))
    groups = np.flatnonzero(totals_.pairs > having)
    return {int(g): GroupTotals(int(totals_.pairs[g]), int(totals_.sum[g]), *extremes) for g in groups}
