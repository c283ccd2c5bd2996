"""`ledger/boundaries`: a row for each time that a boundary of a query was published, also without rows.

A boundary is published when its row is here, and the row is written last: who reads it finds the answer at the query's
address.
"""
from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import pyarrow as pa

from jobs.engine import small_tables
from jobs.engine.small_tables import ask
from jobs.pipeline.warehouse import Warehouse
from jobs.storage import tables
from jobs.storage.tables import Table
from optimizer.expression.dialect import string

PATH = "ledger/boundaries"
STAMP = pa.timestamp("us", "UTC")
SCHEMA = pa.schema([("query", pa.string()), ("boundary", STAMP), ("revision", pa.int64()), ("rows", pa.int64()),
                    ("published_at", STAMP), ("cause", pa.string()), ("batch", pa.int64())])
UPTO = "forebay.published"      # the transaction that says up to which boundary everything is published
FRESH = "fresh"                      # cause: a batch
VERSIONS = "forebay.versions"        # the metadata of the last commit that name versions of tables


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


def opened(warehouse: Warehouse) -> Table:
    return warehouse.latest(PATH, SCHEMA)


def upto(warehouse: Warehouse) -> int | None:
    """The boundary up to which all that is committed is published; None: nothing, or the warehouse is an older one."""
    if not tables.exists(warehouse.path(PATH)):
        return None
    boundary = opened(warehouse).transaction(UPTO)
    return None if boundary < 0 else boundary


def enter(warehouse: Warehouse, publications: Iterable[Publication], boundary: int,
          versions: Mapping[str, int]) -> None:
    """From here on they are published, and with them everything up to the boundary.

    `versions` are those of the tables that have the answers: from here on they must be there.
    """
    rows = pa.Table.from_pylist([asdict(publication) for publication in publications], schema=SCHEMA)
    rows = rows.sort_by([("query", "ascending"), ("boundary", "ascending")])
    metadata = {VERSIONS: json.dumps({**relied(warehouse), **versions})}
    opened(warehouse).append(rows, (UPTO, boundary), metadata)


def relied(warehouse: Warehouse) -> dict[str, int]:
    """By path under the warehouse: the version of a table that published answers rest on."""
    if not tables.exists(warehouse.path(PATH)):
        return {}
    return dict(json.loads(str(opened(warehouse).metadata().get(VERSIONS, "{}"))))


def rely(warehouse: Warehouse, versions: Mapping[str, int]) -> None:
    """Tables that were mended are as they are now."""
    if tables.exists(warehouse.path(PATH)):
        opened(warehouse).commit(metadata={VERSIONS: json.dumps({**relied(warehouse), **versions})})


def tidy(warehouse: Warehouse) -> None:
    """Makes one file of many small ones, in the order in which they are asked for; nothing else changes."""
    if tables.exists(warehouse.path(PATH)):
        table = opened(warehouse)
        metadata = {VERSIONS: json.dumps(relied(warehouse))}
        small_tables.merge(table, "query, boundary, revision", metadata)


def boundaries(warehouse: Warehouse, query: str) -> list[int]:
    """At which the query has a published answer, in order."""
    if not tables.exists(warehouse.path(PATH)):
        return []
    rows = ask(opened(warehouse), "published",
               f"SELECT DISTINCT epoch_us(boundary) AS t FROM published WHERE query = {string(query)} ORDER BY t")
    return [boundary for boundary, in rows]


def last_batch(warehouse: Warehouse) -> int:
    """The newest of which anything is published."""
    (number,), = ask(opened(warehouse), "published", "SELECT max(batch) FROM published")
    return int(number)


def last_boundaries(warehouse: Warehouse) -> dict[str, int]:
    """By query: the last boundary at which it has a published answer."""
    if not tables.exists(warehouse.path(PATH)):
        return {}
    return dict(ask(opened(warehouse), "published", "SELECT query, epoch_us(max(boundary)) FROM published GROUP BY 1"))
