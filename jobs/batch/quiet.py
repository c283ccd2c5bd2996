"""Which boundaries repeat the answer before them: no row came, entered or left in between, by the files' statistics.

It reads no row.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from jobs.storage.tables import File
from optimizer.query.model import Query
from optimizer.query.windows import Window


def points(query: Query, due: tuple[int, ...], files: Mapping[str, Iterable[File]]) -> tuple[int, ...]:
    """The boundaries among `due` that have to be computed: the first, the last, and each at which anything can differ
    from the one before.
    """
    if query.windows:
        return due                  # which windows end differs from boundary to boundary
    pause = query.pause
    relevant: list[tuple[File, Window, str]] = []      # files that can change an answer between the first and the last
    for i in query.inputs:
        if i.window is not None:
            stamp = i.event_time or ""
            relevant += [(file, i.window, stamp) for file in files[i.source]
                         if _changes(file, i.window, stamp, due[0], due[-1], arrivals_only=False)
                         or _ends_sessions(file, stamp, pause, due[0] - query.every, due[-1])]

    def can_differ(previous: int, t: int) -> bool:
        return any(_changes(file, window, stamp, previous, t, query.returns_rows)
                   or _ends_sessions(file, stamp, pause, previous - query.every, t) for file, window, stamp in relevant)

    between = [t for previous, t in zip(due, due[1:-1]) if can_differ(previous, t)]
    return (*due[:1], *between, *due[1:][-1:])


def _changes(file: File, window: Window, stamp: str, previous: int, t: int, arrivals_only: bool) -> bool:
    """Whether the file may hold rows that came, entered the window or left it between two boundaries."""
    if file.may_hold("_boundary", previous + 1, t):
        return True
    if arrivals_only:
        return False
    spans = [(window.oldest(previous), window.oldest(t))]      # event times that the window leaves behind …
    if window.slide:                                           # … and takes in, where it moves in slides
        spans.append((previous // window.slide * window.slide, t // window.slide * window.slide))
    return any(start < end and file.may_hold(stamp, start, end - 1) for start, end in spans)


def _ends_sessions(file: File, stamp: str, pause: int, since: int, t: int) -> bool:
    """Whether the file may hold the last row of a session that ends after `since` and is shown by t."""
    return pause > 0 and file.may_hold(stamp, since - pause, t - pause)


def repeated(due: tuple[int, ...], computed: tuple[int, ...]) -> list[tuple[int, int]]:
    """(boundary, the computed one that it repeats)."""
    pairs, at = [], 0
    for t in due:
        at += at + 1 < len(computed) and computed[at + 1] <= t
        pairs.append((t, computed[at]))
    return pairs


def repeats_table(repeats: Sequence[tuple[int, int]]) -> pa.Table:
    """The same pairs as rows: `_t` repeats the answer of `_of`."""
    return pa.table({"_t": pa.array([t for t, _ in repeats], pa.int64()),
                     "_of": pa.array([computed for _, computed in repeats], pa.int64())})
