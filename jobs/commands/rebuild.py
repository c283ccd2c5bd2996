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

from jobs.addresses.columns import properties, schema_of
from jobs.batch import batch as batches
from jobs.batch.works import context_of, parsed, works
from jobs.engine import kernel
from jobs.ledger import published
from jobs.ledger.addresses import Address, address, columns_in, latest_path
from jobs.ledger.entries import Batch, KeptState
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import QueryState
from jobs.maintenance import integrity, repair, retention
from jobs.requests import requests
from jobs.results import answers
from jobs.results.answers import segments
from jobs.storage import delta_log, places, tables
from jobs.storage.lock import held
from jobs.storage.tables import OURS, File, Table
from optimizer.errors import failed
from optimizer.plan.model import default
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
        path, latest = query_state.address, latest_path(name)
        damaged = [table for table in (path, latest) if unsound(pipe, table)]
        boundaries = _mend(pipe, query_state) if path in damaged else 0
        if latest in damaged:
            _latest_anew(pipe, query_state)
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


def _mend(pipe: OpenPipeline, query_state: QueryState) -> int:
    """The number of boundaries computed anew, 0 where files were put back."""
    path = query_state.address
    delta_log.mend_end(pipe.path(path))
    pipe.warehouse.refresh()
    count = 0 if _put_back(pipe, path) else _compute_anew(pipe, query_state)
    version = pipe.warehouse.latest(path).version
    pipe.ledger.rely({path: version})
    published.rely(pipe.warehouse, query_state.name, results=version)
    return count


def _put_back(pipe: OpenPipeline, path: str) -> bool:
    """The files of our last commit, if no commit of ours is gone and the files are all on the disk."""
    if not tables.exists(pipe.path(path)):
        return False
    table = pipe.warehouse.latest(path)
    last_of_ours = table.transaction(OURS)
    if last_of_ours < integrity.relied_versions(pipe).get(path, 0):
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


def _compute_anew(pipe: OpenPipeline, query_state: QueryState) -> int:
    changes, last = pipe.ledger.all_changes(), pipe.ledger.last()
    table = _opened(pipe, query_state.address, address(changes, query_state.name, pipe.ledger.committed()))
    spans = _to_compute(pipe, query_state.name)
    files = _files_to_keep(table, {t for _, due in spans for t in due})
    for span, due in spans:
        for rows in _computed(pipe, span, due):
            files += [rows] if isinstance(rows, File) else _write(table, rows)
    # A batch that was begun has its rows still to bring, those of the one before it are all there.
    number = last.batch.number - last.is_open if last is not None else -1
    table.commit(files, [file.path for file in table.files()], ("batch", number) if number >= 0 else None)
    return sum(len(due) for _, due in spans)


def _latest_anew(pipe: OpenPipeline, query_state: QueryState) -> None:
    """The rows of the last published boundary, as its address has them."""
    path = latest_path(query_state.name)
    boundaries = answers.published(pipe, query_state.name)
    rows = answers.rows(pipe, query_state, boundaries[-1:])
    places.delete_folder(pipe.path(path))
    pipe.warehouse.refresh()
    schema = schema_of(columns_in(query_state.columns))
    table = pipe.table(path, schema, properties(pipe.pipeline))
    table.replace(_write(table, rows), schema)
    published.rely(pipe.warehouse, query_state.name, latest=table.version)


def _opened(pipe: OpenPipeline, path: str, wanted: Address) -> Table:
    """The table, with a log of its own again if it had none that can be read."""
    schema = schema_of(wanted.columns)
    try:
        return pipe.table(path, schema, properties(pipe.pipeline))
    except repair.BROKEN:
        places.delete_folder(places.join(pipe.path(path), "_delta_log"))
        return pipe.table(path, schema, properties(pipe.pipeline))


def _to_compute(pipe: OpenPipeline, query: str) -> list[tuple[QueryState, list[int]]]:
    """The boundaries of the query's present history whose answers can be computed: not those whose rows have left."""
    since = address(pipe.ledger.all_changes(), query, pipe.ledger.committed()).since
    spans = []
    for span, due in segments(pipe, query):
        first = retention.unsure(pipe, parsed(span.sql, pipe.catalog), due)
        spans.append((span, [t for t in due[first:] if t >= since]))
    return [(span, due) for span, due in spans if due]


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


def _files_to_keep(table: Table, to_compute: set[int]) -> list[File]:
    """What the table still has of boundaries that cannot be computed: rows of files that are whole."""
    broken = set(table.broken())
    names = [file.path for file in table.files() if file.path not in broken]
    if not names:
        return []
    boundaries = ", ".join(map(str, sorted(to_compute)))
    stays = f"NOT epoch_us(boundary) IN ({boundaries})" if boundaries else "true"
    return _write(table, _ask(table, names, f"SELECT * FROM rows WHERE {stays} ORDER BY boundary"))


def _ask(table: Table, names: Sequence[str], sql: str) -> pa.Table:
    """The answer of a question that calls these files of the table `rows`."""
    if not names:
        return table.schema.empty_table()
    con = kernel.connect(threads=2)
    try:
        paths = tuple(places.join(table.path, name) for name in names)
        return kernel.table(con, f"WITH rows AS (FROM read_parquet({kernel.files(con, paths)}, "
                                 f"union_by_name = true)) {sql}")
    finally:
        con.close()


def _write(table: Table, rows: pa.Table) -> list[File]:
    """Columns of the table that these rows have not are NULL in it."""
    if not rows.num_rows:
        return []
    schema = pa.schema([table.schema.field(name) for name in rows.schema.names])
    return [tables.write(table.path, rows.cast(schema), tables.unique("rebuilt"))]
