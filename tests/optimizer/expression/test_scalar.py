"""Scalar expressions give Spark's values in DuckDB.

The one test that starts Spark compares every function on every edge value.
"""
from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from scalar_cases import INF, NAN, read, rows, texts, values

from optimizer.errors import ForebayError
from optimizer.expression.expr import Column, Expr, columns
from optimizer.expression.scalar import DUCKDB_SETTINGS, fails, render, safe
from tests.seeds import seed

INEXACT = ("EXP", "LN", "LOG10", "POWER")         # the last digit is the mathematics library's


def name(leaf: Expr) -> str:
    assert isinstance(leaf, Column)
    return leaf.name


def shown(sql: str, expr: Expr, dialect: str) -> str:
    """Times and dates as numbers, decimals as text: what both drivers hand over alike."""
    if expr.type.name == "timestamp":
        return f"{'epoch_us' if dialect == 'duckdb' else 'unix_micros'}({sql})"
    if expr.type.name == "date":
        return (f"CAST({sql} - DATE '1970-01-01' AS INTEGER)" if dialect == "duckdb" else f"datediff({sql}, DATE "
                                                                                          "'1970-01-01')")
    return f"CAST({sql} AS {'VARCHAR' if dialect == 'duckdb' else 'STRING'})" if expr.type.name == "decimal" else sql


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for setting in DUCKDB_SETTINGS:
        connection.execute(setting)
    return connection


def same(left: object, right: object, close: bool = False) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return left == right or close and math.isclose(left, right, rel_tol=1e-14)
    if isinstance(left, str) and isinstance(right, str) and left != right:
        try:
            return Decimal(left) == Decimal(right) and "." in left + right
        except ArithmeticError:
            return False
    return left == right and type(left) is type(right)


def both(expr: Expr, dialect: str) -> str:
    """`fails`, what it gives where it does not, and `safe`."""
    doubt = fails(expr, dialect, name)
    value = shown(render(expr, dialect, name), expr, dialect)
    return (f"{doubt or 'FALSE'} AS f, CASE WHEN {doubt or 'FALSE'} THEN NULL ELSE {value} END AS v, "
            f"{shown(safe(expr, dialect, name), expr, dialect)} AS s")


