"""Benchmarks: each prints figures and ratios measured in one run on this machine, answers compared first.

Nothing asserts on seconds.
"""
from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from jobs.engine import kernel
from jobs.ledger.open_pipeline import OpenPipeline, open_pipeline
from jobs.papers import bench_backlog, bench_data, bench_sharing, bench_statistics, bench_ways, drift
from jobs.papers.bench_data import BenchSetting
from jobs.papers.bench_statistics import StatisticsSetting
from jobs.papers.experiments.sharing import rows as sharing_rows
from jobs.papers.model_error import run as model_error
from jobs.pipeline.config import load
from jobs.requests import requests
from jobs.results import answers
from jobs.run import Loop
from jobs.verify import recompute as oracle
from optimizer.errors import ForebayError

WARM = 2              # batches after a start that are not counted
STEPS = 6             # batches under each plan as the window grows, the first of which makes its state
LIMIT = 600.0         # seconds a peer may take for one boundary; a time-out counts as that
Report = dict[str, Any]


def names() -> dict[str, str]:
    return {
        "batch-cost": "a batch by rows that come: none, 1 k, 100 k, 1 M; where the time goes",
        "backlog": "all boundaries of rows that are stored, one a batch and as many together as the price says: P1, a "
                   "join of two streams, and P2, four windows of one",
        "window-growth": "seconds a batch as the window grows 1, 4, 16 times, by way of keeping",
        "peers-join": "one boundary of a two-way join: ours, Spark's own plan, Spark SQL by an expert, DuckDB "
                      "recomputing",
        "peers-join-large": "the same with 12 M rows a window and stream",
        "model-error": "what prices say of the plans of 103 settings, and what they take on stream tables through "
                       "Spark's tasks; fits unit costs; writes docs/model-error.md (an hour, 20 GB of disk; goes on "
                       "where it was ended)",
        "sharing": "1 to 500 queries with selections on one join: together, each for itself, and by plain Spark (a "
                   "sample, extrapolated)",
        "sharing-rows": "1 to 500 queries for joined rows with selections on one join: together and each for itself",
        "sharing-ways": "a group's cells split before its join and after it, and its join in each order, by one task",
        "statistics": "looks at whole windows: their cost beside the batches', their errors beside exact SQL; --rows "
                      "(a window and stream) and --boundaries say how many",
        "drift": "four changes of a stream's nature: plans chosen by price beside every fixed plan and the best of "
                 "each phase"
    }


def document(wanted: list[str], quick: bool = False, rows: int | None = None,
             boundaries: int | None = None) -> Report:
    """What each measures, for `list`; else the figures of each. `rows` and `boundaries` are for `statistics` alone."""
    reports = names() if wanted == ["list"] else {name: run(name, quick, rows, boundaries) for name in wanted}
    return {"benchmarks": reports, "text": json.dumps(reports, indent=2, default=str)}


def run(name: str, quick: bool = False, rows: int | None = None, boundaries: int | None = None) -> Report:
    """One benchmark by name."""
    if name not in names():
        raise ForebayError("unknown-benchmark", f"there is no benchmark {name!r}",
                           hint=f"there are {', '.join(names())}")
    if name == "model-error":
        return model_error.run(quick, lambda message: print(message, file=sys.stderr))
    if name == "statistics":
        windows = StatisticsSetting(240_000, 6) if quick else StatisticsSetting()
        windows = replace(windows, rows=rows or windows.rows, boundaries=boundaries or windows.boundaries)
        return bench_statistics.statistics(windows, lambda message: print(message, file=sys.stderr))
    if name == "drift":
        return drift.drift(6, 500, stationary=40) if quick else drift.drift()
    if name == "sharing-rows":
        return sharing_rows.both(quick)
    if name == "sharing-ways":
        return bench_ways.ways(quick, lambda message: print(message, file=sys.stderr))
    if name == "sharing":
        short = bench_sharing.SharingSetting(counts=(1, 20, 100), apart=20)
        setting = short if quick else bench_sharing.SharingSetting()
        return bench_sharing.with_spark(setting, lambda message: print(message, file=sys.stderr),
                                        patience=20.0 if quick else bench_sharing.PATIENCE)
    if name == "backlog":
        return bench_backlog.backlog(quick, lambda message: print(message, file=sys.stderr))
    if name == "batch-cost":
        return batch_cost((0, 1_000, 100_000) if quick else (0, 1_000, 100_000, 1_000_000))
    if name == "window-growth":
        return window_growth((1, 4) if quick else (1, 4, 16))
    if name.endswith("large"):
        return peers_join(BenchSetting(rate=100_000, window=120), with_plain=False)
    return peers_join(BenchSetting(), with_plain=not quick)


