"""Plans are chosen by price while a pipeline runs: decisions in the ledger, switches that change no answer, memory,
pins, statistics from a file.
"""
from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import forebay
from jobs.adapt import choice, decisions_table
from jobs.adapt.choice import Chooser
from jobs.results import decisions
from optimizer.cost.measured import NAMES, UnitCosts, prior
from optimizer.errors import ForebayError
from tests.jobs.pipelines import COUNT, equal, opened, pipeline, ran, rows

pytestmark = pytest.mark.slow

QUERY = """SELECT v.x, COUNT(*) AS n, SUM(b.x) AS spent, MAX(b.x) AS most FROM views AS v [WINDOW 1 MINUTE], buys AS b
    [WINDOW 30 SECONDS]
           WHERE v.k = b.k GROUP BY v.x"""


def costs(**dear: float) -> UnitCosts:
    """Unit costs in which some kinds of work are very dear."""
    known = prior()
    return replace(known, mean=tuple(dear.get(name, 1e-9) for name in NAMES))


def fill(pipe: forebay.Pipeline, batches: range) -> None:
    drawn = [(n, k) for n in batches for k in (1, 2, 3)]
    two = [k for _, k in drawn for _ in "ab"]
    rows(pipe, [s for n, k in drawn for s in (10 * n + 1, 10 * n + 7 + k / 9)], k=two, x=[k % 2 for k in two])
    rows(pipe, [10 * n + 5 for n, _ in drawn], "buys", k=[k for _, k in drawn], x=[n + k for n, k in drawn])


def started(folder: Path) -> forebay.Pipeline:
    pipe = pipeline(folder, {"views": "", "buys": ""})
    pipe.create("q", QUERY)
    return pipe


