"""Cases of tests.streams fed to jobs.verify.recompute: what the answers must be; shares no code with plans."""
from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import cache
from typing import Any

import pyarrow as pa

from jobs.engine.kernel import Connection, connect
from jobs.verify.recompute import Answer, recompute
from jobs.verify.sql import Table
from tests.streams import Case, Columns, Row

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
ARROW = {"int": pa.int32(), "bigint": pa.int64(), "string": pa.string(), "double": pa.float64(), "boolean": pa.bool_(),
         "timestamp": pa.timestamp("us", "UTC"), "decimal(10,2)": pa.decimal128(10, 2)}


def instant(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)


def arrow(columns: Columns, rows: list[Row]) -> pa.Table:
    """Rows as an Arrow table; whole numbers in timestamp columns are microseconds since 1970."""
    values = list(zip(*rows)) or [()] * len(columns)
    return pa.table({name: pa.array(list(v), ARROW[kind]) for (name, kind), v in zip(columns.items(), values)})


def stream_table(case: Case, name: str) -> pa.Table:
    """A stream's rows with `_boundary` as TIMESTAMP."""
    _, columns, rows = case.streams[name]
    return arrow({**columns, "_boundary": "timestamp"}, rows)


def catalog(case: Case) -> dict[str, Table]:
    streams = {name: Table(columns, event_time) for name, (event_time, columns, _) in case.streams.items()}
    return streams | {name: Table(columns) for name, (columns, _) in case.relations.items()}


def tables(case: Case) -> dict[str, Any]:
    relations = {
        name: {
            t: arrow(columns, rows) for t, rows in versions
        } for name, (columns, versions) in case.relations.items()
    }
    return {name: stream_table(case, name) for name in case.streams} | relations


def answers(case: Case, engine: str = "duckdb", session: Any = None, creation: int | None = None) -> dict[int, Answer]:
    """The right answer at each published boundary from `creation` (default: the first) on.

    One that cannot be computed is its error, and the last.
    """
    boundaries = [t for t in case.boundaries if creation is None or t >= creation]
    return recompute(case.sql, tables(case), catalog(case), case.batch_us, boundaries, engine,
                     session if engine == "jvm" else _connection())


@cache
def _connection() -> Connection:
    """One for all cases of a process: a new one costs more than an answer."""
    return connect()
