"""What a query's batches and plans were: one point a batch, one span a plan in force, with the prices it rests on.

Read from the ledger and files' own counts, nothing is priced here.
"""
from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from jobs.adapt import decisions_table, statistics_table
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
    """One committed batch, for one query: its first and last boundary, and its figures by name.

    `at` is when it was committed, `asked_by` what started the run: a kind of trigger (`cli`: a command) and a DAG run.
    """

    batch: int
    at: int
    boundary: int
    last: int
    metrics: Mapping[str, float]
    asked_by: tuple[str, str]


@dataclass(frozen=True)
class CandidatePrice:
    """What a decision had of one plan: `CandidatePrice("LAP recompute", 0.2, 0.0, 9e4, 0.03)`.

    Rows of state, the paper's cost and the standard deviation of the price are None for plans far from the cheapest.
    """

    plan: str
    seconds: float
    state_rows: float | None
    paper_cost: float | None
    deviation: float | None = None


@dataclass(frozen=True)
class PriceList:
    """The candidates of one decision; their prices hold from its boundary until the next decision that is written."""

    boundary: int
    prices: tuple[CandidatePrice, ...]


@dataclass(frozen=True)
class Span:
    """A plan in force without a break.

    `decision` is the ledger's row about it, None where it was taken by rule or by a pin alone. `price_lists` are of the
    decision in force at its first boundary and of those since, oldest first.
    """

    plan: Plan
    query: Query
    sql: str
    switched_from: str | None
    reason: str
    points: tuple[BatchPoint, ...]
    decision: Mapping[str, Any] | None
    price_lists: tuple[PriceList, ...]

    @property
    def first(self) -> BatchPoint:
        return self.points[0]

    @property
    def last(self) -> BatchPoint:
        return self.points[-1]

    @property
    def boundaries(self) -> int:
        return round(sum(point.metrics["boundaries"] for point in self.points))

    def median(self, metric: str) -> float | None:
        values = [point.metrics[metric] for point in self.points if metric in point.metrics]
        return statistics.median(values) if values else None


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
    batches = {batch.number: batch for batch in pipe.ledger.committed_batches()}
    records = QueryRecords(batches, statistics_table.joins(pipe, name), decisions_table.rows(pipe, name))
    entries_by_span = list[list[dict[str, Any]]]()
    for entry in document["decisions"]:
        previous = entries_by_span[-1][-1] if entries_by_span else None
        if previous is None or any(previous[key] != entry[key] for key in ("plan", "text_since")):
            entries_by_span.append([])
        entries_by_span[-1].append(entry)
    return tuple(_span(pipe, name, entries, records) for entries in entries_by_span)


def weighed(pipe: OpenPipeline, name: str, spans: Iterable[Span], after: int) -> tuple[Span, ...]:
    """The spans with the bytes of state after each batch later than `after`.

    Each figure is a look at a version of a table, so old ones are not looked at again.
    """
    sizes = _state_bytes(pipe, name, after)
    with_bytes = []
    for span in spans:
        has_state = bool(state_sets(Lowering(shape(span.query), span.plan)))
        points = list[BatchPoint]()
        for point in span.points:
            size = sizes.get(point.batch) if has_state else 0
            if point.batch > after and size is not None:
                point = replace(point, metrics={**point.metrics, "state_bytes": float(size)})
            points.append(point)
        with_bytes.append(replace(span, points=tuple(points)))
    return tuple(with_bytes)


def _state_bytes(pipe: OpenPipeline, name: str, after: int) -> dict[int, int]:
    """What a query's state took on the disk after each batch that changed it, as far as its tables are still there."""
    bytes_by_batch: dict[int, int] = {}
    base = places.join(pipe.pipeline.warehouse, "state", name)
    for epoch in places.listed(base):
        for state_set in places.listed(places.join(base, epoch)):
            for batch, size in _sizes(places.join(base, epoch, state_set), after).items():
                bytes_by_batch[batch] = bytes_by_batch.get(batch, 0) + size
    return bytes_by_batch


