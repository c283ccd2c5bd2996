"""What Great Expectations itself has to judge of a batch's new rows or answers: each boundary's rows are handed to it,
as its users have them.

Its package is loaded when the first such expectation is judged.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from expectations.expectation import Expectation
from expectations.great import GreatExpectation, verdict
from jobs.engine import kernel
from jobs.engine.kernel import Connection
from jobs.expectations.findings import Finding
from jobs.pipeline.schema import arrow
from optimizer.expression.dialect import identifier


def is_sql(e: Expectation | GreatExpectation) -> bool:
    """Whether SQL judges it, as Great Expectations would."""
    return isinstance(e, Expectation) or verdict(e, {name: identifier(name) for name in e.types}) is not None


def load(files: Iterable[str]) -> None:
    """Runs the operator's files of custom classes."""
    from jobs.expectations import great  # seconds, which only who needs it pays

    great.load(files)


def check(expectations: Iterable[GreatExpectation], files: Iterable[str]) -> None:
    """Refuses arguments that Great Expectations does not take, of those that it has to judge."""
    others = [e for e in expectations if not is_sql(e)]
    if others:
        from jobs.expectations import great

        great.load(files)
        for e in others:
            great.object_of(e)


def findings(con: Connection, subject: str, source: str | None, boundary: str, due: Sequence[int],
             expectations: Sequence[GreatExpectation], sensitive: frozenset[str]) -> list[Finding]:
    """What fails at each of these boundaries."""
    from jobs.expectations import great

    failing = []
    for t in due:
        rows = _rows(con, source, boundary, t, expectations[0])
        for e, observed in zip(expectations, great.judged(expectations, rows, bool(sensitive))):
            if observed is not None:
                failing.append(Finding(t, subject, str(e), observed, e.severity))
    return failing


def _rows(con: Connection, source: str | None, boundary: str, t: int, e: GreatExpectation) -> pa.Table:
    """All rows of one boundary, with the columns of the subject."""
    schema = pa.schema([(name, arrow(kind)) for name, kind in e.types.items()])
    if source is None:
        return schema.empty_table()
    columns = ", ".join(map(identifier, schema.names))
    sql = f"SELECT {columns} FROM {source} WHERE epoch_us({identifier(boundary)}) = {t}"
    return kernel.table(con, sql).cast(schema)
