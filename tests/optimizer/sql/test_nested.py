"""Texts of several SELECTs: which query they come to, what is refused and where, what is bound how."""
from __future__ import annotations

from dataclasses import replace

import pytest

from optimizer.errors import ForebayError
from optimizer.expression.expr import Column
from optimizer.expression.types import BIGINT, INT, STRING, TIMESTAMP, decimal
from optimizer.plan.model import candidates
from optimizer.query.blocks import Block, within
from optimizer.query.model import Catalog, Query
from optimizer.query.normal import normal
from optimizer.sql.parse import parse

COLUMNS = (("ts", TIMESTAMP), ("k", BIGINT), ("s", STRING), ("x", INT), ("d", decimal(10, 2)))
KNOWN = Catalog(10_000_000, (("a", "ts", COLUMNS), ("b", "ts", COLUMNS)), (("r", (("k", BIGINT), ("name", STRING))),))
A, B = "a [WINDOW 20 SECONDS]", "b [WINDOW 30 SECONDS]"


def read(text: str) -> Query:
    return parse(text, KNOWN)


def form(query: Query) -> str:
    return "blocks" if query.blocks is not None else "leaf" if query.above is not None else "one"


@pytest.mark.parametrize("text, plain", [
    (f"WITH w AS (SELECT k, x FROM {A} WHERE x > 1) SELECT k, SUM(x) AS n FROM w GROUP BY k",
     f"SELECT k, SUM(x) AS n FROM {A} WHERE x > 1 GROUP BY k"),
    (f"SELECT t.y, COUNT(*) AS n FROM (SELECT k AS y FROM {A}) AS t JOIN {B} ON t.y = b.k GROUP BY t.y",
     f"SELECT a.k AS y, COUNT(*) AS n FROM {A} JOIN {B} ON a.k = b.k GROUP BY a.k"),
    (f"SELECT DISTINCT k, s FROM {A}", f"SELECT k, s FROM {A} GROUP BY k, s"),
    (f"SELECT k FROM (SELECT k, s FROM {A}) AS t WHERE s = 'x'", f"SELECT k FROM {A} WHERE s = 'x'"),
    (f"SELECT o.k, COUNT(*) AS n FROM (SELECT k, y FROM (SELECT k, x + 1 AS y FROM {A}) AS i WHERE y > 2) AS o "
     "GROUP BY o.k", f"SELECT k, COUNT(*) AS n FROM {A} WHERE x + 1 > 2 GROUP BY k"),
])
def test_what_only_selects_and_joins_is_one_select(text: str, plain: str) -> None:
    assert normal(read(text)) == normal(read(plain))


@pytest.mark.parametrize("text, expected", [
    (f"SELECT k, n FROM (SELECT k, COUNT(*) AS n FROM {A} GROUP BY k) AS t ORDER BY n DESC LIMIT 3", "leaf"),
    (f"SELECT MAX(n) AS m FROM (SELECT k, COUNT(*) AS n FROM {A} GROUP BY k) AS t", "leaf"),
    (f"SELECT k, COUNT(*) AS n FROM {A} GROUP BY k HAVING COUNT(*) >= (SELECT MAX(m) FROM (SELECT COUNT(*) AS m "
     f"FROM {A} GROUP BY k) AS t)", "leaf"),
    (f"SELECT k, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM {A} GROUP BY k QUALIFY r <= 3", "leaf"),
    (f"SELECT a.k, COUNT(*) AS n FROM {A} LEFT JOIN {B} ON a.k = b.k GROUP BY a.k", "blocks"),
    (f"SELECT k, COUNT(*) AS n FROM {A} WHERE k IN (SELECT k FROM {B}) GROUP BY k", "blocks"),
    (f"SELECT k FROM {A} UNION SELECT k FROM {B}", "blocks"),
    (f"SELECT k, x FROM {A} ORDER BY x LIMIT 3", "blocks"),
    (f"SELECT k, x FROM {A} ORDER BY x", "one"),
])
def test_what_a_text_comes_to(text: str, expected: str) -> None:
    query = read(text)
    assert form(query) == expected
    assert (len(candidates(query)) == 1) == (expected == "blocks" or query.returns_rows)


def test_what_every_branch_of_an_or_repeats_joins() -> None:
    query = read(f"SELECT COUNT(*) AS n FROM {A}, {B} WHERE a.k = b.k AND a.x > 1 OR a.k = b.k AND b.x > 2")
    assert query == replace(read(f"SELECT COUNT(*) AS n FROM {A}, {B} WHERE a.k = b.k AND (a.x > 1 OR b.x > 2)"),
                            text=query.text)


def test_months_move_a_date_along_the_calendar() -> None:
    moved = read(f"SELECT CAST(ts AS DATE) + INTERVAL 3 MONTHS AS d, ts - INTERVAL '1' YEAR AS t FROM {A}")
    assert [str(kind) for _, kind in moved.columns] == ["date", "timestamp"]


