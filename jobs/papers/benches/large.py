"""Windows of up to 96 million rows a stream: what a boundary takes under the plan that prices choose, under fixed ones,
and by DuckDB that recomputes it from the same files.

    forebay bench large-windows

P1's streams and query (20,000 rows a second and stream, a boundary every five seconds) over windows of 300, 1,200 and
4,800 seconds. The answers are compared, nothing asserts on seconds.
"""
from __future__ import annotations

import os
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from glob import glob
from typing import Any

from jobs.ledger.open_pipeline import open_pipeline
from jobs.papers.benches import streams
from jobs.papers.benches.peers import duckdb, timed
from jobs.papers.benches.streams import BenchSetting
from jobs.pipeline.config import load
from jobs.requests import requests
from jobs.results import answers
from jobs.run import Loop
from jobs.verify import recompute as oracle

QUERY = "answer"
LANDED = 24           # batches whose rows come at once, until the windows are full
TIMES = 3             # that DuckDB computes a boundary
Say = Callable[[str], object]


@dataclass(frozen=True)
class LargeSetting:
    """Windows in seconds; boundaries under the plan that is chosen and under each of the fixed ones.

    Of the boundaries of a plan the first make its state, and files of state are merged every few: the last are counted.
    """

    windows: tuple[int, ...] = (300, 1_200, 4_800)
    rate: int = 20_000
    boundaries: int = 24
    counted: int = 16
    plans: tuple[str, ...] = ("EAP11 running", "EAP11 recompute", "EAP01 recompute")

    @property
    def data(self) -> BenchSetting:
        return BenchSetting(self.rate, max(self.windows))


QUICK = LargeSetting(windows=(60, 240), rate=2_000, boundaries=12, counted=6)


class FilledStreams:
    """The streams of a run: which batch of theirs comes next."""

    def __init__(self, loop: Loop, data: BenchSetting) -> None:
        self.loop, self.data = loop, data
        self.landing = os.path.join(loop.pipe.pipeline.folder, "landing")
        self.next = 0

    def bring(self, batches: int) -> None:
        streams.make(self.landing, self.data, range(self.next, self.next + batches))
        self.loop.take()
        self.next += batches
        for file in glob(os.path.join(self.landing, "*", "*.parquet")):
            os.unlink(file)

    def advance(self, boundaries: int) -> list[dict[str, Any]]:
        """Boundary by boundary, as they come in a running pipeline."""
        ran = []
        for _ in range(boundaries):
            self.bring(1)
            ran += self.loop.run(flush=True)["ran"]
        return ran


def large_windows(setting: LargeSetting, say: Say = lambda _: None) -> dict[str, Any]:
    """Seconds of a boundary by window, and how they grow with it."""
    with _filled(setting, say) as filled:
        by_window = {f"{window * setting.rate:,} rows": _of_window(filled, setting, window, say)
                     for window in setting.windows}
    first, *_, last = by_window.values()
    growth = {name: last[name]["batch_s"] / first[name]["batch_s"] for name in ("by price", *setting.plans)}
    return {**by_window, "growth from the shortest to the longest window": growth}


@contextmanager
def _filled(setting: LargeSetting, say: Say) -> Iterator[FilledStreams]:
    folder = tempfile.mkdtemp(prefix="forebay-bench-")
    streams.pipeline(folder, setting.data)
    os.unlink(os.path.join(folder, "queries", f"{QUERY}.sql"))
    pipe = open_pipeline(load(folder))
    filled = FilledStreams(Loop(pipe), setting.data)
    try:
        while filled.next < max(setting.windows) // setting.data.batch:
            filled.bring(LANDED)
        filled.loop.run(flush=True)
        say(f"{filled.next:,} batches are stored")
        yield filled
    finally:
        pipe.tasks.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _of_window(filled: FilledStreams, setting: LargeSetting, window: int, say: Say) -> dict[str, Any]:
    """One query over this window, alone: under the chosen plan, each fixed one, and by DuckDB."""
    pipe, data = filled.loop.pipe, replace(setting.data, window=window)
    name = f"{QUERY}_{window}"
    requests.create(pipe, name, data.sql)
    figures: dict[str, Any] = {"by price": _measured(filled, setting, name)}
    t = answers.published(pipe, name)[-1]
    paths = {s: streams.stream_files(pipe, s) for s in ("s1", "s2")}
    seconds, answer = timed(lambda: duckdb(paths, data, t), TIMES)
    figures["duckdb_recompute"] = {
        "seconds": seconds, "times_ours": seconds / figures["by price"]["batch_s"],
        "equal": not oracle.compare(answer, answers.read(pipe, name, t).drop_columns(["boundary"]))}
    for plan in setting.plans:
        requests.change(pipe, name, "pin", plan)
        figures[plan] = _measured(filled, setting, name)
    requests.change(pipe, name, "delete")
    say(f"{window} s: {figures}")
    return figures


def _measured(filled: FilledStreams, setting: LargeSetting, name: str) -> dict[str, Any]:
    """Medians of the last boundaries: wall time with all commits, and processor seconds of the longest task."""
    ran = filled.advance(setting.boundaries)[-setting.counted:]
    batches = filled.loop.pipe.ledger.committed_batches()[-setting.counted:]
    return {"plan": ran[-1]["plans"][name], "batch_s": statistics.median(entry["seconds"] for entry in ran),
            "task_s": statistics.median(batch.task_seconds.get(name, 0.0) for batch in batches)}
