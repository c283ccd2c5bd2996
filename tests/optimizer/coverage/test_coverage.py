"""Paper D's windows: its worked examples to the digit, then laws that hold for any set, and choices of factor windows
beside those of trying everything.
"""
from __future__ import annotations

import itertools
import random
from collections.abc import Collection
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jobs.papers.experiments.windows.generate import random_set, sequential_set
from optimizer.coverage.algebra import (
    ALONE,
    COVERED,
    PARTITIONED,
    SPANNED,
    SUBTRACTED,
    CoverRelation,
    Window,
    covers,
    multiplier,
    partitions,
    relation,
)
from optimizer.coverage.candidates import candidates
from optimizer.coverage.factors import (
    benefit,
    best_factor,
    covering_candidates,
    divisors,
    helps,
    tumbling_candidates,
    with_factors,
)
from optimizer.coverage.graph import Graph, Prices, as_written, cheapest, prices
from optimizer.coverage.search import best, pruned
from optimizer.errors import ForebayError


def tumbling(*ranges: int) -> list[Window]:
    return [Window(r, r) for r in ranges]


def hopping(*pairs: tuple[int, int]) -> list[Window]:
    return [Window(r, s) for r, s in pairs]


def instances(window: Window, until: int) -> list[tuple[int, int]]:
    return [(a, a + window.range) for a in range(0, until - window.range + 1, window.slide)]


windows = st.integers(1, 12).flatmap(lambda s: st.integers(s, 36).map(lambda r: Window(r, s)))
# the slide divides the range, as the paper assumes
regular = st.tuples(st.integers(1, 4), st.integers(1, 12)).map(lambda p: Window(p[0] * p[1], p[1]))
sets = st.sets(regular, min_size=1, max_size=5)


def test_examples_2_and_5() -> None:
    coarse, fine = Window(10, 2), Window(8, 2)
    assert covers(fine, coarse) and multiplier(coarse, fine) == 2 and not partitions(fine, coarse)


@pytest.mark.parametrize("model", (PARTITIONED, COVERED), ids=lambda r: r.name)
def test_example_6(model: CoverRelation) -> None:
    given_ = tumbling(10, 20, 30, 40)
    price = prices(given_, model)
    assert (price.period, as_written(given_, price).cost, cheapest(given_, price).cost) == (120, 480, 150)
    assert {str(w): cheapest(given_, price).price(w) for w in given_} == {"10": 120, "20": 12, "30": 12, "40": 6}


@pytest.mark.parametrize("model", (PARTITIONED, COVERED), ids=lambda r: r.name)
def test_example_7(model: CoverRelation) -> None:
    given_ = tumbling(20, 30, 40)
    price = prices(given_, model)
    for found in (with_factors(given_, price), best(given_, price).graph, heuristic(given_, price)):
        assert (as_written(given_, price).cost, cheapest(given_, price).cost, found.cost) == (360, 246, 150)
        assert found.factors == {Window(10, 10)}
        assert [(str(a), str(b)) for a, b in found.edges] == [("10", "20"), ("10", "30"), ("20", "40")]


def test_example_8() -> None:
    downstream = tumbling(20, 30)
    assert tumbling_candidates(None, downstream) == tumbling(2, 5, 10)
    assert best_factor(None, downstream, prices(tumbling(20, 30, 40), PARTITIONED)) == Window(10, 10)


def test_candidates_divide_slides_too() -> None:
    """Algorithm 5 as printed takes the ranges alone: W(20, 20) does not partition W(20, 10)."""
    downstream = hopping((20, 10), (40, 20))
    assert max(tumbling_candidates(None, downstream)) == Window(10, 10)
    assert all(partitions(f, w) for f in tumbling_candidates(None, downstream) for w in downstream)


def test_sets_without_overlap_cannot_be_improved() -> None:
    given_ = tumbling(15, 17, 19)
    price = prices(given_, PARTITIONED)
    assert best(given_, price).graph.cost == as_written(given_, price).cost == 3 * price.period


def test_a_factor_window_for_some_of_the_readers() -> None:
    """What the paper's generator misses, as W(15, 15) in its footnote 3: 30 does not divide 100, but serves the other
    two.
    """
    given_ = tumbling(60, 90, 100)
    price = prices(given_, PARTITIONED)
    found = best(given_, price)
    assert (with_factors(given_, price).cost, with_factors(given_, price).factors) == (1170, set(tumbling(10)))
    assert (found.exact, found.graph.cost, found.graph.factors) == (True, 1140, set(tumbling(10, 30)))


def test_several_factor_windows_below_one_node() -> None:
    """The gcd of all four is 1, the rows themselves: Algorithm 3 finds nothing."""
    given_ = tumbling(200, 300, 77, 143)
    price = prices(given_, PARTITIONED)
    assert with_factors(given_, price).factors == frozenset()
    assert best(given_, price).graph.factors == set(tumbling(100, 11))


