"""A query's cost over time as a picture: measured and predicted seconds by boundary, the prices of all candidates
behind them, switches of plans as lines.

Draws what it is given, prices nothing.
"""
from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isnan
from typing import Any

from jobs.results.candidates import prices_over_time
from jobs.results.history import BatchPoint, Span
from optimizer.time import instant

WIDTH, HEIGHT = 5.8, 5.4      # inches: pages show it small, and as a square
DENSITY = 150                 # points an inch
NAMED = 4                     # plans never in force that get a colour and a name, the cheapest
MOST_LINES = 60               # candidates that are drawn
DISTURBED = 3.0               # times the usual: a batch that the height of the picture does not follow
HIGHEST = 8.0                 # times what the plans in force took: dearer candidates lie outside
MARKED = 8                    # measurements above the picture that are told in figures
Prices = Mapping[str, Sequence[tuple[int, float]]]


@dataclass(frozen=True)
class ChartScale:
    """How high the picture is, in seconds, and which plans it names, in the order of their colours."""

    top: float
    plans: tuple[str, ...]

    def colour(self, plan: str) -> str:
        return f"C{self.plans.index(plan) % 10}" if plan in self.plans else "lightgrey"


def chart(name: str, spans: Sequence[Span]) -> Any:
    """A figure of its own, without pyplot's global state."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, HEIGHT), dpi=DENSITY, layout="constrained")
    axes: Any = figure.add_subplot()
    points, prices = [point for span in spans for point in span.points], prices_over_time(spans)
    scale = _scale(spans, points, prices)
    _candidates(axes, prices, scale)
    _seconds(axes, points, scale)
    _switches(axes, spans, scale)
    axes.set(title=f"{name}: seconds a boundary", xlabel="boundary (event time)",
             ylabel="seconds")
    axes.set_ylim(0, scale.top)
    locator = AutoDateLocator()
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    figure.legend(loc="outside lower center", ncols=2, fontsize=8)
    return figure


def _scale(spans: Sequence[Span], points: Sequence[BatchPoint], prices: Prices) -> ChartScale:
    """High enough for what was measured, but for single batches that were disturbed, and for plans that were in force
    as long as that leaves the others readable.
    """
    measured = [point.metrics["measured_s"] for point in points if "measured_s" in point.metrics]
    usual = statistics.median(measured) if measured else 0.0
    values = [point.metrics["predicted_s"] for point in points if "predicted_s" in point.metrics]
    values += [seconds for seconds in measured if seconds <= DISTURBED * usual]
    in_force = list(dict.fromkeys(span.plan.name for span in spans))
    limit = HIGHEST * max(values, default=1.0)
    of_plans = [seconds for plan in in_force for _, seconds in prices.get(plan, ()) if not isnan(seconds)]
    others = _cheapest_first(prices, in_force)
    return ChartScale(1.15 * min(max([*values, *of_plans], default=1.0), limit) or 1.0, (*in_force, *others[:NAMED]))


def _cheapest_first(prices: Prices, but: Sequence[str]) -> list[str]:
    """By their last prices."""
    last = {plan: next((seconds for _, seconds in reversed(series) if not isnan(seconds)), inf)
            for plan, series in prices.items()}
    return sorted((plan for plan in prices if plan not in but), key=lambda plan: last[plan])


def _candidates(axes: Any, prices: Prices, scale: ChartScale) -> None:
    """A price holds until the next decision, so its line has steps; plans that were in force lie above the others."""
    unnamed = _cheapest_first(prices, scale.plans)
    for number, plan in enumerate(unnamed[:MOST_LINES]):
        label = f"{len(unnamed)} other candidates" if number == 0 else None
        _steps(axes, prices[plan], color=scale.colour(plan), linewidth=0.8, label=label, zorder=1)
    for number, plan in enumerate(scale.plans):
        if plan in prices:
            _steps(axes, prices[plan], color=scale.colour(plan), linewidth=1.6, label=f"{plan}, predicted",
                   zorder=3 - number / len(scale.plans))


def _steps(axes: Any, series: Sequence[tuple[int, float]], **style: Any) -> None:
    times = [instant(boundary) for boundary, _ in series]
    axes.step(times, [seconds for _, seconds in series], where="post", **style)


def _seconds(axes: Any, points: Sequence[BatchPoint], scale: ChartScale) -> None:
    for metric, style, label in (("predicted_s", "ks", "predicted of the plan in force"),
                                 ("measured_s", "ko-", "measured")):
        series = [(instant(point.boundary), point.metrics[metric]) for point in points if metric in point.metrics]
        if series:
            axes.plot([at for at, _ in series], [seconds for _, seconds in series], style, label=label, markersize=5,
                      linewidth=1, markerfacecolor="white" if metric == "predicted_s" else "black", zorder=4)
    above = [point for point in points if point.metrics.get("measured_s", 0.0) > scale.top]
    for point in above[:MARKED]:
        axes.annotate(f"▲ {point.metrics['measured_s']:.2g} s", (instant(point.boundary), scale.top), va="top",
                      ha="center")


def _switches(axes: Any, spans: Sequence[Span], scale: ChartScale) -> None:
    for number, span in enumerate(spans):
        at, colour = instant(span.first.boundary), scale.colour(span.plan.name)
        axes.axvline(at, color=colour, linewidth=1.2, linestyle="--")
        word = "switch to " if number else ""
        axes.annotate(f"{word}{span.plan.name}", (at, 0.9), xycoords=("data", "axes fraction"), xytext=(3, 0),
                      textcoords="offset points", rotation=90, va="top", ha="left", color=colour)
