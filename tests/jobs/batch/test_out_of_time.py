"""A batch whose time is up between two of its boundaries: those that there is time for are published, the others go
into later batches, and a crash on the way changes nothing.
"""
from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.batch import batch as batches
from jobs.batch.batch import OutOfTime
from jobs.batch.time_limit import TimeLimit
from jobs.engine import work
from jobs.engine.work import TaskOrder, TaskResult, perform
from jobs.ledger.entries import Batch
from jobs.requests.pace import Pace
from jobs.storage import failpoints
from optimizer.choice.backlog import LATENCY
from optimizer.errors import ForebayError
from optimizer.expression.types import BIGINT
from optimizer.plan.program import Definition, Fragment, Program, Source, Step
from tests.jobs.pipelines import COUNT, answers, equal, opened, pipeline, ran, rows

QUERIES = {
    "kept": "SELECT v.k, SUM(v.x) AS s FROM views AS v [WINDOW 30 SECONDS] GROUP BY v.k",
    "count": COUNT,
    "rows": "SELECT v.k, v.x FROM views AS v [WINDOW 10 SECONDS] WHERE v.x > 2",
    "also": "SELECT v.k, MAX(v.x) AS most FROM views AS v [WINDOW 50 SECONDS] GROUP BY v.k",
}
PLANS = {"kept": "EAP1 running", "also": "EAP1 expire"}


def order(until: float | None) -> TaskOrder:
    program = Program((), (), tuple(Step(t, (), f"SELECT {t} AS _t") for t in (60, 120, 180, 240)))
    return TaskOrder("q", 0, 1, program, program, {}, {}, "b0", until=until)


def test_an_order_that_comes_too_late_is_not_begun() -> None:
    assert perform(order(until=0.0)) == TaskResult("q", 0, done=0.0)


def test_a_task_begins_no_boundary_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([1.0, 2.0, 3.0, 4.0, 5.0, 11.0])
    monkeypatch.setattr(time, "time", lambda: next(times))
    stopped = perform(order(until=10.0))
    assert 0.5 < stopped.done < 1 and (stopped.partials, stopped.failed) == (None, None)


@pytest.mark.parametrize("place", ["before all boundaries", "at the first", "at the third"])
def test_a_statement_is_stopped_when_time_is_up(place: str) -> None:
    """It would take years."""
    endless = Definition("slow", "SELECT sum(a.range * b.range % 7) AS x FROM range(1000000000) AS a, "
                                 "range(1000000000) AS b", is_table=True)
    steps = [Step(t, (), f"SELECT {t} AS _t") for t in (60, 120, 180, 240)]
    setup = (endless,) if place == "before all boundaries" else ()
    for number, slow in enumerate(("at the first", "at the second", "at the third")):
        if slow == place:
            steps[number] = replace(steps[number], define=(endless,))
    program = Program((), setup, tuple(steps))
    stopped = perform(replace(order(until=time.time() + 0.3), narrow=program, wide=program))
    assert (stopped.done > 0) == (place == "at the third") and stopped.done < 1
    assert (stopped.partials, stopped.failed) == (None, None) and 0.2 < stopped.seconds < 5
    assert perform(order(until=None)).done == 1.0      # the engine answers what comes after


def test_what_is_sent_beforehand_is_stopped_too() -> None:
    source = Source("files_0", "stream", "s", columns=(("x", BIGINT),))
    slow = Fragment("slow", source, "SELECT sum(a.range * b.range % 7) AS x FROM range(1000000000) AS a, "
                                    "range(1000000000) AS b", columns=(("x", BIGINT),), parted=False)
    stopped = replace(order(until=time.time() + 0.3), narrow=replace(order(None).narrow, before=(slow,)))
    sent = work.prepare(stopped)
    assert [one.is_late for one in sent] == [True]
    assert perform(replace(stopped, until=time.time() + 60), sent).done == 0.0      # by another machine's clock


def test_what_was_read_for_all_boundaries_is_done_too() -> None:
    assert work._done(setup=3.0, stepping=1.0, steps=0.25) == pytest.approx(4 / 7)
    assert work._done(setup=0.0, stepping=1.0, steps=0.25) == 0.25
    assert work._done(setup=1.0, stepping=0.0, steps=0.25) == 0.25


def test_with_time_all_boundaries_are_computed() -> None:
    whole = perform(order(until=None))
    assert whole.done == 1.0 and whole.partials is not None and whole.partials.num_rows == 4


def test_a_batch_is_as_far_as_its_orders_are() -> None:
    with pytest.raises(OutOfTime) as late:
        batches._stop_if_out_of_time([TaskResult("q", k, done=share) for k, share in enumerate((1.0, 0.5))])
    assert late.value.done == 0.75
    batches._stop_if_out_of_time([TaskResult("q", 0), TaskResult("q", 1)])


@pytest.mark.parametrize("done, now, count", [(0.0, 1007.5, 1), (1.0, 1004.5, 11), (0.75, 1007.5, 1), (0.8, 1004.5, 9),
                                              (0.5, 1003.0, 11), (1.0, 1009.0, 1), (1.0, 1020.0, 1)])
def test_as_many_boundaries_go_on_as_there_is_time_for(done: float, now: float, count: int) -> None:
    assert TimeLimit(1000.0, 10.0).boundaries_left(12, done, now) == count


