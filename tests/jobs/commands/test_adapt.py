"""Plans and groups decided by `forebay adapt`: in force from a boundary that is named, refused where their query is
gone, and nothing else changes them but undoing what was wrong.
"""
from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import forebay
from jobs.adapt import adaptations, choice, decisions_table
from jobs.batch.works import parsed
from jobs.ledger.entries import PlanDecision
from jobs.ledger.queries import DECIDE, QueryState, queries_at
from jobs.requests import decided
from jobs.storage import failpoints
from optimizer.cost.measured import NAMES, UnitCosts, prior
from optimizer.plan.model import named
from tests.jobs.pipelines import boundary, equal, opened, pipeline, rows

pytestmark = pytest.mark.slow

QUERY = """SELECT v.x, COUNT(*) AS n, SUM(b.x) AS spent, MAX(b.x) AS most FROM views AS v [WINDOW 1 MINUTE], buys AS b
    [WINDOW 30 SECONDS]
           WHERE v.k = b.k GROUP BY v.x"""
Costs = Callable[..., None]


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch) -> Costs:
    """Sets the unit costs of every process from then on: some kinds of work very dear, all others next to nothing."""
    def set_costs(**dear: float) -> None:
        known: UnitCosts = replace(prior(), mean=tuple(dear.get(name, 1e-9) for name in NAMES))
        monkeypatch.setattr(choice, "last_coefficients", lambda pipe: known)

    monkeypatch.setattr(choice, "fit", lambda before, *_: before)
    return set_costs


def fill(pipe: forebay.Pipeline, batches: range) -> None:
    drawn = [(n, k) for n in batches for k in (1, 2, 3)]
    two = [k for _, k in drawn for _ in "ab"]
    rows(pipe, [s for n, k in drawn for s in (10 * n + 1, 10 * n + 7 + k / 9)], k=two, x=[k % 2 for k in two])
    rows(pipe, [10 * n + 5 for n, _ in drawn], "buys", k=[k for _, k in drawn], x=[n + k for n, k in drawn])


def started(folder: Path, top: str = "decide: task\n") -> forebay.Pipeline:
    pipe = pipeline(folder, {"views": "", "buys": ""}, top=top)
    pipe.create("q", QUERY)
    return pipe


def plan_names(pipe: forebay.Pipeline, name: str = "q") -> list[str]:
    return [entry["plan"] for entry in pipe.plans(name)["decisions"]]


def state_of(pipe: forebay.Pipeline, name: str = "q") -> QueryState:
    return queries_at(pipe.runtime.ledger.all_changes())[name]


def of_query(document: dict[str, Any], name: str = "q") -> dict[str, Any]:
    return next(entry for entry in document["decisions"] if entry["query"] == name)


def test_plans_stay_until_adapt_decides_and_switch_at_the_boundary_it_names(tmp_path: Path, costs: Costs) -> None:
    costs(scan=1.0)
    pipe = started(tmp_path)
    fill(pipe, range(0, 6))
    pipe.run(flush=True)
    costs(state_read=1.0, state_write=1.0, writes=1.0)      # what was cheapest is the dearest now
    pipe = opened(tmp_path)
    for n in range(6, 18):
        fill(pipe, range(n, n + 1))
        pipe.run(flush=True)
    first, = set(plan_names(pipe))
    entry = of_query(pipe.adapt())
    assert entry["switched_from"] == first != entry["plan"] and entry["effective"] == boundary(190)
    assert entry["candidates"] and entry["predicted_s"] is not None and "saves" in entry["reason"]
    again = of_query(pipe.adapt())
    assert again["plan"] == entry["plan"] and again["switched_from"] is None and again["effective"] is None
    fill(pipe, range(18, 22))
    ran = pipe.run(flush=True)
    assert ran["decided"]["mode"] == "task" and ran["decided"]["boundary"] == boundary(180)
    shown = pipe.plans("q")["decisions"]
    switch, = [one for one in shown if one["switched_from"]]
    assert switch["boundary"] == boundary(190) and switch["plan"] == entry["plan"]
    assert "saves" in switch["reason"] and equal(pipe)


