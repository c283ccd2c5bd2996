"""A query's answers as a picture: time from left to right, a panel a figure of the SELECT list, a line a group."""
from __future__ import annotations

from forebay import pictures
from jobs.results.series import PlottedAnswer

WIDTH, HEIGHT = 8.0, 3.0  # inches of a panel
DENSITY = 150             # points an inch


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
