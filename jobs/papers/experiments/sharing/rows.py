"""`SELECT *` of a join with a selection a stream, AJoin's own queries (E), as one work, each for itself, and one query
without selections; some of the answers are compared with DuckDB's, nothing asserts on seconds.

Streams and attributes are those of `forebay bench sharing`; rows meet on two attributes, so that a batch has half a
million joined rows. Selections are ranges so wide that all answers together hold a given multiple of the rows
that one query without selections has. Figures are of one machine and one run.
"""
from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt
from random import Random
from typing import Any

import pyarrow as pa

from jobs.engine import kernel
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.papers.benches.sharing import ATTRIBUTES, SECOND, START, VALUES, SharingSetting, pipeline
from jobs.papers.benches.streams import stream_files
from jobs.pipeline.warehouse import Warehouse
from jobs.requests import requests
from jobs.results import answers
from jobs.run import Loop
from jobs.verify import recompute as oracle

WARM, MEASURED = 1, 3            # runs of a batch each: those that are not counted, those of which the median counts
COMPARED = 4                     # queries whose last answer is computed again
WHOLE = (0, VALUES, 0, VALUES)   # bounds that every row is within
QUERY = ("SELECT * FROM s1 [WINDOW {window} SECONDS], s2 [WINDOW {window} SECONDS] "
         "WHERE s1.f0 = s2.f0 AND s1.f5 = s2.f5{selection}")
SELECTION = " AND s1.f1 >= {} AND s1.f1 < {} AND s2.f2 >= {} AND s2.f2 < {}"
Bounds = tuple[int, int, int, int]
Report = dict[str, Any]


@dataclass(frozen=True)
class RowsLevel:
    """So many queries whose answers together hold `times` the joined rows; `apart`: measured each for itself, too."""

    queries: int
    times: float
    apart: bool = False

    @property
    def name(self) -> str:
        return f"{self.queries} queries, {self.times:g} times the joined rows"

    def bounds(self) -> list[Bounds]:
        if self.queries == 1:
            return [WHOLE]
        width = min(round(VALUES * sqrt(self.times / self.queries)), VALUES)
        choice = Random(self.queries)
        starts = [(choice.randint(0, VALUES - width), choice.randint(0, VALUES - width)) for _ in range(self.queries)]
        return [(x, x + width, y, y + width) for x, y in starts]


ONE = RowsLevel(1, 1)
LEVELS = (ONE, RowsLevel(20, 3, True), RowsLevel(100, 3, True), RowsLevel(500, 3))


@dataclass(frozen=True)
class RowsSetting:
    """Rows a second and stream, window and batch in seconds; what is measured."""

    rate: int = 12_000
    window: int = 30
    batch: int = 5
    levels: tuple[RowsLevel, ...] = LEVELS

    @property
    def streams(self) -> SharingSetting:
        """The same of `bench sharing`, whose streams these are: a window, and the batches of a level."""
        length = self.window + 2 * (WARM + MEASURED) * self.batch
        return SharingSetting(self.rate, length, self.batch, (), 0)

    @property
    def input_rows(self) -> int:
        """Of a batch."""
        return 2 * self.rate * self.batch


QUICK = RowsSetting(2_000, levels=(ONE, RowsLevel(20, 3, True), RowsLevel(100, 3)))
LARGE = RowsSetting(4_000, levels=(ONE, RowsLevel(100, 100)))      # every query has nearly all joined rows


def both(quick: bool) -> Report:
    """With selections, and with hardly any."""
    return {"selected": rows(QUICK)} if quick else {"selected": rows(), "large": rows(LARGE)}


def rows(setting: RowsSetting = RowsSetting(), tell: Callable[[str], None] = lambda line: print(line, file=sys.stderr),
         master: str | None = None) -> Report:
    """Seconds of a batch, and of a run until its answers are public, by number of queries."""
    figures: Report = {}
    for level in setting.levels:
        with pipeline(setting.streams, master) as loop:
            figures[level.name] = figure = _level(loop, setting, level)
        figure["times_one"] = _ratios(figure["together"], next(iter(figures.values()))["together"])
        tell(f"{level.name}: {figure}")
    return figures


