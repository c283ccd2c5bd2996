"""Paper B's joins of two time windows: WNL and WHJ with four ways of invalidation; matches are counted, and what each
buffer holds after every tuple.

A nested loop is a hash join with one bucket ("nested loops can be considered a windowed hash join with only one hash
bucket", section 2), so one function is both. Whatever the invalidation, the matches are the same: the bucket that is
scanned never holds an expired tuple.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jobs.papers.operators.arrivals import ArrivingTuples, JoinWindows
from jobs.papers.operators.compiled import compiled
from jobs.papers.operators.rings import HEAD, HELD, ROOM, START, Ints, Rings, added, full, grown, rings
from optimizer.errors import ForebayError
from optimizer.papers.window_join import STRATEGIES

PROBE, PROBE_INSERT, ALL_PROBED, OPTIMAL = range(4)         # in the order of STRATEGIES
TIME, KEY = 0, 1


class WindowJoin(NamedTuple):
    """Buffers of both streams, those of the first first."""

    buffers: Rings
    windows: JoinWindows
    strategy: int


class Joined(NamedTuple):
    """For each arrival its matches, and what the two buffers hold after it, stale tuples included."""

    matches: Ints
    held: Ints


def start(windows: JoinWindows, strategy: str = "probe and insert") -> WindowJoin:
    """An empty join."""
    if len(windows.spans) != 2:
        raise ForebayError("bad-arrivals", f"{len(windows.spans)} windows",
                           hint="expected two: the join of paper B has two inputs")
    if strategy not in STRATEGIES:
        raise ForebayError("bad-statistics", f"invalidation is {strategy!r}", hint=f"expected {', '.join(STRATEGIES)}")
    return WindowJoin(rings(2 * windows.buckets, 2), windows, list(STRATEGIES).index(strategy))


def advance(join: WindowJoin, arrivals: ArrivingTuples) -> tuple[WindowJoin, Joined]:
    """What the tuples match, one after another, and the join after them; the join given is used up."""
    join.windows.fitting(arrivals)
    matches, held = np.zeros(len(arrivals), np.int64), np.zeros((len(arrivals), 2), np.int64)
    spans, buckets = np.array(join.windows.spans, np.int64), join.windows.buckets
    buffers = _advance(join.buffers, arrivals.stream, arrivals.time, arrivals.key, spans, buckets, join.strategy,
                       matches, held)
    return join._replace(buffers=buffers), Joined(matches, held)


def filled(join: WindowJoin, arrivals: ArrivingTuples) -> WindowJoin:
    """The join after tuples whose matches nobody asks for: as `advance`, but nothing is probed and nothing leaves.

    The join given is used up.
    """
    join.windows.fitting(arrivals)
    return join._replace(
        buffers=_filled(join.buffers, arrivals.stream, arrivals.time, arrivals.key, join.windows.buckets))


@compiled
def _filled(r: Rings, stream: Ints, time: Ints, key: Ints, buckets: int) -> Rings:
    for i in range(len(stream)):
        ring = stream[i] * buckets + key[i] % buckets
        if full(r.bounds, ring):
            r = grown(r, ring)
        at = added(r.bounds, ring)
        r.cells[TIME, at], r.cells[KEY, at] = time[i], key[i]
    return r


@compiled
def _advance(r: Rings, stream: Ints, time: Ints, key: Ints, spans: Ints, buckets: int, strategy: int, matches: Ints,
             held: Ints) -> Rings:
    """Figs.

    2 and 3; the optional second removal is by the strategy. What is kept of each stream is in two plain numbers: an
    array costs more than the look.
    """
    index, times, keys = r.bounds, r.cells[TIME], r.cells[KEY]
    first, second = index[:buckets, HELD].sum(), index[buckets:-1, HELD].sum()
    for i in range(len(stream)):
        s, now = stream[i], time[i]
        bucket, other = key[i] % buckets, 1 - s
        probed, mine = other * buckets + bucket, s * buckets + bucket
        if strategy >= ALL_PROBED:
            gone = _clear(times, index, other * buckets, (other + 1) * buckets, now - spans[other])
        else:
            gone = _expire(times, index, probed, now - spans[other])
        matches[i] = _matches(keys, index, probed, key[i])
        added_here = 1
        if strategy == OPTIMAL:
            added_here -= _clear(times, index, s * buckets, (s + 1) * buckets, now - spans[s])
        elif strategy == PROBE_INSERT:
            added_here -= _expire(times, index, mine, now - spans[s])
        if full(index, mine):
            r = grown(r, mine)
            times, keys = r.cells[TIME], r.cells[KEY]
        at = added(index, mine)
        times[at], keys[at] = now, key[i]
        first += added_here if s == 0 else -gone
        second += added_here if s == 1 else -gone
        held[i, 0], held[i, 1] = first, second
    return r


@compiled
def _clear(times: Ints, index: Ints, first: int, last: int, expired: int) -> int:
    """Drops what came at `expired` or before from some buckets; how many went."""
    dropped = 0
    for ring in range(first, last):
        dropped += _expire(times, index, ring, expired)
    return dropped


@compiled
def _expire(times: Ints, index: Ints, ring: int, expired: int) -> int:
    """The same of one bucket, from its front.

    It is written back whether something went or not: to ask would be a branch that nobody can foresee.
    """
    start, head, mask, left, gone = index[ring, START], index[ring, HEAD], index[ring, ROOM] - 1, index[ring, HELD], 0
    while gone < left and times[start + ((head + gone) & mask)] <= expired:
        gone += 1
    index[ring, HEAD], index[ring, HELD] = (head + gone) & mask, left - gone
    return gone


@compiled
def _matches(keys: Ints, index: Ints, ring: int, key: int) -> int:
    """Scans a bucket, which is one piece of memory or two."""
    start, held = index[ring, START], index[ring, HELD]
    first = start + index[ring, HEAD]
    straight = min(held, index[ring, ROOM] - index[ring, HEAD])
    matches = 0
    for found_key in keys[first:first + straight]:
        matches += found_key == key
    for found_key in keys[start:start + held - straight]:
        matches += found_key == key
    return matches
