"""Windows that could serve as factor windows of a set, for each relation; which of them pay is not known here.

"Partitioned by": the gcds of subsets of {gcd(r_j, s_j)} are complete. A tumbling factor window read from W(q, q) costs
R/q whatever its length is (where making instances costs as well, the less the longer it is), and its readers the less
the longer it is; so in some optimal graph each is as long as its readers allow: the gcd of their ranges and slides.
"Covered by" is a choice, not complete: for one slide, parent and readers the cost is concave in the range
(optimizer.coverage.factors), so the range is the least or the greatest possible; slides are gcds of subsets. A smaller
slide can be better where the parent hops: of {3/1, 3, 24/8} with η = 2, W(4, 4) before W(8, 8). "Spanned by", a window
of range r and one of f on slide s read r/f + f/s instances together, the least where f² = r·s.
"""
from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import product
from math import gcd, isqrt

from optimizer.coverage.algebra import ALONE
from optimizer.coverage.algebra import COVERED as COVERED_BY
from optimizer.coverage.algebra import PARTITIONED, SPANNED, Window

MOST = 400                    # beyond it a search takes longer than it saves


def candidates(windows: Collection[Window], name: str) -> list[Window] | None:
    """Factor windows worth a look for the relation of that name; None where they are more than MOST."""
    if name == ALONE.name:
        return []
    common = _gcds_of_subsets(gcd(window.range, window.slide) for window in windows)
    if common is None:
        return None
    factors = {Window(length, length) for length in common}
    if name != PARTITIONED.name:
        is_spanning = name in (COVERED_BY.name, SPANNED.name)
        hopping = _spanning(windows, common, name == SPANNED.name) if is_spanning else _tiling(windows, common)
        if hopping is None:
            return None
        factors |= hopping
    factors -= set(windows)
    return sorted(factors) if len(factors) <= MOST else None


def _gcds_of_subsets(numbers: Iterable[int]) -> set[int] | None:
    """The gcds of all subsets; None where they are more than MOST."""
    divisors: set[int] = set()
    for number in sorted(set(numbers)):
        divisors |= {number, *(gcd(number, divisor) for divisor in divisors)}
        if len(divisors) > MOST:
            return None
    return divisors


def _spanning(windows: Collection[Window], common: set[int], end_to_end: bool) -> set[Window] | None:
    """By slide and remainder: the least range, and the greatest below each window's; for readers that take instances
    from `end_to_end` also the one between.
    """
    slides = _gcds_of_subsets([*common, *(window.slide for window in windows)])
    if slides is None:
        return None
    factors = set()
    for slide in slides:
        for coarse in windows:
            if coarse.slide % slide == 0:
                least = slide + coarse.range % slide
                ranges = [least, coarse.range - slide, coarse.range]
                if end_to_end:
                    ranges.append(least + (isqrt(coarse.range * slide) - least) // slide * slide)
                factors |= {Window(length, slide) for length in ranges if length >= slide}
    return factors


def _tiling(windows: Collection[Window], common: set[int]) -> set[Window] | None:
    """Hopping windows that lie end to end in some window: the slide divides the range, the range that window's."""
    slides = _gcds_of_subsets([*common, *(window.slide for window in windows)])
    ranges = _gcds_of_subsets([*common, *(window.range for window in windows)])
    if slides is None or ranges is None:
        return None
    factors = set()
    for length, slide in product(ranges, slides):
        if length % slide == 0 and any(w.range % length == 0 and w.slide % slide == 0 for w in windows):
            factors.add(Window(length, slide))
    return factors
