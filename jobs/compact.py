"""What keeps reads from growing with the number of batches: small files become one, what left state leaves the disk; answers do not change.

Runs between batches under the pipeline's lock. A table changes in one Delta version, so a crash in between changes nothing; each time is
a row of warehouse/ledger/maintenance.
"""
from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from jobs import failpoints, kernel, places, tables
from jobs.batch import Answer, state_folder
from jobs.tables import File, Table
from jobs.work import write_file
from optimizer.compaction import compaction
from optimizer.lowering import Lowering
from optimizer.program import sets
from optimizer.shape import shape

if TYPE_CHECKING:
    from jobs.runner import Runtime

STATE_FILES = 24             # files of a state set before they are merged: reading one costs about a millisecond
SMALL_FILES = 64             # the same for small files of streams and results
SMALL = 8 * 2**20            # bytes; a larger file stays as it is
TOGETHER = 128 * 2**20       # bytes of small files merged at once
GRACE = 3600.0               # seconds that a file no table names stays
LOG = pa.schema([("table", pa.string()), ("files", pa.int64()), ("rows", pa.int64()), ("at", pa.timestamp("us", "UTC"))])


@dataclass(frozen=True)
class Item:
    """Files of one table to be merged by a statement over `files`."""

    path: str
    folder: str
    files: tuple[str, ...]
    sql: str


def compact(rt: Runtime, made: Iterable[Answer]) -> None:
    """Merges whatever has become too many files, in one Spark job."""
    made = [a for a in made if a.failed is None]
    items = [i for a in made for i in _state_items(rt, a)] + [i for path, column in _plain_tables(rt, made) for i in _plain_item(rt, path, column)]
    if not items:
        return
    failpoints.at("compact.before")
    for item, file in zip(items, rt.tasks.map(merge, items)):
        rt.table(item.path).commit([file] if file else [], [os.path.basename(f) for f in item.files], metadata={"forebay.compaction": str(len(item.files))})
        failpoints.at("compact.after")
        _note(rt, item, file)
        discard(rt, [(item.path, [os.path.basename(f) for f in item.files])] if item.path.startswith("state/") else [])


def merge(item: Item) -> File | None:
    """In a task: the merged file, None where nothing is left."""
    con = kernel.connect()
    try:
        con.execute(f"CREATE TEMP VIEW files AS SELECT * FROM read_parquet({kernel.files(con, item.files)})")
        return next(iter(write_file(con, item.sql, item.folder, "merged")), None)
    finally:
        con.close()


def _state_items(rt: Runtime, answer: Answer) -> list[Item]:
    work = answer.work
    low = Lowering(shape(work.query), work.plan, narrow=False)
    found = []
    for name, columns in sets(low).items():
        path, ends = state_folder(work, name), next((c for c in ("_out", "_e") if c in dict(columns)), None)
        table = rt.table(path)
        if ends and len(table.files()) > STATE_FILES:
            found.append(Item(path, table.path, _paths(table, table.files()), compaction(low, name, "files", work.due[-1])))
    return found


def _plain_tables(rt: Runtime, made: Iterable[Answer]) -> list[tuple[str, str]]:
    streams = {i.source for a in made for i in a.work.query.inputs if i.is_stream}
    return [(f"streams/{s}", "_boundary") for s in sorted(streams)] + [(a.work.standing.table, "boundary") for a in made if a.rows is not None or a.files]


def _plain_item(rt: Runtime, path: str, column: str) -> list[Item]:
    """The oldest small files of a table that only grows, in the order of its boundaries."""
    if not tables.exists(places.join(rt.pipeline.warehouse, path)):
        return []
    table = rt.table(path)
    small = sorted((f for f in table.files() if f.size < SMALL), key=lambda f: f.low.get(column, 0))
    if len(small) <= SMALL_FILES or table.features:
        return []
    chosen: list[File] = []
    for file in small:
        if sum(f.size for f in chosen) + file.size <= TOGETHER:
            chosen.append(file)
    return [Item(path, table.path, _paths(table, chosen), f"SELECT * FROM files ORDER BY {column}")]


def _paths(table: Table, files: Iterable[File]) -> tuple[str, ...]:
    return tuple(places.join(table.path, f.path) for f in files)


def _note(rt: Runtime, item: Item, file: File | None) -> None:
    log = tables.create(places.join(rt.pipeline.warehouse, "ledger", "maintenance"), LOG)
    log.append(pa.Table.from_pylist([{"table": item.path, "files": len(item.files), "rows": file.rows if file else 0, "at": rt.clock()}], schema=LOG))


def discard(rt: Runtime, gone: list[tuple[str, list[str]]]) -> None:
    """Files that left state with a committed change: private, so nothing reads them any more."""
    for path, names in gone:
        for name in names:
            places.delete(places.join(rt.pipeline.warehouse, path, name))


def sweep(rt: Runtime) -> None:
    """State that no query stands on (of plans that were left), and files no table names (of tasks that ran twice, of crashes)."""
    last, root = rt.ledger.last(), places.join(rt.pipeline.warehouse, "state")
    kept = {places.join(root, name, str(s.epoch)) for name, s in (last[2] if last else {}).items()}
    for epoch in [places.join(root, q, e) for q in _listed(root) for e in _listed(places.join(root, q))]:
        if epoch not in kept:
            if _old(epoch):
                places.delete_folder(epoch)
            continue
        for folder in (places.join(epoch, s) for s in _listed(epoch)):
            named = {f.path for f in tables.open_table(folder).files()} if tables.exists(folder) else set()
            for name in _listed(folder):
                if name.endswith(".parquet") and name not in named and _old(places.join(folder, name)):
                    places.delete(places.join(folder, name))


def counts(table: Table, after: int, upto: int) -> list[tuple[int, int]]:
    """Rows by the boundary that first counts them, after < boundary ≤ upto."""
    found, mixed = [], []
    for file in table.files():
        low, high = file.low.get("_boundary"), file.high.get("_boundary")
        if low is not None and low == high:
            found += [(low, file.rows)] if after < low <= upto else []
        elif high is None or low is None or (high > after and low <= upto):
            mixed.append(places.join(table.path, file.path))
    if mixed:
        con = kernel.shared()
        sql = f"SELECT epoch_us(_boundary), count(*) FROM read_parquet({kernel.files(con, tuple(mixed))}) GROUP BY 1"
        found += [(b, n) for b, n in con.execute(sql).fetchall() if after < b <= upto]
    return found


def _old(path: str) -> bool:
    """Whether nothing in it is so young that a runner on another machine, which the lock does not stop, may be about to commit it."""
    return time.time() - places.newest(path) > GRACE


def _listed(path: str) -> list[str]:
    return [n for n in places.listed(path) if not n.startswith("_delta_log")]
