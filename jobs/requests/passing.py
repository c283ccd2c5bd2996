"""Which boundaries of a long silence are passed over: those at which every answer repeats the one before it.

In a silence no row comes. Its first boundaries still run, until the last window has let go of its last row and each
query has answered since; then nothing can change until rows come again, and the next batch goes there at once.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from jobs.ingest.silences import LONG, Silence
from optimizer.query.model import Query
from optimizer.query.windows import tick


class ActiveQuery(NamedTuple):
    """A query in force, and the boundary from which it is (0: from the first)."""

    query: Query
    since: int


class Passing(NamedTuple):
    """The boundaries from `first` to before `last` are passed over; `last`, the last silent one, runs for them all."""

    first: int
    last: int


def passings(silences: Sequence[Silence], queries: Iterable[ActiveQuery], first: int, last: int,
             batch: int) -> list[Passing]:
    """The boundaries between these two that need not run, where there are very many in a row; in order."""
    queries, passed = list(queries), []
    for silence in silences:
        begin = max([first, *(_repeats_from(each, silence.after, batch) for each in queries)])
        end = min(silence.until - batch, last)
        if (end - begin) // batch + 1 > LONG:
            passed.append(Passing(begin, end))
    return passed


def _repeats_from(active: ActiveQuery, after: int, batch: int) -> int:
    """The first boundary from which on a query's answers are all alike, if no row comes after the boundary `after`."""
    query, since = active
    settled = max([after, since, *_last_changes(query, after, batch)])
    lengths = {window.slide for window in query.windows} or {query.every}
    return max(_due_from(length, settled) for length in lengths) + batch


def _last_changes(query: Query, after: int, batch: int) -> list[int]:
    """By input: a boundary after the last at which a row enters or leaves its window. Rows are older than `after`."""
    windows = tuple(i.window for i in query.inputs if i.window is not None)
    length, changes = tick(batch, windows), []
    for window in windows:
        is_endless = window.kind == "landmark"
        if query.pause:      # the last session ends, is shown, and is shown no more
            changes.append(window.enters(after - 1 + query.pause, length) + query.every)
        changes.append(window.enters(after - 1, length) if is_endless else window.leaves(after - 1, length) + batch)
    return changes


def _due_from(every: int, boundary: int) -> int:
    return -(-boundary // every) * every
