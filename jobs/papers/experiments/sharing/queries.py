"""Paper E's workloads: queries of a given similarity to a pattern (formula (3)), and when they are created and deleted
(SC1, SC2).

Nothing is run here.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from random import Random

ATTRIBUTES = 6          # of each tuple
ATR_MAX = 500           # values 0 … 499
WINDOWS = (1, 2, 3)     # seconds
OPERATORS = ("=", ">", "<", ">=", "<=")


@dataclass(frozen=True)
class Pattern:
    """The pattern query S1 ⋈ S2 ⋈ … : `joins[k]` are the attributes by which stream k and stream k + 1 are joined."""

    joins: tuple[tuple[int, int], ...]

    @property
    def sources(self) -> int:
        return len(self.joins) + 1


@dataclass(frozen=True)
class GeneratedQuery:
    """A generated query: neighbouring streams of the pattern, their join attributes, the window in seconds, a selection
    a stream.
    """

    first: int
    joins: tuple[tuple[int, int], ...]
    window: int
    selections: tuple[tuple[int, str, int], ...]

    @property
    def streams(self) -> range:
        return range(self.first, self.first + len(self.joins) + 1)


def similarity(common: int, attributes: int, every: int) -> Fraction:
    """Formula (3): ComS · ComSJA / AllS²."""
    return Fraction(common * attributes, every * every)


def similar(pattern: Pattern, query: GeneratedQuery) -> Fraction:
    """How similar a query is: its sources, all in common, times those of them whose join attributes are the pattern's
    too.
    """
    alike = [True] * len(query.streams)
    for k, (left, right) in enumerate(query.joins):
        pattern_left, pattern_right = pattern.joins[query.first + k]
        alike[k] &= left == pattern_left
        alike[k + 1] &= right == pattern_right
    return similarity(len(query.streams), sum(alike), pattern.sources)


def generate(pattern: Pattern, wanted: Fraction, choice: Random) -> GeneratedQuery:
    """A query as similar as that, rounded to what its number of sources allows.

    Step 1 draws ComS; step 2 finds ComSJA from (3), and takes one source more while these are too few for it; step 3
    draws neighbouring sources, so that no cross product arises, and which of them keep their join attributes; all
    attributes of the others differ."""
    every = pattern.sources
    common = choice.randint(2, every)
    while common < every and wanted * every * every / common > common:
        common += 1
    alike = min(round(wanted * every * every / common), common)
    first = choice.randrange(every - common + 1)
    same = set(choice.sample(range(common), alike))
    given = pattern.joins[first:first + common - 1]
    joins = tuple((_drawn(a, k in same, choice), _drawn(b, k + 1 in same, choice)) for k, (a, b) in enumerate(given))
    selections = tuple(
        (choice.randrange(ATTRIBUTES), choice.choice(OPERATORS), choice.randrange(ATR_MAX)) for _ in range(common))
    return GeneratedQuery(first, joins, choice.choice(WINDOWS), selections)


def _drawn(attribute: int, same: bool, choice: Random) -> int:
    return attribute if same else choice.choice([a for a in range(ATTRIBUTES) if a != attribute])


def text(query: GeneratedQuery, select: str = "*", group: str = "") -> str:
    """Fig. 14's template as Forebay's SQL."""
    names = [f"s{k + 1}" for k in query.streams]
    where = [f"{a}.f{x} = {b}.f{y}" for a, b, (x, y) in zip(names, names[1:], query.joins)]
    where += [
        f"{name}.f{attribute} {operator} {bound}" for name, (attribute, operator, bound) in zip(names, query.selections)
    ]
    sources = ", ".join(f"{name} [WINDOW {query.window} SECONDS]" for name in names)
    return f"SELECT {select} FROM {sources} WHERE {' AND '.join(where)}" + (f" GROUP BY {group}" if group else "")


def sc1(rate: int, most: int, seconds: int) -> Iterator[tuple[int, Mapping[str, int]]]:
    """SC1: `rate` queries are created every second until `most` run."""
    running = 0
    for second in range(seconds):
        came = min(rate, most - running)
        running += came
        yield second, {"create": came, "delete": 0}


def sc2(rate: int, most: int, seconds: int, every: int) -> Iterator[tuple[int, Mapping[str, int]]]:
    """SC2: as SC1, and every `every` seconds `rate` queries are deleted, oldest first, so that they come and go for
    ever.
    """
    running = 0
    for second in range(seconds):
        gone = min(rate, running) if second and second % every == 0 else 0
        came = min(rate, most - running + gone)
        running += came - gone
        yield second, {"create": came, "delete": gone}
