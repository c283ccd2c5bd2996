"""The demo's two streams as files, step by step, the same each time: most rows in time, some late, some broken, a sale.

It writes below landing/ only.
"""
from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

FIRST = datetime(2025, 1, 1, 9, tzinfo=timezone.utc)
STEPS = 6
STEP = timedelta(minutes=30)
SALE = range(3, 5)                    # steps, counted from 0, in which resellers' robots look and buy instead of people
USERS, ROBOTS = 2000, 12              # so few users of so many rows each that joining them row by row explodes
MORE_VIEWS, MORE_PURCHASES = 4, 10
PAGES = ("home", "about", "news", "sport", "shoes", "shirts")
OFTEN = (30, 2, 20, 15, 20, 13)       # how often each page is viewed
LATE, TOO_LATE, BROKEN = 0.002, 0.0005, 0.0005


@dataclass(frozen=True)
class DemoSize:
    """Rows in all, but for those that the sale brings."""

    views: int = 112_500
    purchases: int = 37_500


def rows(scale: DemoSize) -> int:
    return sum(sum(_counts(step, scale)) for step in range(STEPS))


def write(folder: str, step: int, scale: DemoSize) -> None:
    """One file a stream for the step, counted from 0."""
    rng, (views, purchases) = random.Random(2025 + step), _counts(step, scale)
    _write(os.path.join(folder, "landing", "views", f"{step + 1:02d}.csv"),
           ["ts,user,page,ms", *_views(rng, step, views)])
    _write(os.path.join(folder, "landing", "purchases", f"{step + 1:02d}.json"), _purchases(rng, step, purchases))


def _counts(step: int, scale: DemoSize) -> tuple[int, int]:
    views, purchases = (MORE_VIEWS, MORE_PURCHASES) if step in SALE else (1, 1)
    return scale.views // STEPS * views, scale.purchases // STEPS * purchases


def _user(rng: random.Random, step: int) -> str:
    return f"u{rng.randrange(ROBOTS if step in SALE else USERS)}"


def _views(rng: random.Random, step: int, count: int) -> Iterable[str]:
    pages = rng.choices(PAGES, OFTEN, k=count)
    for offset, page in zip(_offsets(rng, count), pages):
        chance = rng.random()
        ms = "slow" if chance < BROKEN else str(rng.randrange(50, 4000))
        yield f"{_instant(rng, step, offset, chance)},{_user(rng, step)},{page},{ms}"


def _purchases(rng: random.Random, step: int, count: int) -> Iterable[str]:
    for offset in _offsets(rng, count):
        chance = rng.random()
        amount = "free" if chance < BROKEN else f"{rng.randrange(100, 20000) / 100:.2f}"
        yield json.dumps({
            "ts": _stamp(FIRST + step * STEP + timedelta(microseconds=offset)),
            "user": _user(rng, step),
            "amount": amount
        })


def _offsets(rng: random.Random, count: int) -> list[int]:
    """When in the step, in order.

    The last row comes within its last second, so that the step's boundaries get complete.
    """
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
