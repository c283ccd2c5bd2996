"""Exchanges in real Spark tasks: the answers of a recomputation, and no more Spark jobs than each of them says."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.engine.tasks import Tasks
from optimizer.plan.model import EXCHANGES
from tests.jobs.pipelines import equal, forced, pipeline, restarted, rows

QUERY = """SELECT v.x, COUNT(*) AS n, SUM(b.x) AS spent, MAX(b.x) AS most FROM views AS v [WINDOW 1 MINUTE], buys AS b
    [WINDOW 30 SECONDS]
           WHERE v.k = b.k GROUP BY v.x"""
PLANS = ("EAP01 recompute", "EAP11 running", "EAP11 expire", "LAP recompute")
# beside a shuffle, samples are a job of their own
JOBS = {"slice": (1,), "broadcast": (2,), "partition": (1,), "shuffle": (1, 2)}


@pytest.mark.spark
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_answers_and_jobs_of_each_exchange(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                           exchange: str) -> None:
    forced(monkeypatch, lambda plan: replace(plan, exchange=exchange))
    tasks, here = Tasks("local[2]", _session=spark), Tasks("inline")
    pipe = pipeline(tmp_path, {"views": "", "buys": ""})
    pipe.create("q", QUERY)
    for nth, plan in enumerate(PLANS):
        pipe.change("q", "pin", plan)
        for batch in range(2 * nth, 2 * nth + 2):
            restarted(pipe, tasks=here)      # ingest has tests of its own
            for k in (1, 2, 3):
                rows(pipe, [10 * batch + 1, 10 * batch + 7 + k / 9], k=k, x=k % 2)
                rows(pipe, [10 * batch + 5], "buys", k=k, x=batch + k)
            restarted(pipe, tasks=tasks)
            before = tasks.jobs
            assert len(pipe.run(flush=True)["ran"]) == 1 and tasks.jobs - before in JOBS[exchange]
    assert equal(pipe)
