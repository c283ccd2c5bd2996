"""Which files a source reads, told by the bounds of their columns: what they can hold, what they hold for certain,
whose they are.

Nothing is opened here.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from jobs.engine.work import TimedFiles
from jobs.storage.tables import File
from optimizer.plan.membership import Range
from optimizer.plan.program import Source

MOMENTS = 32           # groups of files with times of their own in one statement, however few rows they have
# Rows from which one more of them pays: each is a branch of the statement, 0.45 ms of planning, and saves reading and
# rounding the times of its rows, 23 ns each.
MOMENT_ROWS = 20_000
MOST_MOMENTS = 512     # beyond, times are read: the engine plans a statement of so many branches in a quarter second
Split = tuple[tuple[str, ...], tuple[TimedFiles, ...]]


def dealt(files: Sequence[File], parts: int) -> list[list[File]]:
    """Each task's share, about as many rows for each; the same whoever asks."""
    shares: list[list[File]] = [[] for _ in range(parts)]
    rows = [0] * parts
    for file in sorted(files, key=lambda f: (-f.rows, f.path)):
        least = rows.index(min(rows))
        shares[least].append(file)
        rows[least] += file.rows
    return shares


def inside(file: File, stamp: str, r: Range) -> bool:
    """Whether all rows of a file are in the range, by bounds that hold for each of them."""
    low, high = file.low, file.high
    if not all(name in bound for name in ("_boundary", stamp) for bound in (low, high)):
        return False
    is_between_boundaries = low["_boundary"] > r.after and high["_boundary"] <= r.upto
    return is_between_boundaries and low[stamp] >= r.since and high[stamp] < r.until


def meets(file: File, stamp: str, r: Range) -> bool:
    """Whether a file can hold rows of the range; one without statistics can."""
    return file.may_hold("_boundary", r.after + 1, r.upto) and file.may_hold(stamp, r.since, r.until - 1)


def files_meeting(files: Iterable[File], stamp: str, source: Source) -> list[File]:
    """The files that can hold rows of a source."""
    return [file for file in files if any(meets(file, stamp, times) for times in source.ranges)]


def split(files: Sequence[File], source: Source, place: Callable[[File], str]) -> Split:
    """The files whose times have to be read, and those whose times their bounds tell well enough; by path."""
    to_read: list[File] = []
    groups: dict[tuple[int, ...], list[File]] = {}
    for file in sorted(files, key=lambda f: f.path):
        moment = _moment(file, source)
        if moment is None:
            to_read.append(file)
        else:
            groups.setdefault(moment, []).append(file)
    timed = list[TimedFiles]()
    for place_in_list, group in enumerate(groups.values()):
        is_worth = place_in_list < MOMENTS or sum(file.rows for file in group) >= MOMENT_ROWS
        if is_worth and len(timed) < MOST_MOMENTS:
            boundary, stamp = _times_within(group[0], source)
            timed.append(TimedFiles(tuple(map(place, group)), boundary, stamp))
        else:
            to_read += group
    return tuple(place(file) for file in sorted(to_read, key=lambda f: f.path)), tuple(timed)


def _moment(file: File, source: Source) -> tuple[int, ...] | None:
    """What tells the file's rows apart in time for this source, if it is the same for all of them."""
    stamp, low, high = source.stamp, file.low, file.high
    if not stamp or not file.rows or not all(name in bound for name in ("_boundary", stamp) for bound in (low, high)):
        return None
    sure = [inside(file, stamp, r) for r in source.ranges]
    if source.counting is None:
        return (0,) if sure == [True] else None
    may_hold_others = any(meets(file, stamp, r) for r, is_inside in zip(source.ranges, sure) if not is_inside)
    if low["_boundary"] != high["_boundary"] or may_hold_others:
        return None
    first, last = (source.counting.interval(low["_boundary"], bound[stamp]) for bound in (low, high))
    return (low["_boundary"], *first, *sure) if first == last else None


def _times_within(file: File, source: Source) -> tuple[int, int]:
    """A boundary and an event time that count for the source as those of all rows of the file do."""
    if source.counting is not None:
        return file.low["_boundary"], file.low[source.stamp or ""]
    (range_,) = source.ranges
    return range_.upto, max(range_.since, 0)
