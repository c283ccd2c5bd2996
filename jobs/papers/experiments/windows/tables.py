"""Paper D's Tables I to III and its Fig. 12: window sets by Algorithm 6, costs as modelled, throughput as measured in
the task's engine, beside the paper's.

Each plan evaluates MIN over the same events, a statement a window, in one thread: as written every window reads the
events, else what its graph says, or slices. A plan costs the sum of its statements, each timed once for all plans that
have it; all answers are compared before anything is reported. Times are the processor's. The baseline is vectorised,
harder to beat than the paper's.
"""
from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from jobs.engine import kernel
from jobs.papers.experiments import Report, Tell
from jobs.papers.experiments.claims import report
from jobs.papers.experiments.points import finished, point, spent, unfinished
from jobs.papers.experiments.windows import claims
from jobs.papers.experiments.windows.generate import random_set, sequential_set
from jobs.papers.experiments.windows.timing import TimedStatements, Weights, once_or_twice, run
from optimizer.coverage.algebra import COVERED, PARTITIONED, Window
from optimizer.coverage.factors import with_factors
from optimizer.coverage.graph import Graph, Prices, as_written, cheapest, prices
from optimizer.coverage.search import best
from optimizer.coverage.statements import EVENTS, slicing, statements
from optimizer.errors import failed

# setup: mean and max of the paper's throughput over the original plan's; without factor windows, with
PAPER: Mapping[str, tuple[float, float, float, float]] = {
    "R-5-tumbling": (1.21, 1.92, 1.85, 2.54),
    "R-10-tumbling": (1.34, 1.77, 1.88, 3.38),
    "R-5-hopping": (1.18, 1.82, 3.26, 4.29),
    "R-10-hopping": (1.34, 1.71, 3.20, 6.15),
    "S-5-tumbling": (1.63, 1.67, 4.28, 4.81),
    "S-10-tumbling": (1.98, 2.05, 7.91, 9.38),
    "S-5-hopping": (1.34, 1.48, 2.17, 2.81),
    "S-10-hopping": (1.58, 1.73, 2.92, 3.79),
    "R-15-tumbling": (1.55, 1.96, 2.97, 4.34),
    "R-20-tumbling": (1.49, 2.29, 2.10, 4.83),
    "R-15-hopping": (1.55, 1.95, 4.67, 6.59),
    "R-20-hopping": (1.68, 2.20, 4.23, 7.65),
    "S-15-tumbling": (2.43, 2.49, 11.29, 13.83),
    "S-20-tumbling": (2.42, 2.53, 14.28, 16.82),
    "S-15-hopping": (1.85, 2.09, 3.51, 4.68),
    "S-20-hopping": (1.91, 2.15, 4.02, 5.32)
}
REAL: Mapping[str, tuple[float, float, float, float]] = {  # Table II: the DEBS 2012 data, which is not here
    "R-5-tumbling": (1.19, 1.78, 1.43, 1.91),
    "R-10-tumbling": (1.30, 1.71, 1.53, 2.86),
    "R-5-hopping": (1.09, 1.39, 1.54, 2.63),
    "R-10-hopping": (1.18, 1.39, 1.46, 3.53),
    "S-5-tumbling": (1.63, 1.67, 4.12, 4.85),
    "S-10-tumbling": (1.90, 1.97, 7.53, 9.14),
    "S-5-hopping": (1.12, 1.30, 1.22, 1.77),
    "S-10-hopping": (1.22, 1.51, 1.45, 2.31)
}
TABLES = {1: (5, 10), 2: (5, 10), 3: (15, 20)}
RATES = (1, 100)              # events a unit of time
# paper: Algorithm 3; factored: our search; chosen: our search by measured prices
PLANS = ("original", "shared", "paper", "factored", "chosen")
SETS, QUICK_SETS = 10, 2
SLICING = "slicing"           # one more baseline; it has no cost in the paper's model
PANES = "panes"               # a harder baseline for hopping windows: each by itself, from panes of its own
# window sets that are sliced too where there are so many events, by rate: slicing takes most of the time
SLICED, MANY = {1: 1, 100: 3}, 1_000_000
EVENT_COUNT, QUICK = 300_000, 30_000      # `--events 1000000` is the paper's Synthetic-1M, 10000000 its Synthetic-10M
SEED = 2022
SYNTHETIC = "hash(i) % 1000000"
# Electrical power of a machine at 100 Hz, as mf01 of DEBS 2012: long states with different levels, a slow swing, noise
# of one per cent
SENSOR = "CAST(9000 + 3000 * (hash(i // 50000) % 3) + 800 * sin(i / 9549.3) + hash(i) % 120 AS BIGINT)"


