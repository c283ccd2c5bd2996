"""Boundaries committed together, and those that are not computed since nothing can have changed: the answers are those
of boundaries one by one.
"""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs.batch import batch as batches
from jobs.requests import boundaries
from tests.jobs.pipelines import answers, boundary, equal, opened, pipeline, rows

JOIN = "FROM views AS v [WINDOW {}], buys AS b [WINDOW {}] WHERE v.k = b.k"
QUERIES = {
    "sliding": "SELECT v.k, COUNT(*) AS n " + JOIN.format("1 MINUTE", "30 SECONDS") + " GROUP BY v.k",
    "tumbling": "SELECT COUNT(*) AS n, MIN(v.x) AS least FROM views AS v [WINDOW 1 MINUTE TUMBLING]",
    "hopping": "SELECT COUNT(*) AS n, SUM(v.x) AS x FROM views AS v [WINDOW 1 MINUTE SLIDE 30 SECONDS] EVERY 10 "
               "SECONDS",
    "landmark": "SELECT COUNT(*) AS n FROM views AS v [WINDOW UNTIL NOW]",
    "rows": "SELECT v.x, b.k " + JOIN.format("20 SECONDS", "20 SECONDS"),
    "minutes": "SELECT COUNT(*) AS n FROM views AS v [WINDOW 2 MINUTES] EVERY 1 MINUTE",
}
PLANS = {
    "sliding": ("LAP recompute", "EAP11 running", "EAP01 retract", "EAP11 expire"),
    "tumbling": ("EAP1 running", "EAP1 expire"),
    "landmark": ("EAP1 running", "EAP1 retract"),
    "hopping": ("EAP1 running", "LAP recompute", "EAP1 retract")
}


@pytest.mark.slow
@pytest.mark.parametrize("nth", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2, 3))])
def test_together_and_one_by_one_are_the_same(nth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows at 1–5 s, late ones, then nothing for minutes, and rows again."""
    said = []
    for size in (240, 1):
        monkeypatch.setattr(boundaries, "GROUP_BOUNDARIES", size)
        folder = tmp_path / str(size)
        pipe = pipeline(folder, {"views": "lateness: 1 hour", "buys": "lateness: 1 hour"})
        for name, sql in QUERIES.items():
            pipe.create(name, sql)
        for name, plans in PLANS.items():
            pipe.change(name, "pin", plans[nth % len(plans)])
        for k in range(3):
            rows(pipe, [1, 5, 12, 29.5 + k], k=k, x=k)
            rows(pipe, [2, 11, 40, 160], "buys", k=k)
        rows(pipe, [111, 120, 165])
        pipe.run(to=boundary(20))
        rows(pipe, [3, 19], k=1, x=9)
        pipe.run()
        pipe = opened(folder)
        assert equal(pipe)
        said.append(({name: sorted(answers(pipe, name)) for name in QUERIES}, pipe.runtime.ledger.last().batch.number))
    assert said[0][0] == said[1][0]
    assert said[0][1] < 5 < 12 < said[1][1]


@pytest.mark.slow
def test_tasks_in_this_process_start_no_spark(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"tumbling": QUERIES["tumbling"]})
    rows(pipe, [1, 15])
    assert len(pipe.run()["ran"]) == 1 and pipe.runtime.tasks._session is None


@pytest.mark.slow
@pytest.mark.parametrize("at", [0, 1, 7, 14, 15])
def test_a_query_that_fails_at_one_boundary_of_many_has_its_answers_before_it(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """The first boundary at which it fails is found by halves, and the other query answers at all."""
    performed = []
    perform = batches._perform

    def counted(*args: Any) -> Any:
        performed.append(args)
        return perform(*args)
    monkeypatch.setattr(batches, "_perform", counted)
    pipe = pipeline(tmp_path, queries={"bad": "SELECT SUM(10 DIV v.x) AS s FROM views AS v [WINDOW 20 SECONDS]",
                                       "good": "SELECT COUNT(*) AS n FROM views AS v [WINDOW 20 SECONDS]"})
    rows(pipe, [10 * n + 5 for n in range(17)], x=[0 if n == at else 1 for n in range(17)])
    pipe.run()
    failing = 10 * at + 10
    assert [t for t, *_ in answers(pipe, "bad")] == list(range(10, failing, 10))
    assert [t for t, *_ in answers(pipe, "good")] == list(range(10, 170, 10))
    assert pipe.query("bad")["state"] == "failed" and len(performed) <= 1 + 4 and equal(pipe)