def _sizes(path: str, after: int) -> dict[int, int]:
    """Bytes of one table after each batch, from its newest version back."""
    bytes_by_batch: dict[int, int] = {}
    if not tables.exists(path):
        return bytes_by_batch
    newest = tables.open_table(path)
    for version in range(newest.version, 0, -1):
        try:
            table = newest.at(version)
        except ForebayError:      # its log is not kept for ever
            break
        batch = table.transaction("batch")
        if batch <= after:
            break
        bytes_by_batch.setdefault(batch, sum(file.size for file in table.files()))
    return bytes_by_batch


def _span(pipe: OpenPipeline, name: str, entries: list[dict[str, Any]], records: QueryRecords) -> Span:
    first = entries[0]
    query_state = queries_at(pipe.ledger.all_changes(), first["boundary"])[name]
    query = parsed(query_state.sql, pipe.catalog)
    since = _text_since(first)
    decision = next((row for row in reversed(records.written)
                     if since <= row["boundary"] <= first["boundary"] and row["plan"] == first["plan"]), None)
    plan = decode_form(decision["form"]) if decision else named(query, first["plan"])
    points = list[BatchPoint]()
    for entry in entries:
        batch, metrics = records.commits[entry["batch"]], _metrics(pipe, query, entry, records)
        points.append(BatchPoint(entry["batch"], batch.committed_at, entry["boundary"], _last(pipe, entry), metrics,
                                 (batch.runner.trigger, batch.runner.dag_run)))
    rows = [row for row in records.written if since <= row["boundary"] <= points[-1].last]
    return Span(plan, query, query_state.sql, first["switched_from"], first["reason"], tuple(points), decision,
                _price_lists(rows, first["boundary"]))


def _price_lists(rows: list[dict[str, Any]], first: int) -> tuple[PriceList, ...]:
    """Of the decision in force at the first boundary, and of those after it.

    Queries that share are decided together: nothing of one alone was priced then.
    """
    priced = [price_list for row in rows if (price_list := _price_list(row)).prices]
    before = [price_list for price_list in priced if price_list.boundary <= first]
    return tuple(before[-1:]) + tuple(priced[len(before):])


def _price_list(row: Mapping[str, Any]) -> PriceList:
    prices = [CandidatePrice(c["plan"], c["predicted_s"], c["state_rows"], c["paper_cost"], c.get("deviation_s"))
              for c in json.loads(row["candidates"])]
    return PriceList(row["boundary"], tuple(prices))


def _text_since(entry: Mapping[str, Any]) -> int:
    return BEFORE_ALL if entry["text_since"] is None else int(entry["text_since"])


def _last(pipe: OpenPipeline, entry: Mapping[str, Any]) -> int:
    return int(entry["boundary"] + (entry["boundaries"] - 1) * pipe.pipeline.batch)


def _metrics(pipe: OpenPipeline, query: Query, entry: Mapping[str, Any], records: QueryRecords) -> dict[str, float]:
    """Figures by name, those that there are; seconds are of one boundary."""
    last = _last(pipe, entry)
    joined, fan_out = records.joins.get(last, (None, None))
    decision = decisions_table.in_force(records.written, entry["boundary"], entry["plan"], _text_since(entry))
    candidates = json.loads(decision["candidates"]) if decision else []
    metrics = {
        "measured_s": entry["measured_s"],
        "predicted_s": entry["predicted_s"],
        "best_s": entry["best_s"],
        "regret_s": decisions.regret(entry),
        "tried_s": entry["tried_s"],
        "state_rows": next((c["state_rows"] for c in candidates if c["plan"] == entry["plan"]), None),
        "rows": _arrived_rows(pipe, query, entry["boundary"] - pipe.pipeline.batch, last),
        "joined_rows": joined,
        "fan_out": fan_out,
        "boundaries": entry["boundaries"]
    }
    return {name: float(value) for name, value in metrics.items() if value is not None}


def _arrived_rows(pipe: OpenPipeline, query: Query, before: int, last: int) -> int:
    """Rows of the query's streams that its batch counted first."""
    total = 0
    for stream in {i.source for i in query.inputs if i.is_stream}:
        if tables.exists(places.join(pipe.pipeline.warehouse, "streams", stream)):
            counts = row_counts.by_boundary(pipe.table(f"streams/{stream}"), before, last)
            total += sum(count for _, count in counts)
    return total