def _level(loop: Loop, setting: RowsSetting, level: RowsLevel) -> Report:
    """Its queries together and then, where that is asked for, each for itself; the windows have filled before."""
    pipe, bounds = loop.pipe, level.bounds()
    loop.take()
    for n, bound in enumerate(bounds):
        selection = SELECTION.format(*bound) if bound != WHOLE else ""
        requests.create(pipe, f"q{n}", QUERY.format(window=setting.window, selection=selection))
    loop.run(flush=True, to=START + setting.window * SECOND)
    # As the next process would: a run follows each table that its process has open, here those that it has made.
    pipe = replace(pipe, warehouse=Warehouse(pipe.warehouse.root))
    loop = Loop(pipe)
    figure: Report = {"together": _measured(loop, setting, len(bounds)), "equal": _equal(pipe, setting, bounds)}
    if level.apart:
        figure["apart"] = _measured(Loop(pipe, share_from=len(bounds) + 1), setting, len(bounds))
        figure["apart_times_together"] = _ratios(figure["apart"], figure["together"])
        figure["equal"] = figure["equal"] and _equal(pipe, setting, bounds)
    return figure


def _ratios(figure: Report, other: Report) -> Report:
    return {key: figure[key] / other[key] for key in ("batch_s", "run_s")}


def _measured(loop: Loop, setting: RowsSetting, count: int) -> Report:
    """Medians."""
    batch_s, run_s, cpu_s = list[float](), list[float](), list[float]()
    for number in range(WARM + MEASURED):
        began, used = time.perf_counter(), time.process_time()
        (entry,) = loop.run(flush=True, limit=1)["ran"]
        if number >= WARM:
            batch_s.append(entry["seconds"])
            run_s.append(time.perf_counter() - began)
            cpu_s.append(time.process_time() - used)
    seconds = statistics.median(batch_s)
    answer_rows = sum(_count(loop.pipe, f"q{n}") for n in range(count))
    return {
        "batch_s": seconds,
        "run_s": statistics.median(run_s),
        "cpu_s": statistics.median(cpu_s),
        "answer_rows": answer_rows,
        "query_rows_per_s": count * setting.input_rows / seconds,
        "public_query_rows_per_s": count * setting.input_rows / statistics.median(run_s),
        "answer_rows_per_s": answer_rows / statistics.median(run_s)
    }


def _count(pipe: OpenPipeline, name: str) -> int:
    """Rows of the last answer."""
    return sum(file.rows for file in pipe.warehouse.latest(f"latest/{name}").files())


def _equal(pipe: OpenPipeline, setting: RowsSetting, bounds: list[Bounds]) -> bool:
    """Whether some queries' last answers are what DuckDB says: pairs whose later row came with the last batch."""
    con = kernel.connect(threads=os.cpu_count() or 2, memory="4GB")
    for stream in ("s1", "s2"):
        files = kernel.file_list(stream_files(pipe, stream))
        con.execute(f"CREATE VIEW {stream} AS SELECT * FROM read_parquet({files})")
    return all(not oracle.compare(_expert(con, setting, bounds[n], answers.published(pipe, f"q{n}")[-1]),
                                  _last(pipe, f"q{n}"))
               for n in range(0, len(bounds), max(len(bounds) // COMPARED, 1)))


def _last(pipe: OpenPipeline, name: str) -> pa.Table:
    return pipe.warehouse.latest(f"latest/{name}").rows().drop_columns(["boundary"])


def _expert(con: kernel.Connection, setting: RowsSetting, bound: Bounds, t: int) -> pa.Table:
    shown = ", ".join(f"{s}.{column} AS {prefix}{column}" for s, prefix in (("s1", ""), ("s2", "s2_"))
                      for column in ("ts", *(f"f{k}" for k in range(ATTRIBUTES))))
    within = " AND ".join(f"epoch_us({s}.ts) < {t}" for s in ("s1", "s2"))
    last, apart = "greatest(epoch_us(s1.ts), epoch_us(s2.ts))", "abs(epoch_us(s1.ts) - epoch_us(s2.ts))"
    return kernel.table(con, f"SELECT {shown} FROM s1 JOIN s2 ON s1.f0 = s2.f0 AND s1.f5 = s2.f5 WHERE {within} "
                        f"AND {last} >= {t - setting.batch * SECOND} AND {apart} < {setting.window * SECOND}"
                        f"{SELECTION.format(*bound)}")
