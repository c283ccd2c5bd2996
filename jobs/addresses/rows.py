"""Copies of rows: from the private tables of queries that share to their addresses, and of last answers to `latest/`.

Few rows are copied here, many by tasks; none is computed.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from jobs.addresses.columns import BOUNDARY
from jobs.addresses.place import Place
from jobs.batch.batch import COMMITTERS
from jobs.batch.large import SHARE
from jobs.batch.shared import table_of
from jobs.engine import kernel, memory, row_counts
from jobs.engine.tasks import Tasks
from jobs.engine.work import write_file
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.maintenance import compact
from jobs.maintenance.compact import MergeOrder
from jobs.pipeline.schema import INSTANT
from jobs.storage import places, tables
from jobs.storage.tables import File, Table
from optimizer.expression.dialect import identifier, string
from optimizer.sharing.group import OWNER


@dataclass(frozen=True)
class Copy:
    """A query's rows for a table in this folder, with these columns."""

    query: str
    folder: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class CopyOrder:
    """For one task: rows of boundaries after < t <= upto, of these queries among others in the same private files."""

    files: tuple[str, ...]
    copies: tuple[Copy, ...]
    after: int
    upto: int
    label: str


def copied(order: CopyOrder) -> list[File | None]:
    """In a task: a file for each query, None where it has no rows. The private files are read once for all of them;
    once each, where their rows are more than the task's memory.
    """
    if len(order.copies) > 1:
        try:
            return _copied_from(order, "TABLE")
        except kernel.EXHAUSTED:
            pass
    return _copied_from(order, "VIEW")


def _copied_from(order: CopyOrder, kind: str) -> list[File | None]:
    con = kernel.shared()
    try:
        queries = ", ".join(string(copy.query) for copy in order.copies)
        con.execute(f"CREATE TEMP {kind} mine AS SELECT * FROM read_parquet({kernel.files(con, order.files)}) WHERE "
                    f"{OWNER} IN ({queries}) AND epoch_us({BOUNDARY}) > {order.after} AND epoch_us({BOUNDARY}) <= "
                    f"{order.upto}")
        return [_copied_rows(con, copy, order.label) for copy in order.copies]
    finally:
        con.close()


def _copied_rows(con: kernel.Connection, copy: Copy, label: str) -> File | None:
    columns = ", ".join(map(identifier, copy.columns))
    rows = f"SELECT {columns} FROM mine WHERE {OWNER} = {string(copy.query)} ORDER BY {BOUNDARY}"
    return next(iter(write_file(con, rows, copy.folder, label)), None)