def test_what_is_dear_is_avoided_and_every_switch_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First everything that reads raw rows is dear, then everything that keeps state: the plan follows, the answers
    stay.
    """
    monkeypatch.setattr(choice, "fit", lambda before, *_: before)
    pipe = started(tmp_path)
    pipe.loop.chooser._coefficients = costs(scan=1.0)
    fill(pipe, range(0, 8))
    pipe.run(to=None, flush=True)
    first = pipe.loop.chooser.queries["q"].decision
    assert first is not None and first.plan.keeping != "recompute" or first is not None and first.plan.layout == "panes"
    pipe.loop.chooser._coefficients = costs(state_read=1.0, state_write=1.0, writes=1.0)
    for n in range(8, 24):
        fill(pipe, range(n, n + 1))
        pipe.run(flush=True)
    last = pipe.loop.chooser.queries["q"].decision
    assert last is not None and last.plan != first.plan and last.candidates
    said = pipe.plans("q")
    plans = [d["plan"] for d in said["decisions"]]
    switched = [d for d in said["decisions"] if d["switched_from"]]
    assert plans[0] == first.plan.name and plans[-1] == last.plan.name and (len(switched) == 1
                                                                            or first.plan.name == last.plan.name)
    assert all("saves" in d["reason"] for d in switched) and said["regret_s"] is not None
    written = decisions_table.rows(pipe.runtime, "q")
    assert [r["plan"] for r in written][0] == first.plan.name and written[-1]["plan"] == last.plan.name and json.loads(
        written[-1]["candidates"])
    assert equal(pipe)


def test_after_a_restart_the_plan_goes_on(tmp_path: Path) -> None:
    pipe = started(tmp_path)
    fill(pipe, range(0, 6))
    pipe.run(flush=True)
    state = pipe.runtime.ledger.last().states["q"]
    again = opened(tmp_path)
    fill(again, range(6, 9))
    again.run(flush=True)
    assert again.runtime.ledger.last().states["q"].epoch == state.epoch and again.runtime.ledger.last(
    ).states["q"].plan == state.plan
    assert again.loop.chooser.queries["q"].past.since > 6 and equal(again)


def test_what_starting_costs_is_not_learnt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caught, real = [], Chooser.learn
    monkeypatch.setattr(Chooser, "learn",
                        lambda self, answers, *more: caught.append(answers) or real(self, answers, *more))
    pipe = started(tmp_path)
    fill(pipe, range(0, 2))
    pipe.run(batches=1)
    chooser = pipe.loop.chooser
    before, chooser.warm = chooser.coefficients, False
    chooser.learn(caught[-1], [], {}, 1000.0)
    assert chooser.coefficients == before and chooser.warm
    chooser.learn(caught[-1], [], {}, 1000.0)
    assert chooser.coefficients != before


def test_a_pin_holds_whatever_it_costs(tmp_path: Path) -> None:
    pipe = started(tmp_path)
    fill(pipe, range(0, 3))
    pipe.run(flush=True)
    pipe.change("q", "pin", "EAP11 expire")
    fill(pipe, range(3, 6))
    pipe.run(flush=True)
    assert [(d["plan"], d["reason"]) for d in pipe.plans("q")["decisions"]][-1] == ("EAP11 expire", "pinned")
    assert pipe.explain("q")["chosen"] == "EAP11 expire"
    pipe.change("q", "unpin")
    fill(pipe, range(6, 9))
    pipe.run(flush=True)
    assert pipe.plans("q")["decisions"][-1]["reason"] != "pinned" and equal(pipe)


def test_a_file_of_statistics_in_the_papers_symbols_is_priced_by_both_models(tmp_path: Path) -> None:
    """Paper A's setting of Figs.

    6, 7: its own C, worked by its equations (12 for EAP11) in tests/optimizer/papers/test_cost_two_way.py.
    """
    pipe = started(tmp_path)
    told = {
        "streams": {
            "v": {
                "rate": 300,
                "groups": 150,
                "selectivity": 0.1
            },
            "b": {
                "rate": 300,
                "groups": 1,
                "selectivity": 0.1
            }
        },
        "method": "hash",
        "buckets": 1021,
        "constants": {
            "Pn": 1.0,
            "Ph": 1.0,
            "Un": 1.0,
            "Uh": 1.0,
            "Ug": 1.0
        }
    }
    measured, paper = (pipe.explain("q", statistics=told, cost_model=model) for model in ("measured", "paper"))
    cost = {c["plan"]: c["paper_cost"] for c in paper["candidates"] if c["refused"] is None}
    assert cost["EAP11 running"] == cost["EAP11 expire"] < cost["EAP01 running"] < cost["LAP recompute"]
    assert paper["chosen"] == "EAP11 running" and "paper" in paper["why"]
    assert measured["statistics"]["streams"]["v"]["rate"] == 300 and measured["chosen"] in cost
    faster = {**told, "streams": {**told["streams"], "v": {"rate": 600, "groups": 150, "selectivity": 0.1}}}
    assert {
        c["plan"]: c["paper_cost"] for c in pipe.explain("q", statistics=faster)["candidates"]
    }["LAP recompute"] > cost["LAP recompute"]


@pytest.mark.parametrize("told,word", [({
    "stream": {}
}, "streams"), ({
    "streams": {
        "v": {
            "rat": 1
        }
    }
}, "rate"), ({
    "streams": {
        "w": {}
    }
}, "v"), ({
    "streams": {
        "v": {
            "rate": -1
        }
    }
}, "rate"), ({
    "method": "magic"
}, "nested loop")])
def test_bad_statistics_are_refused_by_name(tmp_path: Path, told: dict[str, object], word: str) -> None:
    with pytest.raises(ForebayError) as refused:
        started(tmp_path).explain("q", statistics=told)
    assert word in f"{refused.value} {refused.value.hint}"


@pytest.mark.long
def test_on_stationary_input_nothing_switches(tmp_path: Path) -> None:
    pipe = started(tmp_path)
    for n in range(100):
        fill(pipe, range(n, n + 1))
        pipe.run(flush=True)
    assert not [d for d in pipe.plans("q")["decisions"] if d["switched_from"]]


def test_regret_leaves_out_what_starting_a_process_takes() -> None:
    """Its first batch also starts Spark, whatever the plan."""
    entry = {"measured_s": 5.0, "best_s": 0.2, "boundaries": 1}
    assert decisions.regret({**entry, "started": True}) is None
    assert decisions.regret({**entry, "started": False}) == pytest.approx(4.8)
    assert decisions.regret({**entry, "started": False, "boundaries": 3}) is None, "prices are of one boundary"


def test_two_processes_each_start_once(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [1, 11, 21, 31])
    ran(pipe, batches=1)
    ran(pipe, batches=1)
    entries = pipe.plans("q")["decisions"]
    assert [e["started"] for e in entries] == [True, False], "the second batch is of the same process"
