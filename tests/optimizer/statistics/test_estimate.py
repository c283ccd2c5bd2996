"""What is estimated from samples of a few hundred values stands beside exact counts by plain SQL, within bounds that
the sample's size explains.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import expm1

import numpy
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.adapt.statistics import limited
from optimizer.plan.sampling import Limits
from optimizer.query.model import Query
from optimizer.query.shape import shape
from optimizer.statistics.cardinality import sizes
from optimizer.statistics.estimate import KEPT, alike, assumed, distinct_in, observed, population, recent
from optimizer.statistics.figures import agreement, fanout, heaviest, inputs, overlap
from optimizer.statistics.samples import (
    COMBINATIONS,
    KEYS,
    SPACE,
    InputSample,
    Sample,
    Smallest,
    document,
    from_document,
    smallest,
    united,
)
from tests.optimizer.statistics.sampled import BATCH, START, Rows, joined, pane

ROWS = 20_000
PANES = 4
Draw = Callable[[numpy.random.Generator, int], numpy.ndarray]


def uniform(values: int) -> Draw:
    return lambda rng, n: rng.integers(0, values, n)


def zipf(values: int, exponent: float) -> Draw:
    weights = numpy.arange(1, values + 1) ** -exponent
    return lambda rng, n: rng.choice(values, n, p=weights / weights.sum())


def stream(seed: int, keys: Draw, groups: Draw, panes: int = PANES, rows: int = ROWS) -> pa.Table:
    rng = numpy.random.default_rng(seed)
    return pa.concat_tables([pane(number, keys(rng, rows), groups(rng, rows)) for number in range(1, panes + 1)])


def near(estimate: float, exact: float, error: float) -> bool:
    return abs(estimate - exact) <= error * exact


@pytest.mark.parametrize("keys, groups",
                         [(1_000, 1), *(pytest.param(k, g, marks=pytest.mark.slow)
                                        for k, g in ((10, 10), (1_000, 150), (100_000, 1), (100_000, 150)))])
def test_combinations_of_a_window_follow_from_its_panes(keys: int, groups: int) -> None:
    rows, query = Rows({
        "a": stream(1, uniform(keys), uniform(groups)),
        "b": stream(2, uniform(keys), uniform(1))
    }), joined("a b")
    samples = [rows.sample(query, number) for number in range(PANES, 0, -1)]
    known = observed(shape(query), samples, BATCH)
    assert known is not None
    of = known.inputs[0].combinations
    exact = rows.exact("SELECT count(*) FROM (SELECT DISTINCT k, g FROM a)")
    assert near(-of * expm1(-PANES * ROWS / of), exact, 0.12)
    assert near(
        inputs(query, replace(known,
                              inputs=tuple(replace(i, rows=PANES * ROWS) for i in known.inputs)))[0]["combinations"],
        exact, 0.12)
    if keys * groups <= 1_000:
        assert near(of, keys * groups, 0.12)


JOINS = {
    "few keys": (uniform(100), uniform(100)),
    "many keys": (uniform(5_000), uniform(5_000)),
    "most keys once": (uniform(50_000), uniform(50_000)),
    "skewed": (zipf(20_000, 1.0), zipf(20_000, 1.0)),
    "very skewed": (zipf(20_000, 1.5), zipf(20_000, 1.5)),
    "one skewed": (zipf(20_000, 1.2), uniform(20_000)),
    "half of the keys": (uniform(4_000), lambda rng, n: rng.integers(2_000, 6_000, n)),
}
SOON = ("very skewed",)      # what the fast set has


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in SOON else pytest.mark.slow) for n in JOINS])
def test_a_join_of_two(name: str) -> None:
    first, second = JOINS[name]
    rows = Rows({"a": stream(3, first, uniform(20)), "b": stream(4, second, uniform(1))})
    query = joined("a b")
    known = observed(shape(query), _in_turn(rows, query), BATCH)
    assert known is not None
    assert near(fanout(known), rows.pairs("a b"), 0.25 if name == "most keys once" else 0.15)
    priced = sizes(query, known)
    assert priced.join([priced.raw(0), priced.raw(1)]) == pytest.approx(fanout(known))
    both, any_ = (rows.exact(f"SELECT count(*) FROM (SELECT k FROM a {of} SELECT k FROM b)")
                  for of in ("INTERSECT", "UNION"))
    assert abs(overlap(known.classes[0]) - both / any_) < 0.1
    most = rows.exact(f"SELECT max(n) / {PANES * ROWS} FROM (SELECT count(*) AS n FROM a GROUP BY k)")
    assert name == "most keys once" or near(heaviest(known.classes[0], 0), most, 0.35)


def _in_turn(rows: Rows, query: Query) -> list[Sample]:
    """As a runner does it: each sample with the limits, and the watched keys, of the one before."""
    found: list[Sample] = []
    for number in range(1, PANES + 1):
        limits = {i: limited(found[0], i) for i, x in enumerate(query.inputs) if x.is_stream} if found else {}
        found.insert(0, rows.sample(query, number, limits=limits))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("inputs", ["a b c", "a b c d", "a b names"])
def test_a_join_of_more(inputs: str) -> None:
    """Correlated: what is frequent on one is so on all."""
    tables = {name: stream(5 + i, zipf(2_000, 0.8), uniform(5), rows=5_000) for i, name in enumerate("abcd")}
    rows = Rows({
        **tables, "names": pa.table({
            "k": pa.array(range(0, 2_000, 2), pa.int64()),
            "g": pa.array([1] * 1_000, pa.int64())
        })
    })
    query = joined(inputs)
    known = observed(shape(query), _in_turn(rows, query), BATCH)
    assert known is not None
    assert near(fanout(known), rows.pairs(inputs), 0.2)


def test_selections_and_rates_are_counted() -> None:
    rows = Rows({"a": stream(9, uniform(100), uniform(10)), "b": stream(10, uniform(100), uniform(1), rows=5_000)})
    query = joined("a b", "a.x < 30")
    known = observed(shape(query), [rows.sample(query, n) for n in (4, 3)], BATCH)
    assert known is not None
    assert known.inputs[0].selectivity == pytest.approx(
        rows.exact("SELECT avg(CASE WHEN x < 30 THEN 1.0 ELSE 0.0 END) FROM a"), abs=0.01)
    assert [round(i.rate) for i in known.inputs] == [2_000, 500]
    assert [round(i.rows) for i in known.inputs] == [80_000, 20_000]
    assert known.weight == 50_000
    assert near(fanout(known), rows.exact("SELECT count(*) FROM a JOIN b ON a.k = b.k WHERE a.x < 30"), 0.1)


def test_samples_of_panes_together_are_the_sample_of_all() -> None:
    rows = Rows({"a": stream(11, zipf(5_000, 0.9), uniform(30)), "b": stream(12, uniform(5_000), uniform(1))})
    query = joined("a b")
    parts, whole = [rows.sample(query, n) for n in range(1, PANES + 1)], rows.sample(query, PANES, panes=PANES)
    for i in (0, 1):
        assert _plain(united([p.inputs[i].combinations for p in parts],
                             COMBINATIONS)) == _plain(whole.inputs[i].combinations)
        together = united([p.inputs[i].keys[0] for p in parts], KEYS)
        assert together.below == whole.inputs[i].keys[0].below
        assert {
            h: n for h, (n, _) in together.counts.items()
        } == {
            h: n for h, (n, _) in whole.inputs[i].keys[0].counts.items()
        }


def _plain(found: Smallest) -> tuple[int, dict[int, int]]:
    return found.below, {h: n for h, (n, _) in found.counts.items()}


def test_rows_beyond_the_limits_are_not_needed() -> None:
    """A pass that groups fewer rows gives the same sample; and what is watched is counted whatever its hash."""
    rows = Rows({"a": stream(13, uniform(50_000), uniform(3)), "b": stream(14, uniform(50_000), uniform(1))})
    query = joined("a b")
    free = rows.sample(query, 1)
    mine = free.inputs[0]
    reach = Limits(2 * mine.combinations.below, ((0, 2 * mine.keys[0].below),), ((0, tuple(mine.keys[0].extra)),))
    again = rows.sample(query, 1, limits={0: reach}).inputs[0]
    assert again.combinations == mine.combinations
    assert (again.keys[0].below, again.keys[0].counts) == (mine.keys[0].below, mine.keys[0].counts)
    assert mine.keys[0].extra.items() <= again.keys[0].extra.items()
    assert (again.rows, again.passing) == (mine.rows, mine.passing)
    short = rows.sample(query, 1, limits={
        0: Limits(mine.combinations.below // 2, ((0, mine.keys[0].below // 2),))
    }).inputs[0]
    assert short.keys[0].below == mine.keys[0].below // 2 and short.keys[0].counts.items() < mine.keys[0].counts.items()


def test_late_rows_are_told_by_their_boundary() -> None:
    late = pane(1, [1] * 30, [1] * 30).set_column(4, "_boundary", pane(3, [1] * 30, [1] * 30)["_boundary"])
    rows = Rows({"a": pa.concat_tables([pane(3, [1] * 70, [1] * 70), late]), "b": pane(3, [1], [1])})
    assert [i.late for i in rows.sample(joined("a b"), 3).inputs] == [30, 0]


def test_a_sample_is_the_same_from_json() -> None:
    rows = Rows({"a": stream(15, zipf(5_000, 1.1), uniform(30)), "b": stream(16, uniform(5_000), uniform(1))})
    for one in rows.sample(joined("a b"), 2).inputs:
        assert from_document(document(one)) == one


@given(st.floats(1, 1e9), st.floats(0.05, 30))
def test_population_inverts_the_count_of_distinct_values(of: float, times: float) -> None:
    rows = of * times
    distinct = -of * expm1(-times)
    if distinct < rows - 0.5:
        assert population(rows, distinct) == pytest.approx(of, rel=1e-3)


@given(st.integers(0, 10**9), st.floats(0, 1))
def test_population_is_never_less_than_what_was_seen(rows: int, share: float) -> None:
    distinct = rows * share
    assert 1 <= population(rows, distinct) <= 1e12
    assert population(rows, distinct) >= min(distinct, 1e12) * (1 - 1e-9)


@given(st.dictionaries(st.integers(0, SPACE - 1), st.tuples(st.integers(1, 9), st.just(1)), max_size=40),
       st.integers(1, 10))
def test_the_smallest_are_whole_below_their_limit(counts: dict[int, tuple[int, int]], most: int) -> None:
    found = smallest(counts, SPACE, most)
    assert found.counts == {h: c for h, c in counts.items() if h < found.below} and len(found.counts) <= most
    assert {**found.counts, **found.extra} == counts
    assert found.complete == (len(counts) < most)


def _sample(at: int, rows: int, distinct: int = 10, version: int | None = None) -> Sample:
    kept = Smallest(SPACE, {h: (rows // distinct, 1) for h in range(distinct)})
    return Sample(START + at * BATCH, 10.0, (InputSample(rows, rows, combinations=kept, version=version),))


def test_only_what_tells_the_same_is_merged() -> None:
    same, faster, finer = _sample(1, 1_000), _sample(1, 10_000), _sample(1, 1_000, 200)
    assert alike(_sample(2, 1_100), same) and not alike(faster, same) and not alike(finer, same)
    assert not alike(_sample(2, 1_000, version=2), _sample(1, 1_000, version=1))
    assert not alike(same, replace(same, dialect="spark"))
    assert alike(replace(_sample(2, 10_000), seconds=100.0), same)
    history = [_sample(9, 1_000), _sample(8, 950), _sample(7, 9_000), _sample(6, 1_000)]
    assert recent(history) == history[:2]
    assert len(recent([_sample(n, 1_000) for n in range(20, 0, -1)])) == KEPT
    assert alike(_sample(2, 3), _sample(1, 9)), "noise of a few rows"


def test_distinct_values_of_a_sample_err_little_whether_they_repeat_or_not() -> None:
    rng = numpy.random.default_rng(1)
    for values in (300, 5_000, 10**7):
        drawn, counts = numpy.unique(rng.integers(0, values, 50_000), return_counts=True)
        hashes = rng.integers(0, SPACE, len(drawn))
        found = smallest({int(h): (int(n), 1) for h, n in zip(hashes, counts)}, SPACE, COMBINATIONS)
        assert near(distinct_in(found, 50_000), len(drawn), 0.1)


def test_without_samples_it_is_assumed_and_says_so() -> None:
    query = joined("a b names")
    known = assumed(shape(query), BATCH)
    assert known.weight == 0 and known.at is None and len(known.classes) == len(shape(query).keys)
    assert agreement(known.classes[0]) == pytest.approx(1e-6)      # one in a thousand, twice
    assert observed(shape(query), [], BATCH) is None
