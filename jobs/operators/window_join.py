"""Paper B's joins of two time windows: WNL and WHJ with four ways of invalidation; matches are counted, and what each buffer holds after every tuple.

A nested loop is a hash join with one bucket ("nested loops can be considered a windowed hash join with only one hash bucket", section 2), so one function
is both. Whatever the invalidation, the matches are the same: the bucket that is scanned never holds an expired tuple.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jobs.operators.arrivals import Arrivals, Windows
from jobs.operators.compiled import compiled
from jobs.operators.rings import HEAD, HELD, ROOM, START, Ints, Rings, added, drop, full, grown, rings, slot
from optimizer.cost.window_join import STRATEGIES
from optimizer.errors import ForebayError

PROBE, PROBE_INSERT, ALL_PROBED, OPTIMAL = range(4)         # in the order of STRATEGIES
TIME, KEY = 0, 1


class Join(NamedTuple):
    """Buffers of both streams, those of the first first."""

    buffers: Rings
    windows: Windows
    strategy: int


class Joined(NamedTuple):
    """For each arrival its matches, and what the two buffers hold after it, stale tuples included."""

    matches: Ints
    held: Ints


def start(windows: Windows, strategy: str = "probe and insert") -> Join:
    """An empty join."""
    if len(windows.spans) != 2:
        raise ForebayError("bad-arrivals", f"{len(windows.spans)} windows", hint="expected two: the join of paper B has two inputs")
    if strategy not in STRATEGIES:
        raise ForebayError("bad-statistics", f"invalidation is {strategy!r}", hint=f"expected {', '.join(STRATEGIES)}")
    return Join(rings(2 * windows.buckets, 2), windows, list(STRATEGIES).index(strategy))


def advance(join: Join, arrivals: Arrivals) -> tuple[Join, Joined]:
    """What the tuples match, one after another, and the join after them; the join given is used up."""
    join.windows.fitting(arrivals)
    matches, held = np.zeros(len(arrivals), np.int64), np.zeros((len(arrivals), 2), np.int64)
    spans, buckets = np.array(join.windows.spans, np.int64), join.windows.buckets
    buffers = _advance(join.buffers, arrivals.stream, arrivals.time, arrivals.key, spans, buckets, join.strategy, matches, held)
    return join._replace(buffers=buffers), Joined(matches, held)


def filled(join: Join, arrivals: Arrivals) -> Join:
    """The join after tuples whose matches nobody asks for: as `advance`, but nothing is probed and nothing leaves. The join given is used up."""
    join.windows.fitting(arrivals)
    return join._replace(buffers=_filled(join.buffers, arrivals.stream, arrivals.time, arrivals.key, join.windows.buckets))


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
def _advance(r: Rings, stream: Ints, time: Ints, key: Ints, spans: Ints, buckets: int, strategy: int, matches: Ints, held: Ints) -> Rings:
    """Figs. 2 and 3; the optional second removal is by the strategy."""
    index = r.bounds
    kept = np.array([index[:buckets, HELD].sum(), index[buckets:-1, HELD].sum()])
    for i in range(len(stream)):
        own, other, now = stream[i], 1 - stream[i], time[i]
        bucket = key[i] % buckets
        if strategy >= ALL_PROBED:
            kept[other] -= _clear(r.cells, index, other * buckets, (other + 1) * buckets, now - spans[other])
        else:
            kept[other] -= _clear(r.cells, index, other * buckets + bucket, other * buckets + bucket + 1, now - spans[other])
        matches[i] = _matches(r.cells, index, other * buckets + bucket, key[i])
        if strategy == OPTIMAL:
            kept[own] -= _clear(r.cells, index, own * buckets, (own + 1) * buckets, now - spans[own])
        elif strategy == PROBE_INSERT:
            kept[own] -= _clear(r.cells, index, own * buckets + bucket, own * buckets + bucket + 1, now - spans[own])
        if full(index, own * buckets + bucket):
            r = grown(r, own * buckets + bucket)
        at = added(index, own * buckets + bucket)
        r.cells[TIME, at], r.cells[KEY, at] = now, key[i]
        kept[own] += 1
        held[i, 0], held[i, 1] = kept[0], kept[1]
    return r


@compiled
def _clear(cells: Ints, index: Ints, first: int, last: int, expired: int) -> int:
    """Drops what came at `expired` or before from the front of some buckets; how many went."""
    dropped = 0
    for ring in range(first, last):
        while index[ring, HELD] > 0 and cells[TIME, slot(index, ring, 0)] <= expired:
            drop(index, ring)
            dropped += 1
    return dropped


@compiled
def _matches(cells: Ints, index: Ints, ring: int, key: int) -> int:
    """Scans a bucket, which is one piece of memory or two."""
    start, held = index[ring, START], index[ring, HELD]
    first = start + index[ring, HEAD]
    straight = min(held, index[ring, ROOM] - index[ring, HEAD])
    found = 0
    for found_key in cells[KEY, first:first + straight]:
        found += found_key == key
    for found_key in cells[KEY, start:start + held - straight]:
        found += found_key == key
    return found
