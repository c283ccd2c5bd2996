"""Suites for people: expectations of streams and queries in Great Expectations' words, with the rows of the newest
boundary.

It only reads.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from expectations import derived
from expectations.derived import COUNTS, DOMAIN, FRESH, MONOTONE, NOT_NULL, TYPES, UNIQUE, VOLUME, Derived
from expectations.expectation import Expectation
from expectations.great import GreatExpectation
from expectations.kinds import BOUNDS, FLAGS, MOSTLY, PATTERN, SET
from jobs.batch.works import parsed
from jobs.engine import kernel
from jobs.expectations import gate as expect
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import QueryState
from jobs.pipeline.declared import DeclaredExpectations
from jobs.pipeline.schema import stream_schema
from jobs.reports.data_docs import Suite, SuiteExpectation
from jobs.requests import requests
from jobs.results import answers
from jobs.storage import places, tables
from optimizer.expression.types import Type
from optimizer.time import EPOCH, instant

SAMPLE = 1_000_000       # rows of a boundary that are looked at: all, but of very large ones


def suites(pipe: OpenPipeline, declared: DeclaredExpectations) -> Iterator[Suite]:
    """A suite for every stream with rows and every query with answers, and those that the folder has as Great
    Expectations writes them, which go by their own names.

    Expectations that touch a sensitive column are in another suite, whose page shows no values; so do all pages of a
    suite of the folder's whose rows have any.
    """
    for name in pipe.pipeline.streams:
        if tables.exists(pipe.path("streams", name)):
            boundary, rows = _newest(pipe, name)
            yield from _split(f"stream_{name}", rows, _of_stream(pipe, declared, name, boundary),
                              pipe.pipeline.streams[name].sensitive)
            yield from _of_folder(declared.suite_of_stream(name), rows, pipe.pipeline.streams[name].sensitive)
    for query_state in requests.listed(pipe):
        boundaries = answers.published(pipe, query_state.name) if query_state.is_active else []
        if boundaries:
            hidden = derived.revealing(parsed(query_state.sql, pipe.catalog), pipe.pipeline.sensitive)
            rows = answers.rows(pipe, query_state, boundaries[-1:], SAMPLE)
            yield from _split(f"query_{query_state.name}", rows, _of_query(pipe, declared, query_state, boundaries[-1]),
                              hidden)
            columns = dict(parsed(query_state.sql, pipe.catalog).columns)
            yield from _of_folder(declared.suite_of_query(query_state.name, columns), rows, hidden)


def _of_folder(expectations: Iterable[GreatExpectation], rows: pa.Table, sensitive: frozenset[str]) -> Iterator[Suite]:
    by_suite: dict[str, list[GreatExpectation]] = {}
    for e in expectations:
        by_suite.setdefault(e.suite, []).append(e)
    for name, of_suite in by_suite.items():
        yield Suite(name, rows, tuple(of_suite), hidden=bool(sensitive))


Touching = tuple[tuple[str, ...], SuiteExpectation]


def _split(name: str, rows: pa.Table, expectations: Iterable[Touching], sensitive: frozenset[str]) -> Iterator[Suite]:
    expectations = list(expectations)
    shown = tuple(a for columns, a in expectations if not sensitive.intersection(columns))
    hidden = tuple(a for columns, a in expectations if sensitive.intersection(columns))
    if shown:
        yield Suite(name, rows.drop_columns([c for c in rows.column_names if c in sensitive]), shown)
    if hidden:
        yield Suite(f"{name}__sensitive", rows, hidden, hidden=True)


def _newest(pipe: OpenPipeline, stream: str) -> tuple[int | None, pa.Table]:
    """The newest boundary run that has rows of the stream, since of no rows nothing can be said, and a sample of these.

    Before any, the first there are.
    """
    table, last = pipe.table(f"streams/{stream}").refresh(), pipe.ledger.committed()
    files = table.files() if last is None else _about(table.files(), last)
    names = tuple(pipe.pipeline.streams[stream].columns)
    schema = pa.schema([f for f in stream_schema(pipe.pipeline.streams[stream].columns) if f.name in names])
    if not files or table.features:
        return last, schema.empty_table()
    con = kernel.connect()
    try:
        paths = kernel.files(con, tuple(places.join(table.path, f.path) for f in files))
        run = "true" if last is None else f"epoch_us(_boundary) <= {last}"
        newest = kernel.table(con, f"SELECT epoch_us(max(_boundary)) AS b FROM read_parquet({paths}) WHERE {run}")
        boundary = newest.column("b")[0].as_py()
        where = "true" if last is None else f"epoch_us(_boundary) = {boundary or last}"
        rows = kernel.table(con, f"SELECT * FROM read_parquet({paths}) WHERE {where} LIMIT {SAMPLE}")
        return (last if last is None else boundary or last), rows.select(names).cast(schema)
    finally:
        con.close()


def _about(files: Sequence[Any], last: int) -> list[Any]:
    """Files that may hold rows of the newest boundary up to the last: one that ends before another ends cannot."""
    begun = [f for f in files if f.low.get("_boundary", last) <= last]
    ended = max((high for f in begun if (high := f.high.get("_boundary", last)) <= last), default=0)
    return [f for f in begun if f.high.get("_boundary", last) >= ended]


def _of_stream(pipe: OpenPipeline, declared: DeclaredExpectations, stream: str,
               boundary: int | None) -> Iterator[Touching]:
    columns, event_time = pipe.pipeline.streams[stream].columns, pipe.pipeline.streams[stream].event_time
    for d in derived.of_stream(columns, event_time):
        for kind, arguments in _stream_words(pipe, stream, d, boundary):
            yield d.columns, SuiteExpectation(kind, arguments, d.severity, d.text)
    for e in declared.of_stream(stream):
        yield e.columns, _words(e)


def _stream_words(pipe: OpenPipeline, stream: str, d: Derived,
                  boundary: int | None) -> Iterator[tuple[str, dict[str, Any]]]:
    declared, last = pipe.pipeline.streams[stream], pipe.ledger.committed()
    column = {"column": declared.event_time}
    if d.name == TYPES:
        yield "expect_table_columns_to_match_set", {"column_set": list(declared.columns), "exact_match": True}
    elif d.name == NOT_NULL:
        yield "expect_column_values_to_not_be_null", column
    elif d.name == DOMAIN:
        yield "expect_column_values_to_be_between", {
            **column, "min_value": EPOCH,
            "max_value": instant(pipe.clock() + declared.ahead)
        }
    elif d.name == FRESH and last is not None:
        limit = derived.fresh_until(declared.lateness, declared.idle, pipe.pipeline.batch)
        yield "expect_column_max_to_be_between", {**column, "min_value": instant(max(last - limit, 0))}
    elif d.name == VOLUME and boundary is not None:
        yield from _volume(pipe, stream, boundary)


def _volume(pipe: OpenPipeline, stream: str, last: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """As far as a sample holds all of the boundary's rows."""
    batch = pipe.pipeline.batch
    counts = expect.volumes(pipe.table(f"streams/{stream}").files(), batch, last - derived.HISTORY * batch, last)
    usual = derived.usual([n for t, n in sorted(counts.items()) if t < last and n is not None])
    if usual is not None and (counts.get(last) or 0) <= SAMPLE:
        yield "expect_table_row_count_to_be_between", {"min_value": usual[0], "max_value": usual[1]}


