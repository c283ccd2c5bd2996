"""Answers recomputed from the raw rows by the query's plain SQL, in another way than they were made: nothing of the
optimizer but its errors is used here.
"""
from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Union

import pyarrow as pa

from jobs.engine.kernel import DATA_ERRORS, Connection, connect, files, table
from jobs.verify.sql import Plain, Table, as_written, plain, quoted
from jobs.verify.statement import FOR_EVER, MAGNITUDE, in_duckdb, in_spark, raw
from jobs.verify.windows import Variant, variants
from optimizer.errors import ForebayError, failed, first_line

Rows = Union[pa.Table, Sequence[str]]                       # an Arrow table, or the paths of Parquet files
# a relation may be given by version: each from which boundary on
Tables = Mapping[str, Union[Rows, Mapping[int, Rows]]]
Answer = Union[pa.Table, ForebayError]
Row = tuple[object, ...]
Totals = tuple[float, ...]
TOLERANCE = 1e-9
SPARK_DATA_ERRORS = ("ARITHMETIC_OVERFLOW", "DIVIDE_BY_ZERO", "REMAINDER_BY_ZERO", "CAST_INVALID_INPUT",
                     "CAST_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE", "BINARY_ARITHMETIC_OVERFLOW")


def published(boundaries: Sequence[int], every: int) -> list[int]:
    """Those at which answers are due."""
    return [t for t in sorted(boundaries) if t % every == 0]


def recompute(text: str, tables: Tables, catalog: Mapping[str, Table], batch: int, boundaries: Sequence[int],
              engine: str = "duckdb", session: Any = None) -> dict[int, Answer]:
    """The answer at each published boundary; `boundaries` begin with the query's creation. One that cannot be computed
    is its error, and the last.

    `session` is a Spark session for engine "jvm"; for "duckdb" it may be a connection to use again.
    """
    several, read = variants(text), as_written if engine == "jvm" else plain
    queries = [_windowed(v, read(v.text, catalog, batch), catalog) for v in several]
    used = {source.name: tables[source.name] for source in queries[0].sources}
    session = session or (None if engine == "jvm" else connect(threads=os.cpu_count() or 1))
    answer = [
        _by_spark(q, used, catalog, session) if engine == "jvm" else _by_duckdb(q, used, catalog, session)
        for q in queries
    ]
    nothing = pa.table({name: [] for name, _ in queries[0].selects})
    answers: dict[int, Answer] = {}
    previous = -FOR_EVER
    lengths = [variant.window[0] for variant in several if variant.window]
    step = math.gcd(*(query.every for query in queries), *lengths)      # divides ends and lengths of all windows
    for t in published(boundaries, step):
        answers[t] = _together([one(t, previous) for one, q in zip(answer, queries) if t % q.every == 0], nothing)
        if isinstance(answers[t], ForebayError):
            break
        previous = t
    return answers


def without_rule(text: str, catalog: Mapping[str, Table], batch: int) -> str | None:
    """Why DuckDB cannot recompute a query's answers: the first thing in it for which there is no rule here."""
    try:
        for variant in variants(text):
            plain(variant.text, catalog, batch)
    except ForebayError as error:
        if error.code != "cannot-verify":
            raise
        return error.message
    return None


def _windowed(variant: Variant, query: Plain, catalog: Mapping[str, Table]) -> Plain:
    """One of several windows: every stream's, answered at its ends."""
    if variant.window is None:
        return query
    window = ("hopping", *variant.window)
    sources = tuple(replace(s, window=window) if catalog[s.name].event_time else s for s in query.sources)
    return replace(query, sources=sources, every=variant.window[1])


def _together(answers: list[Answer], nothing: pa.Table) -> Answer:
    """The answers of the windows that end together; where none ends, an answer without rows."""
    failure = next((answer for answer in answers if isinstance(answer, ForebayError)), None)
    if failure is not None:
        return failure
    rows = [answer for answer in answers if isinstance(answer, pa.Table)]
    if len(rows) > 1:
        return pa.concat_tables(rows, promote_options="permissive")
    return rows[0] if rows else nothing


def _by_duckdb(query: Plain, tables: Tables, catalog: Mapping[str, Table],
               connection: Connection) -> Callable[[int, int], Answer]:
    # SUM(x + 1) as SUM(x) + COUNT(x) does not raise where x + 1 overflows; a filter moved below the join raises on rows
    # that no answer needs.
    connection.execute("SET disabled_optimizers = 'aggregate_function_rewriter,cte_filter_pusher'")
    shown: dict[str, Rows] = {}

    def answer(t: int, previous: int) -> Answer:
        _show(tables, t, shown, lambda name, rows: _view(connection, name, rows))
        try:
            return table(connection, in_duckdb(query, catalog, t, previous))
        except DATA_ERRORS as error:
            return _failure(t, error)

    return answer


def _by_spark(query: Plain, tables: Tables, catalog: Mapping[str, Table], session: Any) -> Callable[[int, int], Answer]:
    shown: dict[str, Rows] = {}

    def answer(t: int, previous: int) -> Answer:
        _show(tables, t, shown, lambda name, rows: _spark_view(session, name, rows))
        try:
            return session.sql(in_spark(query, catalog, t, previous)).toArrow()
        # any class: Spark Connect and classic Spark raise different ones, and no Spark is imported here
        except Exception as error:
            if not any(word in str(error) for word in SPARK_DATA_ERRORS):
                raise
            return _failure(t, error)

    return answer


