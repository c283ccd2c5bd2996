"""SUM over paper D's hopping sets: as written, added up along the graph of "partitioned by", and what leaves
subtracted; costs as priced beside seconds.

As in the tables: the same events, one thread of the tasks' engine, processor time, answers of all ways compared before
anything is reported.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import mean

from jobs.engine import kernel
from jobs.papers.experiments import Report, Tell
from jobs.papers.experiments.agreement import spearman
from jobs.papers.experiments.claims import Claim, Panel, claim, counted, report
from jobs.papers.experiments.points import Point, Points, finished, point, unfinished
from jobs.papers.experiments.windows.tables import RATES, SYNTHETIC, sets
from jobs.papers.experiments.windows.timing import Weights, measured, run
from optimizer.coverage.algebra import PARTITIONED, SUBTRACTED, Window
from optimizer.coverage.graph import Graph, Prices, as_written, prices
from optimizer.coverage.search import best
from optimizer.coverage.statements import EVENTS
from optimizer.coverage.subtract import sums
from optimizer.errors import failed

SETUPS = ("R-5-hopping", "R-10-hopping", "S-5-hopping", "S-10-hopping")
WAYS = ("as written", "added up", "subtracted where cheaper")
EVENT_COUNT, QUICK = 300_000, 30_000
SETS = 5
RANKS = 0.95
SLACK = 1.2                   # times by which one run of the same statements may differ from another
# instances that hold one moment; units of time between their ends, at one event a unit
OVERLAPS, HOP = (2, 5, 10, 30, 60), 2


def by_subtraction(quick: bool, tell: Tell, events: int | None = None) -> Report:
    """A panel a rate: times less than as written."""
    count, number = events or (QUICK if quick else EVENT_COUNT), 2 if quick else SETS
    points = unfinished(f"windows-sums-{count}", quick)
    panels: list[Panel] = []
    claims: list[Claim] = []
    for rate in RATES:
        with kernel.connect(memory="4GB") as con:
            con.execute(
                f"CREATE TABLE {EVENTS} AS SELECT i // {rate} AS t, CAST({SYNTHETIC} AS BIGINT) AS v FROM "
                f"range({count}) AS r(i)"
            )
            weights = measured(con, count)
            difference = _difference(con, weights, count // rate)
            rows = {
                s: point(points, f"{rate} {s}",
                         lambda: _setup(con, weights, difference, s, rate, count // rate, number))
                for s in SETUPS[::2 if quick else 1]
            }
        tell(f"{rate} a unit: {rows}")
        panels.append(_panel(rate, rows))
        claims += _judged(rate, rows)
    overlapping = _overlapping(points, count, quick, tell)
    panels.append(overlapping)
    claims.append(_pays(overlapping))
    finished(points)
    details = (f"{count:,} events, {number} window sets a setup; prices as measured just before; processor time of one "
               "thread")
    return report("SUM over hopping windows: added up, and what leaves subtracted", details, panels, claims,
                  {"events": count})


def _setup(con: kernel.Connection, weights: Weights, difference: int, setup: str, rate: int, until: int,
           number: int) -> Point:
    """By way: cost and seconds of each set."""
    ways_of_sets = [_ways(con, weights, difference, windows, rate, until) for windows in sets(setup, number)]
    return _by_way(ways_of_sets)


def _by_way(ways_of_sets: Sequence[Point]) -> Point:
    """For each way, its costs and its seconds in the order of the sets."""
    figures: Point = {}
    for way in WAYS:
        costs, seconds = [ways[way]["cost"] for ways in ways_of_sets], [ways[way]["seconds"] for ways in ways_of_sets]
        figures[way] = {"cost": costs, "seconds": seconds}
    return figures


def _overlapping(points: Points, count: int, quick: bool, tell: Tell) -> Panel:
    """One window that overlaps itself ever more: seconds of each way."""
    xs = OVERLAPS[::2] if quick else OVERLAPS
    with kernel.connect(memory="4GB") as con:
        con.execute(
            f"CREATE TABLE {EVENTS} AS SELECT i AS t, CAST({SYNTHETIC} AS BIGINT) AS v FROM range({count}) AS r(i)")
        weights = measured(con, count)
        difference = _difference(con, weights, count)
        ways_by_overlap = [
            point(points, f"overlap {x}",
                  lambda: _ways(con, weights, difference, frozenset({Window(x * HOP, HOP)}), 1, count)) for x in xs
        ]
    tell(f"by overlap: {ways_by_overlap}")
    figures = _by_way(ways_by_overlap)
    seconds = {way: list(map(float, figures[way]["seconds"])) for way in WAYS}
    priced = {way: [float(nanoseconds) / 1e9 for nanoseconds in figures[way]["cost"]] for way in WAYS}
    return Panel(f"one window every {HOP} units, one event a unit", "instances that overlap", "s",
                 tuple(map(float, xs)), seconds, priced, True, True, beside="by price")


def _ways(con: kernel.Connection, weights: Weights, difference: int, windows: frozenset[Window], rate: int,
          until: int) -> Point:
    """Cost and seconds of each way, answers compared."""
    measured_ways: Point = {}
    answers = None
    for way, graph in zip(WAYS, _graphs(windows, weights, difference, rate, until)):
        seconds, got = min((run(con, sums(graph, until), sorted(windows)) for _ in range(2)), key=lambda r: r[0])
        if answers is not None and got != answers:
            raise failed("wrong-answer", f"{', '.join(map(str, windows))} {way} gives other answers",
                         "please report this")
        answers = got
        nanoseconds = float(graph.cost) * until / graph.prices.period      # a cost is of a period; sets have others
        measured_ways[way] = {"cost": nanoseconds, "seconds": seconds}
    return measured_ways


def _pays(panel: Panel) -> Claim:
    added, subtracted = (panel.measured[way] for way in WAYS[1:])
    texts = [f"{x:g}: {a / b:.2f} ×" for x, a, b in zip(panel.x, added, subtracted)]
    checks = [(b < a, text) for text, a, b in zip(texts, added, subtracted)]
    return claim("allowing subtraction is faster, by instances that overlap", checks)


def _graphs(windows: frozenset[Window], weights: Weights, difference: int, rate: int, until: int) -> Sequence[Graph]:
    """By measured prices, over as many of the paper's periods as there are: in one, the longest window has one instance
    and no overlap.
    """
    model = prices(windows, PARTITIONED, rate)
    period = model.period * max(1, until // model.period)
    dearer = replace(model, period=period, row=weights.read, partial=weights.read, instance=weights.making,
                     window=-(-weights.fixed * period // until))
    taking: Prices = replace(dearer, relation=SUBTRACTED, difference=difference)
    return as_written(windows, dearer), best(windows, dearer).graph, best(windows, taking).graph


def _difference(con: kernel.Connection, weights: Weights, until: int) -> int:
    """What an instance by subtraction costs beside, in reads: of one window that overlaps itself often."""
    window = Window(OVERLAPS[-1] * HOP, HOP)
    graph = as_written([window], replace(prices([window], SUBTRACTED), period=window.range * OVERLAPS[-1]))
    seconds = min(run(con, sums(graph, until), [window])[0] for _ in range(2))
    return max(round((seconds * 1e9 - weights.fixed) * HOP / until / max(weights.read, 1)), 0)


def _panel(rate: int, rows: Mapping[str, Point]) -> Panel:
    def ratios(of: str, way: str) -> list[float]:
        return [mean(a / b for a, b in zip(r[WAYS[0]][of], r[way][of])) for r in rows.values()]

    return Panel(f"{rate} event{'s' if rate > 1 else ''} a unit of time", "setup", "times as written",
                 tuple(map(float, range(len(rows)))), {way: ratios("seconds", way) for way in WAYS[1:]},
                 {way: ratios("cost", way) for way in WAYS[1:]}, beside="by price", labels=tuple(rows))


def _judged(rate: int, rows: Mapping[str, Point]) -> list[Claim]:
    pairs = [(a, b) for r in rows.values() for way in WAYS for a, b in zip(r[way]["cost"], r[way]["seconds"])]
    agreed = spearman(*zip(*pairs))
    added, subtracted = WAYS[1:]
    each = [pair for ways in rows.values() for pair in zip(ways[added]["seconds"], ways[subtracted]["seconds"])]
    slower = sum(y > x * SLACK for x, y in each)
    return [
        counted(f"with subtraction allowed no set is slower than {SLACK} × adding up, {rate} a unit",
                len(each) - slower, len(each), " sets"),
        claim(f"prices and seconds rank alike, {rate} a unit",
              [(agreed >= RANKS, f"Spearman {agreed} over all plans and sets")])
    ]