def in_duckdb(duck: duckdb.DuckDBPyConnection, expr: Expr, found: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return duck.execute(f"SELECT {both(expr, 'duckdb')} FROM {values(expr, found, 'duckdb')} ORDER BY i").fetchall()


RAISES = "raises"
HAND: list[tuple[str, tuple[object, ...], object]] = [
    ("x_i32 + y_i32", (2147483646, 1), 2147483647), ("x_i32 + y_i32", (2147483647, 1), RAISES),
    ("x_i32 + y_i32", (None, 1), None), ("x_i8 * y_i8", (16, 8), RAISES), ("x_i8 - y_i8", (-128, 1), RAISES),
    ("x_i64 * y_i64", (2 ** 62, 2), RAISES), ("x_i32 + y_i64", (2147483647, 1), 2147483648), ("-x_i8", (-128,), RAISES),
    ("-x_i8", (127,), -127), ("ABS(x_i64)", (-2 ** 63,), RAISES), ("x_i32 / y_i32", (7, 2), 3.5),
    ("x_i32 / y_i32", (7, 0), RAISES), ("x_i32 / y_i32", (None, 0), None), ("x_i32 / y_i32", (7, None), None),
    ("x_d / y_d", (1.0, 0.0), RAISES), ("x_d / y_d", (0.0, -0.0), RAISES), ("x_i32 DIV y_i32", (-7, 2), -3),
    ("x_i64 DIV y_i64", (-2 ** 63, -1), RAISES), ("x_i64 DIV y_i64", (7, 0), RAISES), ("x_i32 % y_i32", (-7, 3), -1),
    ("x_i32 % y_i32", (-2147483648, -1), 0), ("x_i32 % y_i32", (7, 0), RAISES), ("x_d % y_d", (-5.5, 2.0), -1.5),
    ("x_d % y_d", (5.5, 0.0), RAISES), ("PMOD(x_i32, 3)", (-7,), 2), ("x_p5 + y_p5", ("999.99", "0.01"), "1000.00"),
    ("x_p10 * y_p10", ("99999999.99", "99999999.99"), "9999999998000000.0001"),
    ("x_p10 / y_p10", ("1.00", "3.00"), "0.3333333333333"), ("x_p10 / y_p10", ("-2.00", "3.00"), "-0.6666666666667"),
    ("x_p10 / y_p10", ("1.00", "0.00"), RAISES), ("x_p20 / y_p20", ("2.0000", "3.0000"), "0.666666666666666667"),
    ("x_p38 + y_p38", ("9" * 36 + ".99", "0.01"), RAISES), ("x_p10 % y_p10", ("-7.50", "2.00"), "-1.50"),
    ("CAST(x_i32 AS DECIMAL(28,2)) % CAST(y_p5 AS DECIMAL(19,13))", (99999, "-12.34"), "7.9800000000000"),
    ("x_i32 % CAST(y_p5 AS DECIMAL(34,29))", (-2147483648, "0.99"), "-0.02000000000000000000000000000"),
    ("POWER(x_d, y_d)", (-1.0, -INF), NAN),
    ("x_p38 % CAST(y_d AS DECIMAL(37,36))", ("9" * 36 + ".99", 7.0), "0.99" + "0" * 34),
    ("CAST(x_d AS DECIMAL(3,3))", (5e-324,), "0.000"), ("CAST(x_d AS DECIMAL(10,10))", (-1e-7,), "-0.0000001000"),
    ("DATE_ADD(x_dt, 2)", (2932896,), RAISES), ("DATE_SUB(x_dt, 2)", (-719162,), RAISES),
    ("DATE_ADD(x_dt, 1)", (2932895,), 2932896), ("x_ts + INTERVAL 1 SECOND", (253402300799000000,), RAISES),
    ("CAST(x_d AS INT)", (2.9,), 2), ("CAST(x_d AS INT)", (-2.9,), -2), ("CAST(x_d AS INT)", (2147483648.0,), RAISES),
    ("CAST(x_d AS INT)", (NAN,), RAISES), ("CAST(x_d AS BIGINT)", (2.0 ** 63,), 2 ** 63 - 1),
    ("CAST(x_p10 AS INT)", ("-1.99",), -1), ("CAST(x_i64 AS INT)", (2 ** 31,), RAISES),
    ("TRY_CAST(x_i64 AS INT)", (2 ** 31,), None), ("CAST(x_d AS DECIMAL(10,1))", (0.25,), "0.3"),
    ("CAST(x_d AS DECIMAL(10,1))", (INF,), None), ("CAST(x_d AS DECIMAL(20,3))", (9.223372036854776e18,), RAISES),
    ("CAST(x_p10 AS DECIMAL(9,1))", ("99999999.99",), RAISES), ("CAST(x_p10 AS DECIMAL(9,1))", ("-1.25",), "-1.3"),
    ("CAST(x_d AS FLOAT)", (1e300,), INF), ("CAST(x_s AS INT)", (" +5 ",), 5), ("CAST(x_s AS INT)", ("1.5",), RAISES),
    ("CAST(x_s AS INT)", ("1_000",), RAISES),
    ("CAST(x_s AS INT)", ("",), RAISES), ("TRY_CAST(x_s AS INT)", ("x",), None),
    ("CAST(x_s AS DOUBLE)", (" 1e3 ",), 1000.0), ("CAST(x_s AS DOUBLE)", ("1.5f",), 1.5),
    ("CAST(x_s AS DOUBLE)", ("-inf",), -INF), ("CAST(x_s AS DECIMAL(10,2))", ("1.005",), "1.01"),
    ("CAST(x_s AS DECIMAL(4,2))", ("99.995",), RAISES), ("CAST(x_s AS DECIMAL(38,0))", ("1.7e38",), RAISES),
    ("CAST(x_s AS BOOLEAN)", (" T ",), True), ("CAST(x_s AS BOOLEAN)", ("on",), RAISES),
    ("CAST(x_p22 AS STRING)", ("-0.05",), "-0.05"), ("CAST(x_ts AS STRING)", (120_000,), "1970-01-01 00:00:00.12"),
    ("CAST(x_dt AS STRING)", (0,), "1970-01-01"), ("CAST(x_b AS STRING)", (True,), "true"), ("ROUND(x_d)", (2.5,), 3.0),
    ("ROUND(x_d, 2)", (0.285,), 0.29), ("ROUND(x_d, 2)", (1.005,), 1.01), ("ROUND(x_d)", (-2.5,), -3.0),
    ("ROUND(x_p10, 1)", ("-1.25",), "-1.3"), ("ROUND(x_i32, 2)", (5,), 5), ("FLOOR(x_d)", (-1.5,), -2),
    ("FLOOR(x_d)", (1e30,), 2 ** 63 - 1), ("CEIL(x_d)", (NAN,), 0), ("CEIL(x_p10)", ("1.01",), "2"),
    ("SIGN(x_i32)", (-7,), -1.0), ("SQRT(x_i32)", (-1,), NAN), ("LN(x_i32)", (0,), None),
    ("LOG10(x_i32)", (1000,), 3.0), ("x_d = y_d", (NAN, NAN), True), ("x_d > y_d", (NAN, INF), True),
    ("x_d = y_d", (0.0, -0.0), True), ("x_i32 <=> y_i32", (None, None), True), ("x_i32 IN (1, NULL)", (2,), None),
    ("x_i32 IN (1, NULL)", (1,), True), ("x_i32 BETWEEN 1 AND 2", (3,), False), ("LEAST(x_i32, y_i32)", (None, 2), 2),
    ("GREATEST(x_d, y_d)", (NAN, 1.0), NAN), ("COALESCE(x_i32, 5)", (None,), 5), ("NULLIF(x_i32, 5)", (5,), None),
    ("x_b AND y_b", (None, False), False), ("x_b OR y_b", (None, True), True), ("NOT x_b", (None,), None),
    ("x_b IS TRUE", (None,), False), ("LENGTH(x_s)", ("😀é",), 2), ("TRIM(x_s)", ("\t a ",), "\t a"),
    ("UPPER(x_s)", ("é",), "É"), ("UPPER(x_s)", ("straße",), "STRASSE"), ("LOWER(x_s)", ("ΑΣ ΣΑ",), "ας σα"),
    ("SUBSTRING(x_s, 0, 2)", ("abc",), "ab"), ("SUBSTRING(x_s, -5, 3)", ("abc",), "a"),
    ("SUBSTRING(x_s, 2, -1)", ("abc",), ""), ("LEFT(x_s, -1)", ("abc",), ""), ("RIGHT(x_s, 2)", ("abc",), "bc"),
    ("REPLACE(x_s, '', 'x')", ("abc",), "abc"), ("x_s || y_s", ("a", None), None), ("x_s LIKE 'a\\_%'", ("a_c",), True),
    ("x_s LIKE 'a\\_%'", ("abc",), False), ("x_s LIKE '_'", ("😀",), True), ("STARTSWITH(x_s, y_s)", ("abc", ""), True),
    ("CONTAINS(x_s, y_s)", ("abc", "bc"), True), ("ENDSWITH(x_s, y_s)", ("abc", "ab"), False),
    ("DAYOFWEEK(x_dt)", (3,), 1), ("YEAR(x_ts)", (-1,), 1969), ("DATE_TRUNC('hour', x_ts)", (-1,), -3_600_000_000),
    ("DATE_TRUNC('week', x_ts)", (0,), -3 * 86_400_000_000), ("UNIX_SECONDS(x_ts)", (-1,), -1),
    ("SECOND(x_ts)", (59_900_000,), 59), ("TO_DATE(x_ts)", (-1,), -1), ("x_ts + INTERVAL 5 MINUTES", (0,), 300_000_000),
    ("x_dt - INTERVAL 1 WEEK", (0,), -7), ("DATEDIFF(x_dt, y_dt)", (0, 365), -365),
    ("x_ts = y_dt", (86_400_000_000, 1), True), ("IF(x_i32 = 0, 0, 7 DIV x_i32)", (0,), 0),
    ("x_i32 <> 0 AND 7 DIV x_i32 > 1", (0,), False), ("7 DIV x_i32 > 1 AND x_i32 <> 0", (0,), RAISES),
    ("x_b AND 7 DIV x_i32 > 1", (None, 0), RAISES), ("x_b OR 7 DIV x_i32 > 1", (True, 0), True),
    ("COALESCE(x_i32, 7 DIV y_i32)", (1, 0), 1), ("COALESCE(x_i32, 7 DIV y_i32)", (None, 0), RAISES),
    ("x_i32 + 7 DIV y_i32", (None, 0), None), ("7 DIV y_i32 + x_i32", (0, None), RAISES),
    ("x_i32 + 1 > 0", (2147483647,), RAISES), ("-x_i32 > 0", (-2147483648,), RAISES),
    ("x_i32 * 2 = 4", (2 ** 30,), RAISES), ("LEAST(x_i32, 7 DIV y_i32)", (None, 0), RAISES),
]


def the_value(duck: duckdb.DuckDBPyConnection, text: str, given: tuple[object, ...]) -> tuple[object, ...]:
    expr = read(text)
    row = tuple(
        Decimal(v) if c.type.name == "decimal" and isinstance(v, str) else v
        for v, c in zip(given, columns(expr), strict=True))
    return in_duckdb(duck, expr, [row])[0]


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [pytest.param(*h, marks=pytest.mark.slow if n % 2 else (), id=f"{h[0]} {h[1]}") for n, h in enumerate(HAND)])
def test_values_are_those_of_spark(duck: duckdb.DuckDBPyConnection, text: str, given: tuple[object, ...],
                                   expected: object) -> None:
    failed, value, attempt = the_value(duck, text, given)
    assert failed is (expected is RAISES)
    assert expected is RAISES or same(value, expected) and same(attempt, expected), value


