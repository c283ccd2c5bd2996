"""Reading what was published: answers at boundaries, explanations, verification against the raw rows.

Changes nothing and needs no Spark.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from jobs.adapt.choice import Chooser
from jobs.addresses.columns import schema_of
from jobs.batch.works import parsed
from jobs.engine import kernel
from jobs.ingest import agreed, relations
from jobs.ledger import passed
from jobs.ledger import published as publications
from jobs.ledger.addresses import address
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import ADOPT, DECIDE, QueryState, address_of, in_order, queries_at
from jobs.maintenance import integrity, repair, retention
from jobs.requests import requests
from jobs.results import repeats
from jobs.storage import places, tables
from jobs.verify import recompute as oracle
from jobs.verify.sql import Table
from optimizer.choice import explain as renderer
from optimizer.errors import ForebayError
from optimizer.expression.dialect import identifier
from optimizer.query.model import Query
from optimizer.time import instant, iso

READING = "512MB"      # for sorting an answer that is read; beyond it the engine spills
FEW_FILES, SMALL = 32, 4 << 20      # files, and bytes of them, of an answer that this process's engine reads


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
        available = f"the last is {iso(boundaries[-1])}" if boundaries else "none is"
        gone = retention.gone(pipe, query_state)
        if gone:
            available += f", and those before {iso(boundaries[0] if boundaries else gone)} have left by `keep`"
        if any(first <= at <= last for first, last in passed.spans(pipe.ledger)):
            available = f"a long silence was passed over there, and every answer repeats the one before; {available}"
        raise ForebayError("unknown-boundary", f"no answer of {name!r} is published at {iso(at)}; {available}",
                           hint="`forebay result NAME --all` shows what there is")
    if not every and boundaries:
        boundaries = [at if at is not None else boundaries[-1]]
    with repair.explaining(pipe):
        integrity.check(pipe, (query_state.address,))
        return _batches(pipe, query_state, boundaries)


def rows(pipe: OpenPipeline, query_state: QueryState, boundaries: list[int], most: int | None = None) -> pa.Table:
    """In their order, all or the first ones."""
    return _batches(pipe, query_state, boundaries, most).read_all()


def _batches(pipe: OpenPipeline, query_state: QueryState, boundaries: list[int],
             most: int | None = None) -> pa.RecordBatchReader:
    """From the query's address, with the columns of this text of it: NULL where an earlier one had them not."""
    query = parsed(query_state.sql, pipe.catalog)
    schema = schema_of(query.columns)
    files = _files(pipe, query_state.address, boundaries)
    if not files:
        return pa.RecordBatchReader.from_batches(schema, [])
    size = sum(places.size_and_time(path)[0] for path in files[:FEW_FILES])
    is_small = len(files) <= FEW_FILES and size <= SMALL      # an engine of its own takes 40 ms to start
    con = kernel.shared() if is_small else kernel.connect(threads=2, memory=READING)
    # Neither table is registered: registering one makes DuckDB import pandas.
    columns = ", ".join(map(identifier, schema.names))
    untyped = ", ".join(f"NULL AS {identifier(name)}" for name in schema.names)
    rows = (f"SELECT {untyped} WHERE false "
            f"UNION ALL BY NAME SELECT * FROM read_parquet({kernel.files(con, files)}, union_by_name = true)")
    at_boundaries = f"epoch_us(boundary) IN ({', '.join(map(str, boundaries))})"
    limit = "" if most is None else f" LIMIT {most}"
    order = _order(query, schema.names)
    batches = kernel.batches(con, f"SELECT {columns} FROM ({rows}) AS q WHERE {at_boundaries} ORDER BY {order}{limit}")
    first = next(batches, None)      # here, so that an error comes before anything is written

    def typed_batches() -> Iterator[pa.RecordBatch]:
        if first is not None:
            yield first.cast(schema)
        with repair.explaining(pipe):
            for batch in batches:
                yield batch.cast(schema)

    return pa.RecordBatchReader.from_batches(schema, typed_batches())


def _order(query: Query, names: Sequence[str]) -> str:
    """By boundary, then as the query's ORDER BY says, then by all columns."""
    own = [f"{identifier(name)} {'DESC' if descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}"
           for name, descending, nulls_first in query.order]
    return ", ".join([identifier(names[0]), *own, *map(identifier, names[1:])])


