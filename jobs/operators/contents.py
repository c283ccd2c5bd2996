"""Windows of all streams by join value and by age, for the operators that must see every tuple leave; what a tuple carries beside its attributes is theirs.

Each stream has its buckets, and a queue of the bucket numbers in order of arrival: the oldest tuple of a window is the oldest of the bucket that its queue
names first, so finding what expired takes one look a stream.
"""
from __future__ import annotations

from typing import NamedTuple

from jobs.operators.arrivals import Windows
from jobs.operators.compiled import compiled
from jobs.operators.rings import Ints, Rings, added, drop, rings, roomy, slot

TIME, KEY, GROUP, VALUE = range(4)
ATTRIBUTES = 4
NONE = -1


class Contents(NamedTuple):
    """`tuples` has a ring for each stream and bucket, the first stream's first; `queue` one a stream."""

    tuples: Rings
    queue: Rings


def contents(windows: Windows, carried: int = 0) -> Contents:
    """Empty windows whose tuples carry so many numbers."""
    return Contents(rings(len(windows.spans) * windows.buckets, ATTRIBUTES + carried), rings(len(windows.spans), 1))


@compiled
def oldest(c: Contents, s: int) -> int:
    """The slot of a window's oldest tuple, NONE if it is empty."""
    if c.queue.held[s] == 0:
        return NONE
    return slot(c.tuples, c.queue.cells[0, slot(c.queue, s, 0)], 0)


@compiled
def expiring(c: Contents, spans: Ints, now: int) -> int:
    """The stream whose oldest tuple expired first of all that have expired, NONE if none has. Of equal ones the older tuple goes first, then stream order."""
    found, ends, came = NONE, now, now
    for s in range(len(spans)):
        at = oldest(c, s)
        if at != NONE:
            time = c.tuples.cells[TIME, at]
            end = time + spans[s]
            if end <= now and (found == NONE or end < ends or (end == ends and time < came)):
                found, ends, came = s, end, time
    return found


@compiled
def leave(c: Contents, s: int) -> None:
    """The oldest tuple of a window leaves."""
    drop(c.tuples, c.queue.cells[0, slot(c.queue, s, 0)])
    drop(c.queue, s)


@compiled
def enter(c: Contents, s: int, ring: int, time: int, key: int, group: int, value: int) -> tuple[Contents, int]:
    """A tuple comes into a window; where it stands. What it carries is zero."""
    tuples = roomy(c.tuples, ring)
    queue = roomy(c.queue, s)
    queue.cells[0, added(queue, s)] = ring
    at = added(tuples, ring)
    tuples.cells[TIME, at], tuples.cells[KEY, at], tuples.cells[GROUP, at], tuples.cells[VALUE, at] = time, key, group, value
    for column in range(ATTRIBUTES, tuples.cells.shape[0]):
        tuples.cells[column, at] = 0
    return Contents(tuples, queue), at
