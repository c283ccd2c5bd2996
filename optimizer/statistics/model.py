"""Statistics: what is known of a query's inputs and of how they join, as plain numbers per input and join key.

Whoever measured them; nothing is derived here.

Distinct combinations of an input's attributes in n of its rows are taken as D(n) = M·(1 − e^(−n/M)): one number M
serves panes, windows and all between.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from optimizer.errors import ForebayError


@dataclass(frozen=True)
class InputStatistics:
    """One input: `InputStatistics(10, 600, 0.5, combinations=40)` is a stream of 10 rows a second whose window of a
    minute holds 600; half of them pass its selections, with 40 combinations of its attributes.

    `rate` and `rows` are before its selections, `rows` what its window holds at that rate (a relation: all its rows),
    `present` what it held at the boundary that was sampled.
    """

    rate: float                  # rows a second; 0 for a relation
    rows: float
    selectivity: float = 1.0     # share of them that pass the input's own selections
    combinations: float = 1e12   # M above: of the attributes (grouping and join) of rows that pass
    late: float = 0.0            # share of rows that came after a boundary they belong to
    present: float = 0.0         # 0: not known

    def __post_init__(self) -> None:
        limits = {"rate": (0, 1e12), "rows": (0, 1e15), "selectivity": (0, 1), "combinations": (1, 1e15),
                  "late": (0, 1), "present": (0, 1e15)}
        for name, (least, most) in limits.items():
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not least <= value <= most:
                raise ForebayError("bad-statistics", f"{name} of an input is {value!r}",
                                   hint=f"expected a number from {least:g} to {most:g}")


@dataclass(frozen=True)
class KeyStatistics:
    """A join key (an equality class of the join), from a sample of its values: those with the smallest hashes, so that
    the sample is the same on every input.

    `KeyStatistics(1000, 0.002, {0: (0.1, 0.2), 1: (0.5, 0.0)})` is a sample of two of 1,000 values: the first has a
    tenth of input 0's rows and half of input 1's, the second a fifth of input 0's and none of input 1's.

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
    heavy: KeyStatistics | None = None

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1 or self.keys < 1:
            raise ForebayError("bad-statistics", f"a sample of {self.share!r} of {self.keys!r} keys",
                               hint="expected at least one key and a share above 0, up to 1")
        if len({len(shares) for shares in (*self.rows.values(), *self.combinations.values())}) > 1:
            raise ForebayError("bad-statistics", "the inputs of a sample have different keys",
                               hint="expected one number a key of the sample on each input, 0 where it is absent")


@dataclass(frozen=True)
class QueryStatistics:
    """All that is known of a query: `QueryStatistics((InputStatistics(10, 600),), (), batch=10, groups=40)` is of one
    stream without a join, with a boundary every ten seconds and 40 groups in the answer.

    `classes` are in the order of Shape.keys. `batch` is the seconds between boundaries at which rows are taken in.
    `weight` is how many rows the statistics rest on, 0 if all is assumed. `at` is the last boundary sampled (µs).
    """

    inputs: tuple[InputStatistics, ...]
    classes: tuple[KeyStatistics, ...]
    batch: float
    groups: float = 1.0
    fanout: float | None = None      # joined rows of a full window, where a plan has counted them
    weight: float = 0.0
    at: int | None = None
