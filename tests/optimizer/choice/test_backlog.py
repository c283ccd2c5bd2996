"""Boundaries a batch: alone when fresh, as many as save something when behind, never longer than latency or memory
allow.
"""
from __future__ import annotations

from dataclasses import replace

import pytest

from optimizer.choice.backlog import (
    AIMED,
    LATENCY,
    UNMEASURED,
    WORTH,
    BatchCosts,
    BatchLoad,
    BatchRoom,
    MeasuredBatch,
    boundaries_together,
    boundary_runs_worth,
    is_worth_coding,
    measured_factor,
)
from optimizer.cost.measured import prior
from optimizer.plan.model import named
from tests.optimizer.planning import query
from tests.optimizer.statistics.observing import two

COSTS = BatchCosts(fixed=0.2, point=0.003, row=1e-7)
ANY = BatchRoom()


def loads(count: int, rows: float = 100_000, held: float = 0.0) -> list[BatchLoad]:
    return [BatchLoad(n, n * rows, n * held, n * 1_000) for n in range(1, count + 1)]


def measured(points: int, seconds: float, rows: float = 100_000, cold: bool = False) -> MeasuredBatch:
    return MeasuredBatch(BatchLoad(points, points * rows), seconds, cold)


def test_a_fresh_boundary_goes_alone() -> None:
    assert boundaries_together(loads(1), COSTS, [measured(1, 100.0)], ANY) == 1


def test_a_backlog_of_cheap_boundaries_goes_together() -> None:
    assert boundaries_together(loads(120), COSTS, [measured(8, 0.3)], ANY) == 120


@pytest.mark.parametrize("seconds", [0.21, 0.5, 1.0, 3.0, 20.0])
def test_no_batch_is_made_for_longer_than_it_is_worth_or_allowed(seconds: float) -> None:
    """What a boundary was measured to add, times so many."""
    count = boundaries_together(loads(10_000), COSTS, [measured(1, seconds)], ANY)
    added = count * (seconds - COSTS.fixed)
    assert count == 1 or COSTS.fixed + added <= AIMED * LATENCY
    assert count == 1 or (count - 1) * (seconds - COSTS.fixed) < COSTS.fixed / WORTH


def test_a_boundary_dearer_than_what_it_shares_goes_alone() -> None:
    assert boundaries_together(loads(120), COSTS, [measured(1, 6.0)], ANY) == 1


def test_before_anything_is_measured_a_price_by_rows_is_trusted_with_less() -> None:
    count = boundaries_together(loads(10_000), COSTS, [], ANY)
    assert 1 < count and COSTS.fixed + COSTS.added(loads(count)[-1]) <= UNMEASURED * LATENCY


def test_a_batch_learns_that_its_boundaries_share_their_reading() -> None:
    """A window of half a second is read once for all boundaries of a batch: batches grow until that does not weigh."""
    counts, batches = list[int](), list[MeasuredBatch]()
    for _ in range(12):
        count = boundaries_together(loads(1_000), COSTS, batches, ANY)
        counts.append(count)
        batches.append(measured(count, 0.2 + 0.5 + 0.002 * count))
    assert counts[-1] > 200 and all(batch.seconds < LATENCY for batch in batches)


def test_memory_bounds_what_latency_would_allow() -> None:
    fast = [measured(100, 0.3)]
    assert boundaries_together(loads(120, held=1e6), COSTS, fast, BatchRoom(held=3.5e6)) == 3
    assert boundaries_together(loads(120), COSTS, fast, BatchRoom(handed=7_000)) == 7
    assert boundaries_together(loads(120, held=1e9), COSTS, fast, BatchRoom(held=1.0)) == 1


def test_a_short_latency_leaves_boundaries_alone() -> None:
    assert boundaries_together(loads(120), COSTS, [measured(1, 0.3)], ANY, latency=0.001) == 1


def test_a_cold_batch_says_at_most_that_prices_are_right() -> None:
    cold = measured(4, 6.0, cold=True)
    assert measured_factor(COSTS, [cold]) == 1.0
    assert measured_factor(COSTS, [replace(cold, seconds=0.21)]) == pytest.approx(0.01 / (4 * 0.013))
    assert measured_factor(COSTS, []) is None and measured_factor(COSTS, [measured(0, 1.0, rows=0)]) is None


def test_one_slow_batch_among_quick_ones_changes_nothing() -> None:
    quick = [measured(10, 0.3), measured(10, 0.31)]
    assert measured_factor(COSTS, [*quick, measured(10, 9.0)]) == measured_factor(COSTS, [measured(10, 0.31)])


@pytest.mark.parametrize("plan, boundaries, keys, is_worth", [
    ("LAP recompute", 24, 100, True), ("LAP recompute", 2, 100, False), ("EAP11 recompute", 24, 100, False),
    ("LAP expire", 24, 100, False), ("LAP recompute", 24, 1e6, False)])
def test_strings_are_coded_where_rows_are_joined_several_times(plan: str, boundaries: int, keys: float,
                                                               is_worth: bool) -> None:
    asked = query("two-streams")
    assert is_worth_coding(asked, named(asked, plan), two(keys=keys), boundaries) == is_worth


@pytest.mark.parametrize("plan, boundaries, tasks, runs", [
    ("EAP01 recompute", 96, 4, 4),      # a minute's window in sixteen minutes: little is read twice
    ("EAP01 recompute", 3, 4, 3),       # a boundary each: no row need say at which it counts
    ("EAP01 recompute", 96, 1, 1), ("EAP01 recompute", 1, 4, 1),
    ("EAP11 running", 96, 4, 1), ("EAP11 expire", 96, 4, 1)])
def test_tasks_divide_boundaries_where_runs_have_little_in_common(plan: str, boundaries: int, tasks: int,
                                                                  runs: int) -> None:
    asked, known = query("two-streams"), two(views=20_000, clicks=20_000)
    assert boundary_runs_worth(asked, named(asked, plan), known, prior(), tasks, boundaries, True) == runs


def test_what_is_one_tasks_at_a_boundary_is_many_tasks_at_many() -> None:
    asked = query("distinct")
    assert boundary_runs_worth(asked, named(asked, "LAP recompute"), two(views=2_000), prior(), 4, 48, True) == 4


def test_a_task_of_one_stream_had_better_read_its_share_of_the_rows() -> None:
    """Rows that are aggregated once, to few partials: dividing boundaries would read windows twice and save nothing."""
    asked = query("SELECT v.page, COUNT(*) AS n FROM views AS v [WINDOW 10 MINUTES] GROUP BY v.page")
    plan, known = named(asked, "EAP1 recompute"), two(views=20_000, pairs=20)
    known = replace(known, inputs=known.inputs[:1], classes=())
    assert boundary_runs_worth(asked, plan, known, prior(), 4, 30, True, together=64) == 1
