"""The paper's factor windows: the best one between a window and those that read it (paper D, §IV, Algorithms 2–5).

A heuristic, optimal only by luck.
"""
from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction
from math import gcd, isqrt

from optimizer.coverage.algebra import COVERED, PARTITIONED, Window, covers
from optimizer.coverage.graph import Graph, Number, Prices, cheapest

ROOT = Window(1, 1)           # S: one instance a unit of time; as the virtual root, the rows themselves


def divisors(number: int) -> list[int]:
    small = [d for d in range(1, isqrt(number) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


def benefit(factor: Window, target: Window | None, downstream: Collection[Window], model: Prices) -> Number:
    """δ_f of Eq. 2; target None is the virtual root, whose edges cost n·η·r."""
    now = sum(_price(w, target, model) for w in downstream)
    return now - sum(_price(w, factor, model) for w in downstream) - _price(factor, target, model)


def _price(window: Window, source: Window | None, model: Prices) -> Number:
    found = model.rows(window) if source is None else model.reading(window, source)
    if found is None:
        raise ValueError(f"{window} cannot be read from {source}")
    return found


def covering_candidates(target: Window | None, downstream: Sequence[Window]) -> list[Window]:
    """Algorithm 2, lines 1–11. For one slide the benefit is convex in the range (a factor window's own cost is a
    product of a falling and a rising line), so only the shortest and the longest range can be best, and only these two
    are made."""
    found, fine = [], target or ROOT
    shortest = min(w.range for w in downstream)
    for slide in divisors(gcd(*(w.slide for w in downstream))):
        if slide % fine.slide:
            continue
        made = [
            Window(r, slide) for r in {_first(slide, fine), (shortest - 1) // slide * slide} if slide <= r < shortest
        ]
        found += [
            f for f in made
            if f not in (target, *downstream) and covers(fine, f) and all(covers(f, w) for w in downstream)
        ]
    return sorted(found)


def _first(slide: int, fine: Window) -> int:
    """The least multiple of the slide above the range of what covers it."""
    return max(slide, (fine.range // slide + 1) * slide)


def tumbling_candidates(target: Window | None, downstream: Sequence[Window]) -> list[Window]:
    """Algorithm 5, lines 3–6: r_f | gcd of all ranges *and slides* (the text says ranges.

    {20/10, 40/20} shows why not), r_W | r_f; the target is none.
    """
    least = (target or ROOT).range
    common = gcd(*(x for w in downstream for x in (w.range, w.slide)))
    return [Window(r, r) for r in divisors(common) if r % least == 0 and r > least]


def helps(factor: Window, target: Window | None, downstream: Sequence[Window], period: int) -> bool:
    """Algorithm 4 (Theorem 8), for one event a unit of time."""
    if len(downstream) >= 2:
        return True
    only = downstream[0]
    k, m = Fraction(only.range, only.slide), Fraction(period, only.range)
    if k == 1 or m == 1:
        return False
    if k >= 3 and m >= 3:
        return True
    return Fraction(factor.range, (target or ROOT).range) >= 1 + m / ((m - 1) * (k - 1))


def best_factor(target: Window | None, downstream: Sequence[Window], model: Prices) -> Window | None:
    """Algorithms 2 and 5: the window whose insertion saves most, if one saves anything."""
    if model.relation == PARTITIONED:
        possible = tumbling_candidates(target, downstream)
        if set(possible) & set(downstream):
            return None                               # the greatest divisor is a window already (Definition 6)
        gains = [f for f in possible if _gains(f, target, downstream, model)]
        independent = [f for f in gains if not any(covers(f, g) for g in gains)]
        return max(independent, default=None)         # Theorem 9; as c_f = R(λ/r_f + 1/r_W), the larger range
    best, most = None, Fraction(0)
    for factor in covering_candidates(target, downstream):
        if (gain := Fraction(benefit(factor, target, downstream, model))) > most:
            best, most = factor, gain
    return best


def _gains(factor: Window, target: Window | None, downstream: Sequence[Window], model: Prices) -> bool:
    """Algorithm 4; at another rate than 1 the benefit itself, which it decides."""
    return helps(factor, target, downstream, model.period) if model.rate == 1 else benefit(
        factor, target, downstream, model) >= 0


def with_factors(windows: Collection[Window], model: Prices) -> Graph:
    """Algorithm 3: the best factor window below the rows and below every window, then Algorithm 1 over all of them."""
    if model.relation not in (PARTITIONED, COVERED):
        return cheapest(windows, model)
    below = {w: [c for c in sorted(windows) if model.relation.reads(c, w) is not None] for w in windows}
    covered = {c for readers in below.values() for c in readers}
    targets: list[tuple[Window | None, list[Window]]] = [
        *below.items(), (None, sorted(set(windows) - covered) if ROOT not in windows else [])
    ]
    found = {best_factor(w, readers, model) for w, readers in targets if readers}
    return cheapest(windows, model, {f for f in found if f is not None})
