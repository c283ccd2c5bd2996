"""Plans that are tried beside those in force: answers stay, what is better goes on with its state, whatever stops one
stops nothing else.
"""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import forebay
from jobs.adapt import choice, tried
from jobs.batch import batch as batches
from jobs.batch.works import parsed
from jobs.ledger.entries import Batch, PlanDecision, TriedPlan
from jobs.ledger.queries import queries_at
from jobs.maintenance import compact
from jobs.requests import decided
from jobs.storage import failpoints
from optimizer.choice import consider
from optimizer.choice.decide import BEYOND_MEASURE, Past, Tried
from optimizer.cost.measured import seconds as priced
from optimizer.plan.model import Plan, named
from tests.jobs.pipelines import equal, opened, pipeline, rows

pytestmark = pytest.mark.slow

QUERY = """SELECT v.x, COUNT(*) AS n, SUM(b.x) AS spent, MAX(b.x) AS most FROM views AS v [WINDOW 1 MINUTE], buys AS b
    [WINDOW 30 SECONDS]
           WHERE v.k = b.k GROUP BY v.x"""
RUNNING, LAP = "EAP11 running", "LAP recompute"


def fill(pipe: forebay.Pipeline, n: int) -> None:
    keys = [1, 1, 2, 2, 3, 3]
    rows(pipe, [10 * n + s for s in (1, 2, 3, 7, 8, 9)], k=keys, x=[k % 2 for k in keys])
    rows(pipe, [10 * n + s for s in (4, 5, 6)], "buys", k=[1, 2, 3], x=[n, n + 1, n + 2])


def ran(pipe: forebay.Pipeline, batches: range) -> forebay.Pipeline:
    for n in batches:
        fill(pipe, n)
        pipe.run(flush=True)
    return pipe


def begun(folder: Path, plan: str = LAP, tried_plan: str = RUNNING, query: str = QUERY,
          more: tuple[str, ...] = ()) -> forebay.Pipeline:
    """Four boundaries under one plan, then a request, as `adapt` makes them, to try another beside it."""
    pipe = pipeline(folder, {"views": "", "buys": ""}, top="decide: task\n")
    for name in ("q", *more):
        pipe.create(name, query)
    decide(pipe, PlanDecision(1, named(parsed(query, pipe.runtime.catalog), plan), "for a test"))
    ran(pipe, range(0, 4))
    read = parsed(query, pipe.runtime.catalog)
    decide(pipe, PlanDecision(1, named(read, plan), "for a test", tried=named(read, tried_plan)))
    return pipe


def decide(pipe: forebay.Pipeline, decision: PlanDecision) -> None:
    known = decided.count(pipe.runtime.ledger.all_changes())
    assert decided.enter(pipe.runtime, {"q": decision}, known)["q"].refused is None


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """What each plan takes, by name, whatever the clock says."""
    by_plan: dict[str, float] = {}
    real = batches.answers

    def timed(*args: Any, **more: Any) -> Any:
        answered = real(*args, **more)
        for answer in (*answered.answers, *answered.tried):
            answer.seconds = by_plan.get(answer.work.plan.name, answer.seconds)
        return answered

    monkeypatch.setattr(batches, "answers", timed)
    monkeypatch.setattr(choice.Chooser, "allowance", lambda chooser, name: 1e9)
    return by_plan


def state_of(pipe: forebay.Pipeline, name: str = "q") -> Any:
    return queries_at(pipe.runtime.ledger.all_changes())[name]


def plans(pipe: forebay.Pipeline) -> list[str]:
    return [entry["plan"] for entry in pipe.plans("q")["decisions"]]


def tried_plans(pipe: forebay.Pipeline) -> list[str | None]:
    return [entry["tried"] for entry in pipe.plans("q")["decisions"]]


def last_tried(pipe: forebay.Pipeline) -> TriedPlan | None:
    last = pipe.runtime.ledger.last()
    return last.tried.get("q") if last is not None else None


