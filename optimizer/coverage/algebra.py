"""Windows W⟨r, s⟩ and what makes one out of another's instances (paper D, §II): whole numbers of one unit, no costs
here.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from optimizer.errors import ForebayError


@dataclass(frozen=True, order=True)
class Window:
    """The instances [m·slide, m·slide + range), m ≥ 0; tumbling where both are equal, else hopping."""

    range: int
    slide: int

    def __post_init__(self) -> None:
        if self.range <= 0 or self.slide <= 0:
            raise ValueError(f"a window of range {self.range} and slide {self.slide}: both are positive")
        if self.slide > self.range:
            raise ValueError(f"a slide of {self.slide} leaves gaps between instances of length {self.range}")

    @property
    def tumbling(self) -> bool:
        return self.slide == self.range

    def __str__(self) -> str:
        return str(self.range) if self.tumbling else f"{self.range}/{self.slide}"


def covers(fine: Window, coarse: Window) -> bool:
    """Theorem 1: every instance of `coarse` is a union of instances of `fine`, from its first to its last moment."""
    if coarse.range <= fine.range:
        return False
    return coarse.slide % fine.slide == (coarse.range - fine.range) % fine.slide == 0


def partitions(fine: Window, coarse: Window) -> bool:
    """Theorem 4, of different windows: the union is disjoint."""
    return fine.tumbling and coarse != fine and coarse.slide % fine.slide == 0 and coarse.range % fine.slide == 0


def multiplier(coarse: Window, fine: Window) -> int:
    """Theorem 3, M(coarse, fine): how many instances of `fine` lie within one of `coarse`."""
    return 1 + (coarse.range - fine.range) // fine.slide


@dataclass(frozen=True)
class CoverRelation:
    """`reads` says how many instances of the second window make one of the first, None where they cannot.

    `subtracts`: what leaves can be taken away.
    """

    name: str
    reads: Callable[[Window, Window], int | None]
    subtracts: bool = False


def _covered(coarse: Window, fine: Window) -> int | None:
    return multiplier(coarse, fine) if covers(fine, coarse) else None


def _partitioned(coarse: Window, fine: Window) -> int | None:
    return multiplier(coarse, fine) if partitions(fine, coarse) else None


def _tiled(coarse: Window, fine: Window) -> int | None:
    """Beyond Theorem 4: of a hopping `fine` those instances that lie end to end; as disjoint, and fewer."""
    fits = coarse != fine and coarse.slide % fine.slide == fine.range % fine.slide == coarse.range % fine.range == 0
    return coarse.range // fine.range if fits else None


def _spanned(coarse: Window, fine: Window) -> int | None:
    """Beyond Theorem 3: where overlaps do no harm, the fewest instances that reach from end to end."""
    if coarse == fine or coarse.range < fine.range:
        return None
    if coarse.slide % fine.slide or (coarse.range - fine.range) % fine.slide:
        return None
    step = fine.range // fine.slide * fine.slide
    return 1 - (fine.range - coarse.range) // step


COVERED = CoverRelation("covered by", _covered)
PARTITIONED = CoverRelation("partitioned by", _partitioned)
ALONE = CoverRelation("each alone", lambda coarse, fine: None)
SUBTRACTED = CoverRelation("tiled by, what leaves subtracted", _tiled, subtracts=True)
SPANNED = CoverRelation("spanned by", _spanned)

_MERGED = ("SUM", "COUNT", "AVG", "MEAN", "STDDEV", "STDEV", "STD", "STDDEV_SAMP", "STDDEV_POP", "VARIANCE", "VAR_SAMP",
           "VAR_POP")
_FUNCTIONS = {
    **dict.fromkeys(_MERGED, (PARTITIONED, SUBTRACTED)),
    **dict.fromkeys(("MIN", "MAX"), (COVERED, SPANNED)),
    **dict.fromkeys(("MEDIAN", "PERCENTILE", "COUNT_DISTINCT", "RANK"), (ALONE, ALONE)),
}


def relation(function: str, beyond: bool = False) -> CoverRelation:
    """The relation that suffices for a function: Theorems 5 and 6; holistic functions share nothing (§III-A).

    `beyond`: the cheapest relation that is still exact, which the paper does not have.
    """
    relations = _FUNCTIONS.get(function.strip().upper())
    if relations is None:
        raise ForebayError("unknown-function", f"{function!r} is no aggregate function known here",
                           hint=f"they are {', '.join(_FUNCTIONS)}")
    return relations[beyond]
