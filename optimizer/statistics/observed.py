"""What is known of a query's inputs and of how they join: plain numbers per input and equality class, whoever measured
them; nothing is derived here.

Distinct combinations of an input's attributes in n of its rows are taken as D(n) = M·(1 − e^(−n/M)): one number M
serves panes, windows and all between.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from optimizer.errors import ForebayError


@dataclass(frozen=True)
class InputObserved:
    """One input.

    `rate` and `rows` are before its selections, `rows` what its window holds (a relation: all of its rows).
    """

    rate: float                  # rows a second; 0 for a relation
    rows: float
    selectivity: float = 1.0     # share of them that pass the input's own selections
    combinations: float = 1e12   # M above: of the attributes (grouping and join) of rows that pass
    late: float = 0.0            # share of rows that came after a boundary they belong to

    def __post_init__(self) -> None:
        for name, least, most in (("rate", 0, 1e12), ("rows", 0, 1e15), ("selectivity", 0, 1), ("combinations", 1,
                                                                                                1e15), ("late", 0, 1)):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not least <= value <= most:
                raise ForebayError("bad-statistics", f"{name} of an input is {value!r}",
                                   hint=f"expected a number from {least:g} to {most:g}")


@dataclass(frozen=True)
class ClassObserved:
    """One equality class of the join, from a sample of its key values that is the same on every input: those with the
    smallest hashes.

    `rows[i][k]` is the share of input i's rows that have the sample's key k, `combinations[i][k]` of its distinct
    combinations; `share` is how much of all key values the sample holds. So Σ_k Π_i rows[i][k] / share estimates the
    chance that a row of each input agree, without bias.

    Where the sample is not of all keys, `heavy` has the most frequent ones, which then are not in the sample: each
    counted for itself, its share is 1. The chance is the sum of both.
    """

    keys: float
    share: float = 1.0
    rows: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    combinations: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    heavy: ClassObserved | None = None

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1 or self.keys < 1:
            raise ForebayError("bad-statistics", f"a sample of {self.share!r} of {self.keys!r} keys",
                               hint="expected at least one key and a share above 0, up to 1")
        if len({len(v) for v in (*self.rows.values(), *self.combinations.values())}) > 1:
            raise ForebayError("bad-statistics", "the inputs of a sample have different keys",
                               hint="expected one number a key of the sample on each input, 0 where it is absent")


@dataclass(frozen=True)
class Observed:
    """All of a query: `classes` in the order of Shape.keys, `groups` of the answer, `batch` seconds between boundaries
    at which rows are taken in.

    `weight` is how many rows it rests on; 0 says that all of it is assumed. `at` is the last boundary it saw (µs).
    """

    inputs: tuple[InputObserved, ...]
    classes: tuple[ClassObserved, ...]
    batch: float
    groups: float = 1.0
    fanout: float | None = None      # joined rows of a full window, where a plan has counted them
    weight: float = 0.0
    at: int | None = None
