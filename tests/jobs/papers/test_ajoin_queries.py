"""Paper E's workload generator: formula (3), its three steps, both scenarios."""
from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from jobs.papers.experiments.sharing.queries import Pattern, generate, sc1, sc2, similar, similarity, text


def test_similarity_is_that_of_the_text() -> None:
    """A ⋈ B on A.a = B.b against the pattern's A.a = B.c: two sources in common, one with its join attribute: 2 · 1 /
    2².
    """
    pattern = Pattern(((0, 2),))
    assert similarity(2, 1, 2) == Fraction(1, 2)
    assert {similar(pattern, generate(pattern, Fraction(1, 2), Random(s))) for s in range(30)} == {Fraction(1, 2)}


@pytest.mark.parametrize("wanted", [Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(1)])
def test_generated_queries_are_as_similar_as_their_sources_allow(wanted: Fraction) -> None:
    pattern = Pattern(((0, 1), (2, 3), (4, 5)))
    for seed in range(50):
        made = generate(pattern, wanted, Random(seed))
        assert abs(similar(pattern, made) - wanted) <= Fraction(len(made.streams), 2 * 16) and len(
            made.selections) == len(made.streams)
    assert text(made).startswith("SELECT * FROM s") and text(made).count("[WINDOW ") == len(made.streams)


def test_scenarios_create_up_to_a_number_and_one_also_deletes() -> None:
    rising = list(sc1(10, 25, 5))
    assert [c["create"] for _, c in rising] == [10, 10, 5, 0, 0]
    moving = list(sc2(10, 20, 8, 2))
    assert sum(c["create"] - c["delete"] for _, c in moving) <= 20 and any(c["delete"] for _, c in moving[4:])
