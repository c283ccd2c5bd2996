"""LAP and every EAP, by hash and by nested loop, give the oracle's COUNT, SUM, AVG, MAX and MIN after every tuple.

Their sets hold no more than they should.
"""
from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.papers.operators import aggregation_sets
from jobs.papers.operators.arrivals import JoinWindows, arrivals
from jobs.papers.operators.rings import rows as held
from optimizer.errors import ForebayError
from tests.jobs.papers.operators import naive

pytestmark = pytest.mark.slow       # the first call compiles


@settings(max_examples=settings.default.max_examples // 2)
@given(st.integers(2, 3), st.booleans(), st.booleans(), st.data())
def test_every_plan_after_every_tuple(count: int, hashed: bool, backwards: bool, data: st.DataObject) -> None:
    groups = data.draw(st.tuples(*[st.sampled_from((1, 3))] * count))
    rows, spans, owner = data.draw(naive.streams(count, groups, most=16)), data.draw(naive.windows(count)), data.draw(
        st.integers(0, count - 1))
    windows = JoinWindows(spans, 2, groups, owner)
    order = tuple(tuple(j for j in range(count)[::-1 if backwards else 1] if j != k) for k in range(count))
    plans = {
        early: aggregation_sets.start(windows, early, order, hashed, 2, extremes=True)
        for early in product((False, True), repeat=count)
    }
    for i, before in naive.steps(rows):
        right = {
            sum(g * s for g, s in zip(code, windows.strides)): v for code, v in naive.answer(before, spans,
                                                                                             owner).items()
        }
        for early, state in plans.items():
            plans[early] = aggregation_sets.advance(state, arrivals(rows[i:i + 1]))
            assert {
                g: (a.pairs, a.sum, a.max, a.min) for g, a in aggregation_sets.answers(plans[early]).items()
            } == right, early


@given(naive.streams(groups=(3, 2), most=40), naive.windows())
def test_sets_hold_a_row_a_group_and_join_value(rows: list[naive.Row], spans: tuple[int, int]) -> None:
    state = aggregation_sets.advance(aggregation_sets.start(JoinWindows(spans, 2, (3, 2)), (True, False)),
                                     arrivals(rows))
    assert held(state.sets) == len({(r[2], r[3]) for r in naive.alive(rows, spans)[0]})


@given(naive.streams(groups=(3, 2), most=30), naive.windows(), st.integers(0, 30))
def test_plans_go_on_from_another_ones_state(rows: list[naive.Row], spans: tuple[int, int], cut: int) -> None:
    """From a plan that keeps all sets to each that keeps fewer; the state it came from goes on, too."""
    first = aggregation_sets.advance(aggregation_sets.start(JoinWindows(spans, 2, (3, 2)), (True, True)),
                                     arrivals(rows[:cut]))
    others = [aggregation_sets.switched(first, early) for early in product((False, True), repeat=2)]
    right = aggregation_sets.answers(aggregation_sets.advance(first, arrivals(rows[cut:])))
    assert all(
        aggregation_sets.answers(aggregation_sets.advance(other, arrivals(rows[cut:]))) == right for other in others)
    with pytest.raises(ForebayError, match="only sets that are there"):
        aggregation_sets.switched(others[0], (True, False))


def test_five_streams() -> None:
    rows = [(s, 0, 1, 0, s + 1) for s in range(5) for _ in range(2)]
    for early in ((False,) * 5, (True,) * 5, (True, False, True, False, True)):
        found = aggregation_sets.answers(
            aggregation_sets.advance(aggregation_sets.start(JoinWindows((9,) * 5, 3, owner=4), early), arrivals(rows)))
        assert {g: (a.pairs, a.sum, a.avg) for g, a in found.items()} == {0: (32, 160, 5.0)}


def test_a_plan_of_another_query_is_refused() -> None:
    with pytest.raises(ForebayError, match="a plan of 3 streams for 2 windows"):
        aggregation_sets.start(JoinWindows((5, 5)), (True, True, False))
    with pytest.raises(ForebayError, match="every other one once"):
        aggregation_sets.start(JoinWindows((5, 5)), (True, True), ((0,), (0,)))
