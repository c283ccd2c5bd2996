"""Row A6, the papers' data generator: streams of tuples by rate, groups, distinct join values, distribution,
correlation, drift, disorder; seeded, as arrays.

What a setting says is exact for a stream's length and seed: the same call gives the same tuples on every machine.
Nothing here writes files.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from jobs.papers.operators.arrivals import ArrivingTuples
from jobs.papers.operators.rings import Ints
from optimizer.errors import ForebayError

SECOND = 1_000_000                    # ticks of a generated time are microseconds
ARRIVALS = ("regular", "random")      # every 1/λ seconds, or uniformly at random within each piece
LARGEST = 2 ** 40                     # distinct values, rates and tuples stay far from the end of 64 bits


@dataclass(frozen=True)
class GeneratedStream:
    """A stream's nature. Distribution: `skew` 0 is uniform, above 0 Zipf's exponent of the join values. `correlation`:
    the share of tuples whose group follows from the join value. `attributes`: how many aggregation attributes, integers
    below `largest`. `disorder`: seconds that a tuple may come late."""

    rate: float
    groups: int = 1
    distinct: int = 10
    skew: float = 0.0
    correlation: float = 0.0
    attributes: int = 1
    largest: int = 1000
    disorder: float = 0.0
    arriving: str = "random"

    def __post_init__(self) -> None:
        for name, least, most, what in (("rate", 1e-3, LARGEST, "tuples a second"), ("groups", 1, LARGEST,
                                                                                     "distinct groups"),
                                        ("distinct", 1, LARGEST,
                                         "distinct join values"), ("skew", 0, 10, "Zipf's exponent, 0 for uniform"),
                                        ("correlation", 0, 1, "the share of groups that follow from the join value"),
                                        ("attributes", 1, 1000, "aggregation attributes"), ("largest", 1, LARGEST,
                                                                                            "values below it"),
                                        ("disorder", 0, 1e9, "seconds that a tuple may come late")):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
                raise refused(f"{name} is {value!r}", f"expected {what}: from {least:g} to {most:g}")
        if self.arriving not in ARRIVALS:
            raise refused(f"arriving is {self.arriving!r}", f"expected {' or '.join(ARRIVALS)}")
        if self.skew and self.distinct > 10_000_000:
            raise refused(f"{self.distinct} distinct join values with a skew",
                          "expected at most 10 million, as each one's share is kept")


@dataclass(frozen=True)
class Drift:
    """From `second` on the stream has another nature."""

    second: float
    stream: GeneratedStream


@dataclass(frozen=True, eq=False)
class Tuples:
    """One row a tuple, in the order in which it arrives; `time` is when it happened, in microseconds from the start."""

    time: Ints
    key: Ints
    group: Ints
    values: Ints      # attribute by tuple

    def __len__(self) -> int:
        return len(self.time)


def generated(stream: GeneratedStream, seconds: float, seed: int = 0, drifts: Sequence[Drift] = ()) -> Tuples:
    """So many seconds of a stream, drifts in order."""
    if not 0 < seconds <= 1e9:
        raise refused(f"{seconds} seconds of a stream", "expected more than none")
    starts = [0.0, *(d.second for d in drifts), float(seconds)]
    if any(a >= b for a, b in zip(starts, starts[1:])):
        raise refused(f"drift points at {', '.join(f'{d.second:g}' for d in drifts)} s of {seconds:g} s",
                      "expected them in order, inside the stream")
    random = np.random.default_rng(seed)
    natures = [stream, *(d.stream for d in drifts)]
    if len({n.attributes for n in natures}) > 1:
        raise refused("a drift changes the number of attributes", "expected the same columns throughout")
    pieces = [_piece(random, nature, first, last) for nature, first, last in zip(natures, starts, starts[1:])]

    def joined(name: str) -> Ints:
        return np.concatenate([getattr(piece, name) for piece in pieces], axis=-1)

    return Tuples(*(joined(field.name) for field in fields(Tuples)))


def merged(streams: Sequence[Tuples]) -> ArrivingTuples:
    """All streams as operators take them, by time, equal times in stream order.

    The first attribute is what is aggregated.
    """
    time = np.concatenate([s.time for s in streams])
    order = np.argsort(time, kind="stable")
    number = np.concatenate([np.full(len(s), i, np.int64) for i, s in enumerate(streams)])
    values = np.concatenate([s.values[0] for s in streams])
    keys, groups = np.concatenate([s.key for s in streams]), np.concatenate([s.group for s in streams])
    return ArrivingTuples(*(c[order] for c in (number, time, keys, groups, values)))


def windowed(stream: GeneratedStream, window: float) -> int:
    """The span in microseconds that holds so many tuples, as paper A gives windows."""
    if window < 1:
        raise refused(f"a window of {window:g} tuples", "expected at least one")
    return max(round(window / stream.rate * SECOND), 1)


def _piece(random: np.random.Generator, stream: GeneratedStream, first: float, last: float) -> Tuples:
    count = round(stream.rate * (last - first))
    if count < 1:
        raise refused(f"{last - first:g} s at {stream.rate:g} a second are no tuple",
                      "expected a longer piece or a higher rate")
    if count < stream.groups:
        raise refused(f"{stream.groups} groups of {count} tuples", "expected no more groups than tuples")
    time = _times(random, stream, count, first, last)
    key = _keys(random, stream, count)
    group = random.integers(0, stream.groups, count, dtype=np.int64)
    if stream.correlation:
        group = np.where(random.random(count, np.float32) < stream.correlation, key % stream.groups, group)
    values = random.integers(0, stream.largest, (stream.attributes, count), dtype=np.int64)
    return _disordered(random, Tuples(time, key, group, values), stream.disorder)


def _times(random: np.random.Generator, stream: GeneratedStream, count: int, first: float, last: float) -> Ints:
    """Sums of exponential gaps, scaled to the length, are distributed as sorted uniform times are."""
    start, length = round(first * SECOND), round((last - first) * SECOND)
    if stream.arriving == "regular":
        return start + np.arange(count, dtype=np.int64) * length // count
    gaps = np.cumsum(random.standard_exponential(count + 1, np.float32), dtype=np.float64)
    return start + (gaps[:-1] * (length / gaps[-1])).astype(np.int64)


def _keys(random: np.random.Generator, stream: GeneratedStream, count: int) -> Ints:
    """Zipf's law by the inverse of its distribution function: value k has a share that goes with 1 / (k + 1)^skew."""
    if not stream.skew:
        return random.integers(0, stream.distinct, count, dtype=np.int64)
    shares = np.cumsum(1.0 / np.arange(1, stream.distinct + 1) ** stream.skew)
    return np.searchsorted(shares, random.random(count) * shares[-1], side="right").clip(0, stream.distinct - 1)


def _disordered(random: np.random.Generator, tuples: Tuples, most: float) -> Tuples:
    """Each arrives up to `most` seconds after it happened; those of one piece only mix among themselves."""
    if not most:
        return tuples
    order = np.argsort(tuples.time + random.integers(0, round(most * SECOND) + 1, len(tuples)), kind="stable")
    return replace(tuples, time=tuples.time[order], key=tuples.key[order], group=tuples.group[order],
                   values=tuples.values[:, order])


def refused(message: str, hint: str) -> ForebayError:
    return ForebayError("bad-generator", message, hint=hint)
