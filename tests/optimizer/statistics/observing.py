"""Statistics for tests of the measured model: the two streams of planning.py, in round numbers."""
from __future__ import annotations

from collections.abc import Mapping

from optimizer.statistics.model import InputStatistics, KeyStatistics, QueryStatistics


def two(views: float = 10, clicks: float = 5, keys: float = 100, pairs: float = 1e12, groups: float = 20,
        batch: float = 10, **also: float) -> QueryStatistics:
    """views over a minute, clicks over 40 s, joined on `keys` users; `pairs` distinct (page, user) on views."""
    inputs = (InputStatistics(views, 60 * views, combinations=pairs),
              InputStatistics(clicks, 40 * clicks, combinations=keys))
    return QueryStatistics(inputs, (KeyStatistics(keys),), batch, groups, **also)


def skewed(rows: Mapping[int, tuple[float, ...]], combinations: Mapping[int, tuple[float, ...]] | None = None,
           share: float = 1.0) -> KeyStatistics:
    return KeyStatistics(len(next(iter(rows.values()))) / share, share, rows, combinations or {})
