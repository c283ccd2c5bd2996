"""Paper E's experiments on one machine, on aggregates: throughput by number of queries, shares of common data, deployment; said beside the paper's shapes.

The paper's cluster is not at hand, so seconds are not compared, shapes are.
"""
from __future__ import annotations

import statistics
import time
from dataclasses import replace
from random import Random

from jobs import bench_sharing, requests, runner
from jobs.bench_sharing import SECOND, START, VALUES, Setting, batches, pipeline
from jobs.experiments import Report, Tell

SHARES = (5, 25, 50, 75)        # per cent of a query's rows that the others select too: Fig. 22
OVERLAPPING = 20                # queries there
RANGE = ("SELECT s1.f3 % 10 AS g, COUNT(*) AS n, SUM(s2.f4) AS sum_b FROM s1 [WINDOW {window} SECONDS], s2 [WINDOW {window} SECONDS] "
         "WHERE s1.f0 = s2.f0 AND s1.f1 >= {low} AND s1.f1 < {high} AND s2.f2 >= {low} AND s2.f2 < {high} GROUP BY s1.f3 % 10")


def throughput(quick: bool, tell: Tell) -> Report:
    """Fig. 15: rows a second that all queries together take in."""
    found = bench_sharing.sharing(Setting(rate=5_000, counts=(1, 20, 100), apart=20) if quick else Setting(), tell)
    levels = {name: level for name, level in found.items() if name != "create_s"}
    lines = [f"{name:12} {level['query_rows_per_s'] / 1e6:8.1f} M query-rows/s  {level['shared_s']:.2f} s a batch  {level['times_one']:.1f} × one query"
             + (f"  apart {level['apart_s']:.2f} s" if "apart_s" in level else "") for name, level in levels.items()]
    rates = [level["query_rows_per_s"] for level in levels.values()]
    shape = f"paper: grows up to 500 queries; here: {'grows' if rates == sorted(rates) else 'does not grow everywhere'}"
    return {**found, "text": "\n".join([*lines, shape])}


def overlap(quick: bool, tell: Tell) -> Report:
    """Fig. 22: queries of which ever fewer rows are the same."""
    setting = Setting(rate=2_000 if quick else 20_000, counts=(1,) * (2 * len(SHARES)), apart=0)
    found: Report = {}
    with pipeline(setting) as rt:
        runner.take(rt)
        runner.run(rt, flush=True, to=START)
        for number, share in enumerate(SHARES):
            _replaced(rt, setting, share, first=number == 0)
            if number == 0:
                runner.run(rt, flush=True, to=START + setting.window * SECOND)
            rt.share_from = 2
            together = batches(rt)[0]
            rt.share_from = OVERLAPPING + 1
            found[f"{share} %"] = {"shared_s": together, "apart_s": batches(rt)[0]}
            tell(f"{share} %: {found[f'{share} %']}")
    lines = [f"{share:5} of the rows common  together {t['shared_s']:.2f} s  apart {t['apart_s']:.2f} s" for share, t in found.items()]
    return {**found, "text": "\n".join([*lines, "paper: sharing costs more the less is common, unless queries are grouped"])}


def _replaced(rt: runner.Runtime, setting: Setting, share: int, first: bool) -> None:
    """Neighbouring ranges of equal width that have `share` per cent in common."""
    width = VALUES / (1 + (OVERLAPPING - 1) * (1 - share / 100))
    for n in range(OVERLAPPING):
        low = round(n * width * (1 - share / 100))
        requests.create(rt, f"q{n}", RANGE.format(window=setting.window, low=low, high=max(round(low + width), low + 1)), replace=not first)


def deployment(quick: bool, tell: Tell) -> Report:
    """Fig. 18b: seconds of a request, and of the batch in which it takes effect, with many queries in force."""
    count, choice = (50 if quick else 500), Random(3)
    setting = replace(Setting(rate=2_000 if quick else 20_000, counts=(1, 1, 1), apart=0), window=20)
    with pipeline(setting) as rt:
        runner.take(rt)
        asked = bench_sharing.bounds(count)
        bench_sharing.grown(rt, setting, asked, 0, count)
        runner.run(rt, flush=True, to=START + setting.window * SECOND)
        usual, requested, changed = batches(rt)[0], list[float](), list[float]()
        for n in range(3):
            started = time.perf_counter()
            x, y = choice.randrange(VALUES), choice.randrange(VALUES)
            requests.create(rt, f"late{n}", bench_sharing.QUERY.format(window=setting.window, x=x, y=y))
            requested.append(time.perf_counter() - started)
            changed.append(runner.run(rt, flush=True, limit=1)["ran"][0]["seconds"])
    found = {"queries": count, "request_s": statistics.median(requested), "batch_s": usual, "batch_with_a_new_query_s": statistics.median(changed)}
    more = found["batch_with_a_new_query_s"] - usual
    return {**found, "text": f"{count} queries in force: a request takes {found['request_s']:.2f} s and is in force at the next boundary, whose batch takes "
                             f"{found['batch_with_a_new_query_s']:.2f} s, {more:+.2f} s beside one without a change"}