def _of_query(pipe: OpenPipeline, declared: DeclaredExpectations, query_state: QueryState,
              last: int) -> Iterator[Touching]:
    query = parsed(query_state.sql, pipe.catalog)
    for d in derived.of_query(query):
        for kind, arguments in _query_words(d, last):
            yield d.columns, SuiteExpectation(kind, arguments, d.severity, d.text)
    for e in declared.of_query(query_state.name, dict(query.columns)):
        yield e.columns, _words(e)


def _query_words(d: Derived, last: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is conserved can be told only while the batch runs."""
    if d.name == MONOTONE:
        yield "expect_column_values_to_be_between", {
            "column": "boundary",
            "min_value": instant(last),
            "max_value": instant(last)
        }
    elif d.name == UNIQUE and len(d.columns) == 1:
        yield "expect_column_values_to_be_unique", {"column": d.columns[0]}
    elif d.name == UNIQUE:
        yield "expect_compound_columns_to_be_unique", {"column_list": list(d.columns)}
    elif d.name == COUNTS:
        for column in d.columns:
            yield "expect_column_values_to_be_between", {"column": column, "min_value": 0}


def _words(e: Expectation) -> SuiteExpectation:
    kind, arguments = e.kind, dict[str, Any](zip(e.form.columns, e.columns))
    if e.form.columns == ("column_list",):
        arguments = {"column_list": list(e.columns)}
        if len(e.columns) == 1:
            kind, arguments = "expect_column_values_to_be_unique", {"column": e.columns[0]}
    for parameter, value in e.arguments:
        if parameter == SET:
            arguments[parameter] = [_value(text, e.types[0]) for text in value]
        else:
            arguments[parameter] = _parameter(e, parameter, str(value))
    return SuiteExpectation(kind, arguments, e.severity, f"declared, {e.severity}")


def _parameter(e: Expectation, parameter: str, text: str) -> Any:
    if parameter in FLAGS:
        return text == "true"
    if parameter == MOSTLY:
        return float(text)
    if parameter == PATTERN or parameter not in BOUNDS:
        return text
    if e.form.of == "column":
        return _value(text, e.types[0])
    return int(text) if e.form.of == "count" else float(text)


def _value(text: str, kind: Type) -> Any:
    if kind.name in ("timestamp", "date"):
        return datetime.fromisoformat(text) if kind.name == "timestamp" else date.fromisoformat(text)
    if kind.name == "boolean":
        return text == "true"
    return int(text) if kind.integral else float(text) if kind.numeric else text
