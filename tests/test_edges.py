"""Values and windows at the edges, by plans drawn from all that the query can have: against the oracle, and against
answers computed by hand.
"""
from __future__ import annotations

from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from jobs.verify.recompute import Answer
from optimizer.errors import ForebayError
from optimizer.plan.model import named
from optimizer.query.shape import shape
from tests import oracle
from tests.differential import answers, differences, plans, query_of
from tests.engine import Failed
from tests.seeds import seed
from tests.streams import Case, Row

BATCH = 10
LONG = {"ts": "timestamp", "k": "int", "b": "bigint", "d": "decimal(10,2)", "f": "double", "s": "string"}
LARGE = 2**62


def case(sql: str, left: list[Row], right: list[Row] | None = None, boundaries: tuple[int,
                                                                                      ...] = (10, 20, 30, 40)) -> Case:
    return Case(BATCH, {"l": ("ts", LONG, left), "r": ("ts", LONG, right or [])}, {}, sql, list(boundaries), True)


def row(ts: int, k: int | None = 1, b: int | None = None, d: str | None = None, f: float | None = None,
        s: str | None = None, boundary: int | None = None) -> Row:
    return (ts, k, b, None if d is None else Decimal(d), f, s, boundary or ts // BATCH * BATCH + BATCH)


def by_plans(asked: Case, most: int = 8) -> dict[int, Answer]:
    """The oracle's answers, after so many plans gave the same, in one or two parts.

    Each seed draws others, so that runs together try all of them.
    """
    query, expected = query_of(asked), oracle.answers(asked)
    choice = Random(f"{asked.sql} {seed()}")
    known = plans(query)
    for plan in choice.sample(known, min(most, len(known))):
        parts = 1 if shape(query).whole else choice.choice([1, 2])
        found = differences(expected, answers(asked, query, plan, choice, parts))
        assert not found, f"{plan.name} in {parts} parts: {found[:3]}"
    return expected


def values(answer: Answer) -> list[tuple[Any, ...]]:
    assert not isinstance(answer, ForebayError), answer
    return sorted((tuple(r.values())[:-1] for r in answer.to_pylist()), key=repr)


JOIN = "FROM l [WINDOW 20 MICROSECONDS], r [WINDOW 20 MICROSECONDS] WHERE l.k = r.k"
OTHER = [row(0), row(1), row(11)]


@pytest.mark.slow
def test_sums_beyond_64_bits_are_exact_while_the_answer_fits() -> None:
    left = [row(0, b=LARGE), row(1, b=LARGE), row(2, b=LARGE), row(3, b=-LARGE), row(4, b=-LARGE), row(12, b=5)]
    got = by_plans(case("SELECT SUM(l.b) AS s, AVG(l.b) AS a FROM l [WINDOW 20 MICROSECONDS]", left))
    assert values(got[20])[0][0] == LARGE + 5
    got = by_plans(case(f"SELECT SUM(l.b) AS s {JOIN}", [row(0, b=LARGE), row(1, b=-LARGE), row(2, b=7)], OTHER))
    assert values(got[20]) == [(21,)]


@pytest.mark.slow
def test_an_answer_beyond_64_bits_fails_the_query_at_its_boundary() -> None:
    got = by_plans(
        case("SELECT SUM(l.b) AS s FROM l [WINDOW 20 MICROSECONDS]",
             [row(0, b=LARGE), row(12, b=LARGE), row(25, b=1)]))
    assert list(got) == [10, 20] and isinstance(got[20], ForebayError)
    got = by_plans(case(f"SELECT SUM(l.b) AS s {JOIN}", [row(0, b=LARGE)], OTHER))
    assert list(got) == [10] and isinstance(got[10], ForebayError)


@pytest.mark.slow
@pytest.mark.parametrize("expression,expected", [("AVG(l.d)", Decimal("0.333333")), ("AVG(-l.d)", Decimal("-0.333333")),
                                                 ("SUM(l.d * l.d)", Decimal("0.6600")),
                                                 ("VAR_POP(l.d)", 0.10888888888888888),
                                                 ("SUM(CAST(l.d AS DECIMAL(20,10)))", Decimal("1.0000000000")),
                                                 ("AVG(CAST(l.d AS DECIMAL(20,10)))", Decimal("0.33333333333333")),
                                                 ("SUM(CAST(l.d AS DECIMAL(5,0)))", Decimal(1)),
                                                 ("STDDEV(CAST(l.d AS DECIMAL(8,5)))", 0.40414518843273806)])
def test_decimals_are_exact_and_round_half_up(expression: str, expected: object) -> None:
    left = [row(0, d="0.10"), row(1, d="0.80"), row(2, d="0.10"), row(3, d=None)]
    (value,), = values(by_plans(case(f"SELECT {expression} AS x FROM l [WINDOW 10 MICROSECONDS]", left))[10])
    assert value == (pytest.approx(expected, rel=1e-12) if isinstance(expected, float) else expected)
    by_plans(case(f"SELECT {expression} AS x, l.b {JOIN} GROUP BY l.b", left, OTHER))


@pytest.mark.slow
@pytest.mark.parametrize("values_of_d,expected", [
    (["0.01", "0.02"], "0.015000"), (["0.01"] * 2 + ["0.02"], "0.013333"), (["-0.01", "-0.01", "-0.03"], "-0.016667"),
    (["99999999.99"] * 2, "99999999.990000")])
def test_averages_of_decimals(values_of_d: list[str], expected: str) -> None:
    got = by_plans(
        case("SELECT AVG(l.d) AS x FROM l [WINDOW 10 MICROSECONDS]", [row(n, d=v) for n, v in enumerate(values_of_d)]))
    assert values(got[10]) == [(Decimal(expected),)]


@pytest.mark.slow
def test_spread_of_one_row_of_none_and_of_equal_values() -> None:
    left = [
        row(0, k=1, b=5),
        row(1, k=2),
        row(2, k=3, b=10 ** 17 + 1),
        row(3, k=3, b=10 ** 17 + 1),
        row(4, k=4, b=10 ** 7 + 1),
        row(5, k=4, b=10 ** 7 + 3)
    ]
    got = by_plans(
        case(
            "SELECT l.k, STDDEV(l.b) AS a, VAR_POP(l.b) AS b, VAR_SAMP(l.d) AS c FROM l [WINDOW 10 MICROSECONDS] GROUP "
            "BY l.k",
            left))
    assert values(got[10]) == [(1, None, 0.0, None), (2, None, None, None), (3, 0.0, 0.0, None),
                               (4, pytest.approx(2 ** 0.5), 1.0, None)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["EAP1 recompute", "EAP1 running", "EAP1 retract", "EAP1 expire", "LAP recompute"])
def test_squares_beyond_38_digits_fail_the_query_and_are_never_wrong(name: str) -> None:
    """docs/plans.md names this limit of STDDEV and VARIANCE of whole numbers."""
    large = [row(n, b=b) for n, b in enumerate([2**63 - 1, -2**63, 2**63 - 1], 12)]
    asked = case("SELECT STDDEV(l.b) AS a FROM l [WINDOW 10 MICROSECONDS]", [row(1, b=3), *large])
    query = query_of(asked)
    got = answers(asked, query, named(query, name), Random(name))
    assert list(got) == [10, 20] and isinstance(got[20], Failed)


@pytest.mark.slow
def test_groups_with_nothing_but_nulls() -> None:
    left = [row(0), row(1, s="x"), row(12, k=None, s="y")]
    got = by_plans(
        case(
            f"SELECT l.s, SUM(l.b) AS s2, COUNT(l.b) AS n, MIN(l.d) AS m, AVG(l.f) AS a, COUNT(*) AS c {JOIN} GROUP BY "
            "l.s",
            left, OTHER))
    assert values(got[10]) == [("x", None, 0, None, None, 2), (None, None, 0, None, None, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("window", [
    "20 MICROSECONDS", "20 MICROSECONDS TUMBLING", "15 MICROSECONDS SLIDE 20 MICROSECONDS", "7 MICROSECONDS",
    "UNTIL NOW"
])
@pytest.mark.parametrize("every", ["", " EVERY 20 MICROSECONDS", " EVERY 30 MICROSECONDS"])
@pytest.mark.parametrize("asked", [
    "SELECT COUNT(*) AS n, SUM(l.b + r.b) AS s, MAX(l.b) AS m {} HAVING COUNT(*) <> 2",
    "SELECT l.s, COUNT(*) AS n, SUM(r.b) AS t {} GROUP BY l.s",
    "SELECT l.b + r.b AS g, COUNT(*) AS n {} AND l.b <> r.b GROUP BY l.b + r.b", "SELECT l.b AS x, r.b AS y {}"
])
def test_every_window_with_late_rows_between_slides_and_empty_stretches(window: str, every: str, asked: str) -> None:
    late = [row(3, b=5, boundary=30), row(3, b=6, boundary=60), row(60, b=8, s="y", boundary=90)]
    left = [row(0, b=1, s="x"), row(9, b=2), row(10, b=3, s="x"), row(19, b=4), row(55, b=7), *late]
    right = [row(0, b=1), row(10, b=2), row(14, b=5, boundary=40), row(59, b=2), row(60, b=1)]
    source = f"FROM l [WINDOW {window}], r [WINDOW 30 MICROSECONDS] WHERE l.k = r.k"
    by_plans(case(asked.format(source) + every, left, right, tuple(range(10, 100, 10))), most=2)


@pytest.mark.slow
def test_a_stream_joined_with_itself() -> None:
    rows = [row(n, k=n % 2, b=n, boundary=None if n % 3 else 30) for n in range(0, 30, 2)]
    source = "FROM l AS a [WINDOW 10 MICROSECONDS], l AS b [WINDOW 20 MICROSECONDS] WHERE a.k = b.k AND a.b < b.b"
    by_plans(case(f"SELECT a.k, COUNT(*) AS n, SUM(a.b) AS x, SUM(b.b) AS y {source} GROUP BY a.k", rows))


@pytest.mark.slow
@pytest.mark.parametrize("asked,fails", [("SELECT SUM(l.b / r.b) AS x {}", True),
                                         ("SELECT SUM(l.b / l.f) AS x {}", True),
                                         ("SELECT l.b / l.f AS g, COUNT(*) AS n {} GROUP BY l.b / l.f", True),
                                         ("SELECT COUNT(*) AS n {} AND l.b / l.f > 1", True),
                                         ("SELECT COUNT(*) AS n {} AND l.b / l.f > 1 AND l.f <> 0", False),
                                         ("SELECT COUNT(*) AS n {} AND l.b / r.b > 1", True),
                                         ("SELECT COUNT(*) AS n {} AND l.b / r.b > 1 AND r.b > 0", False),
                                         ("SELECT l.b / r.b AS x {}", True),
                                         ("SELECT l.b AS x {} AND l.b / l.f > 1", True),
                                         ("SELECT MAX(l.b / l.f) AS x {} AND l.s = 'x'", False)])
def test_what_cannot_be_computed_fails_only_if_a_joined_row_needs_it(asked: str, fails: bool) -> None:
    left = [
        row(0, b=4, f=2.0, s="x"),
        row(1, k=7, b=4, f=0.0),
        row(11, b=4, f=2.0, s="x"),
        row(22, b=4, f=0.0),
        row(45, b=4, f=1.0)
    ]
    right = [row(0, b=1), row(12, b=2), row(24, b=0), row(44, b=1)]
    got = by_plans(
        case(asked.format("FROM l [WINDOW 10 MICROSECONDS], r [WINDOW 20 MICROSECONDS] WHERE l.k = r.k"), left, right,
             (10, 20, 30, 40, 50)))
    assert isinstance(list(got.values())[-1], ForebayError) == fails and len(got) == (3 if fails else 5)


@pytest.mark.slow
@pytest.mark.parametrize("asked", [
    "SELECT l.f, COUNT(*) AS n, SUM(l.b) AS s FROM l [WINDOW 20 MICROSECONDS] GROUP BY l.f",
    f"SELECT r.f, COUNT(*) AS n {JOIN} GROUP BY r.f",
    f"SELECT COUNT(*) AS n, SUM(l.b) AS s, MIN(l.f) AS a, MAX(r.f) AS b {JOIN.replace('l.k = r.k', 'l.f = r.f')}"
])
def test_zeros_of_both_signs_are_one_value_and_so_are_all_nan(asked: str) -> None:
    floats = [0.0, -0.0, float("nan"), -float("nan"), float("inf"), None, 1.5]
    left, right = ([row(n * step, b=n, f=f)
                    for n, f in enumerate(values)]
                   for step, values in ((3, floats), (2, floats[::-1])))
    by_plans(case(asked, left, right))


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["COUNT(DISTINCT l.b)", "MEDIAN(l.b)", "PERCENTILE(l.d, 0.3)", "STDDEV(l.f)",
                                   "BIT_XOR(l.b)", "APPROX_PERCENTILE(l.b, 0.3)", "CORR(l.b, l.f)",
                                   "PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY l.f)", "REGR_SLOPE(l.f, l.b)",
                                   "LISTAGG(CAST(l.b AS STRING), '-') WITHIN GROUP (ORDER BY CAST(l.b AS STRING))"])
def test_what_has_no_partial_states_is_one_tasks_work(asked: str) -> None:
    left = [row(n, b=n % 3, d=f"0.{n % 4}", f=n / 8) for n in range(20)]
    query = query_of(case(f"SELECT {asked} AS x, COUNT(*) AS n {JOIN}", left, OTHER))
    assert [p.name for p in plans(query)] == ["LAP recompute"]
    by_plans(case(query.text, left, OTHER))


@pytest.mark.slow
@pytest.mark.parametrize("tail,fails", [("GROUP BY l.k, l.f HAVING l.k > 2", False),
                                        ("GROUP BY l.k, l.f HAVING COUNT(*) > 0 AND l.k > 2", False),
                                        ("GROUP BY l.k, l.f HAVING l.k > 2 OR COUNT(*) > 9", True),
                                        ("GROUP BY l.k HAVING COUNT(*) > 9", True)])
def test_a_group_that_its_own_columns_drop_fails_nothing(tail: str, fails: bool) -> None:
    left = [row(0, k=1, b=-2**63, f=0.5), row(1, k=3, b=4, f=-0.0), row(2, k=3, b=5, f=0.0)]
    got = by_plans(case(f"SELECT l.k, MIN(-l.b) AS x FROM l [WINDOW 10 MICROSECONDS] {tail}", left, boundaries=(10,)))
    assert isinstance(got[10], ForebayError) == fails and (fails or values(got[10]) == [(3, -5)])


@pytest.mark.slow
def test_zero_is_shown_without_its_sign() -> None:
    asked = case("SELECT l.f, COUNT(*) AS n FROM l [WINDOW 10 MICROSECONDS] GROUP BY l.f",
                 [row(0, f=-0.0), row(1, f=-0.0)], boundaries=(10,))
    query = query_of(asked)
    for plan in plans(query):
        shown = answers(asked, query, plan, Random(1))[10].column("f").to_pylist()      # type: ignore[union-attr]
        assert [str(v) for v in shown] == ["0.0"], plan.name


@pytest.mark.slow
def test_a_day_beyond_the_calendar_fails_its_query() -> None:
    text = "SELECT MAX(DATE_ADD(TO_DATE(l.ts), {})) AS x FROM l [WINDOW 10 MICROSECONDS]"
    last, later = (by_plans(case(text.format(days), [row(0), row(1)], boundaries=(10,)))[10]
                   for days in (2932896, 2932897))
    assert values(last) == [(date(9999, 12, 31),)] and isinstance(later, ForebayError)
