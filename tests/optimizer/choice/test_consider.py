"""A pinned name is kept whatever it costs; its form is the cheapest of that name, and follows what the streams do."""
from __future__ import annotations

from dataclasses import replace

from optimizer.choice.consider import PINNED, Costs, consider, judged_switch, with_width
from optimizer.choice.decide import Past
from optimizer.cost.measured import prior
from optimizer.cost.paper_constants import engine_constants
from optimizer.plan.model import named
from tests.optimizer.planning import query
from tests.optimizer.statistics.observing import two

TWO = query("two-streams")
COSTS = with_width(Costs(prior()), 4)
SLOW, FAST = two(), two(views=2_000_000, clicks=1_000_000, keys=1_000)


def test_a_pinned_plan_is_kept_though_another_is_cheaper() -> None:
    decision = consider(TWO, SLOW, COSTS, only="LAP retract")
    assert decision.plan.name == "LAP retract" and decision.reason == PINNED
    assert decision.predicted is not None and decision.best is not None and decision.predicted > decision.best


def test_its_form_follows_the_rates() -> None:
    alone = consider(TWO, SLOW, COSTS, only="EAP01 recompute").plan
    later = consider(TWO, FAST, COSTS, Past(alone, 50), only="EAP01 recompute")
    assert (alone.layout, later.plan.layout) == ("raw", "panes")
    assert later.plan.name == "EAP01 recompute" and later.reason == PINNED and later.switched_from == alone


def test_a_form_that_is_as_good_stays() -> None:
    alone = consider(TWO, SLOW, COSTS, only="EAP01 recompute").plan
    again = consider(TWO, two(views=11), COSTS, Past(alone, 50), only="EAP01 recompute")
    assert again.plan == alone and again.switched_from is None


def test_pinning_leaves_the_plan_before() -> None:
    before = consider(TWO, SLOW, COSTS).plan
    assert consider(TWO, SLOW, COSTS, Past(before, 5), only="LAP retract").switched_from == before


BY_PAPER = replace(COSTS, model="paper", constants=engine_constants(prior()))


def test_by_the_papers_model_the_least_cost_is_chosen_and_its_price_is_in_seconds() -> None:
    decision = consider(TWO, FAST, BY_PAPER)
    least = min(c.paper for c in decision.candidates if c.paper is not None)
    chosen = next(c for c in decision.candidates if c.plan == decision.plan)
    assert chosen.paper == least and decision.plan.keeping == "running" and "paper's model" in decision.reason
    by_ones = consider(TWO, FAST, replace(BY_PAPER, constants=None))
    cheapest_of_ones = min(c.paper for c in by_ones.candidates if c.paper is not None)
    assert least < 1e-6 * cheapest_of_ones      # seconds a second, not units of 1


def test_by_the_papers_model_a_plan_that_is_nearly_as_good_stays_and_a_dear_one_is_left() -> None:
    best = consider(TWO, FAST, BY_PAPER).plan
    other_keeping = replace(named(TWO, f"{best.name.split()[0]} expire"))
    assert consider(TWO, FAST, BY_PAPER, Past(other_keeping, 50)).plan == other_keeping
    late = named(TWO, "LAP recompute")
    left = consider(TWO, FAST, BY_PAPER, Past(late, 50))
    assert left.plan == best and left.switched_from == late
    resting = consider(TWO, FAST, BY_PAPER, Past(late, 3, before=best.name))
    assert resting.plan == late and resting.switched_from is None


def test_a_switch_is_judged_by_itself_once_it_was_measured_three_times() -> None:
    best = consider(TWO, FAST, COSTS).plan
    dear = (1e9, 1e9, 1e9)
    undone = judged_switch(TWO, FAST, COSTS, Past(best, 200, "LAP recompute", dear, 1.0))
    assert undone is not None and undone.plan.name == "LAP recompute" and undone.switched_from == best
    assert judged_switch(TWO, FAST, COSTS, Past(best, 200, "LAP recompute", dear[:2], 1.0)) is None
    assert judged_switch(TWO, FAST, COSTS, Past(best, 200, "LAP recompute", (1e-9,) * 3, 1.0)) is None
