"""The settings in which plans are measured: families of queries over the worlds' streams, from windows of 10,000 rows
to windows of 100 million.

A family is what a fit leaves out as a whole, so its settings are alike in what decides: how many groups, which keys,
which windows.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

SUMS = "COUNT(*) AS n, SUM(s1.a) AS x, SUM(s2.a) AS y"
EXTREMES = SUMS + ", MIN(s2.a) AS low, MAX(s1.a) AS high"
ONE = "COUNT(*) AS n, SUM(s1.a) AS x"
MANY = 10_000_000        # rows of a window beyond which a setting counts as large


@dataclass(frozen=True)
class PriceSetting:
    """A query over a world: `PriceSetting("one stream", "one stream, 60 s", "medium", "SELECT …")`."""

    family: str
    name: str
    world: str
    sql: str


def settings() -> tuple[PriceSetting, ...]:
    return (*_one(), *_dense(), *_groups_of_both(), *_across(), *_sparse(), *_skew(), *_selected(), *_extremes(),
            *_windows(), *_unlike(), *_three(), *_four(), *_large())


def quick() -> tuple[PriceSetting, ...]:
    """Every seventh of those that need neither many rows nor long."""
    return tuple(one for one in settings() if one.world in ("tiny", "small"))[::7]


def over_one(window: str, group: str, select: str = ONE, where: str = "") -> str:
    condition = f" WHERE {where}" if where else ""
    return f"SELECT s1.{group}, {select} FROM s1 [WINDOW {window}]{condition} GROUP BY s1.{group}"


def over_two(key: str, group: str, first: str, second: str = "", select: str = SUMS, where: str = "",
             every: str = "") -> str:
    """`group` names attributes with their streams, as `s1.g20, s2.g300`; none for an answer of one row."""
    columns = [part.strip() for part in group.split(",")] if group else []
    shown = [f"{column} AS {column.replace('.', '_')}" for column in columns]
    conditions = " AND ".join(part for part in (f"s1.{key} = s2.{key}", where) if part)
    by = f" GROUP BY {group}" if group else ""
    at = f" EVERY {every}" if every else ""
    return (f"SELECT {', '.join([*shown, select])} FROM s1 [WINDOW {first}], s2 [WINDOW {second or first}] "
            f"WHERE {conditions}{by}{at}")


def _one() -> Iterator[PriceSetting]:
    extremes = "COUNT(*) AS n, SUM(s1.a) AS x, MIN(s1.a) AS low, MAX(s1.a) AS high"
    for world, window, group, select in (
            ("medium", 60, "g20", ONE), ("medium", 400, "g20", ONE), ("medium", 400, "g20k", ONE),
            ("medium", 400, "g2m", ONE), ("medium", 400, "g300", extremes), ("tiny", 1_000, "g300", ONE),
            ("tiny", 1_000, "g20k", extremes), ("huge batches", 600, "g20k", ONE)):
        extreme = ", extremes" if select != ONE else ""
        yield PriceSetting("one stream", f"one stream, {world}, {window} s, {group}{extreme}", world,
                           over_one(f"{window} SECONDS", group, select))


def _dense() -> Iterator[PriceSetting]:
    """Each key has many rows on both streams, groups are of one."""
    for world, window, key, group in (
            ("small", 60, "j50", "g20"), ("small", 240, "j1k", "g300"), ("medium", 60, "j50", "g20"),
            ("medium", 400, "j50", "g20"), ("medium", 60, "j1k", "g300"), ("medium", 400, "j1k", "g300"),
            ("medium", 400, "j20k", "g20"), ("tiny", 1_000, "j50", "g20"), ("tiny", 1_000, "j1k", "g300"),
            ("huge batches", 600, "j1k", "g20"), ("huge batches", 600, "j50", "g300")):
        yield PriceSetting("dense keys", f"dense keys, {world}, {window} s, {key}, {group}", world,
                           over_two(key, f"s1.{group}", f"{window} SECONDS"))


def _groups_of_both() -> Iterator[PriceSetting]:
    """A group needs a row of each stream, so early aggregation leaves many pairs."""
    for world, window, key, first, second in (
            ("small", 60, "j50", "g20", "g20"), ("small", 240, "j1k", "g300", "g20"),
            ("tiny", 1_000, "j50", "g20", "g20"), ("tiny", 1_000, "j50", "g300", "g20"),
            ("tiny", 1_000, "j1k", "g20", "g300"), ("medium", 60, "j50", "g20", "g20"),
            ("medium", 400, "j50", "g20", "g20"), ("tiny", 200, "j1k", "g300", "g300")):
        yield PriceSetting("groups of both", f"groups of both, {world}, {window} s, {key}, {first} and {second}", world,
                           over_two(key, f"s1.{first}, s2.{second}", f"{window} SECONDS"))


def _across() -> Iterator[PriceSetting]:
    """What is summed is of both streams, so sets are by its values too."""
    for world, window, key in (("small", 60, "j20k"), ("small", 240, "j20k"), ("tiny", 1_000, "j20k"),
                               ("tiny", 1_000, "j1m"), ("tiny", 300, "j1k"), ("medium", 60, "j1m")):
        yield PriceSetting("across", f"product of both, {world}, {window} s, {key}", world,
                           over_two(key, "s1.g20", f"{window} SECONDS", select="SUM(s1.a * s2.a) AS xy, COUNT(*) AS n"))


def _sparse() -> Iterator[PriceSetting]:
    """Few rows or one have a key."""
    for world, window, key, group in (("tiny", 1_000, "j1m", "g20"), ("tiny", 1_000, "j20k", "g20k"),
                                      ("medium", 60, "j1m", "g300"), ("medium", 400, "j1m", "g20"),
                                      ("huge batches", 120, "j1m", "g20"), ("small", 240, "j1m", "g20")):
        yield PriceSetting("sparse keys", f"sparse keys, {world}, {window} s, {key}, {group}", world,
                           over_two(key, f"s1.{group}", f"{window} SECONDS"))


def _skew() -> Iterator[PriceSetting]:
    for world, window, group in (("small", 60, "g20"), ("tiny", 600, "g300"), ("medium", 60, "g20"),
                                 ("medium", 400, "g300")):
        yield PriceSetting("skew", f"skewed keys, {world}, {window} s, {group}", world,
                           over_two("jz", f"s1.{group}", f"{window} SECONDS"))


def _selected() -> Iterator[PriceSetting]:
    for world, window, key, group, where in (
            ("medium", 400, "j1k", "g300", "s1.v < 100"), ("medium", 400, "j1k", "g300", "s2.v < 10"),
            ("medium", 400, "j20k", "g20k", "s1.v < 20 AND s2.v < 20"), ("tiny", 1_000, "j1k", "g20", "s1.v < 200"),
            ("medium", 60, "j50", "g20", "s1.v < 50 AND s2.v < 200")):
        yield PriceSetting("selections", f"selected, {world}, {window} s, {key}, {where}", world,
                           over_two(key, f"s1.{group}", f"{window} SECONDS", where=where))


def _extremes() -> Iterator[PriceSetting]:
    for world, window, key, group in (("medium", 60, "j1k", "g20"), ("medium", 200, "j1k", "g300"),
                                      ("medium", 400, "j50", "g300"), ("tiny", 1_000, "j50", "g20"),
                                      ("huge batches", 600, "j1k", "g300")):
        yield PriceSetting("extremes", f"extremes, {world}, {window} s, {key}, {group}", world,
                           over_two(key, f"s1.{group}", f"{window} SECONDS", select=EXTREMES))


def _windows() -> Iterator[PriceSetting]:
    """Tumbling, hopping, landmark, and mixed."""
    for world, first, second, every in (
            ("medium", "20 SECONDS TUMBLING", "", ""), ("medium", "20 SECONDS TUMBLING", "400 SECONDS", "5 SECONDS"),
            ("tiny", "4 SECONDS TUMBLING", "1000 SECONDS", "1 SECONDS"),
            ("medium", "400 SECONDS SLIDE 10 SECONDS", "", ""), ("tiny", "1000 SECONDS SLIDE 2 SECONDS", "", ""),
            ("medium", "UNTIL NOW", "", ""), ("medium", "UNTIL NOW", "60 SECONDS", ""), ("tiny", "UNTIL NOW", "", "")):
        yield PriceSetting("windows", f"{world}, {first.lower()}{f' and {second.lower()}' if second else ''}", world,
                           over_two("j1k", "s1.g20", first, second, every=every))


def _unlike() -> Iterator[PriceSetting]:
    for world, first, second, key in (("medium", 400, 10, "j1k"), ("medium", 10, 400, "j1k"),
                                      ("tiny", 1_000, 20, "j50"), ("tiny", 20, 1_000, "j20k"),
                                      ("huge batches", 600, 60, "j20k")):
        yield PriceSetting("unlike windows", f"unlike windows, {world}, {first} s and {second} s, {key}", world,
                           over_two(key, "s1.g20", f"{first} SECONDS", f"{second} SECONDS"))


def _three() -> Iterator[PriceSetting]:
    star, chain = "s1.{k} = s2.{k} AND s2.{k} = s3.{k}", "s1.{k} = s2.{k} AND s2.c500 = s3.c500"
    for world, window, key, joins in (("small", 20, "j1k", star), ("small", 120, "j1k", star),
                                      ("small", 240, "j20k", star), ("small", 60, "j1k", chain),
                                      ("medium", 20, "j20k", star), ("medium", 200, "j50", star)):
        form = "a star" if joins == star else "a chain"
        sources = ", ".join(f"s{n} [WINDOW {window} SECONDS]" for n in (1, 2, 3))
        yield PriceSetting("three inputs", f"three in {form}, {world}, {window} s, {key}", world,
                           f"SELECT s1.g20, {SUMS} FROM {sources} WHERE {joins.format(k=key)} GROUP BY s1.g20")


def _four() -> Iterator[PriceSetting]:
    for window, key in ((20, "j1k"), (120, "j20k"), (240, "j50")):
        sources = ", ".join(f"s{n} [WINDOW {window} SECONDS]" for n in (1, 2, 3, 4))
        joins = " AND ".join(f"s1.{key} = s{n}.{key}" for n in (2, 3, 4))
        yield PriceSetting("four inputs", f"four in a star, small, {window} s, {key}", "small",
                           f"SELECT s1.g20, {SUMS} FROM {sources} WHERE {joins} GROUP BY s1.g20")


def _large() -> Iterator[PriceSetting]:
    """Windows of 12, 24, 50 and 100 million rows a stream; the first is paper A's query with extremes (P1)."""
    texts = {
        "100 M rows, extremes, j1k, g300": over_two("j1k", "s1.g300", "500 SECONDS", select=EXTREMES),
        "24 M rows, extremes, j1k, g300": over_two("j1k", "s1.g300", "120 SECONDS", select=EXTREMES),
        "12 M rows, j1k, g300": over_two("j1k", "s1.g300", "60 SECONDS"),
        "100 M rows, one stream, g300": over_one("500 SECONDS", "g300"),
        "100 M rows, one stream, g2m": over_one("500 SECONDS", "g2m"),
        "100 M rows, a fiftieth selected, j20k": over_two("j20k", "s1.g300", "500 SECONDS",
                                                          where="s1.v < 20 AND s2.v < 20"),
        "50 M rows, hopping, j20k": over_two("j20k", "s1.g300", "250 SECONDS SLIDE 10 SECONDS"),
        "100 M and 2 M rows, j1k": over_two("j1k", "s1.g300", "500 SECONDS", "10 SECONDS"),
    }
    for name, sql in texts.items():
        yield PriceSetting("large", f"large, {name}", "large", sql)
