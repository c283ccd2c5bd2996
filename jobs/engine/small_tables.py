"""Small tables beside the data (inputs, statistics, the ledger's): questions to them, each read whole, and their files
merged."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobs.engine import kernel
from jobs.storage import places, tables
from jobs.storage.tables import Conflict, Table

MANY = 64                # small files of a table before they are merged
SMALL = 2**20            # bytes; a larger file stays as it is


def ask(table: Table, name: str, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a question that calls the table by `name`; none while it has no files.

    `ask(files, "files", "SELECT max(ingest) FROM files")` is [(7,)].
    """
    paths = table.paths
    if not paths:
        return []
    con = kernel.shared()
    try:
        return con.execute(f"WITH {name} AS (FROM read_parquet({kernel.files(con, paths)})) {sql}").fetchall()
    finally:
        con.close()


def merge(table: Table, order: str, metadata: Mapping[str, str], many: int = MANY) -> bool:
    """One file, in this order, of many small ones; left for the next time where somebody else commits meanwhile.

    `metadata` are what the last commit says, and go on to be said. Gives whether it was done.
    """
    small = [file for file in table.files() if file.size < SMALL]
    if len(small) <= many:
        return False
    con = kernel.shared()
    paths = tuple(places.join(table.path, file.path) for file in small)
    rows = kernel.table(con, f"SELECT * FROM read_parquet({kernel.files(con, paths)}) ORDER BY {order}")
    con.close()
    try:
        table.commit([tables.write(table.path, rows.cast(table.schema), tables.unique("merged"))],
                     [file.path for file in small], None, metadata, changes_data=False)
    except Conflict:
        return False
    return True
