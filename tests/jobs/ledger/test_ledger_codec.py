"""What the ledger writes it reads again, and entries of before mean what they meant then."""
from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from jobs.ledger.codec import (
    decode_decision,
    decode_entry,
    decode_form,
    decode_prices,
    decode_runner,
    encode_decision,
    encode_entry,
    encode_form,
    encode_prices,
)
from jobs.ledger.entries import (
    Batch,
    KeptState,
    LedgerEntry,
    PlanDecision,
    PricedPlan,
    QueryGroupPrices,
    Runner,
    TimeSpent,
    TriedPlan,
)
from jobs.ledger.queries import DECIDE, QueryChange, queries_at
from optimizer.choice.decide import Tried
from optimizer.plan.model import EXCHANGES, KEEPING, Plan
from optimizer.sharing.price import Ratios, SharingPast

LATER = {"entry": ("tables", "tried", "spent"), "batch": ("shared", "weighed", "parts", "tried", "sharing"),
         "plan": ("sharing", "levels", "hops", "split", "divided", "read_joined"), "state": ("relations", "batch")}
PRICES = {"together_s": 0.4, "rule_s": 0.5, "apart_s": 1.9, "forms": 2.0, "parts": 4, "paper_together": 9.0,
          "paper_apart": 40.0, "counted_times_rule": 0.8, "together_off": 1.2, "apart_off": 0.9,
          "before by key": 0.3, "after by files of 1": 0.7}


def random_plan(random: Random) -> Plan:
    inputs = random.randint(1, 3)
    order = random.sample(range(inputs), inputs)
    digits = tuple(random.random() < 0.5 for _ in order)
    levels = random.choice(((), (60,), (60, 120)))
    return Plan(digits, random.choice(tuple(KEEPING)), tuple(order), random.choice(tuple(EXCHANGES)),
                parts=random.choice((0, 4)), levels=levels, hops=random.choice(((), tuple(30 for _ in levels))),
                split=random.choice(("before", "after")), divided=random.choice((None, 0)),
                read_joined=random.choice(((), (0, 1))))


def random_states(random: Random) -> dict[str, KeptState]:
    return {f"q{n}": KeptState(random_plan(random), 60 * n, 120 * n, random.choice(({}, {"pages": 3})), n)
            for n in range(random.randint(0, 3))}


def random_tried(random: Random) -> dict[str, TriedPlan]:
    states = [None, *random_states(random).values()]
    return {f"q{n}": TriedPlan(Tried(random_plan(random), (0.1,) * n, (0.2,) * n, random.choice(("", "too large"))),
                               random.choice(states)) for n in range(random.randint(0, 2))}


def random_prices(random: Random) -> QueryGroupPrices:
    names = random.sample(tuple(PRICES), random.randint(0, len(PRICES)))
    return decode_prices({name: PRICES[name] for name in names})


def random_past(random: Random) -> SharingPast:
    def ratios() -> Ratios:
        return random.choice((Ratios(), Ratios((1.5,), 3), Ratios((random.random(), 2.0), 7)))

    return SharingPast(ratios(), ratios())


def random_entry(random: Random) -> LedgerEntry:
    batch = Batch(random.randrange(99), (60, 120), {f"q{n}": random_plan(random) for n in range(random.randint(0, 3))},
                  {"pages": 3}, random_states(random), {"state/q0/60/totals0": 5},
                  {f"shared:{n}-0": ("a", "b") for n in range(random.randint(0, 2))},
                  {f"shared:{n}-0": random_prices(random) for n in range(random.randint(0, 3))}, random.choice((0, 4)),
                  random_tried(random), random_past(random))
    return LedgerEntry(random.choice(("intent", "commit")), batch, random_states(random), {"streams/views": 7},
                       random_tried(random), TimeSpent(random.random(), 0.1))


@pytest.mark.parametrize("seed", range(50))
def test_an_entry_is_read_as_it_was_written(seed: int) -> None:
    entry = random_entry(Random(seed))
    assert decode_entry(encode_entry(entry)) == entry


def without_later_names(value: dict[str, Any], kind: str, random: Random) -> dict[str, Any]:
    shortened = {name: part for name, part in value.items() if name not in LATER[kind] or random.random() < 0.5}
    if "levels" not in shortened:      # whoever knew of hops knew of the levels that have them
        shortened.pop("hops", None)
    return shortened


def older(document: dict[str, Any], random: Random) -> dict[str, Any]:
    """As code of before wrote it: some of what came later is not there, and plans have the defaults of then."""
    def plans(values: dict[str, Any]) -> dict[str, Any]:
        return {query: without_later_names(plan, "plan", random) for query, plan in values.items()}

    def states(values: dict[str, Any]) -> dict[str, Any]:
        shortened = {query: without_later_names(state, "state", random) for query, state in values.items()}
        return {query: {**state, **plans({"plan": state["plan"]})} for query, state in shortened.items()}

    batch = without_later_names(document["batch"], "batch", random)
    batch = {**batch, "plans": plans(batch["plans"]), "states": states(batch["states"])}
    return {**without_later_names(document, "entry", random), "batch": batch, "states": states(document["states"])}