@pytest.mark.parametrize("restarts", [False, True], ids=["one process", "a process each batch"])
def test_a_plan_that_is_better_goes_on_with_the_state_that_it_made(tmp_path: Path, seconds: dict[str, float],
                                                                   restarts: bool) -> None:
    seconds.update({LAP: 1.0, RUNNING: 0.2})
    pipe = begun(tmp_path)
    for n in range(4, 9):
        pipe = ran(opened(tmp_path) if restarts else pipe, range(n, n + 1))
    assert plans(pipe) == [LAP] * 8 + [RUNNING]
    assert tried_plans(pipe) == [None] * 4 + [RUNNING] * 4 + [None]      # one that makes the state, three that tell
    last = pipe.runtime.ledger.last()
    assert last is not None and not last.tried and last.batch.states["q"].epoch < last.batch.boundaries[0] - 1
    assert pipe.plans("q")["decisions"][-1]["reason"].startswith("kept: at 3 boundaries beside each other")
    assert equal(ran(pipe, range(9, 12))) and set(plans(pipe)[8:]) == {RUNNING}


def test_a_plan_that_is_not_better_is_left_and_its_state_goes(tmp_path: Path, seconds: dict[str, float],
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    seconds.update({LAP: 1.0, RUNNING: 0.95})
    pipe = ran(begun(tmp_path), range(4, 10))
    assert set(plans(pipe)) == {LAP} and tried_plans(pipe)[8:] == [None, None] and last_tried(pipe) is None
    assert "is left: at 3 boundaries" in pipe.plans("q")["decisions"][-1]["reason"] and equal(pipe)
    folder = tmp_path / "warehouse" / "state" / "q"
    assert len(list(folder.iterdir())) >= 1
    monkeypatch.setattr(compact, "GRACE", 0)
    compact.sweep(pipe.runtime)
    last = pipe.runtime.ledger.last()
    assert last is not None and [path.name for path in folder.iterdir()] in ([], [str(last.states["q"].epoch)])


def test_the_state_of_a_plan_that_is_tried_stays_when_unused_state_is_swept(tmp_path: Path, seconds: dict[str, float],
                                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = ran(begun(tmp_path), range(4, 6))
    monkeypatch.setattr(compact, "GRACE", 0)
    compact.sweep(pipe.runtime)
    seconds.update({LAP: 1.0, RUNNING: 0.2})
    assert plans(ran(pipe, range(6, 10)))[-1] == RUNNING and equal(pipe)


def test_what_stops_the_plan_that_is_tried_stops_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                              seconds: dict[str, float]) -> None:
    pipe, real = begun(tmp_path), batches._tried_answer

    def out_of_memory(work: Any, results: Any) -> Any:
        return real(work, [replace(result, exhausted="out of memory") for result in results])

    monkeypatch.setattr(batches, "_tried_answer", out_of_memory)
    ran(pipe, range(4, 8))
    assert set(plans(pipe)) == {LAP} and "out of memory" in pipe.plans("q")["decisions"][-1]["reason"]
    assert last_tried(pipe) is None and pipe.query("q")["state"] == "active" and equal(pipe)
    past = opened(tmp_path).loop.chooser.past_of(parsed(QUERY, pipe.runtime.catalog), state_of(pipe))
    assert past.corrections[RUNNING][0] == BEYOND_MEASURE


def test_a_pin_ends_it(tmp_path: Path, seconds: dict[str, float]) -> None:
    pipe = ran(begun(tmp_path), range(4, 6))
    assert last_tried(pipe) is not None
    pipe.change("q", "pin", LAP)
    ran(pipe, range(6, 7))
    assert last_tried(pipe) is None and equal(pipe)


def test_a_replaced_query_begins_without(tmp_path: Path, seconds: dict[str, float]) -> None:
    pipe = ran(begun(tmp_path), range(4, 6))
    pipe.create("q", QUERY.replace("MAX", "MIN"), replace=True)
    ran(pipe, range(6, 8))
    assert last_tried(pipe) is None and equal(pipe)


def test_what_is_spent_on_trying_is_counted_and_shown(tmp_path: Path) -> None:
    """Without an allowance for it, as at a pipeline's beginning, it ends as soon as it has taken more."""
    pipe = ran(begun(tmp_path), range(4, 9))
    document = pipe.plans("q")
    trying, taken = document["trying"], [entry["tried_s"] for entry in document["decisions"] if entry["tried_s"]]
    assert trying["query_s"] == pytest.approx(sum(taken)) and trying["pipeline_s"] == pytest.approx(sum(taken))
    assert len(taken) == 1 and trying["of_s"] > trying["pipeline_s"] > 0
    assert "more than 3% of the pipeline's time" in document["decisions"][-1]["reason"] and equal(pipe)


PLACES = ("batch.after-intent", "batch.after-tasks", "batch.after-state", "batch.before-commit", "batch.after-commit")


@pytest.mark.parametrize("place", PLACES)
def test_a_stop_in_the_middle_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str,
                                            seconds: dict[str, float]) -> None:
    """At each of its batches once: the one that makes its state, those that measure it, the one that takes it."""
    seconds.update({LAP: 1.0, RUNNING: 0.2})
    pipe = begun(tmp_path)
    for n in range(4, 10):
        fill(pipe, n)
        with monkeypatch.context() as patch:
            patch.setattr(failpoints, "at", kills_at(place))
            with pytest.raises(KeyboardInterrupt):
                pipe.run(flush=True)
        pipe = opened(tmp_path)
        pipe.run(flush=True)
    assert plans(pipe)[:4] == [LAP] * 4 and plans(pipe)[-1] == RUNNING and equal(pipe)


