"""The table at a query's address, with the columns that its present text needs; it is made, extended, widened, or its
rows are set aside where a new history begins.

Each step is one Delta version and is seen to be done by what the table then is, so a crash between two changes nothing.
"""
from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import pyarrow as pa

from jobs.engine import kernel
from jobs.engine.work import write_file
from jobs.ledger.addresses import Address, Column
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.pipeline.model import Pipeline
from jobs.pipeline.schema import INSTANT, arrow
from jobs.storage import failpoints, places
from jobs.storage.tables import File, Table
from optimizer.expression.dialect import identifier
from optimizer.query.windows import SECOND

FEED = {"delta.enableChangeDataFeed": "true"}
BOUNDARY = "boundary"


def properties(pipeline: Pipeline) -> dict[str, str]:
    """What makes a table one that people follow: its changes can be read as a feed, and a version stays for a while."""
    stays = f"interval {pipeline.keep_versions // SECOND} seconds"
    return {**FEED, "delta.logRetentionDuration": stays, "delta.deletedFileRetentionDuration": stays}


@lru_cache(maxsize=4096)
def schema_of(columns: tuple[Column, ...]) -> pa.Schema:
    """Of a table of answers with these columns."""
    return pa.schema([(BOUNDARY, INSTANT), *((name, arrow(kind)) for name, kind in columns)])


def prepared(pipe: OpenPipeline, address: Address) -> Table:
    """The table, as answers of the query's present text need it."""
    wanted = schema_of(address.columns)
    table = pipe.warehouse.latest(address.path, wanted, properties(pipe.pipeline))
    _follow(table, properties(pipe.pipeline))
    if address.before is not None:
        _begin_anew(pipe, table, address, wanted)
    _fit(table, wanted)
    return table


def _follow(table: Table, wanted: Mapping[str, str]) -> None:
    """Tables made before there was a feed, or with another `keep_versions`."""
    if not wanted.items() <= table.properties.items():
        table.set_properties(wanted)


def _begin_anew(pipe: OpenPipeline, table: Table, address: Address, wanted: pa.Schema) -> None:
    """Rows leave before the columns change, so that who follows the table sees them leave as they were."""
    if any(file.low.get(BOUNDARY, address.since) < address.since for file in table.files()):
        _set_aside(pipe, table, address)
        failpoints.at("address.set-aside")
        table.commit((), [file.path for file in table.files()])
        failpoints.at("address.set-aside")
    if not table.files() and table.schema != wanted:
        table.replace((), wanted)


def _set_aside(pipe: OpenPipeline, table: Table, address: Address) -> None:
    """The rows so far in a table of their own, as they are."""
    aside = pipe.table(str(address.before), table.schema, properties(pipe.pipeline))
    if not aside.files():
        for file in table.files():
            places.copy(places.join(table.path, file.path), places.join(aside.path, file.path))
        aside.commit(table.files())


def _fit(table: Table, wanted: pa.Schema) -> None:
    """Columns that are new are NULL in the rows so far; those of another type are written anew."""
    present = table.schema
    widened = [column.name for column in wanted if column.name in present.names
               and present.field(column.name).type != column.type]
    missing = [column for column in wanted if column.name not in present.names]
    if widened:
        fields = [wanted.field(column.name) if column.name in widened else column for column in present]
        schema = pa.schema([*fields, *missing])
        table.replace(_rewritten(table, schema), schema)
    elif missing:
        table.add_columns(pa.schema(missing))


def _rewritten(table: Table, schema: pa.Schema) -> list[File]:
    """A file for each file, in the same order."""
    files: list[File] = []
    con = kernel.connect()
    try:
        for path in table.paths:
            con.register("wanted", schema.empty_table())
            rows = f"SELECT * FROM wanted UNION ALL BY NAME SELECT * FROM read_parquet({kernel.files(con, (path,))})"
            columns = ", ".join(map(identifier, schema.names))
            files += write_file(con, f"SELECT {columns} FROM ({rows}) AS q", table.path, "widened")
    finally:
        con.close()
    return files
