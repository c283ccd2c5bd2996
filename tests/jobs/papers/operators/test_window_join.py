"""WNL and WHJ: after every tuple the matches are the oracle's under each invalidation.

What is kept is the window, and what is stale.
"""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.papers.operators import window_join
from jobs.papers.operators.arrivals import JoinWindows, arrivals
from optimizer.errors import ForebayError
from optimizer.papers.window_join import STRATEGIES
from tests.jobs.papers.operators import naive

pytestmark = pytest.mark.slow       # the first call compiles


@given(naive.streams(most=40), naive.windows(), st.sampled_from((1, 2, 7)), st.sampled_from(list(STRATEGIES)),
       st.integers(0, 40))
def test_matches_are_the_oracles_after_every_tuple(rows: list[naive.Row], spans: tuple[int, int], buckets: int,
                                                   strategy: str, cut: int) -> None:
    """In two parts, so that the state goes over."""
    join, first = window_join.advance(window_join.start(JoinWindows(spans, buckets), strategy), arrivals(rows[:cut]))
    _, second = window_join.advance(join, arrivals(rows[cut:]))
    assert [*first.matches, *second.matches] == [naive.joined(before, spans) for _, before in naive.steps(rows)]


@given(naive.streams(most=40), naive.windows())
def test_optimal_keeps_the_windows_and_lazier_ones_keep_no_less(rows: list[naive.Row], spans: tuple[int, int]) -> None:
    kept = {
        s: window_join.advance(window_join.start(JoinWindows(spans, 3), s), arrivals(rows))[1].held.tolist()
        for s in STRATEGIES
    }
    assert kept["optimal"] == [[len(w) for w in naive.alive(before, spans)] for _, before in naive.steps(rows)]
    for lazy, eager in (("probe", "probe and insert"), ("probe and insert", "optimal"), ("probe", "all probed"),
                        ("all probed", "optimal")):
        assert all(a >= b for x, y in zip(kept[lazy], kept[eager]) for a, b in zip(x, y))


def test_exactly_a_window_later_is_too_late() -> None:
    rows = [(0, 0, 1, 0, 0), (1, 9, 1, 0, 0), (1, 10, 1, 0, 0)]
    _, found = window_join.advance(window_join.start(JoinWindows((10, 10), 4)), arrivals(rows))
    assert found.matches.tolist() == [0, 1, 0]


def test_senseless_input_is_refused_by_name() -> None:
    with pytest.raises(ForebayError, match="window of stream 1 is 0 ticks.*at least one tick"):
        JoinWindows((5, 0))
    with pytest.raises(ForebayError, match="tuple 1 is of 3, the one before of 4.*sort"):
        arrivals([(0, 4, 0, 0, 0), (0, 3, 0, 0, 0)])
    with pytest.raises(ForebayError, match="stream 2"):
        window_join.advance(window_join.start(JoinWindows((5, 5))), arrivals([(2, 0, 0, 0, 0)]))
    with pytest.raises(ForebayError, match="invalidation is 'never'.*optimal"):
        window_join.start(JoinWindows((5, 5)), "never")
