"""What a paper says of a figure, and whether the data says so too: the verdict and the reason are computed from the
numbers that they name.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field

from jobs.papers.experiments import Report

HOLDS, PART, NOT = "holds", "holds in part", "does not hold"


@dataclass(frozen=True)
class Claim:
    said: str
    verdict: str
    why: str

    @property
    def line(self) -> str:
        return f"{self.verdict}: {self.said} ({self.why})"


@dataclass(frozen=True)
class Panel:
    """One diagram: y of each series at each x, measured, and by what stands beside where there is such.

    With `labels` the x are names, drawn as bars.
    """

    title: str
    axis: str
    unit: str
    x: tuple[float, ...]
    measured: dict[str, list[float]]
    model: dict[str, list[float]]
    logarithmic: bool = False
    steep: bool = False
    beside: str = "model"
    labels: tuple[str, ...] = ()
    # the least and the most of what a measured y is the mean of
    spread: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    # which points of a series were not measured whole, and how they were made of what was
    extrapolated: dict[str, tuple[int, ...]] = field(default_factory=dict)
    extrapolation: str = ""
    # what `measured` holds where nothing was measured
    how: str = "measured"


def measured_and_model(panels: Iterable[Panel]) -> tuple[list[float], list[float]]:
    """All that was measured in some panels, and what the model says of each point."""
    measured, model = list[float](), list[float]()
    for panel in panels:
        for name, y in panel.measured.items():
            measured += y
            model += panel.model[name]
    return measured, model


def claim(statement: str, checks: Sequence[tuple[bool, str]]) -> Claim:
    """Holds if every check does, in part if some do; the reason tells those that fail, or all."""
    passed = [ok for ok, _ in checks]
    verdict = HOLDS if all(passed) else PART if any(passed) else NOT
    return Claim(statement, verdict, "; ".join(why for ok, why in checks if verdict != PART or not ok))


def counted(statement: str, ahead: int, of: int, why: str) -> Claim:
    """Holds if it does in every case, in part if in some."""
    return Claim(statement, HOLDS if ahead == of else PART if ahead else NOT, f"in {ahead} of {of}{why}")


def report(title: str, settings: str, panels: Sequence[Panel], claims: Sequence[Claim], figures: Report,
           tables: Sequence[str] | None = None) -> Report:
    """Data, words and what people read of both; `tables` instead of the panels' own."""
    shown = [line for p in panels for line in table(p)] if tables is None else ["", *tables]
    lines = [title, settings, *shown, "", *(f"- {c.line}" for c in claims)]
    data = {"panels": [asdict(p) for p in panels], "claims": [asdict(c) for c in claims]}
    return {"title": title, "settings": settings, **data, **figures, "text": "\n".join(lines)}


def table(panel: Panel) -> Iterable[str]:
    """A panel as Markdown: measured / what stands beside."""
    marked = f"; ≈ {panel.extrapolation}" if panel.extrapolated else ""
    yield f"\n{panel.title}; {panel.unit}, {panel.how}" + (f" / {panel.beside}" if panel.model else "") + marked + "\n"
    yield f"| {panel.axis} | " + " | ".join(panel.measured) + " |"
    yield "|---:|" + "---:|" * len(panel.measured)
    for i, x in enumerate(panel.x):
        cells = (_cell(panel, name, i) for name in panel.measured)
        yield f"| {panel.labels[i] if panel.labels else f'{x:g}'} | " + " | ".join(cells) + " |"


def _cell(panel: Panel, name: str, i: int) -> str:
    """A number, ≈ before what is extrapolated, and what stands beside."""
    mark = "≈ " if i in panel.extrapolated.get(name, ()) else ""
    beside = f" / {panel.model[name][i]:.3g}" if name in panel.model else ""
    return f"{mark}{panel.measured[name][i]:.3g}{beside}"
