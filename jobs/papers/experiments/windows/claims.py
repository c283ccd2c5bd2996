"""What paper D says of its tables, and what is wanted beyond, judged by the rows.

Each reason is computed, none is written in advance.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from statistics import mean

from jobs.papers.experiments import Report
from jobs.papers.experiments.claims import HOLDS, Claim, Panel, claim, counted

LEAST = 0.95          # a chosen plan is never slower than this, as written being one of its candidates
STEEP = 20            # times from which bars are drawn on a logarithmic scale
STRONG = 0.7          # a correlation from which costs and throughputs go together
BUDGET_MS = 100.0     # of the optimizer on average in every setup, section V-E, the exact search of small sets included
SERIES = (("shared", "shared"), ("chosen", "by measured prices"), ("slicing", "stream slicing"))
Row = Report


def said(rows: Sequence[Row]) -> list[Claim]:
    """Each claim with the numbers that it rests on; of no rows nothing is said."""
    if not rows:
        return []
    both = {r["setup"][0] for r in rows} == {"R", "S"}
    generators = [_generators(rows)] if both else []
    return [
        _sharing(rows), *generators, *published(rows),
        _least(rows), _slicing(rows), *_panes(rows),
        *_correlated(rows), _optimizer(rows)
    ]


def panels(rows: Sequence[Row]) -> Iterator[Panel]:
    """By rate: throughput over all windows as written, means with the least and the most of the sets.

    The paper's means beside.
    """
    for rate in sorted({r["rate"] for r in rows}):
        of_rate = [r for r in rows if r["rate"] == rate]
        series = [(plan, name) for plan, name in SERIES if plan in of_rate[0]["throughput"]]
        measured, spread = {}, {}
        for plan, name in series:
            summaries = [row["throughput"][plan] for row in of_rate]
            measured[name] = [mean_ for mean_, _, _ in summaries]
            spread[name] = [(least, most) for _, most, least in summaries]
        paper = {"shared": [row["published"][0] for row in of_rate],
                 "by measured prices": [row["published"][2] for row in of_rate]}
        steep = max(map(max, measured.values())) > STEEP
        yield Panel(f"{rate} event{'s' if rate > 1 else ''} a unit of time", "setup", "times as written",
                    tuple(map(float, range(len(of_rate)))), measured, {
                        n: y for n, y in paper.items() if n in measured
                    }, steep=steep, beside="paper", labels=tuple(r["setup"] for r in of_rate), spread=spread)


def _mean(rows: Sequence[Row], of: str, plan: str) -> float:
    return mean(r[of][plan][0] for r in rows)


def _sharing(rows: Sequence[Row]) -> Claim:
    more = sum(r["throughput"]["chosen"][0] > r["throughput"]["shared"][0] for r in rows)
    why = (
        f" setups; means are {_mean(rows, 'throughput', 'chosen'):.2f} × (chosen by measured prices) and "
        f"{_mean(rows, 'throughput', 'shared'):.2f} × over "
        "all windows as written")
    return counted("factor windows beat sharing alone", more, len(rows), why)


def _generators(rows: Sequence[Row]) -> Claim:
    checks = []
    for plan, how in (("shared", "by sharing alone"), ("chosen", "with factor windows")):
        random = _mean([row for row in rows if row["setup"].startswith("R")], "throughput", plan)
        sequential = _mean([row for row in rows if row["setup"].startswith("S")], "throughput", plan)
        checks.append((sequential > random,
                       f"sequential sets gain {sequential:.2f} × {how}, random ones {random:.2f} ×"))
    return claim("sequential sets gain more than random ones", checks)


def published(rows: Sequence[Row]) -> Iterator[Claim]:
    """Hopping windows are held against each by itself from panes of its own: as written the engine hands every event to
    each instance that holds it, and a plan would gain by that alone more than the paper's model allows.
    """
    for rate, kind in product(sorted({r["rate"] for r in rows}), ("tumbling", "hopping")):
        of_setup = [r for r in rows if r["rate"] == rate and r["setup"].endswith(kind)]
        gains = [r["throughput"]["chosen"][0] if kind == "tumbling" else r["panes"][0] for r in of_setup]
        checks = [(gain >= r["published"][2], f"{r['setup']} {gain:.2f} × of {r['published'][2]}")
                  for gain, r in zip(gains, of_setup)]
        if of_setup:
            reached = sum(ok for ok, _ in checks)
            over = "" if kind == "tumbling" else ", over each window by its own panes,"
            yield claim(
                f"the paper's mean with factor windows is reached{over} in all {kind} setups at {rate} a unit "
                f"({reached} of {len(of_setup)})",
                checks)


def _least(rows: Sequence[Row]) -> Claim:
    least = min(rows, key=lambda r: r["throughput"]["chosen"][2])
    why = f"{least['throughput']['chosen'][2]:.2f} × in its worst set, {least['setup']}, {least['rate']} a unit"
    return claim(f"ours: the chosen plan is never less than {LEAST} × as written",
                 [(least["throughput"]["chosen"][2] >= LEAST, why)])


def _slicing(rows: Sequence[Row]) -> Claim:
    """Over the sets that are sliced, too, which is not all where there are many events."""
    ahead = sum(r["over_slicing"] >= 1 for r in rows)
    best = max(rows, key=lambda r: r["over_slicing"])
    why = (f" setups, at most {best['over_slicing']:.1f} times as fast ({best['setup']}, {best['rate']} a unit); "
           f"slicing alone gains {_mean(rows, 'throughput', 'slicing'):.2f} ×")
    return counted("the chosen plan is at least as fast as stream slicing", ahead, len(rows), why)


def _correlated(rows: Sequence[Row]) -> Iterator[Claim]:
    """Nothing is said where costs do not vary: there is no correlation then."""
    correlated = [(r["correlation"], r) for r in rows if r["correlation"] is not None]
    if not correlated:
        return
    strong = sum(c >= STRONG for c, _ in correlated)
    low = min(correlated, key=lambda pair: pair[0])
    why = (f" setups, {mean(c for c, _ in correlated):.2f} on average, least in {low[1]['setup']} at "
           f"{low[1]['rate']} a unit ({low[0]})")
    yield counted(f"costs by the paper's model and throughputs correlate by {STRONG} or more", strong, len(correlated),
                  why)


def _panes(rows: Sequence[Row]) -> Iterator[Claim]:
    hopping = [r for r in rows if r["setup"].endswith("hopping")]
    if hopping:
        least, most = (of(hopping, key=lambda r: r["panes"][0]) for of in (min, max))
        ends = [f"{row['panes'][0]:.1f} × ({row['setup']}, {row['rate']} a unit)" for row in (least, most)]
        why = f" setups, {' to '.join(ends)}"
        yield counted("ours: hopping sets gain over each window from panes of its own, too",
                      sum(r["panes"][2] > 1 for r in hopping), len(hopping), why)


def _optimizer(rows: Sequence[Row]) -> Claim:
    """Fig. 12 gives averages; our search of small sets goes on until the cheapest is proven or it has looked enough."""
    checks = []
    for row in rows:
        took = row["optimizer_ms"]
        checks.append((took["mean"] < BUDGET_MS,
                       f"{row['setup']}, {row['rate']} a unit: {took['mean']:.0f} ms on average, {took['most']:.0f} ms "
                       f"at most, {row['exact']} of {row['sets']} sets proven the cheapest"))
    slowest = max(rows, key=lambda r: r["optimizer_ms"]["mean"])["optimizer_ms"]["mean"]
    statement = f"the optimizer takes less than {BUDGET_MS:.0f} ms on average in every setup"
    held = claim(statement, checks)
    return replace(held, why=f"{slowest:.0f} ms in the slowest") if held.verdict == HOLDS else held
