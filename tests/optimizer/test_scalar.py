"""Scalar expressions give Spark's values in DuckDB; the one test that starts Spark compares every function on every edge value."""
from __future__ import annotations

import math
import os
import sys
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from optimizer.expr import Column, Expr, columns
from optimizer.scalar import DUCKDB_SETTINGS, fails, render, safe
from scalar_cases import read, rows, texts, values

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
    try:
        wrong = [w for batch in batches(texts()) for w in differences(session, duck, batch)]
    finally:
        session.stop()
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
    parts = ", ".join(f"struct({both(e, 'spark')}, typeof({render(e, 'spark', name)}) AS t) AS e{i}" for i, e in enumerate(exprs))
    there = session.sql(f"SELECT {parts} FROM {values(exprs[0], found, 'spark')} ORDER BY i").collect()
    wrong: list[tuple[object, ...]] = []
    for i, (text, expr) in enumerate(zip(batch, exprs)):
        here = in_duckdb(duck, expr, found)
        wrong += [(text, row, tuple(s[i])[:3], h) for row, s, h in zip(found, there, here) if not agree(tuple(s[i])[:3], h, text)][:2]
        wrong += [(text, str(expr.type), there[0][i].t)] if there[0][i].t != str(expr.type) else []
    return wrong


def agree(spark: tuple[object, ...], duck: tuple[object, ...], text: str) -> bool:
    """The same failure; where there is none the same value three times."""
    close = any(f in text for f in INEXACT)
    if spark[0] or duck[0]:
        return spark[0] is True and duck[0] is True
    return same(spark[1], duck[1], close) and same(spark[2], spark[1], close) and same(duck[2], duck[1], close)
