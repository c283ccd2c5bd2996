"""Candidates side by side: what was predicted, what was measured, what is refused and why; prices from decision to
decision.
"""
from __future__ import annotations

from math import isnan

import pytest

from jobs.results.candidates import compared, measured_seconds, prices_over_time
from tests.jobs.spans import span, switched
from tests.optimizer.planning import BATCH


def test_every_plan_is_listed_once_the_cheapest_first_and_refused_ones_last() -> None:
    early, late = switched()
    rows = compared(early, early.price_lists[-1], (early, late))
    assert [row.plan for row in rows[:3]] == ["EAP01 recompute", "EAP11 expire", "LAP recompute"]
    assert len({row.plan for row in rows}) == len(rows) == 15
    assert [row.plan for row in rows if row.chosen] == ["LAP recompute"]
    without_price = [row for row in rows if row.predicted_s is None]
    assert rows[3:] == tuple(without_price), "plans that were not priced come after those that were"
    assert [row.plan for row in rows[-4:]] == ["EAP01 retract", "EAP10 retract", "EAP11 retract", "LAP retract"]
    assert all(row.refused for row in rows[-4:]) and not any(row.refused for row in rows[:-4])


def test_measured_stands_beside_predicted_where_a_plan_was_in_force() -> None:
    early, late = switched()
    measured = {row.plan: row.measured_s for row in compared(late, late.price_lists[0], (early, late))}
    assert measured["LAP recompute"] == pytest.approx(0.6) and measured["EAP01 recompute"] == pytest.approx(0.31)
    assert measured["EAP11 expire"] is None
    other_text = span("LAP recompute", {1: 7.0}, sql="SELECT 1")
    measured_of_text = {row.plan for row in compared(late, None, (other_text, late)) if row.measured_s is not None}
    assert measured_of_text == {"EAP01 recompute"}


def test_a_plan_that_returns_is_measured_over_all_its_batches() -> None:
    early, late = switched()
    again = span("LAP recompute", {7: 0.4})
    assert measured_seconds((early, late, again))["LAP recompute"] == pytest.approx(0.4)


def test_a_price_holds_until_the_next_decision() -> None:
    prices = prices_over_time(switched())
    assert [at // BATCH for at, _ in prices["LAP recompute"]] == [1, 4, 5, 6]
    assert [seconds for _, seconds in prices["LAP recompute"]] == [0.2, 0.8, 1.2, 1.2]
    assert [isnan(seconds) for _, seconds in prices["EAP11 expire"]] == [True, False, True, True]


def test_without_decisions_there_are_no_prices() -> None:
    pinned = span("LAP recompute", {1: 0.2}, predicted=None)
    assert prices_over_time((pinned,)) == {}
    assert all(row.predicted_s is None for row in compared(pinned, None, (pinned,)))
