"""Each verdict on paper C's algorithms can fail: figures that must not hold do not."""
from __future__ import annotations

import pytest

from jobs.papers.experiments import join_aggregates
from jobs.papers.experiments.claims import HOLDS, NOT, Panel

pytestmark = pytest.mark.slow       # importing the operators' compilers takes a second

XS = (1.0, 2.0, 4.0)


def times(**microseconds: float) -> list[str]:
    """Verdicts on a running total, on IC beside PC, on the naive sum."""
    us = {"PC": 60.0, "IC": 10.0, "TC": 8.0, "TC, naive sum": 9.0, **{n.replace("_", ", "): s for n, s in
                                                                      microseconds.items()}}
    panel = Panel("time", "rate", "µs", XS, {n: [s] * 3 for n, s in us.items()}, {})
    return [c.verdict for c in join_aggregates._time(panel, (100.0, 20.0))]


def test_the_best_is_the_best_of_all_three() -> None:
    assert times() == [HOLDS, HOLDS, HOLDS]
    assert times(PC=5.0) == [NOT, NOT, NOT] and times(IC=7.0) == [NOT, HOLDS, NOT]
    assert times(IC=60.0)[1] == NOT


def memory(power: float, share: float) -> list[str]:
    counted = [100 * x ** power for x in XS]
    y = {"IC": counted, "TC": counted, "PC": [share * 100 * x ** (3 - power) for x in XS]}
    return [c.verdict for c in join_aggregates._memory(Panel("memory", "rate", "bytes", XS, y, y), "rate")]


def test_memory_that_grows_with_the_product_is_not_linear() -> None:
    assert memory(1, 1000) == [HOLDS, HOLDS, HOLDS]
    assert memory(2, 100)[0] == NOT and memory(2, 100)[1] == NOT and memory(1.5, 2)[2] == NOT
