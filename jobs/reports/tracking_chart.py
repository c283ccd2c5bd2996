"""A query's cost over time as a picture: measured and predicted seconds by boundary, switches of plans as lines.

Draws what it is given, computes nothing.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobs.results.history import Span
from optimizer.time import instant

WIDTH, HEIGHT = 10, 4.5       # inches


def chart(name: str, spans: Sequence[Span]) -> Any:
    """A figure of its own, without pyplot's global state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
    axes: Any = figure.add_subplot()
    points = [point for span in spans for point in span.points]
    for metric, style, label in (("measured_s", "o-", "measured"), ("predicted_s", "s--", "predicted"),
                                 ("best_s", ":", "cheapest plan, predicted")):
        with_metric = [point for point in points if metric in point.metrics]
        times = [instant(point.boundary) for point in with_metric]
        axes.plot(times, [point.metrics[metric] for point in with_metric], style, label=label, markersize=4)
    for span in spans:
        at = instant(span.first.boundary)
        axes.axvline(at, color="grey", linewidth=0.8)
        axes.annotate(span.plan.name, (at, 0.98), xycoords=("data", "axes fraction"), rotation=90, va="top", ha="right",
                      fontsize=8)
    axes.set(title=f"{name}: seconds a boundary", xlabel="boundary (event time)", ylabel="seconds")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper right")
    figure.autofmt_xdate()
    return figure
