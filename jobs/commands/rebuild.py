"""What `forebay doctor --rebuild` does: a query's state is let go of, and the tables of its answers are made sound;
rows and ledger are never made anew.

A result table that somebody else changed gets the files back that it had, if they are all there. Otherwise its answers
are computed anew from the stream tables, boundary by boundary, from the rows and relation versions that counted there;
boundaries whose rows have left by `keep` stay as the table still has them.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import pyarrow as pa

from jobs.adapt.sharing import tables_of
from jobs.batch import batch as batches
from jobs.batch.works import context_of, parsed, works
from jobs.engine import kernel
from jobs.engine.work import write_file
from jobs.ledger.entries import Batch, KeptState
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import QueryState, queries_at
from jobs.maintenance import integrity, repair, retention
from jobs.pipeline.schema import arrow
from jobs.requests import requests
from jobs.results import answers
from jobs.results.answers import segments
from jobs.storage import delta_log, places, tables
from jobs.storage.lock import held
from jobs.storage.tables import OURS, File, Table
from optimizer.errors import failed
from optimizer.expression.dialect import identifier, string
from optimizer.plan.model import default
from optimizer.sharing.group import OWNER
from optimizer.time import iso

TOGETHER = 100       # boundaries computed at once


@dataclass(frozen=True)
class Rebuilt:
    """What was repaired of a query.

    `state`: whether its next boundary makes its state anew; `tables` of its answers that were mended; `boundaries`
    whose answers were computed for that.
    """

    query: str
    state: bool
    tables: tuple[str, ...]
    boundaries: int

    @property
    def anything(self) -> bool:
        return self.state or bool(self.tables)


def rebuild(pipe: OpenPipeline, name: str) -> Rebuilt:
    query_state = requests.show(pipe, name)
    state = repair.rebuild(pipe, name)
    with held(pipe.pipeline.warehouse), repair.explaining(pipe):
        pipe.warehouse.refresh()
        damaged = [path for path in tables_of(query_state) if unsound(pipe, path)]
        boundaries = sum(_mend(pipe, path) for path in damaged)
    return Rebuilt(name, state, tuple(damaged), boundaries)


def unsound(pipe: OpenPipeline, path: str) -> str | None:
    """What is wrong with a result table, its files included."""
    wrong = integrity.damage(pipe, path)
    if wrong is not None:
        return wrong.what
    if not tables.exists(pipe.path(path)):
        return None
    broken = pipe.warehouse.latest(path).broken()
    return f"its file {broken[0]} is missing or cut off" if broken else None


def _mend(pipe: OpenPipeline, path: str) -> int:
    """The number of boundaries computed anew, 0 where files were put back."""
    root = pipe.path(path)
    delta_log.mend_end(root)
    pipe.warehouse.refresh()
    count = 0 if _put_back(pipe, path) else _compute_anew(pipe, path)
    pipe.ledger.rely({path: pipe.warehouse.latest(path).version})
    return count


def _put_back(pipe: OpenPipeline, path: str) -> bool:
    """The files of our last commit, if no commit of ours is gone and the files are all on the disk."""
    if not tables.exists(pipe.path(path)):
        return False
    table = pipe.warehouse.latest(path)
    last_of_ours = table.transaction(OURS)
    if last_of_ours < pipe.ledger.relied().get(path, 0):
        return False
    before = table.at(last_of_ours)
    if before.broken():
        return False
    files, present = {f.path: f for f in before.files()}, {f.path for f in table.files()}
    # a file of the same name that no longer counts all its rows
    hidden = any(c.hides_rows for c in table.outside())
    if not hidden:
        table.commit([f for name, f in files.items() if name not in present], sorted(present - files.keys()))
    return not hidden


def _compute_anew(pipe: OpenPipeline, path: str) -> int:
    owners = [s for s in queries_at(pipe.ledger.all_changes()).values() if path in tables_of(s)]
    shared = path != owners[0].table
    table = _opened(pipe, path, owners[0], shared)
    spans_by_owner = {query_state.name: _to_compute(pipe, query_state, path) for query_state in owners}
    to_compute = {}
    for name, spans in spans_by_owner.items():
        to_compute[name] = {t for _, due in spans for t in due}
    files = _files_to_keep(pipe, table, to_compute, owners, shared)
    count = 0
    for query_state in owners:
        for span, due in spans_by_owner[query_state.name]:
            count += len(due)
            for rows in _computed(pipe, span, due):
                if isinstance(rows, File):
                    files += _moved(pipe, table, span, rows) if shared else [rows]
                else:
                    files += _write(table, rows, query_state.name if shared else None)
    last = pipe.ledger.last()
    table.commit(files, [file.path for file in table.files()], ("batch", last.batch.number) if last else None)
    return count


def _opened(pipe: OpenPipeline, path: str, query_state: QueryState, shared: bool) -> Table:
    """The table, with a log of its own again if it had none that can be read."""
    columns = [(n, arrow(t)) for n, t in parsed(query_state.sql, pipe.catalog).columns]
    schema = pa.schema([*([(OWNER, pa.string())] if shared else []), ("boundary", answers.arrow_timestamp()), *columns])
    try:
        return pipe.table(path, schema)
    except repair.BROKEN:
        places.delete_folder(places.join(pipe.path(path), "_delta_log"))
        return pipe.table(path, schema)


def _to_compute(pipe: OpenPipeline, query_state: QueryState, path: str) -> list[tuple[QueryState, list[int]]]:
    """The boundaries whose answers belong in this table and can be computed: not those of which the other table has
    rows, nor those whose rows have left.
    """
    other_table, = (other for other in tables_of(query_state) if other != path)
    elsewhere = _boundaries(pipe, other_table, query_state.name)
    spans = []
    for span, due in segments(pipe, query_state.name):
        if span.table == query_state.table:
            first = retention.unsure(pipe, parsed(span.sql, pipe.catalog), due)
            spans.append((span, [t for t in due[first:] if t not in elsewhere]))
    return [(span, due) for span, due in spans if due]


def _boundaries(pipe: OpenPipeline, path: str, name: str) -> set[int]:
    """The boundaries of which a sound table has rows of the query."""
    if not tables.exists(pipe.path(path)) or unsound(pipe, path):
        return set()
    table = pipe.warehouse.latest(path)
    where = f" WHERE {OWNER} = {string(name)}" if OWNER in table.schema.names else ""
    rows = _ask(table, [f.path for f in table.files()], f"SELECT DISTINCT epoch_us(boundary) AS t FROM rows{where}")
    return set(rows.column("t").to_pylist()) if rows.num_rows else set()


def _computed(pipe: OpenPipeline, query_state: QueryState, due: Sequence[int]) -> Iterator[pa.Table | File]:
    """Rows of answers as tables, or as the files that tasks have written: of a row query, and of many groups."""
    query = parsed(query_state.sql, pipe.catalog)
    plan = replace(default(query), layout="raw") if not query.returns_rows else default(query)
    versions = {i.source: pipe.ledger.relation_versions(i.source) for i in query.inputs if not i.is_stream}
    before: int | None = None
    for relations, boundaries in _chunks(due, versions):
        states = {}
        if query.returns_rows and before is not None:      # its answers go on from the boundary before
            states = {query_state.name: KeptState(plan, boundaries[0], before, relations)}
        last = pipe.ledger.last()
        # This batch is in no ledger: the caller commits the answers.
        batch = Batch(last.batch.number if last else 0, boundaries, {query_state.name: plan}, relations, states, {})
        context = context_of(pipe)
        answer, = batches.answers(context, batch, works(context, batch, {query_state.name: query_state})).answers
        if answer.failed:
            raise failed("rebuild-failed",
                         f"{query_state.name} at {iso(answer.failed[0])} cannot be computed anew: {answer.failed[1]}",
                         "replace the query by one that can, or restore the table from a copy")
        yield from answer.files
        if answer.rows is not None:
            yield answer.rows
        before = boundaries[-1]


def _chunks(due: Sequence[int],
            versions: dict[str, list[tuple[int, int]]]) -> Iterator[tuple[dict[str, int], tuple[int, ...]]]:
    """Boundaries in their order that used the same versions of the relations."""
    def versions_at(t: int) -> tuple[tuple[str, int], ...]:
        pairs = []
        for name, changes in versions.items():
            so_far = [version for since, version in changes if since <= t]
            pairs.append((name, so_far[-1]))
        return tuple(pairs)

    for relations, group in groupby(due, key=versions_at):
        boundaries = tuple(group)
        for k in range(0, len(boundaries), TOGETHER):
            yield dict(relations), boundaries[k:k + TOGETHER]


def _files_to_keep(pipe: OpenPipeline, table: Table, to_compute: dict[str, set[int]], owners: Sequence[QueryState],
                   shared: bool) -> list[File]:
    """What the table still has of boundaries that cannot be computed: rows of files that are whole."""
    broken = set(table.broken())
    names = [file.path for file in table.files() if file.path not in broken]
    if not names:
        return []
    conditions = []
    for query_state in owners:
        boundaries = ", ".join(map(str, sorted(to_compute[query_state.name])))
        stays = f"NOT epoch_us(boundary) IN ({boundaries})" if boundaries else "NOT FALSE"
        conditions.append(f"({OWNER} = {string(query_state.name)} AND {stays})" if shared else stays)
    rows = _ask(table, names, f"SELECT * FROM rows WHERE {' OR '.join(conditions)} ORDER BY boundary")
    return _write(table, rows, None)


def _ask(table: Table, names: Sequence[str], sql: str) -> pa.Table:
    """The answer of a question that calls these files of the table `rows`."""
    if not names:
        return table.schema.empty_table()
    con = kernel.connect(threads=2)
    try:
        paths = tuple(places.join(table.path, name) for name in names)
        return kernel.table(con, f"WITH rows AS (FROM read_parquet({kernel.files(con, paths)})) {sql}")
    finally:
        con.close()


def _moved(pipe: OpenPipeline, table: Table, query_state: QueryState, file: File) -> list[File]:
    """A file of the query's own table, as it has to be in that of queries that share."""
    path = pipe.path(query_state.table, file.path)
    con = kernel.connect()
    try:
        columns = ", ".join(map(identifier, table.schema.names))
        rows = f"SELECT *, {string(query_state.name)} AS {OWNER} FROM read_parquet({kernel.files(con, (path,))})"
        return write_file(con, f"SELECT {columns} FROM ({rows}) AS q", table.path, "rebuilt")
    finally:
        con.close()
        places.delete(path)


def _write(table: Table, rows: pa.Table, owner: str | None) -> list[File]:
    if not rows.num_rows:
        return []
    if owner is not None:
        rows = rows.append_column(OWNER, pa.array([owner] * rows.num_rows, pa.string()))
    return [tables.write(table.path, rows.select(table.schema.names).cast(table.schema), tables.unique("rebuilt"))]