def test_in_batches_nothing_waits_for_adapt(tmp_path: Path, costs: Costs) -> None:
    """`decide: batch`, which is what a pipeline without a schedule does."""
    costs(scan=1.0)
    pipe = started(tmp_path, top="")
    fill(pipe, range(0, 6))
    pipe.run(flush=True)
    assert of_query(pipe.adapt())["switched_from"] is None
    costs(state_read=1.0, state_write=1.0, writes=1.0)
    pipe = opened(tmp_path)
    for n in range(6, 18):
        fill(pipe, range(n, n + 1))
        pipe.run(flush=True)
    assert len(set(plan_names(pipe))) == 2 and equal(pipe)


def test_a_decision_is_refused_where_its_query_is_another_one_by_then(tmp_path: Path) -> None:
    pipe = started(tmp_path)
    fill(pipe, range(0, 3))
    pipe.run(flush=True)
    query, before = parsed(QUERY, pipe.runtime.catalog), plan_names(pipe)[-1]
    other = named(query, "LAP recompute" if before != "LAP recompute" else "EAP11 recompute")
    decision = PlanDecision(1, other, "for a test")

    def entered(name: str = "q", known: int = 0) -> str | None:
        return decided.enter(pipe.runtime, {name: decision}, known)[name].refused

    assert entered("nobody") == "there is no such query" and entered(known=5) == decided.MEANWHILE
    pipe.change("q", "pin", "EAP11 expire")
    assert "pinned" in str(entered())
    pipe.change("q", "unpin")
    pipe.change("q", "pause")
    assert "paused since" in str(entered())
    pipe.change("q", "resume")
    assert "replaced or resumed" in str(entered())
    assert not decided.count(pipe.runtime.ledger.all_changes())
    decision = replace(decision, creation=2)
    assert entered() is None and state_of(pipe).decided == decision
    pipe.create("q", QUERY.replace("SUM", "MIN"), replace=True)      # after the decision, before its boundary
    assert state_of(pipe).decided is None and state_of(pipe).creation == 3
    fill(pipe, range(3, 6))
    pipe.run(flush=True)
    assert "for a test" not in [entry["reason"] for entry in pipe.plans("q")["decisions"]] and equal(pipe)


def test_a_plan_that_does_not_fit_is_refused_and_the_one_in_force_stays(tmp_path: Path) -> None:
    pipe = started(tmp_path)
    fill(pipe, range(0, 3))
    pipe.run(flush=True)
    before = plan_names(pipe)[-1]
    three = replace(named(parsed(QUERY, pipe.runtime.catalog), before), digits=(True,) * 3, order=(0, 1, 2))
    assert decided.enter(pipe.runtime, {"q": PlanDecision(1, three, "")}, 0)["q"].effective == boundary(40)
    fill(pipe, range(3, 6))
    pipe.run(flush=True)
    reasons = [entry["reason"] for entry in pipe.plans("q")["decisions"]]
    assert set(plan_names(pipe)) == {before} and "refused: it is a plan of 3 inputs" in reasons[-1] and equal(pipe)


def test_of_two_at_once_one_wins(tmp_path: Path, costs: Costs, monkeypatch: pytest.MonkeyPatch) -> None:
    costs(scan=1.0)
    pipe = started(tmp_path)
    fill(pipe, range(0, 12))
    for _ in range(12):
        pipe.run(flush=True, batches=1)
    costs(state_read=1.0, state_write=1.0, writes=1.0)
    rival, real, outcomes = opened(tmp_path), decided.enter, []

    def enter(*arguments: Any) -> Any:
        """The rival has priced the same and enters first."""
        monkeypatch.setattr(decided, "enter", real)
        outcomes.append(of_query(rival.adapt()))
        return real(*arguments)

    monkeypatch.setattr(decided, "enter", enter)
    late = of_query(pipe.adapt())
    winner, = outcomes
    assert winner["refused"] is None and winner["switched_from"] and late["refused"] == decided.MEANWHILE
    assert late["effective"] is None and late["plan"] == winner["switched_from"]
    assert sum(change.action == DECIDE for change in pipe.runtime.ledger.all_changes()) == 1


