"""Which files a source reads, told by the bounds of their columns: what they can hold, what they hold for certain, whose they are; nothing is opened here."""
from __future__ import annotations

from collections.abc import Sequence

from jobs.tables import File
from optimizer.membership import Range


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
    return low["_boundary"] > r.after and high["_boundary"] <= r.upto and low[stamp] >= r.since and high[stamp] < r.until


def meets(file: File, stamp: str, r: Range) -> bool:
    """Whether a file can hold rows of the range; one without statistics can."""
    low, high = file.low, file.high
    return (high.get("_boundary", r.upto) > r.after and low.get("_boundary", r.upto) <= r.upto
            and high.get(stamp, r.since) >= r.since and low.get(stamp, r.since) < r.until)
