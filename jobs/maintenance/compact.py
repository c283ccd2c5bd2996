"""What keeps reads from growing with the number of batches: small files become one, what left state leaves the disk;
answers do not change.

Runs between batches under the pipeline's lock. A table changes in one Delta version, so a crash in between changes
nothing; each time is a row of warehouse/ledger/maintenance.
"""
from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from jobs.batch.batch import Answer
from jobs.batch.shared import Shared
from jobs.batch.works import state_folder
from jobs.engine import kernel
from jobs.engine.work import write_file
from jobs.ledger import published
from jobs.ledger.open_pipeline import HANDOVER, OpenPipeline
from jobs.pipeline.model import HOUR, Pipeline
from jobs.storage import failpoints, places, tables
from jobs.storage.tables import File, Table
from optimizer.expression.dialect import identifier
from optimizer.plan.lowering import Lowering
from optimizer.plan.program import BEGINNING
from optimizer.plan.tree import merge_files, state_sets
from optimizer.query.shape import shape
from optimizer.statistics.cardinality import MERGED

STATE_FILES = MERGED         # files of any state set before they are merged: reading one costs about a millisecond
SMALL_FILES = 64             # the same for small files of streams and results
WAITING_FILES = 1024         # the same while complete boundaries wait, whose answers go first
SMALL = 8 * 2**20            # bytes; a larger file stays as it is
TOGETHER = 128 * 2**20       # bytes of small files merged at once
SWEEP_EVERY = 900.0          # seconds between two looks for files that no table names, or names no more
GRACE = 3600.0               # seconds that a file no table names stays
GRACE_HOURS = 1              # the same for files that left another table: a reader may hold an earlier version
KEEP = "keep"                # under this name a table says up to where rows may have left it
_OLD_ADDRESS = re.compile(r"^shared-|\.\d+$")      # of answers, before each query had one: moved by the first run
LOG_PATH = "ledger/maintenance"
LOG = pa.schema([("table", pa.string()), ("files", pa.int64()), ("rows", pa.int64()),
                 ("at", pa.timestamp("us", "UTC"))])


@dataclass(frozen=True)
class MergeOrder:
    """Files of one table to be merged by a statement over `files`."""

    path: str
    folder: str
    files: tuple[str, ...]
    sql: str
    horizon: int = -1
    label: str = "merged"       # with which the name of the file begins


def compact(pipe: OpenPipeline, query_answers: Iterable[Answer], horizons: Mapping[str, int],
            families: Iterable[Shared] = (), is_behind: bool = False) -> None:
    """Merges whatever has become too many files, in one Spark job.

    Rows of a table that are older than its horizon need not stay. `is_behind`: complete boundaries wait.
    """
    answers = [answer for answer in query_answers if answer.failed is None]
    orders: list[MergeOrder] = []
    for answer in answers:
        orders += _state_orders(pipe, answer)
    for path, column in _public_tables(answers, families):
        orders += _public_orders(pipe, path, column, horizons, WAITING_FILES if is_behind else SMALL_FILES)
    _merge(pipe, orders)


def compact_addresses(pipe: OpenPipeline, paths: Iterable[str], horizons: Mapping[str, int]) -> None:
    """The same for tables of answers, after rows came to them."""
    _merge(pipe, [order for path in paths for order in _public_orders(pipe, path, "boundary", horizons, SMALL_FILES)])


def _merge(pipe: OpenPipeline, orders: Sequence[MergeOrder]) -> None:
    if not orders:
        return
    failpoints.at("compact.before")
    for order, file in zip(orders, pipe.tasks.map(merge, orders)):
        table, names = pipe.table(order.path), [os.path.basename(path) for path in order.files]
        transaction = gone_until(table, order.horizon) if order.horizon > 0 else None
        table.commit([file] if file else [], names, transaction, {"forebay.compaction": str(len(names))},
                     changes_data=False)
        failpoints.at("compact.after")
        note(pipe, order.path, len(names), file.rows if file else 0)
        discard(pipe, [(order.path, names)] if order.path.startswith("state/") else [])


def gone_until(table: Table, horizon: int) -> tuple[str, int]:
    """The transaction of a commit that lets rows go: up to which time; it never goes back, also if `keep` grows."""
    return KEEP, max(horizon, table.transaction(KEEP))


