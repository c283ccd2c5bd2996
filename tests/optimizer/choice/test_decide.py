"""When a better plan is worth a switch: saving against building, hysteresis, rest, and a switch that turns out wrong.
"""
from __future__ import annotations

from dataclasses import replace

import pytest

from optimizer.choice.decide import DEFAULT, Decision, Past, Priced, comparable, decide, over_price, priced
from optimizer.plan.model import Candidate, Plan

LAP = Plan((False, False), "recompute", (0, 1))
EARLY = Plan((False, True), "recompute", (0, 1))
RUNNING = Plan((True, True), "running", (0, 1))


def prices(lap: float, early: float, running: float = 9.0, building: float = 0.0) -> tuple[Priced, ...]:
    return Priced(LAP, lap), Priced(EARLY, early, building=building), Priced(RUNNING, running, building=building)


def chosen(candidates: tuple[Priced, ...], past: Past) -> Decision:
    return decide(candidates, next((c for c in candidates if c.plan == past.plan), None), past)


def test_at_first_the_cheapest_is_taken_whatever_its_state_costs() -> None:
    decision = chosen(prices(1.0, 0.5, building=1e6), Past())
    assert (decision.plan, decision.switched_from, decision.predicted) == (EARLY, None, 0.5)


def test_a_refused_plan_is_never_chosen() -> None:
    cheap = replace(prices(1.0, 0.1)[1], refused="no")
    assert chosen((prices(1.0, 0.1)[0], cheap), Past()).plan == LAP


@pytest.mark.parametrize(
    "early,building,switches",
    [
        (0.5, 0.0, True),
        (0.5, 29.9, True),  # saves 0.5 s · 60 = 30 s
        (0.5, 30.1, False),
        (1.0 / DEFAULT.ratio + 0.001, 0.0, False),
        (1.0 / DEFAULT.ratio - 0.001, 0.0, True),
    ])
def test_a_switch_saves_more_than_it_costs_and_more_than_the_ratio(early: float, building: float,
                                                                   switches: bool) -> None:
    decision = chosen(prices(1.0, early, building=building), Past(LAP, since=100))
    assert (decision.plan == EARLY) == switches and (decision.switched_from == LAP) == switches


def test_a_saving_below_the_floor_is_not_worth_a_switch() -> None:
    assert chosen(prices(0.005, 0.005 - DEFAULT.floor * 0.9), Past(LAP, since=100)).plan == LAP
    assert chosen(prices(0.005, 0.005 - DEFAULT.floor * 1.1), Past(LAP, since=100)).plan == EARLY


@pytest.mark.parametrize("since,rests", [(DEFAULT.rest - 1, True), (DEFAULT.rest, False)])
def test_between_two_switches_there_is_rest(since: int, rests: bool) -> None:
    decision = chosen(prices(1.0, 0.5), Past(LAP, since, before="EAP11 running"))
    assert (decision.plan == LAP) == rests and ("are left between" in decision.reason) == rests


def test_the_first_plan_may_be_left_at_once() -> None:
    assert chosen(prices(1.0, 0.5), Past(LAP, since=1)).plan == EARLY


def test_a_switch_that_is_measured_worse_is_undone_and_does_not_return() -> None:
    past = Past(EARLY, 4, "LAP recompute", (2.0, 2.1, 1.9, 2.0), 1.0)
    undone = chosen(prices(1.0, 0.5), past)
    assert undone.plan == LAP and undone.switched_from == EARLY and undone.reason.startswith("undone")
    assert undone.corrections["EAP01 recompute"][0] == pytest.approx(4.0)      # 2 s measured, 0.5 s predicted
    again = priced([Candidate(LAP), Candidate(EARLY)], lambda plan: next(p for p in prices(1.0, 0.5) if p.plan == plan),
                   Past(corrections=undone.corrections))
    assert chosen(again, Past(LAP, 50, corrections=undone.corrections)).plan == LAP


@pytest.mark.parametrize("past", [
    Past(EARLY, DEFAULT.enough - 1, "LAP recompute", (2.0,), 1.0),              # too early to say
    Past(EARLY, 4, "LAP recompute", (2.0, 2.0, 2.0), 1.0, judged=True),        # it was said before
    # dear, but not dearer than the one before would be
    Past(EARLY, 4, "LAP recompute", (1.1, 1.2, 1.1), 1.0),
    # that one was measured at twice its price as well
    Past(EARLY, 4, "LAP recompute", (2.0, 2.0, 2.0), 2.0),
    Past(EARLY, 4, "LAP recompute", (), 1.0)])
def test_a_switch_stands_where_nothing_says_it_was_wrong(past: Past) -> None:
    assert chosen(prices(1.0, 0.5), past).plan == EARLY


def test_a_switch_is_judged_however_many_boundaries_have_passed() -> None:
    """Boundaries that ran many in a batch are not measured one by one: three that are can come late."""
    assert chosen(prices(1.0, 0.5), Past(EARLY, 500, "LAP recompute", (2.0, 2.1, 1.9), 1.0)).plan == LAP


def test_when_everything_becomes_dearer_the_switch_is_not_to_blame() -> None:
    """Rates rose tenfold since: measured 5 s, but the plan before it would cost 10 s now."""
    assert chosen(prices(10.0, 5.0), Past(EARLY, 4, "LAP recompute", (5.0, 5.0, 5.0), 1.0)).plan == EARLY


def test_a_plan_that_cannot_go_on_is_left_for_the_cheapest() -> None:
    decision = decide(prices(1.0, 0.5), None, Past(RUNNING, 100))
    assert decision.plan == EARLY and "can no longer hold" in decision.reason


def test_another_form_of_the_same_name_is_a_switch_too() -> None:
    sent = replace(EARLY, exchange="broadcast")
    decision = decide((Priced(LAP, 1.0), Priced(sent, 0.2)), Priced(EARLY, 0.5), Past(EARLY, 100))
    assert decision.plan == sent and "with exchange broadcast" in decision.reason


def test_a_switch_that_gets_cheaper_by_waiting_waits() -> None:
    """Windows still hold rows of a higher rate, from which its state would be made."""
    hasty = (Priced(LAP, 1.0), Priced(EARLY, 0.5, building=10.0, haste=0.2))
    decision = chosen(hasty, Past(LAP, since=100))
    assert decision.plan == LAP and "a boundary later the switch costs 200.0 ms less" in decision.reason
    sure = (hasty[0], replace(hasty[1], haste=-0.1))
    assert chosen(sure, Past(LAP, since=100)).plan == EARLY


def test_boundaries_of_fuller_windows_are_compared_by_what_their_work_costs() -> None:
    """Measured at twice their price, whatever that was: so much is the plan off now. Of others nothing is known."""
    past = Past(EARLY, 4, "LAP recompute", (3.0, 2.0, 0.2), 1.0, works=({"scan": 10.0}, {"scan": 1.0}))
    now = comparable(past, 0.5, lambda work: 0.1 * work["scan"])
    assert now.measured == pytest.approx((3.0, 1.0, 1.0)) and now.works == ()
    assert over_price(now, 0.5) == pytest.approx(2.0) and over_price(Past(EARLY), 0.5) is None


def test_what_is_left_keeps_how_far_it_was_off() -> None:
    assert chosen(prices(1.0, 0.5), Past(LAP, 100, measured=(2.0, 2.0, 9.0))).ratio_before == pytest.approx(2.0)
    undone = chosen(prices(1.0, 0.5), Past(EARLY, 4, "LAP recompute", (2.0, 2.1, 1.9), 1.0))
    assert undone.ratio_before == 1.0      # its price is corrected already
