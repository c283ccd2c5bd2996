"""Which boundaries repeat the answer before them: no row came, entered or left in between, by the files' statistics.

It reads no row.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping

from jobs.storage.tables import File
from optimizer.query.model import Query
from optimizer.query.windows import Window

Span = tuple[int, int]      # event times since ≤ ts < until


def points(query: Query, due: tuple[int, ...], files: Mapping[str, Iterable[File]]) -> tuple[int, ...]:
    """The boundaries among `due` that have to be computed: the first, the last, and each at which anything can differ
    from the one before.
    """
    if query.windows:
        return due                  # which windows end differs from boundary to boundary
    near = [(i.window, i.event_time or "", [f
                                            for f in files[i.source]
                                            if _near(f, i.window, i.event_time or "", due)])
            for i in query.inputs
            if i.window]
    between = [
        t for p, t in zip(due, due[1:-1]) if any(
            _changes(f, window, stamp, p, t, query.returns_rows) for window, stamp, found in near for f in found)
    ]
    return (*due[:1], *between, *due[1:][-1:])


def _near(file: File, window: Window, stamp: str, due: tuple[int, ...]) -> bool:
    """Whether it can matter between the first and the last."""
    return _came(file, due[0], due[-1]) or any(_holds(file, stamp, span) for span in _moved(window, due[0], due[-1]))


def _changes(file: File, window: Window, stamp: str, p: int, t: int, arrivals_only: bool) -> bool:
    return _came(file, p, t) or not arrivals_only and any(_holds(file, stamp, span) for span in _moved(window, p, t))


def _came(file: File, p: int, t: int) -> bool:
    return file.may_hold("_boundary", p + 1, t)


def _moved(window: Window, p: int, t: int) -> tuple[Span, ...]:
    """Event times that a window leaves behind on its way from p to t, and, where it moves in slides, those it takes in
    then.
    """
    left = ((window.oldest(p), window.oldest(t)),)
    return (*left, (p // window.slide * window.slide, t // window.slide * window.slide)) if window.slide else left


def _holds(file: File, stamp: str, span: Span) -> bool:
    return span[0] < span[1] and file.may_hold(stamp, span[0], span[1] - 1)


def repeated(due: tuple[int, ...], computed: tuple[int, ...]) -> list[tuple[int, int]]:
    """(boundary, the computed one that it repeats)."""
    found, at = [], 0
    for t in due:
        at += at + 1 < len(computed) and computed[at + 1] <= t
        found.append((t, computed[at]))
    return found
