"""Reading what was published: answers at boundaries, explanations, verification against the raw rows.

Changes nothing and needs no Spark.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from jobs.adapt import sharing
from jobs.adapt.choice import Chooser
from jobs.batch.works import parsed
from jobs.engine import kernel
from jobs.ingest import agreed, relations
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import QueryState, in_order, queries_at
from jobs.maintenance import integrity, repair, retention
from jobs.pipeline.schema import arrow
from jobs.requests import requests
from jobs.storage import places, tables
from jobs.verify import recompute as oracle
from jobs.verify.sql import Table
from optimizer.choice import explain as renderer
from optimizer.errors import ForebayError
from optimizer.query.model import Query
from optimizer.sharing.group import OWNER
from optimizer.time import instant, iso

READING = "512MB"      # for sorting an answer that is read; beyond it the engine spills


def read(pipe: OpenPipeline, name: str, at: int | None = None, every: bool = False) -> pa.Table:
    """The answer at the last boundary, at `at`, or at all (`boundary` comes first in any case)."""
    return stream(pipe, name, at, every).read_all()


def stream(pipe: OpenPipeline, name: str, at: int | None = None, every: bool = False) -> pa.RecordBatchReader:
    """The same in batches, sorted in little memory: an answer may have millions of rows."""
    query_state = requests.show(pipe, name)
    agreed.streams(pipe)
    boundaries = published(pipe, name)
    if query_state.error and at is None and not every:
        raise ForebayError("query-failed", f"query {name!r} failed: {query_state.error}",
                           hint="earlier answers: --at or --all; change the query with `query create --replace`",
                           exit_code=1)
    if at is not None and at not in boundaries:
        said = f"the last is {iso(boundaries[-1])}" if boundaries else "none is"
        gone = retention.gone(pipe, query_state)
        said += f", and those before {iso(boundaries[0] if boundaries else gone)} have left by `keep`" if gone else ""
        raise ForebayError("unknown-boundary", f"no answer of {name!r} is published at {iso(at)}; {said}",
                           hint="`forebay result NAME --all` shows what there is")
    wanted = boundaries if every else [at if at is not None else boundaries[-1]] if boundaries else []
    with repair.told(pipe):
        integrity.check(pipe, sharing.tables_of(query_state))
        return _batches(pipe, query_state, wanted)


def rows(pipe: OpenPipeline, query_state: QueryState, boundaries: list[int]) -> pa.Table:
    return _batches(pipe, query_state, boundaries).read_all()


def _batches(pipe: OpenPipeline, query_state: QueryState, boundaries: list[int]) -> pa.RecordBatchReader:
    """Each boundary's answer is in one of the two tables: the query's own, or the one of those with which it shared
    then.
    """
    query = parsed(query_state.sql, pipe.catalog)
    schema = pa.schema([("boundary", arrow_timestamp()), *((n, arrow(t)) for n, t in query.columns)])
    own, together = (_files(pipe, path, boundaries) for path in sharing.tables_of(query_state))
    if not own and not together:
        return pa.RecordBatchReader.from_batches(schema, [])
    con = kernel.connect(threads=2, memory=READING)
    # Not a registered table: registering one makes DuckDB import pandas.
    wanted = f"epoch_us(boundary) IN ({', '.join(map(str, boundaries))})"
    selects = []
    if own:
        selects.append(f"SELECT * FROM read_parquet({kernel.files(con, own)}) WHERE {wanted}")
    if together:
        shared = f"SELECT * EXCLUDE ({OWNER}) FROM read_parquet({kernel.files(con, together)})"
        selects.append(f"{shared} WHERE {OWNER} = '{query_state.name}' AND {wanted}")
    batches = kernel.batches(con, f"SELECT * FROM ({' UNION ALL '.join(selects)}) AS q ORDER BY ALL")
    first = next(batches, None)      # what cannot be read is said before anything is written
    whole = (b.cast(schema) for b in chain([first] if first is not None else [], _told(pipe, batches)))
    return pa.RecordBatchReader.from_batches(schema, whole)


def _told(pipe: OpenPipeline, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    with repair.told(pipe):
        yield from batches


def _files(pipe: OpenPipeline, table: str, boundaries: list[int]) -> tuple[Any, ...]:
    path = places.join(pipe.pipeline.warehouse, table)
    if not boundaries or not tables.exists(path):
        return ()
    low, high = min(boundaries), max(boundaries)
    return tuple(places.join(path, f.path) for f in pipe.warehouse.latest(table).files()
                 if f.may_hold("boundary", low, high))


def arrow_timestamp() -> pa.DataType:
    return pa.timestamp("us", "UTC")


def published(pipe: OpenPipeline, name: str) -> list[int]:
    """Boundaries at which the query's present table has an answer, also an empty one."""
    now = requests.show(pipe, name)
    gone = retention.gone(pipe, now) or 0
    return [
        t for query_state, boundaries in segments(pipe, name) if query_state.table == now.table for t in boundaries
        if t >= gone
    ]


