"""Each verdict on paper A's curves can fail: figures that must not hold do not."""
from __future__ import annotations

import pytest

from jobs.papers.experiments import aggregation
from jobs.papers.experiments.claims import HOLDS, NOT, PART, Claim, Panel

pytestmark = pytest.mark.slow       # importing the operators' compilers takes a second

XS = (1000.0, 2000.0, 3000.0, 4000.0, 5000.0)
RISES, FLAT = [1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 1.5, 1.5, 1.5, 1.5]
SAME = {"LAP": RISES, "EAP10": FLAT, "EAP01": RISES, "EAP11": FLAT}


def verdict(claims: list[Claim], part: str) -> str:
    return next(c.verdict for c in claims if part in c.said)


def curves(**others: list[float]) -> list[Claim]:
    """Panel (a) with other curves, and (c)."""
    y = {**SAME, **others}
    panels = {letter: Panel(f"({letter})", "x", "s", XS, y, y) for letter in "abcd"}
    return list(aggregation._two_way(panels, 6, 1))


def test_what_still_grows_after_two_thousand_is_not_constant() -> None:
    assert verdict(curves(), "stay constant beyond 2000") == HOLDS
    assert verdict(curves(EAP10=[1.0, 1.5, 1.8, 1.8, 1.8]), "stay constant beyond 2000") == PART


def test_a_plan_as_dear_as_lap_is_not_better() -> None:
    assert verdict(curves(EAP10=FLAT, EAP01=[0.9 * y for y in RISES], EAP11=FLAT), "every EAP is better") == PART
    assert verdict(curves(EAP10=[0.5] * 5, EAP01=[0.5] * 5, EAP11=[0.5] * 5), "every EAP is better") == HOLDS


def test_what_falls_does_not_grow_linearly() -> None:
    falling = curves(EAP11=[5.0, 4.0, 3.0, 2.0, 1.0], EAP01=[1.0, 1.1, 1.2, 1.3, 1.4], EAP10=RISES)
    assert verdict(falling, "all grow linearly") == PART


@pytest.mark.parametrize(("of_two", "expected"), [(3.0, HOLDS), (5.0, NOT)])
def test_three_streams_are_held_against_two(of_two: float, expected: str) -> None:
    y = {"LAP": [4.0], "EAP110": [2.0], "EAP111": [1.0]}
    claims = list(aggregation._three_way(Panel("(a)", "x", "s", (300.0,), y, y), {"LAP": of_two, "EAP11": 1.0}, ""))
    assert verdict(claims, "two-way join of the same streams") == expected


def test_a_part_of_a_second_is_said_on_the_axis() -> None:
    assert aggregation.unit(1) == "s" and aggregation.unit(100) == "s (1/100 s timed, × 100)"
