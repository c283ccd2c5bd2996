"""Tasks by latency: out at once when a boundary is late, in one by one when there is room, never to and fro."""
from __future__ import annotations

import pytest

from optimizer.choice.parallelism import RESTED, Parallelism, parallelism


def test_without_a_latency_all_tasks_work() -> None:
    assert parallelism(None, 3, [9.0], 4) == Parallelism()


def test_it_begins_with_one_task_and_says_so() -> None:
    first = parallelism(5, 0, [], 4)
    assert first.parts == 1 and "1 task of 4" in (first.reason or "")


@pytest.mark.parametrize("took, parts, wanted", [(4.5, 1, 2), (9.0, 1, 3), (100.0, 1, 4), (4.1, 2, 3), (4.1, 4, 4),
                                                 (3.9, 1, 1)])
def test_one_late_boundary_scales_out_as_far_as_it_needs(took: float, parts: int, wanted: int) -> None:
    found = parallelism(5, parts, [0.1, took], 4)
    assert found.parts == wanted and (found.reason is not None) == (wanted != parts)


def test_room_for_several_boundaries_scales_in_by_one() -> None:
    assert parallelism(5, 3, [0.5] * (RESTED - 1), 4).parts == 3
    assert parallelism(5, 3, [4.9] + [0.5] * RESTED, 4).parts == 2
    assert parallelism(5, 1, [0.1] * RESTED, 4).parts == 1


def test_what_scaled_in_does_not_scale_out_again_for_the_same_work() -> None:
    """Work of w task-seconds takes w / parts: from any number of tasks it settles."""
    for work in (0.5, 2.0, 4.0, 7.0, 11.0, 30.0):
        for start in (1, 4, 8):
            parts, took, changes = start, list[float](), list[int]()
            for _ in range(20 * RESTED):
                took.append(work / parts)
                found = parallelism(5, parts, took, 8)
                if found.parts != parts:
                    parts, took = found.parts, []
                    changes.append(parts)
            directions = [a < b for a, b in zip([start, *changes], changes)]
            assert sum(a != b for a, b in zip(directions, directions[1:])) <= 1, (work, start, changes)
            assert work / parts <= 4 or parts == 8, (work, parts)


def test_a_cluster_that_shrank_is_heeded() -> None:
    assert parallelism(5, 8, [1.0], 4).parts == 4
