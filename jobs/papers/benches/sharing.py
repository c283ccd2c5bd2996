"""What many queries on one join cost together, beside one of them and beside the same queries each for itself; answers
compared, nothing asserts on seconds.

The workload is the one of the AJoin paper (E): six attributes of 0 … 499, a selection a stream, `GROUP BY` on top;
figures are of one machine and one run.
"""
from __future__ import annotations

import dataclasses
import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa

from jobs.engine import kernel, spark
from jobs.engine.tasks import Tasks
from jobs.ledger.open_pipeline import OpenPipeline, open_pipeline
from jobs.papers.benches.streams import stream_files
from jobs.pipeline.config import load
from jobs.requests import requests
from jobs.results import answers
from jobs.run import Loop
from jobs.verify import recompute as oracle

SECOND = 1_000_000
START = 1_356_998_400 * SECOND        # 2013-01-01T00:00:00Z
ATTRIBUTES = 6
VALUES = 500
MEASURED = 3                          # batches at each number of queries, after one that is not counted
COMPARED = 5                          # queries whose last answer is computed again
PLAIN = 3                             # queries of a seeded sample that Spark computes by itself
PATIENCE = 45.0                       # seconds that Spark may take for each of them; a time-out counts as that
QUERY = (
    "SELECT s1.f3 % 10 AS g, COUNT(*) AS n, SUM(s2.f4) AS sum_b FROM s1 [WINDOW {window} SECONDS], s2 [WINDOW {window} "
    "SECONDS] "
    "WHERE s1.f0 = s2.f0 AND s1.f1 < {x} AND s2.f2 < {y} GROUP BY s1.f3 % 10")
Report = dict[str, Any]


@dataclass(frozen=True)
class SharingSetting:
    """Rows a second and stream, window and batch in seconds.

    The numbers of queries, and up to how many also run apart.
    """

    rate: int = 20_000
    window: int = 60
    batch: int = 5
    counts: tuple[int, ...] = (1, 5, 20, 100, 500)
    apart: int = 100

    @property
    def batches(self) -> int:
        levels = len(self.counts) + sum(1 < count <= self.apart for count in self.counts)
        return self.window // self.batch + (MEASURED + 1) * levels + 1


def bounds(count: int, seed: int = 1) -> list[tuple[int, int]]:
    """A selection a stream and query."""
    choice = Random(seed)
    return [(choice.randrange(50, VALUES), choice.randrange(50, VALUES)) for _ in range(count)]


def with_spark(setting: SharingSetting = SharingSetting(), tell: Callable[[str], None] = lambda _: None,
               master: str | None = None, patience: float = PATIENCE) -> Report:
    """`sharing`, and what plain Spark would take for as many queries."""
    levels: dict[int, float] = {}

    def remember(count: int, level: Report) -> None:
        levels[count] = level["shared_s"]

    def after(rt: OpenPipeline, selections: list[tuple[int, int]]) -> Report:
        return {"plain_spark": beside_spark(rt, setting, selections, levels, tell, patience)}

    return sharing(setting, tell, master, after, remember)


def sharing(setting: SharingSetting = SharingSetting(), tell: Callable[[str], None] = lambda _: None,
            master: str | None = None,
            after: Callable[[OpenPipeline, list[tuple[int, int]]], Report] = lambda rt, selections: {},
            after_level: Callable[[int, Report], None] = lambda count, level: None) -> Report:
    """Seconds a batch by number of queries, shared and apart.

    `after` adds to the figures while all is still there, `after_level` gets the figures of each level.
    """
    with pipeline(setting, master) as loop:
        rt = loop.pipe
        loop.take()
        selections = bounds(max(setting.counts) + 1)
        grown(rt, setting, selections, 0, 1)
        loop.run(flush=True, to=START + setting.window * SECOND)
        figures: Report = {"create_s": {}}
        created = 1
        for count in setting.counts:
            if count > created:
                figures["create_s"][f"{count} queries"] = grown(rt, setting, selections, created, count)
            created = count
            figures[f"{count} queries"] = _level(loop, setting, selections, count)
            after_level(count, figures[f"{count} queries"])
            tell(f"{count} queries: {figures[f'{count} queries']}")
        first = figures[f"{setting.counts[0]} queries"]
        for level in (v for k, v in figures.items() if k != "create_s"):
            level["times_one"] = level["shared_s"] / first["shared_s"]
            if "cpu_s" in level:
                level["times_one_cpu"] = level["cpu_s"] / first["cpu_s"]
        figures["one_more"] = _one_more(loop, setting, selections, figures[f"{created} queries"]["shared_s"])
        return {**figures, **after(rt, selections[:created])}