@pytest.fixture
def stopping(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """All complete boundaries in one batch, of which time is up after the third boundary of each order of three."""
    passed: Counter[str] = Counter()
    monkeypatch.setattr(Pace, "together", lambda pace, group, unit_costs: group)
    is_late = work.TaskOrder.is_late.fget      # type: ignore[attr-defined]

    def late(one: TaskOrder) -> bool:
        assert is_late is not None and not is_late(one)
        passed[one.query] += one.until is not None
        return one.until is not None and passed[one.query] % 4 == 0

    monkeypatch.setattr(work.TaskOrder, "is_late", property(late))
    return passed


def lived(folder: Path) -> Any:
    pipe = pipeline(folder)
    for name, sql in QUERIES.items():
        pipe.create(name, sql)
    for name, plan in PLANS.items():
        pipe.change(name, "pin", plan)
    for k in range(3):
        rows(pipe, [3 * n + k for n in range(60)], k=k, x=[n % 5 for n in range(60)])
    return pipe


def boundaries(pipe: Any) -> Mapping[str, list[float]]:
    return {name: sorted({t for t, *_ in answers(pipe, name)}) for name in ("count", "kept")}


@pytest.mark.slow
def test_what_there_is_no_time_for_goes_into_later_batches(tmp_path: Path, stopping: Counter[str]) -> None:
    pipe = lived(tmp_path)
    assert ran(pipe, flush=True) == list(range(10, 190, 10))      # in one run, each once and in order
    assert pipe.runtime.ledger.last().batch.number > 1 and sum(stopping.values()) > 4
    assert equal(pipe) and boundaries(pipe) == {"count": [*range(10, 190, 10)], "kept": [*range(10, 190, 10)]}


@pytest.mark.slow
@pytest.mark.parametrize("failpoint", ["batch.before-intent:2", "batch.after-intent:2", "batch.after-tasks",
                                       "batch.after-state", "batch.after-results", "batch.before-commit"])
def test_a_crash_while_less_is_computed_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                  stopping: Counter[str], failpoint: str) -> None:
    pipe = lived(tmp_path)
    monkeypatch.setenv("FOREBAY_FAILPOINT", f"{failpoint}:raise")
    monkeypatch.setattr(failpoints, "_passes", Counter())
    with pytest.raises(failpoints.Reached):
        pipe.run(flush=True)
    monkeypatch.delenv("FOREBAY_FAILPOINT")
    again = opened(tmp_path)
    ran(again, flush=True)
    assert equal(again) and boundaries(again) == {"count": [*range(10, 190, 10)], "kept": [*range(10, 190, 10)]}


def test_a_batch_of_several_boundaries_ends_and_one_boundary_takes_what_it_takes(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks that are too slow for any latency: each batch is stopped, less of it too, then one boundary goes alone."""
    orders: list[tuple[int, float | None]] = []
    computed = batches.answers

    def slow(context: Any, batch: Batch, *more: Any) -> Any:
        orders.append((len(batch.boundaries), more[-1]))
        if len(batch.boundaries) > 1:
            raise OutOfTime(0.9)
        return computed(context, batch, *more)

    monkeypatch.setattr(batches, "answers", slow)
    monkeypatch.setattr(Pace, "together", lambda pace, group, unit_costs: group)
    pipe = pipeline(tmp_path, queries={"count": COUNT})
    pipe.synchronise()
    rows(pipe, range(1, 32))
    began = time.time()
    assert ran(pipe) == [10, 20, 30] and equal(pipe)
    first, *_, alone = orders[:orders.index((1, None)) + 1]
    assert first[0] == 3 and first[1] == pytest.approx(began + 0.75 * LATENCY, abs=5) and alone == (1, None)


@pytest.mark.slow
@pytest.mark.parametrize("point", ["batch.after-state", "batch.after-results"])
def test_a_batch_of_which_something_is_stored_is_not_shortened(tmp_path: Path, point: str,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the boundaries that it loses would be written once more by the next batch."""
    pipe = pipeline(tmp_path, queries=QUERIES)
    pipe.synchronise()
    for name, plan in PLANS.items():
        pipe.change(name, "pin", plan)
    rows(pipe, range(1, 62), x=[second % 5 for second in range(61)])
    monkeypatch.setattr(failpoints, "_passes", Counter())
    monkeypatch.setenv("FOREBAY_FAILPOINT", f"{point}:1:raise")
    with pytest.raises(failpoints.Reached):
        pipe.run()
    monkeypatch.delenv("FOREBAY_FAILPOINT")
    computed = batches.answers

    def exhausted(context: Any, batch: Batch, *more: Any) -> Any:
        raise batches.Exhausted("kept", batch.plans["kept"].name, "out of memory")

    monkeypatch.setattr(batches, "answers", exhausted)
    with pytest.raises(ForebayError) as caught:
        opened(tmp_path).run()
    assert caught.value.code == "out-of-memory"
    monkeypatch.setattr(batches, "answers", computed)
    again = opened(tmp_path)
    assert ran(again) and [t for t, _ in answers(again, "count")] == [10, 20, 30, 40, 50, 60] and equal(again)
