"""Every aggregate over every type's corner values: what a plan answers and what the oracle recomputes, beside Spark."""
from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import pyarrow as pa
from judge_cases import arrow_type
from scalar_cases import EDGES, TYPES

from jobs.engine.kernel import Connection, connect
from jobs.verify.recompute import recompute
from jobs.verify.sql import Table
from optimizer.errors import ForebayError
from optimizer.expression.types import TIMESTAMP
from optimizer.plan.model import Plan, candidates
from optimizer.query.aggregate import PAIRED
from optimizer.query.model import Catalog, Query
from optimizer.sql.aggregates import AGGREGATES
from optimizer.sql.parse import parse
from tests.engine import Failed, Folder, together

# How each aggregate is written over x.
TAKEN = {**{name: f"{name}(x)" for name in AGGREGATES}, "PERCENTILE": "PERCENTILE(x, 0.3)",
         "PERCENTILE_CONT": "PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY x DESC)",
         "PERCENTILE_DISC": "PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY x)",
         **{name: f"{name}(x, '; ') WITHIN GROUP (ORDER BY x)" for name in ("LISTAGG", "STRING_AGG")},
         **{name: f"{name}(x, 0.7)" for name in ("PERCENTILE_APPROX", "APPROX_PERCENTILE")},
         **{name: f"{name}(x > 7)" for name in ("COUNT_IF", "ANY")},
         **{name: f"{name}(x, CAST(x AS DOUBLE) * 2)" for name in AGGREGATES if AGGREGATES[name] in PAIRED},
         **{name: f"{name}(x, x)" for name in ("REGR_COUNT", "REGR_AVGX", "REGR_AVGY")}}
MORE = ("COUNT(DISTINCT x)", "COUNT(*)", "SUM(x) FILTER (WHERE x IS NOT NULL)", "MAX(x) FILTER (WHERE x IS NULL)",
        "COUNT(x) FILTER (WHERE NOT x IS NULL)", "SUM(x) + 1", "AVG(x) * 2", "MIN(x) = MAX(x)")
BATCH = 1000


def _sets(values: list[object]) -> list[list[object]]:
    """Nothing but NULLs, neighbours, every third, some twice, all."""
    pairs = [[a, b, None] for a, b in zip(values, [*values[1:], None])]
    return [[None], [None, None], [values[1], values[1]], *pairs, *(values[i::3] for i in range(min(3, len(values)))),
            [v for v in values for _ in range(2)][:9], values]


SETS = {short: _sets(values) for short, values in EDGES.items()}


def asked_aggregates(kind: str) -> Iterator[tuple[str, str, Query]]:
    """Those that the parser accepts of this type: the name, the text of the aggregate and the query."""
    catalog = Catalog(BATCH, (("t", "ts", (("ts", TIMESTAMP), ("g", TYPES["i32"]), ("x", TYPES[kind]))),), ())
    for name, text in [*TAKEN.items(), *((t.partition("(")[0], t) for t in MORE)]:
        try:
            yield name, text, parse(f"SELECT {text} AS r FROM t [WINDOW 1 MILLISECOND]", catalog)
        except ForebayError:
            continue


def differing(spark: Any, kind: str) -> list[str]:
    """What is not as Spark has it."""
    asked = list(asked_aggregates(kind))
    values = pa.array([v for s in SETS[kind] for v in s], arrow_type(TYPES[kind]))
    places = pa.array([n for n, s in enumerate(SETS[kind]) for _ in s], pa.int32())
    whole = pa.types.is_date(values.type) and values.cast(pa.int32()) or pa.types.is_timestamp(
        values.type) and values.cast(pa.int64()) or values
    back = {"dt": "date_from_unix_date(x)", "ts": "timestamp_micros(x)"}.get(kind, f"CAST(x AS {TYPES[kind]})")
    spark.createDataFrame(pa.table({
        "g": places,
        "x": whole
    })).selectExpr("g", f"{back} AS x").repartition(1).persist().createOrReplaceTempView("sets")
    folder = Folder()
    try:
        stamps = pa.array([n * BATCH + k for n, s in enumerate(SETS[kind]) for k in range(len(s))], pa.int64())
        due = pa.array([(n + 1) * BATCH for n, s in enumerate(SETS[kind]) for _ in s], pa.int64())
        moments = pa.timestamp("us", "UTC")
        rows = pa.table({"ts": stamps.cast(moments), "g": places, "x": values, "_boundary": due.cast(moments)})
        folder.add("t", rows)
        return [w for _, text, query in asked for w in _differing(spark, kind, text, query, folder, rows)]
    finally:
        folder.remove()


def _differing(spark: Any, kind: str, text: str, query: Query, folder: Folder, rows: pa.Table) -> list[str]:
    here, there = str(query.columns[0][1]), _type(spark, text)
    if here != there:
        return [f"{text} of {TYPES[kind]}: {here} here, {there} in Spark"]
    judged, sets = _judged(spark, text, range(len(SETS[kind]))), range(len(SETS[kind]))
    answers = {p.name: _answered(query, p, folder, sets) for p in _plans(query)}
    answers["verify"] = _verified(query, kind, rows, sets)
    return [f"{text} of {TYPES[kind]} by {place}: {ours[n]!r}, but {judged[n]!r} in Spark, of {values}"
            for place, ours in answers.items() for n, values in enumerate(SETS[kind])
            if not (_alike(judged[n], ours[n], values) or _limited(query, judged[n], ours[n], values))][:4]


