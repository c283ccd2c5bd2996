"""Lines over time as SVG that stands within a page: a panel a figure, a line a group, time on the x axis.

It loads nothing, and takes the colours of the page's text.
"""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from html import escape

from jobs.results.series import PlottedAnswer, Series

WIDTH, HEIGHT = 760, 150          # of a panel's lines, in pixels
LEFT, TOP, BELOW = 80, 26, 22     # what is beside, above and below them
TICKS = 6                         # of the x axis, at most
COLOURS = ("#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed", "#0891b2", "#be185d", "#65a30d")
STEPS = tuple(timedelta(seconds=s) for s in (
    1, 5, 10, 30, 60, 300, 600, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 7 * 86_400, 30 * 86_400, 365 * 86_400))
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def svg(answer: PlottedAnswer) -> str:
    """One picture of all figures; nothing where there are no points."""
    points = [point for lines in answer.series.values() for line in lines.values() for point in line]
    if not points:
        return ""
    first, last = min(at for at, _ in points), max(at for at, _ in points)
    last = last if last > first else first + timedelta(seconds=1)
    labels = list(dict.fromkeys(label for lines in answer.series.values() for label in lines))
    colours = dict(zip(labels, COLOURS))
    panels = [_panel(number, name, lines, colours, first, last)
              for number, (name, lines) in enumerate(answer.series.items())]
    height = len(panels) * (TOP + HEIGHT + BELOW)
    return (f'<svg viewBox="0 0 {LEFT + WIDTH + 20} {height}" width="{LEFT + WIDTH + 20}" height="{height}" role="img" '
            f'aria-label="by boundary, event time in UTC">{"".join(panels)}</svg>{_legend(labels, answer.omitted)}')


def _panel(number: int, name: str, lines: Series, colours: Mapping[str, str], first: datetime, last: datetime) -> str:
    top = number * (TOP + HEIGHT + BELOW) + TOP
    values = [value for line in lines.values() for _, value in line if math.isfinite(value)]
    low, high = min([0.0, *values]), max([0.0, *values])
    high = high if high > low else low + 1

    def x(at: datetime) -> float:
        return LEFT + WIDTH * ((at - first) / (last - first))

    def y(value: float) -> float:
        return top + HEIGHT * (1 - (value - low) / (high - low))

    parts = [f'<text x="{LEFT}" y="{top - 10}" class="figure">{escape(name)}</text>']
    for value in (low, (low + high) / 2, high):
        parts.append(f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y(value):.1f}" y2="{y(value):.1f}" class="grid"/>'
                     f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{_number(value)}</text>')
    for at, label in _ticks(first, last):
        parts.append(f'<text x="{x(at):.1f}" y="{top + HEIGHT + 15}" text-anchor="middle">{label}</text>')
    for label, line in lines.items():
        colour = colours[label]
        drawn = [(at, value) for at, value in line if math.isfinite(value)]
        path = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in drawn)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        if len(drawn) < 40:
            parts += [f'<circle cx="{x(at):.1f}" cy="{y(value):.1f}" r="2.2" fill="{colour}"/>' for at, value in drawn]
    return "".join(parts)


def _ticks(first: datetime, last: datetime) -> list[tuple[datetime, str]]:
    """At multiples of a round length; the first one of a day says which day it is."""
    step = next((s for s in STEPS if (last - first) / s <= TICKS), STEPS[-1])
    at, ticks, day = EPOCH - ((EPOCH - first) // step) * step, list[tuple[datetime, str]](), None
    while at <= last and len(ticks) <= 4 * TICKS:
        if at >= first:
            form = "%Y-%m-%d" if step >= timedelta(days=1) else "%H:%M" if step >= timedelta(minutes=1) else "%H:%M:%S"
            is_new = step < timedelta(days=1) and at.date() != day
            ticks.append((at, at.strftime(f"%m-%d {form}" if is_new else form)))
            day = at.date()
        at += step
    return ticks


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def _legend(labels: Sequence[str], omitted: int) -> str:
    if not any(labels):
        return ""
    items = "".join(f'<span style="color:{colour}">■</span> {escape(label)}&ensp;' for colour, label in
                    zip(COLOURS, labels))
    more = f"and {omitted} more groups" if omitted else ""
    return f'<p class="legend">{items}{more}</p>'
