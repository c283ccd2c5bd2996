"""The demo's two streams as files, step by step, the same each time: most rows in time, some late, some broken; it writes below landing/ only."""
from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

FIRST = datetime(2025, 1, 1, 9, tzinfo=timezone.utc)
STEPS = 8
STEP = timedelta(minutes=30)
USERS = 2000
PAGES = ("home", "about", "news", "sport", "shoes", "shirts")
OFTEN = (30, 2, 20, 15, 20, 13)       # how often each page is viewed
LATE, TOO_LATE, BROKEN = 0.002, 0.0005, 0.0005


@dataclass(frozen=True)
class Scale:
    """Rows in all."""

    views: int = 150_000
    purchases: int = 50_000


def write(folder: str, step: int, scale: Scale) -> None:
    """One file a stream for the step, counted from 0."""
    rng = random.Random(2025 + step)
    _write(os.path.join(folder, "landing", "views", f"{step + 1:02d}.csv"), ["ts,user,page,ms", *_views(rng, step, scale.views // STEPS)])
    _write(os.path.join(folder, "landing", "purchases", f"{step + 1:02d}.json"), _purchases(rng, step, scale.purchases // STEPS))


def _views(rng: random.Random, step: int, count: int) -> Iterable[str]:
    pages = rng.choices(PAGES, OFTEN, k=count)
    for offset, page in zip(_offsets(rng, count), pages):
        chance = rng.random()
        ms = "slow" if chance < BROKEN else str(rng.randrange(50, 4000))
        yield f"{_instant(rng, step, offset, chance)},u{rng.randrange(USERS)},{page},{ms}"


def _purchases(rng: random.Random, step: int, count: int) -> Iterable[str]:
    for offset in _offsets(rng, count):
        chance = rng.random()
        amount = "free" if chance < BROKEN else f"{rng.randrange(100, 20000) / 100:.2f}"
        yield json.dumps({"ts": _stamp(FIRST + step * STEP + timedelta(microseconds=offset)), "user": f"u{rng.randrange(USERS)}", "amount": amount})


def _offsets(rng: random.Random, count: int) -> list[int]:
    """When in the step, in order; the last row comes within its last second, so that the step's boundaries get complete."""
    length = STEP // timedelta(microseconds=1)
    return sorted(rng.randrange(length) for _ in range(count - 1)) + [length - rng.randrange(1, 10**6)]


def _instant(rng: random.Random, step: int, offset: int, chance: float) -> str:
    at = FIRST + step * STEP + timedelta(microseconds=offset)
    if step and BROKEN <= chance < BROKEN + LATE:
        at -= STEP
    elif step > 3 and BROKEN + LATE <= chance < BROKEN + LATE + TOO_LATE:
        at -= 4 * STEP
    return _stamp(at)


def _stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _write(path: str, lines: Iterable[str]) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)
