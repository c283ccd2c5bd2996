"""A join of two streams: what a boundary costs by rows that come, as its window grows, and beside Spark and DuckDB.
"""
from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from jobs.ledger.open_pipeline import open_pipeline
from jobs.papers.benches import peers, streams
from jobs.papers.benches.streams import BenchSetting
from jobs.pipeline.config import load
from jobs.requests import requests
from jobs.results import answers
from jobs.run import Loop
from jobs.verify import recompute as oracle

WARM = 2              # batches after a start that are not counted
STEPS = 6             # batches under each plan as the window grows, the first of which makes its state
Report = dict[str, Any]


@contextmanager
def _bench(setting: BenchSetting) -> Iterator[Loop]:
    folder = tempfile.mkdtemp(prefix="forebay-bench-")
    rt = open_pipeline(load(streams.pipeline(folder, setting)))
    try:
        yield Loop(rt)
    finally:
        rt.tasks.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _land(loop: Loop, setting: BenchSetting, batches: range, rows: int | None = None) -> tuple[float, int]:
    """Makes and ingests batches; seconds and rows of the ingest alone."""
    streams.make(os.path.join(loop.pipe.pipeline.folder, "landing"), setting, batches, rows)
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
            loop.run(flush=True, to=streams.boundary(setting, count - 3 * STEPS - 2))
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
        loop.run(flush=True, to=streams.boundary(setting, full - 2))
        ran = _each(loop, count - full + 1)
        last = ran[-1]["boundary"]
        ours = answers.read(rt, "answer", last).drop_columns(["boundary"])
        paths = {s: streams.stream_files(rt, s) for s in ("s1", "s2")}
        others = peers.measured(rt, paths, setting, last, with_plain)
        report: Report = {
            "ingest_rows_per_s": rows / seconds,
            "plans": sorted({p for e in ran for p in e["plans"].values()}),
            "forebay_s": _seconds(ran)
        }
        for peer, (took, answer) in others.items():
            same = "not finished" if answer is None else not oracle.compare(answer, ours)
            report[peer] = {"seconds": took, "times_ours": took / report["forebay_s"], "equal": same}
        return report