@contextmanager
def _bench(setting: BenchSetting) -> Iterator[Loop]:
    folder = tempfile.mkdtemp(prefix="forebay-bench-")
    rt = open_pipeline(load(bench_data.pipeline(folder, setting)))
    try:
        yield Loop(rt)
    finally:
        rt.tasks.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _land(loop: Loop, setting: BenchSetting, batches: range, rows: int | None = None) -> tuple[float, int]:
    """Makes and ingests batches; seconds and rows of the ingest alone."""
    bench_data.make(os.path.join(loop.pipe.pipeline.folder, "landing"), setting, batches, rows)
    started = time.perf_counter()
    counts = loop.take()["streams"]
    return time.perf_counter() - started, sum(s["rows"] for s in counts.values())


def _seconds(ran: list[dict[str, Any]]) -> float:
    return statistics.median(entry["seconds"] for entry in ran[WARM:] or ran)


def _each(loop: Loop, last: int) -> list[dict[str, Any]]:
    """Boundary by boundary, as they come in a running pipeline: never several in one batch."""
    return [entry for _ in range(last) for entry in loop.run(flush=True, limit=1)["ran"]]


def batch_cost(sizes: tuple[int, ...]) -> Report:
    """Where a batch's fixed cost lies: the same query over windows that hold next to nothing but the rows that come."""
    figures: Report = {}
    for rows in sizes:
        setting = BenchSetting(window=5)
        with _bench(setting) as loop:
            rt = loop.pipe
            _land(loop, setting, range(0, 1), max(rows, 10))
            count = 8
            seconds, ingested = _land(loop, setting, range(1, count), rows if rows else 1)
            before = rt.tasks.jobs
            ran = _each(loop, count)
            figures[f"{rows:,} rows a stream"] = {
                "batch_s": _seconds(ran),
                "spark_jobs_a_batch": (rt.tasks.jobs - before) / max(len(ran), 1),
                "ingest_rows_per_s": ingested / seconds,
                "stages_s": {stage: round(seconds, 4) for stage, seconds in loop.laps.medians().items()},
            }
    return figures


def window_growth(factors: tuple[int, ...]) -> Report:
    """The batch stays, the window grows."""
    seconds_by_plan: Report = {}
    base = BenchSetting(rate=4_000, window=60)
    for factor in factors:
        setting = replace(base, window=base.window * factor)
        count = setting.window // setting.batch + 3 * STEPS + 1
        with _bench(setting) as loop:
            _land(loop, setting, range(count))
            loop.run(flush=True, to=bench_data.boundary(setting, count - 3 * STEPS - 2))
            requests.synchronise(loop.pipe)
            for plan in ("EAP01 recompute", "EAP11 running", "EAP11 expire"):
                requests.change(loop.pipe, "answer", "pin", plan)
                seconds_by_plan.setdefault(plan, {})[f"window {setting.window} s"] = statistics.median(
                    entry["seconds"] for entry in _each(loop, STEPS)[1:])
    return {
        plan: {
            **seconds, "growth": list(seconds.values())[-1] / list(seconds.values())[0]
        } for plan, seconds in seconds_by_plan.items()
    }


