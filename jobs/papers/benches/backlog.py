"""A backlog: how long all boundaries of rows that are stored take, one a batch and as the price says, on workloads P1
and P2; answers are compared first.

P1 joins two streams over sliding windows, P2 has four tumbling windows of one stream. Both ways run on copies of one
warehouse, so that rows are taken in once. Flink runs P2 over the same files where FOREBAY_FLINK names a Python that has
`apache-flink`, and FOREBAY_FLINK_JARS the jars by which it reads Parquet, separated by commas.
"""
from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from jobs.engine import kernel
from jobs.ledger.open_pipeline import open_pipeline
from jobs.papers.benches import streams
from jobs.papers.benches.streams import SECOND, BenchSetting
from jobs.pipeline.config import load
from jobs.run import Loop
from jobs.verify import recompute as oracle
from optimizer.errors import failed
from optimizer.expression.dialect import string

WINDOWS = (20, 30, 40, 600)      # seconds, of P2
QUERY = "answer"
FLINK = """
import sys, time
from pyflink.table import EnvironmentSettings, TableEnvironment
files, out, windows, jars = sys.argv[1:]
env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
env.get_config().set("parallelism.default", "2")
env.get_config().set("pipeline.jars", ";".join("file://" + jar for jar in jars.split(",")))
place = "WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = 'file://{}')"
env.execute_sql("CREATE TABLE s (ts TIMESTAMP(3), k BIGINT, v BIGINT, WATERMARK FOR ts AS ts) " + place.format(files))
env.execute_sql("CREATE TABLE answer (w STRING, t TIMESTAMP(3), k BIGINT, mn BIGINT, mx BIGINT, sm BIGINT, n BIGINT) "
                + place.format(out))
of_window = ("SELECT '{0}', window_end, k, MIN(v), MAX(v), SUM(v), COUNT(*) FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), "
             "INTERVAL '{0}' SECOND(3))) GROUP BY window_start, window_end, k")
started = time.perf_counter()
env.execute_sql("INSERT INTO answer " + " UNION ALL ".join(map(of_window.format, windows.split(",")))).wait()
print(time.perf_counter() - started)
"""
PATIENCE = 600.0      # seconds that Flink may take
Report = dict[str, Any]


@dataclass(frozen=True)
class BacklogRun:
    """What running a backlog took: `answers_s` to its last commit, `tidy_s` beside it for merging files."""

    batches: int
    boundaries: int
    answers_s: float
    tidy_s: float
    answers: pa.Table


