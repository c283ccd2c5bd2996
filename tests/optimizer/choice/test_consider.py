"""A pinned name is kept whatever it costs; its form is the cheapest of that name, and follows what the streams do."""
from __future__ import annotations

from optimizer.choice.consider import PINNED, Costs, consider, with_width
from optimizer.choice.decide import Past
from optimizer.cost.measured import prior
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
