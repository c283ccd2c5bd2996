"""Reports of all experiments as pages, pictures and runs in MLflow: the model left and the measurement right, as in
paper A.

Computes nothing.
"""
from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jobs.papers.experiments import Report
from jobs.papers.experiments.claims import HOLDS
from jobs.reports import tracking

WIDTH, WIDE, HEIGHT = 4.5, 7.5, 3.2       # inches of one diagram; of one with names below its bars
MARKS = "o^sDvP*X"
TICKS = [m * 10**n for n in range(6) for m in (1, 2, 5)]


def drawn(name: str, report: Report, folder: Path) -> list[Path]:
    """A page with claims and tables, and an SVG of all panels. The same data gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    page, picture = folder / f"{name}.md", folder / f"{name}.svg"
    _picture(report["panels"], picture, name)
    title, settings, rest = report["title"], report["settings"], report["text"].split("\n", 2)[2]
    command = f"forebay experiment {name}{' --quick' if report.get('quick') else ''}" + (f" --events {report['asked']}"
                                                                                         if report.get("asked") else "")
    page.write_text(f"# {title}\n\n`{command}`. {settings}\n\n![{title}]({picture.name})\n{rest}\n", encoding="utf-8")
    return [page, picture]


def logged(name: str, report: Report) -> dict[str, Any] | None:
    """A run with the picture, the report, its numbers and how many claims hold; says where."""
    texts = {"report.json": json.dumps(report, indent=1, default=str), "report.md": str(report["text"])}
    params = {"quick": report["quick"], "settings": report["settings"]}
    return tracking.record(name, params, metrics(report), texts, {f"{name}.png": _figure(report["panels"])})


def metrics(report: Report) -> dict[str, list[float]]:
    """Single numbers, claims, and each series of each panel, a step an x, in names that MLflow takes."""
    held = sum(c["verdict"] == HOLDS for c in report["claims"])
    numbers = {
        key: [float(value)]
        for key, value in report.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    series: dict[str, list[float]] = {}
    for panel in report["panels"]:
        for ys, kind in ((panel["measured"], ""), (panel["model"], f"/{panel['beside']}")):
            for name, y in ys.items():
                accepted = re.sub(r"[^A-Za-z0-9_\-. :/]", " ", f"{panel['title']}/{name}{kind}")
                series[" ".join(accepted.split())] = y
    return {**numbers, **series, "claims": [float(len(report["claims"]))], "claims_that_hold": [float(held)]}


def _picture(panels: Sequence[Report], file: Path, salt: str) -> None:
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none"}):
        _figure(panels).savefig(file, metadata={"Date": None})


def _figure(panels: Sequence[Report]) -> Any:
    from matplotlib.figure import Figure  # half a second that only pictures pay

    columns = 2 if any(p["model"] for p in panels) else 1
    wide = WIDE if any(p["labels"] for p in panels) else WIDTH
    high = max(len(panels), 1)        # none where time was up before the first point
    figure = Figure(figsize=(wide * columns, HEIGHT * high), layout="constrained")
    grid: Any = figure.subplots(high, columns, squeeze=False)
    for row, panel in zip(grid, panels):
        for axes, kind in zip(row, ("model", "measured") if columns == 2 else ("measured",)):
            (_bars if panel["labels"] else _lines)(axes, panel, kind)
            _framed(axes, panel, kind)
    return figure


def _lines(axes: Any, panel: Report, kind: str) -> None:
    for mark, (series, y) in zip(MARKS * 2, panel[kind].items()):
        (line,) = axes.plot(panel["x"], y, marker=mark, markersize=4, linewidth=1, label=series)
        points = _extrapolated(panel, series, kind)
        if points:
            at = [panel["x"][k] for k in points], [y[k] for k in points]
            axes.plot(*at, mark, markersize=4, color=line.get_color(), markerfacecolor="white")
    if panel["logarithmic"]:
        axes.set_xscale("log")


def _bars(axes: Any, panel: Report, kind: str) -> None:
    each = 0.8 / max(len(panel[kind]), 1)
    for n, (series, y) in enumerate(panel[kind].items()):
        ends = panel["spread"].get(series) if kind == "measured" else None
        error = None
        if ends:
            error = [[a - low for a, (low, _) in zip(y, ends)], [high - a for a, (_, high) in zip(y, ends)]]
        bars = axes.bar([k + n * each for k in range(len(y))], y, each, yerr=error, capsize=1.5, label=series)
        for k in _extrapolated(panel, series, kind):
            bars[k].set(hatch="////", edgecolor="white")
    axes.set_xticks([k + 0.4 - each / 2 for k in range(len(panel["labels"]))], panel["labels"], rotation=30, ha="right")


def _extrapolated(panel: Report, series: str, kind: str) -> Sequence[int]:
    """Points that were not measured whole: hollow marks, hatched bars."""
    points: Sequence[int] = panel["extrapolated"].get(series, ()) if kind == "measured" else ()
    return points


def _framed(axes: Any, panel: Report, kind: str) -> None:
    title = f"{panel['title']}: {panel['beside'] if kind == 'model' else panel['how']}"
    if kind == "measured" and panel["extrapolated"]:
        title += f"\n{'hatched' if panel['labels'] else 'hollow'}: {panel['extrapolation']}"
    axes.set_title(title, fontsize=8)
    axes.set_xlabel(panel["axis"], fontsize=8)
    axes.set_ylabel(panel["unit"], fontsize=8)
    axes.tick_params(labelsize=7)
    if panel["steep"]:
        axes.set_yscale("log")
        if panel["labels"]:
            _steps(axes, panel)
    else:
        axes.set_ylim(bottom=0)
    if panel[kind]:
        axes.legend(fontsize=7)


def _steps(axes: Any, panel: Report) -> None:
    """One scale for both diagrams; a bar has no end on a logarithmic one, so all begin at one half."""
    most = max([y for kind in ("measured", "model") for of in panel[kind].values()
                for y in of] + [y for of in panel["spread"].values() for _, y in of])
    axes.set_ylim(0.5, 2 * most)
    axes.set_yticks([t for t in TICKS if t <= 2 * most], labels=[f"{t:g}" for t in TICKS if t <= 2 * most])
    axes.minorticks_off()
