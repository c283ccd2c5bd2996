"""Paper A's model for many streams: equal to the two-way equations, by hand for three, Figs.

8 and 9, and prices of plans with what lies outside.
"""
from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.errors import ForebayError
from optimizer.papers.derived import matches
from optimizer.papers.many_way import local_costs, many_way, price, probe_order
from optimizer.papers.statistics import METHODS, Setting
from optimizer.papers.two_way import two_way
from optimizer.plan.model import Plan, candidates
from tests.optimizer.papers.costs import by_hand, costs, digits, paper, settings
from tests.optimizer.planning import query


@given(settings(2, 2))
def test_two_streams_give_equations_1_to_12_exactly(setting: Setting) -> None:
    assert all(many_way(setting, (x, y)) == two_way(setting, (x, y)) for x, y in digits(2))


def test_three_streams_by_hand() -> None:
    """EAP101, hash: x = 3, 2, 1 and X/B = 3, 2, 1, P = 2, U = 20, Ug = 100, α/Bg = 1.

    s1: 20 + 300 + (1·2 + 1·2·2) + 2·100 = 526, 2λ = 4;  s2: 20 + (1·2 + 1·3·2) + 3·100 = 328, 8;  s3: 20 + 100 + (2·2 +
    2·3·2) + 6·100 = 736, 2.
    """
    assert many_way(by_hand("hash", 3), (True, False, True)) == 4 * 526 + 8 * 328 + 2 * 736 == 6200
    assert local_costs(
        by_hand("hash", 3),
        (True, False, True)) == (("Late aggregation", 4 * 200 + 8 * 300 + 2 * 600), ("Join", 4 * 6 + 8 * 8 + 2 * 16),
                                 ("AS s1", 1200), ("AS s3", 200), ("Scan s1", 80), ("Scan s2", 160), ("Scan s3", 40))


def test_three_streams_late_by_hand() -> None:
    """Nested loop: x = 5, 2, 2 and X = 10, 6, 8, P = 1, U = 10; equal matches are probed in FROM order.

    s1: 10 + (6 + 2·8) + 4·100 = 432, 2λ = 4;  s2: 10 + (8 + 2·10) + 10·100 = 1038, 8;  s3: 10 + (6 + 2·10) + 10·100 =
    1036, 2.
    """
    assert many_way(by_hand("nested loop", 3), (False,) * 3) == 4 * 432 + 8 * 1038 + 2 * 1036 == 12104


@given(settings(1, 5), st.data())
def test_probes_go_from_few_matches_to_many(setting: Setting, data: st.DataObject) -> None:
    m = len(setting.streams)
    plan, k = data.draw(st.sampled_from(digits(m))), data.draw(st.integers(0, m - 1))
    order = probe_order(setting, plan, k)
    found = [matches(setting.streams[j], plan[j]) for j in order]
    assert found == sorted(found) and sorted((*order, k)) == list(range(m))


@given(settings(2, 4), st.data())
def test_ascending_matches_are_the_cheapest_order_among_sets_of_one_size(setting: Setting, data: st.DataObject) -> None:
    """Where the inputs cost the same to probe, no order is better than the fewest matches first."""
    looped = replace(setting, method="nested loop", streams=tuple(replace(s, window=50) for s in setting.streams))
    late = (False,) * len(looped.streams)
    order = data.draw(st.permutations(range(len(late))))
    assert many_way(looped, late) <= many_way(looped, late, tuple(order))


def test_ascending_matches_are_not_always_the_cheapest_order() -> None:
    """s1 probes s2, then s3: 100 + 10·1000, where s3, then s2 is 1000 + 10·100.

    One tuple more in s2 swaps them: 1000 + 10·101.
    """
    looped = [paper("nested loop", (1, 0, 1, 1), (0, window, 1, 0.1), (0, 1000, 1, 0.01)) for window in (100, 101)]
    assert [dict(local_costs(s, (False,) * 3))["Join"] for s in looped] == [2 * 10100, 2 * 2010]
    assert dict(local_costs(looped[0], (False,) * 3, (0, 2, 1)))["Join"] == 2 * 2000


def test_the_dearest_setting_of_twelve_inputs_is_finite() -> None:
    assert many_way(paper("nested loop", *[(1e12, 1e12, 1e12, 1)] * 12), (False,) * 12) < float("inf")


@given(settings(2, 4))
def test_with_one_order_cost_is_linear_in_rates_and_never_falls_with_windows(setting: Setting) -> None:
    order = tuple(range(len(setting.streams)))
    faster = replace(setting, streams=tuple(replace(s, rate=2 * s.rate) for s in setting.streams))
    wider = replace(setting, streams=tuple(replace(s, window=2 * s.window) for s in setting.streams))
    for plan in digits(len(order)):
        cost = many_way(setting, plan, order)
        assert many_way(faster, plan, order) == 2 * cost and many_way(wider, plan, order) >= cost


@given(settings(3, 3))
def test_inputs_may_be_renumbered(setting: Setting) -> None:
    """Where no two have equal matches, which FROM order would decide."""
    for plan in digits(3):
        if len({matches(s, d) for s, d in zip(setting.streams, plan)}) == 3:
            found = {
                many_way(replace(setting, streams=tuple(setting.streams[i] for i in p), hashed=p.index(0)),
                         tuple(plan[i] for i in p)) for p in permutations(range(3))
            }
            assert len(found) == 1


def test_a_relation_does_no_work_of_its_own() -> None:
    setting = by_hand("hash")
    still = replace(setting, streams=(setting.streams[0], replace(setting.streams[1], rate=0)))
    parts = dict(local_costs(still, (True, True)))
    assert parts["Scan s2"] == parts["AS s2"] == 0 and parts["Join"] == 2 * 2 * 1 * 2            # λ1·2·(α2/B2)·Ph


