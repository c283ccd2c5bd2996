"""Paper D's Tables I to III as continuous pipelines: per setup what factor windows, as the price chooses them, save
over each window by itself and over shared panes, beside the paper's gains.

The same window sets as in `tables`, MIN by device; each set is a point that is kept when it is done. What is compared
is processor time of the tasks, and wall time with all commits and jobs of the pipeline; see `lives`.
"""
from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from itertools import islice, product
from statistics import mean

from jobs.engine.tasks import Tasks
from jobs.papers.experiments import Report, Tell
from jobs.papers.experiments.claims import Claim, Panel, claim, report
from jobs.papers.experiments.points import Point, Points, finished, point, spent, unfinished
from jobs.papers.experiments.windows.lives import ALONE, CHUNKS, FACTORS, PANES, WindowLoad, lived
from jobs.papers.experiments.windows.tables import PAPER, REAL, sets
from jobs.pipeline.config import INLINE
from optimizer.coverage.algebra import Window

RATES = (100, 1)         # events a unit of each device
# by rate, where `--events` says nothing: at one a unit each device has few rows, so answers are many
EVENTS, QUICK = {100: 10_000_000, 1: 2_000_000}, 20_000
SETS, QUICK_SETS = 2, 1
QUICK_SETUPS = ("R-5-tumbling", "S-5-hopping")
REACHED = 0.8            # share of the paper's mean gain that is wanted of each setup
MOST_SLOWER = 1.05       # times shared panes that a chosen plan may take
MARK = "II "             # before a setup of Table II, which has values like a machine's power
# Sets of ours, whose windows have many hops: overlapping levels help MIN there; the paper's overlap twice.
OURS = {"ours, 360/1": (Window(360, 1),), "ours, 60/1 and 360/1": (Window(60, 1), Window(360, 1))}
OUR_RATE = 1
WALL, IN_TASKS = "wall_s", "tasks_s"


def table(quick: bool, tell: Tell, events: int | None = None) -> Report:
    """A row a setup and rate, as far as sets have been run."""
    number, counts = QUICK_SETS if quick else SETS, dict.fromkeys(RATES, events or QUICK) if events or quick else EVENTS
    setups = QUICK_SETUPS if quick else (*PAPER, *(MARK + setup for setup in REAL))
    ours = [(0, OUR_RATE, setup) for setup in OURS if not quick]
    todo = [*ours, *product(range(number), RATES, setups)]
    points = unfinished(f"windows-pipelines-{'-'.join(map(str, counts.values()))}", quick)
    _measure(points, todo, counts, quick, tell)
    rows = []
    for rate in RATES:
        for setup in (*setups, *OURS):
            of_setup = [points.measured[_key(rate, setup, n)] for n in range(number)
                        if _key(rate, setup, n) in points.measured]
            if of_setup:
                rows.append(_row(setup, rate, of_setup))
    whole = all(_key(rate, setup, n) in points.measured for n, rate, setup in todo)
    if whole:
        finished(points)
    listed = ", ".join(f"{count:,} at {rate} a unit of each device" for rate, count in counts.items())
    settings = (f"events: {listed}; {number} window sets a setup, rows in {CHUNKS} runs of which the first "
                "is not counted; times less than each window from the rows by itself, mean / most; tasks: processor "
                "time of Spark's tasks, wall: with ledger, state and results")
    settings += "" if whole else f"; {len(points.measured)} of {len(todo)} sets, the same command goes on"
    return report("Paper D, Tables I to III as pipelines", settings, _panels(rows), said(rows), {"rows": rows},
                  page(rows).split("\n"))


def _measure(points: Points, todo: Sequence[tuple[int, int, str]], counts: Mapping[int, int], quick: bool,
             tell: Tell) -> None:
    tasks = Tasks(INLINE) if quick else Tasks()
    for n, rate, setup in todo:
        key = _key(rate, setup, n)
        if key in points.measured or spent(points):
            continue
        windows = OURS.get(setup) or next(islice(sets(setup.removeprefix(MARK), n + 1), n, None))
        load = WindowLoad(tuple(sorted(windows)), rate, counts[rate], setup.startswith(MARK))
        folder = tempfile.mkdtemp(prefix="forebay-windows-")
        try:
            tell(f"{key}: {point(points, key, lambda: lived(load, folder, tasks))}")
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    tasks.stop()


def _key(rate: int, setup: str, number: int) -> str:
    return f"{rate} {setup} {number}"


def gain(one: Point, than: str, way: str, of: str) -> float:
    """How many times less `way` took."""
    return float(one[than][of] / max(one[way][of], 1e-9))


