"""Samples of one batch's rows: counts, and the distinct values with the smallest hashes.

Mergeable over batches by union. Nothing is estimated here.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SPACE = 2**63              # hashes are 0 ≤ h < SPACE
COMBINATIONS = 256         # distinct combinations kept of an input
KEYS = 512                 # key values kept of a class and an input
HEAVY = 32                 # most frequent key values kept besides
Counts = Mapping[int, tuple[int, int]]


@dataclass(frozen=True)
class Smallest:
    """By hash: rows, and distinct combinations in them.

    Every value with a hash below `below` is here; `extra` has some of the others.
    """

    below: int = SPACE
    counts: Counts = field(default_factory=dict)
    extra: Counts = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        return self.below == SPACE

    @property
    def share(self) -> float:
        """How much of all values is here."""
        return self.below / SPACE


@dataclass(frozen=True)
class InputSample:
    """One input's rows that came with a batch.

    `window` is how many rows its window held then; `held` how many distinct combinations, where state tells.
    """

    rows: int
    passing: int
    late: int = 0
    window: float = 0.0
    combinations: Smallest = Smallest()
    keys: Mapping[int, Smallest] = field(default_factory=dict)
    held: int | None = None
    version: int | None = None         # of a relation
    seconds: float | None = None       # that these rows took to come, if not as long as the sample's boundaries
    groups: Smallest | None = None     # of the query's grouping attributes on this input, where a window was looked at


@dataclass(frozen=True)
class Sample:
    """All inputs of a query.

    `seconds` of boundaries up to `at` (µs). Hashes of different engines differ, and so cannot be merged.
    """

    at: int
    seconds: float
    inputs: tuple[InputSample, ...]
    dialect: str = "duckdb"
    groups: float | None = None
    joined: float | None = None        # rows of the join at `at`


def smallest(counts: Counts, below: int, most: int) -> Smallest:
    """The `most` smallest of values of which all below a limit are given.

    The largest of a full sample only says how far it reaches.
    """
    inside = sorted(h for h in counts if h < below)
    if len(inside) >= most:
        below = inside[most - 1]
    return Smallest(below, {h: counts[h] for h in inside if h < below}, {h: c for h, c in counts.items() if h >= below})


def united(parts: Sequence[Smallest], most: int) -> Smallest:
    """The sample of all their rows together: exact, since a value among the smallest of the union is so in each part
    that has it.
    """
    below = min((p.below for p in parts), default=SPACE)
    sums: dict[int, tuple[int, int]] = {}
    for part in parts:
        for h, (n, m) in part.counts.items():
            if h < below:
                before = sums.get(h, (0, 0))
                sums[h] = (before[0] + n, before[1] + m)
    return smallest(sums, below, most)


def document(sample: InputSample) -> dict[str, Any]:
    """As JSON keeps it."""
    return {
        "rows": sample.rows,
        "passing": sample.passing,
        "late": sample.late,
        "window": sample.window,
        "held": sample.held,
        "version": sample.version,
        "seconds": sample.seconds,
        "grouping": None if sample.groups is None else _written(sample.groups),
        "combinations": _written(sample.combinations),
        "keys": {
            str(c): _written(s) for c, s in sample.keys.items()
        }
    }


def from_document(entry: Mapping[str, Any]) -> InputSample:
    combinations, keys = _read(entry["combinations"]), {int(c): _read(s) for c, s in entry["keys"].items()}
    groups = _read(entry["grouping"]) if entry.get("grouping") is not None else None      # samples of before have none
    return InputSample(entry["rows"], entry["passing"], entry["late"], entry["window"], combinations, keys,
                       entry["held"], entry["version"], entry["seconds"], groups)


def _written(sample: Smallest) -> list[Any]:
    """`[below, [[hash, rows, combinations], …], [the same of extra ones]]`."""
    return [sample.below, _triples(sample.counts), _triples(sample.extra)]


def _triples(counts: Counts) -> list[list[int]]:
    return [[h, n, m] for h, (n, m) in counts.items()]


def _read(entry: Sequence[Any]) -> Smallest:
    below, counts, extra = entry
    return Smallest(below, {h: (n, m) for h, n, m in counts}, {h: (n, m) for h, n, m in extra})