@dataclass(frozen=True)
class Trial:
    """One window set: by plan its cost by the paper's model and its seconds; the optimizer's seconds."""

    cost: Mapping[str, float]
    seconds: Mapping[str, float]
    optimizing: float
    exact: bool

    def ratio(self, of: str, plan: str) -> float:
        values: Mapping[str, float] = getattr(self, of)
        return values["original"] / values[plan]


def table_1(quick: bool, tell: Tell, events: int | None = None) -> Report:
    return _table(1, quick, tell, events)


def table_2(quick: bool, tell: Tell, events: int | None = None) -> Report:
    """Sensor-like values made here: the data set is not downloaded. MIN does the same work on any values."""
    return _table(2, quick, tell, events)


def table_3(quick: bool, tell: Tell, events: int | None = None) -> Report:
    return _table(3, quick, tell, events)


def _table(number: int, quick: bool, tell: Tell, event_count: int | None) -> Report:
    """Every setup of the table at one event a unit of time, and at a hundred.

    Each is a point: what was interrupted goes on there.
    """
    count = QUICK_SETS if quick else SETS
    events = event_count or (QUICK if quick else EVENT_COUNT)
    setups = [s for s in PAPER if int(s.split("-")[1]) in TABLES[number]][::3 if quick else 1]
    points, clock = unfinished(f"windows-table-{number}-{events}",
                               quick), unfinished(f"windows-table-{number}-{events}-statements", quick)
    rows: list[Report] = []
    for rate in RATES:
        todo = [s for s in setups if _key(rate, s) not in points.measured]
        if not todo or spent(points):
            rows += [points.measured[_key(rate, s)] for s in setups if s not in todo]
            continue
        con = kernel.connect(memory="4GB")
        con.execute(
            f"CREATE TABLE {EVENTS} AS SELECT i // {rate} AS t, {SENSOR if number == 2 else SYNTHETIC} AS v FROM "
            f"range({events}) AS r(i)"
        )
        timed = TimedStatements(con, clock, f"{rate} a unit")
        for setup in setups:
            if setup in todo and spent(points):
                continue
            rows.append(point(points, _key(rate, setup), lambda: _measured(timed, setup, rate, events, count, number)))
            tell(f"{setup} at {rate} a unit: {rows[-1]['throughput']}")
        con.close()
    whole = len(rows) == len(RATES) * len(setups)
    if whole:
        finished(points)
        finished(clock)
    settings = (f"{events:,} events, {count} window sets a setup; times less than all windows as written, mean / most; "
                "processor time of one thread; the paper's η is 1 event a unit, 100 are ours")
    settings += "; slicing of {} set a setup at 1 a unit, of {} at 100".format(
        *SLICED.values()) if events >= MANY else ""
    settings += "" if whole else f"; {len(rows)} of {len(RATES) * len(setups)} setups, the same command goes on"
    return report(f"Paper D, Table {'I' * number}: windows as written, shared, factored", settings,
                  list(claims.panels(rows)), claims.said(rows), {
                      "table": number,
                      "events": events,
                      "rows": rows
                  },
                  page(rows).split("\n"))


def _key(rate: int, setup: str) -> str:
    """A row's, whose statements are kept apart from it: a row of another shape is put together of them anew."""
    return f"{rate} {setup}, beside slicing"


def _measured(timed: TimedStatements, setup: str, rate: int, events: int, count: int, number: int) -> Report:
    tumbling, sliced = setup.endswith("tumbling"), count if events < MANY else SLICED[rate]
    trials = [
        _trial(timed, windows, tumbling, rate, events, n < sliced) for n, windows in enumerate(sets(setup, count))
    ]
    return _row(setup, rate, trials, (REAL if number == 2 else PAPER)[setup])


def sets(setup: str, count: int) -> Iterator[frozenset[Window]]:
    """The same sets on every machine."""
    generator, size, kind = setup.split("-")
    pick = random.Random(f"{SEED} {setup}").choice
    make = random_set if generator == "R" else sequential_set
    return (make(int(size), kind == "tumbling", pick) for _ in range(count))


def _trial(timed: TimedStatements, windows: frozenset[Window], tumbling: bool, rate: int, events: int,
           sliced: bool) -> Trial:
    model, until = prices(windows, PARTITIONED if tumbling else COVERED, rate), events // rate
    began = time.process_time()
    search = best(windows, model)
    optimizing = time.process_time() - began
    chosen = replace(by_measured_prices(windows, model, timed.weights(events), until), prices=model)
    graphs = {
        "original": as_written(windows, model),
        "shared": cheapest(windows, model),
        "paper": with_factors(windows, model),
        "factored": search.graph,
        "chosen": chosen
    }
    seconds = {plan: timed.seconds(statements(graph, until)) for plan, graph in graphs.items()}
    seconds[PANES] = sum(timed.seconds(statements(_paned(w, model), until)) for w in windows)
    if sliced:
        seconds[SLICING] = timed.point(f"slicing {sorted(map(str, windows))}",
                                       lambda: once_or_twice(lambda: _sliced(timed, sorted(windows), until)))
    return Trial({p: float(g.cost) for p, g in graphs.items()}, seconds, optimizing, search.exact)


