"""Declared expectations asked of a batch's new rows or answers: one statement for all of a subject, a row of verdicts a
boundary.

Values are never shown.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from expectations.expectation import Expectation
from expectations.sql import judged
from jobs.engine import kernel
from jobs.engine.kernel import Connection
from jobs.expectations.findings import Finding
from jobs.pipeline.model import Stream
from jobs.storage import places
from jobs.storage.tables import Table
from optimizer.expression.casting import sql_type
from optimizer.expression.dialect import identifier

HIDDEN = "***"


def of_input(table: Table, stream: Stream, due: Sequence[int], batch: int,
             asked: Sequence[Expectation]) -> list[Finding]:
    """Of the rows that these boundaries count first."""
    after, last = due[0] - batch, due[-1]
    paths = tuple(places.join(table.path, f.path) for f in table.files() if f.may_hold("_boundary", after + 1, last))
    con = kernel.shared()
    try:
        source = f"read_parquet({kernel.files(con, paths)})" if paths else None
        return judge(con, f"stream {stream.name}", source, "_boundary", due, asked, stream.sensitive)
    finally:
        con.close()


def judge(con: Connection, subject: str, source: str | None, boundary: str, due: Iterable[int],
          asked: Sequence[Expectation], sensitive: frozenset[str]) -> list[Finding]:
    """What fails. A boundary without a row is judged too: by how many there are."""
    rows = con.execute(_statement(source, boundary, tuple(due), asked)).fetchall()
    return [f for row in rows for f in _findings(subject, row, asked, sensitive)]


def _findings(subject: str, row: tuple[Any, ...], asked: Sequence[Expectation],
              sensitive: frozenset[str]) -> list[Finding]:
    return [
        Finding(row[0], subject, str(e), _observed(e, row[1 + 2 * k], sensitive), e.severity)
        for k, e in enumerate(asked)
        if not row[2 + 2 * k]
    ]


def _observed(e: Expectation, value: Any, sensitive: frozenset[str]) -> str:
    """An extreme or a sum of a sensitive column is one of its values, or nearly."""
    shows = not e.form.row and e.form.of in ("column", "number") and e.form.values and sensitive.intersection(e.columns)
    return HIDDEN if shows else str(value)


def _statement(source: str | None, boundary: str, due: tuple[int, ...], asked: Sequence[Expectation]) -> str:
    used = list(dict.fromkeys(c for e in asked for c in e.columns))
    names = {c: f"v{k}" for k, c in enumerate(used)}
    verdicts = ", ".join(f"{observed}, {passed}" for observed, passed in (judged(e, names) for e in asked))
    values = ", ".join(f"({t}::BIGINT)" for t in due)
    if source is None:
        types = {c: t for e in asked for c, t in zip(e.columns, e.types)}
        rows = ", ".join([
            "NULL::BIGINT AS _t", "NULL::BOOLEAN AS _there",
            *(f"NULL::{sql_type(types[c], 'duckdb')} AS {names[c]}" for c in used)
        ])
        rows = f"SELECT {rows} WHERE false"
    else:
        columns = ", ".join([
            f"epoch_us({identifier(boundary)}) AS _t", "true AS _there",
            *(f"{identifier(c)} AS {names[c]}" for c in used)
        ])
        rows = f"SELECT {columns} FROM {source}"
    return (f"SELECT due.t, {verdicts} FROM (VALUES {values}) AS due(t) LEFT JOIN ({rows}) AS found ON found._t = "
            "due.t GROUP BY due.t ORDER BY due.t")
