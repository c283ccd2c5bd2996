"""When sharing pays, by counts of rows: more members for it, longer windows against it, and no swinging in between."""
from __future__ import annotations

from dataclasses import replace

from optimizer.sharing.price import Load, each_alone, pays, together

WORKLOAD = Load(window_rows=2_400_000, came_rows=200_000, classes=100, members=100)


def test_many_queries_pay_and_few_over_a_long_window_do_not() -> None:
    assert pays(together(WORKLOAD), WORKLOAD, standing=False)
    few = replace(WORKLOAD, classes=3, members=3, window_rows=100_000_000)
    many = replace(few, classes=500, members=500)
    assert not pays(together(few), few, standing=True) and pays(together(many), many, standing=False)


def test_a_group_that_stands_stays_where_one_would_not_be_made() -> None:
    between = replace(WORKLOAD, members=4, classes=4,
                      window_rows=1_000_000 + round(each_alone(WORKLOAD) / 100 * 4 / 8e-8) - 1_700_000)
    assert 1 / 1.25 < together(between) / each_alone(between) < 1.25
    assert pays(together(between), between, standing=True) and not pays(together(between), between, standing=False)