def _row(setup: str, rate: int, points: Sequence[Point]) -> Report:
    """Means and extremes of a setup's sets."""
    paper = (REAL if setup.startswith(MARK) else PAPER).get(setup.removeprefix(MARK), ())

    def summary(than: str, way: str, of: str) -> list[float]:
        gains = [gain(one, than, way, of) for one in points]
        return [round(mean(gains), 2), round(max(gains), 2), round(min(gains), 2)]

    gains = {way: {of: summary(ALONE, way, of) for of in (IN_TASKS, WALL)} for way in (PANES, FACTORS)}
    return {"setup": setup, "rate": rate, "sets": len(points), "published": list(paper), "gains": gains,
            "over_panes": {of: summary(PANES, FACTORS, of) for of in (IN_TASKS, WALL)},
            "levels": [one["levels"] for one in points],
            "alone_s": [round(mean(one[ALONE][of] for one in points), 2) for of in (IN_TASKS, WALL)],
            "factors_s": [round(mean(one[FACTORS][of] for one in points), 2) for of in (IN_TASKS, WALL)]}


def said(rows: Sequence[Report]) -> list[Claim]:
    """What is wanted, with the numbers that fail it."""
    claims = []
    for rate in RATES:
        of_rate = [row for row in rows if row["rate"] == rate]
        if not of_rate:
            continue
        checks = []
        for row in (row for row in of_rate if row["published"]):
            in_tasks, wall, paper = (row["gains"][FACTORS][IN_TASKS][0], row["gains"][FACTORS][WALL][0],
                                     row["published"][2])
            checks.append((max(in_tasks, wall) >= REACHED * paper,
                           f"{row['setup']} {in_tasks} × in tasks, {wall} × by the wall, of {paper}"))
        claims.append(claim(f"{rate} a unit: the mean gain over each window by itself is at least {REACHED} of the "
                            "paper's in every setup", checks))
        slower = [(min(row["over_panes"][IN_TASKS][2], row["over_panes"][WALL][2]) >= 1 / MOST_SLOWER,
                   f"{row['setup']}: {row['over_panes'][IN_TASKS][2]} in tasks, {row['over_panes'][WALL][2]} by the "
                   "wall in its worst set") for row in of_rate]
        claims.append(claim(f"{rate} a unit: never slower than shared panes by more than {MOST_SLOWER - 1:.0%}",
                            slower))
    return claims


def page(rows: Sequence[Report]) -> str:
    head = ("setup", "events a unit", "sets", "paper, factor windows", "shared panes, tasks", "wall",
            "with factor windows, tasks", "wall", "over shared panes, tasks", "wall", "sets with levels",
            "each by itself, s in tasks / wall", "with factor windows, s")
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for row in rows:
        of_ways = [_pair(row["gains"][way][of]) for way in (PANES, FACTORS) for of in (IN_TASKS, WALL)]
        over = [f"{row['over_panes'][of][0]:.2f} / {row['over_panes'][of][2]:.2f}" for of in (IN_TASKS, WALL)]
        paper = _pair(row["published"][2:]) if row["published"] else ""
        cells = [row["setup"], row["rate"], row["sets"], paper, *of_ways, *over,
                 sum(bool(levels) for levels in row["levels"]), _seconds(row["alone_s"]), _seconds(row["factors_s"])]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def _pair(ratios: Sequence[float]) -> str:
    """Mean and max."""
    return f"{ratios[0]:.2f} / {ratios[1]:.2f}"


def _seconds(took: Sequence[float]) -> str:
    return f"{took[0]:.2f} / {took[1]:.2f}"


def _panels(rows: Sequence[Report]) -> list[Panel]:
    """By rate the gains over each window by itself, in the tasks' processor time, beside the paper's means."""
    panels = []
    for rate in RATES:
        of_rate = [row for row in rows if row["rate"] == rate and row["published"]]
        if not of_rate:
            continue
        names = {PANES: "shared panes", FACTORS: "with factor windows"}
        measured = {name: [row["gains"][way][IN_TASKS][0] for row in of_rate] for way, name in names.items()}
        paper = {names[FACTORS]: [row["published"][2] for row in of_rate]}
        panels.append(Panel(f"{rate} event{'s' if rate > 1 else ''} a unit of each device", "setup",
                            "times each window by itself", tuple(map(float, range(len(of_rate)))), measured, paper,
                            beside="paper", labels=tuple(row["setup"] for row in of_rate)))
    return panels
