"""Scalar expressions give Spark's values in DuckDB; the one test that starts Spark compares every function on every edge value."""
from __future__ import annotations

import math
import os
import sys
from decimal import Decimal

import duckdb
import pytest

from optimizer.expr import Column, Expr, columns
from optimizer.scalar import DUCKDB_SETTINGS, fails, render, safe
from scalar_cases import EDGES, LAZY, read, rows, texts, values

INEXACT = ("EXP", "LN", "LOG10", "POWER")         # the last digit is the mathematics library's


def name(leaf: Expr) -> str:
    assert isinstance(leaf, Column)
    return leaf.name


def shown(sql: str, expr: Expr, dialect: str) -> str:
    """Times and dates as numbers, decimals as text: what both drivers hand over alike."""
    if expr.type.name == "timestamp":
        return f"{'epoch_us' if dialect == 'duckdb' else 'unix_micros'}({sql})"
    if expr.type.name == "date":
        return f"CAST({sql} - DATE '1970-01-01' AS INTEGER)" if dialect == "duckdb" else f"datediff({sql}, DATE '1970-01-01')"
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
    return f"{doubt or 'FALSE'} AS f, CASE WHEN {doubt or 'FALSE'} THEN NULL ELSE {value} END AS v, {shown(safe(expr, dialect, name), expr, dialect)} AS s"


def in_duckdb(duck: duckdb.DuckDBPyConnection, expr: Expr, found: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return duck.execute(f"SELECT {both(expr, 'duckdb')} FROM {values(expr, found, 'duckdb')} ORDER BY i").fetchall()


@pytest.mark.spark
def test_every_function_is_the_same_in_both_engines(duck: duckdb.DuckDBPyConnection) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    session = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.sql.session.timeZone", "UTC")
               .config("spark.sql.optimizer.excludedRules", "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation").getOrCreate())
    session.sparkContext.setLogLevel("OFF")
    wrong = []
    try:
        for text in texts():
            expr = read(text)
            found = rows(expr)
            there = session.sql(f"SELECT {both(expr, 'spark')}, typeof({render(expr, 'spark', name)}) AS t FROM {values(expr, found, 'spark')} ORDER BY i").collect()
            here = in_duckdb(duck, expr, found)
            assert {r.t for r in there} <= {str(expr.type)}, (text, str(expr.type), there[0].t)
            wrong += [(text, row, tuple(s)[:3], h) for row, s, h in zip(found, there, here) if not agree(tuple(s)[:3], h, text)][:4]
    finally:
        session.stop()
    assert not wrong, "\n".join(map(repr, wrong))


def agree(spark: tuple[object, ...], duck: tuple[object, ...], text: str) -> bool:
    """The same failure; where there is none the same value three times."""
    close = any(f in text for f in INEXACT)
    if spark[0] or duck[0]:
        return spark[0] is True and duck[0] is True
    return same(spark[1], duck[1], close) and same(spark[2], spark[1], close) and same(duck[2], duck[1], close)
