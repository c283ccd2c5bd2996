"""The verdicts on pipelines of paper D's windows can fail, and answers of all ways are compared."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs.engine.tasks import Tasks
from jobs.papers.experiments.claims import HOLDS, NOT
from jobs.papers.experiments.windows import lives, pipelines
from jobs.papers.experiments.windows.lives import ALONE, FACTORS, PANES, WindowLoad, lived
from jobs.papers.experiments.windows.pipelines import IN_TASKS, WALL
from jobs.pipeline.config import INLINE
from optimizer.coverage.algebra import Window
from optimizer.errors import ForebayError

TWO = (Window(20, 10), Window(40, 20))


def took(alone: float, panes: float, factors: float) -> dict[str, Any]:
    return {way: {WALL: 2 * s, IN_TASKS: s} for way, s in ((ALONE, alone), (PANES, panes), (FACTORS, factors))} | {
        "levels": ["20 s"]}


def verdicts(points: list[dict[str, Any]], setup: str = "S-5-tumbling") -> list[str]:
    """Of the setup whose paper has a mean of 4.28."""
    return [claim.verdict for claim in pipelines.said([pipelines._row(setup, 100, points)])]


@pytest.mark.parametrize("points,expected", [
    ([took(4, 1.0, 1.0), took(3, 1.0, 1.0)], [HOLDS, HOLDS]),      # 3.5 on average, of 0.8 × 4.28 = 3.42
    ([took(4, 1.0, 1.0), took(2.8, 1.0, 1.0)], [NOT, HOLDS]),
    ([took(4, 1.0, 1.0), took(4, 0.9, 1.0)], [HOLDS, NOT]),        # a tenth slower than panes in one set
    ([took(4, 1.0, 1.04)], [HOLDS, HOLDS])])
def test_the_wanted_share_of_the_papers_mean_and_never_slower_than_panes(points: list[dict[str, Any]],
                                                                         expected: list[str]) -> None:
    assert verdicts(points) == expected


def test_a_setup_of_table_2_has_that_tables_mean() -> None:
    """R-5-tumbling has 1.43 there, and 1.85 in Table I."""
    points = [took(1.3, 1.0, 1.0)]
    assert verdicts(points, "II R-5-tumbling") == [HOLDS, HOLDS] and verdicts(points, "R-5-tumbling") == [NOT, HOLDS]


@pytest.mark.slow
@pytest.mark.parametrize("windows,sensor", [((Window(20, 20), Window(30, 30)), False), (TWO, True)])
def test_all_ways_of_a_pipeline_give_the_answers_of_plain_sql(tmp_path: Path, windows: tuple[Window, ...],
                                                              sensor: bool) -> None:
    point = lived(WindowLoad(windows, 2, 4_000, sensor), str(tmp_path), Tasks(INLINE))
    assert all(point[way][WALL] > 0 for way in (ALONE, PANES, FACTORS)) and point["boundaries"] >= 15


@pytest.mark.slow
def test_a_wrong_answer_gives_no_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = lives._by_plain_sql
    monkeypatch.setattr(lives, "_by_plain_sql", lambda load, pipe: right(load, pipe) | {"20/10": [0, 0, 0]})
    with pytest.raises(ForebayError, match="gives other answers of 20/10"):
        lived(WindowLoad(TWO, 2, 4_000), str(tmp_path), Tasks(INLINE))
