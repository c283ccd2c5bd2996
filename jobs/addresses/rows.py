"""Copies of rows: from the private tables of queries that share to their addresses, and of last answers to `latest/`.

Few rows are copied here, many by tasks; none is computed.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from jobs.addresses.columns import BOUNDARY, properties, schema_of
from jobs.batch.shared import table_of
from jobs.engine import memory
from jobs.engine.tasks import Tasks
from jobs.ledger.addresses import columns_of, latest_path
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import QueryState
from jobs.maintenance import compact
from jobs.maintenance.compact import MergeOrder
from jobs.pipeline.schema import INSTANT, arrow
from jobs.storage import places, tables
from jobs.storage.tables import File, Table
from optimizer.expression.dialect import identifier, string
from optimizer.sharing.group import OWNER


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

    @property
    def queries(self) -> frozenset[str]:
        return frozenset(self.few) | frozenset(self.many)

    def order(self, query: str, table: Table, label: str, columns: Sequence[str], after: int, upto: int) -> MergeOrder:
        """For a task: the query's rows of these boundaries, written for a table."""
        listed = ", ".join(map(identifier, columns))
        where = f"{OWNER} = {string(query)} AND epoch_us({BOUNDARY}) > {after} AND epoch_us({BOUNDARY}) <= {upto}"
        return MergeOrder(query, table.path, self.many[query], f"SELECT {listed} FROM files WHERE {where} "
                          f"ORDER BY {BOUNDARY}", label=label)


def shared_rows(pipe: OpenPipeline, private: Iterable[Table], after: int, upto: int,
                states: Mapping[str, QueryState]) -> SharedRows:
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
            owners = [name for name, state in states.items() if table_of(state.columns).endswith(f"/{path}")]
            many |= dict.fromkeys(owners, paths)
        elif paths:
            few |= _by_query(pa.concat_tables([_read(path) for path in paths]), after, upto)
    return SharedRows(after, upto, few, many)


def _read(path: str) -> pa.Table:
    return pq.ParquetFile(places.opened(path)).read()


def _by_query(rows: pa.Table, after: int, upto: int) -> dict[str, pa.Table]:
    stamps = pc.cast(rows[BOUNDARY], pa.int64())
    rows = rows.filter(pc.and_(pc.greater(stamps, after), pc.less_equal(stamps, upto)))
    rows = rows.sort_by([(OWNER, "ascending"), (BOUNDARY, "ascending")])
    runs = pc.run_end_encode(rows[OWNER].combine_chunks())
    contents, begin, rows_by_query = rows.drop_columns([OWNER]), 0, {}
    for query, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist()):
        rows_by_query[query] = contents.slice(begin, end - begin)
        begin = end
    return rows_by_query


def address_files(tasks: Tasks, shared: SharedRows, opened: Mapping[str, Table], label: str) -> dict[str, list[File]]:
    """By query: files of its rows in the table at its address."""
    orders = []
    files: dict[str, list[File]] = {name: [] for name in opened}
    for name, table in opened.items():
        if name in shared.few:
            files[name] = [_written(table, shared.few[name], label)]
        else:
            # The private table has the columns of the present text; those of the address may be more.
            columns = [column for column in table.schema.names if column in _columns(shared.many[name])]
            orders.append(shared.order(name, table, label, columns, shared.after, shared.upto))
    return files | _by_tasks(tasks, orders)


def _columns(paths: Sequence[str]) -> frozenset[str]:
    return frozenset(pq.ParquetFile(places.opened(paths[0])).schema_arrow.names) if paths else frozenset()


def _written(table: Table, rows: pa.Table, label: str) -> File:
    """Columns that only the address has are NULL there without being in the file."""
    schema = pa.schema([table.schema.field(name) for name in rows.schema.names])
    return tables.write(table.path, rows.cast(schema), tables.unique(label))


def _by_tasks(tasks: Tasks, orders: Sequence[MergeOrder]) -> dict[str, list[File]]:
    written = zip(orders, tasks.map(compact.merge, orders))
    return {order.path: [file] if file else [] for order, file in written}


def latest_schema(state: QueryState) -> pa.Schema:
    return schema_of(tuple((name, arrow(kind)) for name, kind in columns_of(state.columns)))


def latest_table(pipe: OpenPipeline, state: QueryState) -> Table:
    """The table of a query's last answer; made if there is none."""
    return pipe.warehouse.latest(latest_path(state.name), latest_schema(state), properties(pipe.pipeline))


def fit_latest(table: Table, schema: pa.Schema) -> None:
    """Before a last answer of other columns: no column changes while rows are there that have it, or who follows the
    table would see other rows leave than came.

    Columns that come are NULL in these rows; where one changes its type, or leaves, the rows leave before.
    """
    present = table.schema
    if present == schema or not table.files():
        return
    missing = [column for column in schema if column.name not in present.names]
    is_extended = [column for column in schema if column.name in present.names] == list(present)
    if is_extended:
        table.add_columns(pa.schema(missing))
    else:
        table.commit((), [file.path for file in table.files()])


def latest_files(pipe: OpenPipeline, latest: Mapping[str, Table], opened: Mapping[str, Table], shared: SharedRows,
                 boundaries: Mapping[str, int], states: Mapping[str, QueryState],
                 label: str) -> dict[str, list[File]]:
    """By query: files with the rows of its last boundary."""
    files: dict[str, list[File]] = {}
    orders = []
    for name, table in latest.items():
        t, schema = boundaries[name], latest_schema(states[name])
        if name in shared.many:
            orders.append(shared.order(name, table, label, schema.names, t - 1, t))
            continue
        rows = shared.few.get(name)
        if rows is None:
            holding = [file for file in opened[name].files() if file.may_hold(BOUNDARY, t, t)]
            paths = tuple(places.join(opened[name].path, file.path) for file in holding)
            if sum(file.size for file in holding) > memory.partials_of_driver(pipe.tasks.settings):
                orders.append(_latest_order(name, table, paths, schema, t, label))
                continue
            rows = pa.concat_tables([_read(path) for path in paths], promote_options="default") if paths else None
        answer = _at(rows, t).cast(schema) if rows is not None else schema.empty_table()
        files[name] = [tables.write(table.path, answer, tables.unique(label))] if answer.num_rows else []
    return files | _by_tasks(pipe.tasks, orders)


def _latest_order(name: str, table: Table, paths: tuple[str, ...], schema: pa.Schema, t: int, label: str) -> MergeOrder:
    listed = ", ".join(map(identifier, schema.names))
    return MergeOrder(name, table.path, paths, f"SELECT {listed} FROM files WHERE epoch_us({BOUNDARY}) = {t}",
                      label=label)


def _at(rows: pa.Table, t: int) -> pa.Table:
    return rows.filter(pc.equal(rows[BOUNDARY], pa.scalar(t, pa.int64()).cast(INSTANT)))


def let_go(table: Table, upto: int) -> None:
    """Private files of which every row is public leave the table, and the disk."""
    names = [file.path for file in table.files() if file.high.get(BOUNDARY, upto + 1) <= upto]
    if names:
        table.commit((), names)
        for name in names:
            places.delete(places.join(table.path, name))
