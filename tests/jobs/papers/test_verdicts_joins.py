"""Each verdict on paper B's figures can fail: figures that must not hold do not."""
from __future__ import annotations

import pytest

from jobs.papers.experiments import joins
from jobs.papers.experiments.claims import HOLDS, NOT, PART, Claim, Panel

pytestmark = pytest.mark.slow       # importing the operators' compilers takes a second

RATES = (0.1, 0.5, 1.0, 2.0, 5.0)


def verdict(claims: list[Claim], part: str) -> str:
    return next(c.verdict for c in claims if part in c.said)


def figure_4(gain: float, matches: int = 40, power: float = 1.0) -> list[Claim]:
    """WHJ of 1 µs a tuple, WNL so many times slower, with 40 matches of the first tuples by WNL."""
    points = {}
    for x in RATES:
        for join, seconds, first in (("WNL", gain, 40), ("WHJ", 1.0, matches)):
            points[x, join] = {"seconds": seconds * 0.006 * (1 + x ** power), "tuples": 6_000, "timed": 6_000,
                               "matches": 40, "first": first}
    y = {join: [points[x, join]["seconds"] for x in RATES] for join in ("WNL", "WHJ")}
    return joins._judged_4(Panel("rates", "", "s", RATES, y, y), points, 1)


@pytest.mark.parametrize(("gain", "expected"), [(101.0, HOLDS), (81.0, NOT)])
def test_two_orders_of_magnitude_are_a_hundred_times(gain: float, expected: str) -> None:
    assert verdict(figure_4(gain), "two orders of magnitude") == expected


def test_joins_that_find_other_matches_of_the_same_tuples_are_found_out() -> None:
    assert verdict(figure_4(100), "as many matches") == HOLDS
    assert verdict(figure_4(100, matches=41), "as many matches") == NOT


def test_a_cost_that_grows_with_the_square_of_a_rate_is_not_linear() -> None:
    assert verdict(figure_4(100), "linear") == HOLDS
    assert verdict(figure_4(100, power=2), "linear") == NOT


def by_buckets(y: dict[int, float]) -> list[Claim]:
    xs = tuple(map(float, y))
    return joins._by_buckets(Panel("b", "buckets", "s", xs, {"σ": list(y.values())}, {}), "σ", 100)


def test_time_that_falls_less_than_buckets_grow_is_not_inversely_proportional() -> None:
    """A tenth of the gain was enough once."""
    proportional = by_buckets({1: 100.0, 10: 10.0, 100: 1.0, 1000: 1.05})
    assert [c.verdict for c in proportional] == [HOLDS, HOLDS]
    flat = by_buckets({1: 14.0, 10: 3.0, 100: 1.0, 1000: 1.3})
    assert [c.verdict for c in flat] == [NOT, NOT]


def invalidation(insert: float, eager: float) -> list[Claim]:
    xs = (50.0, 100.0)
    y = {"probe": [1.0, 1.0], "probe and insert": [insert, 1.0], "all probed": [eager, 2.0], "optimal": [eager, 3.0]}
    return joins._judged_7(Panel("i", "", "s", xs, y, y), 1)


def test_invalidation_is_judged_at_every_rate() -> None:
    assert [c.verdict for c in invalidation(1.05, 2.0)] == [HOLDS, HOLDS]
    assert [c.verdict for c in invalidation(1.3, 1.2)] == [PART, PART]


def test_a_point_of_a_part_of_the_tuples_is_marked() -> None:
    whole, part = {"timed": 9, "tuples": 9}, {"timed": 4, "tuples": 9}
    assert joins._scaled({"WNL": [whole, part], "WHJ": [whole, whole]}) == {"WNL": (1,)}