def backlog(quick: bool, tell: Callable[[str], None]) -> Report:
    """P1 with 24 boundaries, P2 with 120; `quick`: a quarter of each."""
    report: Report = {}
    for name, count, write in (("P1", 24, write_p1), ("P2", 120, write_p2)):
        folder = tempfile.mkdtemp(prefix="forebay-bench-")
        try:
            report[name] = measured(folder, BenchSetting(), max(count // 4, 6) if quick else count, write)
            tell(f"{name}: {report[name]}")
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return report


def measured(folder: str, setting: BenchSetting, count: int,
             write: Callable[[str, BenchSetting, int], None]) -> Report:
    """One workload of so many boundaries, both ways."""
    stored = os.path.join(folder, "stored")
    write(stored, setting, count)
    with _opened(stored) as loop:
        started = time.perf_counter()
        rows = sum(stream["rows"] for stream in loop.take()["streams"].values())
        ingest = time.perf_counter() - started
    runs = {}
    for way, most in (("one_a_batch", 1), ("together", None)):
        copy = os.path.join(folder, way)
        shutil.copytree(stored, copy)
        runs[way] = _run(copy, most)
    alone, together = runs["one_a_batch"], runs["together"]
    if alone.boundaries != together.boundaries or oracle.compare(alone.answers, together.answers):
        raise failed("wrong-answer", "boundaries of a backlog have other answers together", "please report this")
    report = {
        "rows": rows, "boundaries": together.boundaries, "ingest_rows_per_s": rows / ingest,
        **{way: {"batches": run.batches, "answers_s": run.answers_s, "tidy_s": run.tidy_s,
                 "rows_per_s": rows / run.answers_s} for way, run in runs.items()},
        "times_faster": alone.answers_s / together.answers_s,
    }
    files = os.path.join(stored, "landing", "s")
    if os.environ.get("FOREBAY_FLINK") and os.path.isdir(files):
        report["flink_rows_per_s"] = _flink(folder, files, rows / count, count)
    return report


def _flink(folder: str, files: str, rows_a_file: float, count: int) -> float:
    """Rows a second after its start, which is what one file takes."""
    first = os.path.join(folder, "first")
    os.makedirs(first)
    shutil.copy(os.path.join(files, sorted(os.listdir(files))[0]), first)
    seconds = list[float]()
    for source in (first, files):
        windows, out = ",".join(map(str, WINDOWS)), os.path.join(folder, f"flink-{len(seconds)}")
        run = subprocess.run([os.environ["FOREBAY_FLINK"], "-c", FLINK, source, out, windows,
                              os.environ.get("FOREBAY_FLINK_JARS", "")], capture_output=True, text=True, check=True,
                             timeout=PATIENCE)
        seconds.append(float(run.stdout.split()[-1]))
    return rows_a_file * (count - 1) / max(seconds[1] - seconds[0], 1e-3)


@contextmanager
def _opened(folder: str) -> Iterator[Loop]:
    pipe = open_pipeline(load(folder))
    try:
        yield Loop(pipe)
    finally:
        pipe.tasks.stop()


def _run(folder: str, most: int | None) -> BacklogRun:
    """All boundaries, after Spark and its Python tasks have started."""
    with _opened(folder) as loop:
        pipe = loop.pipe
        pipe.tasks.map(len, [[1]] * pipe.tasks.width)
        loop.pace.most = most
        started = time.perf_counter()
        ran = loop.run(flush=True)["ran"]
        seconds = time.perf_counter() - started
        last, tidy = pipe.ledger.last(), sum(loop.laps.by_stage["compact"])
        assert last is not None
        answers = pipe.table(f"results/{QUERY}").refresh().rows()
        return BacklogRun(last.batch.number + 1, len(ran), seconds - tidy, tidy, answers)


def write_p1(folder: str, setting: BenchSetting, count: int) -> None:
    streams.pipeline(folder, setting)
    streams.make(os.path.join(folder, "landing"), setting, range(count))


def write_p2(folder: str, setting: BenchSetting, count: int) -> None:
    """A stream s(ts, k, v) of integers, a file a boundary, and MIN, MAX, SUM, COUNT of each window and k."""
    os.makedirs(os.path.join(folder, "queries"))
    os.makedirs(os.path.join(folder, "landing", "s"))
    windows = ", ".join(f"Window('{size}', TumblingWindow(second, {size}))" for size in WINDOWS)
    with open(os.path.join(folder, "queries", f"{QUERY}.sql"), "w", encoding="utf-8") as file:
        file.write("SELECT System.Window().Id AS w, k, MIN(v) AS mn, MAX(v) AS mx, SUM(v) AS sm, COUNT(*) AS n FROM s "
                   f"GROUP BY k, Windows({windows})")
    with open(os.path.join(folder, "forebay.yml"), "w", encoding="utf-8") as file:
        file.write(f"name: bench\nbatch: {setting.batch} seconds\nstreams:\n  s: {{columns: {{ts: timestamp, "
                   "k: bigint, v: bigint}, event_time: ts, source: {files: \"landing/s/*.parquet\"}}\n")
    con = kernel.connect(threads=2, memory="4GB")
    rows, length = setting.rate * setting.batch, setting.batch * SECOND
    for number in range(count):
        con.execute(f"SELECT setseed({number % 997 / 997})")
        sql = (f"SELECT CAST(make_timestamp({streams.START + number * length} + (i * {length}) // {rows}) AS "
               f"TIMESTAMPTZ) AS ts, floor(random() * {setting.groups})::BIGINT AS k, "
               f"floor(random() * 100000)::BIGINT AS v FROM range({rows}) AS r(i)")
        path = os.path.join(folder, "landing", "s", f"{number:05d}.parquet")
        con.execute(f"COPY ({sql}) TO {string(path)} (FORMAT parquet, COMPRESSION zstd)")
    con.close()
