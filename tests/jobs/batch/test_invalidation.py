"""When expired partials leave their files: with the batch that adds, or by maintenance.

The answers are the same, also when it changes from batch to batch.
"""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

import forebay
from jobs.maintenance import compact
from jobs.storage import tables
from optimizer.plan.model import INVALIDATIONS
from tests.jobs.pipelines import answers, equal, forced, pipeline, rows

SQL = ("SELECT v.k, COUNT(*) AS n, MAX(b.x) AS most FROM views AS v [WINDOW 30 SECONDS], buys AS b [WINDOW 20 SECONDS] "
       "WHERE v.k = b.k GROUP BY v.k")
# batches of which rows can still count: 30 s and the boundary itself, one more for good measure
WINDOW = 5
FILES = 7                    # of which a set that is swept is made one
BATCHES = 11


def files(pipe: forebay.Pipeline) -> dict[str, int]:
    root = Path(pipe.runtime.pipeline.warehouse) / "state/q"
    newest = max(root.iterdir(), key=lambda p: int(p.name)) if root.exists() else root
    return {p.parent.name: len(tables.open_table(str(p.parent)).files()) for p in newest.rglob("_delta_log")}


def lived(folder: Path, plan: str, monkeypatch: pytest.MonkeyPatch,
          choose: Any) -> tuple[list[tuple[Any, ...]], list[dict[str, int]]]:
    """The answers, and how many files each set has after each batch."""
    seen: list[dict[str, int]] = []
    with monkeypatch.context() as patched:
        forced(patched, lambda plan: replace(plan, invalidation=choose()))
        pipe = pipeline(folder, {"views": "lateness: 20 seconds", "buys": ""})
        pipe.create("q", SQL)
        pipe.change("q", "pin", plan)
        for k in range(BATCHES):
            rows(pipe, [10 * k, 10 * k + 5, max(10 * k - 12, 0)], k=k % 2, x=k)
            rows(pipe, [10 * k + 1, 10 * k + 9.9], "buys", k=k % 2, x=-k)
            pipe.run()
            seen.append(files(pipe))
    assert equal(pipe)
    return sorted(answers(pipe, "q")), seen


@pytest.mark.slow
@pytest.mark.parametrize(
    "plan",
    ["EAP11 running", *(pytest.param(plan, marks=pytest.mark.long) for plan in ("EAP11 recompute", "EAP11 expire"))])
def test_answers_are_equal_and_files_leave_when_they_should(plan: str, tmp_path: Path,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "STATE_FILES", FILES)
    choice = Random(plan)
    said = {kind: lived(tmp_path / kind, plan, monkeypatch, lambda kind=kind: kind) for kind in INVALIDATIONS}
    mixed, _ = lived(tmp_path / "mixed", plan, monkeypatch, lambda: choice.choice(INVALIDATIONS))
    assert said["insert"][0] == said["sweep"][0] == mixed != []
    most = {kind: max(max(after.values(), default=0) for after in seen) for kind, (_, seen) in said.items()}
    assert most["insert"] <= WINDOW < FILES == most["sweep"]
    last = [max(after.values(), default=0) for after in said["sweep"][1]]
    assert any(b < a for a, b in zip(last, last[1:])), "maintenance has swept"
