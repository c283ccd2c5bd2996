"""Amounts of work worked by hand from the statements that a plan runs, what parts divide, and that more rows are never
less work.
"""
from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.cost.features import ONCE, Features, building, of_batch, state_rows, steady
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import KEEPING, Plan, candidates, named
from optimizer.plan.tree import state_sets
from optimizer.query.shape import shape
from optimizer.statistics.cardinality import distinct, sizes
from optimizer.statistics.model import QueryStatistics
from tests.optimizer.planning import query
from tests.optimizer.statistics.observing import two

TWO = query("two-streams")


def of(name: str, known: QueryStatistics | None = None, parts: int = 1, **changes: str) -> Features:
    return steady(TWO, replace(named(TWO, name), **changes), known or two(), parts)


def test_late_recomputation_reads_both_windows_and_keeps_nothing() -> None:
    found = of("LAP recompute").total
    assert found["scan"] == 600 * 3 + 200 * 2          # page, user, ms; user, amount
    assert found["probe"] == 600 and found["build"] == 200 * 4
    assert found["pairs"] == pytest.approx(1200 * 6)   # page, count, two measures each of spent and ms
    assert found["commits"] == 1
    assert not {"state_read", "state_write", "times", "keep"} & set(found)


def test_a_set_by_pane_reads_only_what_came_and_the_rest_from_state() -> None:
    found = of("EAP01 recompute").nodes
    pane = distinct(100, 50)
    assert found["Scan c"]["scan"] == 50 * 2           # user, amount
    assert found["AS c"]["state_write"] == pytest.approx(pane * 6)
    assert found["AS c"]["state_read"] == pytest.approx(4 * pane * 6)
    assert found["Scan v"]["scan"] == 600 * 3


def test_running_reads_what_came_and_left() -> None:
    found = of("EAP11 running").nodes
    assert found["Scan v"]["scan"] == 2 * 100 * 3 and found["Scan c"]["scan"] == 2 * 50 * 2
    assert found["AS c"]["state_read"] == pytest.approx(distinct(100, 200) * 4)


def test_what_a_set_kept_raw_is_made_from_is_the_whole_window() -> None:
    found = of("EAP01 recompute", layout="raw").nodes
    assert found["Scan c"]["scan"] == 200 * 2
    assert "state_read" not in found["AS c"]


def test_expiry_joins_what_came_and_keeps_the_answer_by_end() -> None:
    late = of("LAP expire").nodes
    assert late["Late aggregation"]["pairs"] == pytest.approx((100 * 200 + 600 * 50) / 100 * 7)
    assert late["fixed"]["commits"] == 2


@pytest.mark.parametrize("plan", [c.plan for c in candidates(TWO) if not c.refused], ids=lambda p: p.name)
def test_commits_are_those_of_the_plans_state_and_the_result(plan: Plan) -> None:
    assert steady(TWO, plan, two()).total["commits"] == len(state_sets(Lowering(shape(TWO), plan))) + 1


@pytest.mark.parametrize("plan", [
    pytest.param(c.plan, marks=pytest.mark.slow if n % 3 else (), id=c.plan.name)
    for n, c in enumerate(c for c in candidates(TWO) if not c.refused)
])
@given(st.floats(1, 1e5), st.floats(1, 50), st.sampled_from((1, 3)))
def test_more_rows_are_never_less_work(plan: Plan, rate: float, times: float, parts: int) -> None:
    less, more = (steady(TWO, plan, two(views=r), parts).total for r in (rate, rate * times))
    assert all(
        more.get(kind, 0) >= amount * (1 - 1e-9) for kind, amount in less.items() if kind not in ("build", "fanned"))


def test_the_first_batch_reads_everything_and_no_state() -> None:
    for keeping in KEEPING:
        found = building(TWO, named(TWO, f"EAP11 {keeping}"), two()).total
        assert found["scan"] >= 600 * 3 + 200 * 2 and "state_read" not in found


def test_a_plan_without_state_builds_as_it_goes_on() -> None:
    plan = named(TWO, "LAP recompute")
    assert building(TWO, plan, two()).total == steady(TWO, plan, two()).total


def test_slice_divides_one_input_and_repeats_the_others() -> None:
    one, four = (of("LAP recompute", parts=n).nodes for n in (1, 4))
    assert four["Scan v"]["scan"] == one["Scan v"]["scan"] / 4
    assert four["Scan c"]["scan"] == one["Scan c"]["scan"]
    assert four["Late aggregation"]["pairs"] == pytest.approx(one["Late aggregation"]["pairs"] / 4)


def test_partition_reads_all_files_everywhere_and_divides_the_rest() -> None:
    one, four = (of("EAP11 running", parts=n, exchange="partition").nodes for n in (1, 4))
    assert four["Scan v"]["scan"] == one["Scan v"]["scan"]
    assert four["AS v"]["state_write"] == pytest.approx(one["AS v"]["state_write"] / 4)


def test_shuffle_and_broadcast_send_rows() -> None:
    shuffled, sent = (of("EAP11 recompute", parts=4, exchange=e).nodes for e in ("shuffle", "broadcast"))
    assert shuffled["Scan v"]["scan"] == 100 * 3 / 4 and shuffled["Scan v"]["exchange"] > 0 and shuffled["fixed"][
        "jobs"] == 1
    assert sent["fixed"]["jobs"] == 2 and "exchange" not in sent["Scan v"] and sent["Scan c"]["exchange"] > 0


