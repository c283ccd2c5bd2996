"""Statistics for tests of the measured model: the two streams of planning.py, in round numbers."""
from __future__ import annotations

from collections.abc import Mapping

from optimizer.statistics.observed import ClassObserved, InputObserved, Observed


def two(views: float = 10, clicks: float = 5, keys: float = 100, pairs: float = 1e12, groups: float = 20,
        batch: float = 10, **also: float) -> Observed:
    """views over a minute, clicks over 40 s, joined on `keys` users; `pairs` distinct (page, user) on views."""
    inputs = (InputObserved(views, 60 * views, combinations=pairs), InputObserved(clicks, 40 * clicks,
                                                                                  combinations=keys))
    return Observed(inputs, (ClassObserved(keys),), batch, groups, **also)


def skewed(rows: Mapping[int, tuple[float, ...]], combinations: Mapping[int, tuple[float, ...]] | None = None,
           share: float = 1.0) -> ClassObserved:
    return ClassObserved(len(next(iter(rows.values()))) / share, share, rows, combinations or {})