@pytest.mark.parametrize(("text", "given"), [(t, g) for t, g, e in HAND if e is RAISES],
                         ids=[t + str(g) for t, g, e in HAND if e is RAISES])
def test_rendered_alone_it_raises(duck: duckdb.DuckDBPyConnection, text: str, given: tuple[object, ...]) -> None:
    expr = read(text)
    row = tuple(
        Decimal(v) if c.type.name == "decimal" and isinstance(v, str) else v
        for v, c in zip(given, columns(expr), strict=True))
    with pytest.raises(duckdb.Error):
        duck.execute(f"SELECT {render(expr, 'duckdb', name)} FROM {values(expr, [row], 'duckdb')}").fetchall()


def test_every_expression_runs_on_every_edge_value(duck: duckdb.DuckDBPyConnection) -> None:
    """`fails` is never NULL, and `safe` is `render` where nothing fails."""
    for text in texts()[::20]:
        expr = read(text)
        for failed, value, attempt in in_duckdb(duck, expr, rows(expr, 30)):
            assert failed is True or failed is False and same(value, attempt), text


def test_a_failing_part_stays_inside_its_try(duck: duckdb.DuckDBPyConnection) -> None:
    """Two expressions with a common failing part in one SELECT: common subexpression elimination would raise its error.
    """
    exprs = [read("7 DIV x_i32 + 1"), read("7 DIV x_i32 + 2")]
    parts = ", ".join(f"{safe(e, 'duckdb', name)}, {fails(e, 'duckdb', name)}" for e in exprs)
    assert duck.execute(f"SELECT {parts} FROM (VALUES (0), (7)) AS t(x_i32) ORDER BY x_i32").fetchall() == [
        (None, True, None, True), (2, False, 3, False)
    ]


