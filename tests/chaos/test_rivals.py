"""Two runners of one pipeline, with nothing between them but the ledger: each boundary is committed once and right, the
slower one stops and says so.
"""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.scenario import ROOT, committed_twice
from tests.jobs.pipelines import boundary, equal, opened, pipeline, rows

QUERIES = {
    "q": "SELECT v.k, COUNT(*) AS n, SUM(v.x) AS x FROM views AS v [WINDOW 30 SECONDS] GROUP BY v.k",
    "kept": "SELECT v.k, COUNT(*) AS n FROM views AS v [WINDOW 40 SECONDS], buys AS b [WINDOW 40 SECONDS] WHERE v.k = "
            "b.k GROUP BY v.k"
}


def raced(folder: Path, batches: int, *options: str) -> list[int]:
    """Two rivals run so many batches; how often each lost."""
    pipe = pipeline(folder, {"views": "", "buys": ""}, queries=QUERIES)
    for name, sql in QUERIES.items():
        pipe.create(name, sql)
    pipe.change("kept", "pin", "EAP11 running")
    for k in range(4):
        rows(pipe, range(k, batches * 10 + 10, 4), k=k)
        rows(pipe, range(k, batches * 10 + 10, 7), "buys", k=k)
    command = [sys.executable, "-m", "tests.chaos.rival", str(folder), str(boundary(batches * 10)), *options]
    rivals = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env=dict(os.environ)) for _ in range(2)
    ]
    said = [rival.communicate(timeout=900) for rival in rivals]
    assert options or all(rival.returncode == 0 for rival in rivals), said
    return [int(out or -1) for out, _ in said]


@pytest.mark.parametrize(
    "batches",
    [pytest.param(6, marks=[pytest.mark.chaos, pytest.mark.sample]),
     pytest.param(60, marks=pytest.mark.chaos)])
def test_each_batch_has_one_winner(batches: int, tmp_path: Path) -> None:
    lost = raced(tmp_path, batches)
    pipe = opened(tmp_path)
    assert sum(lost) >= batches // 3, "there was no contention worth the name"
    assert committed_twice(tmp_path) == []
    assert pipe.runtime.ledger.last().batch.number == batches - 1
    assert pipe.verify()["queries"]["q"]["boundaries"] == batches and equal(pipe)


@pytest.mark.chaos
@pytest.mark.sample
def test_without_put_if_absent_it_would_be_noticed(tmp_path: Path) -> None:
    """The negative control of the test above."""
    raced(tmp_path, 12, "careless")
    try:
        noticed = bool(committed_twice(tmp_path)) or not equal(opened(tmp_path))
    except Exception:      # whatever breaks is noticed too
        noticed = True
    assert noticed
