"""What an QueryStatistics would say if everything were known: counted from files by SQL at one boundary.

For trials and tests, too slow for a running pipeline.
"""
from __future__ import annotations

from math import log2
from typing import Any

from jobs.calibrate.trial import BATCH, Data, boundary
from jobs.engine import kernel
from optimizer.plan.lowering import Lowering
from optimizer.plan.membership import inside, within
from optimizer.plan.model import Plan, connected_order
from optimizer.plan.operators.sets import raw
from optimizer.query.shape import Attribute, Shape, shape
from optimizer.statistics.cardinality import distinct
from optimizer.statistics.model import InputStatistics, KeyStatistics, QueryStatistics

KEYS = 2048           # of a class that are kept: more are sampled by their hash


def observe(data: Data, number: int) -> QueryStatistics:
    """The inputs and classes of a setting's query at the boundary of batch `number`."""
    query_shape = shape(data.setting.query)
    low = Lowering(query_shape, Plan((False,) * len(query_shape.attributes), "recompute", connected_order(query_shape)))
    con = kernel.connect(threads=2, memory="4GB")
    for i, declared in enumerate(query_shape.query.inputs):
        con.execute(f"CREATE VIEW f{i} AS SELECT * FROM read_parquet({kernel.file_list(data.paths(declared.source))})")
        members = _members(low, i, boundary(number))
        con.execute(f"CREATE TABLE r{i} AS {raw(low, i, f'f{i}', interval=False, where=members)}")
        attributes = ", ".join(attribute.name for attribute in query_shape.attributes[i]) or "1 AS one"
        con.execute(f"CREATE TABLE d{i} AS SELECT DISTINCT {attributes} FROM r{i}")
    inputs = tuple(_input(con, data, low, i, boundary(number)) for i in low.inputs)
    classes = tuple(_class(con, key) for key in query_shape.keys)
    groups = _groups(con, query_shape)
    con.close()
    rows = sum(one.rows for one in inputs)
    return QueryStatistics(inputs, classes, float(BATCH), groups, weight=rows, at=boundary(number))


def fitted(rows: float, distinct_values: float) -> float:
    """M with D(rows) = distinct_values, by bisection on its logarithm."""
    low, high = log2(max(distinct_values, 1.0)), 40.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if distinct(2**middle, rows) < distinct_values else (low, middle)
    return max(2**low, 1.0)


def _input(con: Any, data: Data, low: Lowering, i: int, t: int) -> InputStatistics:
    before = _one(con, f"SELECT count(*) FROM f{i} WHERE {_members(low, i, t)}")
    passing, different = _one(con, f"SELECT count(*) FROM r{i}"), _one(con, f"SELECT count(*) FROM d{i}")
    rate, window = data.setting.streams[i].rate, low.window(i)
    tumbling = window is not None and window.kind == "tumbling"
    # of a full one, on average
    share = min((window.range + low.shape.query.every) / (2 * window.range), 1.0) if window and tumbling else 1.0
    return InputStatistics(rate, before * share, passing / before if before else 1.0, fitted(passing, different))


def _members(low: Lowering, i: int, t: int) -> str:
    window = low.window(i)
    return within(low, i, (inside(window, t),)) if window else "TRUE"


def _class(con: Any, members: tuple[tuple[int, Attribute], ...]) -> KeyStatistics:
    first = {i: a.name for i, a in reversed(members)}
    con.execute("CREATE OR REPLACE TABLE keys AS "
                + " UNION ".join(f"SELECT {a} AS k FROM d{i}" for i, a in first.items()))
    count = _one(con, "SELECT count(*) FROM keys")
    con.execute(f"CREATE OR REPLACE TABLE sample AS SELECT k FROM keys ORDER BY hash(k) LIMIT {KEYS}")

    def share(table: str, column: str) -> tuple[float, ...]:
        whole = f"(SELECT greatest(count(*), 1) FROM {table})"
        matched = f"sample AS s LEFT JOIN {table} AS t ON t.{column} = s.k"
        shares = con.execute(f"SELECT count(t.{column}) / {whole} FROM {matched} GROUP BY s.k ORDER BY s.k").fetchall()
        return tuple(float(x) for x, in shares)

    sampled = min(KEYS / count, 1.0) if count else 1.0
    shares_of_rows = {i: share(f"r{i}", name) for i, name in first.items()}
    shares_of_combinations = {i: share(f"d{i}", name) for i, name in first.items()}
    return KeyStatistics(max(count, 1.0), sampled, shares_of_rows, shares_of_combinations)


def _groups(con: Any, query_shape: Shape) -> float:
    """Groups of the answer if those of different inputs were independent."""
    owned: dict[int, list[str]] = {}
    for expr in query_shape.query.groups:
        attribute = query_shape.attribute(expr)
        if attribute:
            owned.setdefault(attribute[0], []).append(attribute[1].name)
    product = 1.0
    for i, names in owned.items():
        product *= max(_one(con, f"SELECT count(*) FROM (SELECT DISTINCT {', '.join(names)} FROM r{i})"), 1.0)
    return product


def _one(con: Any, sql: str) -> float:
    return float(con.execute(sql).fetchone()[0])
