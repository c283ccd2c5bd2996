"""When a plan is worth trying beside the one in force, and when it is kept: what it promises, what it costs, what was
measured.
"""
from __future__ import annotations

from dataclasses import replace

import pytest

from optimizer.choice.decide import BEYOND_MEASURE, DEFAULT, Decision, Past, Priced, Tried, priced
from optimizer.choice.tried import has_told, judged_try, with_try
from optimizer.plan.model import Candidate, Plan

LAP = Plan((False, False), "recompute", (0, 1))
EARLY = Plan((False, True), "recompute", (0, 1))
DOUBTFUL = Past(LAP, 100, measured=(1.0, 1.1, 1.0), allowance=10.0)


def candidates(early: float = 1.05, doubt: float | None = 0.4) -> tuple[Priced, ...]:
    return Priced(LAP, 1.0), Priced(EARLY, early, doubt=doubt)


def decision(prices: tuple[Priced, ...] = candidates(), past: Past = DOUBTFUL, building: float = 0.0) -> Decision:
    """What becomes of a decision to stay with LAP."""
    def detail(plan: Plan) -> Priced:
        return replace(next(c for c in prices if c.plan == plan), building=building)

    return with_try(Decision(LAP, None, "the cheapest", 1.0, prices), detail, past, DEFAULT)


def test_a_plan_that_may_be_much_cheaper_is_tried_beside_the_one_in_force() -> None:
    tried = decision()
    assert (tried.plan, tried.switched_from, tried.tried) == (LAP, None, EARLY)
    assert "may take as little as 450.0 ms" in tried.reason and "1000.0 ms are measured" in tried.reason


@pytest.mark.parametrize("prices,past,building", [
    pytest.param(candidates(doubt=0.1), DOUBTFUL, 0.0, id="it promises too little"),
    pytest.param(candidates(doubt=None), DOUBTFUL, 0.0, id="it was measured already"),
    pytest.param(candidates(), replace(DOUBTFUL, measured=(1.0, 1.0)), 0.0, id="the present plan is hardly known"),
    pytest.param(candidates(), replace(DOUBTFUL, before="EAP11 running", since=DEFAULT.rest - 1), 0.0, id="rest"),
    pytest.param(candidates(), replace(DOUBTFUL, allowance=5.0), 0.0, id="five of its boundaries cost more"),
    pytest.param(candidates(), replace(DOUBTFUL, allowance=1e9), 60.0, id="its state costs more than it could save"),
])
def test_nothing_that_costs_too_much_or_tells_nothing(prices: tuple[Priced, ...], past: Past, building: float) -> None:
    assert decision(prices, past, building).tried is None


def test_what_makes_all_plans_dearer_is_no_reason_to_try_one() -> None:
    """A busy machine: the plan in force takes twice its price, so would the other one."""
    assert decision(candidates(1.05, 0.1), replace(DOUBTFUL, measured=(2.0,) * 3, allowance=100.0)).tried is None


def test_what_is_tried_goes_on_being_tried_whatever_the_prices_are() -> None:
    assert decision(candidates(doubt=None), replace(DOUBTFUL, tried=Tried(EARLY), allowance=0.0)).tried == EARLY


@pytest.mark.parametrize("tried,allowance,told", [
    (Tried(EARLY, (1.0,) * 2, (1.0,) * 2), 1.0, False),
    (Tried(EARLY, (1.0,) * 3, (1.0,) * 3), 1.0, True),
    (Tried(EARLY, failed="division by zero"), 1.0, True),
    (Tried(EARLY), -0.1, True)])
def test_it_ends_when_it_was_measured_failed_or_took_too_much(tried: Tried, allowance: float, told: bool) -> None:
    assert has_told(tried, allowance, DEFAULT) == told


def judged(tried: Tried, outside: float = 0.0, price: float = 2.0) -> Decision:
    past = replace(DOUBTFUL, tried=tried)
    prices = candidates(price)
    return judged_try(prices, prices[0], past, DEFAULT, lambda plan: outside)


def test_the_cheaper_one_goes_on_and_its_price_is_what_was_measured() -> None:
    """Its price said twice as dear; at the same boundaries it took half."""
    kept = judged(Tried(EARLY, (0.4, 0.5, 0.6), (0.9, 1.0, 1.1)))
    assert (kept.plan, kept.switched_from, kept.tried) == (EARLY, LAP, None)
    assert kept.predicted == pytest.approx(0.5) and kept.reason.startswith("kept: at 3 boundaries")
    assert kept.corrections == {"EAP01 recompute": (pytest.approx(0.25), 0)}


def test_what_saves_too_little_is_left_and_is_not_tried_again() -> None:
    left = judged(Tried(EARLY, (0.95,) * 3, (1.0,) * 3))
    assert (left.plan, left.switched_from, left.tried) == (LAP, None, None) and "is left" in left.reason
    past = replace(DOUBTFUL, corrections=left.corrections)
    again = priced([Candidate(LAP), Candidate(EARLY)], lambda plan: candidates(2.0)[plan == EARLY], past)
    assert again[1].seconds == pytest.approx(0.95) and again[1].doubt is None
    assert decision(again, past).tried is None


def test_seconds_outside_of_tasks_count_for_both() -> None:
    assert judged(Tried(EARLY, (0.5,) * 3, (1.0,) * 3), outside=10.0).plan == LAP


def test_one_that_failed_is_left_for_good_and_one_that_took_too_long_without_blame() -> None:
    failed, slow = judged(Tried(EARLY, failed="out of memory")), judged(Tried(EARLY))
    assert failed.plan == slow.plan == LAP and "out of memory" in failed.reason
    assert failed.corrections["EAP01 recompute"][0] == BEYOND_MEASURE
    assert slow.corrections["EAP01 recompute"][0] == 1.0 and "3%" in slow.reason