def segments(pipe: OpenPipeline, name: str) -> list[tuple[QueryState, list[int]]]:
    """The spans in which the query was in force without a new beginning, with the boundaries at which each answered:
    due and committed.
    """
    last, first = pipe.ledger.committed(), pipe.ledger.first()
    if last is None or first is None:
        return []
    mine = in_order(c for c in pipe.ledger.all_changes() if c.query == name and c.action not in ("pin", "unpin"))
    marks = sorted({max(c.effective or first, first) for c in mine if (c.effective or first) <= last} | {first})
    found = []
    for begin, end in zip(marks, [*marks[1:], last + 1]):
        query_state = queries_at(mine, begin).get(name)
        if query_state and query_state.is_active:
            query = parsed(query_state.sql, pipe.catalog)
            found.append((query_state,
                          [t for t in range(-(-begin // query.every) * query.every, end, query.every) if query.due(t)]))
    return found


def explain(chooser: Chooser, query: str, statistics: Mapping[str, Any] | None = None,
            cost_model: str = "measured") -> dict[str, Any]:
    """Of a query's name, as its next boundary would decide; or of a text, as if it were created now.

    By `statistics`, instead of what was measured, where they are given.
    """
    pipe = chooser.pipe
    query_state = queries_at(pipe.ledger.all_changes()).get(query)
    explained = parsed(query_state.sql if query_state else query, pipe.catalog)
    decision, observed = chooser.considered(explained, query_state, statistics, cost_model)
    return {"query": query, **renderer.document(explained, decision, chooser.shown(explained, observed, statistics))}


def verify(pipe: OpenPipeline, name: str | None = None, engine: str = "duckdb") -> dict[str, Any]:
    """Every published answer of every query (or one) against its plain SQL over the stream tables, in INTERFACE's
    shape.
    """
    agreed.streams(pipe)
    names = [name] if name is not None else sorted(queries_at(pipe.ledger.all_changes()))
    with repair.told(pipe):
        integrity.check(pipe, (f"streams/{stream}" for stream in pipe.pipeline.streams))
        said = {n: _verified(pipe, n, engine) for n in names if name is not None or segments(pipe, n)}
    if name is not None and said[name].get("left") and not said[name]["boundaries"]:
        raise ForebayError("rows-left",
                           f"the rows behind every answer of {name!r} have left by `keep`: they cannot be recomputed",
                           hint="a longer `keep` in forebay.yml keeps rows from now on")
    return {"queries": said}


def _verified(pipe: OpenPipeline, name: str, engine: str) -> dict[str, Any]:
    table, known = requests.show(pipe, name).table, set(published(pipe, name))
    spans = [(s, b) for s, b in segments(pipe, name) if s.table == table and b]
    first = [max(retention.unsure(pipe, parsed(s.sql, pipe.catalog), b), sum(t not in known for t in b))
             for s, b in spans]
    differences = [
        d for (query_state, boundaries), k in zip(spans, first)
        for d in _differences(pipe, query_state, boundaries, k, engine)
    ]
    count = sum(len(b) - k for (_, b), k in zip(spans, first))
    equal = count - len({d["boundary"] for d in differences})
    return {
        "boundaries": count,
        "equal": equal,
        "differences": differences,
        **({
            "left": sum(first)
        } if any(first) else {})
    }


def _differences(pipe: OpenPipeline, query_state: QueryState, boundaries: list[int], first: int,
                 engine: str) -> list[dict[str, Any]]:
    """From the first boundary on whose rows are all there.

    A row query's answer depends on which boundary was before it.
    """
    query, compared = parsed(query_state.sql, pipe.catalog), boundaries[first:]
    if not compared:
        return []
    session = pipe.tasks.session if engine == "jvm" else kernel.connect(threads=2)
    described, since = _described(pipe, {i.source for i in query.inputs}), boundaries[max(first - 1, 0):]
    expected = oracle.recompute(query_state.sql, _raw(pipe, query), described, pipe.pipeline.batch, since, engine,
                                session)
    got, found = rows(pipe, query_state, compared), []
    for t in compared:
        answer = expected.get(t)
        mine = got.filter(pc.equal(got["boundary"],
                                   pa.scalar(instant(t),
                                             got.schema.field("boundary").type))).drop_columns(["boundary"])
        said = oracle.compare(answer, mine) if isinstance(answer,
                                                          pa.Table) else [f"recomputation fails there: {answer}"]
        found += [{"boundary": t, "difference": d} for d in said]
    return found


def _described(pipe: OpenPipeline, sources: set[str]) -> dict[str, Table]:
    streams = {
        n: Table({
            c: str(t) for c, t in s.columns.items()
        }, s.event_time) for n, s in pipe.pipeline.streams.items() if n in sources
    }
    return streams | {
        n: Table({
            c: str(t) for c, t in r.columns.items()
        }) for n, r in pipe.pipeline.relations.items() if n in sources
    }


def _raw(pipe: OpenPipeline, query: Query) -> dict[str, Any]:
    """The rows as they lie in the tables; a relation by version, each from the boundary on that first used it."""
    found: dict[str, Any] = {}
    for i in query.inputs:
        if i.is_stream:
            table = pipe.table(f"streams/{i.source}").refresh()
            found[i.source] = table.paths
        else:
            folder = places.join(pipe.pipeline.warehouse, "relations", i.source)
            found[i.source] = {t: (places.join(folder, relations.version_file(pipe.warehouse, i.source, v).path),)
                               for t, v in pipe.ledger.relation_versions(i.source)}
    return found
