"""A pinned name is kept whatever it costs; its form is the cheapest of that name, and follows what the streams do."""
from __future__ import annotations

from dataclasses import replace

from optimizer.choice.consider import PINNED, Costs, consider, judged_switch, with_width
from optimizer.choice.decide import Past
from optimizer.cost.features import steady
from optimizer.cost.measured import prior
from optimizer.cost.paper_constants import engine_constants
from optimizer.plan.model import named
from optimizer.statistics.model import QueryStatistics
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


def _fallen() -> tuple[QueryStatistics, QueryStatistics, QueryStatistics]:
    """A thousandth of the rows come: before, right after, when windows still hold the others, and for good."""
    full, settled = (two(views=rows, clicks=rows / 2, keys=1_000, pairs=20_000, at=0) for rows in (2e6, 2e3))
    pairs = zip(settled.inputs, full.inputs)
    fallen = replace(settled, inputs=tuple(replace(one, present=of_full.rows) for one, of_full in pairs))
    return full, fallen, settled


def test_a_plan_that_reads_windows_waits_until_they_hold_what_rates_of_now_bring() -> None:
    """It would be the cheapest one by what is to come; until then it reads, or makes state of, what came before."""
    full, fallen, settled = _fallen()
    in_force = Past(consider(TWO, full, COSTS).plan, 50)
    waits = consider(TWO, fallen, COSTS, in_force)
    assert waits.switched_from is None and "windows still hold rows of a higher rate" in waits.reason
    assert consider(TWO, settled, COSTS, in_force).plan.name == "EAP01 recompute"


def test_what_was_measured_over_fuller_windows_undoes_no_switch() -> None:
    """The plan took ten times its price of now, at boundaries whose work was ten times as much."""
    _, _, settled = _fallen()
    plan = consider(TWO, settled, COSTS).plan
    price = consider(TWO, settled, COSTS, Past(plan)).predicted
    assert price is not None
    work = steady(TWO, plan, settled, 4).total
    more = {kind: 10 * amount for kind, amount in work.items()}
    past = Past(plan, 5, "EAP11 running", (10 * price,) * 3, 1.0, works=(more,) * 3)
    assert judged_switch(TWO, settled, COSTS, past) is None
    undone = judged_switch(TWO, settled, COSTS, replace(past, works=(work,) * 3))
    assert undone is not None and undone.plan.name == "EAP11 running"
