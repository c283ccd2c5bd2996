"""Papers B and C on micro-batches: whether what ends is taken away (`retract`, IC) or just not read (`expire`, TC), and
when expired partials leave state (`insert`, `sweep`).

TC and IC run as plans of a join, one task in this process, of each way of keeping the fastest early aggregation;
processor time of a warm batch, with what the price says beside. Invalidation runs in pipelines, a boundary a batch,
with commits and merges; both strategies in turns over the same rows.
"""
from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from jobs.batch.works import parsed
from jobs.calibrate import trial
from jobs.calibrate.exact import observe
from jobs.engine import kernel
from jobs.engine.tasks import Tasks
from jobs.papers.benches.streams import SECOND, START
from jobs.papers.experiments import Report, Tell
from jobs.papers.experiments.batches import MOST_ROWS, joined_rows
from jobs.papers.experiments.claims import Claim, Panel, claim, counted, report
from jobs.papers.experiments.points import Point, finished, point, spent, unfinished
from jobs.papers.experiments.windows.lives import FixedPlans, opened, published_files
from jobs.pipeline.config import INLINE
from jobs.run import Loop
from optimizer.cost.features import steady
from optimizer.cost.invalidation import invalidation, upkeep
from optimizer.cost.measured import prior, seconds
from optimizer.errors import failed
from optimizer.expression.dialect import string
from optimizer.plan.model import INVALIDATIONS, Plan, candidates, named
from optimizer.statistics.cardinality import MERGED, sizes
from optimizer.statistics.model import InputStatistics, QueryStatistics

IC, TC = "retract", "expire"
RATE = 5_000                                 # rows a second of each stream
BATCHES = (1, 2, 6, 24, 60)                  # boundaries of a window
KEYS, GROUPS = (100, 10_000), (10, 1_000)    # distinct join keys and groups
NEAR = 1.1                                   # times the faster that a price may choose
SUMS = "s1.g, COUNT(*) AS n, SUM(s1.a) AS x, SUM(s2.a) AS y"
WINDOWS = (2, 6, 12, 20, 60)                 # boundaries of a window whose partials leave
ROWS = (1_000, 100_000)                      # groups, and rows of a boundary
TURN, TURNS = 12, 4                          # boundaries of a turn, turns that are counted: two merges at least


def by_keeping(quick: bool, tell: Tell) -> Report:
    """A panel for keys and groups: milliseconds of a warm batch by how many boundaries a window has."""
    points = unfinished("c-batches", quick)
    panels: list[Panel] = []
    of_settings: list[Point] = []
    for keys, groups in list(product(KEYS, GROUPS))[::3 if quick else 1]:
        found: list[Point] = []
        for batches in BATCHES[:2] if quick else BATCHES:
            found.append(point(points, f"{keys} {groups} {batches}", lambda: _kept(keys, groups, batches)))
            tell(f"{keys} keys, {groups} groups, {batches} boundaries a window: {found[-1]}")
        found = [one for one in found if {TC, IC} <= one["ms"].keys()]
        ms = {way: [one["ms"][way] for one in found] for way in (TC, IC)}
        priced = {way: [one["priced_ms"][way] for one in found] for way in (TC, IC)}
        panels.append(Panel(f"{keys:,} keys, {groups:,} groups", "boundaries a window", "ms a batch",
                            tuple(float(one["boundaries"]) for one in found), ms, priced, True, True,
                            beside="as priced"))
        of_settings += found
    finished(points)
    details = (f"COUNT and SUMs of two streams of {RATE:,} rows a second, batches of {trial.BATCH} s, sliding windows; "
               f"of each way the fastest early aggregation, where one joins at most {MOST_ROWS:,.0f} rows in a batch; "
               "prices by the stated unit costs")
    return report("Paper C on micro-batches: TC (expire) and IC (retract)", details, panels, _kept_claims(of_settings),
                  {"figure": "c-batches"})


