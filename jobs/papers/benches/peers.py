"""One boundary of P1's query recomputed by others from the same files: DuckDB, Spark SQL by an expert, and Spark's own
plan.
"""
from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

import pyarrow as pa

from jobs.engine import kernel
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.papers.benches import streams
from jobs.papers.benches.sharing import limited
from jobs.papers.benches.streams import BenchSetting

LIMIT = 600.0         # seconds a peer may take for one boundary; a time-out counts as that


def measured(rt: OpenPipeline, paths: dict[str, tuple[str, ...]], setting: BenchSetting, t: int,
             with_plain: bool) -> dict[str, tuple[float, pa.Table | None]]:
    seconds_and_answers = {"duckdb_recompute": timed(lambda: duckdb(paths, setting, t), 3)}
    if not rt.tasks.inline:
        session = rt.tasks.session
        for stream, path in paths.items():
            session.read.parquet(*path).createOrReplaceTempView(stream)
        seconds_and_answers["spark_expert"] = timed(lambda: session.sql(_expert(setting, t, "spark")).toArrow(), 3)
        if with_plain:
            seconds_and_answers["spark_plain"] = limited(session, _plain(setting, t), LIMIT)
    return seconds_and_answers


def timed(work: Callable[[], pa.Table], times: int) -> tuple[float, pa.Table]:
    took = []
    for _ in range(times):
        started = time.perf_counter()
        answer = work()
        took.append(time.perf_counter() - started)
    return statistics.median(took), answer


def _within(setting: BenchSetting, t: int) -> str:
    return f"unix_micros(ts) >= {t - setting.window * streams.SECOND} AND unix_micros(ts) < {t}"


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


def duckdb(paths: dict[str, tuple[str, ...]], setting: BenchSetting, t: int) -> pa.Table:
    """The query as written would form a billion rows.

    DuckDB gets the expert's form as well, both cores, one process.
    """
    con = kernel.connect(threads=os.cpu_count() or 2, memory="8GB")
    for stream, path in paths.items():
        con.execute(f"CREATE VIEW {stream} AS SELECT * FROM read_parquet({kernel.file_list(path)})")
    return kernel.table(con, _expert(setting, t, "duckdb"))