def three(method: str, rate: float = 200, window: float = 300, groups: float = 20,
          selectivity: float = 0.1) -> dict[str, float]:
    """Figs. 8, 9: one value of stream 1 varied."""
    return costs(
        paper(method, (rate, window, groups, selectivity), (200, 300, 1, selectivity), (200, 300, 1, selectivity)))


@pytest.mark.parametrize("method", METHODS)
def test_figures_8a_and_9a_early_plans_flatten(method: str) -> None:
    at = {w: three(method, window=w) for w in (100, 200, 300)}                                   # g1/σ1 = 200
    assert all(at[200][p] == at[300][p] > at[100][p] for p in at[300] if p[0] == "1")
    assert all(at[300][p] > at[200][p] > at[100][p] for p in at[300] if p[0] == "0")


@pytest.mark.parametrize("method", METHODS)
def test_figures_8b_and_9b_early_plans_cross_the_late_ones_as_groups_grow(method: str) -> None:
    few, many = three(method, groups=3), three(method, groups=243)
    overhead = 200 * 2 * (300 / 10)                                                              # λ1·2(w1/B1)Ug
    for rest in ("00", "01", "10", "11"):
        assert few["1" + rest] < few["0" + rest] and many["1" + rest] == pytest.approx(many["0" + rest] + overhead)


@pytest.mark.parametrize("method", METHODS)
def test_figures_8c_and_9c_all_are_linear_in_the_rate(method: str) -> None:
    slow, middle, fast = (three(method, rate=r) for r in (100, 350, 600))
    slope = {p: fast[p] - middle[p] for p in fast}
    assert all(0 < slope[p] == pytest.approx(middle[p] - slow[p]) for p in fast)
    # s1 probes windows only
    assert min(slope["000"], slope["100"]) > max(slope[p] for p in slope if p[1:] != "00")


def test_figures_8d_and_9d_selectivity() -> None:
    steps = (0.0005, 0.005, 0.05, 0.5)
    hashed, looped = [three("hash", selectivity=s) for s in steps], [three("nested loop", selectivity=s) for s in steps]
    assert all(a[p] < b[p] for a, b in zip(hashed, hashed[1:]) for p in a)
    assert looped[-1]["111"] < looped[0]["111"] and looped[-1]["000"] > looped[0]["000"]


@pytest.mark.parametrize("method", METHODS)
def test_early_aggregation_gains_more_with_more_streams(method: str) -> None:
    """Section 7.2.2: "the reduction of join cardinality is magnified as the arity of a join increases"."""
    gains = []
    for m in (2, 3, 4):
        found = costs(paper(method, (200, 300, 20, 0.1), *[(200, 300, 1, 0.1)] * (m - 1)))
        gains.append(found["0" * m] / found["1" * m])
    assert 1 < gains[0] < gains[1] < gains[2]


def test_all_ways_of_keeping_have_one_price_and_say_what_is_outside() -> None:
    setting, asked = by_hand("hash"), query("two-streams")
    prices = {c.plan.name: price(c.plan, setting, asked) for c in candidates(asked)}
    assert {
        n: p.total for n, p in prices.items() if n.startswith("EAP10")
    } == {
        f"EAP10 {k}": 4704 for k in ("recompute", "running", "retract", "expire")
    }
    assert {n for n, p in prices.items() if not p.outside} == {"LAP retract"}
    assert prices["LAP retract"].equation == "paper A, Eq. 9" and prices["EAP01 expire"].equation == "paper A, Eq. 11"
    assert price(candidates(asked)[0].plan, by_hand("nested loop")).equation == "paper A, Eq. 5"


@pytest.mark.parametrize("name,reason", [("rows", "joined rows"), ("extremes", "MIN or MAX"),
                                         ("distinct", "no partial states")])
def test_queries_that_the_equations_do_not_see(name: str, reason: str) -> None:
    found = price(Plan((False, False), "retract", (0, 1)), by_hand("hash"), query(name))
    assert found.total == 5136 and reason in " ".join(found.outside)


def test_extremes_of_landmark_windows_are_covered() -> None:
    assert price(Plan((False, False), "retract", (0, 1)), by_hand("hash"), query("landmark")).outside == ()


def test_inputs_joined_on_different_attributes_are_outside() -> None:
    text = ("SELECT COUNT(*) AS n FROM views AS a [WINDOW 1 MINUTE], pages AS p, views AS c [WINDOW 1 MINUTE] WHERE "
            "a.user = c.user AND a.page = p.page")
    assert "one join attribute" in price(Plan((False,) * 3, "retract", (0, 1, 2)), by_hand("hash", 3),
                                         query(text)).outside[0]


def test_one_stream_and_windows_that_do_not_slide_are_outside() -> None:
    """One stream, nested loop: 2λ(U + (α1/B1)Ug + (α/Bg)Ug) = 4·(10 + 300 + 100); half of it where nothing leaves."""
    setting = by_hand("nested loop", 1)
    alone = price(Plan((True,), "running", (0,)), setting)
    assert alone.total == 1640 and "at least two streams" in alone.outside[1]
    still = price(Plan((True,), "running", (0,)), replace(setting, streams=(replace(setting.streams[0],
                                                                                    leaving=False),)))
    assert still.total == 820 and "count once" in still.outside[2]


def test_a_plan_of_other_inputs_is_refused() -> None:
    with pytest.raises(ForebayError, match="statistics of 2 streams for a plan of 3 inputs"):
        many_way(by_hand("hash"), (True, False, True))
    with pytest.raises(ForebayError, match="expected each input's number once"):
        many_way(by_hand("hash"), (True, False), (0, 0))