def test_work_in_the_jvm_has_names_of_its_own() -> None:
    assert all(kind.startswith("jvm_") for kind in of("LAP recompute", place="jvm").total)


def test_state_rows() -> None:
    known = two(pairs=300)
    assert state_rows(TWO, named(TWO, "LAP recompute"), known) == 0
    assert state_rows(TWO, named(TWO, "EAP11 running"), known) == pytest.approx(distinct(300, 600) + distinct(100, 200))
    assert state_rows(TWO, named(TWO, "LAP retract"), known) == 20


def test_rows_are_published_as_they_come() -> None:
    asked = query("rows")
    found = steady(asked, candidates(asked)[0].plan, two()).total
    assert found["state_write"] == pytest.approx(500 * 2)


def test_times_are_read_where_late_rows_stand_among_the_others() -> None:
    inputs = two().inputs
    late = replace(two(), inputs=(replace(inputs[0], late=0.1), inputs[1]))
    some, none = (of("EAP11 recompute", known).nodes for known in (late, two()))
    assert some["Scan v"]["scan"] == 100 * 5 and some["AS v"]["times"] == 100
    assert none["Scan v"]["scan"] == 100 * 3 and none["AS v"].get("times", 0) == 0


@pytest.mark.parametrize("name", ["LAP recompute", "EAP01 recompute", "EAP11 running", "EAP11 retract", "EAP11 expire"])
def test_a_batch_of_many_boundaries_does_once_what_they_share(name: str) -> None:
    plan, one = named(TWO, name), of(name).total
    ten, built = (of_batch(TWO, plan, two(), 1, 10, anew).total for anew in (False, True))
    assert of_batch(TWO, plan, two(), 1, 1).total == one
    assert of_batch(TWO, plan, two(), 1, 1, True).total == building(TWO, plan, two()).total
    assert all(ten[kind] == one[kind] for kind in ONCE if kind in one)
    assert ten["statements"] > one["statements"]
    assert all(one[kind] <= ten[kind] <= 10 * one[kind] + 1e-6 for kind in one)
    assert all(built.get(kind, 0.0) >= ten[kind] - one[kind] for kind in ten if kind.split()[0] not in ONCE)


def test_boundaries_that_share_a_statement_take_fewer() -> None:
    plan, one = named(TWO, "EAP11 recompute"), of("EAP11 recompute").total
    together = of_batch(TWO, plan, two(), 1, 10, together=4).total
    assert together["statements"] == pytest.approx(3 * one["statements"])
    assert together["pairs"] == pytest.approx(10 * one["pairs"])


def test_totals_that_one_statement_adds_up_are_made_where_they_change() -> None:
    """views: 100 rows come with each boundary to 600 totals, and 100 leave; else each boundary makes all 600 anew."""
    plan = named(TWO, "EAP10 running")
    alone, together = (of_batch(TWO, plan, two(), 1, 10, together=count) for count in (1, 64))
    assert together.total["keep"] < 0.75 * alone.total["keep"]
    assert together.total["statements"] < alone.total["statements"] / 2
    assert together.total["state_read"] == alone.total["state_read"]
    assert of_batch(TWO, plan, two(), 1, 1, together=64) == steady(TWO, plan, two())


def test_a_window_that_is_read_anew_is_read_once_for_all_boundaries_of_a_batch() -> None:
    """views: 100 rows come with each boundary to a window of 600; clicks: 50 to one of 200."""
    nodes = of_batch(TWO, named(TWO, "LAP recompute"), two(), 1, 10).nodes
    assert nodes["Scan v"]["scan"] == pytest.approx((600 + 9 * 100) * 3)
    assert nodes["Scan c"]["scan"] == pytest.approx((200 + 9 * 50) * 2)
    assert nodes["Join"]["probe"] == pytest.approx(10 * 600)


@pytest.mark.parametrize("name", ["EAP11 running", "EAP01 recompute"])
def test_state_is_made_from_the_rows_that_windows_hold_now(name: str) -> None:
    """The rate of clicks has just fallen: a window of 200 rows a boundary ago still has 20,000."""
    fallen = replace(two(), inputs=(two().inputs[0], replace(two().inputs[1], present=20_000.0)))
    plan, alike = named(TWO, name), replace(two(), inputs=tuple(replace(i, present=i.rows) for i in two().inputs))
    assert building(TWO, plan, fallen).total["scan"] > building(TWO, plan, two()).total["scan"] + 19_000
    assert building(TWO, plan, alike) == building(TWO, plan, two()) and steady(TWO, plan, fallen) == of(name)


def test_a_window_that_empties_holds_as_many_panes_as_ever_and_more_leaves_than_comes() -> None:
    """200 clicks a window will be left of 20,000 in four boundaries: 5,000 of them leave at each."""
    second = replace(two().inputs[1], rows=20_000.0)
    flow = sizes(TWO, replace(two(), inputs=(two().inputs[0], second))).flows[1]
    assert (flow.panes, flow.came, flow.left, flow.leaving, flow.run) == (4, 50, 5_000, 5_000, 5_000)
    full = sizes(TWO, two()).flows[1]
    assert (full.panes, full.came, full.left, full.leaving, full.run) == (4, 50, 50, 50, 50)
