"""Where a run's seconds went: the parts are all of it."""
from __future__ import annotations

from typing import Any

import pytest

from infra.overhead import _split


def at(second: float) -> str:
    return f"2026-01-01T00:00:{second:06.3f}Z"


def task(name: str, queued: float, start: float, end: float) -> dict[str, Any]:
    return {
        "task_id": name,
        "queued_when": at(queued),
        "start_date": at(start),
        "end_date": at(end),
        "duration": end - start
    }


def test_the_parts_of_a_run_are_all_of_it() -> None:
    run = {"queued_at": at(1), "end_date": at(12)}
    skipped = {"task_id": "publish", "queued_when": None, "start_date": None, "end_date": None, "duration": None}
    found = _split(run, [task("ingest", 1.5, 2, 4), task("batches", 5, 5.25, 10), skipped])
    parts = ("before the first task", "tasks queued", "tasks at work", "between and after")
    assert [found[p]
            for p in parts] == pytest.approx([0.5, 0.75, 6.75, 3.0]) and sum(found[p]
                                                                             for p in parts) == pytest.approx(11)
    assert found["task batches"] == pytest.approx(4.75) and found["task publish"] == 0
