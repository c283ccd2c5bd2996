"""Each verdict on paper E's figures can fail: figures that must not hold do not."""
from __future__ import annotations

from collections.abc import Mapping

import pytest

from jobs.papers.experiments.claims import HOLDS, NOT, PART, Claim, Panel
from jobs.papers.experiments.sharing import ablation, figures, throughput
from jobs.papers.experiments.sharing.queries import sc1, sc2

TWO, THREE = (2.0, 3.0), (2.0, 3.0, 4.0)


def verdict(claims: list[Claim], part: str) -> str:
    return next(c.verdict for c in claims if part in c.said)


def panel(measured: Mapping[str, list[float]], axis: str = "streams joined", x: tuple[float, ...] = TWO,
          spread: Mapping[str, list[tuple[float, float]]] | None = None, labels: tuple[str, ...] = ()) -> Panel:
    return Panel("Fig. 0", axis, "s", x, dict(measured), {}, spread=dict(spread or {}), labels=labels)


@pytest.mark.parametrize(("rates", "expected"), [([1.0, 2.0], HOLDS), ([2.0, 2.0], NOT), ([2.0, 1.0], NOT)])
def test_a_level_throughput_does_not_grow(rates: list[float], expected: str) -> None:
    assert throughput._grows(panel({"shared": rates})).verdict == expected


@pytest.mark.parametrize(("requested", "expected"), [([0.024, 0.025], HOLDS), ([0.024, 0.042], NOT)])
def test_a_request_that_takes_nearly_twice_as_long_takes_longer(requested: list[float], expected: str) -> None:
    assert throughput._as_fast(requested).verdict == expected


def test_what_is_computed_of_fewer_queries_is_marked() -> None:
    levels = {n: {"shared_s": 1.0, "query_rows_per_s": float(n)} for n in (1, 100, 500)}
    levels[100]["apart_s"] = 20.0
    drawn = throughput._together(levels, {"each_s": 30.0, "queries": 2}, throughput.SharingSetting())
    assert drawn.extrapolated == {"apart": (2,), "plain Spark": (1, 2)}


@pytest.mark.parametrize(("many", "expected"), [(70.0, HOLDS), (95.0, NOT), (110.0, NOT)])
def test_throughput_that_stays_does_not_fall_with_keys(many: float, expected: str) -> None:
    y = {"50 keys": [100.0, 100.0], "5000 keys": [many, many]}
    assert verdict(figures._of_keys(panel(y, x=(0.1, 0.9))), "more distinct keys") == expected


@pytest.mark.parametrize(("last", "expected"), [(70.0, HOLDS), (99.0, NOT)])
def test_throughput_that_stays_does_not_fall_with_the_rows_that_pass(last: float, expected: str) -> None:
    y = {"50 keys": [100.0, last], "5000 keys": [100.0, last]}
    assert verdict(figures._of_keys(panel(y, x=(0.1, 0.9))), "pass more rows") == expected


@pytest.mark.parametrize(("state", "expected"), [([0.0, 200.0], HOLDS), ([0.0, 0.0], PART), ([0.0, 2000.0], PART)])
def test_space_that_stays_does_not_grow(state: list[float], expected: str) -> None:
    space = panel({"rows": [100.0, 100.0], "state": state}, "queries", (1.0, 20.0))
    assert figures._of_space(space).verdict == expected


def latency(first: list[float], second: list[float], wide: float) -> list[Claim]:
    ends = {"SC1": [(y, y + 1) for y in first], "SC2": [(y, y + wide) for y in second]}
    return figures._of_latency(panel({"SC1": first, "SC2": second}, x=THREE, spread=ends, labels=("2", "3", "4")))


def test_latencies_are_compared_at_every_number_of_streams() -> None:
    assert [c.verdict for c in latency([1.0, 2.0, 3.0], [0.9, 1.8, 2.7], 2)] == [HOLDS, HOLDS, HOLDS]
    assert [c.verdict for c in latency([1.0, 3.0, 2.0], [1.0, 3.0, 2.1], 0.5)] == [NOT, NOT, NOT]


def test_a_scenario_is_called_after_what_it_reaches() -> None:
    """In six seconds two queries a second are twelve, whatever they go up to."""
    assert [figures.reached(list(sc1(2, figures.MOST, seconds))) for seconds in (6, figures.SECONDS)] == [12, 20]
    assert figures.reached(list(sc2(2, 20, 4, 2))) == 6


def test_shapes_within_a_tenth_are_none() -> None:
    for axis, part in (("groups", "more groups"), ("streams joined", "streams joined")):
        for last, expected in ((80.0, HOLDS), (95.0, NOT)):
            y = {"at once": [100.0, last], "ad hoc": [90.0, 50.0]}
            assert verdict(figures._of_shape(panel(y, axis)), part) == expected
    for last, expected in ((120.0, HOLDS), (105.0, NOT)):
        assert verdict(figures._of_shape(panel({"all": [100.0, last]}, "similarity, %")), "similarity") == expected
    level = panel({"at once": [100.0, 80.0], "ad hoc": [99.0, 79.0]})
    assert verdict(figures._of_shape(level), "take less than ad hoc") == NOT


def test_a_priced_part_with_some_impact_is_not_without() -> None:
    parts = Panel("measured", "", "times", (0.0,), {"batch": [2.0]}, {}, labels=("query-sets",))
    for share, expected in ((0.5, HOLDS), (4.9, NOT)):
        priced = panel({"join reordering": [share, 9.0], "query pipelining": [share, 9.0]})
        assert ablation._judged([parts, priced, priced])[1].verdict == expected
    assert ablation._judged([Panel("", "", "", (0.0,), {"batch": [1.05]}, {}, labels=("x",)), priced,
                             priced])[0].verdict == NOT


def test_queries_that_share_nothing_are_not_called_together() -> None:
    star = Panel(f"Fig. 20d, {figures.STAR}", "similarity, %", "s", TWO, {"all": [1.0, 2.0]}, {})
    assert figures._of_shape(star) == [] and len(figures._of_shape(panel(star.measured, star.axis))) == 1
    assert "sharing, is not there" in throughput._grows(panel({throughput.ALONE: [1.0, 2.0]})).why
    assert "each for itself" in figures.STAR and figures.STAR != figures.GROUPED
