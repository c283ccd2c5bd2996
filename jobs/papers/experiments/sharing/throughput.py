"""Paper E's Figs. 15, 18b and 22: throughput by number of queries beside the same apart and by plain Spark, shares of
common data, deployment.

The paper's cluster is not at hand, so seconds are not compared, shapes are. Aggregates run on the data of Fig. 14's
template, and the template as printed.
"""
from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import replace
from operator import gt
from random import Random

from jobs.ledger.open_pipeline import OpenPipeline
from jobs.papers.benches import sharing as bench_sharing
from jobs.papers.benches.sharing import SECOND, START, VALUES, SharingSetting, batches, pipeline
from jobs.papers.experiments import Report, Tell
from jobs.papers.experiments.claims import Claim, Panel, claim, report
from jobs.papers.experiments.sharing.run import FASTER, NEVER, SHORT, STAR, StreamLoad, measured, named, workload
from jobs.pipeline.config import INLINE
from jobs.requests import requests
from jobs.results import answers
from jobs.run import Loop
from jobs.verify import recompute as oracle
from optimizer.errors import failed

SHARES = (5, 25, 50, 75)        # per cent of a query's rows that the others select too: Fig. 22
OVERLAPPING, FEW = 20, 4        # queries there, when quick
MANY = 100                      # queries at which sharing is held against running apart and against Spark
OURS, SPARK = 10, 50            # times that we want there; the paper names none
APART, ALONE = "apart", "each for itself"      # aggregates without sharing; SELECT * without it
# seconds for Spark's queries, one after another: what is not reached is extrapolated from those that were
PATIENCE = 60.0
PRINTED = "the paper: SELECT * over windows of 1 to 3 s, on 4 and 8 nodes"
RANGE = (
    "SELECT s1.f3 % 10 AS g, COUNT(*) AS n, SUM(s2.f4) AS sum_b FROM s1 [WINDOW {window} SECONDS], s2 [WINDOW {window} "
    "SECONDS] "
    "WHERE s1.f0 = s2.f0 AND s1.f1 >= {low} AND s1.f1 < {high} AND s2.f2 >= {low} AND s2.f2 < {high} GROUP BY s1.f3 % "
    "10"
)


def throughput(quick: bool, tell: Tell) -> Report:
    """Fig. 15: rows a second that all queries together take in; quick: in one process and without Spark."""
    setting = SharingSetting(rate=10_000, window=30)
    if quick:
        setting = SharingSetting(rate=1_000, window=10, counts=(1, 10), apart=10)

    def after(rt: OpenPipeline, selections: list[tuple[int, int]]) -> Report:
        return {} if quick else _spark(rt, setting, selections, tell)

    figures = bench_sharing.sharing(setting, tell, INLINE if quick else None, after)
    levels = {int(name.split()[0]): level for name, level in figures.items() if name.endswith(" queries")}
    if not all(level["equal"] for level in levels.values()):
        raise failed("wrong-answer", f"shared answers differ from DuckDB's: {figures}", "please report this")
    panels = [_together(levels, figures.get("spark"), setting), _template(quick, tell)]
    details = (
        f"{setting.rate:,} rows a second and stream, windows of {setting.window} s, batches of {setting.batch} s, 500 "
        "keys, 10 groups, a selection "
        f"a stream ({PRINTED}); "
        + ("tasks in one process" if quick else "Spark's tasks on all cores; " + _said(figures["spark"])))
    return report("Paper E, Fig. 15: throughput by number of queries", details, panels,
                  _judged(levels, figures.get("spark"), panels), {"levels": figures})


def _together(levels: Mapping[int, Report], peer: Report | None, setting: SharingSetting) -> Panel:
    xs = tuple(float(n) for n in levels)
    y = {"shared": [level["query_rows_per_s"] for level in levels.values()]}
    rows = 2 * setting.rate * setting.batch
    most = max(n for n, level in levels.items() if "apart_s" in level)
    y[APART] = [
        rows / level["shared_s"] if n == 1 else min(n, most) * rows / levels[min(n, most)]["apart_s"]
        for n, level in levels.items()
    ]
    beyond = {APART: tuple(k for k, n in enumerate(levels) if n > most)}
    if peer:
        y["plain Spark"] = [rows / peer["each_s"]] * len(xs)
        beyond["plain Spark"] = tuple(k for k, n in enumerate(levels) if n > peer["queries"])
    return Panel("aggregates", "queries", "query-rows a second", xs, y, {}, logarithmic=True, steep=True,
                 extrapolated={name: points for name, points in beyond.items() if points},
                 extrapolation="as many a second as of the most queries that ran")


