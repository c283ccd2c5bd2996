"""Paper C's costs of PC, IC and TC: by hand, and what grows how."""
from __future__ import annotations

import pytest

from optimizer.errors import ForebayError
from optimizer.papers.join_aggregation import (
    Widths,
    Windows,
    counting,
    counting_by_total,
    counting_space,
    inclusion,
    inclusion_space,
    pipelined,
    pipelined_space,
    steady,
)

W = Windows(a=6, b=4, expired_a=1, expired_b=2, buckets=2, selectivity=0.5)
WIDTHS = Widths(8, 12, 4)


def test_times_by_hand() -> None:
    """IC: 6+4 + 4/2 + 1·4/2 + 2·6/2 + 1·2 = 22.

    TC: 2·10 + 2 = 22, by a running total 1+2 + 2 = 5. PC: 10 + 2 + 0.5·4·3 + 0.5·6·4 = 30.
    """
    assert (inclusion(W).total, counting(W).total, counting_by_total(W).total, pipelined(
        W, write=3).total) == (22, 22, 5, 30)
    assert inclusion(W, access=10).total == 220 and inclusion(W).of("joins of what expired") == 10
    assert (inclusion(W).equation, counting(W).equation, inclusion(W).outside,
            counting(W).outside) == ("paper C, Eq. 3", "paper C, Eq. 6", (), ())
    assert counting_by_total(W).outside and pipelined(W).outside


def test_an_arrival_in_the_other_stream_by_hand() -> None:
    """IC: 4+6 + 6/2 + 2·6/2 + 1·4/2 + 2·1 = 23."""
    assert inclusion(W.swapped).total == 23 and W.swapped.swapped == W


def test_spaces_by_hand() -> None:
    """Windows 6·8 + 4·12 = 96; expired 8 + 24; counters 10·4; joined 0.5·24·20."""
    assert (inclusion_space(W, WIDTHS).total, counting_space(W, WIDTHS).total, pipelined_space(
        W, WIDTHS).total) == (128, 136, 336)


def test_steady_windows_lose_as_many_as_come() -> None:
    assert steady(30, 10, 5, 7, 0.1) == Windows(150, 50, 0.75, 0.25, 7, 0.1)
    assert steady(0, 0, 5) == Windows(0, 0, 0, 0)


def test_space_is_linear_in_the_windows_but_for_the_pipeline() -> None:
    short, long = steady(100, 100, 60, 100, 0.01), steady(100, 100, 120, 100, 0.01)
    for space in (inclusion_space, counting_space):
        assert space(long, WIDTHS).total == pytest.approx(2 * space(short, WIDTHS).total, rel=0.001)
        assert space(long, WIDTHS).total < pipelined_space(long, WIDTHS).total / 10
    assert pipelined_space(long, WIDTHS).of("joined") == pytest.approx(4 * pipelined_space(short, WIDTHS).of("joined"))


@pytest.mark.parametrize("seconds", (30, 60, 120))
def test_counters_with_a_running_total_are_fastest_and_the_pipeline_slowest(seconds: float) -> None:
    """With the naive sum, Eq.

    6 exceeds Eq. 3 while few tuples expire at once; the measured order needs the running total.
    """
    w = steady(100, 100, seconds, 100, 0.01)
    assert counting_by_total(w).total < inclusion(w).total < counting(w).total < pipelined(w).total


def test_where_many_expire_at_once_counting_beats_inclusion() -> None:
    burst = Windows(1000, 1000, 500, 500, 100)
    assert counting(burst).total < inclusion(burst).total


@pytest.mark.parametrize("time", (inclusion, counting, counting_by_total, pipelined))
def test_time_grows_with_the_windows(time: object) -> None:
    assert callable(time)
    assert time(steady(100, 50, 60, 10, 0.01)).total > time(steady(100, 50, 30, 10, 0.01)).total > time(
        steady(50, 25, 30, 10, 0.01)).total


def test_bad_values_are_refused_by_name() -> None:
    for make, said in ((lambda: Windows(-1, 2, 0, 0), "a of the windows is -1"), (lambda: Windows(1, 2, 0, 0, 0),
                                                                                  "buckets of the windows is 0"),
                       (lambda: Windows(1, 2, 0, 0, 1, 2), "selectivity of the windows is 2"),
                       (lambda: Widths(8, -1), "b of the widths is -1"), (lambda: steady(-1, 1, 1),
                                                                          "rate_a of the windows is -1")):
        with pytest.raises(ForebayError) as refused:
            make()
        assert said in str(refused.value)
