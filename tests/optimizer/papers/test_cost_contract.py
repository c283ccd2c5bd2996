"""Prices add up, compare and print in one place."""
from __future__ import annotations

from functools import partial

from optimizer.papers.contract import Price
from optimizer.papers.many_way import price
from optimizer.plan.model import candidates
from tests.optimizer.papers.costs import by_hand, ranked
from tests.optimizer.planning import query


def test_a_price_is_the_sum_of_its_nodes() -> None:
    found = Price((("Join", 30), ("Scan v", 10)), "units", "somewhere")
    assert (found.total, found.of("Join"), found.of("AS v")) == (40, 30, 0)


def test_ranking_is_by_total_and_keeps_the_order_of_equals() -> None:
    plans = [c.plan for c in candidates(query("two-streams"))]
    found = ranked(partial(price, setting=by_hand("hash")), plans)
    # 4704, see test_cost_two_way
    assert [p.name for p, _ in found[:4]] == ["EAP10 recompute", "EAP10 running", "EAP10 retract", "EAP10 expire"]
    assert [c.total for _, c in found] == sorted(c.total for _, c in found) and found[-1][0].name == "EAP01 expire"
