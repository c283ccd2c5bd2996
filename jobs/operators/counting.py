"""Paper C's TC: each tuple carries what ends with it (count, sum, largest, smallest), so COUNT, SUM, AVG, MAX and MIN of a join of two windows never look back.

Of a pair the tuple that expires first carries: the older one where both windows are as long. Where a group is of the other stream a tuple cannot carry one
number for all its pairs: it then probes once more as it leaves, when all that is left of the other window expires later and so is what it carries.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jobs.operators.arrivals import Arrivals, Windows
from jobs.operators.compiled import compiled
from jobs.operators.contents import ATTRIBUTES, GROUP, KEY, NONE, TIME, VALUE, Contents, contents, crowded, enter, expiring, leave, oldest, widened
from jobs.operators.inclusion import two
from jobs.operators.rings import HEAD, HELD, ROOM, START, Ints
from jobs.operators.totals import HIGHEST, LOWEST, Totals, totals
from optimizer.errors import ForebayError

CV, SV, MOST, LEAST = range(ATTRIBUTES, ATTRIBUTES + 4)


class Counting(NamedTuple):
    contents: Contents
    totals: Totals
    windows: Windows
    extremes: bool
    naive: bool
    sums: bool


def start(windows: Windows, extremes: bool = False, naive: bool = False, sums: bool = True) -> Counting:
    """`naive`: as printed, the answer is summed anew over all tuples at each arrival; else it runs along. Extremes are of one group. No `sums`: TC-COUNT."""
    if (extremes or naive or not sums) and max(windows.groups) > 1 or extremes and not sums:
        raise ForebayError("bad-arrivals", f"extremes, the naive sum or COUNT alone with groups {windows.groups}", hint="expected one group, as TC is printed")
    return Counting(contents(two(windows), 4 if extremes else 2 if sums else 1), totals(windows), windows, extremes, naive, sums)


def advance(state: Counting, arrivals: Arrivals) -> tuple[Counting, Ints]:
    """The state after the tuples, and COUNT(*) of all groups after each; the state given is used up."""
    w = state.windows
    w.fitting(arrivals)
    said = np.zeros(len(arrivals), np.int64)
    found = _advance(state.contents, state.totals, arrivals.stream, arrivals.time, arrivals.key, arrivals.group, arrivals.value,
                     np.array(w.spans), np.array(w.groups), np.array(w.strides), w.buckets, w.owner, state.sums, state.extremes, state.naive, said)
    return state._replace(contents=found), said


@compiled
def _advance(c: Contents, t: Totals, stream: Ints, time: Ints, key: Ints, group: Ints, value: Ints, spans: Ints, groups: Ints, strides: Ints, buckets: int,
             owner: int, sums: bool, extremes: bool, naive: bool, said: Ints) -> Contents:
    whole = int(t.pairs.sum())
    for i in range(len(stream)):
        s, now = stream[i], time[i]
        whole -= _expire(c, t, now, spans, groups, strides, buckets, owner, sums, extremes)
        ring = s * buckets + key[i] % buckets
        if crowded(c, s, ring):
            c = widened(c, s, ring)
        at = enter(c, s, ring, now, key[i], group[i], value[i])
        if extremes:
            c.tuples.cells[MOST, at], c.tuples.cells[LEAST, at] = LOWEST, HIGHEST
        whole += _arrive(c, t, s, at, (1 - s) * buckets + key[i] % buckets, now + spans[s], spans[1 - s], group[i] * strides[s], strides[1 - s],
                         groups[1 - s] > 1, s == owner, sums, extremes)
        if naive:
            whole = _anew(c, t, sums, extremes)
        said[i] = whole
    return c


@compiled
def _expire(c: Contents, t: Totals, now: int, spans: Ints, groups: Ints, strides: Ints, buckets: int, owner: int, sums: bool, extremes: bool) -> int:
    """What the expired carry leaves with them, the earliest first; how many pairs went."""
    left = expiring(c, spans, now)
    if left == NONE:
        return 0
    gone, lost, cells, count, total = 0, False, c.tuples.cells, t.pairs, t.sum
    while left != NONE:
        at = oldest(c, left)
        gone += cells[CV, at]
        if groups[1 - left] == 1:
            count[cells[GROUP, at] * strides[left]] -= cells[CV, at]
            if sums:
                total[cells[GROUP, at] * strides[left]] -= cells[SV, at]
        else:
            _take(c, t, (1 - left) * buckets + cells[KEY, at] % buckets, at, cells[GROUP, at] * strides[left], strides[1 - left], left == owner)
        if extremes:
            lost = lost or (cells[CV, at] > 0 and (cells[MOST, at] == t.most[0] or cells[LEAST, at] == t.least[0]))
        leave(c, left)
        left = expiring(c, spans, now)
    if lost:
        _extremes(c, t)
    return gone


@compiled
def _take(c: Contents, t: Totals, ring: int, at: int, code: int, stride: int, owns: bool) -> None:
    """The pairs of a tuple that leaves go from groups that the other window brings."""
    cells, index, count, total = c.tuples.cells, c.tuples.bounds, t.pairs, t.sum
    start, head, mask = index[ring, START], index[ring, HEAD], index[ring, ROOM] - 1
    for j in range(head, head + index[ring, HELD]):
        other = start + (j & mask)
        if cells[KEY, other] == cells[KEY, at]:
            g = code + cells[GROUP, other] * stride
            count[g] -= 1
            total[g] -= cells[VALUE, at if owns else other]


@compiled
def _arrive(c: Contents, t: Totals, s: int, at: int, ring: int, ends: int, span: int, code: int, stride: int, brought: bool, owns: bool,
            sums: bool, extremes: bool) -> int:
    """Each match is carried by the one of the two that leaves first: of a bucket, which is in the order of `expiring`, the older part carries."""
    cells, index = c.tuples.cells, c.tuples.bounds
    head, past = index[ring, HEAD], index[ring, HEAD] + index[ring, HELD]
    start, mask, now = index[ring, START], index[ring, ROOM] - 1, cells[TIME, at]
    older = past
    while older > head:
        time = cells[TIME, start + ((older - 1) & mask)]
        if time + span < ends or (time + span == ends and (time < now or (time == now and s == 1))):
            break
        older -= 1
    found = _carry(cells, t, start, mask, head, older, at, False, code, stride, brought, owns, sums, extremes)
    if older < past:
        found += _carry(cells, t, start, mask, older, past, at, True, code, stride, brought, owns, sums, extremes)
    return found


@compiled
def _carry(cells: Ints, t: Totals, start: int, mask: int, head: int, past: int, at: int, itself: bool, code: int, stride: int, brought: bool, owns: bool,
           sums: bool, extremes: bool) -> int:
    """The pairs of an arrived tuple with part of a bucket, carried by it `itself` or each by the other; how many there are."""
    found, worths, key, value = 0, 0, cells[KEY, at], cells[VALUE, at]
    for j in range(head, past):
        other = start + (j & mask)
        if cells[KEY, other] == key:
            found += 1
            carrier = at if itself else other
            cells[CV, carrier] += 1
            if sums:
                worth = value if owns else cells[VALUE, other]
                cells[SV, carrier] += worth
                worths += worth
                if brought:
                    t.pairs[code + cells[GROUP, other] * stride] += 1
                    t.sum[code + cells[GROUP, other] * stride] += worth
                if extremes:
                    cells[MOST, carrier], cells[LEAST, carrier] = max(cells[MOST, carrier], worth), min(cells[LEAST, carrier], worth)
                    t.most[0], t.least[0] = max(t.most[0], worth), min(t.least[0], worth)
    if found and not brought:
        t.pairs[code] += found
        t.sum[code] += worths
    return found


@compiled
def _extremes(c: Contents, t: Totals) -> None:
    """MAX and MIN over what all tuples carry (5): only when the tuple that carried one has left, or naively."""
    most, least = LOWEST, HIGHEST
    cells, index = c.tuples.cells, c.tuples.bounds
    for ring in range(len(index) - 1):
        start, head, mask = index[ring, START], index[ring, HEAD], index[ring, ROOM] - 1
        for j in range(head, head + index[ring, HELD]):
            at = start + (j & mask)
            most, least = max(most, cells[MOST, at]), min(least, cells[LEAST, at])
    t.most[0], t.least[0] = most, least


@compiled
def _anew(c: Contents, t: Totals, sums: bool, extremes: bool) -> int:
    """Steps 8 to 11 of TC-COUNT: the sum of all CV over both windows."""
    count, total = 0, 0
    cells, index = c.tuples.cells, c.tuples.bounds
    for ring in range(len(index) - 1):
        start, head, mask = index[ring, START], index[ring, HEAD], index[ring, ROOM] - 1
        for j in range(head, head + index[ring, HELD]):
            at = start + (j & mask)
            count += cells[CV, at]
            total += cells[SV, at] if sums else 0
    t.pairs[0], t.sum[0] = count, total
    if extremes:
        _extremes(c, t)
    return count