def merge(order: MergeOrder) -> File | None:
    """In a task: the merged file, None where nothing is left."""
    con = kernel.connect()
    try:
        con.execute("SET preserve_insertion_order = true")      # where files are in order, nothing is sorted
        con.execute(f"CREATE TEMP VIEW files AS SELECT * FROM "
                    f"read_parquet({kernel.files(con, order.files)}, union_by_name = true)")
        return next(iter(write_file(con, order.sql, order.folder, order.label)), None)
    finally:
        con.close()


def take_over(pipe: OpenPipeline, streams: Iterable[str]) -> None:
    """Files of streams that others have put together anew become ours: theirs have bounds that leave NaN out, which the
    engine would believe, or times cut to milliseconds. A commit of ours afterwards says that they were looked at."""
    for path in (f"streams/{name}" for name in streams if tables.exists(pipe.path("streams", name))):
        table = pipe.table(path)
        files = table.written_outside()
        in_order = "SELECT * FROM files ORDER BY _boundary"
        orders = [MergeOrder(path, table.path, _paths(table, part), in_order) for part in _parts(files)]
        if orders:
            written = [file for file in pipe.tasks.map(merge, orders) if file]
            table.commit(written, [file.path for file in files], None, {"forebay.compaction": str(len(files))},
                         changes_data=False)
            note(pipe, path, len(files), sum(file.rows for file in written))


def _parts(files: Iterable[File]) -> list[list[File]]:
    """The files in groups, each small enough to be merged by one task."""
    parts: list[list[File]] = []
    for file in sorted(files, key=lambda f: f.low.get("_boundary", 0)):
        if not parts or sum(f.size for f in parts[-1]) + file.size > TOGETHER:
            parts.append([])
        parts[-1].append(file)
    return parts


def _state_orders(pipe: OpenPipeline, answer: Answer) -> list[MergeOrder]:
    work = answer.work
    low = Lowering(shape(work.query), work.plan, narrow=False)
    orders = []
    for state_set in state_sets(low):
        path = state_folder(work, state_set.name)
        table = pipe.table(path)
        if state_set.ends and len(table.files()) > min(state_set.most_files, STATE_FILES):
            since = min(file.high.get(state_set.ends, BEGINNING) for file in table.files())
            sql = merge_files(low, state_set.name, "files", work.due[-1], since)
            orders.append(MergeOrder(path, table.path, _paths(table, table.files()), sql))
    return orders


def _public_tables(answers: Iterable[Answer], families: Iterable[Shared]) -> list[tuple[str, str]]:
    """(table, column of its boundaries), each once: streams that were read, and results that were written.

    First of queries that run alone, then of families; the addresses of these come later (`compact_addresses`).
    """
    streams = {i.source for answer in answers for i in answer.work.query.inputs if i.is_stream}
    with_rows = [answer for answer in answers if answer.rows is not None or answer.files]
    alone = [(answer.work.query_state.address, "boundary") for answer in with_rows]
    streams_of_families = {stream for shared in families for stream in shared.family.streams}
    return list(dict.fromkeys([
        *((f"streams/{stream}", "_boundary") for stream in sorted(streams)), *alone,
        *((f"streams/{stream}", "_boundary") for stream in sorted(streams_of_families))]))


