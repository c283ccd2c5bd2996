"""The paper's factor windows: the best one between a window and those that read it (paper D, §IV, Algorithms 2–5).

A heuristic, optimal only by luck.
"""
from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction
from itertools import chain, permutations
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
    price = model.rows(window) if source is None else model.reading(window, source)
    if price is None:
        raise ValueError(f"{window} cannot be read from {source}")
    return price


def covering_candidates(target: Window | None, downstream: Sequence[Window]) -> list[Window]:
    """Algorithm 2, lines 1–11. For one slide the benefit is convex in the range (a factor window's own cost is a
    product of a falling and a rising line), so only the shortest and the longest range can be best, and only these two
    are tried.
    """
    fine = target or ROOT

    def serves_all(factor: Window) -> bool:
        if factor in (target, *downstream) or not covers(fine, factor):
            return False
        return all(covers(factor, window) for window in downstream)

    factors: list[Window] = []
    limit = min(window.range for window in downstream)
    for slide in divisors(gcd(*(window.slide for window in downstream))):
        if slide % fine.slide:
            continue
        shortest = max(slide, (fine.range // slide + 1) * slide)      # above the range of what covers it
        longest = (limit - 1) // slide * slide
        ranges = {length for length in (shortest, longest) if slide <= length < limit}
        factors += filter(serves_all, (Window(length, slide) for length in ranges))
    return sorted(factors)


def tumbling_candidates(target: Window | None, downstream: Sequence[Window]) -> list[Window]:
    """Algorithm 5, lines 3–6: r_f | gcd of all ranges *and slides* (the text says ranges; {20/10, 40/20} shows why
    not), r_W | r_f; the target is none.
    """
    least = (target or ROOT).range
    common = gcd(*(gcd(window.range, window.slide) for window in downstream))
    return [Window(length, length) for length in divisors(common) if length % least == 0 and length > least]


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
        # Algorithm 4 decides for one event a unit of time; at another rate the benefit itself does.
        if model.rate == 1:
            gains = [f for f in possible if helps(f, target, downstream, model.period)]
        else:
            gains = [f for f in possible if benefit(f, target, downstream, model) >= 0]
        covering = {fine for fine, coarse in permutations(gains, 2) if covers(fine, coarse)}
        # Theorem 9; as c_f = R(λ/r_f + 1/r_W), the larger range
        return max((factor for factor in gains if factor not in covering), default=None)
    best, most = None, Fraction(0)
    for factor in covering_candidates(target, downstream):
        if (gain := Fraction(benefit(factor, target, downstream, model))) > most:
            best, most = factor, gain
    return best


def with_factors(windows: Collection[Window], model: Prices) -> Graph:
    """Algorithm 3: the best factor window below the rows and below every window, then Algorithm 1 over all of them."""
    if model.relation not in (PARTITIONED, COVERED):
        return cheapest(windows, model)
    readers_by_target: dict[Window | None, list[Window]] = {}
    for window in windows:
        readers = [coarse for coarse in sorted(windows) if model.relation.reads(coarse, window) is not None]
        readers_by_target[window] = readers
    if ROOT not in windows:
        covered = chain.from_iterable(readers_by_target.values())
        readers_by_target[None] = sorted(set(windows).difference(covered))
    factors = {best_factor(target, readers, model) for target, readers in readers_by_target.items() if readers}
    return cheapest(windows, model, {factor for factor in factors if factor is not None})
