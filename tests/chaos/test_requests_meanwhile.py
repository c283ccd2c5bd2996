"""Requests from other processes while a runner begins boundary after boundary: each takes effect at exactly the
boundary that it was told.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from jobs.storage import tables
from optimizer.time import micros
from tests.chaos.scenario import ROOT
from tests.jobs.pipelines import COUNT, boundary, equal, opened, pipeline, rows

ASK = """
import json, random, sys, time
from tests.jobs.pipelines import COUNT, opened
folder, me, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
pipe, rnd, told = opened(__import__("pathlib").Path(folder)), random.Random(me), []
for n in range(count):
    name = f"q{me}{n}"
    told.append((name, "create", pipe.create(name, COUNT)["effective"]))
    time.sleep(rnd.random() / 5)
    told.append((name, "pause", pipe.change(name, "pause")["effective"]))
    time.sleep(rnd.random() / 5)
    told.append((name, "resume", pipe.change(name, "resume")["effective"]))
    if n % 2:
        told.append((name, "delete", pipe.change(name, "delete")["effective"]))
print(json.dumps(told))
"""


def appeared(folder: Path, name: str) -> set[int]:
    """The boundaries with a row at the query's address: as any reader of Delta sees them.

    COUNT without groups has one at each.
    """
    found, path = set(), folder / "warehouse/results" / name
    for file in tables.open_table(str(path)).files() if tables.exists(str(path)) else ():
        found |= {micros(row["boundary"]) for row in pq.read_table(path / file.path, partitioning=None).to_pylist()}
    return found


def due(changes: list[tuple[str, int]], first: int, last: int, step: int) -> set[int]:
    """Where answers must be: each request in force from its boundary on."""
    found, active = set(), False
    for t in range(first, last + 1, step):
        for action, effective in changes:
            if effective == t:
                active = action in ("create", "resume")
        found |= {t} if active else set()
    return found


@pytest.mark.parametrize(("count", "boundaries"), [
    pytest.param(6, 40, marks=[pytest.mark.chaos, pytest.mark.sample]), pytest.param(40, 300, marks=pytest.mark.chaos),
])
def test_the_boundary_told_is_the_boundary(count: int, boundaries: int, tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"base": COUNT})
    rows(pipe, range(0, boundaries * 10 + 10, 3))
    asking = [
        subprocess.Popen(
            [sys.executable, "-c", ASK, str(tmp_path), me, str(count)], cwd=ROOT, stdout=subprocess.PIPE, text=True,
            env=dict(os.environ)) for me in "ab"
    ]
    meanwhile = 0
    while any(a.poll() is None for a in asking):
        meanwhile += len(pipe.run(batches=1)["ran"])
    said: list[Any] = [entry for a in asking for entry in json.loads(a.communicate()[0])]
    assert all(a.returncode == 0 for a in asking)
    pipe.run(flush=True)
    assert meanwhile > 2 and len({effective for _, _, effective in said}) > 2, "nothing ran meanwhile"
    last = pipe.runtime.ledger.committed()
    for name in {n for n, _, _ in said}:
        told = [(action, effective) for n, action, effective in said if n == name]
        assert appeared(tmp_path, name) == due(told, boundary(10), last, 10 * 10**6), (name, told)
    assert equal(opened(tmp_path))