def peers_join(setting: BenchSetting, with_plain: bool = True) -> Report:
    """One boundary with full windows by each system; ours is the median of warm batches with ledger and results."""
    full = setting.window // setting.batch
    count = full + 6
    with _bench(setting) as loop:
        rt = loop.pipe
        seconds, rows = _land(loop, setting, range(count))
        loop.run(flush=True, to=bench_data.boundary(setting, full - 2))
        ran = _each(loop, count - full + 1)
        last = ran[-1]["boundary"]
        ours = answers.read(rt, "answer", last).drop_columns(["boundary"])
        paths = {s: bench_data.stream_files(rt, s) for s in ("s1", "s2")}
        peers = _peers(rt, paths, setting, last, with_plain)
        report: Report = {
            "ingest_rows_per_s": rows / seconds,
            "plans": sorted({p for e in ran for p in e["plans"].values()}),
            "forebay_s": _seconds(ran)
        }
        for peer, (took, answer) in peers.items():
            same = "not finished" if answer is None else not oracle.compare(answer, ours)
            report[peer] = {"seconds": took, "times_ours": took / report["forebay_s"], "equal": same}
        return report


def _peers(rt: OpenPipeline, paths: dict[str, tuple[str, ...]], setting: BenchSetting, t: int,
           with_plain: bool) -> dict[str, tuple[float, pa.Table | None]]:
    measured = {"duckdb_recompute": _timed(lambda: _duckdb(paths, setting, t), 3)}
    if not rt.tasks.inline:
        session = rt.tasks.session
        for stream, path in paths.items():
            session.read.parquet(*path).createOrReplaceTempView(stream)
        measured["spark_expert"] = _timed(lambda: session.sql(_expert(setting, t, "spark")).toArrow(), 3)
        if with_plain:
            measured["spark_plain"] = bench_sharing.limited(session, _plain(setting, t), LIMIT)
    return measured


def _timed(work: Callable[[], pa.Table], times: int) -> tuple[float, pa.Table]:
    took = []
    for _ in range(times):
        started = time.perf_counter()
        answer = work()
        took.append(time.perf_counter() - started)
    return statistics.median(took), answer


def _within(setting: BenchSetting, t: int) -> str:
    return f"unix_micros(ts) >= {t - setting.window * bench_data.SECOND} AND unix_micros(ts) < {t}"


def _plain(setting: BenchSetting, t: int) -> str:
    where = _within(setting, t)
    return (
        "SELECT w1.g, COUNT(*) AS n, SUM(w1.a) AS sum_a, SUM(w2.b) AS sum_b, MIN(w2.b) AS min_b, MAX(w1.a) AS max_a "
        f"FROM (SELECT * FROM s1 WHERE {where}) AS w1 JOIN (SELECT * FROM s2 WHERE {where}) AS w2 ON w1.j = w2.j GROUP "
        "BY w1.g"
    )


def _expert(setting: BenchSetting, t: int, dialect: str) -> str:
    """What an expert writes by hand: only s2 aggregated early."""
    where = _within(setting, t) if dialect == "spark" else _within(setting, t).replace("unix_micros", "epoch_us")
    early = f"SELECT j, COUNT(*) AS c, SUM(b) AS b, MIN(b) AS mn FROM s2 WHERE {where} GROUP BY j"
    sums = ("CAST(SUM(e2.c) AS BIGINT) AS n, CAST(SUM(w1.a * e2.c) AS BIGINT) AS sum_a, CAST(SUM(e2.b) AS BIGINT) AS "
            "sum_b")
    return (f"SELECT w1.g, {sums}, MIN(e2.mn) AS min_b, MAX(w1.a) AS max_a "
            f"FROM (SELECT * FROM s1 WHERE {where}) AS w1 JOIN ({early}) AS e2 ON w1.j = e2.j GROUP BY w1.g")


def _duckdb(paths: dict[str, tuple[str, ...]], setting: BenchSetting, t: int) -> pa.Table:
    """The query as written would form a billion rows.

    DuckDB gets the expert's form as well, both cores, one process.
    """
    con = kernel.connect(threads=os.cpu_count() or 2, memory="8GB")
    for stream, path in paths.items():
        con.execute(f"CREATE VIEW {stream} AS SELECT * FROM read_parquet({kernel.file_list(path)})")
    return kernel.table(con, _expert(setting, t, "duckdb"))
