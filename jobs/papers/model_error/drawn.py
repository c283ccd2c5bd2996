"""Settings drawn by a seed from ranges that stand here, so that nobody has tuned a price by them.

Each draws a world, a number of inputs, windows, a join key, groups, aggregates and selections, all independently. One
whose cheapest plan would still join more rows than MOST_ROWS is drawn anew: nobody would wait for it.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

from jobs.papers.model_error.settings import EXTREMES, ONE, SUMS, PriceSetting, over_one, over_two
from jobs.papers.model_error.worlds import WORLDS

DRAWN = "drawn"          # their family
SEED = 20261119
COUNT = 20
DRAWN_FROM = {
    "world": ("tiny", "small", "medium", "huge batches"),
    "inputs": (1, 2, 2, 2, 2),
    "window, share of the world's reach": (0.05, 0.1, 0.2, 0.5, 1.0),
    "windows": ("sliding", "sliding", "sliding", "hopping", "UNTIL NOW", "unlike"),
    "key": ("j50", "j1k", "j20k", "j1m", "jz"),
    "group": ("g20", "g300", "g20k"),
    "aggregates": ("sums", "extremes"),
    "rows selected of 1,000, of each stream": (1_000, 1_000, 1_000, 200, 20),
}


def drawn(seed: int = SEED, count: int = COUNT) -> tuple[PriceSetting, ...]:
    """`count` different settings; the same for the same seed."""
    settings: dict[str, PriceSetting] = {}
    draws = _draws(Random(seed))
    while len(settings) < count:
        setting = next(draws)
        settings.setdefault(setting.sql, setting)
    return tuple(settings.values())


def _draws(random: Random) -> Iterator[PriceSetting]:
    while True:
        choice = {name: random.choice(values) for name, values in DRAWN_FROM.items()}
        other_share = random.choice(DRAWN_FROM["window, share of the world's reach"])
        other_selected = random.choice(DRAWN_FROM["rows selected of 1,000, of each stream"])
        setting = _setting(choice, float(str(other_share)), int(str(other_selected)))
        yield setting


def _setting(choice: Mapping[str, object], other_share: float, other_selected: int) -> PriceSetting:
    world = WORLDS[str(choice["world"])]
    first = _window(choice["windows"], world.batch, _length(choice["window, share of the world's reach"], world.reach,
                                                            world.batch))
    selected = int(str(choice["rows selected of 1,000, of each stream"]))
    group, extremes = str(choice["group"]), choice["aggregates"] == "extremes"
    conditions = [f"s1.v < {selected}"] if selected < 1_000 else []
    if choice["inputs"] == 1:
        select = ONE + (", MIN(s1.a) AS low, MAX(s1.a) AS high" if extremes else "")
        sql = over_one(first, group, select, " AND ".join(conditions))
        return PriceSetting(DRAWN, f"drawn, {world.name}, one stream, {first.lower()}, {group}", world.name, sql)
    second = first
    if choice["windows"] == "unlike":
        second = _window("sliding", world.batch, _length(other_share, world.reach, world.batch))
    conditions += [f"s2.v < {other_selected}"] if other_selected < 1_000 else []
    sql = over_two(str(choice["key"]), f"s1.{group}", first, second, EXTREMES if extremes else SUMS,
                   " AND ".join(conditions))
    name = f"drawn, {world.name}, {first.lower()}, {second.lower()}, {choice['key']}, {group}"
    return PriceSetting(DRAWN, name, world.name, sql)


def _length(share: object, reach: int, batch: int) -> int:
    """Seconds, a multiple of the batch length."""
    return max(round(float(str(share)) * reach / batch), 2) * batch


def _window(kind: object, batch: int, length: int) -> str:
    if kind == "UNTIL NOW":
        return "UNTIL NOW"
    if kind == "hopping":
        slide = 2 * batch
        return f"{max(length // slide, 1) * slide} SECONDS SLIDE {slide} SECONDS"
    return f"{length} SECONDS"
