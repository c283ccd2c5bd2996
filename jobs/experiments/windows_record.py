"""Reports of window experiments as pictures and as runs in MLflow (jobs.tracking); draws and logs what it is given, measures nothing."""
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from jobs import tracking
from jobs.experiments import Report

WIDTH, HEIGHT = 12, 4.5       # inches, of one rate
BARS = (("shared", "shared"), ("chosen", "by measured prices"), ("slicing", "stream slicing"))


def chart(report: Report) -> Any:
    """By rate: throughput over all windows as written, means with the least and the most of the sets, and what the paper has."""
    from matplotlib.figure import Figure  # half a second that only pictures pay

    rows: Sequence[Report] = report["rows"]
    rates = sorted({r["rate"] for r in rows})
    figure = Figure(figsize=(WIDTH, HEIGHT * len(rates)), layout="constrained")
    for axes, rate in zip(figure.subplots(len(rates), 1, squeeze=False)[:, 0], rates):
        _bars(axes, [r for r in rows if r["rate"] == rate])
        axes.set(title=f"{rate} event{'s' if rate > 1 else ''} a unit of time, {report['events']:,} events", ylabel="times as written")
    return figure


def _bars(axes: Any, rows: Sequence[Report]) -> None:
    places = range(len(rows))
    for n, (plan, label) in enumerate(BARS):
        found = [r["throughput"][plan] for r in rows]
        spread = [[mean - least for mean, _, least in found], [most - mean for mean, most, _ in found]]
        axes.bar([p + (n - 1) * 0.22 for p in places], [mean for mean, _, _ in found], 0.22, yerr=spread, label=label, capsize=2)
    axes.scatter(places, [r["published"][2] for r in rows], marker="_", s=400, color="black", label="paper, with factor windows", zorder=3)
    axes.axhline(1, color="grey", linewidth=0.8)
    axes.set_xticks(list(places), [r["setup"] for r in rows], rotation=20)
    axes.legend()


def logged(name: str, report: Report, figure: Any | None = None) -> dict[str, Any] | None:
    texts = {"report.json": json.dumps(report, indent=1, default=str), "report.md": str(report["text"])}
    return tracking.record(name, {"events": report["events"]}, metrics(report["rows"]), texts, {"throughput.png": figure} if figure is not None else {})


def metrics(rows: Sequence[Report]) -> Mapping[str, float]:
    """Numbers of the rows by setup, rate and what they are of, in names that MLflow takes."""
    found: dict[str, float] = {}
    for row in rows:
        name = f"{row['setup']}.{row['rate']}"
        found |= {f"{name}.{plan}": float(mean) for plan, (mean, *_) in row["throughput"].items()}
        found |= {f"{name}.optimizer_ms": float(row["optimizer_ms"]["mean"])} if "optimizer_ms" in row else {}
        found |= {f"{name}.correlation": float(row["correlation"])} if row.get("correlation") is not None else {}
    return found