def test_what_grows_too_large_is_refused() -> None:
    """Guards repeat their operands, so some nestings double at each level."""
    with pytest.raises(ForebayError) as caught:
        read("COALESCE(" * 40 + "x_i32" + ", 7 DIV x_i32) + 7 DIV y_i32" * 40)
    assert caught.value.code == "too-complex"


def thirds() -> list[Any]:
    """Spark compiles each statement: `make test` runs the third that its seed says, `make long` the others."""
    drawn = seed() % 3
    return [pytest.param(n, marks=[pytest.mark.spark, *([] if n == drawn else [pytest.mark.long])]) for n in range(3)]


@pytest.mark.parametrize("third", thirds())
def test_every_function_is_the_same_in_both_engines(duck: duckdb.DuckDBPyConnection, spark: Any, third: int) -> None:
    """As a job, not folded away by the rule that evaluates literal rows while it plans."""
    rules = "spark.sql.optimizer.excludedRules"
    spark.conf.set(rules, "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation")
    try:
        wrong = [w for batch in batches(texts())[third::3] for w in differences(spark, duck, batch)]
    finally:
        spark.conf.unset(rules)
    assert not wrong, "\n".join(map(repr, wrong))


def batches(found: list[str], size: int = 12) -> list[list[str]]:
    """Texts that read the same columns, several a statement: most of a Spark statement is compiling it."""
    alike: dict[tuple[Column, ...], list[str]] = {}
    for text in found:
        alike.setdefault(columns(read(text)), []).append(text)
    return [group[i:i + size] for group in alike.values() for i in range(0, len(group), size)]


def differences(session: Any, duck: duckdb.DuckDBPyConnection, batch: list[str]) -> list[tuple[object, ...]]:
    """At most two rows of each expression that differ, and types that are not what was said."""
    exprs = [read(text) for text in batch]
    found = rows(exprs[0])
    parts = ", ".join(
        f"struct({both(e, 'spark')}, typeof({render(e, 'spark', name)}) AS t) AS e{i}" for i, e in enumerate(exprs))
    there = session.sql(f"SELECT {parts} FROM {values(exprs[0], found, 'spark')} ORDER BY i").collect()
    wrong: list[tuple[object, ...]] = []
    for i, (text, expr) in enumerate(zip(batch, exprs)):
        here = in_duckdb(duck, expr, found)
        wrong += [(text, row, tuple(s[i])[:3], h)
                  for row, s, h in zip(found, there, here)
                  if not agree(tuple(s[i])[:3], h, text)][:2]
        wrong += [(text, str(expr.type), there[0][i].t)] if there[0][i].t != str(expr.type) else []
    return wrong


def agree(spark: tuple[object, ...], duck: tuple[object, ...], text: str) -> bool:
    """The same failure; where there is none the same value three times."""
    close = any(f in text for f in INEXACT)
    if spark[0] or duck[0]:
        return spark[0] is True and duck[0] is True
    return same(spark[1], duck[1], close) and same(spark[2], spark[1], close) and same(duck[2], duck[1], close)