@pytest.mark.parametrize("seed", range(50))
def test_what_an_older_entry_does_not_say_is_as_it_was_then(seed: int) -> None:
    random = Random(seed)
    document = older(json.loads(encode_entry(random_entry(random))), random)
    batch = document["batch"]

    entry = decode_entry(json.dumps(document))

    assert entry.is_open == (document["phase"] == "intent")
    assert entry.batch.parts == batch.get("parts", 0)
    assert {group: list(names) for group, names in entry.batch.query_groups.items()} == batch.get("shared", {})
    assert entry.table_versions == document.get("tables", {})
    for query, plan in batch["plans"].items():
        decoded = entry.batch.plans[query]
        assert (decoded.keeping, list(decoded.order)) == (plan["keeping"], plan["order"])
        assert (decoded.split, list(decoded.levels)) == (plan.get("split", "before"), plan.get("levels", []))
    for query, state in document["states"].items():
        kept = entry.states[query]
        assert (kept.as_of, kept.batch) == (state["at"], state.get("batch", -1))
        assert kept.relation_versions == state.get("relations", {})


def test_names_on_the_disk_stay() -> None:
    plan = Plan((True,), "running", (0,))
    batch = Batch(7, (120,), {"top": plan}, {"pages": 3}, {}, {"state/top/60/totals0": 5},
                  {"shared:1-0": ("top", "few")},
                  {"shared:1-0": QueryGroupPrices(together_s=0.4, seconds_by_way={"before by key": 0.3})}, 2)
    written = json.loads(encode_entry(LedgerEntry("commit", batch, {"top": KeptState(plan, 60, 120, {"pages": 3}, 7)})))
    form = {"name": "EAP1 running", "digits": [True], "keeping": "running", "order": [0], "exchange": "slice",
            "layout": "panes", "invalidation": "insert", "place": "tasks", "parts": 0, "sharing": "each", "levels": [],
            "hops": [], "split": "before", "divided": None, "read_joined": []}
    assert written == {
        "phase": "commit", "tables": {}, "tried": {}, "spent": {"seconds": 0.0, "trying": 0.0},
        "batch": {"number": 7, "boundaries": [120], "plans": {"top": form}, "relations": {"pages": 3}, "states": {},
                  "versions": {"state/top/60/totals0": 5}, "shared": {"shared:1-0": ["top", "few"]},
                  "weighed": {"shared:1-0": {"together_s": 0.4, "before by key": 0.3}}, "parts": 2, "tried": {},
                  "sharing": {}},
        "states": {"top": {"plan": form, "epoch": 60, "at": 120, "relations": {"pages": 3}, "batch": 7}}}
    assert json.loads(encode_form(plan)) == form and decode_form(json.dumps(form)) == plan


@pytest.mark.parametrize(("text", "runner"), [
    ("node1:4711", Runner("node1:4711")),
    ("node1:4711 scheduled run 2025-01-01", Runner("node1:4711", "scheduled", "run 2025-01-01")),
    ("node1:4711 asset", Runner("node1:4711", "asset")),
])
def test_a_runner_is_process_trigger_and_run(text: str, runner: Runner) -> None:
    assert decode_runner(text) == runner


def test_later_prices_stand_in_the_place_of_earlier_ones() -> None:
    earlier = QueryGroupPrices(together_s=0.4, paper_apart=3.0, seconds_by_way={"before by key": 0.3})
    later = QueryGroupPrices(together_s=0.5, seconds_by_way={"after by key": 0.2})
    both = QueryGroupPrices(together_s=0.5, paper_apart=3.0, seconds_by_way={"before by key": 0.3, "after by key": 0.2})
    assert earlier.updated(later) == both
    assert both.counts() == QueryGroupPrices(paper_apart=3.0, seconds_by_way=both.seconds_by_way)
    assert QueryGroupPrices().says_nothing and not earlier.says_nothing
    assert decode_prices(encode_prices(both)) == both


@pytest.mark.parametrize("seed", range(5))
def test_a_decision_is_read_as_it_was_written_and_one_of_a_later_version_is_none(seed: int) -> None:
    random = Random(seed)
    candidates = (PricedPlan("LAP recompute", 0.8), PricedPlan("EAP1 running", 0.4, 4000.0, 12.0))
    decision = PlanDecision(random.randint(1, 9), random_plan(random), "the cheapest", 0.4, candidates, 100.0,
                            random.choice((None, "shared:1-0")), random_prices(random),
                            random.choice((None, random_plan(random))))
    assert decode_decision(encode_decision(decision)) == decision
    later = json.loads(encode_decision(decision))
    later["plan"]["exchange"] = "by pigeon"
    assert decode_decision(json.dumps(later)) is None and decode_decision("") is None


def test_a_decision_counts_for_the_creation_that_it_names() -> None:
    """A query created at 0, decided on for 20, replaced for 40, decided on once more as if it had not been."""
    plan = Plan((True,), "recompute", (0,))

    def decided(creation: int, effective: int) -> QueryChange:
        return QueryChange("top", DECIDE, effective, columns=encode_decision(PlanDecision(creation, plan, "")))

    changes = [QueryChange("top", "create", 0, "SELECT 1"), decided(1, 20),
               QueryChange("top", "create", 40, "SELECT 2"),
               decided(1, 40), decided(2, 60), QueryChange("top", "resume", 80)]
    states = {boundary: queries_at(changes, boundary)["top"] for boundary in (0, 20, 40, 60, 80)}
    assert [states[t].creation for t in states] == [1, 1, 2, 2, 3]
    assert [states[t].decided is not None for t in states] == [False, True, False, True, False]
    assert states[60].decided_from == 60
