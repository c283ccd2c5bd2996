"""Paper C's baseline PC: the join's tuples go to an aggregate that keeps every one of them until it expires, which
takes O(a·b) space.

A joined tuple expires with the first of its two members, not in the order in which it was made, so what expired is
found by going over all of them.
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
    TIME,
    VALUE,
    Contents,
    contents,
    crowded,
    enter,
    expiring,
    leave,
    parts,
    widened,
)
from jobs.papers.operators.inclusion import two
from jobs.papers.operators.rings import HEAD, HELD, ROOM, START, Ints, Rings, added, full, grown, replace_by_last, rings
from jobs.papers.operators.totals import HIGHEST, LOWEST, Totals, totals

ENDS, JOINED_GROUP, JOINED_VALUE = range(3)


class Pipelined(NamedTuple):
    contents: Contents
    joined: Rings
    totals: Totals
    windows: JoinWindows


def start(windows: JoinWindows) -> Pipelined:
    """Nothing has come yet."""
    return Pipelined(contents(two(windows)), rings(1, 3), totals(windows), windows)


def advance(state: Pipelined, arrivals: ArrivingTuples) -> tuple[Pipelined, Ints]:
    """The state after the tuples, and how many joined tuples it keeps after each; the state given is used up."""
    w = state.windows
    w.fitting(arrivals)
    counts = np.zeros(len(arrivals), np.int64)
    contents_, joined = _advance(state.contents, state.joined, state.totals, arrivals.stream, arrivals.time,
                                 arrivals.key, arrivals.group, arrivals.value, np.array(w.spans),
                                 np.array(w.strides), w.buckets, w.owner, counts)
    return state._replace(contents=contents_, joined=joined), counts


@compiled
def _advance(c: Contents, joined: Rings, t: Totals, stream: Ints, time: Ints, key: Ints, group: Ints, value: Ints,
             spans: Ints, strides: Ints, buckets: int, owner: int, counts: Ints) -> tuple[Contents, Rings]:
    cells, bounds, order, queue = parts(c)
    for i in range(len(stream)):
        s, ring, expired = stream[i], key[i] % buckets, False
        left = expiring(cells, bounds, order, queue, spans, time[i])
        while left != NONE:
            leave(bounds, order, queue, left)
            expired = True
            left = expiring(cells, bounds, order, queue, spans, time[i])
        if expired:
            _expire(joined, t, time[i])
        joined = _join(c, joined, t, (1 - s) * buckets + ring, key[i], group[i] * strides[s], value[i],
                       time[i] + spans[s], spans[1 - s], strides[1 - s], s == owner)
        if crowded(bounds, queue, s, s * buckets + ring):
            c = widened(c, s, s * buckets + ring)
            cells, bounds, order, queue = parts(c)
        enter(cells, bounds, order, queue, s, s * buckets + ring, time[i], key[i], group[i], value[i])
        counts[i] = joined.bounds[0, HELD]
    return c, joined


@compiled
def _expire(joined: Rings, t: Totals, now: int) -> None:
    """Goes over all joined tuples: takes the expired out of the answer, finds the extremes of the rest."""
    cells, index, count, total = joined.cells, joined.bounds, t.pairs, t.sum
    most, least, at = LOWEST, HIGHEST, index[0, START]
    while at < index[0, START] + index[0, HELD]:
        worth = cells[JOINED_VALUE, at]
        if cells[ENDS, at] <= now:
            count[cells[JOINED_GROUP, at]] -= 1
            total[cells[JOINED_GROUP, at]] -= worth
            replace_by_last(cells, index, 0, at)
        else:
            most, least = max(most, worth), min(least, worth)
            at += 1
    t.most[0], t.least[0] = most, least


@compiled
def _join(c: Contents, joined: Rings, t: Totals, ring: int, key: int, code: int, value: int, ends: int, span: int,
          stride: int, owns: bool) -> Rings:
    """Writes the joined tuples of one that arrives, and aggregates them."""
    cells, index, count, total = c.tuples.cells, c.tuples.bounds, t.pairs, t.sum
    start, head, mask = index[ring, START], index[ring, HEAD], index[ring, ROOM] - 1
    for j in range(head, head + index[ring, HELD]):
        other = start + (j & mask)
        if cells[KEY, other] == key:
            worth, g = value if owns else cells[VALUE, other], code + cells[GROUP, other] * stride
            if full(joined.bounds, 0):
                joined = grown(joined, 0)
            at = added(joined.bounds, 0)
            joined.cells[ENDS, at] = min(ends, cells[TIME, other] + span)
            joined.cells[JOINED_GROUP, at], joined.cells[JOINED_VALUE, at] = g, worth
            count[g] += 1
            total[g] += worth
            t.most[0], t.least[0] = max(t.most[0], worth), min(t.least[0], worth)
    return joined
