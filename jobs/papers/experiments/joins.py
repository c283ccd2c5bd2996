"""Paper B's Figs. 4–8: WNL and WHJ by relative rate, buckets, selectivity; four ways of invalidation by time and by
what they keep; equations beside.

The paper's setting: 60 s of tuples, windows of 30 s, the last 30 s timed; λB = 100 a second. Where a point would take
minutes (nested loops at rates × 100) only so many of the last tuples are timed and their time is scaled to 30 s. The
steps' costs are tuned to each figure's measurements.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from jobs.papers.experiments import Report, Tell
from jobs.papers.experiments.agreement import relative, slope, spearman, tuned
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
GAIN = 80                                   # WHJ over WNL, by tuples a second
AIM = 1_000_000                             # tuples a second of WHJ
EVERY = 2                                   # seconds between samples of Fig. 8
ALIKE = 0.10


def arriving(a: float, b: float, distinct: int, seconds: float = WHOLE) -> ArrivingTuples:
    return merged([generated(GeneratedStream(rate, 1, distinct), seconds, seed) for seed, rate in enumerate((a, b))])


def timed(a: float, b: float, buckets: int, distinct: int = DISTINCT, strategy: str = "probe and insert",
          most: int | None = None, times: int = 3) -> Point:
    """Seconds for the tuples of the last 30 s, the least of three; the matches of those that were timed."""
    tuples = arriving(a, b, distinct)
    half = tuples.until(WINDOW * SECOND)
    last = tuples.part(half, len(tuples) if most is None else min(len(tuples), half + most))
    windows = JoinWindows((WINDOW * SECOND,) * 2, buckets)
    fastest, matches = float("inf"), 0
    for _ in range(times):
        full, _ = window_join.advance(window_join.filled(window_join.start(windows, strategy), tuples.part(0, half)),
                                      last.part(0, 0))
        outcome: list[window_join.Joined] = []

        def join(state: window_join.WindowJoin = full) -> None:
            outcome.append(window_join.advance(state, last)[1])

        fastest = min(fastest, least([join], 1)[0])
        matches = int(outcome[0].matches.sum())
    whole = len(tuples) - half
    return {"seconds": fastest * whole / len(last), "tuples": whole, "timed": len(last), "matches": matches}


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
                measurements[x, join] = point(points, f"{scale} {x} {join}",
                                              lambda: timed(x * RATE * scale, RATE * scale, buckets, most=most))
                tell(f"λA/λB {x:g} × {scale} {join}: {measurements[x, join]['seconds']:.3g} s")
        panel = _by_rate(measurements, scale)
        panels.append(panel)
        claims += _judged_4(panel, measurements[1.0 if not quick else RELATIVE[2], "WNL"],
                            measurements[1.0 if not quick else RELATIVE[2], "WHJ"], scale)
    finished(points)
    return report("Paper B, Fig. 4: WNL and WHJ by relative rate of the streams",
                  "λB = 100/s, windows 30 s, 100 buckets, σ = 0.01; s for 30 s of tuples", panels, claims,
                  {"figure": 4})


def _by_rate(measurements: Mapping[tuple[float, str], Point], scale: int) -> Panel:
    xs = tuple(sorted({x for x, _ in measurements}))
    buckets = {"WNL": 1, "WHJ": BUCKETS}
    settings = [(_buffers(x * RATE * scale, RATE * scale, buckets[j]), None) for j in buckets for x in xs]
    model = _model(settings, [measurements[x, j]["seconds"] for j in buckets for x in xs])
    cut = len(xs)
    return Panel("rates" + ("" if scale == 1 else f" × {scale}"), "λA / λB", "s", xs,
                 {join: [measurements[x, join]["seconds"] for x in xs] for join in buckets},
                 {"WNL": model[:cut], "WHJ": model[cut:]}, steep=True)


def _judged_4(panel: Panel, loop: Point, hashed: Point, scale: int) -> list[Claim]:
    gain, speed = loop["seconds"] / hashed["seconds"], hashed["tuples"] / hashed["seconds"]
    scanned = loop["seconds"] / loop["tuples"] / (RATE * scale * WINDOW)
    bucket, each = scanned * RATE * scale * WINDOW / BUCKETS * 1e9, hashed["seconds"] / hashed["tuples"] * 1e9
    fixed = (f"a tuple is scanned in {scanned * 1e9:.2g} ns, several at once, so of WHJ's {each:.3g} ns a tuple the "
             f"scan of a bucket takes about {bucket:.3g} ns")
    straight = relative(
        slope(panel.x, panel.measured["WNL"]) * (panel.x[-1] - panel.x[0]),
        panel.measured["WNL"][-1] - panel.measured["WNL"][0]) < ALIKE
    same = loop["matches"] == hashed["matches"] or loop["timed"] != hashed["timed"]
    return [
        claim(
            f"WHJ is two orders of magnitude faster than WNL at λA = λB, rates × {scale} (here: at least {GAIN} ×)",
            [(gain >= GAIN,
              f"{gain:.3g} ×; WNL {loop['tuples'] / loop['seconds']:.3g}, WHJ {speed:.3g} tuples a second; {fixed}")]),
        *([claim(f"WHJ takes at least {AIM:,} tuples a second on a core", [(speed >= AIM,
                                                                            f"{speed:,.0f}")])] if scale == 1 else []),
        claim(f"the cost is linear in one stream's rate, rates × {scale}",
              [(straight, "WNL's slope through all points is that through the ends")]),
        claim(f"both find the same matches, rates × {scale}",
              [(same, f"{hashed['matches']} by WHJ, {loop['matches']} by WNL of {loop['timed']} tuples")])
    ]


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
        for d in distinct:
            measurements = [
                point(points, f"{scale} {d} {n}", lambda: timed(RATE * scale, RATE * scale, n, d, most=LOOPED
                                                                if scale > 1 else None)) for n in xs
            ]
            seconds_by_series[f"σ = {1 / d:g}"] = [p["seconds"] for p in measurements]
            tell(f"σ {1 / d:g} × {scale}: " + ", ".join(f"{p['seconds']:.3g}" for p in measurements))
        settings = [(_buffers(RATE * scale, RATE * scale, useful_buckets(n, d)), None) for d in distinct for n in xs]
        model = _model(settings, [s for y in seconds_by_series.values() for s in y])
        panel = Panel(f"buckets, rates × {scale}", "buckets", "s", tuple(map(float, xs)), seconds_by_series,
                      {k: model[i * len(xs):(i + 1) * len(xs)] for i, k in enumerate(seconds_by_series)}, True, True)
        panels.append(panel)
        claims += [_flattens(panel, series, d) for series, d in zip(seconds_by_series, distinct)] + [_agrees(panel)]
    finished(points)
    return report(f"Paper B, Fig. {number}: WHJ by buckets" + (" and selectivity" if number == 6 else ""),
                  "λ = 100/s (× 10: 1,000/s), windows 30 s; Eq. 2 with no more buckets than distinct join values",
                  panels, claims, {"figure": number})


def _flattens(panel: Panel, series: str, distinct: int) -> Claim:
    """Falls up to as many buckets as distinct join values, stays from there on."""
    y = dict(zip(panel.x, panel.measured[series]))
    before, after = y[1.0] / y[float(distinct)], [y[n] / y[float(distinct)] for n in y if n > distinct]
    checks = [(before > distinct / 10, f"one bucket takes {before:.3g} × the time of {distinct}")]
    checks += [(all(relative(a, 1) < 0.5 for a in after),
                f"more buckets take {min(after):.2f} to {max(after):.2f} of it")] if after else []
    return claim(f"time falls with the buckets until they are the distinct join values, {series}, {panel.title}",
                 checks)


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
        seconds_by_strategy: dict[str, list[float]] = {s: [] for s in STRATEGIES}
        for s, x in product(STRATEGIES, xs):
            measurement = point(points, f"{scale} {s} {x}",
                                lambda: timed(x * scale, x * scale, BUCKETS, strategy=s, most=most))
            seconds_by_strategy[s].append(measurement["seconds"])
        tell(f"× {scale}: {seconds_by_strategy}")
        settings = [(_buffers(x * scale, x * scale, BUCKETS), s) for s in STRATEGIES for x in xs]
        model = _model(settings, [y for s in STRATEGIES for y in seconds_by_strategy[s]])
        panel = Panel(f"invalidation, rates × {scale}", "λA = λB, a second", "s", tuple(float(x * scale) for x in xs),
                      dict(seconds_by_strategy), {
                          s: model[i * len(xs):(i + 1) * len(xs)] for i, s in enumerate(STRATEGIES)
                      }, steep=True)
        panels.append(panel)
        eager = min(seconds_by_strategy["all probed"][-1], seconds_by_strategy["optimal"][-1])
        near = seconds_by_strategy["probe and insert"][-1] / seconds_by_strategy["probe"][-1]
        more = eager / seconds_by_strategy["probe and insert"][-1]
        slower = (more > 1.5, f"all buckets take at least {more:.2f} × it")
        claims += [
            claim(f"probe and insert is as fast as probe, rates × {scale}",
                  [(near < 1 + ALIKE, f"{near:.2f} of its time")]),
            claim(f"both are substantially faster than clearing all buckets, rates × {scale}", [slower]),
            _agrees(panel)
        ]
    finished(points)
    details = "100 buckets, σ = 0.01, windows 30 s; s for 30 s of tuples"
    return report("Paper B, Fig. 7: time of four ways of invalidation", details, panels, claims, {"figure": 7})


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