@pytest.mark.parametrize("place", ["request.before-commit", "request.after-commit"])
def test_a_kill_while_deciding_loses_nothing(tmp_path: Path, costs: Costs, monkeypatch: pytest.MonkeyPatch,
                                             place: str) -> None:
    """All decisions are there or none, and the next one does what is missing."""
    costs(scan=1.0)
    pipe = started(tmp_path)
    pipe.create("r", QUERY.replace("MAX", "MIN"))
    for n in range(12):
        fill(pipe, range(n, n + 1))
        pipe.run(flush=True)
    costs(state_read=1.0, state_write=1.0, writes=1.0)

    def killed(name: str) -> None:
        if name == place:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "at", killed)
        with pytest.raises(KeyboardInterrupt):
            opened(tmp_path).adapt()
    pipe = opened(tmp_path)
    count = decided.count(pipe.runtime.ledger.all_changes())
    entries = [entry for entry in pipe.adapt()["decisions"] if entry["switched_from"]]
    assert (count, len(entries)) == ((0, 2) if place == "request.before-commit" else (2, 0))
    assert decided.count(pipe.runtime.ledger.all_changes()) == 2
    fill(pipe, range(12, 14))
    pipe.run(flush=True)
    assert all(len(set(plan_names(pipe, name))) == 2 for name in ("q", "r")) and equal(pipe)


@pytest.mark.parametrize("place", ["request.before-commit", "request.after-commit"])
def test_a_process_that_is_killed_while_it_decides_loses_nothing(tmp_path: Path, place: str) -> None:
    """kill -9: the first decisions on two queries are entered together, by it or by the next one."""
    pipe = started(tmp_path)
    pipe.create("r", QUERY.replace("MAX", "MIN"))
    fill(pipe, range(0, 3))
    pipe.run(flush=True)
    command = [sys.executable, "-m", "forebay.cli", "adapt", "--pipeline", str(tmp_path)]
    killed = subprocess.run(command, env={**os.environ, "FOREBAY_FAILPOINT": place}, capture_output=True, text=True,
                            timeout=120)
    assert killed.returncode == -9, killed.stderr
    changes = pipe.runtime.ledger.all_changes
    assert decided.count(changes()) == (0 if place == "request.before-commit" else 2)
    opened(tmp_path).adapt()
    fill(pipe, range(3, 5))
    pipe.run(flush=True)
    assert decided.count(changes()) == 2 and equal(pipe)


def test_a_switch_that_was_wrong_is_undone_by_the_runner_and_not_followed_again(tmp_path: Path, costs: Costs) -> None:
    """Each run is another process: what the plans took is in the ledger."""
    costs(scan=1e-6)
    pipe = started(tmp_path)
    for n in range(0, 6):
        fill(pipe, range(n, n + 1))
        pipe.run(flush=True)
    before = plan_names(pipe)[-1]
    query = parsed(QUERY, pipe.runtime.catalog)
    other = next(name for name in ("EAP11 expire", "LAP recompute") if name != before)
    decision = PlanDecision(1, named(query, other), "a guess", 0.001)
    decided.enter(pipe.runtime, {"q": decision}, 0)
    ledger = pipe.runtime.ledger
    for n in range(6, 16):
        pipe = opened(tmp_path)
        fill(pipe, range(n, n + 1))
        slow = plan_names(pipe)[-1] == other
        learn = pipe.loop.chooser.learn
        pipe.loop.chooser.learn = lambda *batch: {      # type: ignore[method-assign]
            name: 1e9 if slow or n == 6 else seconds for name, seconds in learn(*batch).items()}
        pipe.run(flush=True)
    names = plan_names(pipe)
    assert ledger.all_changes() and names[6] == other and names[-1] == before and names.count(other) >= 4
    reasons = [entry["reason"] for entry in pipe.plans("q")["decisions"]]
    assert any(reason.startswith("undone") for reason in reasons) and equal(pipe)
    assert of_query(pipe.adapt())["plan"] == before


