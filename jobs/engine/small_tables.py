"""Questions to the small tables beside the data (inputs, statistics, the ledger's batches), each read whole."""
from __future__ import annotations

from typing import Any

from jobs.engine import kernel
from jobs.storage.tables import Table


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