def test_a_natural_join_is_one_by_the_names_in_common() -> None:
    natural = read(f"SELECT name, COUNT(*) AS n FROM {A} NATURAL JOIN r GROUP BY name")
    assert normal(natural) == normal(read(f"SELECT name, COUNT(*) AS n FROM {A} JOIN r USING (k) GROUP BY name"))


@pytest.mark.parametrize("clause, sets", [
    ("ROLLUP(k, s)", [("k", "s"), ("k",), ()]), ("k, s WITH ROLLUP", [("k", "s"), ("k",), ()]),
    ("CUBE(k, s)", [("k", "s"), ("k",), ("s",), ()]), ("k, ROLLUP(s)", [("k", "s"), ("k",)]),
    ("GROUPING SETS ((k, s), (s), ())", [("k", "s"), ("s",), ()]),
])
def test_a_block_for_each_grouping_set(clause: str, sets: list[tuple[str, ...]]) -> None:
    rows = read(f"SELECT k, s, COUNT(*) AS n FROM {A} GROUP BY {clause}").blocks
    assert rows is not None
    blocks = [block for block in within(rows) if isinstance(block, Block)]
    assert [tuple(g.name for g in block.groups if isinstance(g, Column)) for block in blocks] == sets


def test_the_same_join_grouped_twice_is_one_leaf() -> None:
    query = read(f"WITH n AS (SELECT k, COUNT(*) AS n FROM {A} GROUP BY k), m AS (SELECT a.k, SUM(a.x) AS m FROM {A} "
                 "GROUP BY a.k) SELECT n.k, n.n, m.m FROM n JOIN m ON n.k = m.k")
    assert form(query) == "leaf" and [a.function for a in query.aggregates] == ["count", "sum"]
    assert query.columns == (("k", BIGINT), ("n", BIGINT), ("m", BIGINT))


def test_one_stream_with_one_window_is_read_once() -> None:
    query = read(f"SELECT k, COUNT(*) AS n FROM {A} WHERE x > (SELECT AVG(x) FROM {A}) AND x < (SELECT MAX(x) FROM a "
                 "[WINDOW 1 HOUR]) GROUP BY k")
    assert [(i.source, i.window.range) for i in query.inputs if i.window] == [("a", 20_000_000), ("a", 3_600_000_000)]


def test_ties_are_broken_by_all_columns_of_the_input() -> None:
    rows = read(f"SELECT k FROM {A} ORDER BY x DESC LIMIT 3").blocks
    assert isinstance(rows, Block)
    assert [(str(o.expr).split("'")[1], o.descending, o.nulls_first) for o in rows.order] == [
        ("x", True, False), ("ts", False, True), ("k", False, True), ("s", False, True), ("x", False, True),
        ("d", False, True)]


def test_a_text_says_how_its_answer_is_printed() -> None:
    assert read(f"SELECT k, COUNT(*) AS n FROM {A} GROUP BY k ORDER BY COUNT(*) DESC, 1").order == (
        ("n", True, False), ("k", False, True))
    assert normal(read(f"SELECT k FROM {A} ORDER BY k")) == normal(read(f"SELECT k FROM {A}"))


@pytest.mark.parametrize("text", [
    "SELECT k, COUNT(*) AS n, session_window.end AS upto FROM a [WINDOW SESSION 30 MINUTES BY k] GROUP BY k",
    "SELECT k, COUNT(*) AS n, session_window.end AS upto FROM a GROUP BY session_window(ts, '30 minutes'), k",
])
def test_sessions_have_two_forms(text: str) -> None:
    query = read(text)
    assert query.blocks is not None and [i.window.kind for i in query.inputs if i.window] == ["landmark"]
    assert query.columns == (("k", BIGINT), ("n", BIGINT), ("upto", TIMESTAMP))


