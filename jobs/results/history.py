"""What a query's batches and plans were: one point a batch, one span a plan in force.

Read from the ledger and files' own counts, nothing is priced here.
"""
from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from jobs.adapt import choice, statistics_table
from jobs.batch.works import parsed
from jobs.engine import row_counts
from jobs.ledger.codec import decode_form
from jobs.ledger.entries import CommittedBatch
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import BEFORE_ALL, queries_at
from jobs.results import decisions
from jobs.storage import places, tables
from optimizer.errors import ForebayError
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import Plan, named
from optimizer.plan.tree import state_sets
from optimizer.query.model import Query
from optimizer.query.shape import shape


@dataclass(frozen=True)
class BatchPoint:
    """One committed batch as one query saw it: its first and last boundary; `at` is when it was committed, `asked_by`
    is what made it run: a kind of trigger (`cli`: a command) and a DAG run."""

    batch: int
    at: int
    boundary: int
    last: int
    metrics: Mapping[str, float]
    asked_by: tuple[str, str]


@dataclass(frozen=True)
class Span:
    """A plan in force without a break.

    `decision` is the ledger's row about it, None where it was taken by rule or by a pin alone.
    """

    plan: Plan
    query: Query
    sql: str
    switched_from: str | None
    reason: str
    points: tuple[BatchPoint, ...]
    decision: Mapping[str, Any] | None

    @property
    def first(self) -> BatchPoint:
        return self.points[0]

    def median(self, metric: str) -> float | None:
        known = [p.metrics[metric] for p in self.points if metric in p.metrics]
        return statistics.median(known) if known else None


@dataclass(frozen=True)
class QueryRecords:
    """What is read once for all batches of a query: commits by batch, joins by boundary, decisions as they were
    written.
    """

    commits: Mapping[int, CommittedBatch]
    joins: Mapping[int, tuple[float, float]]
    written: list[dict[str, Any]]


def spans(pipe: OpenPipeline, name: str) -> tuple[Span, ...]:
    """Oldest first."""
    document = decisions.document(pipe, name)
    known = QueryRecords({t.number: t for t in pipe.ledger.committed_batches()}, statistics_table.joins(pipe, name),
                         choice.rows(pipe, name))
    grouped = list[list[dict[str, Any]]]()
    for entry in document["decisions"]:
        if not grouped or any(grouped[-1][-1][key] != entry[key] for key in ("plan", "text_since")):
            grouped.append([])
        grouped[-1].append(entry)
    return tuple(_span(pipe, name, entries, known) for entries in grouped)


def weighed(pipe: OpenPipeline, name: str, found: Iterable[Span], after: int) -> tuple[Span, ...]:
    """With the bytes of state after each batch later than this one: each is a look at a version of a table, so old ones
    are not looked at again.
    """
    sizes = _state_bytes(pipe, name, after)
    return tuple(
        replace(s, points=tuple(_with_bytes(p, s, sizes) if p.batch > after else p for p in s.points)) for s in found)


def _with_bytes(point: BatchPoint, span: Span, sizes: Mapping[int, int]) -> BatchPoint:
    size = sizes.get(point.batch) if state_sets(Lowering(shape(span.query), span.plan)) else 0
    return point if size is None else replace(point, metrics={**point.metrics, "state_bytes": float(size)})


def _state_bytes(pipe: OpenPipeline, name: str, after: int) -> dict[int, int]:
    """What a query's state took on the disk after each batch that changed it, as far as its tables are still there."""
    found: dict[int, int] = {}
    base = places.join(pipe.pipeline.warehouse, "state", name)
    for path in (places.join(base, epoch, s)
                 for epoch in places.listed(base)
                 for s in places.listed(places.join(base, epoch))):
        for batch, size in _sizes(path, after).items():
            found[batch] = found.get(batch, 0) + size
    return found


def _sizes(path: str, after: int) -> dict[int, int]:
    """Of one table, from its newest version back."""
    found: dict[int, int] = {}
    if not tables.exists(path):
        return found
    table = tables.open_table(path)
    for version in range(table.version, 0, -1):
        try:
            was = table.at(version)
        except ForebayError:      # its log is not kept for ever
            break
        batch = was.transaction("batch")
        if batch <= after:
            break
        found.setdefault(batch, sum(f.size for f in was.files()))
    return found


def _span(pipe: OpenPipeline, name: str, entries: list[dict[str, Any]], known: QueryRecords) -> Span:
    first = entries[0]
    query_state = queries_at(pipe.ledger.all_changes(), first["boundary"])[name]
    query = parsed(query_state.sql, pipe.catalog)
    since = _text_since(first)
    decision = next((r for r in reversed(known.written)
                     if since <= r["boundary"] <= first["boundary"] and r["plan"] == first["plan"]), None)
    plan = decode_form(decision["form"]) if decision else named(query, first["plan"])
    return Span(plan, query, query_state.sql, first["switched_from"], first["reason"],
                tuple(_point(pipe, query, e, known) for e in entries), decision)


def _text_since(entry: Mapping[str, Any]) -> int:
    return BEFORE_ALL if entry["text_since"] is None else int(entry["text_since"])


def _point(pipe: OpenPipeline, query: Query, entry: Mapping[str, Any], known: QueryRecords) -> BatchPoint:
    commit = known.commits[entry["batch"]]
    metrics, occasion = _metrics(pipe, query, entry, known), (commit.runner.trigger, commit.runner.dag_run)
    return BatchPoint(entry["batch"], commit.committed_at, entry["boundary"], _last(pipe, entry), metrics, occasion)


def _last(pipe: OpenPipeline, entry: Mapping[str, Any]) -> int:
    return int(entry["boundary"] + (entry["boundaries"] - 1) * pipe.pipeline.batch)


def _metrics(pipe: OpenPipeline, query: Query, entry: Mapping[str, Any], known: QueryRecords) -> dict[str, float]:
    """Seconds are of one boundary."""
    last = _last(pipe, entry)
    joined, fan_out = known.joins.get(last, (None, None))
    said = {
        "measured_s": entry["measured_s"],
        "predicted_s": entry["predicted_s"],
        "best_s": entry["best_s"],
        "regret_s": decisions.regret(entry),
        "state_rows": _state_rows(known.written, entry),
        "rows": _arrived(pipe, query, entry["boundary"] - pipe.pipeline.batch, last),
        "joined_rows": joined,
        "fan_out": fan_out,
        "boundaries": entry["boundaries"]
    }
    return {k: float(v) for k, v in said.items() if v is not None}


def _state_rows(written: list[dict[str, Any]], entry: Mapping[str, Any]) -> float | None:
    """As predicted with the decision in force."""
    row = choice.in_force(written, entry["boundary"], entry["plan"], _text_since(entry))
    listed = json.loads(row["candidates"]) if row else []
    return next((c["state_rows"] for c in listed if c["plan"] == entry["plan"]), None)


def _arrived(pipe: OpenPipeline, query: Query, before: int, last: int) -> int:
    """Rows of the query's streams that its batch counted first."""
    streams = {i.source for i in query.inputs if i.is_stream}
    stored = [
        pipe.table(f"streams/{s}") for s in streams if tables.exists(places.join(pipe.pipeline.warehouse, "streams", s))
    ]
    return sum(count for table in stored for _, count in row_counts.by_boundary(table, before, last))
