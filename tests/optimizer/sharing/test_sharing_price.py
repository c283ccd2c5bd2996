"""When sharing pays, by counts of rows: more members for it, longer windows against it, and no swinging in between."""
from __future__ import annotations

from dataclasses import replace

import pytest

from optimizer.cost.measured import SECONDS, prior
from optimizer.sharing.price import (
    BOUNDARY_WORK,
    FORGOTTEN,
    FURTHEST,
    KEPT,
    MEASURED,
    MOST_OFF,
    OF_BOUNDARIES,
    ROW_WORK,
    STATED,
    Load,
    Ratios,
    SharingPast,
    copying,
    each_alone,
    machine_costs,
    pays,
    together,
)

WORKLOAD = Load(window_rows=2_400_000, came_rows=200_000, classes=100, members=100)


def test_many_queries_pay_and_few_over_a_long_window_do_not() -> None:
    assert pays(together(WORKLOAD), WORKLOAD, standing=False)
    few = replace(WORKLOAD, classes=3, members=3, window_rows=100_000_000)
    many = replace(few, classes=500, members=500)
    assert not pays(together(few), few, standing=True) and pays(together(many), many, standing=False)


ROWS = Load(window_rows=960_000, came_rows=80_000, classes=20, members=20, lists=1)


def test_row_queries_read_their_windows_alone_as_well_so_a_few_pay_whatever_the_window() -> None:
    for window_rows in (10_000, 1_000_000, 100_000_000):
        load = replace(ROWS, window_rows=window_rows)
        assert pays(together(load), load, standing=False)
    few = replace(ROWS, classes=3, members=3)
    assert not pays(together(few), few, standing=False)


def test_large_answers_of_row_queries_are_a_reason_to_part() -> None:
    """Measured: 20 queries whose answers have 460,000 rows take a fifth of what they take apart."""
    rule_s = together(ROWS)
    usual, huge = (rule_s * copying(rule_s, rows) for rows in (460_000, 20_000_000))
    assert pays(usual, ROWS, standing=False) and not pays(huge, ROWS, standing=True)
    assert 3 < each_alone(ROWS) / usual < 8


def test_each_select_list_of_row_queries_reads_the_join_once_more() -> None:
    listed = [together(replace(ROWS, lists=lists)) for lists in (1, 2, 20)]
    assert listed == sorted(listed) and listed[2] < each_alone(ROWS)


def test_a_group_that_stands_stays_where_one_would_not_be_made() -> None:
    between = replace(WORKLOAD, members=4, classes=4,
                      window_rows=1_000_000 + round(each_alone(WORKLOAD) / 100 * 4 / 8e-8) - 2_075_000)
    assert 1 / 1.25 < together(between) / each_alone(between) < 1.25
    assert pays(together(between), between, standing=True) and not pays(together(between), between, standing=False)


def machine(rows: float = 1.0, boundaries: float = 1.0, **kinds: float) -> dict[str, float]:
    """Seconds a unit where rows and boundaries are so many times as dear, and some kinds of work by their own factor.
    """
    times = {**dict.fromkeys(ROW_WORK, rows), **dict.fromkeys(BOUNDARY_WORK, boundaries), **kinds}
    return {kind: seconds * times.get(kind, 1.0) for kind, seconds in SECONDS.items()}


def test_on_another_machine_sharing_costs_as_many_times_as_its_work_does() -> None:
    assert machine_costs(prior()) == STATED
    there = machine_costs(prior(machine(rows=0.5, boundaries=3.0)))
    assert there.shared_row == pytest.approx(STATED.shared_row / 2) and there.unnest == pytest.approx(STATED.unnest / 2)
    assert all(getattr(there, name) == pytest.approx(3 * getattr(STATED, name)) for name in OF_BOUNDARIES)
    assert (there.together_off, there.apart_off) == (1.0, 1.0)


def test_one_kind_of_work_that_was_learnt_wrong_says_nothing_of_the_machine() -> None:
    assert machine_costs(prior(machine(probe=0.0, made=40.0, jobs=0.0))) == STATED
    assert machine_costs(prior(machine(rows=1e6))).read == pytest.approx(FURTHEST * STATED.read)


def taken(*ratios: float) -> Ratios:
    known = Ratios()
    for batch, ratio in enumerate(ratios):
        known = known.with_batch(batch, ratio)
    return known


def test_what_batches_took_counts_after_several_and_a_few_slow_ones_are_outvoted() -> None:
    assert taken(*[2.0] * (MEASURED - 1)).factor(MEASURED) is None and taken(*[2.0] * MEASURED).factor(MEASURED) == 2.0
    busy = taken(*[1.0] * (KEPT // 2 + 1), *[50.0] * (KEPT // 2))
    assert busy.factor(KEPT) == 1.0
    assert taken(*[50.0] * KEPT).factor(KEPT) == MOST_OFF and taken(*[1e-3] * KEPT).factor(KEPT) == 1 / MOST_OFF
    assert len(taken(*[1.0] * 40).values) == KEPT


def test_what_was_measured_long_ago_is_forgotten_and_measured_anew() -> None:
    old = taken(*[2.0] * KEPT)
    assert old.factor(KEPT - 1 + FORGOTTEN) == 2.0 and old.factor(KEPT + FORGOTTEN) is None
    assert old.with_batch(KEPT + FORGOTTEN, 1.0).values == (1.0,)


def test_of_a_way_that_nobody_measured_half_is_assumed() -> None:
    """What the machine is off by concerns both; so a slow one alone parts no group."""
    costs = SharingPast(together=taken(*[4.0] * KEPT)).correct(STATED, KEPT)
    assert (costs.together_off, costs.apart_off) == (4.0, 2.0)
    three = Load(window_rows=1_000, came_rows=100, classes=3, members=3)
    assert pays(together(three, costs), three, True, costs)
    assert SharingPast().correct(STATED, 7) == STATED


def test_five_queries_that_batches_show_to_be_dearer_together_part_and_stay_so() -> None:
    """Five of workload P3 took 0.88 s together and 0.67 apart, 0.1 s of each whatever is answered; priced were 0.25 and
    0.28, and then nobody would have parted them.
    """
    five = Load(window_rows=2_400_000, came_rows=200_000, classes=5, members=5)
    assert pays(together(five), five, standing=True)
    past = SharingPast(together=taken(*[0.78 / together(five)] * MEASURED))
    costs = past.correct(STATED, MEASURED)
    assert not pays(together(five, costs), five, True, costs)
    apart = replace(past, apart=taken(*[0.57 / each_alone(five)] * MEASURED))
    costs = apart.correct(STATED, MEASURED)
    assert together(five, costs) == pytest.approx(0.78) and each_alone(five, costs) == pytest.approx(0.57)
    assert not pays(together(five, costs), five, False, costs)
