"""PC, IC, GIC, TC, grouped TC and MTC give the oracle's COUNT, SUM, AVG, MAX and MIN after every tuple, and so one
another's.
"""
from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.papers.operators import counting, inclusion, many, pipelined
from jobs.papers.operators.arrivals import ArrivingTuples, JoinWindows, arrivals
from jobs.papers.operators.rings import rows as held
from jobs.papers.operators.totals import answers
from optimizer.errors import ForebayError
from tests.jobs.papers.operators import naive

pytestmark = pytest.mark.slow       # the first call compiles
GROUPS = st.sampled_from(((1, 1), (3, 1), (1, 2), (3, 2)))


def coded(found: naive.Found, windows: JoinWindows) -> dict[int, tuple[int, int, int, int]]:
    return {sum(g * stride for g, stride in zip(groups, windows.strides)): value for groups, value in found.items()}


def one(rows: list[naive.Row], i: int) -> ArrivingTuples:
    return arrivals(rows[i:i + 1])


@settings(max_examples=settings.default.max_examples // 2)
@given(st.data(), naive.windows(), GROUPS, st.integers(0, 1), st.sampled_from((1, 3)), st.integers(0, 2))
def test_grouped_counts_and_sums_after_every_tuple(data: st.DataObject, spans: tuple[int, int], groups: tuple[int, int],
                                                   owner: int, buckets: int, having: int) -> None:
    """With HAVING COUNT(*) > having, told after each tuple and by the answer."""
    rows = data.draw(naive.streams(groups=groups))
    windows = JoinWindows(spans, buckets, groups, owner)
    ic, tc, pc = inclusion.start(windows), counting.start(windows), pipelined.start(windows)
    for i, before in naive.steps(rows):
        (ic, passing), (tc, whole) = inclusion.advance(ic, one(rows, i), having), counting.advance(tc, one(rows, i))
        pc, kept = pipelined.advance(pc, one(rows, i))
        right = coded(naive.answer(before, spans, owner), windows)
        for totals in (ic.totals, tc.totals, pc.totals):
            assert {
                g: (a.pairs, a.sum) for g, a in answers(totals).items()
            } == {
                g: value[:2] for g, value in right.items()
            }
        passed = {g: value[1] / value[0] for g, value in right.items() if value[0] > having}
        assert {g: a.avg for g, a in answers(ic.totals, having).items()} == passed and passing[0] == len(passed)
        assert whole[0] == kept[0] == sum(v[0] for v in right.values())


@given(naive.streams(), naive.windows(), st.integers(0, 1), st.booleans())
def test_extremes_after_every_tuple(rows: list[naive.Row], spans: tuple[int, int], owner: int,
                                    as_printed: bool) -> None:
    windows = JoinWindows(spans, 2, owner=owner)
    tc, pc = counting.start(windows, extremes=True, naive=as_printed), pipelined.start(windows)
    for i, before in naive.steps(rows):
        (tc, _), (pc, _) = counting.advance(tc, one(rows, i)), pipelined.advance(pc, one(rows, i))
        right = naive.answer(before, spans, owner)
        assert {
            0: (a.pairs, a.sum, a.max, a.min) for a in answers(tc.totals).values()
        } == {
            0: v for v in right.values()
        }
        assert {0: (a.max, a.min) for a in answers(pc.totals).values()} == {0: v[2:] for v in right.values()}


@given(st.integers(2, 4), st.data())
def test_any_number_of_streams_after_every_tuple(count: int, data: st.DataObject) -> None:
    rows, spans, owner = data.draw(naive.streams(count, most=20)), data.draw(naive.windows(count)), data.draw(
        st.integers(0, count - 1))
    mtc = many.start(JoinWindows(spans, 2, owner=owner))
    for i, before in naive.steps(rows):
        mtc, whole = many.advance(mtc, one(rows, i))
        right = naive.answer(before, spans, owner)
        assert {(a.pairs, a.sum) for a in answers(mtc.totals).values()} == {v[:2] for v in right.values()}
        assert whole[0] == sum(v[0] for v in right.values())


@given(naive.streams(most=60), naive.windows())
def test_many_tuples_at_once_give_what_single_ones_give(rows: list[naive.Row], spans: tuple[int, int]) -> None:
    windows = JoinWindows(spans, 2)
    _, together = counting.advance(counting.start(windows), arrivals(rows))
    _, by_many = many.advance(many.start(windows), arrivals(rows))
    _, kept = pipelined.advance(pipelined.start(windows), arrivals(rows))
    assert together.tolist() == by_many.tolist() == kept.tolist()


@given(naive.streams(most=40), naive.windows(), st.booleans())
def test_count_alone(rows: list[naive.Row], spans: tuple[int, int], as_printed: bool) -> None:
    """TC-COUNT and IC-COUNT keep no sums."""
    windows = JoinWindows(spans, 2)
    tc, whole = counting.advance(counting.start(windows, naive=as_printed, sums=False), arrivals(rows))
    ic, passing = inclusion.advance(inclusion.start(windows, sums=False), arrivals(rows), having=3)
    right = sum(v[0] for v in naive.answer(rows, spans, 0).values())
    assert whole[-1] == tc.totals.pairs[0] == ic.totals.pairs[0] == right and passing[-1] == (right > 3)


def test_only_the_baseline_keeps_joined_tuples() -> None:
    rows = [(i % 2, i, 0, 0, 1) for i in range(100)]
    windows = JoinWindows((40, 40), 4)
    (ic, _), (tc, _) = inclusion.advance(inclusion.start(windows),
                                         arrivals(rows)), counting.advance(counting.start(windows), arrivals(rows))
    pc, _ = pipelined.advance(pipelined.start(windows), arrivals(rows))
    assert held(ic.contents.tuples) == held(tc.contents.tuples) == 40 and held(pc.joined) == 20 * 20


def test_what_the_paper_does_not_define_is_refused() -> None:
    with pytest.raises(ForebayError, match="extremes.*one group"):
        counting.start(JoinWindows((5, 5), groups=(2, 1)), extremes=True)
    with pytest.raises(ForebayError, match="COUNT alone with groups"):
        inclusion.start(JoinWindows((5, 5), groups=(2, 1)), sums=False)
    with pytest.raises(ForebayError, match="MTC with groups"):
        many.start(JoinWindows((5, 5, 5), groups=(2, 1, 1)))
    with pytest.raises(ForebayError, match="expected two"):
        inclusion.start(JoinWindows((5, 5, 5)))
    with pytest.raises(ForebayError, match="group 2.*0 to 1"):
        inclusion.advance(inclusion.start(JoinWindows((5, 5), groups=(2, 1))), arrivals([(0, 0, 0, 2, 0)]))
