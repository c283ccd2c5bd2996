"""Paper C's experiments: time and memory of PC, IC and TC as rate and window grow; COUNT over two streams by hash, M =
100 buckets, σ = 0.01.

The numbers of the paper's figures are lost in our copy; its text has 100 tuples a second. Rates × 100 are measured with
windows of the same number of tuples, as PC's joined tuples would not fit otherwise. Answers are compared before times
are reported; TC by its running total, the naive sum as printed beside it.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from jobs.papers.experiments import Report, Tell
from jobs.papers.experiments.agreement import growth
from jobs.papers.experiments.claims import Claim, Panel, claim, report
from jobs.papers.experiments.points import Point, finished, least, point, unfinished
from jobs.papers.generator import SECOND, GeneratedStream, generated, merged
from jobs.papers.operators import counting, inclusion, pipelined
from jobs.papers.operators.arrivals import ArrivingTuples, JoinWindows
from jobs.papers.operators.rings import rows
from optimizer.errors import failed
from optimizer.papers.join_aggregation import Widths
from optimizer.papers.join_aggregation import counting as counted
from optimizer.papers.join_aggregation import counting_by_total, counting_space
from optimizer.papers.join_aggregation import inclusion as included
from optimizer.papers.join_aggregation import inclusion_space
from optimizer.papers.join_aggregation import pipelined as piped
from optimizer.papers.join_aggregation import pipelined_space, steady

RATE, WINDOW, BUCKETS, DISTINCT = 100, 20, 100, 100
WINDOWS, RATES = (5, 10, 20, 40), (25, 50, 100, 200)
TIMED = 2_000                    # tuples
WORD = 8                         # bytes of a number kept
SLACK = 0.05                     # by which times of one kind differ from run to run
ATTRIBUTES = 4                   # time, key, group, value
State = Any                      # the operators' states have no common type

METHODS: dict[str, tuple[Callable[[JoinWindows], State], Callable[[State, ArrivingTuples], tuple[State, Any]]]] = {
    "PC": (pipelined.start, pipelined.advance),
    "IC": (partial(inclusion.start, sums=False), inclusion.advance),
    "TC": (partial(counting.start, sums=False), counting.advance),
    "TC, naive sum": (partial(counting.start, sums=False, naive=True), counting.advance)}


def measured(rate: float, window: float, times: int = 5) -> Point:
    """Microseconds a tuple, the least of some runs that follow one another, and bytes of what is kept."""
    streams = [GeneratedStream(rate, 1, DISTINCT)] * 2
    tuples = merged([generated(s, window + times * TIMED / rate / 2 + 1, seed) for seed, s in enumerate(streams)])
    full = tuples.until(int(window * SECOND))
    running = {
        name: _TimedState(start(JoinWindows((int(window * SECOND),) * 2, BUCKETS)), advance)
        for name, (start, advance) in METHODS.items()
    }
    for one in running.values():
        one.go(tuples.part(0, full))
    microseconds = {name: float("inf") for name in METHODS}
    for k in range(times):
        piece = tuples.part(full + k * TIMED, full + (k + 1) * TIMED)
        for name, seconds in zip(running, least([partial(one.go, piece) for one in running.values()], 1)):
            microseconds[name] = min(microseconds[name], seconds / len(piece) * 1e6)
    counts = {name: int(one.state.totals.pairs[0]) for name, one in running.items()}
    if len(set(counts.values())) > 1:
        raise failed("wrong-answer", f"COUNT(*) at {rate:g} a second, {window:g} s: {counts}", "please report this")
    sizes = {}      # of tuples, of what they carry, of joined tuples, and of the queues by which windows are in order
    for name, one in running.items():
        windows = one.state.contents
        values = rows(windows.tuples) * windows.tuples.cells.shape[0] + rows(windows.queue)
        if name == "PC":
            values += rows(one.state.joined) * one.state.joined.cells.shape[0]
        sizes[name] = WORD * values
    return {"microseconds": microseconds, "bytes": sizes, "joined": counts["PC"]}


class _TimedState:
    """A state between the pieces that are timed."""

    def __init__(self, state: State, advance: Callable[[State, ArrivingTuples], tuple[State, Any]]) -> None:
        self.state, self.advance = state, advance

    def go(self, tuples: ArrivingTuples) -> None:
        self.state, _ = self.advance(self.state, tuples)


def by_rate(quick: bool, tell: Tell) -> Report:
    return _report("rate", RATES[:3] if quick else RATES, quick, tell)


def by_window(quick: bool, tell: Tell) -> Report:
    return _report("window", WINDOWS[:3] if quick else WINDOWS, quick, tell)


def _report(what: str, xs: tuple[int, ...], quick: bool, tell: Tell) -> Report:
    points = unfinished(f"c-{what}", quick)
    panels: list[Panel] = []
    claims: list[Claim] = []
    for scale in (1,) if quick else (1, 100):
        settings = [((x if what == "rate" else RATE) * scale, (x if what == "window" else WINDOW) / scale) for x in xs]
        measurements = [point(points, f"{scale} {x}", lambda: measured(*setting)) for x, setting in zip(xs, settings)]
        for x, p in zip(xs, measurements):
            tell(f"{what} {x} × {scale}: " + ", ".join(f"{n} {us:.3g} µs" for n, us in p["microseconds"].items()))
        axis = "tuples a second" if what == "rate" else "window, s"
        at = tuple(float(r if what == "rate" else w) for r, w in settings)
        time = Panel(f"time by {what}, rates × {scale}", axis, "µs a tuple", at,
                     {n: [p["microseconds"][n] for p in measurements] for n in METHODS}, {}, True, True)
        bytes_, model = {}, {}
        for method in ("PC", "IC", "TC"):
            bytes_[method] = [float(p["bytes"][method]) for p in measurements]
            model[method] = [_space(method, r, w) for r, w in settings]
        space = Panel(f"memory by {what}, rates × {scale}", axis, "bytes", at, bytes_, model, True, True)
        panels += [time, space]
        claims += [*_time(time, settings[-1]), *_memory(space, what)]
    finished(points)
    details = (f"σ = {1 / DISTINCT:g}, {BUCKETS} buckets; by default {RATE} tuples a second, windows of {WINDOW} s "
               "(the paper's own are lost in our copy)")
    return report(f"Paper C: time and memory of PC, IC and TC as the {what} grows", details, panels, claims,
                  {"figure": what})


def _space(name: str, rate: float, window: float) -> float:
    """Section 1.1 and equation 7 with what is kept here: four numbers a tuple and a queue's, a number more each that TC
    carries, three a joined tuple.
    """
    w, item = steady(rate, rate, window, BUCKETS, 1 / DISTINCT), (ATTRIBUTES + 1) * WORD
    if name == "PC":
        return pipelined_space(w, Widths(item, item)).of("windows") + w.selectivity * w.a * w.b * 3 * WORD
    return (inclusion_space(w, Widths(item, item))
            if name == "IC" else counting_space(w, Widths(item, item, WORD))).total


def _time(panel: Panel, setting: tuple[float, float]) -> list[Claim]:
    """The equations' order stands beside: accesses a tuple."""
    w = steady(*(setting[0],) * 2, setting[1], BUCKETS, 1 / DISTINCT)
    last = {n: y[-1] for n, y in panel.measured.items()}
    why = ", ".join(f"{n} {1 / us * 1e6:,.0f}" for n, us in last.items())
    why += (f" tuples a second; accesses by Eqs. 3, 6: IC {included(w).total:,.0f}, TC {counted(w).total:,.0f}, with "
            f"a total {counting_by_total(w).total:,.0f}")
    first = {n: y[0] for n, y in panel.measured.items()}
    naive, early = last["TC, naive sum"], f"at the left end TC takes {first['TC']:.3g} µs, IC {first['IC']:.3g}"
    baseline = f"PC takes {last['PC'] / last['IC']:.3g} × IC's time, by its steps {piped(w).total:,.0f} accesses"
    return [
        claim(f"ours: TC by a running total is best or equal for COUNT, {panel.title}",
              [(last["TC"] <= min(last["IC"], last["PC"]) * (1 + SLACK), why),
               (first["TC"] <= min(first["IC"], first["PC"]) * (1 + SLACK), early)]),
        claim(f"IC is faster than PC, {panel.title}", [(last["IC"] < last["PC"], baseline)]),
        claim(
            f"TC as printed, with the naive sum, is best for COUNT, {panel.title}",
            [(naive < min(last["IC"], last["PC"]),
              f"it takes {naive / last['IC']:.3g} × IC's time and {naive / last['TC']:.3g} × that of a running total")])
    ]


def _memory(panel: Panel, what: str) -> list[Claim]:
    slopes = {n: growth(panel.x, y) for n, y in panel.measured.items()}
    joined = [p - i for p, i in zip(panel.measured["PC"], panel.measured["IC"])]
    share = panel.measured["PC"][-1] / panel.measured["TC"][-1]
    linear = [(abs(slopes[n] - 1) < 0.1, f"{n} grows with the {what} to the power {slopes[n]}") for n in ("IC", "TC")]
    return [
        claim(f"memory of IC and TC is O(a + b), {panel.title}", linear),
        claim(f"PC's joined tuples are O(a·b), {panel.title}",
              [(abs(growth(panel.x, joined) - 2) < 0.2, f"to the power {growth(panel.x, joined)}")]),
        claim(f"memory of IC and TC is far below PC's, {panel.title}",
              [(share > 3, f"PC keeps {share:.3g} × what TC keeps at the right end")])
    ]
