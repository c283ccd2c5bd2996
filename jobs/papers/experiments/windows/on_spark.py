"""Paper D's setups against plain Spark SQL: the same windows as it would run them, one window() aggregation each,
beside our plan by measured prices.

How much of that is the plan's is told apart: what the paper compares is one engine with and without its plan, which is
each window by itself in our engine beside our plan. The rest is between two engines, of which the paper says nothing.

Both read the same Parquet file and give for each window a digest of its instances, which must agree. A distinct window
is run once, whatever setups have it: Spark and our engine as written take the sum of their windows, one after another.
What Spark has not run yet, for want of time, counts as the mean of those of its kind that it has: 10 M rows cost the
same whatever their windows' length, and the page says how many were run and how far they lie apart. Spark is timed by
the wall and by its processor seconds; those over its cores, as if all were always busy and nothing else ran, are
compared with our one thread's.
"""
from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from statistics import mean
from typing import Any

from jobs.engine import kernel, spark
from jobs.papers.experiments import Report, Tell
from jobs.papers.experiments.claims import Claim, Panel, claim, report
from jobs.papers.experiments.points import Point, Points, finished, point, spent, unfinished
from jobs.papers.experiments.windows.tables import PAPER, SYNTHETIC, by_measured_prices, sets
from jobs.papers.experiments.windows.timing import TimedStatements
from optimizer.coverage.algebra import COVERED, PARTITIONED, Window
from optimizer.coverage.graph import as_written, prices
from optimizer.coverage.statements import EVENTS, statements
from optimizer.errors import failed
from optimizer.expression.dialect import string

EVENT_COUNT, QUICK = 1_000_000, 100_000      # `--events 10000000` is the paper's Synthetic-10M
FIRST = [s for s in PAPER if "-5-" in s]
RATE = 100                    # events a second of event time
SETUPS = "FOREBAY_SETUPS"     # a part of the setups, by commas
WARM = "warm"                 # a view of a few events
KINDS = ("tumbling", "hopping")
ENOUGH = 5                    # windows of a kind that Spark has run, from which the others' time is taken


Spark = Mapping[str, Sequence[Point]]      # by kind: what it took for each of its windows


def table(quick: bool, tell: Tell, events: int | None = None) -> Report:
    """All sixteen setups where somebody says how many events, else those of five windows.

    Each window is a point: what was interrupted goes on there.
    """
    count = events or (QUICK if quick else EVENT_COUNT)
    wanted = os.environ.get(SETUPS)
    setups = wanted.split(",") if wanted else list(PAPER) if events else FIRST[:1] if quick else FIRST
    points, clock = unfinished(f"windows-spark-{count}", quick), unfinished(f"windows-spark-{count}-statements", quick)
    by_size = sorted(setups, key=lambda setup: int(setup.split("-")[1]))
    chosen = list(dict.fromkeys(chain.from_iterable(sorted(next(sets(setup, 1))) for setup in by_size)))
    if any(s not in points.measured for s in setups) or any(_key(w) not in points.measured for w in chosen):
        _measured(points, clock, setups, chosen, count, tell)
    there = [w for w in chosen if _key(w) in points.measured]
    if len(there) == len(chosen):
        finished(points)
        finished(clock)
    points_by_kind: dict[str, list[Point]] = {kind: [] for kind in KINDS}
    for window in there:
        points_by_kind[KINDS[not window.tumbling]].append(points.measured[_key(window)])
    rows = []
    for setup in (setup for setup in setups if setup in points.measured):
        windows_run = len(points_by_kind[setup.split("-")[2]])
        if windows_run >= min(ENOUGH, len(points.measured[setup]["windows"])):
            rows.append(_row(points, setup, points_by_kind))
    panels = _panels(rows)
    details = _settings(count, len(there), len(chosen), points_by_kind)
    return report("Paper D's setups against plain Spark SQL", details, panels, list(said(rows)),
                  {"events": count, "rows": rows}, page(rows).split("\n"))