@dataclass(frozen=True)
class SharedRows:
    """Rows of queries that share, of boundaries that are to become public.

    `few` are here by query, in the order of their boundaries; of `many` there are the private files that hold them,
    among those of other queries and boundaries.
    """

    after: int
    upto: int
    few: Mapping[str, pa.Table] = field(default_factory=dict)
    many: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def has_rows(self, query: str) -> bool:
        return query in self.many or query in self.few and self.few[query].num_rows > 0

    def without_rows(self, sharing: Iterable[Place]) -> SharedRows:
        """The same, and of these queries that share it is known that they have no more."""
        empty = {place.state.name: place.latest_schema.empty_table() for place in sharing
                 if place.state.name not in self.many}
        return replace(self, few={**empty, **self.few})

    def orders(self, copies: Sequence[Copy], after: int, upto: int, label: str, width: int) -> list[CopyOrder]:
        """For tasks: the rows of these boundaries, of queries whose rows are in the same files; as many as there are
        tasks, and no more rows than a task may have at once.
        """
        copies_by_files: dict[tuple[str, ...], list[Copy]] = {}
        for copy in copies:
            copies_by_files.setdefault(self.many[copy.query], []).append(copy)
        orders = []
        for files, listed in copies_by_files.items():
            size = sum(places.size_and_time(file)[0] for file in files)
            count = min(max(width, -(-size // SHARE)), len(listed))
            orders += [CopyOrder(files, tuple(listed[n::count]), after, upto, label) for n in range(count)]
        return orders


def shared_rows(pipe: OpenPipeline, private: Iterable[Table], after: int, upto: int,
                places_by_query: Mapping[str, Place]) -> SharedRows:
    """What the private tables have of boundaries after < t <= upto."""
    few: dict[str, pa.Table] = {}
    many: dict[str, tuple[str, ...]] = {}
    left = memory.partials_of_driver(pipe.tasks.settings)
    for table in private:
        files = [file for file in table.files() if file.may_hold(BOUNDARY, after + 1, upto)]
        paths = tuple(places.join(table.path, file.path) for file in files)
        left -= sum(file.size for file in files)
        if left < 0:
            path = table.path.rstrip("/").rpartition("/")[2]
            owners = [name for name, place in places_by_query.items()
                      if table_of(place.state.columns).endswith(f"/{path}")]
            many |= dict.fromkeys(owners, paths)
        elif paths:
            schema = table.schema
            contents = [_read(path).select(schema.names).cast(schema) for path in paths]
            few |= _by_query(pa.concat_tables(contents), after, upto)
    return SharedRows(after, upto, few, many)


def _read(path: str) -> pa.Table:
    return pq.ParquetFile(places.opened(path)).read()


def _by_query(rows: pa.Table, after: int, upto: int) -> dict[str, pa.Table]:
    stamps = pc.cast(rows[BOUNDARY], pa.int64())
    within = pc.and_(pc.greater(stamps, after), pc.less_equal(stamps, upto))
    if not pc.all(within).as_py():
        rows, stamps = rows.filter(within), stamps.filter(within)
    # By numbers, one column after the other: several times as fast as by strings, and as stable.
    by_time = pc.sort_indices(stamps)
    owners = pc.dictionary_encode(rows[OWNER].combine_chunks()).indices
    rows = rows.take(by_time.take(pc.sort_indices(owners.take(by_time))))
    runs = pc.run_end_encode(rows[OWNER].combine_chunks())
    contents, begin, rows_by_query = rows.drop_columns([OWNER]), 0, {}
    for query, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist()):
        rows_by_query[query] = contents.slice(begin, end - begin)
        begin = end
    return rows_by_query


def address_files(tasks: Tasks, shared: SharedRows, places_by_query: Mapping[str, Place],
                  label: str) -> dict[str, File | None]:
    """By query: a file of its rows for its address; None where it has none after all."""
    few = {name: place for name, place in places_by_query.items() if name in shared.few}
    files = _at_once(few, lambda name: _written(few[name].folder, few[name].schema, shared.few[name], label))
    many = []
    for name, place in places_by_query.items():
        if name not in few:
            # A private table has the columns of the present text; those of the address may be more.
            columns = tuple(column for column in place.schema.names if column in _columns(shared.many[name]))
            many.append(Copy(name, place.folder, columns))
    return files | _copied_by_tasks(tasks, shared.orders(many, shared.after, shared.upto, label, tasks.width))


def _columns(paths: Sequence[str]) -> frozenset[str]:
    return frozenset(pq.ParquetFile(places.opened(paths[0])).schema_arrow.names) if paths else frozenset()


def _at_once(names: Iterable[str], write: Callable[[str], File | None]) -> dict[str, File | None]:
    """Files by query: the writer of each leaves the interpreter to the others."""
    listed = tuple(names)
    with ThreadPoolExecutor(COMMITTERS) as pool:
        return dict(zip(listed, pool.map(write, listed)))


def _written(folder: str, schema: pa.Schema, rows: pa.Table, label: str) -> File | None:
    """Columns that only the table has are NULL there without being in the file."""
    if not rows.num_rows:
        return None
    present = pa.schema([schema.field(name) for name in rows.schema.names])
    return tables.write(folder, rows.cast(present), tables.unique(label))


def _by_tasks(tasks: Tasks, orders: Sequence[MergeOrder]) -> dict[str, File | None]:
    return {order.path: file for order, file in zip(orders, tasks.map(compact.merge, orders))}


def _copied_by_tasks(tasks: Tasks, orders: Sequence[CopyOrder]) -> dict[str, File | None]:
    files: dict[str, File | None] = {}
    for order, of_order in zip(orders, tasks.map(copied, orders)):
        files |= {copy.query: file for copy, file in zip(order.copies, of_order)}
    return files


def latest_files(pipe: OpenPipeline, shared: SharedRows, places_by_query: Mapping[str, Place],
                 boundaries: Mapping[str, int], label: str,
                 address_files: Mapping[str, File | None]) -> dict[str, File | None]:
    """By query: a file with the rows of its last boundary; `address_files` are those that now come to the addresses."""
    few, orders = memory.partials_of_driver(pipe.tasks.settings), list[MergeOrder]()
    many: dict[int, list[Copy]] = {}      # by boundary
    writes: dict[str, Callable[[], File | None]] = {}
    for name, place in places_by_query.items():
        t, schema, folder = boundaries[name], place.latest_schema, place.latest_folder
        if name in shared.few or name in shared.many:
            files = [file] if (file := address_files.get(name)) is not None else []
        else:      # alone, or among others and nobody remembers; without rows so far it may have no table
            exists = tables.exists(place.folder)
            stored = pipe.warehouse.latest(place.state.address).files() if exists else ()
            files = [file for file in stored if file.may_hold(BOUNDARY, t, t)]
        paths = tuple(places.join(place.folder, file.path) for file in files)
        same_columns = name in shared.few and place.schema == schema
        if len(files) == 1 and _is_answer_at(files[0], paths[0], t, None if same_columns else schema):
            writes[name] = partial(_same_bytes, files[0], paths[0], folder, label)
        elif name in shared.many:
            many.setdefault(t, []).append(Copy(name, folder, tuple(schema.names)))
        elif name in shared.few:
            writes[name] = partial(_written, folder, schema, _at(shared.few[name], t), label)
        elif sum(file.size for file in files) > few:
            orders.append(_order_at(name, folder, paths, schema, t, label))
        else:
            writes[name] = partial(_written_at, folder, schema, paths, t, label)
    copies = [order for t, listed in many.items() for order in shared.orders(listed, t - 1, t, label, pipe.tasks.width)]
    return (_at_once(writes, lambda name: writes[name]()) | _by_tasks(pipe.tasks, orders)
            | _copied_by_tasks(pipe.tasks, copies))


def _is_answer_at(file: File, path: str, t: int, schema: pa.Schema | None) -> bool:
    """Whether a file of the address has the answer at t, and nothing else; `schema` None: it has the right columns."""
    if file.low.get(BOUNDARY) != t or file.high.get(BOUNDARY) != t:
        return False
    if schema is None:
        return True
    stored = pq.ParquetFile(places.opened(path)).schema_arrow
    return [(column.name, column.type) for column in stored] == [(column.name, column.type) for column in schema]


def _same_bytes(file: File, path: str, folder: str, label: str) -> File:
    """The same bytes, for the table beside the address."""
    name = tables.unique(label)
    places.copy(path, places.join(folder, name))
    return replace(file, path=name)


def _written_at(folder: str, schema: pa.Schema, paths: Sequence[str], t: int, label: str) -> File | None:
    contents = [_at(_read(path), t).select(schema.names) for path in paths]
    return _written(folder, schema, pa.concat_tables(contents), label) if contents else None


def _order_at(name: str, folder: str, paths: tuple[str, ...], schema: pa.Schema, t: int, label: str) -> MergeOrder:
    listed = ", ".join(map(identifier, schema.names))
    return MergeOrder(name, folder, paths, f"SELECT {listed} FROM files WHERE epoch_us({BOUNDARY}) = {t}", label=label)


def _at(rows: pa.Table, t: int) -> pa.Table:
    return rows.filter(pc.equal(rows[BOUNDARY], pa.scalar(t, pa.int64()).cast(INSTANT)))


def counted(shared: SharedRows, place: Place, query: str) -> dict[int, int]:
    """Rows by boundary."""
    if query in shared.few:
        runs = pc.run_end_encode(pc.cast(shared.few[query][BOUNDARY], pa.int64()).combine_chunks())
        ends = runs.run_ends.to_pylist()
        return {t: end - begin for t, begin, end in zip(runs.values.to_pylist(), [0, *ends], ends)}
    counts: Counter[int] = Counter()
    for boundary, count in row_counts.by_boundary(place.table(), shared.after, shared.upto, BOUNDARY):
        counts[boundary] += count
    return counts


def let_go(table: Table, upto: int) -> None:
    """Private files of which every row is public leave the table, and the disk."""
    names = [file.path for file in table.files() if file.high.get(BOUNDARY, upto + 1) <= upto]
    if names:
        table.commit((), names)
        for name in names:
            places.delete(places.join(table.path, name))
