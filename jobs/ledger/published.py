"""`ledger/boundaries`: a row for each time that a boundary of a query was published, also without rows.

A boundary is published when its row is here, and the row is written last: who reads it finds the answer at the query's
address.
"""
from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, dataclass
from typing import Any

import pyarrow as pa

from jobs.engine import small_tables
from jobs.engine.small_tables import ask
from jobs.ledger.addresses import latest_path
from jobs.ledger.queries import address_of
from jobs.pipeline.warehouse import Warehouse
from jobs.storage import tables
from jobs.storage.tables import Conflict, Table
from optimizer.expression.dialect import string

PATH = "ledger/boundaries"
STAMP = pa.timestamp("us", "UTC")
SCHEMA = pa.schema([("query", pa.string()), ("boundary", STAMP), ("revision", pa.int64()), ("rows", pa.int64()),
                    ("published_at", STAMP), ("cause", pa.string()), ("batch", pa.int64())])
UPTO = "forebay.published"      # the transaction that says up to which boundary everything is published
FRESH = "fresh"                      # cause: a batch
ENDS = "forebay.ends"                # the metadata of the last commit that say how far tables have come
NOTHING = -1                         # a boundary before all
UNSURE = -1                          # no creation: what is known of a table's end does not suffice to go on with it


@dataclass(frozen=True)
class Publication:
    """One boundary of one query, published: a row of the table.

    `Publication("top", 120, rows=3, published_at=now, batch=7)` is its first.
    """

    query: str
    boundary: int
    rows: int
    published_at: int
    batch: int
    revision: int = 1
    cause: str = FRESH


@dataclass(frozen=True)
class LogEnds:
    """How far the tables of a query's answers have come, so that rows can come to them without opening them.

    `LogEnds(1, results=12, latest=11, file="b7-….parquet", size=900)`: for the columns of its first creation, version
    12 of the one, and of the other version 11, which has one file; `file` None: it has none.
    """

    creation: int
    results: int
    latest: int
    file: str | None = None
    size: int = 0


def _existing(warehouse: Warehouse) -> Table | None:
    """As it is now; None before anything is published."""
    return warehouse.latest(PATH) if tables.exists(warehouse.path(PATH)) else None


def upto(warehouse: Warehouse) -> int | None:
    """The boundary up to which all that is committed is published; None: nothing, or the warehouse is an older one."""
    table = _existing(warehouse)
    boundary = NOTHING if table is None else table.transaction(UPTO)
    return None if boundary == NOTHING else boundary


def enter(warehouse: Warehouse, publications: Iterable[Publication], after: int, upto: int,
          ends: Mapping[str, LogEnds]) -> None:
    """From here on they are published, and with them everything of the boundaries after < t <= upto.

    Another runner that published any of them meanwhile wins. `ends` are by query: from here on the tables of its
    answers must have come that far.
    """
    table = warehouse.latest(PATH, SCHEMA)
    if table.transaction(UPTO) != after:
        raise Conflict(f"another process has published answers of {warehouse.root} meanwhile")
    rows = pa.Table.from_pylist([asdict(publication) for publication in publications], schema=SCHEMA)
    rows = rows.sort_by([("query", "ascending"), ("boundary", "ascending")])
    table.append(rows, (UPTO, upto), _metadata({**_ends_in(table), **ends}))


def known_ends(warehouse: Warehouse) -> dict[str, LogEnds]:
    """By query, as the last commit says."""
    table = _existing(warehouse)
    return {} if table is None else _ends_in(table)


def _ends_in(table: Table) -> dict[str, LogEnds]:
    ends_by_query = json.loads(str(table.metadata().get(ENDS, "{}")))
    return {query: LogEnds(*values) for query, values in ends_by_query.items()}


def relied(warehouse: Warehouse) -> dict[str, int]:
    """By path under the warehouse: the version of a table that published answers rest on."""
    versions = {}
    for query, ends in known_ends(warehouse).items():
        versions[address_of(query)] = ends.results
        versions[latest_path(query)] = ends.latest
    return versions


def rely(warehouse: Warehouse, query: str, results: int | None = None, latest: int | None = None) -> None:
    """Tables of a query that were mended are as they are now; they are opened when rows come next."""
    table = _existing(warehouse)
    ends_by_query = {} if table is None else _ends_in(table)
    if table is not None and query in ends_by_query:
        before = ends_by_query[query]
        mended = LogEnds(UNSURE, before.results if results is None else results,
                         before.latest if latest is None else latest)
        table.commit(metadata=_metadata({**ends_by_query, query: mended}))


def _metadata(ends_by_query: Mapping[str, LogEnds]) -> dict[str, str]:
    return {ENDS: json.dumps({query: astuple(ends) for query, ends in ends_by_query.items()})}


def tidy(warehouse: Warehouse) -> None:
    """Makes one file of many small ones, in the order in which they are asked for; nothing else changes."""
    table = _existing(warehouse)
    if table is not None:
        small_tables.merge(table, "query, boundary, revision", _metadata(_ends_in(table)))


def boundaries(warehouse: Warehouse, query: str) -> list[int]:
    """At which the query has a published answer, in order."""
    rows = _ask(warehouse,
                f"SELECT DISTINCT epoch_us(boundary) AS t FROM published WHERE query = {string(query)} ORDER BY t")
    return [boundary for boundary, in rows]


def last_batch(warehouse: Warehouse) -> int:
    """The newest of which anything is published."""
    (number,), = _ask(warehouse, "SELECT max(batch) FROM published")
    return int(number)


def last_boundaries(warehouse: Warehouse) -> dict[str, int]:
    """By query: the last boundary at which it has a published answer."""
    return dict(_ask(warehouse, "SELECT query, epoch_us(max(boundary)) FROM published GROUP BY 1"))


def last_publications(warehouse: Warehouse) -> dict[str, Publication]:
    """By query: what was published of its last boundary, as it was last revised."""
    rows = _ask(warehouse, """SELECT query, epoch_us(boundary), "rows", epoch_us(published_at), batch, revision, cause
        FROM published JOIN (SELECT query, max(boundary) AS boundary FROM published GROUP BY query)
        USING (query, boundary) ORDER BY revision""")
    return {row[0]: Publication(*row) for row in rows}


def _ask(warehouse: Warehouse, sql: str) -> list[tuple[Any, ...]]:
    table = _existing(warehouse)
    return [] if table is None else ask(table, "published", sql)
