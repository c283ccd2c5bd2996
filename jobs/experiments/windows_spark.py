"""Paper D's setups against plain Spark SQL: the same windows as it would run them, one window() aggregation each, beside our plan by measured prices.

Both read the same Parquet file, are timed by the wall, and give for each window a digest of its instances, which must agree; Spark has all cores that its
session has, ours one thread. One window set a setup: Spark takes seconds a window.
"""
from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

from jobs import kernel, spark
from jobs.experiments import Report, Tell, windows_claims
from jobs.experiments.claims import Claim, claim, report
from jobs.experiments.points import Points, finished, point, spent, unfinished
from jobs.experiments.windows import PAPER, SYNTHETIC, Weights, by_measured_prices, measured, sets
from optimizer.coverage.algebra import COVERED, PARTITIONED, Window
from optimizer.coverage.graph import as_written, prices
from optimizer.coverage.statements import EVENTS, name, statements
from optimizer.errors import failed

EVENT_COUNT, QUICK = 1_000_000, 100_000      # `--events 10000000` is the paper's Synthetic-10M
FIRST = [s for s in PAPER if "-5-" in s]
RATE = 100                    # events a second of event time
BEST = 16.8                   # times, the paper's best
SETUPS = "FOREBAY_SETUPS"     # a part of the setups, by commas
Digest = list[tuple[int, int]]


def table(quick: bool, tell: Tell, events: int | None = None) -> Report:
    """All sixteen setups where somebody says how many events, else those of five windows. Each is a point: what was interrupted goes on there."""
    count = events or (QUICK if quick else EVENT_COUNT)
    wanted = os.environ.get(SETUPS)
    setups = wanted.split(",") if wanted else list(PAPER) if events else FIRST[:1] if quick else FIRST
    points = unfinished(f"windows-spark-{count}", quick)
    if any(s not in points.known for s in setups):
        _measured(points, setups, count, tell)
    rows = [points.known[s] for s in setups if s in points.known]
    if len(rows) == len(setups):
        finished(points)
    settings = f"{count:,} events, {RATE} a unit, the first window set of a setup; Spark with all cores, ours in one thread; seconds by the wall"
    settings += "" if len(rows) == len(setups) else f"; {len(rows)} of {len(setups)} setups, the same command goes on"
    return report("Paper D's setups against plain Spark SQL", settings, list(windows_claims.panels(rows)), list(said(rows)), {"events": count, "rows": rows},
                  page(rows).split("\n"))


def _measured(points: Points, setups: Sequence[str], count: int, tell: Tell) -> None:
    folder = tempfile.mkdtemp(prefix="forebay-windows-")
    try:
        path = os.path.join(folder, "events.parquet")
        con = kernel.connect(memory="4GB")
        made = f"SELECT CAST(make_timestamp(i // {RATE} * 1000000) AS TIMESTAMPTZ) AS ts, {SYNTHETIC} AS v FROM range({count}) AS r(i)"
        con.execute(f"COPY ({made}) TO {kernel.quoted(path)} (FORMAT parquet)")
        session = spark.session("local[*]")
        session.read.parquet(path).createOrReplaceTempView(EVENTS)
        for window in (Window(7, 7), Window(14, 7)):      # the first queries of a session pay for what all share
            _plain(session, window, count // RATE)
        for setup in setups:
            if setup in points.known or not (points.known and spent(points)):
                point(points, setup, lambda: _row(con, session, path, setup, count, tell))
    finally:
        shutil.rmtree(folder)


def _row(con: kernel.Connection, session: Any, path: str, setup: str, count: int, tell: Tell) -> Report:
    windows, until = next(sets(setup, 1)), count // RATE
    mine, digest = ours(con, path, windows, setup.endswith("tumbling"), count)
    alone, same = ours(con, path, windows, setup.endswith("tumbling"), count, shared=False)
    theirs, expected = plain(session, sorted(windows), until)
    if not digest == same == expected:
        raise failed("wrong-answer", f"our windows of {setup} differ from Spark's: {digest} and {expected}", "please report this")
    ratio = round(theirs / mine, 2)
    row = {"setup": setup, "rate": RATE, "windows": [str(w) for w in sorted(windows)], "spark_s": round(theirs, 2), "written_s": round(alone, 3),
           "ours_s": round(mine, 3), "published": list(PAPER[setup]), "throughput": {"chosen": [ratio, ratio, ratio]}}
    tell(f"{setup}: Spark {theirs:.1f} s, ours {mine:.2f} s, {ratio} times")
    return row


def ours(con: kernel.Connection, path: str, windows: frozenset[Window], tumbling: bool, count: int, shared: bool = True) -> tuple[float, Digest]:
    """Reading the file, choosing a plan by prices measured on these events, and running it."""
    began = time.perf_counter()
    con.execute(f"CREATE OR REPLACE TABLE {EVENTS} AS SELECT epoch_us(ts) // 1000000 AS t, v FROM read_parquet({kernel.quoted(path)})")
    reading = time.perf_counter() - began
    weights: Weights = measured(con, count)          # not timed: a pipeline has its prices from batches before
    began = time.perf_counter()
    model = prices(windows, PARTITIONED if tumbling else COVERED, RATE)
    graph = by_measured_prices(windows, model, weights, count // RATE) if shared else as_written(windows, model)
    made = statements(graph, count // RATE)
    for relation, sql in made:
        con.execute(f"CREATE TEMP TABLE {relation} AS {sql}")
    digest = [con.execute(f"SELECT count(*), CAST(coalesce(sum(v), 0) AS BIGINT) FROM {name(w)}").fetchall()[0] for w in sorted(windows)]
    seconds = reading + time.perf_counter() - began
    for relation, _ in made:
        con.execute(f"DROP TABLE {relation}")
    return seconds, digest


def plain(session: Any, windows: Sequence[Window], until: int) -> tuple[float, Digest]:
    began = time.perf_counter()
    found = [_plain(session, w, until) for w in windows]
    return time.perf_counter() - began, found


def _plain(session: Any, window: Window, until: int) -> tuple[int, int]:
    each = f"SELECT window(ts, '{window.range} seconds', '{window.slide} seconds') AS w, min(v) AS v FROM {EVENTS} GROUP BY 1"
    whole = f"unix_seconds(w.start) >= 0 AND unix_seconds(w.end) <= {until}"
    found = session.sql(f"SELECT count(*), coalesce(sum(v), 0) FROM ({each}) WHERE {whole}").collect()[0]
    return int(found[0]), int(found[1])


def page(rows: Sequence[Report]) -> str:
    head = ("setup", "plain Spark SQL, s", "each window by itself in our engine, s", "ours, s", "times Spark", "paper, mean / max")
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for r in rows:
        cells = [r["setup"], r["spark_s"], r["written_s"], r["ours_s"], r["throughput"]["chosen"][0], f"{r['published'][2]} / {r['published'][3]}"]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def said(rows: Sequence[Report]) -> Iterator[Claim]:
    reached = [(r["throughput"]["chosen"][0] >= r["published"][2], f"{r['setup']} {r['throughput']['chosen'][0]} × of {r['published'][2]}") for r in rows]
    best = max(rows, key=lambda r: r["throughput"]["chosen"][0])
    top = best["throughput"]["chosen"][0]
    yield claim("against plain Spark SQL the paper's mean is reached in every setup", reached)
    yield claim(f"the best setup reaches {BEST} ×, as the paper's best", [(top >= BEST, f"{top} × in {best['setup']}")])