def _files(pipe: OpenPipeline, table: str, boundaries: list[int]) -> tuple[Any, ...]:
    path = places.join(pipe.pipeline.warehouse, table)
    if not boundaries or not tables.exists(path):
        return ()
    low, high = min(boundaries), max(boundaries)
    files = pipe.warehouse.latest(table).files()
    return tuple(places.join(path, file.path) for file in files if file.may_hold("boundary", low, high))


def published(pipe: OpenPipeline, name: str) -> list[int]:
    """Boundaries at which there is an answer at the query's address, also an empty one."""
    gone = retention.gone(pipe, requests.show(pipe, name)) or 0
    if publications.upto(pipe.warehouse) is None and pipe.ledger.committed() is not None:
        raise ForebayError("not-published", f"answers of {name!r} are committed, and not yet at {address_of(name)}",
                           hint="`forebay run` brings them there; it need have nothing else to do")
    since = max(gone, address(pipe.ledger.all_changes(), name, pipe.ledger.committed()).since)
    return [t for t in publications.boundaries(pipe.warehouse, name) if t >= since]


def segments(pipe: OpenPipeline, name: str) -> list[tuple[QueryState, list[int]]]:
    """The spans in which the query was in force without a new beginning, with the boundaries at which each answered:
    due and committed.
    """
    last, first = pipe.ledger.committed(), pipe.ledger.first()
    if last is None or first is None:
        return []
    of_query = [c for c in pipe.ledger.all_changes() if c.query == name]
    changes = in_order(c for c in of_query if c.action not in ("pin", "unpin", DECIDE, ADOPT))
    starts = sorted({max(c.effective or first, first) for c in changes if (c.effective or first) <= last} | {first})
    spans = []
    for start, end in zip(starts, [*starts[1:], last + 1]):
        query_state = queries_at(changes, start).get(name)
        if query_state and query_state.is_active:
            query = parsed(query_state.sql, pipe.catalog)
            multiples = passed.multiples(query.every, start, end, passed.spans(pipe.ledger))
            due = [t for t in multiples if query.due(t)]
            spans.append((query_state, due))
    return spans


def explain(chooser: Chooser, query: str, statistics: Mapping[str, Any] | None = None,
            cost_model: str | None = None) -> dict[str, Any]:
    """The plans of a query: of a name, as would be decided now; of a text, as if it were created now.

    `statistics`, where given, count instead of what was measured; `cost_model` None is the pipeline's.
    """
    pipe = chooser.pipe
    query_state = queries_at(pipe.ledger.all_changes()).get(query)
    explained = parsed(query_state.sql if query_state else query, pipe.catalog)
    decision, observed = chooser.considered(explained, query_state, statistics, cost_model)
    repeated = repeats.repeated(chooser.statistics, explained, query if query_state else None)
    return {"query": query, **renderer.document(explained, decision, chooser.shown(explained, observed, statistics)),
            "repeats": [one.document() for one in repeated]}


def verify(pipe: OpenPipeline, name: str | None = None, engine: str = "duckdb") -> dict[str, Any]:
    """Every published answer of every query (or one) against its plain SQL over the stream tables, in INTERFACE's
    shape, with the `engine` of each: a query for which there is no rule of our own goes to Spark SQL, and `because`
    says why.
    """
    agreed.streams(pipe)
    names = [name] if name is not None else sorted(queries_at(pipe.ledger.all_changes()))
    with repair.explaining(pipe):
        integrity.check(pipe, (f"streams/{stream}" for stream in pipe.pipeline.streams))
        report = {n: _verify_query(pipe, n, engine) for n in names if name is not None or segments(pipe, n)}
    if name is not None and report[name].get("left") and not report[name]["boundaries"]:
        raise ForebayError("rows-left",
                           f"the rows behind every answer of {name!r} have left by `keep`: they cannot be recomputed",
                           hint="a longer `keep` in forebay.yml keeps rows from now on")
    return {"queries": report}