def _template(quick: bool, tell: Tell) -> Panel:
    """Two-way joins of half similarity without selections, as in section 7.1; each for itself."""
    rates = []
    counts = (1, 3) if quick else (1, 5, 20, 50)
    setting = SHORT if quick else StreamLoad()
    for count in counts:
        queries = [replace(m, selections=()) for m in workload(setting, count)]
        seconds = measured(setting, named(queries, STAR), NEVER)
        rates.append(round(count * setting.rows / seconds, 1))
        tell(f"{STAR}, {count} queries: {seconds:.3g} s a batch")
    return Panel("SELECT * without selections (Fig. 14)", "queries", "query-rows a second", tuple(map(float, counts)),
                 {ALONE: rates}, {}, True, True)


def _judged(levels: Mapping[int, Report], peer: Report | None, panels: list[Panel]) -> list[Claim]:
    claims = [_grows(panel) for panel in panels]
    apart = {n: level["apart_times_shared"] for n, level in levels.items() if "apart_times_shared" in level}
    most = max(apart)
    claims.append(
        claim(f"ours: {most} queries together cost a {OURS}th of the same apart",
              [(apart[most] >= OURS, f"apart they take {apart[most]:.1f} × as long")]))
    if peer:
        ratio = peer["each_s"] * MANY / levels[MANY]["shared_s"]
        claims.append(
            claim(f"ours: {MANY} queries together cost a {SPARK}th of plain Spark's, engine and sharing together",
                  [(ratio >= SPARK, f"{ratio:,.0f} × by {_said(peer)}")]))
    return claims


def _grows(panel: Panel) -> Claim:
    """With every further level; of queries that share nothing only the fixed cost of a batch is shared."""
    name, rates = next(iter(panel.measured.items()))
    ends = ", ".join(f"{x:g}: {rate / 1e6:.3f} M" for x, rate in zip(panel.x, rates))
    if name == ALONE:
        ends += "; the paper's reason, sharing, is not there: a batch has its fixed cost once"
    grows = all(a < b for a, b in zip(rates, rates[1:]))
    return claim(f"throughput grows with the queries, {panel.title}, {name}", [(grows, f"query-rows a second {ends}")])


def _spark(rt: OpenPipeline, setting: SharingSetting, selections: list[tuple[int, int]], tell: Tell) -> Report:
    """The last boundary of the first queries by Spark SQL as written, each for itself, as many as there is patience
    for.

    Answers compared.
    """
    session = bench_sharing.plain_session(rt)
    t = answers.published(rt, "q0")[-1]
    took: list[float] = []
    while len(took) < min(MANY, len(selections)) and sum(took) < PATIENCE:
        began = time.perf_counter()
        got = session.sql(bench_sharing.plain(setting, selections[len(took)], t)).toArrow()
        took.append(time.perf_counter() - began)
        if oracle.compare(got, answers.read(rt, f"q{len(took) - 1}", t).drop_columns(["boundary"])):
            raise failed("wrong-answer", f"q{len(took) - 1} differs from Spark's answer", "please report this")
    peer = {"queries": len(took), "each_s": statistics.mean(took)}
    tell(f"plain Spark: {peer}")
    return {"spark": peer}


def _said(peer: Report) -> str:
    how = f"the first {peer['queries']}, extrapolated to {MANY}" if peer["queries"] < MANY else f"all {MANY}"
    return f"plain Spark SQL takes {peer['each_s']:.2g} s a query and boundary ({how})"


