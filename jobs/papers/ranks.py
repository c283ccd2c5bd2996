"""Rank correlation: how far one list of numbers is in the order of another."""
from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from math import sqrt


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    """Rank correlation, ties at their mean rank; 0 where one side is all alike."""
    x, y = ranks(a), ranks(b)
    mean = (len(x) + 1) / 2
    both = sum((p - mean) * (q - mean) for p, q in zip(x, y))
    alone = sqrt(sum((p - mean) ** 2 for p in x) * sum((q - mean) ** 2 for q in y))
    return both / alone if alone else 0.0


def ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [(bisect_left(ordered, x) + bisect_right(ordered, x) + 1) / 2 for x in values]
