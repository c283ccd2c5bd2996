"""Paper C's IC and GIC: COUNT, SUM and AVG of a join of two windows by what comes and what goes, in O(a+b) space;
joined tuples are never kept.

    COUNT += |{f} ⋈ B'| − |SetA ⋈ B'| − |SetB ⋈ (A' − {f})| − |SetA ⋈ SetB|        (2)

The sets are empty but for the few that expired since the last arrival. They leave one by one, each probing what the
other window still holds: for A's first that is |SetA ⋈ B'| + |SetA ⋈ SetB|, for B's then |SetB ⋈ (A' − {f})|, and any
other order adds up to the same. With groups this is GIC: a value for each.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jobs.papers.operators.arrivals import ArrivingTuples, JoinWindows
from jobs.papers.operators.compiled import compiled
from jobs.papers.operators.contents import (
    GROUP,
    KEY,
    NONE,
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
from jobs.papers.operators.rings import HEAD, HELD, ROOM, START, Ints
from jobs.papers.operators.totals import Totals, totals
from optimizer.errors import ForebayError


class Inclusion(NamedTuple):
    contents: Contents
    totals: Totals
    windows: JoinWindows
    sums: bool


def start(windows: JoinWindows, sums: bool = True) -> Inclusion:
    """Nothing has come yet. Without `sums` it is IC-COUNT, of one group."""
    if not sums and max(windows.groups) > 1:
        raise ForebayError("bad-arrivals", f"COUNT alone with groups {windows.groups}",
                           hint="expected one group, as IC is printed; GIC has sums, too")
    return Inclusion(contents(two(windows)), totals(windows), windows, sums)


def advance(state: Inclusion, arrivals: ArrivingTuples, having: int = 0) -> tuple[Inclusion, Ints]:
    """The state after the tuples, and after each how many groups have more than `having` joined rows.

    The state given is used up.
    """
    w = state.windows
    w.fitting(arrivals)
    passing = np.zeros(len(arrivals), np.int64)
    c, t, a, spans = state.contents, state.totals, arrivals, np.array(w.spans)
    if not state.sums:
        return state._replace(
            contents=_advance_count(c, t.pairs, a.stream, a.time, a.key, spans, w.buckets, having, passing)), passing
    contents_ = _advance(c, t, a.stream, a.time, a.key, a.group, a.value, spans, np.array(w.groups),
                         np.array(w.strides), w.buckets, w.owner, having, passing)
    return state._replace(contents=contents_), passing


def two(windows: JoinWindows) -> JoinWindows:
    if len(windows.spans) != 2:
        raise ForebayError("bad-arrivals", f"{len(windows.spans)} windows",
                           hint="expected two; jobs.papers.operators.many takes any number")
    return windows


@compiled
def _advance_count(c: Contents, count: Ints, stream: Ints, time: Ints, key: Ints, spans: Ints, buckets: int,
                   having: int, passes: Ints) -> Contents:
    """IC-COUNT: of what comes and of what goes only the number of pairs."""
    cells, bounds, order, queue = parts(c)
    for i in range(len(stream)):
        s, now = stream[i], time[i]
        left = expiring(cells, bounds, order, queue, spans, now)
        while left != NONE:
            gone = cells[KEY, oldest(bounds, order, queue, left)]
            leave(bounds, order, queue, left)
            count[0] -= _count(cells, bounds, (1 - left) * buckets + gone % buckets, gone)
            left = expiring(cells, bounds, order, queue, spans, now)
        ring = s * buckets + key[i] % buckets
        count[0] += _count(cells, bounds, ring + buckets if s == 0 else ring - buckets, key[i])
        if crowded(bounds, queue, s, ring):
            c = widened(c, s, ring)
            cells, bounds, order, queue = parts(c)
        enter(cells, bounds, order, queue, s, ring, now, key[i], 0, 0)
        passes[i] = count[0] > having
    return c


@compiled
def _count(cells: Ints, bounds: Ints, ring: int, key: int) -> int:
    pairs, start, head, mask = 0, bounds[ring, START], bounds[ring, HEAD], bounds[ring, ROOM] - 1
    for j in range(head, head + bounds[ring, HELD]):
        pairs += cells[KEY, start + (j & mask)] == key
    return pairs


@compiled
def _advance(c: Contents, t: Totals, stream: Ints, time: Ints, key: Ints, group: Ints, value: Ints, spans: Ints,
             groups: Ints, strides: Ints, buckets: int, owner: int, having: int, passed: Ints) -> Contents:
    cells, bounds, order, queue = parts(c)
    count, total = t.pairs, t.sum
    passing = int((count > having).sum())
    for i in range(len(stream)):
        s, ring = stream[i], key[i] % buckets
        left = expiring(cells, bounds, order, queue, spans, time[i])
        while left != NONE:
            at = oldest(bounds, order, queue, left)
            gone, worth, code = cells[KEY, at], cells[VALUE, at], cells[GROUP, at] * strides[left]
            leave(bounds, order, queue, left)
            there = (1 - left) * buckets + gone % buckets
            passing += _pairs(cells, bounds, count, total, there, gone, code, worth, strides[1 - left], groups[1 - left]
                              > 1, left == owner, -1, having)
            left = expiring(cells, bounds, order, queue, spans, time[i])
        code, there = group[i] * strides[s], (1 - s) * buckets + ring
        passing += _pairs(cells, bounds, count, total, there, key[i], code, value[i], strides[1 - s], groups[1 - s] > 1,
                          s == owner, 1, having)
        if crowded(bounds, queue, s, s * buckets + ring):
            c = widened(c, s, s * buckets + ring)
            cells, bounds, order, queue = parts(c)
        enter(cells, bounds, order, queue, s, s * buckets + ring, time[i], key[i], group[i], value[i])
        passed[i] = passing
    return c


@compiled
def _pairs(cells: Ints, bounds: Ints, count: Ints, total: Ints, ring: int, key: int, code: int, worth: int, stride: int,
           brought: bool, owns: bool, sign: int, having: int) -> int:
    """Adds a tuple's pairs with a bucket to their groups, or takes them away; how many groups more pass HAVING."""
    passing, pairs, worths = 0, 0, 0
    start, head, mask = bounds[ring, START], bounds[ring, HEAD], bounds[ring, ROOM] - 1
    for j in range(head, head + bounds[ring, HELD]):
        at = start + (j & mask)
        if cells[KEY, at] == key:
            if brought:
                g = code + cells[GROUP, at] * stride
                passing -= count[g] > having
                count[g] += sign
                total[g] += sign * (worth if owns else cells[VALUE, at])
                passing += count[g] > having
            else:
                pairs += 1
                worths += worth if owns else cells[VALUE, at]
    if pairs:
        passing -= count[code] > having
        count[code] += sign * pairs
        total[code] += sign * worths
        passing += count[code] > having
    return passing
