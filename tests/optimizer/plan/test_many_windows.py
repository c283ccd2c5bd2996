"""Queries with several windows, on one stream and on joins: every plan gives, at each window's end, what that window
alone gives by the oracle.
"""
from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optimizer.plan.lowering import Lowering
from optimizer.plan.membership import Range
from optimizer.plan.model import default, named
from optimizer.plan.tree import program
from optimizer.query.shape import shape
from tests import oracle
from tests.differential import answers, differences, plans, query_of, varied
from tests.streams import SECOND, Case, Row

BATCH = 10 * SECOND
COLUMNS = {"ts": "timestamp", "k": "int", "v": "int", "d": "double", "g": "string"}
AGGREGATES = ("COUNT(*)", "SUM({}.v)", "MIN({}.d)", "MAX({}.v)", "AVG({}.v)", "STDDEV({}.v)", "SUM({}.d)")


def window(length: int, hop: int) -> str:
    return f"TumblingWindow(second, {length})" if length == hop else f"HoppingWindow(second, {length}, {hop})"


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """Some exactly on a boundary, some late by up to three batches."""
    made = []
    for number in draw(st.lists(st.integers(0, 2**40), max_size=25)):
        ts = 100 * BATCH + number % 9 * BATCH + number // 9 % 3 * 5 * SECOND
        late = max(0, number // 30 % 8 - 4)
        made.append((ts, number // 240 % 3, number // 720 % 11 - 3, number // 7920 % 5 / 4, "abc"[number // 40000 % 3],
                     (ts // BATCH + 1 + late) * BATCH))
    return made


@st.composite
def cases(draw: st.DrawFn) -> Case:
    joined, holistic = draw(st.booleans()), draw(st.integers(0, 9)) == 0
    pairs = draw(
        st.lists(
            st.tuples(st.integers(1, 6), st.integers(1, 6)).map(lambda p: (max(p), min(p))), min_size=1, max_size=4,
            unique=True))
    listed = ", ".join(f"Window('w{r}/{s}', {window(10 * r, 10 * s)})" for r, s in pairs)
    chosen = draw(
        st.lists(st.sampled_from(AGGREGATES + (("MEDIAN({}.v)",) if holistic else ())), min_size=1, max_size=3,
                 unique=True))
    outputs = ", ".join(f"{a.format('ab'[n % 2] if joined else 'a')} AS o{n}" for n, a in enumerate(chosen))
    source = "s0 AS a TIMESTAMP BY ts, s1 b TIMESTAMP BY b.ts WHERE a.k = b.k" if joined else "s0 a TIMESTAMP BY ts"
    by = draw(st.sampled_from(("a.g, ", "", "a.g, a.k, ")))
    having = draw(st.sampled_from(("", " HAVING COUNT(*) > 1")))
    sql = f"SELECT {by}System.Window().Id, {outputs} FROM {source} GROUP BY {by}Windows({listed}){having}"
    streams = {name: ("ts", COLUMNS, draw(rows())) for name in (("s0", "s1") if joined else ("s0",))}
    first = min((r[0] for _, _, found in streams.values() for r in found), default=100 * BATCH) // BATCH * BATCH + BATCH
    return Case(BATCH, streams, {}, sql, list(range(first, 118 * BATCH, BATCH)), False)


@given(cases(), st.randoms(use_true_random=False))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.slow
def test_every_plan_gives_each_windows_own_answer(case: Case, choice: Random) -> None:
    query, expected = query_of(case), oracle.answers(case)
    for one in choice.sample(plans(query), 2):
        plan = varied(query, one, choice)
        found = differences(expected, answers(case, query, plan, choice, choice.choice((1, 1, 3))))
        assert not found, f"{plan}: {case.sql}\n" + "\n".join(found[:5])


def test_rows_are_read_once() -> None:
    """With state by pane a boundary reads what came since the one before, of the streams of a join as well."""
    sql = """SELECT a.g, System.Window().Id, COUNT(*) AS n FROM s0 a, s1 b WHERE a.k = b.k
        GROUP BY a.g, Windows(Window('x', TumblingWindow(second, 20)), Window('y', HoppingWindow(second, 60, 10)))"""
    query = query_of(Case(BATCH, {"s0": ("ts", COLUMNS, []), "s1": ("ts", COLUMNS, [])}, {}, sql, [], False))
    for name in ("EAP11 recompute", "EAP11 expire"):
        made = program(Lowering(shape(query), named(query, name)), (100 * BATCH,), 99 * BATCH)
        assert [s.ranges for s in made.sources if s.kind == "stream"] == [(Range(99 * BATCH, 100 * BATCH),)] * 2


def test_a_boundary_at_which_no_window_ends_has_no_rows() -> None:
    """20 s and 30 s: at 10 s of every minute neither ends; the answer is there, and empty."""
    sql = ("SELECT System.Window().Id, COUNT(*) AS n FROM s0 GROUP BY Windows(Window('x', TumblingWindow(second, 20)), "
           "Window('y', TumblingWindow(second, 30)))")
    rows: list[Row] = [(120 * SECOND + n, 1, 1, 1.0, "a", 130 * SECOND) for n in range(5)]
    case = Case(BATCH, {"s0": ("ts", COLUMNS, rows)}, {}, sql, [t * SECOND for t in (130, 140, 150, 160)], False)
    found = answers(case, query_of(case), default(query_of(case)), Random(1))
    assert {t // SECOND: list(zip(table["Id"].to_pylist(), table["n"].to_pylist())) for t, table in found.items()} == {
        130: [], 140: [("x", 5)], 150: [("y", 5)], 160: []}
