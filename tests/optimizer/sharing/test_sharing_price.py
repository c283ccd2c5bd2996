"""When sharing pays, by counts of rows: more members for it, longer windows against it, and no swinging in between."""
from __future__ import annotations

from dataclasses import replace

from optimizer.sharing.price import Load, copying, each_alone, pays, together

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
                      window_rows=1_000_000 + round(each_alone(WORKLOAD) / 100 * 4 / 8e-8) - 1_700_000)
    assert 1 / 1.25 < together(between) / each_alone(between) < 1.25
    assert pays(together(between), between, standing=True) and not pays(together(between), between, standing=False)
