"""Runs of a batch's boundaries: consecutive, none empty, of about the same weight."""
from __future__ import annotations

from dataclasses import replace

import pytest

from optimizer.plan.division import boundary_runs, may_divide_boundaries
from optimizer.plan.model import named
from optimizer.plan.program import BEGINNING, BoundaryShare
from optimizer.query.shape import shape
from tests.optimizer.planning import query


def test_runs_follow_one_another() -> None:
    assert boundary_runs({60: 1.0, 120: 1.0, 180: 2.0}, 2) == [((60, 120), BoundaryShare(BEGINNING, 180)),
                                                               ((180,), BoundaryShare(120, 180))]


@pytest.mark.parametrize("weights", [[1.0] * 7, [0.1] * 6 + [9.0], [9.0] + [0.1] * 6, [0.0] * 7])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 20])
def test_every_boundary_is_in_one_run(weights: list[float], count: int) -> None:
    runs = boundary_runs(dict(enumerate(weights)), count)
    assert [t for boundaries, _ in runs for t in boundaries] == list(range(7))
    assert len(runs) == min(count, 7) and all(boundaries for boundaries, _ in runs)
    assert [share.after for _, share in runs] == [BEGINNING, *(boundaries[-1] for boundaries, _ in runs[:-1])]


def test_windows_that_fill_up_weigh_less() -> None:
    runs = boundary_runs({t: min(t, 12) for t in range(1, 25)}, 2)
    assert [len(boundaries) for boundaries, _ in runs] == [15, 9]


@pytest.mark.parametrize("name, plan, may", [
    ("two-streams", "EAP01 recompute", True), ("two-streams", "LAP recompute", True),
    ("two-streams", "EAP11 running", False), ("two-streams", "EAP11 expire", False),
    ("distinct", "LAP recompute", True), ("rows", "LAP recompute", False)])
def test_only_answers_that_need_none_before_are_divided(name: str, plan: str, may: bool) -> None:
    asked = query(name)
    assert may_divide_boundaries(shape(asked), named(asked, plan)) == may
    assert not may_divide_boundaries(shape(asked), replace(named(asked, plan), place="jvm"))