def _one_more(loop: Loop, setting: SharingSetting, selections: list[tuple[int, int]], usual: float) -> Report:
    """What one more query than at the last level costs: its request, and the batch in which it is in force first beside
    the usual one.
    """
    request = grown(loop.pipe, setting, selections, len(selections) - 1, len(selections))
    (ran,) = loop.run(flush=True, limit=1)["ran"]
    return {"request_s": request, "batch_s": ran["seconds"], "adds_s": ran["seconds"] - usual}


def _level(loop: Loop, setting: SharingSetting, selections: list[tuple[int, int]], count: int) -> Report:
    """The same queries together, then each for itself."""
    rt, used = loop.pipe, time.process_time()
    seconds, last = batches(loop)
    used = (time.process_time() - used) / (MEASURED + 1)
    rows = 2 * setting.rate * setting.batch
    level: Report = {
        "shared_s": seconds,
        "query_rows_per_s": count * rows / seconds,
        "equal": equal(rt, setting, selections[:count], last)
    }
    if rt.tasks.inline:
        level["cpu_s"] = used      # all the work is this process's: what it takes however busy the machine is
    if 1 < count <= setting.apart:
        level["apart_s"] = batches(Loop(rt, share_from=count + 1))[0]
        level["apart_times_shared"] = level["apart_s"] / seconds
    return level


def batches(loop: Loop) -> tuple[float, int]:
    ran = [entry for _ in range(MEASURED + 1) for entry in loop.run(flush=True, limit=1)["ran"]]
    return statistics.median(entry["seconds"] for entry in ran[1:]), ran[-1]["boundary"]


def grown(rt: OpenPipeline, setting: SharingSetting, selections: list[tuple[int, int]], since: int,
          until: int) -> float:
    """Creates queries; the mean seconds of one request."""
    started = time.perf_counter()
    for n in range(since, until):
        x, y = selections[n]
        requests.create(rt, f"q{n}", QUERY.format(window=setting.window, x=x, y=y))
    return (time.perf_counter() - started) / max(until - since, 1)


