"""Paper C's TC: each tuple carries what ends with it (count, sum, largest, smallest), so COUNT, SUM, AVG, MAX and MIN
of a join of two windows never look back.

Of a pair the tuple that expires first carries: the older one where both windows are as long. Where a group is of the
other stream a tuple cannot carry one number for all its pairs: it then probes once more as it leaves, when all that is
left of the other window expires later and so is what it carries.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jobs.papers.operators.arrivals import ArrivingTuples, JoinWindows
from jobs.papers.operators.compiled import compiled
from jobs.papers.operators.contents import (
    ATTRIBUTES,
    GROUP,
    KEY,
    NONE,
    TIME,
    VALUE,
    Contents,
    contents,
    crowded,
    enter,
    expiring,
    leave,
    oldest,
    parts,
    widened,
)
from jobs.papers.operators.inclusion import two
from jobs.papers.operators.rings import HEAD, HELD, ROOM, START, Ints
from jobs.papers.operators.totals import HIGHEST, LOWEST, Totals, totals
from optimizer.errors import ForebayError

CV, SV, MOST, LEAST = range(ATTRIBUTES, ATTRIBUTES + 4)


class CountingJoin(NamedTuple):
    contents: Contents
    totals: Totals
    windows: JoinWindows
    extremes: bool
    naive: bool
    sums: bool


def start(windows: JoinWindows, extremes: bool = False, naive: bool = False, sums: bool = True) -> CountingJoin:
    """`naive`: as printed, the answer is summed anew over all tuples at each arrival.

    Else it runs along. Extremes are of one group. No `sums`: TC-COUNT.
    """
    if (extremes or naive or not sums) and max(windows.groups) > 1 or extremes and not sums:
        raise ForebayError("bad-arrivals", f"extremes, the naive sum or COUNT alone with groups {windows.groups}",
                           hint="expected one group, as TC is printed")
    return CountingJoin(contents(two(windows), 4 if extremes else 2 if sums else 1), totals(windows), windows, extremes,
                        naive, sums)


def advance(state: CountingJoin, arrivals: ArrivingTuples) -> tuple[CountingJoin, Ints]:
    """The state after the tuples, and COUNT(*) of all groups after each; the state given is used up."""
    w = state.windows
    w.fitting(arrivals)
    counts = np.zeros(len(arrivals), np.int64)
    c, t, a, spans = state.contents, state.totals, arrivals, np.array(w.spans)
    if not state.sums:
        return state._replace(
            contents=_advance_count(c, t.pairs, a.stream, a.time, a.key, spans, w.buckets, state.naive, counts)), counts
    contents_ = _advance(c, t, a.stream, a.time, a.key, a.group, a.value, spans, np.array(w.groups),
                         np.array(w.strides), w.buckets, w.owner, state.extremes, state.naive, counts)
    return state._replace(contents=contents_), counts


@compiled
def _advance_count(c: Contents, count: Ints, stream: Ints, time: Ints, key: Ints, spans: Ints, buckets: int,
                   naive: bool, counts: Ints) -> Contents:
    """TC-COUNT; the older of a pair has one number more to carry, and that is all."""
    cells, bounds, order, queue = parts(c)
    for i in range(len(stream)):
        s, now = stream[i], time[i]
        left = expiring(cells, bounds, order, queue, spans, now)
        while left != NONE:
            count[0] -= cells[CV, oldest(bounds, order, queue, left)]
            leave(bounds, order, queue, left)
            left = expiring(cells, bounds, order, queue, spans, now)
        ring = s * buckets + key[i] % buckets
        if crowded(bounds, queue, s, ring):
            c = widened(c, s, ring)
            cells, bounds, order, queue = parts(c)
        at = enter(cells, bounds, order, queue, s, ring, now, key[i], 0, 0)
        there = ring + buckets if s == 0 else ring - buckets
        count[0] += _count(cells, bounds, there, _older(cells, bounds, there, at, now + spans[s], spans[1 - s], s), at)
        if naive:
            count[0] = _summed(cells, bounds, CV)
        counts[i] = count[0]
    return c


@compiled
def _advance(c: Contents, t: Totals, stream: Ints, time: Ints, key: Ints, group: Ints, value: Ints, spans: Ints,
             groups: Ints, strides: Ints, buckets: int, owner: int, extremes: bool, naive: bool,
             counts: Ints) -> Contents:
    cells, bounds, order, queue = parts(c)
    count, total, most, least = t.pairs, t.sum, t.most, t.least
    whole = int(count.sum())
    for i in range(len(stream)):
        s, now = stream[i], time[i]
        left = expiring(cells, bounds, order, queue, spans, now)
        if left != NONE:
            whole -= _expire(cells, bounds, order, queue, count, total, most, least, left, now, spans, groups, strides,
                             buckets, owner, extremes)
        ring = s * buckets + key[i] % buckets
        if crowded(bounds, queue, s, ring):
            c = widened(c, s, ring)
            cells, bounds, order, queue = parts(c)
        at = enter(cells, bounds, order, queue, s, ring, now, key[i], group[i], value[i])
        if extremes:
            cells[MOST, at], cells[LEAST, at] = LOWEST, HIGHEST
        there = ring + buckets if s == 0 else ring - buckets
        older = _older(cells, bounds, there, at, now + spans[s], spans[1 - s], s)
        code, brought = group[i] * strides[s], groups[1 - s] > 1
        whole += _carry(cells, bounds, count, total, most, least, there, older, at, code, strides[1 - s], brought,
                        s == owner, extremes)
        if naive:
            whole, total[0] = _summed(cells, bounds, CV), _summed(cells, bounds, SV)
            count[0] = whole
            if extremes:
                _extremes(cells, bounds, most, least)
        counts[i] = whole
    return c


@compiled
def _expire(cells: Ints, bounds: Ints, order: Ints, queue: Ints, count: Ints, total: Ints, most: Ints, least: Ints,
            left: int, now: int, spans: Ints, groups: Ints, strides: Ints, buckets: int, owner: int,
            extremes: bool) -> int:
    """What the expired carry leaves with them, the earliest (of window `left`) first; how many pairs went."""
    gone, lost = 0, False
    while left != NONE:
        at = oldest(bounds, order, queue, left)
        gone += cells[CV, at]
        if groups[1 - left] == 1:
            count[cells[GROUP, at] * strides[left]] -= cells[CV, at]
            total[cells[GROUP, at] * strides[left]] -= cells[SV, at]
        else:
            there = (1 - left) * buckets + cells[KEY, at] % buckets
            _take(cells, bounds, count, total, there, at, cells[GROUP, at] * strides[left], strides[1 - left],
                  left == owner)
        if extremes:
            lost = lost or (cells[CV, at] > 0 and (cells[MOST, at] == most[0] or cells[LEAST, at] == least[0]))
        leave(bounds, order, queue, left)
        left = expiring(cells, bounds, order, queue, spans, now)
    if lost:
        _extremes(cells, bounds, most, least)
    return gone


@compiled
def _take(cells: Ints, bounds: Ints, count: Ints, total: Ints, ring: int, at: int, code: int, stride: int,
          owns: bool) -> None:
    """The pairs of a tuple that leaves go from groups that the other window brings."""
    start, head, mask = bounds[ring, START], bounds[ring, HEAD], bounds[ring, ROOM] - 1
    for j in range(head, head + bounds[ring, HELD]):
        other = start + (j & mask)
        if cells[KEY, other] == cells[KEY, at]:
            g = code + cells[GROUP, other] * stride
            count[g] -= 1
            total[g] -= cells[VALUE, at if owns else other]


@compiled
def _older(cells: Ints, bounds: Ints, ring: int, at: int, ends: int, span: int, s: int) -> int:
    """Where the part of a bucket ends whose tuples leave before the arrived one, and so carry: a bucket is in the order
    of `expiring`.
    """
    start, head, mask, now = bounds[ring, START], bounds[ring, HEAD], bounds[ring, ROOM] - 1, cells[TIME, at]
    older = head + bounds[ring, HELD]
    while older > head:
        time = cells[TIME, start + ((older - 1) & mask)]
        if time + span < ends or (time + span == ends and (time < now or (time == now and s == 1))):
            break
        older -= 1
    return older


@compiled
def _count(cells: Ints, bounds: Ints, ring: int, older: int, at: int) -> int:
    """The pairs of an arrived tuple with a bucket, for COUNT alone: each of the older part carries one more, of the
    others the arrived one carries all.
    """
    start, head, mask, key = bounds[ring, START], bounds[ring, HEAD], bounds[ring, ROOM] - 1, cells[KEY, at]
    older_pairs = newer_pairs = 0
    for j in range(head, older):
        other = start + (j & mask)
        if cells[KEY, other] == key:
            older_pairs += 1
            cells[CV, other] += 1
    for j in range(older, head + bounds[ring, HELD]):
        newer_pairs += cells[KEY, start + (j & mask)] == key
    cells[CV, at] = newer_pairs
    return older_pairs + newer_pairs


@compiled
def _carry(cells: Ints, bounds: Ints, count: Ints, total: Ints, most: Ints, least: Ints, ring: int, older: int, at: int,
           code: int, stride: int, brought: bool, owns: bool, extremes: bool) -> int:
    """The pairs of an arrived tuple with a bucket, each carried by the one of the two that leaves first.

    How many there are.
    """
    pairs, worths, key, value = 0, 0, cells[KEY, at], cells[VALUE, at]
    start, head, mask = bounds[ring, START], bounds[ring, HEAD], bounds[ring, ROOM] - 1
    for j in range(head, head + bounds[ring, HELD]):
        other = start + (j & mask)
        if cells[KEY, other] == key:
            carrier, worth = other if j < older else at, value if owns else cells[VALUE, other]
            pairs += 1
            worths += worth
            cells[CV, carrier] += 1
            cells[SV, carrier] += worth
            if brought:
                count[code + cells[GROUP, other] * stride] += 1
                total[code + cells[GROUP, other] * stride] += worth
            if extremes:
                cells[MOST, carrier], cells[LEAST, carrier] = max(cells[MOST, carrier],
                                                                  worth), min(cells[LEAST, carrier], worth)
                most[0], least[0] = max(most[0], worth), min(least[0], worth)
    if pairs and not brought:
        count[code] += pairs
        total[code] += worths
    return pairs


@compiled
def _extremes(cells: Ints, bounds: Ints, most: Ints, least: Ints) -> None:
    """MAX and MIN over what all tuples carry (5): only when the tuple that carried one has left, or naively."""
    most[0], least[0] = LOWEST, HIGHEST
    for ring in range(len(bounds) - 1):
        start, head, mask = bounds[ring, START], bounds[ring, HEAD], bounds[ring, ROOM] - 1
        for j in range(head, head + bounds[ring, HELD]):
            at = start + (j & mask)
            most[0], least[0] = max(most[0], cells[MOST, at]), min(least[0], cells[LEAST, at])


@compiled
def _summed(cells: Ints, bounds: Ints, column: int) -> int:
    """Steps 8 to 11 of TC-COUNT: the sum of all CV over both windows."""
    sum_ = 0
    for ring in range(len(bounds) - 1):
        start, head, mask = bounds[ring, START], bounds[ring, HEAD], bounds[ring, ROOM] - 1
        for j in range(head, head + bounds[ring, HELD]):
            sum_ += cells[column, start + (j & mask)]
    return sum_
