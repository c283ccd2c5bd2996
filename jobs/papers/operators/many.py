"""Paper C's MTC: COUNT, SUM and AVG of a join of any number of windows on one attribute; of a joined combination the
tuple that expires first carries it.

MJoin makes every combination of an arriving tuple and raises the oldest member's CV, one by one. Here they are counted
without being made: of what matches in each other window only how many expire later than a candidate matters, and a
bucket is in order of expiry, so one pass from the last to expire to the first raises every CV at once. The answer is a
running total as in TC.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jobs.papers.operators.arrivals import ArrivingTuples, JoinWindows
from jobs.papers.operators.compiled import compiled
from jobs.papers.operators.contents import (
    ATTRIBUTES,
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
from jobs.papers.operators.rings import HELD, Ints, slot
from jobs.papers.operators.totals import Totals, totals
from optimizer.errors import ForebayError

CV, SV = ATTRIBUTES, ATTRIBUTES + 1


class Many(NamedTuple):
    contents: Contents
    totals: Totals
    windows: JoinWindows


def start(windows: JoinWindows) -> Many:
    """Nothing has come yet. As in the paper there are no groups."""
    if max(windows.groups) > 1:
        raise ForebayError("bad-arrivals", f"MTC with groups {windows.groups}",
                           hint="expected none: paper C's MTC-COUNT has no groups")
    return Many(contents(windows, 2), totals(windows), windows)


def advance(state: Many, arrivals: ArrivingTuples) -> tuple[Many, Ints]:
    """The state after the tuples, and COUNT(*) after each; the state given is used up."""
    w = state.windows
    w.fitting(arrivals)
    counts = np.zeros(len(arrivals), np.int64)
    contents_ = _advance(state.contents, state.totals, arrivals.stream, arrivals.time, arrivals.key, arrivals.value,
                         np.array(w.spans), w.buckets, w.owner, counts)
    return state._replace(contents=contents_), counts


@compiled
def _advance(c: Contents, t: Totals, stream: Ints, time: Ints, key: Ints, value: Ints, spans: Ints, buckets: int,
             owner: int, counts: Ints) -> Contents:
    m = len(spans)
    unseen, later, worth = np.zeros(m, np.int64), np.zeros(m, np.int64), np.zeros(m, np.int64)
    cells, bounds, order, queue = parts(c)
    count, total = t.pairs, t.sum
    for i in range(len(stream)):
        left = expiring(cells, bounds, order, queue, spans, time[i])
        while left != NONE:
            at = oldest(bounds, order, queue, left)
            count[0] -= cells[CV, at]
            total[0] -= cells[SV, at]
            leave(bounds, order, queue, left)
            left = expiring(cells, bounds, order, queue, spans, time[i])
        ring = stream[i] * buckets + key[i] % buckets
        if crowded(bounds, queue, stream[i], ring):
            c = widened(c, stream[i], ring)
            cells, bounds, order, queue = parts(c)
        at = enter(cells, bounds, order, queue, stream[i], ring, time[i], key[i], 0, value[i])
        _arrive(cells, bounds, count, total, stream[i], at, key[i] % buckets, spans, buckets, owner, unseen, later,
                worth)
        counts[i] = count[0]
    return c


@compiled
def _arrive(cells: Ints, index: Ints, count: Ints, total: Ints, s: int, at: int, bucket: int, spans: Ints, buckets: int,
            owner: int, unseen: Ints, later: Ints, worth: Ints) -> None:
    """`later` counts by stream the matches passed so far, `worth` sums their attribute.

    The arrived tuple is its stream's only one.
    """
    m = len(spans)
    for j in range(m):
        unseen[j], later[j], worth[j] = index[j * buckets + bucket, HELD], 0, 0
    unseen[s] = 1
    while True:
        last, where = _last(cells, index, s, at, bucket, spans, buckets, unseen)
        if last == NONE:
            return
        unseen[last] -= 1
        if cells[KEY, where] != cells[KEY, at]:
            continue
        combinations, value = 1, cells[VALUE, where]
        for j in range(m):
            if j != last:
                combinations *= later[j]
        worths = combinations * value
        if owner != last:
            worths = worth[owner]
            for j in range(m):
                if j != last and j != owner:
                    worths *= later[j]
        cells[CV, where] += combinations
        cells[SV, where] += worths
        count[0] += combinations
        total[0] += worths
        later[last] += 1
        worth[last] += value


@compiled
def _last(cells: Ints, index: Ints, s: int, at: int, bucket: int, spans: Ints, buckets: int,
          unseen: Ints) -> tuple[int, int]:
    """The stream and slot of the one to expire last among those not yet passed.

    Of equal ones the youngest, as `expiring` has the oldest leave first.
    """
    last_stream, where, ends, came = NONE, NONE, 0, 0
    for j in range(len(spans)):
        if unseen[j] > 0:
            here = at if j == s else slot(index, j * buckets + bucket, unseen[j] - 1)
            time = cells[TIME, here]
            end = time + spans[j]
            if last_stream == NONE or end > ends or (end == ends and time >= came):
                last_stream, where, ends, came = j, here, end, time
    return last_stream, where
