"""Paper B's equations 1 and 2 and what invalidation leaves stale: by hand, and against what the paper says of Figs.

4 to 8.
"""
from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.errors import ForebayError
from optimizer.papers.window_join import (
    STRATEGIES,
    Buffer,
    Steps,
    half,
    invalidating_join,
    occupancy,
    stale,
    useful_buckets,
    window_join,
)

A, B = Buffer("a", Fraction(2), Fraction(3)), Buffer("b", Fraction(5), Fraction(4))
STEPS = Steps(1, 10, 100)
NUMBERS = st.fractions(1, 1000, max_denominator=7)
BUFFERS = st.builds(Buffer, st.just("s"), NUMBERS, NUMBERS, st.integers(1, 200).map(Fraction))


def hashed(n: int) -> tuple[Buffer, Buffer]:
    return replace(A, buckets=Fraction(n)), replace(B, buckets=Fraction(n))


def test_nested_loop_by_hand() -> None:
    """(2+5)(1+10) + 2·5·(3+4)·100 = 77 + 7000."""
    found = window_join(A, B, STEPS)
    assert (found.total, found.of("invalidate"), found.of("insert"), found.of("scan")) == (7077, 7, 70, 7000)
    assert (found.equation, found.outside) == ("paper B, Eq. 1", ())


def test_hash_by_hand() -> None:
    """77 + 2·5·(3+4)/5·100 = 77 + 1400; with 5 buckets for a and 2 for b, 2·5·(3/5 + 4/2)·100 = 2600."""
    found = window_join(*hashed(5), STEPS)
    assert (found.total, found.equation, found.outside) == (1477, "paper B, Eq. 2", ())
    unequal = window_join(hashed(5)[0], hashed(2)[1], STEPS)
    assert unequal.total == 2677 and "the buffers differ" in unequal.outside[0]


def test_half_costs_by_hand() -> None:
    """a: 5·1 + 2·(4·5·100 + 10) = 4025.

    B: 2·1 + 5·(3·2·100 + 10) = 3052. Twice either is not Eq. 1's 7077, their sum is.
    """
    assert (half(A, B, STEPS), half(B, A, STEPS)) == (4025, 3052)


@given(BUFFERS, BUFFERS)
def test_the_halves_make_the_whole(a: Buffer, b: Buffer) -> None:
    assert half(a, b, STEPS) + half(b, a, STEPS) == window_join(a, b, STEPS).total


@given(BUFFERS, BUFFERS)
def test_cost_is_linear_in_one_rate_and_never_falls_with_a_window(a: Buffer, b: Buffer) -> None:
    """Section 3.1: "holding one of the input rates fixed, the cost depends linearly on the input rate of the second
    stream".
    """
    at = [window_join(replace(a, rate=k * a.rate), b, STEPS).total for k in (1, 2, 3)]
    assert at[1] - at[0] == at[2] - at[1] > 0
    assert window_join(replace(a, seconds=2 * a.seconds), b, STEPS).total > at[0]
    both = window_join(replace(a, rate=2 * a.rate), replace(b, rate=2 * b.rate), STEPS)
    once = window_join(a, b, STEPS)
    assert both.of("scan") == 4 * once.of("scan") and both.of("insert") == 2 * once.of("insert")


# b is entered 5 times a second and probed by a 2 times, 5 buckets. One bucket is probed every 5/2 s and entered once a
# second: 5/2 stale; with inserts it is cleared 7/5 times a second: 5/7; cleared at each of the 2 probes a second: 1/2;
# at each of the 7 arrivals: 1/7.
@pytest.mark.parametrize("strategy,left", [("probe", Fraction(5, 2)), ("probe and insert", Fraction(5, 7)),
                                           ("all probed", Fraction(1, 2)), ("optimal", Fraction(1, 7))])
def test_stale_tuples_by_hand(strategy: str, left: Fraction) -> None:
    a, b = hashed(5)
    assert stale(b, a, strategy) == left
    assert occupancy(b, a, strategy) == 20 + 5 * left


@given(BUFFERS, BUFFERS)
def test_the_printed_stale_counts_know_no_buckets(own: Buffer, other: Buffer) -> None:
    assert stale(own, other, "probe") == own.rate / other.rate
    assert stale(own, other, "probe and insert") == own.rate / (own.rate + other.rate)


def test_without_probes_stale_tuples_gather_for_ever() -> None:
    silent = replace(A, rate=0)
    assert stale(B, silent, "probe") == float("inf") and stale(B, silent, "probe and insert") == 1 and stale(
        silent, B, "probe") == 0
    assert stale(silent, silent, "optimal") == 0


@pytest.mark.parametrize("strategy,looks", [("probe", 7), ("probe and insert", 14), ("all probed", 35),
                                            ("optimal", 70)])
def test_looks_by_hand(strategy: str, looks: int) -> None:
    """7 arrivals a second look at 1, 2, 5 or 10 buckets, 100 each."""
    found = invalidating_join(*hashed(5), STEPS, strategy)
    assert found.of("look") == 100 * looks and found.total == 1477 + 100 * looks


def equal(buckets: float) -> tuple[Buffer, Buffer]:
    """Section 4.1: windows of 30 s."""
    return Buffer("a", 100, 30, buckets), Buffer("b", 100, 30, buckets)


def test_figure_4_the_hash_join_is_two_orders_faster_with_100_buckets() -> None:
    assert 90 < window_join(*equal(1), Steps()).total / window_join(*equal(100), Steps()).total < 100


def test_figures_5_and_6_cost_falls_with_buckets_until_the_distinct_join_values() -> None:
    scans = [window_join(*equal(useful_buckets(n, 100)), Steps()).of("scan") for n in (10, 20, 100, 400)]
    assert scans[0] == pytest.approx(2 * scans[1]) and scans[1] == pytest.approx(5 * scans[2]) and scans[2] == scans[3]
    assert useful_buckets(400, 1000) == 400


def test_figure_7_clearing_all_buckets_costs_far_more() -> None:
    cost = {s: invalidating_join(*equal(100), Steps(), s).total for s in STRATEGIES}
    assert cost["probe"] < cost["probe and insert"] < 1.1 * cost["probe"] and 3 * cost["probe"] < cost[
        "all probed"] < cost["optimal"]


def test_figure_8_only_probe_time_invalidation_holds_far_more() -> None:
    slow, fast = Buffer("a", 1, 30, 100), Buffer("b", 100, 30, 100)
    held = {s: occupancy(fast, slow, s) for s in STRATEGIES}
    assert held["optimal"] < held["probe and insert"] < 1.05 * held["optimal"] and held[
        "all probed"] < 1.05 * held["optimal"]
    assert held["probe"] > 4 * held["optimal"]


def test_bad_values_are_refused_by_name() -> None:
    for make, said in ((lambda: Buffer("a", -1, 3), "rate of stream a is -1"),
                       (lambda: Buffer("a", 1, 3, 0), "buckets of stream a is 0"), (lambda: Steps(scan=-1),
                                                                                    "scan of the steps is -1"),
                       (lambda: stale(A, B, "never"), "invalidation is 'never'; expected probe, probe and insert"),
                       (lambda: useful_buckets(5, 0), "distinct of the buffer is 0")):
        with pytest.raises(ForebayError) as refused:
            make()
        assert said in str(refused.value)