def _kept(keys: int, groups: int, batches: int) -> Point:
    """Milliseconds of a warm batch by both ways, measured and as priced."""
    stream = trial.TrialStream(RATE, f"{batches * trial.BATCH} SECONDS", batches * trial.BATCH, keys, groups)
    setting = trial.TrialSetting(f"{keys} {groups} {batches}", (stream, stream), SUMS)
    with trial.generated(setting) as data:
        observed = observe(data, setting.full)
        plans = [c.plan for c in candidates(setting.query) if not c.refused and c.plan.keeping in (IC, TC)]
        able = [plan for plan in plans if joined_rows(setting.query, plan, observed) <= MOST_ROWS]
        ran = trial.run(data, able)
    query_sizes, ms, priced = sizes(setting.query, observed), dict[str, float](), dict[str, float]()
    for plan in able:
        price = 1e3 * seconds(steady(setting.query, plan, observed, 1, query_sizes).in_task, prior())
        ms[plan.keeping] = min(ms.get(plan.keeping, float("inf")), 1e3 * ran[plan.name][1])
        priced[plan.keeping] = min(priced.get(plan.keeping, float("inf")), price)
    return {"boundaries": batches, "keys": keys, "groups": groups, "ms": {way: round(ms[way], 2) for way in ms},
            "priced_ms": {way: round(priced[way], 2) for way in priced}}


def _kept_claims(points: Sequence[Point]) -> list[Claim]:
    """Where each wins, and whether the price knows."""
    by_tc = [p for p in points if p["ms"][TC] <= p["ms"][IC]]
    wins = ", ".join(f"{p['ms'][IC] / p['ms'][TC]:.2f} × at {p['boundaries']} boundaries, {p['keys']:,} keys, "
                     f"{p['groups']:,} groups" for p in points)
    right = 0
    for p in points:
        chosen = min((TC, IC), key=lambda way: p["priced_ms"][way])
        right += p["ms"][chosen] <= NEAR * min(p["ms"].values())
    return [counted("TC is best or equal for COUNT and SUM on micro-batches too", len(by_tc), len(points),
                    f" settings; IC takes {wins} of TC's time"),
            counted(f"ours: the price takes the faster of the two, or one within {NEAR - 1:.0%}", right, len(points),
                    " settings")]


def by_invalidation(quick: bool, tell: Tell) -> Report:
    """A panel for each number of groups: milliseconds of a boundary, maintenance included, by boundaries a window."""
    points = unfinished("b-batches", quick)
    tasks = Tasks(INLINE) if quick else Tasks()
    panels: list[Panel] = []
    found: list[Point] = []
    all_rows, windows = (ROWS[:1], WINDOWS[:1]) if quick else (ROWS, WINDOWS)
    for rows in all_rows:
        for boundaries in windows:
            key = f"{rows} {boundaries}"
            if key in points.measured or not spent(points):
                found.append(point(points, key, lambda: _invalidated(rows, boundaries, tasks, quick)))
                tell(f"{rows} rows a boundary, {boundaries} boundaries a window: {found[-1]}")
        of_rows = [one for one in found if one["rows"] == rows]
        ms = {way: [one["ms"][way] for one in of_rows] for way in INVALIDATIONS}
        panels.append(Panel(f"{rows:,} groups and rows a boundary", "boundaries a window", "ms a boundary",
                            tuple(float(one["boundaries"]) for one in of_rows), ms, {}))
    tasks.stop()
    settings = len(all_rows) * len(windows)
    if len(found) == settings:
        finished(points)
    details = (f"COUNT, SUM and MAX by group over one stream, partials by pane, a boundary a batch, {TURN * TURNS} "
               "boundaries by each strategy in turns of "
               f"{TURN}; wall time with commits, merges of {MERGED} files and removals")
    details += "" if len(found) == settings else f"; {len(found)} of {settings} settings, the command goes on"
    return report("Paper B on micro-batches: expired partials leave with the insert, or by a sweep", details, panels,
                  list(_invalidation_claims(found)), {"figure": "b-batches"})


def _invalidated(rows: int, boundaries: int, tasks: Tasks, quick: bool) -> Point:
    """Both strategies over the same rows; they answer alike, which is compared."""
    folder = tempfile.mkdtemp(prefix="forebay-expiry-")
    try:
        sql, count = (f"SELECT g, COUNT(*) AS n, SUM(v) AS total, MAX(v) AS most FROM r [WINDOW {boundaries} SECONDS] "
                      "GROUP BY g"), boundaries + TURN * ((1 if quick else TURNS) + 1)
        _write(os.path.join(folder, "stored"), rows, count)
        Loop(opened(os.path.join(folder, "stored"), tasks)).take()
        loops = {way: _loop(folder, way, sql, tasks) for way in INVALIDATIONS}
        took: dict[str, list[float]] = {way: [] for way in INVALIDATIONS}
        for loop in loops.values():      # windows fill, and what is cold is warm
            loop.run(flush=True, limit=boundaries + TURN)
        for _ in range(1 if quick else TURNS):
            for way, loop in loops.items():
                began = time.perf_counter()
                ran = loop.run(flush=True, limit=TURN)["ran"]
                took[way].append((time.perf_counter() - began) / max(len(ran), 1))
        digests = {way: _digest(loop) for way, loop in loops.items()}
        if digests["insert"] != digests["sweep"]:
            raise failed("wrong-answer", f"the strategies answer otherwise: {sql}", "please report this")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    price, chosen = _priced(sql, rows, boundaries, loops["insert"])
    return {"rows": rows, "boundaries": boundaries, "priced_ms": price, "chosen": chosen,
            "ms": {way: round(1e3 * statistics.mean(seconds_), 1) for way, seconds_ in took.items()}}


