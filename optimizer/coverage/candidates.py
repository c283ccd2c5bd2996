"""Windows that could serve as factor windows of a set, for each relation; which of them pay is not known here.

"Partitioned by": the gcds of subsets of {gcd(r_j, s_j)} are complete. A tumbling factor window read from W(q, q) costs
R/q whatever its length is (where making instances costs as well, the less the longer it is), and its readers the less
the longer it is; so in some optimal graph each is as long as its readers allow: the gcd of their ranges and slides.
"Covered by" is a choice, not complete: for one slide, parent and readers the cost is concave in the range
(optimizer.coverage.factors), so the range is the least or the greatest possible; slides are gcds of subsets. A smaller
slide can be better where the parent hops: of {3/1, 3, 24/8} with η = 2, W(4, 4) before W(8, 8).
"""
from __future__ import annotations

from collections.abc import Collection, Iterable
from math import gcd

from optimizer.coverage.algebra import ALONE
from optimizer.coverage.algebra import COVERED as COVERED_BY
from optimizer.coverage.algebra import PARTITIONED, SPANNED, Window

MOST = 400                    # beyond it a search takes longer than it saves


def candidates(windows: Collection[Window], name: str) -> list[Window] | None:
    """Factor windows worth a look for the relation of that name; None where they are more than MOST."""
    if name == ALONE.name:
        return []
    common = _closed(gcd(w.range, w.slide) for w in windows)
    if common is None:
        return None
    found = {Window(d, d) for d in common}
    if name != PARTITIONED.name:
        hopping = _spanning(windows, common) if name in (COVERED_BY.name, SPANNED.name) else _tiling(windows, common)
        if hopping is None:
            return None
        found |= hopping
    found -= set(windows)
    return sorted(found) if len(found) <= MOST else None


def _closed(numbers: Iterable[int]) -> set[int] | None:
    """The gcds of all subsets."""
    found: set[int] = set()
    for number in sorted(set(numbers)):
        found |= {number, *(gcd(number, f) for f in found)}
        if len(found) > MOST:
            return None
    return found


def _spanning(windows: Collection[Window], common: set[int]) -> set[Window] | None:
    """By slide and remainder: the least range, and the greatest below each window's."""
    slides = _closed([*common, *(w.slide for w in windows)])
    if slides is None:
        return None
    found = set()
    for slide in slides:
        for coarse in windows:
            if coarse.slide % slide == 0:
                least = slide + coarse.range % slide
                found |= {Window(r, slide) for r in (least, coarse.range - slide, coarse.range) if r >= slide}
    return found


def _tiling(windows: Collection[Window], common: set[int]) -> set[Window] | None:
    """Hopping windows that lie end to end in some window: the slide divides the range, the range that window's."""
    slides, ranges = _closed([*common, *(w.slide for w in windows)]), _closed([*common, *(w.range for w in windows)])
    if slides is None or ranges is None:
        return None
    return {
        Window(r, s) for s in slides for r in ranges if r % s == 0 and any(w.range % r == 0 and w.slide % s == 0
                                                                           for w in windows)
    }