def _paned(window: Window, model: Prices) -> Graph:
    """A window alone, a hopping one from panes that make it without overlap."""
    pane = Window(math.gcd(window.range, window.slide), math.gcd(window.range, window.slide))
    return as_written([window], model) if window.tumbling else Graph(
        ((pane, None), (window, pane)), frozenset([pane]), model)


def _sliced(timed: TimedStatements, windows: Sequence[Window], until: int) -> float:
    """By itself, on a connection with temporary tables of its own: slices are of one set only."""
    seconds, answers = run(timed.con.cursor(), slicing(windows, until), windows)
    if answers != timed.digest(windows):
        raise failed("wrong-answer", f"slicing of {', '.join(map(str, windows))} gives other answers",
                     "please report this")
    return seconds


def by_measured_prices(windows: frozenset[Window], model: Prices, weights: Weights, until: int) -> Graph:
    """What runs; as written is one of its candidates."""
    dearer = replace(model, row=weights.read, partial=weights.read, instance=weights.making,
                     window=math.ceil(weights.fixed * model.period / until))
    merged = best(windows, dearer).graph
    return min(merged, as_written(windows, dearer), key=lambda g: g.cost)


def _row(setup: str, rate: int, trials: Sequence[Trial], published: Sequence[float]) -> Report:
    """Means, maxima and the least of a setup's sets, and how costs and throughputs go together."""
    def summary(of: str, plan: str) -> list[float]:
        ratios = [t.ratio(of, plan) for t in trials if plan in getattr(t, of)]
        return [round(statistics.mean(ratios), 2), round(max(ratios), 2), round(min(ratios), 2)]

    beside = [t.seconds[SLICING] / t.seconds["chosen"] for t in trials if SLICING in t.seconds]
    panes = [t.seconds[PANES] / t.seconds["chosen"] for t in trials]
    pairs = [(t.ratio("cost", p), t.ratio("seconds", p)) for t in trials for p in PLANS[1:]]
    times = [t.optimizing * 1000 for t in trials]
    return {
        "setup": setup,
        "rate": rate,
        "bound": int(setup.split("-")[1]),
        "published": list(published),
        "cost": {
            p: summary("cost", p) for p in PLANS[1:]
        },
        "throughput": {
            p: summary("seconds", p) for p in (*PLANS[1:], SLICING)
        },
        "over_slicing": round(statistics.mean(beside), 2),
        "panes": [round(of(panes), 2) for of in (statistics.mean, max, min)],
        "correlation": _correlation(pairs),
        "exact": sum(t.exact for t in trials),
        "sets": len(trials),
        "optimizer_ms": {
            "mean": round(statistics.mean(times), 1),
            "deviation": round(statistics.pstdev(times), 1),
            "most": round(max(times), 1)
        }
    }


def _correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Pearson's; None where nothing varies."""
    try:
        return round(statistics.correlation(*zip(*pairs)), 2)
    except statistics.StatisticsError:
        return None


def page(rows: Sequence[Report]) -> str:
    """The rows as Markdown."""
    head = ("setup", "events a unit", "shared: paper", "cost", "measured", "factor windows: paper", "cost, Alg. 3",
            "cost, ours", "measured, Alg. 3", "measured, ours", "by measured prices", "least",
            "times each by its own panes", "slicing", "r", "optimizer, ms")
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for r in rows:
        shared, alone, factored = (_pair(r[k]["shared"]) for k in ("cost", "throughput")), r["published"], ("paper",
                                                                                                            "factored")
        cells = [
            r["setup"], r["rate"],
            _pair(alone[:2]), *shared,
            _pair(alone[2:]), *(_pair(r["cost"][p]) for p in factored),
            *(_pair(r["throughput"][p]) for p in (*factored, "chosen")), r["throughput"]["chosen"][2],
            _pair(r["panes"]),
            _pair(r["throughput"][SLICING]), r["correlation"],
            f"{r['optimizer_ms']['mean']} ± {r['optimizer_ms']['deviation']}"
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def _pair(ratios: Sequence[float]) -> str:
    """Mean and max."""
    return f"{ratios[0]:.2f} / {ratios[1]:.2f}"