@pytest.mark.parametrize("text, code, place", [
    ("SELECT x, COUNT(*) FROM a [WINDOW SESSION 30 MINUTES BY k] GROUP BY x", "wrong-group", None),
    ("SELECT COUNT(*) FROM a [WINDOW SESSION 30 MINUTES BY zz] GROUP BY k", "unknown-column", None),
    (f"SELECT a.k, COUNT(*) FROM a [WINDOW SESSION 30 MINUTES BY k] JOIN {B} ON a.k = b.k GROUP BY a.k",
     "not-supported", None),
    ("SELECT k, COUNT(*) FROM a GROUP BY k, session_window(x, '30 minutes')", "wrong-arguments", None),
    ("SELECT k, COUNT(*) FROM a GROUP BY k, session_window(ts, '1 month')", "bad-length", None),
    (f"SELECT k, COUNT(*) FROM {A} GROUP BY k, session_window(ts, '30 minutes')", "bad-window", None),
    (f"SELECT k, MAX(session_window.start) AS m FROM {A} GROUP BY k", "unknown-column", 15),
    (f"SELECT a.k FROM {A} LEFT JOIN {B} ON a.k = b.k", "not-supported", None),
    (f"SELECT k FROM {A} WHERE EXISTS (SELECT 1 FROM {B} WHERE b.k = a.k)", "not-supported", None),
    (f"SELECT k FROM {A} UNION ALL SELECT k FROM {B}", "not-supported", None),
    (f"SELECT COUNT(*) FROM {A} LEFT JOIN {B} ON a.x > b.x", "cross-product", None),
    (f"SELECT COUNT(*) FROM {A}, (SELECT k FROM {B} GROUP BY k) AS t", "cross-product", None),
    (f"SELECT k, COUNT(*) FROM {A} WHERE x > (SELECT b.x FROM {B}) GROUP BY k", "several-rows", 65),
    (f"SELECT k, COUNT(*) FROM {A} WHERE EXISTS (SELECT 1 FROM {B} WHERE b.x > a.x) GROUP BY k", "cross-product", None),
    (f"SELECT k, COUNT(*) FROM {A} WHERE EXISTS (SELECT 1 FROM {B} WHERE b.k = a.k AND 1 / b.x > 0) GROUP BY k",
     "not-supported", None),
    (f"SELECT k, COUNT(*) FROM {A} WHERE s IN (SELECT k FROM {B}) GROUP BY k", "type-mismatch", None),
    (f"SELECT k, COUNT(*) FROM {A} WHERE k IN (SELECT k, x FROM {B}) GROUP BY k", "wrong-arguments", None),
    (f"SELECT k FROM {A} UNION SELECT k, x FROM {B}", "type-mismatch", None),
    (f"SELECT k FROM {A} UNION SELECT s FROM {B}", "type-mismatch", None),
    ("WITH w AS (SELECT name FROM r) SELECT name, COUNT(*) FROM w GROUP BY name", "no-stream", None),
    (f"WITH w AS (SELECT k FROM {A}) SELECT k, COUNT(*) FROM w [WINDOW 20 SECONDS] GROUP BY k", "bad-window", None),
    (f"WITH RECURSIVE w AS (SELECT k FROM {A}) SELECT k, COUNT(*) FROM w GROUP BY k", "not-supported", None),
    (f"SELECT k, COUNT(*) AS n FROM {A} GROUP BY k ORDER BY x LIMIT 1", "not-grouped", None),
    (f"SELECT k FROM {A} ORDER BY x", "wrong-order", 46),
    (f"WITH w0 AS (SELECT k FROM {A} GROUP BY k), " + ", ".join(
        f"w{n + 1} AS (SELECT x.k FROM w{n} AS x JOIN w{n} AS y ON x.k = y.k GROUP BY x.k)" for n in range(40))
     + " SELECT k FROM w40", "query-too-deep", None),
    (" ".join(["SELECT k FROM ("] * 70) + A + ")" * 70, "query-too-deep", None),
    (f"SELECT k, COUNT(*) FROM {A} GROUP BY CUBE(k, s, x, d, ts, k + 1, x + 1)", "query-too-deep", None),
    (f"SELECT k, RANK() OVER (ORDER BY k) AS r FROM {A} GROUP BY ROLLUP(k)", "not-supported", None),
    (f"SELECT COUNT(*) FROM {A} NATURAL JOIN (SELECT x AS y FROM {B}) AS t", "cross-product", None),
    (f"SELECT k FROM {A} LIMIT x", "wrong-arguments", None),
    (f"SELECT k, ROW_NUMBER() OVER () AS r FROM {A}", "no-order", 11),
    (f"SELECT k, COUNT(*) FROM {A} WHERE ROW_NUMBER() OVER (ORDER BY k) = 1 GROUP BY k", "misplaced-aggregate", None),
    (f"SELECT k, MEDIAN(x) OVER (ORDER BY k) AS m FROM {A}", "not-supported", None),
    (f"SELECT k, COUNT(*) FROM {A} GROUP BY k QUALIFY k > 1", "not-supported", None),
    (f"SELECT t.zz, COUNT(*) FROM (SELECT k FROM {A}) AS t GROUP BY t.zz", "unknown-column", 8),
    (f"SELECT COUNT(*) FROM {A}, {B} RIGHT JOIN r ON b.k = r.k WHERE a.k = b.k", "not-supported", None),
    ("SELECT k, COUNT(*) FROM (SELECT k FROM a) AS t GROUP BY k", "no-window", 40),
])
def test_refused(text: str, code: str, place: int | None) -> None:
    with pytest.raises(ForebayError) as caught:
        read(text)
    assert caught.value.code == code, caught.value
    assert caught.value.hint
    if place is not None:
        assert caught.value.column == place