def overlap(quick: bool, tell: Tell) -> Report:
    """Fig. 22: queries of which ever fewer rows are the same."""
    setting = SharingSetting(rate=1_000 if quick else 10_000, window=10 if quick else 60, counts=(1,) *
                             (2 * len(SHARES)), apart=0)
    together, apart = list[float](), list[float]()
    count = FEW if quick else OVERLAPPING
    shares = SHARES[::3] if quick else SHARES
    with pipeline(setting, INLINE) as loop:
        rt = loop.pipe
        loop.take()
        loop.run(flush=True, to=START)
        for number, share in enumerate(shares):
            _replaced(rt, setting, share, count, first=number == 0)
            if number == 0:
                loop.run(flush=True, to=START + setting.window * SECOND)
            together.append(batches(Loop(rt, share_from=2))[0])
            apart.append(batches(Loop(rt, share_from=count + 1))[0])
            tell(f"{share} %: together {together[-1]:.2f} s, apart {apart[-1]:.2f} s")
    panel = Panel(f"{count} queries", "% of a query's rows that its neighbour selects too", "s a batch",
                  tuple(map(float, shares)), {"together": together, "apart": apart}, {})
    ratios = ", ".join(f"{s} %: {b / a:.2g} ×" for s, a, b in zip(shares, together, apart))
    details = (f"{setting.rate:,} rows a second and stream, windows of {setting.window} s, tasks in one process "
               f"({PRINTED}); the "
               "paper's gap is to AStream, which is not here, so what it says of the gap has no verdict")
    return report("Paper E, Fig. 22: the cost of sharing as less is common", details, [panel], [
        claim("ours: sharing costs more the less is common",
              [(together[0] > together[-1], f"{together[0]:.2f} to {together[-1]:.2f} s")]),
        claim("ours: and still gains, at every share", [(all(map(gt, apart, together)), f"apart takes {ratios}")])
    ], {})


def _replaced(rt: OpenPipeline, setting: SharingSetting, share: int, count: int, first: bool) -> None:
    """Neighbouring ranges of equal width that have `share` per cent in common."""
    width = VALUES / (1 + (count - 1) * (1 - share / 100))
    for n in range(count):
        low = round(n * width * (1 - share / 100))
        requests.create(rt, f"q{n}", RANGE.format(window=setting.window, low=low, high=max(round(low + width),
                                                                                           low + 1)), replace=not first)


def deployment(quick: bool, tell: Tell) -> Report:
    """Fig. 18b: seconds of a request, and of the batch in which it takes effect, with many queries in force."""
    counts, choice = ((5, 20) if quick else (20, 100, 500)), Random(3)
    setting = replace(SharingSetting(rate=1_000 if quick else 10_000, counts=(1,) * 2 * len(counts), apart=0),
                      window=20)
    selections = bench_sharing.bounds(max(counts))
    requested, usual, changed = list[float](), list[float](), list[float]()
    with pipeline(setting, INLINE) as loop:
        rt = loop.pipe
        loop.take()
        created = 0
        for count in counts:
            bench_sharing.grown(rt, setting, selections, created, count)
            if not created:
                loop.run(flush=True, to=START + setting.window * SECOND)
            created = count
            usual.append(batches(loop)[0])
            deployments = [_deployed(loop, setting, f"late{count}_{n}", choice) for n in range(3)]
            requested.append(statistics.median(request for request, _ in deployments))
            changed.append(statistics.median(batch for _, batch in deployments))
            tell(
                f"{count} in force: a request {requested[-1]:.3f} s, a batch {usual[-1]:.2f} s, with a new query "
                f"{changed[-1]:.2f} s"
            )
    panel = Panel("a query is created", "queries in force", "s", tuple(map(float, counts)), {
        "its request": requested,
        "the batch in which it answers": changed,
        "a batch without a change": usual
    }, {}, True)
    more = changed[-1] - usual[-1]
    details = (f"{setting.rate:,} rows a second and stream, windows of {setting.window} s, tasks in one process "
               f"({PRINTED}); it "
               "is in force at the next boundary")
    return report("Paper E, Fig. 18b: deployment of one query among many", details, [panel], [
        claim(f"ours: creating one among {counts[-1]} adds at most a second to its boundary",
              [(more <= 1, f"{more:+.2f} s")]),
        _as_fast(requested)
    ], {
        "queries": counts[-1],
        "request_s": requested[-1],
        "batch_s": usual[-1],
        "batch_with_a_new_query_s": changed[-1]
    })


def _as_fast(requested: list[float]) -> Claim:
    """Beyond what two such short times differ by."""
    return claim("ours: a request does not take longer the more are in force",
                 [(requested[-1] <= requested[0] / FASTER, f"{requested[0]:.3f} to {requested[-1]:.3f} s")])


def _deployed(loop: Loop, setting: SharingSetting, name: str, choice: Random) -> tuple[float, float]:
    """Seconds of a request, and of the batch in which it is in force."""
    began = time.perf_counter()
    requests.create(
        loop.pipe, name,
        bench_sharing.QUERY.format(window=setting.window, x=choice.randrange(VALUES), y=choice.randrange(VALUES)))
    took = time.perf_counter() - began
    return took, float(loop.run(flush=True, limit=1)["ran"][0]["seconds"])
