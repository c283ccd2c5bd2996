"""An answer of many groups at each boundary, run by a driver whose memory is watched.

`python -m tests.large_answers FOLDER rows GROUPS BOUNDARIES` makes the pipeline (with `joined`: of two streams),
`… FOLDER run PLAN` runs it (`-`: the plan that prices choose).
"""
from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import duckdb

import forebay
from tests.jobs.pipelines import BEGINNING, SECOND, opened

SQL = ("SELECT v.k, COUNT(*) AS n, SUM(v.x) AS s, MIN(v.x) AS least, MAX(v.x) AS most FROM views AS v "
       "[WINDOW 20 SECONDS] GROUP BY v.k")
JOINED = ("SELECT v.k, COUNT(*) AS n, SUM(v.x) AS s, MAX(c.x) AS most FROM views AS v [WINDOW 20 SECONDS], clicks AS c "
          "[WINDOW 20 SECONDS] WHERE v.k = c.k GROUP BY v.k")
SETTINGS = """name: large
batch: 10 seconds
spark: {master: "local[2]", settings: {spark.driver.memory: 1g}}
streams:
  views: {columns: {ts: timestamp, k: bigint, x: bigint}, event_time: ts}
"""
CLICKS = "  clicks: {columns: {ts: timestamp, k: bigint, x: bigint}, event_time: ts}\n"


def stored(folder: Path, groups: int, boundaries: int, is_joined: bool) -> None:
    """A row of each group before every boundary, in four files each, so that tasks share them by file."""
    (folder / "queries").mkdir(parents=True)
    (folder / "forebay.yml").write_text(SETTINGS + (CLICKS if is_joined else ""))
    (folder / "queries" / "q.sql").write_text(JOINED if is_joined else SQL)
    (folder / "landing").mkdir()
    con = duckdb.connect(config={"threads": 1, "memory_limit": "1GB"})
    for boundary in range(boundaries):
        for part in range(4):
            low = BEGINNING + boundary * 10 * SECOND
            rows = (f"SELECT make_timestamptz({low} + CAST(range * 9 * {SECOND} / {groups} AS BIGINT)) AS ts, "
                    f"range AS k, range % 1000 - 300 AS x FROM range({part}, {groups}, 4)")
            con.execute(f"COPY ({rows}) TO '{folder}/landing/{boundary}-{part}.parquet' (FORMAT parquet)")
    con.close()


def taken(pipe: forebay.Pipeline, folder: Path) -> None:
    for stream in pipe.runtime.pipeline.streams:
        for path in sorted((folder / "landing").iterdir()):
            pipe.ingest(stream, str(path))


def peak(process: int) -> int:
    """The most memory that a process has had so far, in MiB."""
    with open(f"/proc/{process}/status", encoding="ascii") as file:
        line, = (line for line in file if line.startswith("VmHWM"))
    return int(line.split()[1]) >> 10


def virtual_machine() -> int | None:
    """The JVM that this process has started."""
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat", encoding="ascii") as file:
                text = file.read()
        except OSError:
            continue
        if "(java)" in text and int(text.rsplit(")", 1)[1].split()[1]) == os.getpid():
            return int(name)
    return None


def measured(folder: Path, plan: str) -> dict[str, Any]:
    """Of a driver that finds the rows ingested."""
    pipe = opened(folder)
    if plan != "-":
        pipe.synchronise()
        pipe.change("q", "pin", plan)
    started = time.perf_counter()
    ran = pipe.run(flush=True)["ran"]
    seconds, java = time.perf_counter() - started, virtual_machine()
    peaks = {"driver": peak(os.getpid()), "jvm": peak(java) if java else None}
    return {"boundaries": len(ran), "seconds": round(seconds, 1), "laps": pipe.loop.laps.by_stage, **peaks,
            "rows": published(folder)}


def published(folder: Path) -> list[int]:
    """Rows of the answer, by boundary."""
    files = f"'{folder}/warehouse/results/q/*.parquet'"
    counts = duckdb.execute(f"SELECT boundary, count(*) FROM read_parquet({files}) GROUP BY boundary ORDER BY boundary")
    return [count for _, count in counts.fetchall()]


def main() -> None:
    folder, step = Path(sys.argv[1]), sys.argv[2]
    if step == "rows":
        stored(folder, int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:] == ["joined"])
        taken(opened(folder), folder)
    else:
        print(json.dumps(measured(folder, sys.argv[3])))


if __name__ == "__main__":
    main()