def _digest(loop: Loop) -> tuple[object, ...]:
    """Of all answers that were published."""
    con = kernel.connect(threads=2, memory="4GB")
    digest = ("count(*), sum(n), sum(total), sum(most), "
              "sum(hash(epoch_us(boundary), g, n, total, most) % 1000000007)")
    files = kernel.file_list(published_files(loop.pipe, "answer"))
    row = con.execute(f"SELECT {digest} FROM read_parquet({files})").fetchone()
    con.close()
    return tuple(row or ())


def _loop(folder: str, way: str, sql: str, tasks: Tasks) -> Loop:
    copy = os.path.join(folder, way)
    shutil.copytree(os.path.join(folder, "stored"), copy)
    with open(os.path.join(copy, "queries", "answer.sql"), "w", encoding="utf-8") as file:
        file.write(sql)
    pipe = opened(copy, tasks)
    plan = replace(named(parsed(sql, pipe.catalog), "EAP1 recompute"), invalidation=way)
    loop = FixedPlans(pipe, {"answer": plan})
    loop.pace.most = 1
    return loop


def _priced(sql: str, rows: int, boundaries: int, loop: Loop) -> tuple[Mapping[str, float], str]:
    """Milliseconds of upkeep by strategy, and the one that a price chooses."""
    query = parsed(sql, loop.pipe.catalog)
    stream = InputStatistics(float(rows), float(rows * boundaries), combinations=float(rows))
    query_sizes, costs = sizes(query, QueryStatistics((stream,), (), 1.0, float(rows))), loop.chooser.coefficients
    plan: Plan = named(query, "EAP1 recompute")
    of_strategies = {way: round(1e3 * seconds(amounts, costs), 2) for way, amounts in upkeep(plan, query_sizes).items()}
    return of_strategies, invalidation(plan, query_sizes, costs)


def _write(folder: str, rows: int, count: int) -> None:
    """A row a group and boundary, a boundary a second."""
    os.makedirs(os.path.join(folder, "queries"))
    os.makedirs(os.path.join(folder, "landing"))
    with open(os.path.join(folder, "forebay.yml"), "w", encoding="utf-8") as file:
        file.write("name: expiry\nbatch: 1 second\nstreams:\n  r: {columns: {ts: timestamp, g: bigint, v: bigint}, "
                   "event_time: ts, source: {files: \"landing/*.parquet\"}}\n")
    con = kernel.connect(threads=2, memory="4GB")
    for number in range(count):
        stamp = f"CAST(make_timestamp({START + number * SECOND} + (i * {SECOND}) // {rows}) AS TIMESTAMPTZ)"
        path = string(os.path.join(folder, "landing", f"{number:04d}.parquet"))
        con.execute(f"COPY (SELECT {stamp} AS ts, i AS g, (hash(i + {number}) % 1000)::BIGINT AS v FROM range({rows}) "
                    f"AS r(i)) TO {path} (FORMAT parquet)")
    con.close()


def _invalidation_claims(points: Sequence[Point]) -> Iterator[Claim]:
    """Whether the strategy that is priced as the cheaper one is, where there is one to choose."""
    short = [p for p in points if p["priced_ms"]]
    if short:
        checks = []
        for p in short:
            other = next(way for way in INVALIDATIONS if way != p["chosen"])
            checks.append((p["ms"][p["chosen"]] <= NEAR * p["ms"][other],
                           f"{p['boundaries']} boundaries of {p['rows']:,}: {p['chosen']} {p['ms'][p['chosen']]} ms, "
                           f"{other} {p['ms'][other]} ms a boundary"))
        yield claim(f"ours: the price takes the faster strategy, or one within {NEAR - 1:.0%}", checks)
    long = [p for p in points if not p["priced_ms"]]
    if long:
        yield claim(f"ours: in windows of {MERGED} boundaries and more it makes no difference",
                    [(max(p["ms"].values()) <= NEAR * min(p["ms"].values()), f"{p['boundaries']} boundaries of "
                      f"{p['rows']:,}: {p['ms']}") for p in long])
