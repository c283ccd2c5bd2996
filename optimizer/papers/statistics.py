"""What the papers' models read: streams, and the machine's constants.

Each value is in its range or is refused by name; nothing is derived here.
"""
from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction

from optimizer.errors import ForebayError

METHODS = ("hash", "nested loop")
LARGEST = 1e12      # products over a dozen inputs stay finite


def checked(owner: str, field: str, value: object, expected: str, least: float = 0, most: float = LARGEST) -> None:
    """Refuses what is not a number from `least` to `most`. Fractions pass, so that equalities can be shown exactly."""
    is_number = isinstance(value, (int, float, Fraction)) and not isinstance(value, bool)
    in_range = isinstance(value, (int, float, Fraction)) and least <= value <= most
    if not is_number or not in_range:
        bounds = f"at least {least:g}" if most == LARGEST else f"from {least:g} to {most:g}"
        raise ForebayError("bad-statistics", f"{field} of {owner} is {value!r}",
                           hint=f"expected {expected}: a number {bounds}")


@dataclass(frozen=True)
class PaperStream:
    """One input of a join as paper A sees it (Tables 1, 2). A relation is a window that is never updated: rate 0.

    `leaving`: tuples also leave the window one by one (sliding). Landmark windows have no decrement and tumbling ones
    discard it (Def. 2).
    """

    name: str
    rate: float                 # λ, tuples a second
    window: float               # w, tuples
    # g, distinct values of the query's grouping attributes on this input, 1 where it has none
    groups: float = 1
    selectivity: float = 1      # σ = 1 / distinct join values
    leaving: bool = True

    def __post_init__(self) -> None:
        owner = f"stream {self.name}"
        checked(owner, "rate", self.rate, "tuples a second")
        checked(owner, "window", self.window, "tuples in the window")
        checked(owner, "groups", self.groups, "distinct values of the grouping attributes, 1 where there are none", 1)
        checked(owner, "selectivity", self.selectivity, "1 / distinct join values", 0, 1)
        if self.selectivity == 0:
            raise ForebayError("bad-statistics", f"selectivity of {owner} is 0",
                               hint="expected 1 / distinct join values, above 0")


def timed(name: str, rate: float, seconds: float, groups: float = 1, selectivity: float = 1) -> PaperStream:
    """A stream with a sliding window of so many seconds, which holds w = λ·T tuples (paper A, Def. 1)."""
    checked(f"stream {name}", "rate", rate, "tuples a second")
    checked(f"stream {name}", "seconds", seconds, "the window's length in seconds")
    return PaperStream(name, rate, rate * seconds, groups, selectivity)


@dataclass(frozen=True)
class Constants:
    """Paper A's tuning constants (Table 2), one unit of time each: Pn, Ph probe a tuple, Un, Uh update a window, Ug
    finds and updates a group.
    """

    Pn: float = 1.0
    Ph: float = 1.0
    Un: float = 1.0
    Uh: float = 1.0
    Ug: float = 1.0

    def __post_init__(self) -> None:
        for field in fields(self):
            checked("the constants", field.name, getattr(self, field.name), "units of time a tuple")


@dataclass(frozen=True)
class Setting:
    """Everything paper A's formulas read.

    `hashed` is the input on whose grouping attributes the answer's hash table stands: Eq. 22 says the first.
    """

    streams: tuple[PaperStream, ...]
    method: str = "hash"
    buckets: float = 1021       # B, the most a hash table may have
    constants: Constants = Constants()
    hashed: int = 0

    def __post_init__(self) -> None:
        if not self.streams:
            raise ForebayError("bad-statistics", "a setting without streams",
                               hint="expected one stream an input, in FROM order")
        if self.method not in METHODS:
            raise ForebayError("bad-statistics", f"method is {self.method!r}", hint=f"expected {' or '.join(METHODS)}")
        checked("the hash tables", "buckets", self.buckets, "the most buckets of a hash table", 1)
        if self.hashed not in range(len(self.streams)):
            raise ForebayError("bad-statistics", f"hashed is {self.hashed!r}",
                               hint=f"expected the number of an input, 0 to {len(self.streams) - 1}")

    @property
    def probe(self) -> float:
        return self.constants.Ph if self.method == "hash" else self.constants.Pn

    @property
    def update(self) -> float:
        return self.constants.Uh if self.method == "hash" else self.constants.Un
