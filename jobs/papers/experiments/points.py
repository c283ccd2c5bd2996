"""Measured points that outlive an interruption, and how a point is timed.

What is kept is of one version of the operators, else it is measured anew.
"""
from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobs.papers import operators
from optimizer.errors import ForebayError

Point = dict[str, Any]
PLACE = "FOREBAY_EXPERIMENTS"        # the folder of unfinished experiments, instead of the user's cache
# after so many a long experiment begins no further point: the next run goes on there
MINUTES = "FOREBAY_MINUTES"


@dataclass(frozen=True)
class Points:
    """The finished points of one experiment by key, in a file beside them."""

    file: Path
    version: str
    measured: dict[str, Point] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)


def unfinished(name: str, quick: bool) -> Points:
    """What an interrupted run of the same experiment and the same operators left; a damaged file is nothing."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(os.environ.get(PLACE) or os.path.join(cache, "forebay", "experiments"))
    file, version = folder / f"{name}{'-quick' if quick else ''}.json", _version()
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        return Points(file, version, dict(document["points"]) if document["version"] == version else {})
    except (OSError, ValueError, KeyError, TypeError):
        return Points(file, version)


def point(points: Points, key: str, measure: Callable[[], Point]) -> Point:
    """A point measured before, or measured now and put on file whole."""
    if key not in points.measured:
        points.measured[key] = measure()
        save(points)
    return points.measured[key]


def save(points: Points) -> None:
    """On file, whole."""
    points.file.parent.mkdir(parents=True, exist_ok=True)
    beside = points.file.with_suffix(f".{os.getpid()}")
    beside.write_text(json.dumps({"version": points.version, "points": points.measured}), encoding="utf-8")
    os.replace(beside, points.file)


def spent(points: Points) -> bool:
    """Whether there is no time for a further point."""
    minutes = os.environ.get(MINUTES)
    try:
        return minutes is not None and time.monotonic() - points.began > float(minutes) * 60
    except ValueError:
        raise ForebayError("bad-usage", f"{MINUTES} is {minutes!r}", hint="expected minutes, a number") from None


def finished(points: Points) -> None:
    """The next run begins anew."""
    points.file.unlink(missing_ok=True)


def least(runs: Sequence[Callable[[], object]], times: int) -> list[float]:
    """The least processor seconds of each, taken in turns, so that what disturbs the machine disturbs all."""
    fastest = [float("inf")] * len(runs)
    for _ in range(times):
        for i, run in enumerate(runs):
            fastest[i] = min(fastest[i], seconds(run))
    return fastest


def seconds(run: Callable[[], object]) -> float:
    """Processor seconds of one run."""
    began = time.process_time()
    run()
    return time.process_time() - began


def _version() -> str:
    """Of the operators' and experiments' sources: points that others measured do not count."""
    folders = [Path(folder) for folder in operators.__path__] + [Path(__file__).parent]
    files = [file for folder in folders for file in sorted(folder.rglob("*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
