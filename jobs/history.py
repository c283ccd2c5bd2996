"""What a query's batches and plans were: one point a batch, one span a plan in force; read from the ledger and files' own counts, nothing is priced here."""
from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jobs import choice, compact, decisions, places, tables
from jobs.queries import standings
from jobs.works import parsed, plan_from
from optimizer.plan import Plan, named
from optimizer.query import Query

if TYPE_CHECKING:
    from jobs.runner import Runtime


@dataclass(frozen=True)
class Point:
    """One committed batch as one query saw it: its first and last boundary; `at` is when it was committed."""

    batch: int
    at: int
    boundary: int
    last: int
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class Span:
    """A plan in force without a break. `decision` is the ledger's row about it, None where it was taken by rule or by a pin alone."""

    plan: Plan
    query: Query
    sql: str
    switched_from: str | None
    reason: str
    points: tuple[Point, ...]
    decision: Mapping[str, Any] | None

    @property
    def first(self) -> Point:
        return self.points[0]

    def median(self, metric: str) -> float | None:
        known = [p.metrics[metric] for p in self.points if metric in p.metrics]
        return statistics.median(known) if known else None


def spans(rt: Runtime, name: str) -> tuple[Span, ...]:
    """Oldest first."""
    document, written = decisions.document(rt, name), choice.rows(rt, name)
    commits, grouped = {t.number: t.at for t in rt.ledger.told()}, list[list[dict[str, Any]]]()
    for entry in document["decisions"]:
        if not grouped or grouped[-1][-1]["plan"] != entry["plan"]:
            grouped.append([])
        grouped[-1].append(entry)
    return tuple(_span(rt, name, entries, written, commits) for entries in grouped)


def _span(rt: Runtime, name: str, entries: list[dict[str, Any]], written: list[dict[str, Any]], commits: Mapping[int, int]) -> Span:
    first = entries[0]
    standing = standings(rt.ledger.all_changes(), first["boundary"])[name]
    query = parsed(standing.sql, rt.catalog)
    decision = next((r for r in reversed(written) if r["boundary"] <= first["boundary"] and r["plan"] == first["plan"]), None)
    plan = plan_from(json.loads(decision["form"])) if decision else named(query, first["plan"])
    points = tuple(Point(e["batch"], commits[e["batch"]], e["boundary"], _last(rt, e), _metrics(rt, query, e, _state_rows(written, e))) for e in entries)
    return Span(plan, query, standing.sql, first["switched_from"], first["reason"], points, decision)


def _last(rt: Runtime, entry: Mapping[str, Any]) -> int:
    return int(entry["boundary"] + (entry["boundaries"] - 1) * rt.pipeline.batch)


def _metrics(rt: Runtime, query: Query, entry: Mapping[str, Any], state_rows: float | None) -> dict[str, float]:
    """Seconds are of one boundary."""
    said = {"measured_s": entry["measured_s"], "predicted_s": entry["predicted_s"], "best_s": entry["best_s"], "regret_s": decisions.regret(entry),
            "state_rows": state_rows, "rows": _arrived(rt, query, entry["boundary"] - rt.pipeline.batch, _last(rt, entry)), "boundaries": entry["boundaries"]}
    return {k: float(v) for k, v in said.items() if v is not None}


def _state_rows(written: list[dict[str, Any]], entry: Mapping[str, Any]) -> float | None:
    """As predicted with the decision in force."""
    row = choice.in_force(written, entry["boundary"], entry["plan"])
    listed = json.loads(row["candidates"]) if row else []
    return next((c["state_rows"] for c in listed if c["plan"] == entry["plan"]), None)


def _arrived(rt: Runtime, query: Query, before: int, last: int) -> int:
    """Rows of the query's streams that its batch counted first."""
    streams = {i.source for i in query.inputs if i.is_stream}
    stored = [rt.table(f"streams/{s}") for s in streams if tables.exists(places.join(rt.pipeline.warehouse, "streams", s))]
    return sum(count for table in stored for _, count in compact.counts(table, before, last))
