"""Window sets as paper D's experiments make them (§V-A, Algorithm 6).

Chance comes from outside, as a function that picks one of several numbers.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from optimizer.coverage.algebra import Window

SEED_SLIDES = (5, 10, 20)
SEED_RANGES = (2, 5, 10)
MULTIPLIER = 50
Pick = Callable[[Sequence[int]], int]


def random_set(size: int, tumbling: bool, pick: Pick) -> frozenset[Window]:
    """RandomGen. A window drawn twice is drawn again, so that the set has its size."""
    windows: set[Window] = set()
    while len(windows) < size:
        seed = pick(SEED_RANGES if tumbling else SEED_SLIDES)
        windows.add(_window(seed * pick(range(2, MULTIPLIER + 1)), tumbling))
    return frozenset(windows)


def sequential_set(size: int, tumbling: bool, pick: Pick) -> frozenset[Window]:
    """SequentialGen: 2, 3, 4 … times one seed."""
    seed = pick(SEED_RANGES if tumbling else SEED_SLIDES)
    return frozenset(_window(seed * k, tumbling) for k in range(2, size + 2))


def _window(length: int, tumbling: bool) -> Window:
    """Hopping ones are twice as long as their slide."""
    return Window(length if tumbling else 2 * length, length)