def _limited(query: Query, judged: object, ours: object, values: list[object]) -> bool:
    """docs/limits.md: a spread whose squares have no room fails.

    SUM of whole numbers fails where the total does, not where Spark's order does.
    """
    function, numbers = query.aggregates[0].function, [
        v for v in values if isinstance(v, (int, float, Decimal)) and math.isfinite(v)
    ]
    if function == "count_distinct" and "APPROX" in query.text:      # Spark's estimate, within what it promises
        return isinstance(judged, int) and isinstance(ours, int) and abs(judged - ours) <= max(1, 0.15 * ours)
    if function == "percentile_disc" and isinstance(judged, int) and isinstance(ours,
                                                                                int):      # there by way of doubles
        return float(judged) == float(ours)
    if ours == "fails" and function.startswith(("stddev", "var", *PAIRED)):
        return max(map(abs, numbers), default=0) >= (2**60 if isinstance(numbers[0], int) else 1e150)
    exact = sum((Fraction(v) for v in numbers), Fraction(0))
    return judged == "fails" and function == "sum" and isinstance(ours,
                                                                  (int, Decimal)) and abs(Fraction(ours) - exact) <= 1


def _plans(query: Query) -> list[Plan]:
    """One of each way that keeps nothing between boundaries; what is kept is the business of the differential tests."""
    return [c.plan for c in candidates(query) if c.refused is None and c.plan.keeping == "recompute"]


def _type(spark: Any, text: str) -> str:
    try:
        return str(spark.sql(f"SELECT {text} AS r FROM sets").schema.fields[0].dataType.simpleString())
    except Exception as error:      # whatever Spark refuses with
        return f"refused ({str(error).splitlines()[0][:80]})"


def _judged(spark: Any, text: str, sets: range) -> dict[int, object]:
    """Spark's values by set; where the statement fails, of each half by itself."""
    try:
        rows = spark.sql(
            f"SELECT g, {text} AS r FROM sets WHERE g BETWEEN {sets[0]} AND {sets[-1]} GROUP BY g").toArrow()
    except Exception:      # whatever a value brings about
        if len(sets) == 1:
            return {sets[0]: "fails"}
        half = len(sets) // 2
        return {**_judged(spark, text, sets[:half]), **_judged(spark, text, sets[half:])}
    return dict(zip(rows.column("g").to_pylist(), _numbers(rows.column("r")).to_pylist()))


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Days and instants as whole numbers."""
    return column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64()) if pa.types.is_temporal(
        column.type) else column


def _answered(query: Query, plan: Plan, folder: Folder, sets: range) -> dict[int, object]:
    """A plan's values by set, found as Spark's are."""
    folder.state = {}
    try:
        answers = together(query, plan, folder, tuple((n + 1) * BATCH for n in sets))
        return {n: _only(answers[(n + 1) * BATCH]) for n in sets}
    except Failed:
        if len(sets) == 1:
            return {sets[0]: "fails"}
        half = len(sets) // 2
        return {**_answered(query, plan, folder, sets[:half]), **_answered(query, plan, folder, sets[half:])}


def _verified(query: Query, kind: str, rows: pa.Table, sets: range) -> dict[int, object]:
    """The oracle's; its answers end with one that fails."""
    found: dict[int, object] = {}
    known = {"t": Table({"ts": "timestamp", "g": "int", "x": str(TYPES[kind])}, "ts")}
    while len(found) < len(sets):
        try:
            answers = recompute(query.text, {"t": rows}, known, BATCH, [(n + 1) * BATCH for n in sets[len(found):]],
                                session=connection())
        except ForebayError as error:
            return {n: "refused" if error.code == "cannot-verify" else str(error) for n in sets}
        found |= {t // BATCH - 1: "fails" if isinstance(a, ForebayError) else _only(a) for t, a in answers.items()}
    return found


@cache
def connection() -> Connection:
    return connect()


def _only(answer: pa.Table) -> object:
    return _numbers(answer.column("r"))[0].as_py()


def _alike(judged: object, ours: object, values: list[object]) -> bool:
    """The same; doubles up to what the order of adding changes."""
    if ours == "refused" or judged == ours and type(judged) is type(ours):
        return True
    if not isinstance(judged, float) or not isinstance(ours, float):
        return isinstance(judged, Decimal) and isinstance(ours, Decimal) and judged == ours
    if math.isnan(judged) or math.isnan(ours):
        return math.isnan(judged) and math.isnan(ours)
    sizes = [abs(float(v)) for v in values if isinstance(v, (int, float, Decimal)) and math.isfinite(v)]
    largest = max(sizes, default=0.0)
    return math.isclose(judged, ours, rel_tol=1e-9, abs_tol=1e-9 * max(largest, min(largest * largest, 1e300)))
