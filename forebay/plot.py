"""A query's answers as a picture: time from left to right, a panel a figure of the SELECT list, a line a group."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa

from forebay import pictures

BOUNDARIES = 500          # the newest ones that are drawn
LINES, PANELS = 8, 4      # groups with the largest last values, and figures, that are drawn
WIDTH, HEIGHT = 8.0, 3.0  # inches of a panel
DENSITY = 150             # points an inch
Series = dict[str, list[tuple[datetime, float]]]


@dataclass(frozen=True)
class PlottedAnswer:
    """What is drawn: by figure the points of each group's line; `omitted` groups are not."""

    series: Mapping[str, Series]
    omitted: int = 0


def plotted(answers: pa.Table, groups: Sequence[str]) -> PlottedAnswer:
    """Of the answers at many boundaries: `groups` are the columns that tell lines apart.

    Without a column of numbers, the rows of each boundary are counted.
    """
    times = [datetime.fromtimestamp(us / 1e6, timezone.utc) for us in answers["boundary"].cast(pa.int64()).to_pylist()]
    labels = [", ".join(map(str, key)) for key in zip(*(answers[name].to_pylist() for name in groups))]
    labels = labels or [""] * len(times)
    figures = [field.name for field in answers.schema if field.name not in groups and _is_number(field.type)][:PANELS]
    if not figures:
        counts: dict[datetime, float] = {}
        for time in times:
            counts[time] = counts.get(time, 0.0) + 1
        return PlottedAnswer({"rows": {"": sorted(counts.items())}})
    series = {name: _lines(times, labels, answers[name].to_pylist()) for name in figures}
    largest = sorted(series[figures[0]], key=lambda label: -series[figures[0]][label][-1][1])[:LINES]
    kept = {name: {label: lines[label] for label in largest if label in lines} for name, lines in series.items()}
    return PlottedAnswer(kept, len(series[figures[0]]) - len(largest))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _lines(times: Sequence[datetime], labels: Sequence[str], values: Sequence[Any]) -> Series:
    lines: Series = {}
    for time, label, value in zip(times, labels, values):
        if value is not None:
            lines.setdefault(label, []).append((time, float(value)))
    return {label: sorted(points) for label, points in lines.items()}


def picture(name: str, answer: PlottedAnswer, path: str) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter  # half a second that only pictures pay
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, HEIGHT * len(answer.series)), dpi=DENSITY, layout="constrained")
    panels = figure.subplots(len(answer.series), 1, sharex=True, squeeze=False)[:, 0]
    for panel, (column, lines) in zip(panels, answer.series.items()):
        for label, points in lines.items():
            panel.plot(*zip(*points), label=label, linewidth=1.2, marker="." if len(points) < 40 else "")
        panel.set(title=column)
        panel.grid(alpha=0.3)
        locator = AutoDateLocator()
        panel.xaxis.set_major_locator(locator)
        panel.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    more = f", {answer.omitted} more groups are not drawn" if answer.omitted else ""
    figure.suptitle(f"{name} by boundary, event time in UTC{more}", fontsize=10)
    handles, labels = panels[0].get_legend_handles_labels()
    if any(labels):
        figure.legend(handles, labels, loc="outside right upper", fontsize=8)
    pictures.save(figure, path)