def test_what_relations_suffice() -> None:
    assert [relation(f) for f in ("min", "MAX", "sum", "STDDEV", "median")
            ] == [COVERED, COVERED, PARTITIONED, PARTITIONED, ALONE]
    with pytest.raises(ForebayError, match="they are SUM"):
        relation("FIRST")


def test_holistic_windows_stay_alone() -> None:
    given_ = tumbling(10, 20, 30)
    price = prices(given_, ALONE)
    assert best(given_, price).graph == cheapest(given_, price) == as_written(given_, price)


def test_a_gap_between_instances_is_refused() -> None:
    with pytest.raises(ValueError, match="gaps"):
        Window(5, 6)


def test_a_graph_reads_only_what_makes_a_window() -> None:
    with pytest.raises(ValueError, match="does not make"):
        Graph(((Window(10, 10), None), (Window(15, 15), Window(10, 10))), frozenset(),
              prices(tumbling(10, 15), PARTITIONED))


def heuristic(windows: Collection[Window], model: Prices) -> Graph:
    """The search without branching."""
    return best(windows, model, nodes=0).graph


@given(windows, windows)
def test_coverage_is_what_definition_1_says(fine: Window, coarse: Window) -> None:
    """Every instance of the coarse one begins with an instance of the fine one and ends with another."""
    there = {*instances(fine, 200)}
    begun = all((a, a + fine.range) in there and (b - fine.range, b) in there for a, b in instances(coarse, 120))
    assert covers(fine, coarse) == (begun and coarse.range > fine.range)


@given(windows, windows)
def test_a_partition_is_a_disjoint_cover(fine: Window, coarse: Window) -> None:
    inside = [[(x, y) for x, y in instances(fine, 200) if a <= x and y <= b] for a, b in instances(coarse, 120)]
    disjoint = all(sum(y - x for x, y in parts) == coarse.range for parts in inside) and covers(fine, coarse)
    assert disjoint == (partitions(fine, coarse) and fine.range < coarse.range)
    if covers(fine, coarse):
        assert {len(parts) for parts in inside} == {multiplier(coarse, fine)}


@given(windows, windows, windows)
def test_coverage_is_transitive(a: Window, b: Window, c: Window) -> None:
    assert not (covers(a, b) and covers(b, c)) or covers(a, c)


@given(windows, windows)
def test_tiles_lie_end_to_end_and_spans_leave_no_gap(fine: Window, coarse: Window) -> None:
    tiles, span = SUBTRACTED.reads(coarse, fine), SPANNED.reads(coarse, fine)
    for a, b in instances(coarse, 80):
        starts = {x for x, _ in instances(fine, 200)}
        assert tiles is None or all(a + i * fine.range in starts
                                    for i in range(tiles)) and tiles * fine.range == coarse.range
        if span is not None:
            step = fine.range // fine.slide * fine.slide
            chosen = [min(a + i * step, b - fine.range) for i in range(span)]
            assert set(chosen) <= starts and chosen[-1] == b - fine.range
            assert all(later <= earlier + fine.range for earlier, later in itertools.pairwise(chosen))
    assert PARTITIONED.reads(coarse, fine) in (None, tiles)
    assert COVERED.reads(coarse, fine) is None or span is not None and span <= multiplier(coarse, fine)


