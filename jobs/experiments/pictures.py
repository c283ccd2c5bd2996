"""Reports with panels as pages and pictures: the model left and the measurement right, as in paper A; draws what it is given, computes nothing."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jobs.experiments import Report

WIDTH, HEIGHT = 4.5, 3.2       # inches of one diagram
MARKS = "o^sDvP*X"


def drawn(name: str, report: Report, folder: Path) -> list[Path]:
    """A page with claims and tables, and an SVG of all panels; nothing for a report without panels. The same data gives the same bytes."""
    panels = report.get("panels") or []
    if not panels:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    page, picture = folder / f"{name}.md", folder / f"{name}.svg"
    _picture(panels, picture, name)
    title, settings, rest = report["title"], report["settings"], report["text"].split("\n", 2)[2]
    command = f"forebay experiment {name}{' --quick' if report.get('quick') else ''}"
    page.write_text(f"# {title}\n\n`{command}`. {settings}\n\n![{title}]({picture.name})\n{rest}\n", encoding="utf-8")
    return [page, picture]


def _picture(panels: Sequence[Report], file: Path, salt: str) -> None:
    import matplotlib
    from matplotlib.figure import Figure

    columns = 2 if any(p["model"] for p in panels) else 1
    figure = Figure(figsize=(WIDTH * columns, HEIGHT * len(panels)), layout="constrained")
    grid: Any = figure.subplots(len(panels), columns, squeeze=False)
    for row, panel in zip(grid, panels):
        for axes, kind in zip(row, ("model", "measured") if columns == 2 else ("measured",)):
            _diagram(axes, panel, kind)
    with matplotlib.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none"}):
        figure.savefig(file, metadata={"Date": None})


def _diagram(axes: Any, panel: Report, kind: str) -> None:
    for mark, (series, y) in zip(MARKS * 2, panel[kind].items()):
        axes.plot(panel["x"], y, marker=mark, markersize=4, linewidth=1, label=series)
    axes.set_title(f"{panel['title']}: {kind}", fontsize=8)
    axes.set_xlabel(panel["axis"], fontsize=8)
    axes.set_ylabel(panel["unit"], fontsize=8)
    axes.tick_params(labelsize=7)
    if panel["logarithmic"]:
        axes.set_xscale("log")
    if panel["steep"]:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    if panel[kind]:
        axes.legend(fontsize=7)
