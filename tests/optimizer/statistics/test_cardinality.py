"""Sizes worked by hand: distinct combinations, partials by pane, joins under skew, and what a fan-out corrects."""
from __future__ import annotations

from dataclasses import replace
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.errors import ForebayError
from optimizer.statistics.cardinality import Operand, distinct, shares, sizes
from optimizer.statistics.model import InputStatistics, QueryStatistics
from tests.optimizer.planning import query
from tests.optimizer.statistics.observing import skewed, two


def test_distinct_is_cardenas() -> None:
    assert distinct(100, 100) == pytest.approx(100 * (1 - exp(-1)))
    assert distinct(100, 1e9) == pytest.approx(100)
    assert distinct(1e12, 600) == pytest.approx(600, rel=1e-6)


@given(st.floats(1, 1e9), st.floats(1e-9, 1e9), st.floats(0, 1e9))
def test_distinct_grows_with_rows_and_never_beyond_them(of: float, rows: float, more: float) -> None:
    assert distinct(of, rows) <= distinct(of, rows + more) * (1 + 1e-9)
    assert distinct(of, rows) <= min(of, rows) * (1 + 1e-9)


def test_flows_of_sliding_windows() -> None:
    views, clicks = sizes(query("two-streams"), two()).flows
    assert (views.window, views.came, views.left, views.panes) == (600, 100, 100, 6)
    assert (clicks.window, clicks.came, clicks.panes) == (200, 50, 4)
    assert clicks.pane == pytest.approx(100 * (1 - exp(-0.5)))
    assert clicks.stored == pytest.approx(4 * clicks.pane)
    assert clicks.set == pytest.approx(100 * (1 - exp(-2)))


def test_selections_count_before_and_after() -> None:
    known = two()
    views = replace(known.inputs[0], selectivity=0.1)
    found = sizes(query("two-streams"), replace(known, inputs=(views, known.inputs[1]))).flows[0]
    assert (found.read, found.window, found.arriving, found.came) == (600, 60, 100, 10)


def test_nothing_leaves_a_landmark_window_and_merging_makes_its_partials_one_set() -> None:
    known = two(pairs=50)
    old = replace(known, inputs=(replace(known.inputs[0], rows=1e6), known.inputs[1]))
    found = sizes(query("landmark"), old).flows[0]
    assert found.left == 0 and found.by_pane == pytest.approx(1e4 * found.pane)
    assert found.stored == pytest.approx(found.set + 12 * found.pane)


def test_a_relation_does_not_flow() -> None:
    inputs = (InputStatistics(10, 600, combinations=40), InputStatistics(0, 30, combinations=30))
    known = QueryStatistics(inputs, two().classes, 10)
    found = sizes(query("relation"), known).flows[1]
    assert (found.came, found.left, found.set, found.panes) == (0, 0, distinct(30, 30), 1)


def test_a_length_that_every_does_not_divide_has_two_ends_a_boundary() -> None:
    text = ("SELECT COUNT(*) AS n FROM views AS v [WINDOW 25 SECONDS], clicks AS c [WINDOW 25 SECONDS] WHERE v.user = "
            "c.user")
    known = two()
    even, odd = (sizes(query(text.replace("25", length)), known).flows[1].pane for length in ("20", "25"))
    assert even == pytest.approx(distinct(100, 50)) and odd == pytest.approx(2 * distinct(100, 25))


def test_join_of_uniform_keys_is_the_product_over_the_keys() -> None:
    found = sizes(query("two-streams"), two())
    assert found.join([found.raw(0), found.raw(1)]) == pytest.approx(600 * 200 / 100)
    assert found.prefixes([found.raw(1), found.raw(0)]) == pytest.approx((200, 1200))


def test_join_under_skew_is_the_sum_over_keys() -> None:
    known = replace(two(), classes=(skewed({0: (0.5, 0.3, 0.2), 1: (0.1, 0.0, 0.9)}),))
    found = sizes(query("two-streams"), known)
    assert found.join([found.raw(0), found.raw(1)]) == pytest.approx(600 * 200 * (0.05 + 0.18))


def test_a_sample_of_keys_stands_for_all() -> None:
    known = replace(two(), classes=(skewed({0: (0.01,) * 10, 1: (0.01,) * 10}, share=0.1),))
    found = sizes(query("two-streams"), known)
    assert found.join([found.raw(0), found.raw(1)]) == pytest.approx(600 * 200 / 100)


def test_shares_of_partials_go_from_those_of_rows_to_those_of_combinations() -> None:
    known = skewed({0: (0.9, 0.1)}, {0: (0.5, 0.5)})
    assert shares(known, 0, 10, None) == (0.9, 0.1)
    assert shares(known, 0, 10, 1e-6) == pytest.approx((0.9, 0.1), rel=1e-3)
    assert shares(known, 0, 10, 1e6) == pytest.approx((0.5, 0.5), rel=1e-3)


def test_a_counted_fan_out_corrects_the_whole_join_only() -> None:
    found = sizes(query("two-streams"), two(fanout=600))
    assert found.join([found.raw(0), found.raw(1)]) == pytest.approx(600)
    assert found.join([Operand(0, 10)]) == 10


def test_answer_groups() -> None:
    found = sizes(query("two-streams"), two(groups=20))
    assert found.answer(float("inf")) == 20
    assert found.answer(20, times=2) == pytest.approx(distinct(40, 20))


def test_statistics_of_another_query_are_refused() -> None:
    with pytest.raises(ForebayError, match="statistics of 2 inputs and 0 join keys"):
        sizes(query("two-streams"), replace(two(), classes=()))
