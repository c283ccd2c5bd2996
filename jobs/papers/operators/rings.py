"""Many circular buffers of integer rows in one block of memory: rows enter at the end and leave at the front; nothing
here knows what a row means.

Each buffer has a power of two of slots; a full one moves to the end of the block with twice as many, so the block has
at most four slots a row held at most. Loops over rows take `cells` and the buffer's numbers out of the tuple first:
each access to a field of it inside compiled code counts references.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jobs.papers.operators.compiled import compiled

Ints = NDArray[np.int64]
START, ROOM, HEAD, HELD = range(4)      # of a buffer: first slot, slots, the oldest row's place among them, rows
FIRST = 4                               # slots of a buffer that has never been full, a power of two


class Rings(NamedTuple):
    """`cells` is column by slot, `bounds` buffer by START … HELD, its last row the first free slot.

    Functions that add rows give the rings to go on with.
    """

    cells: Ints
    bounds: Ints


def rings(count: int, columns: int) -> Rings:
    """So many empty buffers."""
    index = np.zeros((count + 1, 4), np.int64)
    index[:, START] = np.arange(count + 1) * FIRST
    index[:-1, ROOM] = FIRST
    return Rings(np.zeros((columns, count * FIRST), np.int64), index)


def copied(r: Rings) -> Rings:
    """A state that others may advance without changing this one."""
    return Rings(r.cells.copy(), r.bounds.copy())


def memory(r: Rings) -> int:
    """Bytes allocated."""
    return r.cells.nbytes + r.bounds.nbytes


def rows(r: Rings) -> int:
    """Rows held."""
    return int(r.bounds[:-1, HELD].sum())


@compiled
def slot(index: Ints, ring: int, i: int) -> int:
    """Where the i-th oldest row stands."""
    return index[ring, START] + ((index[ring, HEAD] + i) & (index[ring, ROOM] - 1))


@compiled
def grown(r: Rings, ring: int) -> Rings:
    """The buffer at the end of the block, twice as large, its oldest row first."""
    cells, index = r.cells, r.bounds
    room, first = index[ring, ROOM] * 2, index[-1, START]
    if first + room > cells.shape[1]:
        cells = np.zeros((cells.shape[0], max(first + room, 2 * cells.shape[1])), np.int64)
        cells[:, :first] = r.cells[:, :first]
    for i in range(index[ring, HELD]):
        at = slot(index, ring, i)
        for c in range(cells.shape[0]):
            cells[c, first + i] = cells[c, at]
    index[ring, START], index[ring, ROOM], index[ring, HEAD] = first, room, 0
    index[-1, START] = first + room
    return Rings(cells, index)


@compiled
def full(index: Ints, ring: int) -> bool:
    """Whether it must grow before a row is added."""
    return index[ring, HELD] == index[ring, ROOM]


@compiled
def added(index: Ints, ring: int) -> int:
    """The slot of a new last row, whose cells the caller fills; a full buffer grows first."""
    index[ring, HELD] += 1
    return slot(index, ring, index[ring, HELD] - 1)


@compiled
def drop(index: Ints, ring: int) -> None:
    """The oldest row leaves."""
    index[ring, HEAD] = (index[ring, HEAD] + 1) & (index[ring, ROOM] - 1)
    index[ring, HELD] -= 1


@compiled
def replace_by_last(cells: Ints, index: Ints, ring: int, at: int) -> None:
    """A row leaves and the last takes its place: for buffers from which nothing is dropped, whose order means nothing
    and whose rows stand side by side.
    """
    last = index[ring, START] + index[ring, HELD] - 1
    for c in range(cells.shape[0]):
        cells[c, at] = cells[c, last]
    index[ring, HELD] -= 1
