"""What keeps reads from growing with the number of batches: small files become one, what left state leaves the disk;
answers do not change.

Runs between batches under the pipeline's lock. A table changes in one Delta version, so a crash in between changes
nothing; each time is a row of warehouse/ledger/maintenance.
"""
from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from jobs.batch.batch import Answer
from jobs.batch.shared import Shared
from jobs.batch.works import state_folder
from jobs.engine import kernel
from jobs.engine.work import write_file
from jobs.ledger.open_pipeline import HANDOVER, OpenPipeline
from jobs.storage import failpoints, places, tables
from jobs.storage.tables import File, Table
from optimizer.expression.dialect import identifier
from optimizer.plan.lowering import Lowering
from optimizer.plan.tree import merge_files, state_sets
from optimizer.query.shape import shape

STATE_FILES = 24             # files of a state set before they are merged: reading one costs about a millisecond
SMALL_FILES = 64             # the same for small files of streams and results
SMALL = 8 * 2**20            # bytes; a larger file stays as it is
TOGETHER = 128 * 2**20       # bytes of small files merged at once
SWEEP_EVERY = 900.0          # seconds between two looks for files that no table names, or names no more
GRACE = 3600.0               # seconds that a file no table names stays
GRACE_HOURS = 1              # the same for files that left a table people read: a reader may hold an earlier version
KEEP = "keep"                # under this name a table says up to where rows may have left it
LOG_PATH = "ledger/maintenance"
LOG = pa.schema([("table", pa.string()), ("files", pa.int64()), ("rows", pa.int64()), ("at", pa.timestamp("us",
                                                                                                          "UTC"))])


@dataclass(frozen=True)
class MergeOrder:
    """Files of one table to be merged by a statement over `files`."""

    path: str
    folder: str
    files: tuple[str, ...]
    sql: str
    horizon: int = -1


def compact(pipe: OpenPipeline, made: Iterable[Answer], horizons: Mapping[str, int],
            groups: Iterable[Shared] = ()) -> None:
    """Merges whatever has become too many files, in one Spark job.

    Rows of a table that are older than its horizon need not stay.
    """
    made = [a for a in made if a.failed is None]
    plain = dict.fromkeys([*_plain_tables(made), *_group_tables(groups)])
    items = [i for a in made for i in _state_items(pipe, a)
             ] + [i for path, column in plain for i in _plain_item(pipe, path, column, horizons)]
    if not items:
        return
    failpoints.at("compact.before")
    for item, file in zip(items, pipe.tasks.map(merge, items)):
        table, names = pipe.table(item.path), [os.path.basename(f) for f in item.files]
        table.commit([file] if file else [], names,
                     gone_until(table, item.horizon) if item.horizon > 0 else None,
                     {"forebay.compaction": str(len(names))})
        failpoints.at("compact.after")
        note(pipe, item.path, len(names), file.rows if file else 0)
        discard(pipe, [(item.path, names)] if item.path.startswith("state/") else [])


def gone_until(table: Table, horizon: int) -> tuple[str, int]:
    """What a commit that lets rows go says; the time never goes back, also when `keep` is made longer."""
    return KEEP, max(horizon, table.transaction(KEEP))


def merge(item: MergeOrder) -> File | None:
    """In a task: the merged file, None where nothing is left."""
    con = kernel.connect()
    try:
        con.execute(f"CREATE TEMP VIEW files AS SELECT * FROM read_parquet({kernel.files(con, item.files)})")
        return next(iter(write_file(con, item.sql, item.folder, "merged")), None)
    finally:
        con.close()


def take_over(pipe: OpenPipeline, streams: Iterable[str]) -> None:
    """Files of streams that others have put together anew become ours: theirs have bounds that leave NaN out, which the
    engine would believe, or times cut to milliseconds. A commit of ours afterwards says that they were looked at."""
    for path in (f"streams/{name}" for name in streams if tables.exists(pipe.path("streams", name))):
        table = pipe.table(path)
        files = table.written_outside()
        items = [
            MergeOrder(path, table.path, _paths(table, part), "SELECT * FROM files ORDER BY _boundary")
            for part in _parts(files)
        ]
        written = [file for file in pipe.tasks.map(merge, items) if file] if items else []
        if items:
            table.commit(written, [f.path for f in files], None, {"forebay.compaction": str(len(files))})
            note(pipe, path, len(files), sum(f.rows for f in written))


def _parts(files: Iterable[File]) -> list[list[File]]:
    """Files that one task merges."""
    parts: list[list[File]] = []
    for file in sorted(files, key=lambda f: f.low.get("_boundary", 0)):
        if not parts or sum(f.size for f in parts[-1]) + file.size > TOGETHER:
            parts.append([])
        parts[-1].append(file)
    return parts


def _state_items(pipe: OpenPipeline, answer: Answer) -> list[MergeOrder]:
    work = answer.work
    low = Lowering(shape(work.query), work.plan, narrow=False)
    found = []
    for kept in state_sets(low):
        table = pipe.table(state_folder(work, kept.name))
        if kept.ends and len(table.files()) > STATE_FILES:
            merging = merge_files(low, kept.name, "files", work.due[-1])
            found.append(MergeOrder(state_folder(work, kept.name), table.path, _paths(table, table.files()), merging))
    return found