def _verify_query(pipe: OpenPipeline, name: str, engine: str) -> dict[str, Any]:
    """`left`, if any, counts the boundaries at which rows or answers have left by `keep`.

    A query has one engine, whatever texts it had.
    """
    still_published, changes = set(published(pipe, name)), pipe.ledger.all_changes()
    since, upto = address(changes, name, pipe.ledger.committed()).since, publications.upto(pipe.warehouse) or -1
    # What is committed and not yet public is no answer: the next run publishes it.
    spans = [(state, answered) for state, due in segments(pipe, name)
             if (answered := [t for t in due if since <= t <= upto])]
    left_by_span = []
    for query_state, boundaries in spans:
        without_rows = retention.unsure(pipe, parsed(query_state.sql, pipe.catalog), boundaries)
        without_answer = sum(t not in still_published for t in boundaries)
        left_by_span.append(max(without_rows, without_answer))
    compared = [state for (state, due), left in zip(spans, left_by_span) if due[left:]]
    because = _without_rule(pipe, compared) if engine == "duckdb" else None
    engine, differences = "jvm" if because else engine, list[dict[str, Any]]()
    for (query_state, boundaries), left in zip(spans, left_by_span):
        differences += _differences(pipe, query_state, boundaries, left, engine)
    count = sum(len(boundaries) for _, boundaries in spans) - sum(left_by_span)
    equal = count - len({difference["boundary"] for difference in differences})
    report = {"boundaries": count, "equal": equal, "differences": differences, "engine": engine}
    if because:
        report["because"] = because
    return {**report, "left": sum(left_by_span)} if any(left_by_span) else report


def _without_rule(pipe: OpenPipeline, states: list[QueryState]) -> str | None:
    """Why Spark SQL has to recompute the answers of a query's texts, if it has to."""
    for state in states:
        described = _described(pipe, {i.source for i in parsed(state.sql, pipe.catalog).inputs})
        because = oracle.without_rule(state.sql, described, pipe.pipeline.batch)
        if because:
            return because
    return None


def _differences(pipe: OpenPipeline, query_state: QueryState, boundaries: list[int], first: int,
                 engine: str) -> list[dict[str, Any]]:
    """From the `first` boundary on: the rows behind those before it are not all there any more."""
    query, compared = parsed(query_state.sql, pipe.catalog), boundaries[first:]
    if not compared:
        return []
    session = pipe.tasks.session if engine == "jvm" else kernel.connect(threads=2)
    described = _described(pipe, {i.source for i in query.inputs})
    since = boundaries[max(first - 1, 0):]      # a row query's answer depends on which boundary was before it
    expected = oracle.recompute(query_state.sql, _raw(pipe, query), described, pipe.pipeline.batch, since, engine,
                                session)
    published_rows, differences = rows(pipe, query_state, compared), []
    stamp_type = published_rows.schema.field("boundary").type
    for t in compared:
        is_at_t = pc.equal(published_rows["boundary"], pa.scalar(instant(t), stamp_type))
        answer, recomputed = published_rows.filter(is_at_t).drop_columns(["boundary"]), expected.get(t)
        if isinstance(recomputed, pa.Table):
            messages = oracle.compare(_called(recomputed, [name for name, _ in query.columns]), answer)
        else:
            messages = [f"recomputation fails there: {recomputed}"]
        differences += [{"boundary": t, "difference": message} for message in messages]
    return differences


def _called(recomputed: pa.Table, names: list[str]) -> pa.Table:
    """The columns by the names they are published under: what has no name in the text is called otherwise there."""
    if recomputed.num_columns < len(names):      # no window ends there
        return recomputed
    return recomputed.rename_columns([*names, *recomputed.column_names[len(names):]])


def _described(pipe: OpenPipeline, sources: set[str]) -> dict[str, Table]:
    """The declared columns of these streams and relations, as the oracle takes them."""
    tables_by_name = {}
    for name, stream in pipe.pipeline.streams.items():
        if name in sources:
            tables_by_name[name] = Table(_type_names(stream.columns), stream.event_time)
    for name, relation in pipe.pipeline.relations.items():
        if name in sources:
            tables_by_name[name] = Table(_type_names(relation.columns))
    return tables_by_name


def _type_names(columns: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(kind) for name, kind in columns.items()}


def _raw(pipe: OpenPipeline, query: Query) -> dict[str, Any]:
    """The rows as they lie in the tables; a relation by version, each from the boundary on that first used it."""
    paths_by_source: dict[str, Any] = {}
    for i in query.inputs:
        if i.is_stream:
            paths_by_source[i.source] = pipe.table(f"streams/{i.source}").refresh().paths
        else:
            folder = places.join(pipe.pipeline.warehouse, "relations", i.source)
            path_since = {}
            for t, version in pipe.ledger.relation_versions(i.source):
                file = relations.version_file(pipe.warehouse, i.source, version)
                path_since[t] = (places.join(folder, file.path),)
            paths_by_source[i.source] = path_since
    return paths_by_source
