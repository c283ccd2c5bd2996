"""Tasks that take a run of a batch's boundaries each, in a running pipeline: answers and state are as if there were one
task.
"""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.batch.works import QueryWork
from jobs.engine.tasks import Tasks
from jobs.requests.pace import Pace
from tests.jobs.pipelines import answers, equal, forced, pipeline, restarted, rows

JOINED = """SELECT v.x, COUNT(*) AS n, SUM(b.x) AS spent, MAX(b.x) AS most FROM views AS v [WINDOW 1 MINUTE], buys AS b
    [WINDOW 1 MINUTE SLIDE 20 SECONDS] WHERE v.k = b.k GROUP BY v.x EVERY 10 SECONDS"""
MEDIAN = "SELECT MEDIAN(v.x) AS m, COUNT(DISTINCT v.k) AS k FROM views AS v [WINDOW 40 SECONDS]"
TASKS = 3


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many runs each work of several boundaries was given: as many as there are tasks, whatever the price."""
    given: list[int] = []
    by_statements = Pace.by_statements

    def in_runs(pace: Pace, work: QueryWork, unit_costs: Any) -> QueryWork:
        given.append(min(TASKS, len(work.due)))
        return replace(by_statements(pace, work, unit_costs), parts=1, runs=given[-1])

    monkeypatch.setattr(Pace, "by_statements", in_runs)
    return given


def _lived(folder: Path, tasks: Tasks, patch: pytest.MonkeyPatch, layout: str) -> None:
    """Three backlogs, and boundaries alone between them: state that runs have written is read again, and merged."""
    forced(patch, lambda plan: replace(plan, layout=layout))
    pipe = pipeline(folder, {"views": "", "buys": ""})
    pipe.create("joined", JOINED)
    pipe.create("middle", MEDIAN)
    pipe.change("joined", "pin", "EAP11 recompute")
    pipe.change("middle", "pin", "LAP recompute")
    for backlog in range(3):
        restarted(pipe, tasks=Tasks("inline"))      # ingest has tests of its own
        for k in range(3):
            seconds = [120 * backlog + 3 * n + k for n in range(30)]
            rows(pipe, seconds, k=[n % 3 for n in range(30)], x=[n % 7 for n in range(30)])
            rows(pipe, seconds, "buys", k=k, x=[n * k for n in range(30)])
        restarted(pipe, tasks=tasks)
        pipe.run()
        pipe.run(flush=True)
    assert equal(pipe) and len(answers(pipe, "joined")) > 100


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["panes", "raw"])
def test_runs_answer_as_one_task_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: list[int],
                                      layout: str) -> None:
    _lived(tmp_path, Tasks("inline"), monkeypatch, layout)
    assert TASKS in runs


@pytest.mark.spark
def test_runs_in_spark_tasks(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: list[int]) -> None:
    _lived(tmp_path, Tasks("local[2]", _session=spark), monkeypatch, "panes")
    assert TASKS in runs


@pytest.mark.slow
def test_a_query_that_fails_in_a_late_run_keeps_the_answers_before(tmp_path: Path, runs: list[int]) -> None:
    pipe = pipeline(tmp_path, queries={"q": "SELECT v.k, SUM(10 / v.x) AS s FROM views AS v [WINDOW 20 SECONDS] "
                                            "GROUP BY v.k"})
    rows(pipe, range(1, 95), x=[0 if n == 75 else 5 for n in range(1, 95)])
    report = pipe.run()
    assert runs[0] == TASKS and [bool(entry["failed"]) for entry in report["ran"]].index(True) == 7
    assert sorted({t for t, *_ in answers(pipe, "q")}) == [10, 20, 30, 40, 50, 60, 70]
