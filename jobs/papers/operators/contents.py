"""Windows of all streams by join value and by age, for the operators that must see every tuple leave; what a tuple
carries beside its attributes is theirs.

Each stream has its buckets, and a queue of the bucket numbers in order of arrival: the oldest tuple of a window is the
oldest of the bucket that its queue names first, so finding what expired takes one look a stream.

Functions that are called for every tuple take the arrays of `parts`, not the tuple that holds them: each access to its
fields counts references, which costs more than what the functions do.
"""
from __future__ import annotations

from typing import NamedTuple

from jobs.papers.operators.arrivals import JoinWindows
from jobs.papers.operators.compiled import compiled
from jobs.papers.operators.rings import HELD, Ints, Rings, added, drop, full, grown, rings, slot

TIME, KEY, GROUP, VALUE = range(4)
ATTRIBUTES = 4
NONE = -1


class Contents(NamedTuple):
    """`tuples` has a ring for each stream and bucket, the first stream's first; `queue` one a stream."""

    tuples: Rings
    queue: Rings


def contents(windows: JoinWindows, carried: int = 0) -> Contents:
    """Empty windows whose tuples carry so many numbers."""
    return Contents(rings(len(windows.spans) * windows.buckets, ATTRIBUTES + carried), rings(len(windows.spans), 1))


@compiled
def parts(c: Contents) -> tuple[Ints, Ints, Ints, Ints]:
    """The cells and bounds of tuples, then those of the queues; others after `widened`."""
    return c.tuples.cells, c.tuples.bounds, c.queue.cells, c.queue.bounds


@compiled
def oldest(bounds: Ints, order: Ints, queue: Ints, s: int) -> int:
    """The slot of a window's oldest tuple, NONE if it is empty."""
    return NONE if queue[s, HELD] == 0 else slot(bounds, order[0, slot(queue, s, 0)], 0)


@compiled
def expiring(cells: Ints, bounds: Ints, order: Ints, queue: Ints, spans: Ints, now: int) -> int:
    """The stream whose oldest tuple expired first of all that have expired, NONE if none has.

    Of equal ones the older tuple goes first, then stream order.
    """
    oldest_stream, ends, came = NONE, now, now
    for s in range(len(spans)):
        at = oldest(bounds, order, queue, s)
        if at != NONE:
            time = cells[TIME, at]
            end = time + spans[s]
            if end <= now and (oldest_stream == NONE or end < ends or (end == ends and time < came)):
                oldest_stream, ends, came = s, end, time
    return oldest_stream


@compiled
def leave(bounds: Ints, order: Ints, queue: Ints, s: int) -> None:
    """The oldest tuple of a window leaves."""
    drop(bounds, order[0, slot(queue, s, 0)])
    drop(queue, s)


@compiled
def crowded(bounds: Ints, queue: Ints, s: int, ring: int) -> bool:
    """Whether the windows must grow before a tuple enters."""
    return full(bounds, ring) or full(queue, s)


@compiled
def widened(c: Contents, s: int, ring: int) -> Contents:
    """Windows with room for one more tuple there."""
    return Contents(
        grown(c.tuples, ring) if full(c.tuples.bounds, ring) else c.tuples,
        grown(c.queue, s) if full(c.queue.bounds, s) else c.queue)


@compiled
def enter(cells: Ints, bounds: Ints, order: Ints, queue: Ints, s: int, ring: int, time: int, key: int, group: int,
          value: int) -> int:
    """A tuple comes into a window that is not `crowded`; where it stands. What it carries is zero."""
    order[0, added(queue, s)] = ring
    at = added(bounds, ring)
    cells[TIME, at], cells[KEY, at], cells[GROUP, at], cells[VALUE, at] = time, key, group, value
    for column in range(ATTRIBUTES, cells.shape[0]):
        cells[column, at] = 0
    return at
