"""The benchmark of row queries that share: answers of all its ways are right, and it counts what it says."""
from __future__ import annotations

import pytest

from jobs.papers.experiments.sharing.rows import ONE, WHOLE, RowsLevel, RowsSetting, rows
from jobs.pipeline.config import INLINE


@pytest.mark.slow
def test_answers_are_equal_together_and_apart() -> None:
    setting = RowsSetting(rate=1_000, window=10, levels=(ONE, RowsLevel(4, 3, apart=True)))
    one, four = rows(setting, lambda line: None, INLINE).values()
    assert one["equal"] and four["equal"] and one["together"]["answer_rows"] > 100
    assert 2 < four["together"]["answer_rows"] / one["together"]["answer_rows"] < 4


def test_selections_are_as_wide_as_the_level_says() -> None:
    assert ONE.bounds() == [WHOLE]
    shares = [(high - low) * (top - bottom) / 500**2 for low, high, bottom, top in RowsLevel(100, 3).bounds()]
    assert len(shares) == 100 and sum(shares) == pytest.approx(3, rel=0.05)
