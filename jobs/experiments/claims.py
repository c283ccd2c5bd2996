"""What a paper says of a figure, and whether the data says so too: the verdict and the reason are computed from the numbers that they name."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from jobs.experiments import Report

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
    """One diagram: y of each series at each x, measured, and by the model where there is one."""

    title: str
    axis: str
    unit: str
    x: tuple[float, ...]
    measured: dict[str, list[float]]
    model: dict[str, list[float]]
    logarithmic: bool = False
    steep: bool = False


def claim(said: str, checks: Sequence[tuple[bool, str]]) -> Claim:
    """Holds if every check does, in part if some do; the reason tells those that fail, or all."""
    passed = [ok for ok, _ in checks]
    verdict = HOLDS if all(passed) else PART if any(passed) else NOT
    return Claim(said, verdict, "; ".join(why for ok, why in checks if verdict != PART or not ok))


def report(title: str, settings: str, panels: Sequence[Panel], claims: Sequence[Claim], figures: Report) -> Report:
    """Data, words and what people read of both."""
    lines = [title, settings, *(line for p in panels for line in table(p)), "", *(f"- {c.line}" for c in claims)]
    data = {"panels": [asdict(p) for p in panels], "claims": [asdict(c) for c in claims]}
    return {"title": title, "settings": settings, **data, **figures, "text": "\n".join(lines)}


def table(panel: Panel) -> Iterable[str]:
    """A panel as Markdown: measured / model."""
    yield f"\n{panel.title}; {panel.unit}, measured / model\n"
    yield f"| {panel.axis} | " + " | ".join(panel.measured) + " |"
    yield "|---:|" + "---:|" * len(panel.measured)
    for i, x in enumerate(panel.x):
        cells = (f"{y[i]:.3g}" + (f" / {panel.model[name][i]:.3g}" if name in panel.model else "") for name, y in panel.measured.items())
        yield f"| {x:g} | " + " | ".join(cells) + " |"
