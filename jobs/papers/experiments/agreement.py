"""How far a model agrees with measurements: rank correlation, constants tuned to them, growth.

Pure arithmetic, nothing is measured here.
"""
from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from jobs.papers.ranks import spearman as rank_correlation


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Rank correlation to three digits."""
    return round(rank_correlation(one, other), 3)


def tuned(amounts: Sequence[Sequence[float]], measured: Sequence[float]) -> list[float]:
    """Constants ≥ 0 whose products with the amounts of work are relatively nearest to what was measured ("tuning
    parameters", paper A, section 7.2.1).
    """
    work = np.asarray(amounts, float) / np.asarray(measured, float)[:, None]
    best, least = [0.0] * work.shape[1], float(len(measured))
    for count in range(1, work.shape[1] + 1):
        for chosen in combinations(range(work.shape[1]), count):
            constants = np.linalg.lstsq(work[:, chosen], np.ones(len(work)), rcond=None)[0]
            error = float(((work[:, chosen] @ constants - 1) ** 2).sum())
            if (constants >= 0).all() and error < least:
                best, least = [0.0] * work.shape[1], error
                for k, value in zip(chosen, constants):
                    best[k] = float(value)
    return best


def growth(x: Sequence[float], y: Sequence[float]) -> float:
    """The exponent of y's growth: its slope over x, both logarithmic."""
    return round(float(np.polyfit(np.log(np.asarray(x, float)), np.log(np.asarray(y, float)), 1)[0]), 2)


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Of the straight line through the points."""
    return float(np.polyfit(np.asarray(x, float), np.asarray(y, float), 1)[0])


def bend(x: Sequence[float], y: Sequence[float]) -> float:
    """The farthest a point is from that line, as a share of the mean: 0 for a straight one, also for a level one."""
    line = np.polyfit(np.asarray(x, float), np.asarray(y, float), 1)
    return float(np.max(np.abs(np.polyval(line, np.asarray(x, float)) - y)) / np.mean(y))


def relative(measured: float, expected: float) -> float:
    """How far off, as a share of what was expected."""
    return abs(measured / expected - 1)
