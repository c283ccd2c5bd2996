"""A thousand small batches: prints what batch 1,000 costs beside batch 100, and what there is to read.

`python -m tests.chaos.many_batches FOLDER [BATCHES]`
"""
from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import Any

from jobs.storage import tables
from tests.jobs.pipelines import pipeline, rows

QUERIES = {"q": "SELECT v.k, COUNT(*) AS n, SUM(v.x) AS x FROM views AS v [WINDOW 30 SECONDS] GROUP BY v.k",
           "total": "SELECT COUNT(*) AS n FROM views AS v [WINDOW UNTIL NOW]"}
AROUND = 20      # batches on each side over which the median is taken


def lived(folder: Path, batches: int) -> list[float]:
    """Seconds of processor time of each batch, ingest apart."""
    pipe = pipeline(folder, queries=QUERIES)
    pipe.create("total", QUERIES["total"])
    pipe.change("total", "pin", "EAP1 running")
    seconds = []
    for k in range(batches):
        rows(pipe, [k * 10 + 1, k * 10 + 10])
        began = time.process_time()
        assert len(pipe.run()["ran"]) == 1
        seconds.append(time.process_time() - began)
    return seconds


def sizes(folder: Path) -> dict[str, Any]:
    """Files that each table names, and commits since its last checkpoint."""
    found = {}
    for log in sorted((folder / "warehouse").rglob("_delta_log")):
        table = tables.open_table(str(log.parent))
        checkpoint = max((int(p.name.split(".")[0]) for p in log.glob("*.checkpoint.parquet")), default=-1)
        found[str(log.parent.relative_to(folder / "warehouse"))] = {
            "files": len(table.files()),
            "commits": table.version - checkpoint
        }
    return found


def median(seconds: list[float], at: int) -> float:
    return statistics.median(seconds[max(0, at - AROUND):at])


if __name__ == "__main__":
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    taken = lived(Path(sys.argv[1]), count)
    print({at: round(median(taken, at), 4) for at in range(100, count + 1, 100)}, "ratio",
          round(median(taken, count) / median(taken, 100), 3))
    for name, size in sizes(Path(sys.argv[1])).items():
        print(name, size)
