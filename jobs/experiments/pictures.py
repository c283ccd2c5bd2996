"""Reports with panels as pages, pictures and runs in MLflow: the model left and the measurement right, as in paper A; computes nothing."""
from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jobs import tracking
from jobs.experiments import Report
from jobs.experiments.claims import HOLDS

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


def logged(name: str, report: Report) -> dict[str, Any] | None:
    """A run with the picture, the report, its numbers and how many claims hold; says where."""
    numbers = {key: float(value) for key, value in report.items() if isinstance(value, (int, float)) and not isinstance(value, bool)}
    claims = {"claims": float(len(report["claims"])), "claims_that_hold": float(sum(c["verdict"] == HOLDS for c in report["claims"]))}
    texts = {"report.json": json.dumps(report, indent=1, default=str), "report.md": str(report["text"])}
    return tracking.record(name, {"quick": report["quick"], "settings": report["settings"]}, {**numbers, **claims}, texts,
                           {f"{name}.png": _figure(report["panels"])})


def _picture(panels: Sequence[Report], file: Path, salt: str) -> None:
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none"}):
        _figure(panels).savefig(file, metadata={"Date": None})


def _figure(panels: Sequence[Report]) -> Any:
    from matplotlib.figure import Figure  # half a second that only pictures pay

    columns = 2 if any(p["model"] for p in panels) else 1
    figure = Figure(figsize=(WIDTH * columns, HEIGHT * len(panels)), layout="constrained")
    grid: Any = figure.subplots(len(panels), columns, squeeze=False)
    for row, panel in zip(grid, panels):
        for axes, kind in zip(row, ("model", "measured") if columns == 2 else ("measured",)):
            _diagram(axes, panel, kind)
    return figure


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
