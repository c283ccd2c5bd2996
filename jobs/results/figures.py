"""What `forebay stats` says: figures of streams, queries and joins from what was observed.

Nothing is sampled or decided here.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobs.adapt.statistics import Statistics
from jobs.batch.works import parsed
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import queries_at
from jobs.storage import places, tables
from optimizer.expression.expr import Column, Expr
from optimizer.expression.scalar import render
from optimizer.query.model import Query
from optimizer.query.shape import Shape, shape
from optimizer.statistics.figures import agreement, fanout, heaviest, inputs, overlap
from optimizer.statistics.observed import Observed


def document(statistics: Statistics) -> dict[str, Any]:
    """Streams first, from the newest query that saw each, then every active query that was sampled.

    `age` is in boundaries answered since.
    """
    pipe = statistics.pipe
    last = pipe.ledger.committed()

    def age(at: int | None) -> int | None:
        return None if at is None or last is None else max(last - at, 0) // pipe.pipeline.batch

    found: dict[str, tuple[Query, Observed]] = {}
    for name, query_state in queries_at(pipe.ledger.all_changes()).items():
        if query_state.is_active:
            query = parsed(query_state.sql, pipe.catalog)
            known = statistics.observed(name, query)
            if known is not None:
                found[name] = (query, known)
    streams = {s: _stream(pipe, s, found) for s in pipe.pipeline.streams}
    queries = {n: _query(q, known) for n, (q, known) in found.items()}
    return {
        part: {
            n: {
                **said, "age": age(said["from"])
            } for n, said in each.items()
        } for part, each in (("streams", streams), ("queries", queries))
    }


def _stream(pipe: OpenPipeline, stream: str, found: Mapping[str, tuple[Query, Observed]]) -> dict[str, Any]:
    seen = [(known.at or 0, known.inputs[i], known.batch)
            for q, known in found.values()
            for i, d in enumerate(q.inputs)
            if d.source == stream]
    path = f"streams/{stream}"
    stored = sum(
        f.rows
        for f in pipe.table(path).refresh().files()) if tables.exists(places.join(pipe.pipeline.warehouse, path)) else 0
    if not seen:
        return {"rows": stored, "rate": None, "rows_a_batch": None, "late": None, "from": None}
    at, one, batch = max(seen, key=lambda s: s[0])
    return {"rows": stored, "rate": one.rate, "rows_a_batch": one.rate * batch, "late": one.late, "from": at}


def _query(query: Query, known: Observed) -> dict[str, Any]:
    asked = shape(query)
    joins = [{
        "on": " = ".join(_names(query, asked, c)),
        "keys": known.classes[c].keys,
        "sampled": known.classes[c].share,
        "overlap": overlap(known.classes[c]),
        "heaviest": heaviest(known.classes[c]),
        "selectivity": agreement(known.classes[c])
    } for c in range(len(asked.keys))]
    return {
        "from": known.at,
        "weight": known.weight,
        "groups": known.groups,
        "fanout": fanout(known),
        "counted": known.fanout is not None,
        "inputs": inputs(query, known),
        "joins": joins
    }


def _names(query: Query, asked: Shape, c: int) -> list[str]:
    """The members of a join key as the query writes them."""
    def leaf(expr: Expr) -> str:
        assert isinstance(expr, Column)
        return f"{query.inputs[expr.input].alias}.{expr.name}"

    return [render(a.expr, "spark", leaf) for _, a in asked.keys[c]]