def _public_orders(pipe: OpenPipeline, path: str, column: str, horizons: Mapping[str, int],
                   few: int) -> list[MergeOrder]:
    """The oldest small files of a table that only grows, in the order of its boundaries; none while they are few.

    Where they are large enough together, each task that runs makes a file of its share.
    """
    if not tables.exists(places.join(pipe.pipeline.warehouse, path)):
        return []
    table = pipe.table(path)
    small = sorted((f for f in table.files() if f.size < SMALL), key=lambda f: f.low.get(column, 0))
    if len(small) <= few or table.features:
        return []
    stamp = pipe.pipeline.streams[path.removeprefix("streams/")].event_time if path.startswith("streams/") else column
    chosen: list[File] = []
    for file in small:
        if sum(f.size for f in chosen) + file.size <= TOGETHER:
            chosen.append(file)
    horizon = _staying(table, stamp, chosen, horizons.get(path, -1))
    where = f"WHERE epoch_us({identifier(stamp)}) >= {horizon}" if horizon > 0 else ""
    # Rows leave in one commit, or readers would see a boundary in part.
    parts = 1 if horizon > 0 else min(pipe.tasks.width, max(sum(file.size for file in chosen) // SMALL, 1))
    return [MergeOrder(path, table.path, _paths(table, part), f"SELECT * FROM files {where} {_order(part, column)}",
                       horizon) for part in _shares(chosen, parts)]


def _shares(files: list[File], count: int) -> list[list[File]]:
    """Files in order as so many runs of about the same size."""
    shares: list[list[File]] = [[] for _ in range(count)]
    size, so_far = max(sum(file.size for file in files), 1), 0
    for file in files:
        shares[min(so_far * count // size, count - 1)].append(file)
        so_far += file.size
    return [share for share in shares if share]


def _order(files: list[File], column: str) -> str:
    """Nothing to sort where the files follow one another and each is of one boundary."""
    is_in_order = all(column in file.low and file.low[column] == file.high.get(column) for file in files)
    return "" if is_in_order else f"ORDER BY {column}"


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
    """Deletes state that no query rests on (of plans that were left), and files that no table names (of tasks that ran
    twice, of crashes).
    """
    last, root = pipe.ledger.last(), places.join(pipe.pipeline.warehouse, "state")
    states = list(last.states.items()) if last else []
    states += [(query, one.state) for query, one in last.tried.items() if one.state is not None] if last else []
    epochs_in_use = {places.join(root, query, str(state.epoch)) for query, state in states}
    for query in _listed(root):
        for epoch in _listed(places.join(root, query)):
            path = places.join(root, query, epoch)
            if path in epochs_in_use:
                _sweep_state(path)
            elif _is_old(path):
                places.delete_folder(path)
    for name in places.listed(pipe.path(HANDOVER)):
        path = pipe.path(HANDOVER, name)
        if _is_old(path):
            places.delete(path)
    _sweep_public(pipe)


def _sweep_state(epoch: str) -> None:
    """Files that no table of a query's state names."""
    for state_set in _listed(epoch):
        folder = places.join(epoch, state_set)
        named = {file.path for file in tables.open_table(folder).files()} if tables.exists(folder) else set()
        for name in _listed(folder):
            path = places.join(folder, name)
            if name.endswith(".parquet") and name not in named and _is_old(path):
                places.delete(path)


def _sweep_public(pipe: OpenPipeline) -> None:
    """Deletes files that left tables that people read, the ledger's among them, once no reader can need them: of
    answers when `keep_versions` is over for the last version that has them.
    """
    answers, is_moved = versions_hours(pipe.pipeline), published.upto(pipe.warehouse) is not None
    for kind in ("streams", "quarantine", "results", "latest", "ledger"):
        hours = answers if kind in ("results", "latest") else GRACE_HOURS
        folder = places.join(pipe.pipeline.warehouse, kind)
        for name in _listed(folder):
            path = places.join(folder, name)
            if kind == "results" and _OLD_ADDRESS.search(name):
                if is_moved:
                    places.delete_folder(path)
            elif tables.exists(path):
                table = tables.open_table(path)
                named = {file.path for file in table.files()} | set(table.left(0))
                # Of tasks that ran twice, of crashes, of commits that are long forgotten.
                unnamed = [file for file in places.listed(path) if file.endswith(".parquet") and file not in named]
                old = [file for file in unnamed if _is_old(places.join(path, file))]
                discard(pipe, [(f"{kind}/{name}", [*table.left(hours), *old])])


def versions_hours(pipeline: Pipeline) -> int:
    """Delta counts the time that replaced files stay in whole hours."""
    return -(-pipeline.keep_versions // HOUR)


def trim_logs(pipe: OpenPipeline) -> None:
    """Checkpoints where they are due, of every table that is open."""
    for table in (*pipe.warehouse.open_tables(), pipe.ledger.changes, pipe.ledger.batches):
        if table.stands():
            table.trim()


def _is_old(path: str) -> bool:
    """Whether nothing in it is so young that a runner on another machine, which the lock does not stop, may be about to
    commit it.
    """
    return time.time() - places.newest(path) > GRACE


def _listed(path: str) -> list[str]:
    return [n for n in places.listed(path) if not n.startswith("_delta_log")]
