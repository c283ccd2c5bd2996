"""Fig. 10's four settings on micro-batches: every plan and way of keeping runs for real, one task in this process, at
several ratios of window to batch.

Windows hold ten times the paper's tuples, so that a batch is more than its fixed cost; groups and selectivities are the
paper's. Of a plan's ways of keeping the fastest counts. What differs from event by event is the point: rows that come
together are aggregated together, whatever the plan.
"""
from __future__ import annotations

from collections.abc import Mapping

from jobs.calibrate import trial
from jobs.calibrate.exact import observe
from jobs.papers.experiments import Report, Tell
from jobs.papers.experiments.claims import Claim, Panel, claim, report
from jobs.papers.experiments.points import Point, finished, point, unfinished
from jobs.papers.experiments.winners import SHOWCASES
from optimizer.cost.features import building, steady
from optimizer.plan.model import Plan, candidates
from optimizer.query.model import Query
from optimizer.query.shape import shape
from optimizer.statistics.model import QueryStatistics

LENGTHS = (10, 120)              # seconds of a window; a batch is trial.BATCH
QUICK = "c"                      # showcases
MORE = 10                        # times the paper's tuples a window
MOST_ROWS = 1e8                  # joined rows of a batch beyond which a plan is not run
SELECT, GROUP = "s1.g, s2.g AS g2, COUNT(*) AS n, SUM(s1.a) AS x", "s1.g, s2.g"


def figure_10(quick: bool, tell: Tell) -> Report:
    """A panel a showcase: milliseconds of a warm batch by the window's length."""
    points = unfinished("a-fig10-batches", quick)
    panels: list[Panel] = []
    claims: list[Claim] = []
    for letter in QUICK if quick else SHOWCASES:
        points_by_range = {}
        for seconds in LENGTHS[:1] if quick else LENGTHS:
            points_by_range[seconds] = point(points, f"{letter} {seconds}", lambda: _measured(letter, seconds))
            ms_by_plan, keeping = points_by_range[seconds]["ms"], points_by_range[seconds]["keeping"]
            times = [f"{name} {ms:.3g} ms ({keeping[name]})" for name, ms in ms_by_plan.items()]
            tell(f"{letter} {seconds} s: {', '.join(times)}")
        measured = {}
        for name in ("LAP", "EAP10", "EAP01", "EAP11"):
            ms_by_range = [p["ms"].get(name) for p in points_by_range.values()]
            if None not in ms_by_range:
                measured[name] = ms_by_range
        panels.append(
            Panel(f"({letter}) {SHOWCASES[letter][0]} is the best event by event", "window, s", "ms a batch",
                  tuple(map(float, points_by_range)), measured, {}, True, True))
        claims.append(_judged(letter, points_by_range))
    finished(points)
    settings = (f"Batches of {trial.BATCH} s; the window has {MORE} × the paper's tuples however long it is; the "
                "fastest way of keeping of each plan")
    return report("Paper A, Fig. 10 on micro-batches: which plan wins", settings, panels, claims, {"figure": 10})


def _setting(letter: str, seconds: int) -> trial.TrialSetting:
    _, *streams = SHOWCASES[letter]
    both = tuple(
        trial.TrialStream(max(1, round(w * MORE / seconds)), f"{seconds} SECONDS", seconds, distinct, groups)
        for w, groups, distinct in streams)
    return trial.TrialSetting(f"{letter} {seconds} s", both, SELECT, group=GROUP)


def _measured(letter: str, seconds: int) -> Point:
    """Milliseconds of a warm batch by plan, with the way of keeping that took them.

    Plans with too many pairs are left out.
    """
    setting = _setting(letter, seconds)
    with trial.generated(setting) as data:
        observed = observe(data, setting.full)
        able = [c.plan for c in candidates(setting.query) if not c.refused]
        ran = trial.run(data, [p for p in able if joined_rows(setting.query, p, observed) <= MOST_ROWS])
    best: dict[str, tuple[float, str]] = {}
    for name, (_, warm) in ran.items():
        digits, keeping = name.split(" ", 1)
        best[digits] = min(best.get(digits, (float("inf"), "")), (warm * 1000, keeping))
    return {"ms": {d: ms for d, (ms, _) in best.items()}, "keeping": {d: keeping for d, (_, keeping) in best.items()}}


def _judged(letter: str, points_by_range: Mapping[int, Point]) -> Claim:
    wanted = SHOWCASES[letter][0]
    checks = []
    for seconds, p in points_by_range.items():
        best = min(p["ms"], key=lambda n: p["ms"][n])
        rest = p["ms"].get(wanted, float("inf")) / p["ms"][best]
        checks.append(
            (best == wanted,
             f"{seconds} s: {best} {p['keeping'][best]} {p['ms'][best]:.3g} ms, {wanted} takes {rest:.2f} × it"))
    return claim(f"({letter}) {wanted} is the best on micro-batches, too", checks)


def joined_rows(query: Query, plan: Plan, observed: QueryStatistics) -> float:
    """Joined rows of the dearest of a plan's batches; `pairs` counts their values."""
    width = len(query.groups) + 1 + len(shape(query).measures)
    of_batches = [work(query, plan, observed).total.get("pairs", 0.0) for work in (building, steady)]
    return max(of_batches) / width