def _group_tables(groups: Iterable[Shared]) -> list[tuple[str, str]]:
    streams = {name for s in groups for name in s.family.streams}
    return [(f"streams/{s}", "_boundary")
            for s in sorted(streams)] + [(path, "boundary") for s in groups for path, _ in s.rows]


def _plain_tables(made: Iterable[Answer]) -> list[tuple[str, str]]:
    streams = {i.source for a in made for i in a.work.query.inputs if i.is_stream}
    return [(f"streams/{s}", "_boundary") for s in sorted(streams)
            ] + [(a.work.query_state.table, "boundary") for a in made if a.rows is not None or a.files]


def _plain_item(pipe: OpenPipeline, path: str, column: str, horizons: Mapping[str, int]) -> list[MergeOrder]:
    """The oldest small files of a table that only grows, in the order of its boundaries."""
    if not tables.exists(places.join(pipe.pipeline.warehouse, path)):
        return []
    table = pipe.table(path)
    small = sorted((f for f in table.files() if f.size < SMALL), key=lambda f: f.low.get(column, 0))
    if len(small) <= SMALL_FILES or table.features:
        return []
    stamp = pipe.pipeline.streams[path.removeprefix("streams/")].event_time if path.startswith("streams/") else column
    chosen: list[File] = []
    for file in small:
        if sum(f.size for f in chosen) + file.size <= TOGETHER:
            chosen.append(file)
    horizon = _staying(table, stamp, chosen, horizons.get(path, -1))
    where = f"WHERE epoch_us({identifier(stamp)}) >= {horizon}" if horizon > 0 else ""
    return [
        MergeOrder(path, table.path, _paths(table, chosen), f"SELECT * FROM files {where} ORDER BY {column}", horizon)
    ]


def _staying(table: Table, column: str, chosen: list[File], horizon: int) -> int:
    """Rows before this need not be in the merged file.

    −1: all stay. A boundary must not leave in part: no other file may have older rows.
    """
    others = {f.path for f in table.files()} - {f.path for f in chosen}
    old = [f for f in table.files() if f.low.get(column, 0) < horizon]
    return horizon if old and not any(f.path in others for f in old) else -1


def _paths(table: Table, files: Iterable[File]) -> tuple[str, ...]:
    return tuple(places.join(table.path, f.path) for f in files)


def note(pipe: OpenPipeline, path: str, files: int, rows: int) -> None:
    """So many files of a table were replaced by one of so many rows, or left."""
    row = {"table": path, "files": files, "rows": rows, "at": pipe.clock()}
    pipe.table(LOG_PATH, LOG).append(pa.Table.from_pylist([row], schema=LOG), most=SMALL_FILES)


def discard(pipe: OpenPipeline, gone: list[tuple[str, list[str]]]) -> None:
    """Files that left state with a committed change: private, so nothing reads them any more."""
    for path, names in gone:
        for name in names:
            places.delete(places.join(pipe.pipeline.warehouse, path, name))


def sweep_seldom(pipe: OpenPipeline) -> None:
    """Not at every run: a look opens each table, whatever there is to find, so its price grows with the queries."""
    stamp = pipe.pipeline.beside(".swept")
    if os.path.exists(stamp) and time.time() - os.path.getmtime(stamp) < SWEEP_EVERY:
        return
    sweep(pipe)
    os.makedirs(os.path.dirname(stamp), exist_ok=True)
    with open(stamp, "w", encoding="utf-8"):
        pass


def sweep(pipe: OpenPipeline) -> None:
    """State that no query stands on (of plans that were left), and files no table names (of tasks that ran twice, of
    crashes).
    """
    last, root = pipe.ledger.last(), places.join(pipe.pipeline.warehouse, "state")
    kept = {places.join(root, name, str(s.epoch)) for name, s in (last.states if last else {}).items()}
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
    for path in (pipe.path(HANDOVER, name) for name in places.listed(pipe.path(HANDOVER))):
        if _old(path):
            places.delete(path)
    _sweep_read(pipe)


def _sweep_read(pipe: OpenPipeline) -> None:
    """Of tables that people read, the ledger's among them: what compaction and `keep` took out, once nobody can be
    reading it.
    """
    for kind in ("streams", "quarantine", "results", "ledger"):
        folder = places.join(pipe.pipeline.warehouse, kind)
        for name in _listed(folder):
            if tables.exists(path := places.join(folder, name)):
                table = tables.open_table(path)
                discard(pipe, [(f"{kind}/{name}", [*table.left(GRACE_HOURS), *_unnamed(table)])])


def _unnamed(table: Table) -> list[str]:
    """Files that no commit names or took out lately: of tasks that ran twice, of crashes, of commits that are long
    forgotten.
    """
    named = {f.path for f in table.files()} | set(table.left(0))
    return [
        n for n in places.listed(table.path)
        if n.endswith(".parquet") and n not in named and _old(places.join(table.path, n))
    ]


def trim_logs(pipe: OpenPipeline) -> None:
    """Checkpoints where they are due, of every table that is open."""
    for table in (*pipe.warehouse.open_tables(), pipe.ledger.changes, pipe.ledger.batches):
        if table.stands():
            table.trim()


def _old(path: str) -> bool:
    """Whether nothing in it is so young that a runner on another machine, which the lock does not stop, may be about to
    commit it.
    """
    return time.time() - places.newest(path) > GRACE


def _listed(path: str) -> list[str]:
    return [n for n in places.listed(path) if not n.startswith("_delta_log")]
