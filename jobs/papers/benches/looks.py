"""What statistics of whole windows cost beside the batches, and how far they are from exact counts by plain SQL, over
windows of any size.

    forebay bench statistics --rows 96000000 --boundaries 200

fills windows of so many rows a stream, runs so many boundaries one by one with `forebay adapt` after each, and holds
what is known at the end against SQL over the same windows.
"""
from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jobs.adapt import adaptations
from jobs.batch.works import parsed
from jobs.commands import adapt
from jobs.engine import kernel
from jobs.engine.small_tables import ask
from jobs.ledger.open_pipeline import OpenPipeline, open_pipeline
from jobs.papers.benches import streams
from jobs.papers.benches.streams import BenchSetting
from jobs.pipeline.config import load
from jobs.run import Loop
from optimizer.statistics.cardinality import distinct
from optimizer.statistics.figures import agreement, heaviest, overlap
from optimizer.statistics.model import QueryStatistics

QUERY = "answer"
FILLED = 40          # files that the first windows come in
Say = Callable[[str], object]


@dataclass(frozen=True)
class StatisticsSetting:
    """Rows in each of two windows, and boundaries that run once they are full.

    `StatisticsSetting(rows=96_000_000, boundaries=200)` has a window of ten minutes and a boundary every five seconds.
    """

    rows: int = 1_200_000
    boundaries: int = 20
    window: int = 600
    batch: int = 5
    keys: int = 1_000
    groups: int = 150

    @property
    def data(self) -> BenchSetting:
        return BenchSetting(max(self.rows // self.window, 1), self.window, self.batch, self.keys, self.groups)


def statistics(setting: StatisticsSetting, say: Say = lambda _: None) -> dict[str, Any]:
    """Costs and errors; nothing asserts on them."""
    folder = tempfile.mkdtemp(prefix="forebay-bench-")
    pipe = open_pipeline(load(streams.pipeline(folder, setting.data)))
    try:
        return _measured(Loop(pipe), setting, say)
    finally:
        pipe.tasks.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _measured(loop: Loop, setting: StatisticsSetting, say: Say) -> dict[str, Any]:
    pipe, data = loop.pipe, setting.data
    full = setting.window // setting.batch
    landing = f"{pipe.pipeline.folder}/landing"
    say(f"{setting.rows:,} rows a window")
    for first in range(0, full, max(full // FILLED, 1)):
        streams.make(landing, data, range(first, min(first + max(full // FILLED, 1), full)))
        loop.take()
    loop.run(flush=True)
    first = adapt.adapt(pipe)["statistics"]      # of what the batches so far allow
    say(f"first look: {first['reason']}")
    begun, looks, cpu = len(pipe.ledger.committed_batches()), 0, 0.0
    for number in range(full, full + setting.boundaries):
        streams.make(landing, data, range(number, number + 1))
        loop.take()
        loop.run(flush=True)
        started = time.process_time()
        document = adapt.adapt(pipe)["statistics"]
        cpu += time.process_time() - started
        looks += bool(document["due"])
        say(f"boundary {number - full + 1} of {setting.boundaries}: {document['reason']}")
    batches = pipe.ledger.committed_batches()[begun:]
    by_batches = sum(seconds for batch in batches for seconds in batch.task_seconds.values())
    by_looks = _seconds_of_looks(pipe) - first["seconds"]
    share = by_looks / by_batches if by_batches else None
    return {"setting": vars(setting), "first_look_s": first["seconds"], "batches_s": by_batches, "looks": looks,
            "looks_s": by_looks, "share": share, "adapt_driver_s": cpu, "figures": _errors(loop, data)}


def _seconds_of_looks(pipe: OpenPipeline) -> float:
    rows = ask(pipe.table(adaptations.PATH).refresh(), "adaptations",
               "SELECT sum(seconds) FROM adaptations WHERE kind = 'statistics'")
    return float(rows[0][0] or 0.0) if rows else 0.0


def _errors(loop: Loop, data: BenchSetting) -> dict[str, Any]:
    """What is known beside exact counts over the windows at the last boundary."""
    pipe, t = loop.pipe, loop.pipe.ledger.committed()
    query = parsed(data.sql, pipe.catalog)
    loop.statistics.begin()
    known = loop.statistics.observed(QUERY, query)
    assert known is not None and t is not None
    exact, told = _exact(pipe, data, t), _told(known)
    return {name: {"known": told[name], "exact": value, "error": abs(told[name] / value - 1) if value else None}
            for name, value in exact.items()}


def _told(known: QueryStatistics) -> dict[str, float]:
    first, second = known.inputs
    key = known.classes[0]
    return {
        "rate s1": first.rate,
        "rate s2": second.rate,
        "pairs of group and key s1": distinct(first.combinations, first.rows * first.selectivity),
        "keys s2": distinct(second.combinations, second.rows * second.selectivity),
        "groups": known.groups,
        "overlap": overlap(key),
        "heaviest key s1": heaviest(key, 0),
        "chance to agree": agreement(key)
    }


def _exact(pipe: OpenPipeline, data: BenchSetting, t: int) -> Mapping[str, float]:
    """The same by SQL over all rows of the windows."""
    con = kernel.connect(threads=2, memory="4GB")
    since = t - data.window * streams.SECOND
    for stream in ("s1", "s2"):
        paths = streams.stream_files(pipe, stream)
        con.execute(f"CREATE VIEW {stream} AS SELECT * FROM read_parquet({kernel.file_list(paths)}) "
                    f"WHERE epoch_us(ts) >= {since} AND epoch_us(ts) < {t}")
    for stream in ("s1", "s2"):
        con.execute(f"CREATE TEMP TABLE k_{stream} AS SELECT j, count(*) AS n FROM {stream} GROUP BY j")

    def one(sql: str) -> float:
        return float(con.execute(sql).fetchall()[0][0])

    rows = {stream: one(f"SELECT sum(n) FROM k_{stream}") for stream in ("s1", "s2")}
    both = "k_s1 FULL JOIN k_s2 USING (j)"
    return {
        "rate s1": rows["s1"] / data.window,
        "rate s2": rows["s2"] / data.window,
        "pairs of group and key s1": one("SELECT count(*) FROM (SELECT DISTINCT g, j FROM s1)"),
        "keys s2": one("SELECT count(*) FROM k_s2"),
        "groups": one("SELECT count(DISTINCT g) FROM s1"),
        "overlap": one(f"SELECT count_if(k_s1.n > 0 AND k_s2.n > 0) / count(*) FROM {both}"),
        "heaviest key s1": one("SELECT max(n) FROM k_s1") / rows["s1"],
        "chance to agree": one("SELECT sum(k_s1.n::DOUBLE * k_s2.n) FROM k_s1 JOIN k_s2 USING (j)") / rows["s1"]
        / rows["s2"]
    }