def kills_at(place: str) -> Any:
    def at(name: str) -> None:
        if name == place:
            raise KeyboardInterrupt
    return at


def test_adapt_asks_for_one_try_at_a_time_and_not_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two queries alike, whose plans may all take a quarter of their prices."""
    pipe = begun(tmp_path, LAP, LAP, more=("r", ))
    ran(pipe, range(4, 8))
    monkeypatch.setattr(choice.Chooser, "allowance", lambda chooser, name: 1e9)
    monkeypatch.setattr(consider, "deviation", lambda amounts, costs, than=None: 0.5 * priced(amounts, costs))
    real = choice.Chooser.past_of

    def slow(chooser: Any, *asked: Any) -> Past:
        return replace(real(chooser, *asked), measured=(9.0,) * 3, since=99)

    monkeypatch.setattr(choice.Chooser, "past_of", slow)
    known = decided.count(pipe.runtime.ledger.all_changes())
    first = {entry["query"]: entry["tried"] for entry in pipe.adapt()["decisions"]}
    name, = (name for name, plan in first.items() if plan is not None)
    again = {entry["query"]: entry["tried"] for entry in opened(tmp_path).adapt()["decisions"]}
    assert again == first and state_of(pipe, name).decided.tried.name == first[name]
    assert decided.count(pipe.runtime.ledger.all_changes()) <= known + 2      # r had no decision at all


def test_a_try_is_carried_from_batch_to_batch() -> None:
    plan = Plan((True, True), "running", (0, 1))
    wanted = {"q": Tried(plan)}
    fresh = tried.before(None, wanted)
    assert fresh == {"q": TriedPlan(Tried(plan))}
    assert tried.after(Batch(1, (10,), {}, {}, {}, {}, tried=fresh), [], []) == {}      # its query has gone
    assert tried.state_for(None, "q", plan) is None


def test_batches_of_many_boundaries_teach_prices_and_the_next_process_knows(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, {"views": "", "buys": ""})
    pipe.create("q", QUERY)
    ran(pipe, range(0, 2))
    before = pipe.loop.chooser.coefficients.measurements
    for n in range(2, 8):
        fill(pipe, n)
    pipe.run(flush=True)
    taught = pipe.loop.chooser.coefficients
    boundary_counts = [entry["boundaries"] for entry in pipe.plans("q")["decisions"]]
    assert max(boundary_counts) > 1 and taught.measurements > before
    pipe.loop.chooser._written_at = None
    pipe.loop.chooser.end()
    assert opened(tmp_path).loop.chooser.coefficients == taught
