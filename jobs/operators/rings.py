"""Many circular buffers of integer rows in one block of memory: rows enter at the end and leave at the front; nothing here knows what a row means.

Each buffer has a power of two of slots; a full one moves to the end of the block with twice as many, so the block has at most four slots a row held at most.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jobs.operators.compiled import compiled

Ints = NDArray[np.int64]
FIRST = 4        # slots of a buffer that has never been full, a power of two


class Rings(NamedTuple):
    """`cells` is column by slot; the others have one number a buffer, `end` only the first free slot. Functions that add rows give the rings to go on with."""

    cells: Ints
    start: Ints
    room: Ints
    head: Ints
    held: Ints
    end: Ints


def rings(count: int, columns: int) -> Rings:
    """So many empty buffers."""
    room = np.full(count, FIRST, np.int64)
    return Rings(np.zeros((columns, count * FIRST), np.int64), np.arange(count, dtype=np.int64) * FIRST, room, np.zeros(count, np.int64),
                 np.zeros(count, np.int64), np.array([count * FIRST], np.int64))


def copied(r: Rings) -> Rings:
    """A state that others may advance without changing this one."""
    return Rings(*(array.copy() for array in r))


def memory(r: Rings) -> int:
    """Bytes allocated."""
    return sum(array.nbytes for array in r)


def rows(r: Rings) -> int:
    """Rows held."""
    return int(r.held.sum())


@compiled
def slot(r: Rings, ring: int, i: int) -> int:
    """Where the i-th oldest row stands."""
    return r.start[ring] + ((r.head[ring] + i) & (r.room[ring] - 1))


@compiled
def grown(r: Rings, ring: int) -> Rings:
    """The buffer at the end of the block, twice as large, its oldest row first."""
    room, first, held = r.room[ring] * 2, r.end[0], r.held[ring]
    cells = r.cells
    if first + room > cells.shape[1]:
        cells = np.zeros((cells.shape[0], max(first + room, 2 * cells.shape[1])), np.int64)
        cells[:, :first] = r.cells[:, :first]
    for i in range(held):
        cells[:, first + i] = cells[:, slot(r, ring, i)]
    r.start[ring], r.room[ring], r.head[ring] = first, room, 0
    r.end[0] = first + room
    return Rings(cells, r.start, r.room, r.head, r.held, r.end)


@compiled
def roomy(r: Rings, ring: int) -> Rings:
    """Room for one more row."""
    if r.held[ring] == r.room[ring]:
        return grown(r, ring)
    return r


@compiled
def added(r: Rings, ring: int) -> int:
    """The slot of a new last row, whose cells the caller fills; `roomy` comes first."""
    r.held[ring] += 1
    return slot(r, ring, r.held[ring] - 1)


@compiled
def drop(r: Rings, ring: int) -> None:
    """The oldest row leaves."""
    r.head[ring] = (r.head[ring] + 1) & (r.room[ring] - 1)
    r.held[ring] -= 1


@compiled
def remove(r: Rings, ring: int, i: int) -> None:
    """The i-th row leaves and the last takes its place: for buffers whose order means nothing."""
    last, at = slot(r, ring, r.held[ring] - 1), slot(r, ring, i)
    for c in range(r.cells.shape[0]):
        r.cells[c, at] = r.cells[c, last]
    r.held[ring] -= 1