def test_pinned_and_unknown_queries_are_left_alone(tmp_path: Path, costs: Costs) -> None:
    pipe = started(tmp_path)
    assert of_query(pipe.adapt())["effective"] is None      # no rows yet
    fill(pipe, range(0, 3))
    pipe.run(flush=True)
    pipe.change("q", "pin", "EAP11 expire")
    pipe.create("gone", "SELECT COUNT(*) AS n FROM views AS v [WINDOW 1 MINUTE]")
    pipe.change("gone", "delete")
    entry, = pipe.adapt()["decisions"]
    assert entry["query"] == "q" and entry["switched_from"] is None and entry["reason"] == "pinned"
    assert not decided.count(pipe.runtime.ledger.all_changes())
    assert adaptations.last(pipe.runtime, "decisions") is not None


def test_a_pipeline_runs_by_the_papers_model(tmp_path: Path) -> None:
    """Nothing but C decides, with constants of this engine, and the ledger says so."""
    pipe = started(tmp_path, top="cost_model: paper\n")
    for n in range(0, 7):
        fill(pipe, range(n, n + 1))
        pipe.run(flush=True)
    first = decisions_table.rows(pipe.runtime, "q")[0]
    cost_of_plan = {c["plan"]: c["paper_cost"] for c in json.loads(first["candidates"])}
    assert cost_of_plan[first["plan"]] == min(cost_of_plan.values()) < 1e-3      # seconds a second: these rows are few
    assert "the paper's model" in pipe.plans("q")["decisions"][-1]["reason"] and equal(pipe)
    assert "paper's model" not in pipe.explain("q", cost_model="measured")["why"]


FORM = """SELECT v.k, COUNT(*) AS n FROM views AS v [WINDOW 30 SECONDS], buys AS b [WINDOW 30 SECONDS]
          WHERE v.k = b.k AND v.x > {least} GROUP BY v.k"""


def test_groups_are_formed_by_adapt_and_a_new_query_joins_the_one_of_its_form(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, {"views": "", "buys": ""}, top="decide: task\n")
    for n in range(30):
        pipe.create(f"s{n}", FORM.format(least=n))
    fill(pipe, range(0, 3))
    pipe.run(flush=True)
    last = pipe.runtime.ledger.last()
    assert last is not None and not last.batch.query_groups
    entries = pipe.adapt()["decisions"]
    group, = {entry["group"] for entry in entries}
    assert group is not None and len(entries) == 30
    pipe.create("late", FORM.format(least=99))
    fill(pipe, range(3, 6))
    pipe.run(flush=True)
    last = pipe.runtime.ledger.last()
    assert last is not None and set(last.batch.query_groups[group]) == {"late", *(f"s{n}" for n in range(30))}
    pipe.change("s3", "pin", "LAP recompute")
    pipe.change("s4", "delete")
    pipe = opened(tmp_path)
    fill(pipe, range(6, 9))
    pipe.run(flush=True)
    last = pipe.runtime.ledger.last()
    assert last is not None and {"s3", "s4"}.isdisjoint(last.batch.query_groups[group])
    assert len(last.batch.query_groups[group]) == 29 and pipe.query("late")["group"] == group and equal(pipe)


@pytest.mark.parametrize("seed", range(3))
def test_a_random_life_with_decisions_has_the_oracles_answers(tmp_path: Path, seed: int, costs: Costs) -> None:
    choices = random.Random(seed)
    pipe = pipeline(tmp_path, {"views": "lateness: 1 minute", "buys": ""}, top="decide: task\n")
    pipe.create("q", QUERY)
    for n in range(4):
        pipe.create(f"s{n}", FORM.format(least=n))
    last = 0
    for _ in range(14):
        step = choices.choice(["rows", "rows", "rows", "adapt", "adapt", "restart", "change", "costs"])
        if step == "rows":
            upto = last + choices.randint(1, 3)
            fill(pipe, range(last, upto))
            last = upto
            pipe.run(flush=True)
        elif step == "adapt":
            pipe.adapt()
        elif step == "restart":
            pipe = opened(tmp_path)
        elif step == "costs":
            costs(**{choices.choice(["scan", "state_read", "pairs", "group", "writes"]): 1.0})
            pipe = opened(tmp_path)
        else:
            name = choices.choice(["q", "s0", "s1"])
            status = state_of(pipe, name).status
            pipe.change(name, "resume" if status == "paused" else "pause")
    fill(pipe, range(last, last + 2))
    pipe.run(flush=True)
    assert equal(pipe)
