"""What the operators take: tuples of all streams in one order of arrival, and windows that hold for as long; both are
refused by name when they make no sense.

A tuple of time s counts at time t iff t − s < span (paper B, section 1): exactly `span` after it came it is gone. Times
never go back; equal ones arrive in the order given. Everything is an integer: times and spans in ticks of any length,
keys and groups numbered from 0.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from jobs.papers.operators.rings import Ints
from optimizer.errors import ForebayError


@dataclass(frozen=True, eq=False)
class ArrivingTuples:
    """One row a tuple: its stream, time, join value, group and the attribute that is aggregated."""

    stream: Ints
    time: Ints
    key: Ints
    group: Ints
    value: Ints

    def __post_init__(self) -> None:
        for field in fields(self):
            array = getattr(self, field.name)
            if not isinstance(array, np.ndarray) or array.dtype != np.int64 or array.shape != self.stream.shape:
                raise _wrong(f"the column {field.name} is {array!r:.60}",
                             f"expected an array of {len(self.stream)} int64")
        for name in ("stream", "key", "group"):
            if len(self) and getattr(self, name).min() < 0:
                raise _wrong(f"the column {name} has {getattr(self, name).min()}", "expected numbers from 0")
        back = np.flatnonzero(np.diff(self.time) < 0)
        if len(back):
            at = int(back[0]) + 1
            raise _wrong(f"tuple {at} is of {self.time[at]}, the one before of {self.time[at - 1]}",
                         "expected tuples in order of time; sort disordered ones")

    def __len__(self) -> int:
        return len(self.stream)

    def part(self, first: int, last: int) -> ArrivingTuples:
        """The tuples from one position up to another."""
        return ArrivingTuples(*(getattr(self, f.name)[first:last] for f in fields(self)))

    def until(self, time: int) -> int:
        """How many come before a time."""
        return int(np.searchsorted(self.time, time))


@dataclass(frozen=True)
class JoinWindows:
    """A window of so many ticks a stream, kept in so many hash buckets each.

    Groups a stream (1: it brings none); the stream whose attribute is aggregated.
    """

    spans: tuple[int, ...]
    buckets: int = 100
    groups: tuple[int, ...] = ()
    owner: int = 0

    def __post_init__(self) -> None:
        if len(self.spans) < 2:
            raise _wrong(f"{len(self.spans)} windows", "expected one for each of at least two streams")
        for s, span in enumerate(self.spans):
            if span < 1:
                raise _wrong(f"the window of stream {s} is {span} ticks",
                             "expected at least one tick, else its tuples never count")
        object.__setattr__(self, "groups", self.groups or (1,) * len(self.spans))
        if len(self.groups) != len(self.spans) or min(self.groups) < 1:
            raise _wrong(f"groups are {self.groups} for {len(self.spans)} streams",
                         "expected one number a stream, at least 1")
        if self.buckets < 1:
            raise _wrong(f"{self.buckets} hash buckets", "expected at least 1; one is a nested loop")
        if self.owner not in range(len(self.spans)):
            raise _wrong(f"the aggregated attribute is of stream {self.owner}", f"expected 0 to {len(self.spans) - 1}")

    @property
    def strides(self) -> tuple[int, ...]:
        """An answer's group is Σ group × stride, the first stream's the most significant."""
        return tuple(int(np.prod(self.groups[s + 1:], dtype=np.int64)) for s in range(len(self.groups)))

    def fitting(self, arrivals: ArrivingTuples) -> ArrivingTuples:
        """The arrivals, if they are of these streams and groups."""
        if len(arrivals) and arrivals.stream.max() >= len(self.spans):
            raise _wrong(f"there is a tuple of stream {arrivals.stream.max()}",
                         f"expected 0 to {len(self.spans) - 1}, as there are windows")
        limits = np.array(self.groups, np.int64)[arrivals.stream]
        if (arrivals.group >= limits).any():
            at = int(np.argmax(arrivals.group >= limits))
            raise _wrong(f"tuple {at} is of group {arrivals.group[at]}",
                         f"stream {arrivals.stream[at]} has groups 0 to {limits[at] - 1}")
        return arrivals


def arrivals(rows: Sequence[tuple[int, int, int, int, int]]) -> ArrivingTuples:
    """From rows of stream, time, key, group, value."""
    columns = np.array(rows, np.int64).reshape(-1, 5)
    return ArrivingTuples(*(np.ascontiguousarray(columns[:, c]) for c in range(5)))


def _wrong(message: str, hint: str) -> ForebayError:
    return ForebayError("bad-arrivals", message, hint=hint)
