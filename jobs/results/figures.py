"""What `forebay stats` says: figures of streams, queries and joins from what was observed.

Nothing is sampled or decided here.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jobs.adapt.statistics import Statistics
from jobs.batch.works import parsed
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import queries_at
from jobs.storage import places, tables
from optimizer.expression.expr import Column, Expr
from optimizer.expression.scalar import render
from optimizer.query.model import Query
from optimizer.query.shape import shape
from optimizer.statistics.figures import agreement, fanout, heaviest, inputs, overlap
from optimizer.statistics.model import QueryStatistics


def document(statistics: Statistics) -> dict[str, Any]:
    """Figures of each stream, from the newest sample of any query that reads it, and of every sampled active query.

    `age` is how many boundaries were answered since the sample.
    """
    pipe = statistics.pipe
    last = pipe.ledger.committed()

    def age(at: int | None) -> int | None:
        return None if at is None or last is None else max(last - at, 0) // pipe.pipeline.batch

    sampled: list[tuple[Query, QueryStatistics]] = []
    queries: dict[str, dict[str, Any]] = {}
    for name, query_state in queries_at(pipe.ledger.all_changes()).items():
        if query_state.is_active:
            query = parsed(query_state.sql, pipe.catalog)
            observed = statistics.observed(name, query)
            if observed is not None:
                sampled.append((query, observed))
                queries[name] = {**_query(query, observed), "age": age(observed.at)}
    streams = {}
    for stream in pipe.pipeline.streams:
        figures = _stream(pipe, stream, sampled)
        streams[stream] = {**figures, "age": age(figures["from"])}
    return {"streams": streams, "queries": queries}


def _stream(pipe: OpenPipeline, stream: str, sampled: Iterable[tuple[Query, QueryStatistics]]) -> dict[str, Any]:
    samples = []
    for query, observed in sampled:
        for i, declared in enumerate(query.inputs):
            if declared.source == stream:
                samples.append((observed.at or 0, observed.inputs[i], observed.batch))
    path, stored = f"streams/{stream}", 0
    if tables.exists(places.join(pipe.pipeline.warehouse, path)):
        stored = sum(file.rows for file in pipe.table(path).refresh().files())
    if not samples:
        return {"rows": stored, "rate": None, "rows_a_batch": None, "late": None, "from": None}
    at, newest, batch = max(samples, key=lambda sample: sample[0])
    return {"rows": stored, "rate": newest.rate, "rows_a_batch": newest.rate * batch, "late": newest.late, "from": at}


def _query(query: Query, observed: QueryStatistics) -> dict[str, Any]:
    query_shape = shape(query)
    joins = []
    for members, join in zip(query_shape.keys, observed.classes):
        joins.append({
            "on": " = ".join(_column_name(query, attribute.expr) for _, attribute in members),
            "keys": join.keys,
            "sampled": join.share,
            "overlap": overlap(join),
            "heaviest": heaviest(join),
            "selectivity": agreement(join)
        })
    return {
        "from": observed.at,
        "weight": observed.weight,
        "groups": observed.groups,
        "fanout": fanout(observed),
        "counted": observed.fanout is not None,
        "inputs": inputs(query, observed),
        "joins": joins
    }


def _column_name(query: Query, member: Expr) -> str:
    """A member of a join key as the query writes it."""
    def leaf(expr: Expr) -> str:
        assert isinstance(expr, Column)
        return f"{query.inputs[expr.input].alias}.{expr.name}"

    return render(member, "spark", leaf)