def equal(rt: OpenPipeline, setting: SharingSetting, selections: list[tuple[int, int]], t: int) -> bool:
    """Whether some queries' answers are what DuckDB says, given the form that an expert writes: the joined rows
    themselves are billions.
    """
    con = kernel.connect(threads=os.cpu_count() or 2, memory="4GB")
    for stream in ("s1", "s2"):
        con.execute(f"CREATE VIEW {stream} AS SELECT * FROM read_parquet({kernel.file_list(stream_files(rt, stream))})")
    return all(not oracle.compare(_expert(con, setting, selections[n], t),
                                  answers.read(rt, f"q{n}", t).drop_columns(["boundary"]))
               for n in range(0, len(selections), max(len(selections) // COMPARED, 1)))


def _expert(con: kernel.Connection, setting: SharingSetting, bound: tuple[int, int], t: int) -> pa.Table:
    where = f"epoch_us(ts) >= {t - setting.window * SECOND} AND epoch_us(ts) < {t}"
    return kernel.table(
        con, f"""
        WITH e1 AS (SELECT f0, f3 % 10 AS g, count(*) AS c FROM s1 WHERE {where} AND f1 < {bound[0]} GROUP BY ALL),
             e2 AS (SELECT f0, count(*) AS c, sum(f4) AS b FROM s2 WHERE {where} AND f2 < {bound[1]} GROUP BY ALL)
        SELECT g, CAST(sum(e1.c * e2.c) AS BIGINT) AS n, CAST(sum(e1.c * e2.b) AS BIGINT) AS sum_b FROM e1 JOIN e2
        USING (f0) GROUP BY g"""
    )


def beside_spark(rt: OpenPipeline, setting: SharingSetting, selections: list[tuple[int, int]],
                 shared_s: Mapping[int, float], tell: Callable[[str], None], patience: float = PATIENCE) -> Report:
    """Each query of a seeded sample as plain SQL, by Spark over the last boundary's windows from the stream tables'
    Parquet files; the mean times the number of queries is what all would take.
    """
    session = plain_session(rt)
    t = answers.published(rt, "q0")[-1]
    chosen = sorted(Random(1).sample(range(len(selections)), min(PLAIN, len(selections))))
    each: dict[str, Report] = {}
    for n in chosen:
        seconds, got = limited(session, plain(setting, selections[n], t), patience)
        ours = answers.read(rt, f"q{n}", t).drop_columns(["boundary"])
        same = "not finished" if got is None else not oracle.compare(got, ours)
        each[f"q{n}"] = {"seconds": seconds, "equal": same}
        tell(f"plain Spark, q{n}: {each[f'q{n}']}")
    mean = statistics.mean(measured["seconds"] for measured in each.values())
    return {
        "sample": each,
        "limit_s": patience,
        "mean_s": mean,
        "extrapolated": {
            f"{count} queries": {
                "spark_s": mean * count,
                "spark_times_shared": mean * count / seconds
            } for count, seconds in shared_s.items()
        }
    }


def plain_session(rt: OpenPipeline) -> Any:
    """Spark with the rows of both streams as views."""
    session = spark.session("local[*]") if rt.tasks.inline else rt.tasks.session
    for stream in ("s1", "s2"):
        session.read.parquet(*stream_files(rt, stream)).createOrReplaceTempView(stream)
    return session


def plain(setting: SharingSetting, bound: tuple[int, int], t: int) -> str:
    """A query over its windows as of t, as a person would write it."""
    within = " AND ".join(
        f"unix_micros({s}.ts) >= {t - setting.window * SECOND} AND unix_micros({s}.ts) < {t}" for s in ("s1", "s2"))
    return ("SELECT s1.f3 % 10 AS g, COUNT(*) AS n, SUM(s2.f4) AS sum_b FROM s1 JOIN s2 ON s1.f0 = s2.f0 "
            f"WHERE {within} AND s1.f1 < {bound[0]} AND s2.f2 < {bound[1]} GROUP BY s1.f3 % 10")


def limited(session: Any, sql: str, seconds: float) -> tuple[float, pa.Table | None]:
    """Seconds and answer of a query by Spark; one that is not done in time is stopped, and counts as that long."""
    timer = threading.Timer(seconds, lambda: session.interruptAll() if hasattr(session, "interruptAll") else None)
    started = time.perf_counter()
    timer.start()
    try:
        answer = session.sql(sql).toArrow()
        return time.perf_counter() - started, answer
    except Exception:      # an interrupted query raises whatever its stage raised
        if time.perf_counter() - started < seconds:
            raise
        return seconds, None
    finally:
        timer.cancel()


@contextmanager
def pipeline(setting: SharingSetting, master: str | None = None) -> Iterator[Loop]:
    folder = tempfile.mkdtemp(prefix="forebay-bench-")
    columns = ", ".join(["ts: timestamp", *(f"f{k}: bigint" for k in range(ATTRIBUTES))])
    streams = "".join(
        f"  {s}: {{columns: {{{columns}}}, event_time: ts, source: {{files: \"landing/{s}/*.parquet\"}}}}\n"
        for s in ("s1", "s2"))
    with open(os.path.join(folder, "forebay.yml"), "w", encoding="utf-8") as file:
        file.write(f"name: bench\nbatch: {setting.batch} seconds\nstreams:\n{streams}")
    make(os.path.join(folder, "landing"), setting)
    rt = open_pipeline(load(folder))
    if master is not None:
        rt = dataclasses.replace(rt, tasks=Tasks(master))
    try:
        yield Loop(rt)
    finally:
        rt.tasks.stop()
        shutil.rmtree(folder, ignore_errors=True)


def make(folder: str, setting: SharingSetting) -> None:
    """A file a batch and stream, the same rows each time."""
    con = kernel.connect(threads=2, memory="4GB")
    count, length = setting.rate * setting.batch, setting.batch * SECOND
    values = ", ".join(f"floor(random() * {VALUES})::BIGINT AS f{k}" for k in range(ATTRIBUTES))
    for salt, stream in enumerate(("s1", "s2")):
        os.makedirs(os.path.join(folder, stream), exist_ok=True)
        for number in range(setting.batches):
            con.execute(f"SELECT setseed({(number * 2 + salt) % 997 / 997})")
            ts = f"CAST(make_timestamp({START + number * length} + (i * {length}) // {count}) AS TIMESTAMPTZ) AS ts"
            con.execute(
                f"COPY (SELECT {ts}, {values} FROM range({count}) AS r(i)) TO '{folder}/{stream}/{number:05d}.parquet' "
                "(FORMAT parquet)"
            )
