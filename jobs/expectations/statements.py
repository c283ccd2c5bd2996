"""Declared expectations asked of a batch's new rows or answers: one statement for all of a subject, a row of verdicts a
boundary.

Values are never shown.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from expectations.expectation import Expectation
from expectations.great import GreatExpectation
from expectations.sql import judged
from jobs.engine import kernel
from jobs.engine.kernel import Connection
from jobs.expectations import by_great
from jobs.expectations.findings import Finding
from jobs.pipeline.model import Stream
from jobs.storage import places
from jobs.storage.tables import Table
from optimizer.expression.casting import sql_type
from optimizer.expression.dialect import identifier
from optimizer.expression.types import Type

HIDDEN = "***"


def of_input(table: Table, stream: Stream, due: Sequence[int], batch: int,
             expectations: Sequence[Expectation | GreatExpectation]) -> list[Finding]:
    """What fails of the rows that these boundaries count first."""
    after, last = due[0] - batch, due[-1]
    paths = tuple(places.join(table.path, f.path) for f in table.files() if f.may_hold("_boundary", after + 1, last))
    con = kernel.shared()
    try:
        source = f"read_parquet({kernel.files(con, paths)})" if paths else None
        return judge(con, f"stream {stream.name}", source, "_boundary", due, expectations, stream.sensitive)
    finally:
        con.close()


@dataclass(frozen=True)
class FilesOrder:
    """Rows in files to be judged by a task, as `judge` does it."""

    subject: str
    paths: tuple[str, ...]
    due: tuple[int, ...]
    expectations: tuple[Expectation | GreatExpectation, ...]
    sensitive: frozenset[str]


def of_files(order: FilesOrder) -> list[Finding]:
    """What fails of an answer that is in files."""
    con = kernel.shared()
    try:
        source = f"read_parquet({kernel.files(con, order.paths)})" if order.paths else None
        return judge(con, order.subject, source, "boundary", order.due, order.expectations, order.sensitive)
    finally:
        con.close()


def judge(con: Connection, subject: str, source: str | None, boundary: str, due: Iterable[int],
          expectations: Sequence[Expectation | GreatExpectation], sensitive: frozenset[str]) -> list[Finding]:
    """What fails. A boundary without a row is judged too: by how many there are."""
    due, by_sql = tuple(due), [e for e in expectations if by_great.is_sql(e)]
    others = [e for e in expectations if isinstance(e, GreatExpectation) and not by_great.is_sql(e)]
    findings = _by_sql(con, subject, source, boundary, due, by_sql, sensitive) if by_sql else []
    return findings + (by_great.findings(con, subject, source, boundary, due, others, sensitive) if others else [])


def _by_sql(con: Connection, subject: str, source: str | None, boundary: str, due: Sequence[int],
            expectations: Sequence[Expectation | GreatExpectation], sensitive: frozenset[str]) -> list[Finding]:
    findings = []
    for t, *verdicts in con.execute(_statement(source, boundary, tuple(due), expectations)).fetchall():
        for expectation, observed, passed in zip(expectations, verdicts[::2], verdicts[1::2]):
            if not passed:
                hidden = expectation.shows_values and sensitive.intersection(expectation.columns)
                text = HIDDEN if hidden else str(observed)
                findings.append(Finding(t, subject, str(expectation), text, expectation.severity))
    return findings


def _statement(source: str | None, boundary: str, due: tuple[int, ...],
               expectations: Sequence[Expectation | GreatExpectation]) -> str:
    type_of: dict[str, Type] = {}
    for expectation in expectations:
        type_of |= expectation.typed_columns
    names = {column: f"v{k}" for k, column in enumerate(type_of)}
    verdicts = ", ".join(", ".join(judged(expectation, names)) for expectation in expectations)
    values = ", ".join(f"({t}::BIGINT)" for t in due)
    if source is None:
        nulls = [f"NULL::{sql_type(kind, 'duckdb')} AS {names[column]}" for column, kind in type_of.items()]
        rows = f"SELECT {', '.join(['NULL::BIGINT AS _t', 'NULL::BOOLEAN AS _there', *nulls])} WHERE false"
    else:
        columns = [f"{identifier(column)} AS {name}" for column, name in names.items()]
        stamp = f"epoch_us({identifier(boundary)}) AS _t"
        rows = f"SELECT {', '.join([stamp, 'true AS _there', *columns])} FROM {source}"
    return (f"SELECT due.t, {verdicts} FROM (VALUES {values}) AS due(t) LEFT JOIN ({rows}) AS found ON found._t = "
            "due.t GROUP BY due.t ORDER BY due.t")