@settings(max_examples=settings.default.max_examples // 2)
@given(sets)
def test_sharing_never_costs_more(given_: set[Window]) -> None:
    for found in (COVERED, PARTITIONED, SUBTRACTED, SPANNED):
        price = prices(given_, found, 3)
        assert best(given_, price).graph.cost <= heuristic(given_, price).cost <= cheapest(
            given_, price).cost <= as_written(given_, price).cost
        assert best(given_, price).graph.cost <= with_factors(given_, price).cost


@given(
    st.sets(
        st.tuples(st.integers(1, 4), st.sampled_from((1, 2, 3, 4, 6, 8, 12))).map(lambda p: Window(p[0] * p[1], p[1])),
        min_size=1, max_size=3))
@settings(max_examples=30, deadline=None)
def test_the_search_is_as_good_as_trying_everything(given_: set[Window]) -> None:
    """Every set of at most two factor windows, of all lengths that there are; not only of the candidates."""
    longest = max(w.range for w in given_)
    price = prices(given_, PARTITIONED, 2)
    possible = [
        Window(r, s) for r in range(1, longest + 1) for s in range(1, r + 1) if any(
            price.relation.reads(w, Window(r, s)) for w in given_)
    ]
    tried = min(_cost(given_, few, price) for n in range(3) for few in itertools.combinations(possible, n))
    found = best(given_, price, nodes=100_000)
    assert found.exact and found.graph.cost <= tried


MOST_TRIED = 9


@given(sets, st.sampled_from((COVERED, PARTITIONED, SPANNED)), st.integers(1, 100))
def test_what_is_called_exact_is_the_cheapest_of_all_choices_of_candidates(given_: set[Window], relation: CoverRelation,
                                                                           rate: int) -> None:
    """However many are chosen: the search leaves out only what its bound says cannot be cheaper."""
    price = prices(given_, relation, rate)
    possible = candidates(given_, relation.name) or []
    assume(len(possible) <= MOST_TRIED)
    found = best(given_, price, nodes=100_000)
    every = (few for n in range(len(possible) + 1) for few in itertools.combinations(possible, n))
    assert found.exact and found.graph.cost <= min(_cost(given_, few, price) for few in every)


def _cost(asked: Collection[Window], factors: tuple[Window, ...], price: Prices) -> int | Fraction:
    return cheapest(asked, price, factors).cost


@given(st.sets(regular, min_size=1, max_size=4), st.integers(1, 3))
def test_theorem_8(downstream: set[Window], least: int) -> None:
    """Algorithm 4 says that a factor window helps exactly where Eq. 2 does."""
    target = None if least == 1 else Window(least, least)
    asked = sorted(downstream)
    price = prices([*asked, *([target] if target else [])], PARTITIONED)
    if target and not all(partitions(target, w) for w in asked):
        return
    for factor in tumbling_candidates(target, asked):
        if factor not in asked:
            assert helps(factor, target, asked, price.period) == (benefit(factor, target, asked, price) >= 0)


@given(st.sets(regular, min_size=1, max_size=4), st.integers(1, 5))
def test_the_extreme_ranges_are_the_best(downstream: set[Window], rate: int) -> None:
    """Algorithm 2 with every range gains no more than with the two that are made."""
    asked = sorted(downstream)
    price = prices(asked, COVERED, rate)
    everything = [
        Window(r, s) for s in divisors(asked[0].slide) for r in range(s, asked[0].range, s) if all(
            covers(Window(r, s), w) for w in asked)
    ]
    made = covering_candidates(None, asked)
    gains = [benefit(f, None, asked, price) for f in everything if f != Window(1, 1)]
    assert max(gains, default=0) <= max((benefit(f, None, asked, price) for f in made), default=0) or max(gains) <= 0


@pytest.mark.parametrize("size", (5, 10, 15, 20))
@pytest.mark.parametrize("is_tumbling", (True, False))
def test_algorithm_6(size: int, is_tumbling: bool) -> None:
    for make in (random_set, sequential_set):
        made = make(size, is_tumbling, random.Random(size).choice)
        assert len(made) == size and all(w.tumbling == is_tumbling and w.range == w.slide * (1 if is_tumbling else 2)
                                         for w in made)
    assert len({max(sequential_set(size, True, lambda seeds: s)) for s in (2, 5, 10)}) == 3


def test_the_exact_search_beside_the_heuristic() -> None:
    """Ten random windows: never worse, somewhere better, and most sets are decided."""
    rng, costs, exact = random.Random(11), [], 0
    for _ in range(12):
        given_ = random_set(10, True, rng.choice)
        price = prices(given_, PARTITIONED)
        found = best(given_, price)
        costs.append((found.graph.cost, heuristic(given_, price).cost, pruned(given_, with_factors(given_,
                                                                                                   price)).cost))
        exact += found.exact
    assert exact == 12 and all(a <= b <= c for a, b, c in costs) and any(a < c for a, _, c in costs)


def test_candidates_of_tumbling_windows_are_gcds_of_subsets() -> None:
    assert candidates(tumbling(12, 18, 27), PARTITIONED.name) == tumbling(3, 6, 9)


def test_costs_can_be_measured_ones() -> None:
    """Making an instance has a price of its own; where it is high, no factor window pays."""
    given_ = tumbling(20, 30, 40)
    dear = Prices(120, PARTITIONED, 1, 1, 1, instance=100)
    assert best(given_, dear).graph.factors == frozenset()


def test_periods_beyond_any_machine_word() -> None:
    given_ = tumbling(*(10**6 + k for k in range(40)))
    price = prices(given_, PARTITIONED)
    assert price.period > 2**64 and best(given_, price).graph.cost <= as_written(given_, price).cost


def test_slides_that_do_not_divide() -> None:
    given_ = hopping((5, 3), (7, 7))
    assert prices(given_, COVERED).instances(Window(5, 3)) == 11
    assert prices(hopping((5, 3), (6, 6)), COVERED).instances(Window(5, 3)) == Fraction(28, 3)
