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
from optimizer.expression.dialect import string
from optimizer.plan.model import Plan, default
from optimizer.sharing.group import OWNER
from optimizer.time import iso

TOGETHER = 100       # boundaries computed at once


@dataclass(frozen=True)
class Rebuilt:
    """`state`: whether its next boundary makes its state anew.

    `tables`: those of its answers that were mended; `boundaries` that were computed for it.
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
    own = table.transaction(OURS)
    if own < pipe.ledger.relied().get(path, 0):
        return False
    before = table.at(own)
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
    anew = {s.name: _to_compute(pipe, s, path) for s in owners}
    files = _kept_files(pipe, table, {
        name: {t for _, due in spans for t in due} for name, spans in anew.items()
    }, owners, shared)
    for query_state in owners:
        for span, due in anew[query_state.name]:
            for rows in _computed(pipe, span, due):
                files += [rows] if isinstance(rows, File) else _written(table, rows,
                                                                        query_state.name if shared else None)
    last = pipe.ledger.last()
    table.commit(files, [f.path for f in table.files()], ("batch", last.batch.number) if last else None)
    return sum(len(due) for spans in anew.values() for _, due in spans)


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
    elsewhere = {
        t for other in tables_of(query_state) if other != path for t in _boundaries(pipe, other, query_state.name)
    }
    spans = []
    for span, due in segments(pipe, query_state.name):
        if span.table == query_state.table:
            first = retention.unsure(pipe, parsed(span.sql, pipe.catalog), due)
            spans.append((span, [t for t in due[first:] if t not in elsewhere]))
    return [(span, due) for span, due in spans if due]


def _boundaries(pipe: OpenPipeline, path: str, name: str) -> set[int]:
    """Of which a sound table has rows of the query."""
    if not tables.exists(pipe.path(path)) or unsound(pipe, path):
        return set()
    table = pipe.warehouse.latest(path)
    where = f" WHERE {OWNER} = {string(name)}" if OWNER in table.schema.names else ""
    rows = _ask(table, [f.path for f in table.files()], f"SELECT DISTINCT epoch_us(boundary) AS t FROM rows{where}")
    return set(rows.column("t").to_pylist()) if rows.num_rows else set()


def _computed(pipe: OpenPipeline, query_state: QueryState, due: Sequence[int]) -> Iterator[pa.Table | File]:
    """Rows of answers as tables, or of a row query as the files that tasks have written."""
    query = parsed(query_state.sql, pipe.catalog)
    plan = replace(default(query), layout="raw") if not query.returns_rows else default(query)
    versions = {i.source: pipe.ledger.relation_versions(i.source) for i in query.inputs if not i.is_stream}
    before: int | None = None
    for relations, boundaries in _chunks(due, versions):
        batch = _batch(pipe, query_state.name, plan, boundaries, relations, before if query.returns_rows else None)
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


def _batch(pipe: OpenPipeline, name: str, plan: Plan, boundaries: tuple[int, ...], relations: dict[str, int],
           before: int | None) -> Batch:
    """A batch that no ledger knows: what it gives is committed by who asked for it.

    `before`: the boundary that a row query's answers go on from.
    """
    last = pipe.ledger.last()
    states = {} if before is None else {name: KeptState(plan, boundaries[0], before, relations)}
    return Batch(last.batch.number if last else 0, boundaries, {name: plan}, relations, states, {})


def _chunks(due: Sequence[int],
            versions: dict[str, list[tuple[int, int]]]) -> Iterator[tuple[dict[str, int], tuple[int, ...]]]:
    """Boundaries in their order that used the same versions of the relations."""
    def at(t: int) -> tuple[tuple[str, int], ...]:
        return tuple((name, [v for since, v in changes if since <= t][-1]) for name, changes in versions.items())

    for relations, group in groupby(due, key=at):
        boundaries = tuple(group)
        for k in range(0, len(boundaries), TOGETHER):
            yield dict(relations), boundaries[k:k + TOGETHER]


def _kept_files(pipe: OpenPipeline, table: Table, anew: dict[str, set[int]], owners: Sequence[QueryState],
                shared: bool) -> list[File]:
    """What the table still has of boundaries that cannot be computed: rows of files that are whole."""
    broken = set(table.broken())
    names = [f.path for f in table.files() if f.path not in broken]
    if not names:
        return []
    conditions = [
        f"({OWNER} = {string(s.name)} AND NOT {_among(anew[s.name])})" if shared else f"NOT {_among(anew[s.name])}"
        for s in owners
    ]
    rows = _ask(table, names, f"SELECT * FROM rows WHERE {' OR '.join(conditions)} ORDER BY boundary")
    return _written(table, rows, None) if rows.num_rows else []


def _among(boundaries: set[int]) -> str:
    return f"epoch_us(boundary) IN ({', '.join(map(str, sorted(boundaries)))})" if boundaries else "FALSE"


def _ask(table: Table, names: Sequence[str], sql: str) -> pa.Table:
    con = kernel.connect(threads=2)
    try:
        paths = tuple(places.join(table.path, name) for name in names)
        return kernel.table(con, f"WITH rows AS (FROM read_parquet({kernel.files(con, paths)})) {sql}"
                            ) if paths else table.schema.empty_table()
    finally:
        con.close()


def _written(table: Table, rows: pa.Table, owner: str | None) -> list[File]:
    if not rows.num_rows:
        return []
    if owner is not None:
        rows = rows.append_column(OWNER, pa.array([owner] * rows.num_rows, pa.string()))
    return [tables.write(table.path, rows.select(table.schema.names).cast(table.schema), tables.unique("rebuilt"))]