def _settings(count: int, there: int, all_: int, points_by_kind: Spark) -> str:
    ranges = []
    for kind, points in points_by_kind.items():
        seconds = [p["processor_s"] for p in points]
        if seconds:
            ranges.append(f"{kind} {min(seconds):.1f} to {max(seconds):.1f} s")
    whole = "" if there == all_ else ", the others at their kind's mean; the same command goes on"
    return (
        f"{count:,} events, {RATE} a unit, the first window set of a setup; times: Spark's processor seconds over "
        f"{_cores()} cores by our one thread's; the plan's part has the reading of the file in both, and of hopping "
        "setups is over windows as written, which hand each event to two instances (over panes of their own: "
        "docs/windows-tables.md). "
        f"Spark ran {there} of {all_} distinct windows{whole}; processor seconds a window: {'; '.join(ranges)}")


def _measured(points: Points, clock: Points, setups: Sequence[str], chosen: Sequence[Window], count: int,
              tell: Tell) -> None:
    """First ours, then Spark's, as far as time allows."""
    folder = tempfile.mkdtemp(prefix="forebay-windows-")
    try:
        path = os.path.join(folder, "events.parquet")
        con = kernel.connect(memory="4GB")
        events = (f"SELECT CAST(make_timestamp(i // {RATE} * 1000000) AS TIMESTAMPTZ) AS ts, {SYNTHETIC} AS v FROM "
                  f"range({count}) AS r(i)")
        con.execute(f"COPY ({events}) TO {string(path)} (FORMAT parquet)")
        began = time.process_time()
        con.execute(
            f"CREATE TABLE {EVENTS} AS SELECT epoch_us(ts) // 1000000 AS t, v FROM read_parquet({string(path)})")
        reading = time.process_time() - began
        timed = TimedStatements(con, clock, "Parquet")
        for setup in setups:
            tell(f"{setup}: {point(points, setup, lambda: _ours(timed, setup, count, reading))}")
        waiting = [w for w in chosen if _key(w) not in points.measured]
        if waiting and not spent(points):
            session = _warm(path, count // RATE)
            for window in waiting:
                if not spent(points):
                    measured = point(points, _key(window),
                                     lambda: _compared(timed, window, plain(session, window, count // RATE)))
                    tell(f"{window}: {measured}")
    finally:
        shutil.rmtree(folder)


def _ours(timed: TimedStatements, setup: str, count: int, reading: float) -> Point:
    """Seconds of each window by itself, and of the plan by measured prices, each with reading the file."""
    windows, until = next(sets(setup, 1)), count // RATE
    model = prices(windows, PARTITIONED if setup.endswith("tumbling") else COVERED, RATE)
    graph = by_measured_prices(windows, model, timed.weights(count), until)
    alone, mine = (reading + timed.seconds(statements(g, until)) for g in (as_written(windows, model), graph))
    return {"windows": [str(w) for w in sorted(windows)], "written_s": alone, "ours_s": mine}


def _warm(path: str, until: int) -> Any:
    """The first queries of a session pay for what all share."""
    session = spark.session("local[*]")
    events = session.read.parquet(path)
    events.createOrReplaceTempView(EVENTS)
    events.where(f"ts < timestamp_seconds({until // 20})").createOrReplaceTempView(WARM)
    for window in (Window(7, 7), Window(14, 7), Window(7, 7)):
        _plain(session, window, until, WARM)
    return session


def _compared(timed: TimedStatements, window: Window, by_spark: Point) -> Point:
    count, _, total = timed.digest([window])[0]
    if [count, str(total)] != by_spark["digest"]:      # of no instance the sum is None
        raise failed("wrong-answer", f"our {window} has {count} instances of sum {total}, Spark's {by_spark['digest']}",
                     "please report this")
    return by_spark


def _row(points: Points, setup: str, points_by_kind: Spark) -> Report:
    mine, kind = points.measured[setup], setup.split("-")[2]
    measured = [points.measured[key] for w in mine["windows"] if (key := _key(w)) in points.measured]
    others = len(mine["windows"]) - len(measured)

    def total(of: str) -> float:
        """Of windows that Spark did not run, their kind's mean."""
        return float(sum(p[of] for p in measured) + others * mean(p[of] for p in points_by_kind[kind]))

    wall, processor = total("wall_s"), total("processor_s")
    ratio = round(processor / _cores() / mine["ours_s"], 2)
    return {
        "setup": setup,
        "rate": RATE,
        "windows": mine["windows"],
        "run": len(measured),
        "spark_wall_s": round(wall, 1),
        "spark_s": round(processor, 1),
        "written_s": round(mine["written_s"], 2),
        "ours_s": round(mine["ours_s"], 2),
        "published": list(PAPER[setup]),
        "times_spark": ratio,
        "plan": round(mine["written_s"] / mine["ours_s"], 2),
    }


def _panels(rows: Sequence[Report]) -> list[Panel]:
    """Times plain Spark, and how many of them are the plan's; the paper's beside what it compares."""
    if not rows:
        return []
    partly = tuple(k for k, r in enumerate(rows) if r["run"] < len(r["windows"]))
    return [
        Panel(f"{RATE} events a unit of time", "setup", "times one query a window",
              tuple(map(float, range(len(rows)))), {
                  "plain Spark": [r["times_spark"] for r in rows],
                  "the plan's part, in our engine": [r["plan"] for r in rows]
              }, {"the plan's part, in our engine": [r["published"][2] for r in rows]}, steep=True, beside="paper",
              labels=tuple(r["setup"] for r in rows),
              extrapolated={"plain Spark": partly} if partly else {},
              extrapolation="windows that Spark has not run count as the mean of their kind")
    ]


def _key(window: Window | str) -> str:
    return f"window {window}"


def plain(session: Any, window: Window, until: int) -> Point:
    began, processor = time.perf_counter(), _processor()
    result = _plain(session, window, until, EVENTS)
    return {"wall_s": time.perf_counter() - began, "processor_s": _processor() - processor, "digest": result}


def _processor() -> float:
    """Seconds of the processes that this one has begun: Spark's."""
    import psutil  # comes with MLflow

    return float(sum(sum(p.cpu_times()[:2]) for p in psutil.Process().children(recursive=True)))


def _plain(session: Any, window: Window, until: int, events: str) -> list[object]:
    each = (f"SELECT window(ts, '{window.range} seconds', '{window.slide} seconds') AS w, min(v) AS v FROM {events} "
            "GROUP BY 1")
    whole = f"unix_seconds(w.start) >= 0 AND unix_seconds(w.end) <= {until}"
    row = session.sql(f"SELECT count(*), sum(v) FROM ({each}) WHERE {whole}").collect()[0]
    return [int(row[0]), str(row[1])]


def _cores() -> int:
    return os.cpu_count() or 1


def page(rows: Sequence[Report]) -> str:
    head = ("setup", "windows that Spark ran", "plain Spark SQL, s by the wall", "its processor s",
            "each window by itself in our engine, s", "ours, s", "times Spark", "of them the engine's",
            "of them the plan's", "the plan's by the paper, mean / max")
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for r in rows:
        mark = "≈ " if r["run"] < len(r["windows"]) else ""
        engine = round(r["times_spark"] / r["plan"], 1)
        cells = [
            r["setup"], f"{r['run']} of {len(r['windows'])}", f"{mark}{r['spark_wall_s']}", f"{mark}{r['spark_s']}",
            r["written_s"], r["ours_s"], f"{mark}{r['times_spark']}", f"{mark}{engine}", r["plan"],
            f"{r['published'][2]} / {r['published'][3]}"
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def said(rows: Sequence[Report]) -> Iterator[Claim]:
    """What the paper compares: one engine, with its plan and without."""
    if not rows:
        return
    reached = [(r["plan"] >= r["published"][2], f"{r['setup']} {r['plan']} × of {r['published'][2]}")
               for r in rows]
    yield claim("the paper's mean is reached in every setup by the plan, in one engine", reached)
    best = max(rows, key=lambda r: r["published"][3])
    yield claim(f"the paper's best of these setups, {best['published'][3]} × in {best['setup']}, is the plan's, too",
                [(best["plan"] >= best["published"][3], f"{best['plan']} ×")])
    least = min(rows, key=lambda r: r["times_spark"])
    yield claim("ours: no setup is slower than plain Spark SQL, engine and plan together",
                [(least["times_spark"] >= 1, f"{least['times_spark']} × in {least['setup']}")])
