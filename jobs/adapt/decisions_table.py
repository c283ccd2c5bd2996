"""warehouse/ledger/decisions: a row for each decision on a query's plan that says something new, with all candidates
priced; for people to query, and for a runner to go on from.

It may lose rows: no answer depends on any.
"""
from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from jobs.adapt.sharing import shared_reason
from jobs.ledger.codec import encode_form
from jobs.ledger.entries import Batch
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import BEFORE_ALL
from jobs.storage import tables
from optimizer.choice.decide import Decision
from optimizer.sharing.ways import in_words as way_in_words

PATH = "ledger/decisions"
STAMP = pa.timestamp("us", "UTC")
DECISIONS = pa.schema([("boundary", STAMP), ("query", pa.string()), ("plan", pa.string()), ("form", pa.string()),
                       ("switched_from", pa.string()), ("predicted_s", pa.float64()), ("best_s", pa.float64()),
                       ("reason", pa.string()), ("rows_seen", pa.float64()), ("candidates", pa.string()),
                       ("corrections", pa.string()), ("at", STAMP)])
MANY = 64               # files before they are merged
RULE = "by rule, before any statistics: inputs without grouping attributes aggregate early"


@dataclass(frozen=True)
class SharedWork:
    """With whom a query shares, and by which way its group's work is done, in words."""

    group: str
    way: str


def append(pipe: OpenPipeline, new_rows: list[dict[str, Any]]) -> None:
    pipe.table(PATH, DECISIONS).append(pa.Table.from_pylist(new_rows, schema=DECISIONS), most=MANY)


def shared_works(batch: Batch) -> dict[str, SharedWork]:
    """By name, of each query that shares in the batch."""
    works = {}
    for group, names in batch.query_groups.items():
        for name in names:
            works[name] = SharedWork(group, way_in_words(batch.plans[name]))
    return works


def shared_row(pipe: OpenPipeline, name: str, batch: Batch, work: SharedWork) -> dict[str, Any]:
    """The plan of a member of a query group."""
    plan, count = batch.plans[name], len(batch.query_groups[work.group])
    prices, predicted = batch.query_group_prices.get(work.group), None
    if prices is not None and prices.together_s is not None and prices.apart_s is not None:
        predicted = prices.together_s / count
    return {"boundary": batch.boundaries[0], "query": name, "plan": plan.name, "form": encode_form(plan),
            "switched_from": None, "predicted_s": predicted, "best_s": None,
            "reason": shared_reason(plan, count, prices), "rows_seen": 0.0, "candidates": "[]",
            "corrections": "{}", "at": pipe.clock()}


def decision_row(pipe: OpenPipeline, name: str, decision: Decision, boundary: int,
                 rows_seen: float) -> dict[str, Any]:
    """A decision on a query that answers alone."""
    sound = [c for c in decision.candidates if c.refused is None]
    candidates = [{"plan": c.plan.name, "predicted_s": c.seconds, "deviation_s": c.deviation,
                   "state_rows": c.state_rows, "paper_cost": c.paper} for c in sound]
    return {"boundary": boundary, "query": name, "plan": decision.plan.name, "form": encode_form(decision.plan),
            "switched_from": decision.switched_from.name if decision.switched_from else None,
            "predicted_s": decision.predicted, "best_s": decision.best, "reason": decision.reason,
            "rows_seen": rows_seen,
            "candidates": json.dumps(candidates), "corrections": json.dumps(decision.corrections), "at": pipe.clock()}


def rows(pipe: OpenPipeline, name: str) -> list[dict[str, Any]]:
    """The decisions about a query that were written down, oldest first; `boundary` in microseconds."""
    return rows_by_query(pipe).get(name, [])


def rows_by_query(pipe: OpenPipeline) -> dict[str, list[dict[str, Any]]]:
    """The same of all queries, for who asks about many: the table is read whole."""
    place = pipe.path(PATH)
    if not tables.exists(place):
        return {}
    # Filtered as Python values: Arrow's own filters, and instants, make it import pandas.
    all_rows = tables.open_table(place).rows()
    boundaries = all_rows.column("boundary").cast(pa.int64()).to_pylist()
    decisions = all_rows.drop_columns(["boundary", "at"]).to_pylist()
    by_query: dict[str, list[dict[str, Any]]] = {}
    for row, boundary in sorted(zip(decisions, boundaries), key=lambda pair: pair[1]):
        by_query.setdefault(row["query"], []).append({**row, "boundary": boundary})
    return by_query


def in_force(rows: list[dict[str, Any]], boundary: int, plan: str, since: int = BEFORE_ALL) -> dict[str, Any] | None:
    """The decision that held at a boundary, if it is the one for the plan that ran there.

    Plans of a text before `since` have the same names.
    """
    row = next((r for r in reversed(rows) if r["boundary"] <= boundary), None)
    return row if row is not None and row["plan"] == plan and row["boundary"] >= since else None
