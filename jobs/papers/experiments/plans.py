"""One setting of paper A measured: every plan runs over the same generated tuples, event by event, and no time is
reported unless all answer alike.

A time is processor seconds for the tuples of one second, the least of some (TIMES), after windows are full (the paper:
the average of three). At rates × 100 the windows hold as many tuples as in the paper and a hundredth of a second is
timed, so as many tuples are.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import ceil

from jobs.papers.experiments.points import Point, least
from jobs.papers.generator import SECOND, GeneratedStream, generated, merged, windowed
from jobs.papers.operators import aggregation_sets
from jobs.papers.operators.arrivals import ArrivingTuples, JoinWindows
from optimizer.errors import failed
from optimizer.papers.many_way import many_way, probe_order
from optimizer.papers.statistics import Constants
from optimizer.papers.statistics import PaperStream as Priced
from optimizer.papers.statistics import Setting

BUCKETS = 1021              # B, paper A, section 7.1
TIMES = {2: 9, 3: 3}        # by streams: with two a second is over in a millisecond
KINDS = ("probe", "update", "group")
PIECE = 10_000              # tuples on which a constant is measured (paper A, Table 2)


@dataclass(frozen=True)
class StreamSymbols:
    """λ, w, g, 1/σ of a stream (paper A, Tables 1, 2)."""

    rate: float
    window: int
    groups: int = 1
    distinct: int = 10


@dataclass(frozen=True)
class FigurePoint:
    """A point of a figure."""

    inputs: tuple[StreamSymbols, ...]
    hashed: bool

    def priced(self, constants: Constants = Constants()) -> Setting:
        streams = tuple(
            Priced(f"S{k}", i.rate, i.window, i.groups, 1 / i.distinct) for k, i in enumerate(self.inputs, 1))
        return Setting(streams, "hash" if self.hashed else "nested loop", BUCKETS, constants)


def digits(count: int) -> list[tuple[bool, ...]]:
    return list(product((False, True), repeat=count))


def name(early: tuple[bool, ...]) -> str:
    """LAP, or EAP and a digit a stream."""
    return "EAP" + "".join(str(int(e)) for e in early) if any(early) else "LAP"


def model(case: FigurePoint, constants: Constants) -> dict[str, float]:
    """Seconds a second of each plan by equations 5–12 and their extension."""
    return {name(early): many_way(case.priced(constants), early) for early in digits(len(case.inputs))}


def amounts(case: FigurePoint, early: tuple[bool, ...]) -> list[float]:
    """How often a second the equations count P, U and Ug."""
    units = (Constants(1, 1, 0, 0, 0), Constants(0, 0, 1, 1, 0), Constants(0, 0, 0, 0, 1))
    return [many_way(case.priced(unit), early) for unit in units]


def constants(values: Sequence[float]) -> Constants:
    """From P, U, Ug of one join method."""
    probe, update, group = values
    return Constants(probe, probe, update, update, group)


def measured(case: FigurePoint, scale: float = 1, quick: bool = False) -> Point:
    """Seconds a second of each plan, and a digest of the answer that all give."""
    unit, times = 1 / scale, 1 if quick else TIMES.get(len(case.inputs), min(TIMES.values()))
    streams = [GeneratedStream(i.rate * scale, i.groups, i.distinct) for i in case.inputs]
    spans = tuple(windowed(s, i.window) for s, i in zip(streams, case.inputs))
    fill = max(max(spans) / SECOND, max(i.groups / s.rate for s, i in zip(streams, case.inputs)))
    arriving = merged([generated(s, fill + (times + 1) * unit, seed) for seed, s in enumerate(streams)])
    cuts = [arriving.until(ceil((fill + k * unit) * SECOND)) for k in range(times + 2)]
    filled = aggregation_sets.advance(started(case, spans), arriving.part(0, cuts[1]))
    plans = [
        _TimedPlan(aggregation_sets.switched(filled, early, probes(case, early))) for early in digits(len(case.inputs))
    ]
    seconds = [float("inf")] * len(plans)
    for k in range(1, times + 1):
        piece = arriving.part(*cuts[k:k + 2])
        seconds = list(map(min, seconds, least([partial(plan.go, piece) for plan in plans], 1)))
    answers = [aggregation_sets.answers(p.state) for p in plans]
    if any(answer != answers[0] for answer in answers):
        raise failed("wrong-answer", f"plans of {case} give different answers", "please report this")
    return {
        "seconds": {name(early): s / unit for early, s in zip(digits(len(case.inputs)), seconds)},
        "groups": len(answers[0]),
        "joined": sum(a.pairs for a in answers[0].values())
    }


def started(case: FigurePoint, spans: tuple[int, ...]) -> aggregation_sets.Aggregation:
    """All aggregate early, which is what fills windows fastest; Bi = min(1/σ, B) buckets (20, 21)."""
    windows = JoinWindows(spans, min(max(i.distinct for i in case.inputs), BUCKETS),
                          tuple(i.groups for i in case.inputs))
    early = (True,) * len(case.inputs)
    return aggregation_sets.start(windows, early, probes(case, early), case.hashed, BUCKETS)


def probes(case: FigurePoint, early: tuple[bool, ...]) -> aggregation_sets.Order:
    """The model's order."""
    return tuple(probe_order(case.priced(), early, k) for k in range(len(early)))


@dataclass
class _TimedPlan:
    """A plan's state between the pieces that are timed."""

    state: aggregation_sets.Aggregation

    def go(self, arriving: ArrivingTuples) -> None:
        self.state = aggregation_sets.advance(self.state, arriving)


def calibrated() -> Constants:
    """P, U, Ug apart, on 10,000 tuples: windows where nothing matches cost U by hash and w·P more by nested loop.

    Where all that is probed matches, P + Ug.
    """
    empty = FigurePoint((StreamSymbols(PIECE / 2, 500, 1, 10_000), StreamSymbols(PIECE / 2, 500, 1, 10_000)), True)
    update = _late(empty, 1021) / PIECE / 2
    probe = (_late(replace(empty, hashed=False), 1) / PIECE / 2 - update) / 500
    full = FigurePoint((StreamSymbols(PIECE / 2, 5000, 150), StreamSymbols(PIECE / 2, 5000)), True)
    group = (_late(full, 10) / PIECE / 2 - update) / 500 - probe
    return Constants(probe, probe, update, update, max(group, 0.0))


def _late(case: FigurePoint, buckets: int) -> float:
    """Seconds a second of LAP alone, the least of three."""
    streams = [GeneratedStream(i.rate, i.groups, i.distinct) for i in case.inputs]
    spans = tuple(windowed(s, i.window) for s, i in zip(streams, case.inputs))
    arriving = merged([generated(s, 5, seed) for seed, s in enumerate(streams)])
    windows = JoinWindows(spans, buckets, tuple(i.groups for i in case.inputs))
    begun = aggregation_sets.start(windows, (False, False), hashed=case.hashed)
    running = _TimedPlan(aggregation_sets.advance(begun, arriving.part(0, arriving.until(2 * SECOND))))
    return min(
        least([partial(running.go, arriving.part(arriving.until(k * SECOND), arriving.until((k + 1) * SECOND)))], 1)[0]
        for k in (2, 3, 4))