def _failure(t: int, error: Exception) -> ForebayError:
    return failed("query-failed",
                  f"the answer at boundary {t} needs a value that cannot be computed: {first_line(error)}")


def _show(tables: Tables, t: int, shown: dict[str, Rows], view: Callable[[str, Rows], None]) -> None:
    for name, rows in tables.items():
        current = rows[max(b for b in rows if b <= t)] if isinstance(rows, Mapping) else rows
        if shown.get(name) is not current:
            view(name, current)
            shown[name] = current


def _view(connection: Connection, name: str, rows: Rows) -> None:
    source = quoted(f"arrow_{name}")
    if isinstance(rows, pa.Table):
        connection.register(f"arrow_{name}", rows)
    else:
        source = f"read_parquet({files(connection, tuple(rows))}, union_by_name = true)"
    kinds = {row[0]: row[1] for row in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}
    whole = " REPLACE (epoch_us(_boundary) AS _boundary)" if kinds.get("_boundary", "BIGINT") != "BIGINT" else ""
    connection.execute(f"CREATE OR REPLACE TEMP VIEW {quoted(raw(name))} AS SELECT *{whole} FROM {source}")


def _spark_view(session: Any, name: str, rows: Rows) -> None:
    frame = session.createDataFrame(rows) if isinstance(rows, pa.Table) else session.read.parquet(*rows)
    if dict(frame.dtypes).get("_boundary", "bigint") != "bigint":
        frame = frame.selectExpr(*[f"`{c}`" for c in frame.columns if c != "_boundary"],
                                 "unix_micros(_boundary) AS _boundary")
    frame.createOrReplaceTempView(raw(name))


def compare(expected: pa.Table, got: pa.Table) -> list[str]:
    """What differs between two answers as multisets, in words; empty when equal.

    Columns go by name. All but doubles must be the same; two doubles are equal within 1e-9 × max(|a|, |b|, Σ|x|), where
    Σ|x| comes with `expected` (a list for each row, the column `_magnitude`); NaN equals NaN.
    """
    names = [n for n in expected.column_names if n != MAGNITUDE]
    missing = [name for name in names if name not in got.column_names]
    if missing:
        return [f"column {name!r} is missing; there are {', '.join(got.column_names)}" for name in missing]
    floating = [pa.types.is_floating(expected.schema.field(name).type) for name in names]
    sums = expected.column(MAGNITUDE).to_pylist() if MAGNITUDE in expected.column_names else [None] * expected.num_rows
    left, right = _by_exact(expected, names, floating, sums), _by_exact(got, names, floating, [None] * got.num_rows)
    differences = []
    for key in sorted(left.keys() | right.keys(), key=repr):
        differences += _pair(key, left.get(key, []), right.get(key, []))
    return differences


def _by_exact(rows: pa.Table, names: list[str], floating: list[bool],
              sums: list[list[float | None] | None]) -> dict[Row, list[tuple[Row, Totals]]]:
    """Rows by their exact columns: for each its doubles, in order, and their Σ|x|."""
    by_exact: dict[Row, list[tuple[Row, Totals]]] = defaultdict(list)
    for row, sums_of_row in zip(zip(*(rows.column(name).to_pylist() for name in names)), sums):
        exact = tuple(value for value, is_floating in zip(row, floating) if not is_floating)
        doubles = tuple(value for value, is_floating in zip(row, floating) if is_floating)
        of_doubles = [s for s, is_floating in zip(sums_of_row or [None] * len(names), floating) if is_floating]
        totals = tuple(s if s is not None and math.isfinite(s) else 0.0 for s in of_doubles)
        by_exact[exact].append((doubles, totals))
    for group in by_exact.values():
        group.sort(key=lambda pair: list(map(_order, pair[0])))
    return by_exact


def _order(value: object) -> tuple[int, float]:
    if not isinstance(value, float):
        return (0, 0.0)
    return (2, 0.0) if math.isnan(value) else (1, value)


def _pair(key: Row, expected: list[tuple[Row, Totals]], got: list[tuple[Row, Totals]]) -> list[str]:
    """Rows of equal exact columns matched by their doubles, nearest in order first.

    What finds no match is missing or extra.
    """
    missing, extra = [], [row for row, _ in got]
    for row, totals in expected:
        match = next((i for i, other in enumerate(extra) if all(map(alike, row, other, totals))), None)
        if match is None:
            missing.append(row)
        else:
            del extra[match]
    return [f"missing: {key + row}" for row in missing] + [f"extra: {key + row}" for row in extra]


def alike(a: object, b: object, total: float = 0.0) -> bool:
    if not isinstance(a, float) or not isinstance(b, float):
        return a is b
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or math.isinf(b):
        return a == b or (math.isnan(a) and math.isnan(b))
    return abs(a - b) <= TOLERANCE * max(abs(a), abs(b), total)
