"""Paper C's IC and GIC: COUNT, SUM and AVG of a join of two windows by what comes and what goes, in O(a+b) space; joined tuples are never kept.

    COUNT += |{f} ⋈ B'| − |SetA ⋈ B'| − |SetB ⋈ (A' − {f})| − |SetA ⋈ SetB|        (2)

The sets are empty but for the few that expired since the last arrival. They leave one by one, each probing what the other window still holds: for A's first
that is |SetA ⋈ B'| + |SetA ⋈ SetB|, for B's then |SetB ⋈ (A' − {f})|, and any other order adds up to the same. With groups this is GIC: a value for each.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jobs.operators.arrivals import Arrivals, Windows
from jobs.operators.compiled import compiled
from jobs.operators.contents import GROUP, KEY, NONE, VALUE, Contents, contents, crowded, enter, expiring, leave, oldest, widened
from jobs.operators.rings import HEAD, HELD, ROOM, START, Ints
from jobs.operators.totals import Totals, totals
from optimizer.errors import ForebayError


class Inclusion(NamedTuple):
    contents: Contents
    totals: Totals
    windows: Windows
    sums: bool


def start(windows: Windows, sums: bool = True) -> Inclusion:
    """Nothing has come yet. Without `sums` it is IC-COUNT."""
    return Inclusion(contents(two(windows)), totals(windows), windows, sums)


def advance(state: Inclusion, arrivals: Arrivals, having: int = 0) -> tuple[Inclusion, Ints]:
    """The state after the tuples, and after each how many groups have more than `having` joined rows; the state given is used up."""
    w = state.windows
    w.fitting(arrivals)
    said = np.zeros(len(arrivals), np.int64)
    found = _advance(state.contents, state.totals, arrivals.stream, arrivals.time, arrivals.key, arrivals.group, arrivals.value,
                     np.array(w.spans), np.array(w.groups), np.array(w.strides), w.buckets, w.owner, state.sums, having, said)
    return state._replace(contents=found), said


def two(windows: Windows) -> Windows:
    if len(windows.spans) != 2:
        raise ForebayError("bad-arrivals", f"{len(windows.spans)} windows", hint="expected two; jobs.operators.many takes any number")
    return windows


@compiled
def _advance(c: Contents, t: Totals, stream: Ints, time: Ints, key: Ints, group: Ints, value: Ints, spans: Ints, groups: Ints, strides: Ints, buckets: int,
             owner: int, sums: bool, having: int, said: Ints) -> Contents:
    passing = int((t.pairs > having).sum())
    for i in range(len(stream)):
        s, ring = stream[i], key[i] % buckets
        left = expiring(c, spans, time[i])
        while left != NONE:
            at, cells = oldest(c, left), c.tuples.cells
            gone, worth, code = cells[KEY, at], cells[VALUE, at], cells[GROUP, at] * strides[left]
            leave(c, left)
            ring_there = (1 - left) * buckets + gone % buckets
            passing += _pairs(c, t, ring_there, gone, code, worth, strides[1 - left], groups[1 - left] > 1, left == owner, sums, -1, having)
            left = expiring(c, spans, time[i])
        code, ring_there = group[i] * strides[s], (1 - s) * buckets + ring
        passing += _pairs(c, t, ring_there, key[i], code, value[i], strides[1 - s], groups[1 - s] > 1, s == owner, sums, 1, having)
        if crowded(c, s, s * buckets + ring):
            c = widened(c, s, s * buckets + ring)
        enter(c, s, s * buckets + ring, time[i], key[i], group[i], value[i])
        said[i] = passing
    return c


@compiled
def _pairs(c: Contents, t: Totals, ring: int, key: int, code: int, worth: int, stride: int, brought: bool, owns: bool, sums: bool, sign: int,
           having: int) -> int:
    """Adds a tuple's pairs with a bucket to their groups, or takes them away; how many groups more pass HAVING."""
    passing, found, worths = 0, 0, 0
    cells, index, count, total = c.tuples.cells, c.tuples.bounds, t.pairs, t.sum
    start, head, mask = index[ring, START], index[ring, HEAD], index[ring, ROOM] - 1
    for j in range(head, head + index[ring, HELD]):
        at = start + (j & mask)
        if cells[KEY, at] == key:
            if brought:
                g = code + cells[GROUP, at] * stride
                passing -= count[g] > having
                count[g] += sign
                total[g] += sign * (worth if owns else cells[VALUE, at])
                passing += count[g] > having
            else:
                found += 1
                if sums:
                    worths += worth if owns else cells[VALUE, at]
    if found:
        passing -= count[code] > having
        count[code] += sign * found
        total[code] += sign * worths
        passing += count[code] > having
    return passing
