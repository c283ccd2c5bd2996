"""How many tasks a pipeline's work is divided among, from the longest a boundary may take and what boundaries took
(paper E, scaling out and in); pure.

One slow boundary is enough to scale out, since every later one is late as well; scaling in waits for several that leave
room, and goes task by task.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median

FULL = 0.8              # share of the latency allowed beyond which a boundary has too few tasks
AIMED = 0.6             # share that scaling out aims at
SPARE = 0.5             # share that a boundary on one task less must be expected to stay below
RESTED = 5              # boundaries on one number of tasks before there are fewer


@dataclass(frozen=True)
class Parallelism:
    """`parts` tasks for a query's work, 0 for as many as run at once; `reason` where that is news."""

    parts: int = 0
    reason: str | None = None


def parallelism(latency: float | None, parts: int, took: Sequence[float], most: int) -> Parallelism:
    """For the next boundary, after boundaries on `parts` tasks `took` so many seconds (newest last).

    At most `most` run at once.
    """
    if latency is None:
        return Parallelism()
    most = max(most, 1)
    if not 1 <= parts <= most:
        allowed = 1 if not parts else most
        return Parallelism(allowed, f"{_tasks(allowed)} of {most}: a boundary may take {latency:g} s")
    if took and took[-1] > FULL * latency and parts < most:
        wanted = min(most, max(parts + 1, ceil(parts * took[-1] / (AIMED * latency))))
        return Parallelism(
            wanted,
            f"{_tasks(wanted)} instead of {parts}: a boundary took {took[-1]:.2f} s of the {latency:g} s allowed")
    if parts > 1 and len(took) >= RESTED:
        expected = median(took[-RESTED:]) * parts / (parts - 1)
        if expected < SPARE * latency:
            return Parallelism(
                parts - 1,
                f"{_tasks(parts - 1)} instead of {parts}: it should take {expected:.2f} s of the {latency:g} s allowed")
    return Parallelism(parts)


def _tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count} tasks"
