"""Paper B's Figs. 4–8: WNL and WHJ by relative rate, buckets, selectivity; four ways of invalidation by time and by
what they keep; equations beside.

The paper's setting: 60 s of tuples, windows of 30 s, the last 30 s timed; λB = 100 a second. Where a point would take
minutes (nested loops at rates × 100) only so many of the last tuples are timed and their time is scaled to 30 s: such a
point is marked as extrapolated. The steps' costs are tuned to each figure's measurements.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from jobs.papers.experiments import Report, Tell
from jobs.papers.experiments.agreement import bend, growth, relative, spearman, tuned
from jobs.papers.experiments.claims import Claim, Panel, claim, measured_and_model, report
from jobs.papers.experiments.points import Point, finished, least, point, unfinished
from jobs.papers.generator import SECOND, GeneratedStream, generated, merged
from jobs.papers.operators import window_join
from jobs.papers.operators.arrivals import ArrivingTuples, JoinWindows
from optimizer.papers.window_join import STRATEGIES, Buffer, Steps, invalidating_join, occupancy, useful_buckets
from optimizer.papers.window_join import window_join as priced

RATE, WINDOW, WHOLE = 100, 30, 60           # tuples a second, seconds, seconds
BUCKETS = DISTINCT = 100
RELATIVE = (0.1, 0.5, 1.0, 2.0, 5.0)        # λA / λB
LOOPED, HASHED = 4_000, 100_000             # tuples timed of a nested loop and of a hash join at rates × 100
GAIN = 100                                  # WHJ over WNL, by tuples a second: "two order of magnitude"
AIM = 1_000_000                             # tuples a second of WHJ
EVERY = 2                                   # seconds between samples of Fig. 8
ALIKE = 0.10                                # shares within which two figures are the same
STRAIGHT = 0.15                             # the farthest that a point of a straight line is off, of the mean
SUBSTANTIAL = 1.5                           # times from which one is "substantially" slower
SCALED = "the seconds of a part of the last 30 s' tuples, scaled to all"


def arriving(a: float, b: float, distinct: int, seconds: float = WHOLE) -> ArrivingTuples:
    return merged([generated(GeneratedStream(rate, 1, distinct), seconds, seed) for seed, rate in enumerate((a, b))])


def timed(a: float, b: float, buckets: int, distinct: int = DISTINCT, strategy: str = "probe and insert",
          most: int | None = None, times: int = 3) -> Point:
    """Seconds for the tuples of the last 30 s, the least of three; matches of those that were timed, and of the first
    ones, which every join times whatever `most` says.
    """
    tuples = arriving(a, b, distinct)
    half = tuples.until(WINDOW * SECOND)
    last = tuples.part(half, len(tuples) if most is None else min(len(tuples), half + most))
    windows = JoinWindows((WINDOW * SECOND,) * 2, buckets)
    fastest, matches, first = float("inf"), 0, 0
    for _ in range(times):
        full, _ = window_join.advance(window_join.filled(window_join.start(windows, strategy), tuples.part(0, half)),
                                      last.part(0, 0))
        outcome: list[window_join.Joined] = []

        def join(state: window_join.WindowJoin = full) -> None:
            outcome.append(window_join.advance(state, last)[1])

        fastest = min(fastest, least([join], 1)[0])
        matches, first = int(outcome[0].matches.sum()), int(outcome[0].matches[:LOOPED].sum())
    whole = len(tuples) - half
    return {"seconds": fastest * whole / len(last), "tuples": whole, "timed": len(last), "matches": matches,
            "first": first}


def _scaled(points_by_series: Mapping[str, Sequence[Point]]) -> dict[str, tuple[int, ...]]:
    """Which points are of a part of the tuples only, by series."""
    parts = {name: tuple(k for k, p in enumerate(of) if p["timed"] < p["tuples"])
             for name, of in points_by_series.items()}
    return {name: part for name, part in parts.items() if part}


def figure_4(quick: bool, tell: Tell) -> Report:
    """Both joins by relative rate."""
    points = unfinished("b-fig4", quick)
    panels: list[Panel] = []
    claims: list[Claim] = []
    for scale in (1,) if quick else (1, 100):
        measurements = {}
        for x in RELATIVE[::2] if quick else RELATIVE:
            for join, buckets in (("WNL", 1), ("WHJ", BUCKETS)):
                most = None if scale == 1 else LOOPED if buckets == 1 else HASHED
                measurements[x, join] = point(points, f"{scale} {x} {join}, matches compared",
                                              lambda: timed(x * RATE * scale, RATE * scale, buckets, most=most))
                tell(f"λA/λB {x:g} × {scale} {join}: {measurements[x, join]['seconds']:.3g} s")
        panel = _by_rate(measurements, scale)
        panels.append(panel)
        claims += _judged_4(panel, measurements, scale)
    finished(points)
    details = "λB = 100/s, windows 30 s, 100 buckets, σ = 0.01; s for 30 s of tuples, the least of three runs"
    return report("Paper B, Fig. 4: WNL and WHJ by relative rate of the streams", details, panels, claims,
                  {"figure": 4})


def _by_rate(measurements: Mapping[tuple[float, str], Point], scale: int) -> Panel:
    xs = tuple(sorted({x for x, _ in measurements}))
    buckets = {"WNL": 1, "WHJ": BUCKETS}
    settings = [(_buffers(x * RATE * scale, RATE * scale, buckets[j]), None) for j in buckets for x in xs]
    model = _model(settings, [measurements[x, j]["seconds"] for j in buckets for x in xs])
    cut = len(xs)
    return Panel("rates" + ("" if scale == 1 else f" × {scale}"), "λA / λB", "s", xs,
                 {join: [measurements[x, join]["seconds"] for x in xs] for join in buckets},
                 {"WNL": model[:cut], "WHJ": model[cut:]}, steep=True,
                 extrapolated=_scaled({j: [measurements[x, j] for x in xs] for j in buckets}), extrapolation=SCALED)


def _judged_4(panel: Panel, measurements: Mapping[tuple[float, str], Point], scale: int) -> list[Claim]:
    loop, hashed = measurements[1.0, "WNL"], measurements[1.0, "WHJ"]
    gain, speed = loop["seconds"] / hashed["seconds"], hashed["tuples"] / hashed["seconds"]
    scanned = loop["seconds"] / loop["tuples"] / (RATE * scale * WINDOW)
    bucket, each = scanned * RATE * scale * WINDOW / BUCKETS * 1e9, hashed["seconds"] / hashed["tuples"] * 1e9
    fixed = (f"a tuple is scanned in {scanned * 1e9:.2g} ns, several at once, so of WHJ's {each:.3g} ns a tuple the "
             f"scan of a bucket takes about {bucket:.3g} ns")
    bent = {join: bend(panel.x, y) for join, y in panel.measured.items()}
    aim = claim(f"ours: WHJ takes at least {AIM:,} tuples a second on a core", [(speed >= AIM, f"{speed:,.0f}")])
    return [
        claim(
            f"WHJ is two orders of magnitude ({GAIN} ×) faster than WNL at λA = λB, rates × {scale}",
            [(gain >= GAIN,
              f"{gain:.3g} ×; WNL {loop['tuples'] / loop['seconds']:.3g}, WHJ {speed:.3g} tuples a second; {fixed}")]),
        *([aim] if scale == 1 else []),
        claim(f"the cost is linear in one stream's rate, rates × {scale}",
              [(b < STRAIGHT, f"a point of {join} is {b:.0%} of the mean off a line") for join, b in bent.items()]),
        _same_matches(measurements, scale)
    ]


def _same_matches(measurements: Mapping[tuple[float, str], Point], scale: int) -> Claim:
    """Of the same tuples: the first of the last 30 s, at every relative rate."""
    checks = []
    for x in sorted({x for x, _ in measurements}):
        loop, hashed = measurements[x, "WNL"], measurements[x, "WHJ"]
        count = min(LOOPED, loop["timed"])
        checks.append((loop["first"] == hashed["first"],
                       f"at {x:g} {hashed['first']:,} by WHJ, {loop['first']:,} by WNL, of {count:,} tuples"))
    return claim(f"both find as many matches for the same tuples, rates × {scale}", checks)


def _buffers(a: float, b: float, buckets: float) -> tuple[Buffer, Buffer]:
    return Buffer("A", a, WINDOW, buckets), Buffer("B", b, WINDOW, buckets)


def _model(settings: Sequence[tuple[tuple[Buffer, Buffer], str | None]], measured: Sequence[float]) -> list[float]:
    """Eqs.

    1 and 2 for 30 s, with the looks of section 3.2 where a strategy is named; tuned: one cost of arriving, one of a
    tuple scanned or looked at.
    """
    def cost(buffers: tuple[Buffer, Buffer], strategy: str | None, steps: Steps) -> float:
        return WINDOW * (priced(*buffers, steps)
                         if strategy is None else invalidating_join(*buffers, steps, strategy)).total

    rows = [[cost(*s, Steps(0.5, 0.5, 0)), cost(*s, Steps(0, 0, 1))] for s in settings]
    arrive, scan = tuned(rows, measured)
    return [cost(*s, Steps(arrive / 2, arrive / 2, scan)) for s in settings]


def figure_5(quick: bool, tell: Tell) -> Report:
    """WHJ by buckets at one selectivity."""
    return _buckets(5, (DISTINCT,), quick, tell)


def figure_6(quick: bool, tell: Tell) -> Report:
    """WHJ by buckets and selectivity."""
    return _buckets(6, (10, 100, 1000), quick, tell)


def _buckets(number: int, distinct: Sequence[int], quick: bool, tell: Tell) -> Report:
    points = unfinished(f"b-fig{number}", quick)
    panels: list[Panel] = []
    claims: list[Claim] = []
    xs = (1, 10, 100, 1000) if quick else (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
    for scale in (1,) if quick else (1, 10):
        seconds_by_series: dict[str, list[float]] = {}
        points_by_series: dict[str, list[Point]] = {}
        for d in distinct:
            measurements = [
                point(points, f"{scale} {d} {n}", lambda: timed(RATE * scale, RATE * scale, n, d, most=LOOPED
                                                                if scale > 1 else None)) for n in xs
            ]
            points_by_series[f"σ = {1 / d:g}"] = measurements
            seconds_by_series[f"σ = {1 / d:g}"] = [p["seconds"] for p in measurements]
            tell(f"σ {1 / d:g} × {scale}: " + ", ".join(f"{p['seconds']:.3g}" for p in measurements))
        settings = [(_buffers(RATE * scale, RATE * scale, useful_buckets(n, d)), None) for d in distinct for n in xs]
        model = _model(settings, [s for y in seconds_by_series.values() for s in y])
        panel = Panel(f"buckets, rates × {scale}", "buckets", "s", tuple(map(float, xs)), seconds_by_series,
                      {k: model[i * len(xs):(i + 1) * len(xs)] for i, k in enumerate(seconds_by_series)}, True, True,
                      extrapolated=_scaled(points_by_series), extrapolation=SCALED)
        panels.append(panel)
        for series, d in zip(seconds_by_series, distinct):
            claims += _by_buckets(panel, series, d)
        claims.append(_agrees(panel))
    finished(points)
    return report(f"Paper B, Fig. {number}: WHJ by buckets" + (" and selectivity" if number == 6 else ""),
                  "λ = 100/s (× 10: 1,000/s), windows 30 s; the least of three runs; Eq. 2 with no more buckets than "
                  "distinct join values",
                  panels, claims, {"figure": number})


def _by_buckets(panel: Panel, series: str, distinct: int) -> list[Claim]:
    """Inversely proportional up to as many buckets as distinct join values, the same from there on."""
    y = dict(zip(panel.x, panel.measured[series]))
    fewer = [n for n in panel.x if n <= distinct]
    power, gain = growth(fewer, [y[n] for n in fewer]), y[1.0] / y[float(distinct)]
    claims = [
        claim(f"time is inversely proportional to the buckets up to the distinct join values, {series}, {panel.title}",
              [(abs(power + 1) <= ALIKE, f"it goes with the power {power:g} of them"),
               (gain >= (1 - ALIKE) * distinct, f"one bucket takes {gain:.3g} × the time of {distinct}")])
    ]
    after = [y[n] / y[float(distinct)] for n in panel.x if n > distinct]
    if after:
        claims.append(
            claim(f"more buckets than distinct join values change nothing, {series}, {panel.title}",
                  [(max(relative(a, 1) for a in after) <= ALIKE,
                    f"they take {min(after):.2f} to {max(after):.2f} of the time of {distinct}")]))
    return claims


def _agrees(panel: Panel) -> Claim:
    rho = spearman(*measured_and_model([panel]))
    return claim(f"equations and measurement rank alike, {panel.title}", [(rho >= 0.95, f"Spearman {rho}")])


def figure_7(quick: bool, tell: Tell) -> Report:
    """Time of the four strategies by rate."""
    points = unfinished("b-fig7", quick)
    panels: list[Panel] = []
    claims: list[Claim] = []
    xs = (50, 100, 200) if quick else (50, 100, 200, 400)
    for scale in (1,) if quick else (1, 100):
        most = None if scale == 1 else 50_000
        points_by_strategy: dict[str, list[Point]] = {s: [] for s in STRATEGIES}
        for s, x in product(STRATEGIES, xs):
            measurement = point(points, f"{scale} {s} {x}",
                                lambda: timed(x * scale, x * scale, BUCKETS, strategy=s, most=most))
            points_by_strategy[s].append(measurement)
        seconds_by_strategy = {s: [p["seconds"] for p in of] for s, of in points_by_strategy.items()}
        tell(f"× {scale}: {seconds_by_strategy}")
        settings = [(_buffers(x * scale, x * scale, BUCKETS), s) for s in STRATEGIES for x in xs]
        model = _model(settings, [y for s in STRATEGIES for y in seconds_by_strategy[s]])
        panel = Panel(f"invalidation, rates × {scale}", "λA = λB, a second", "s", tuple(float(x * scale) for x in xs),
                      dict(seconds_by_strategy), {
                          s: model[i * len(xs):(i + 1) * len(xs)] for i, s in enumerate(STRATEGIES)
                      }, steep=True, extrapolated=_scaled(points_by_strategy), extrapolation=SCALED)
        panels.append(panel)
        claims += [*_judged_7(panel, scale), _agrees(panel)]
    finished(points)
    details = "100 buckets, σ = 0.01, windows 30 s; s for 30 s of tuples, the least of three runs"
    return report("Paper B, Fig. 7: time of four ways of invalidation", details, panels, claims, {"figure": 7})


def _judged_7(panel: Panel, scale: int) -> list[Claim]:
    """At every rate: the slower of the two lazy ways against the faster of the two that clear all buckets."""
    y = panel.measured
    near = [(x, b / a) for x, a, b in zip(panel.x, y["probe"], y["probe and insert"])]
    lazy = list(map(max, y["probe"], y["probe and insert"]))
    eager = list(map(min, y["all probed"], y["optimal"]))
    more = [(x, b / a) for x, a, b in zip(panel.x, lazy, eager)]
    return [
        claim(f"probe and insert is as fast as probe, rates × {scale}",
              [(ratio <= 1 + ALIKE, f"at {x:g} a second {ratio:.2f} of its time") for x, ratio in near]),
        claim(f"both are substantially ({SUBSTANTIAL} ×) faster than clearing all buckets, rates × {scale}",
              [(ratio >= SUBSTANTIAL, f"at {x:g} a second all buckets take at least {ratio:.2f} ×")
               for x, ratio in more])
    ]


def figure_8(quick: bool, tell: Tell) -> Report:
    """What the probed stream's buffer holds, sampled every 2 s; its rate is 100 × that of the probing one."""
    panels: list[Panel] = []
    claims: list[Claim] = []
    for scale in (1,) if quick else (1, 10):
        probed, probing = RATE * scale, RATE * scale / 100
        tuples = arriving(probed, probing, DISTINCT)
        at = [tuples.until(t * SECOND) - 1 for t in range(EVERY, WHOLE + 1, EVERY)]
        held = {
            s: window_join.advance(window_join.start(JoinWindows((WINDOW * SECOND,) * 2, BUCKETS), s),
                                   tuples)[1].held[:, 0] for s in STRATEGIES
        }
        steady = {s: float(k[tuples.until(WINDOW * SECOND):].mean()) for s, k in held.items()}
        buffer, other = Buffer("probed", probed, WINDOW, BUCKETS), Buffer("probing", probing, WINDOW, BUCKETS)
        expected = {s: occupancy(buffer, other, s) for s in STRATEGIES}
        tell(f"{steady}")
        sampled = {s: [float(k[i]) for i in at] for s, k in held.items()}
        times = tuple(map(float, range(EVERY, WHOLE + 1, EVERY)))
        panels.append(
            Panel(f"buffer, {probed:g}/s probed by {probing:g}/s", "seconds", "tuples kept", times, sampled, {}))
        share = {s: steady[s] / steady["optimal"] for s in STRATEGIES}
        others = [(relative(share[s], 1) < ALIKE, f"{s} keeps {share[s]:.3f} of optimal")
                  for s in ("probe and insert", "all probed")]
        claims += [
            claim(f"all but probe keep about the same, {probed:g}/s",
                  [*others, (share["probe"] > 1 + ALIKE, f"probe keeps {share['probe']:.2f}")]),
            claim(f"what is stale is at most what section 3.2 says, {probed:g}/s",
                  [(steady[s] <= expected[s] *
                    (1 + ALIKE), f"{s}: mean {steady[s]:,.0f}, by the model {expected[s]:,.0f}") for s in STRATEGIES])
        ]
    return report("Paper B, Fig. 8: what four ways of invalidation keep", "σ = 0.01, 100 buckets, windows 30 s", panels,
                  claims, {"figure": 8})
