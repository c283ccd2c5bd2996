"""Boundaries a batch in a running pipeline: many when behind, alone when fresh or where latency is short; the answers
are the same.
"""
from __future__ import annotations

from pathlib import Path

import pytest

import forebay
from jobs.batch import shared
from jobs.requests.pace import rows_by_boundary
from jobs.storage.tables import File
from optimizer.plan.lowering import Lowering
from optimizer.plan.program import Program
from optimizer.sharing.group import Group
from optimizer.sharing.program import shared_program
from tests.jobs.pipelines import COUNT, answers, equal, pipeline, rows

GROUPS = "SELECT v.k, COUNT(*) AS n, MAX(v.x) AS x FROM views AS v [WINDOW 40 SECONDS] GROUP BY v.k"


def file(low: int | None, high: int | None, count: int) -> File:
    low_bounds = {} if low is None else {"_boundary": low}
    high_bounds = {} if high is None else {"_boundary": high}
    return File("a.parquet", count, 1, low_bounds, high_bounds, {})


def test_rows_of_a_file_of_one_boundary_come_with_it() -> None:
    assert rows_by_boundary([file(20, 20, 7), file(30, 30, 2), file(50, 50, 9)], (20, 30, 40), 10) == {20: 7, 30: 2}


def test_rows_of_a_file_of_several_are_spread() -> None:
    assert rows_by_boundary([file(10, 40, 8)], (20, 30), 10) == {20: 2, 30: 2}


def test_a_file_without_bounds_counts() -> None:
    assert sum(rows_by_boundary([file(None, None, 8)], (20, 30), 10).values()) == 8


def batches(pipe: forebay.Pipeline) -> int:
    last = pipe.runtime.ledger.last()
    assert last is not None
    return last.batch.number + 1


@pytest.mark.slow
def test_a_backlog_of_many_rows_is_a_few_batches(tmp_path: Path) -> None:
    """40,000 rows at each of 12 boundaries: before, more than 20,000 rows went alone."""
    pipe = pipeline(tmp_path, queries={"q": GROUPS, "n": COUNT})
    for k in range(12):
        rows(pipe, [10 * k + 9 * n / 40_000 for n in range(40_000)], k=[n % 50 for n in range(40_000)], x=k)
    rows(pipe, [125])
    assert len(pipe.run()["ran"]) == 12
    assert batches(pipe) <= 4 and len(answers(pipe, "q")) == 600 and equal(pipe)


@pytest.mark.slow
def test_where_latency_is_short_each_boundary_is_a_batch(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": GROUPS}, top="latency: 1 millisecond\n")
    rows(pipe, range(1, 52))
    assert len(pipe.run()["ran"]) == 5 == batches(pipe)
    assert equal(pipe)


@pytest.mark.slow
def test_boundaries_of_queries_that_share_are_answered_by_one_statement(tmp_path: Path,
                                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []

    def noted(made: Group, ctx: Lowering, boundaries: tuple[int, ...], count: bool) -> Program:
        answered = shared_program(made, ctx, boundaries)
        counts.append((len(boundaries), len(answered.steps)))
        return shared_program(made, ctx, boundaries, count)
    monkeypatch.setattr(shared, "shared_program", noted)
    more = " WHERE v.x < {} GROUP BY"
    pipe = pipeline(tmp_path, queries={f"q{n}": GROUPS.replace(" GROUP BY", more.format(n)) for n in range(1, 6)})
    for x in range(6):
        rows(pipe, [1 + x, 12, 24 + x, 55, 71 + x], k=x % 2, x=x)
    rows(pipe, [3, 17], k=1, x=0)
    rows(pipe, [95])
    assert len(pipe.run()["ran"]) == 9
    assert max(counts)[0] > 2 and {steps for _, steps in counts} == {1} and equal(pipe)
