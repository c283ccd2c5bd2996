"""Which plan answered a query at which boundary, as the ledger tells it; it decides nothing."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobs.adapt import decisions_table
from jobs.ledger.entries import TimeSpent
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import BEFORE_ALL, queries_at, text_since
from jobs.requests import requests


def document(pipe: OpenPipeline, name: str) -> dict[str, Any]:
    """INTERFACE's `plans`: one entry a batch, whose time is that of all its queries divided by its boundaries.

    `trying` is what trying plans has taken so far, for this query, and of all seconds of the pipeline's batches.
    """
    query_state, changes = requests.show(pipe, name), pipe.ledger.all_changes()
    written = decisions_table.rows(pipe, name)
    decisions: list[dict[str, Any]] = []
    runners: set[str] = set()
    for batch in pipe.ledger.committed_batches():
        started = batch.runner.process not in runners
        runners.add(batch.runner.process)
        if name in batch.plan_names:
            since, plan = text_since(changes, name, batch.first_boundary), batch.plan_names[name]
            state_then = queries_at(changes, batch.first_boundary).get(name)
            pinned = state_then is not None and state_then.pin == plan
            before = decisions[-1]["plan"] if decisions and decisions[-1]["boundary"] >= since else plan
            row = decisions_table.in_force(written, batch.first_boundary, plan, since)      # None: by rule
            # as if the query were alone: all that the batch took but tasks of other queries
            of_others = sum(seconds for query, seconds in batch.task_seconds.items() if query != name)
            alone = max(batch.seconds - of_others, batch.task_seconds.get(name, 0.0))
            tried_plan, tried_s = batch.tried(name) or (None, None)
            decisions.append({
                "batch": batch.number,
                "boundary": batch.first_boundary,
                "boundaries": batch.boundary_count,
                "plan": plan,
                "text_since": None if since == BEFORE_ALL else since,
                "switched_from": None if before == plan else before,
                "measured_s": alone / batch.boundary_count,
                "started": started,
                "tried": tried_plan,
                "tried_s": tried_s,
                "predicted_s": row["predicted_s"] if row else None,
                "best_s": row["best_s"] if row else None,
                "reason": "pinned" if pinned else row["reason"] if row else decisions_table.RULE
            })
    regrets = [seconds for decision in decisions if (seconds := regret(decision)) is not None]
    last = pipe.ledger.last()
    spent = last.time_spent if last is not None else TimeSpent()
    return {"query": name, "pinned": query_state.pin, "regret_s": sum(regrets) if regrets else None,
            "trying": {"query_s": sum(entry["tried_s"] or 0.0 for entry in decisions), "pipeline_s": spent.trying,
                       "of_s": spent.seconds}, "decisions": decisions}


def regret(entry: Mapping[str, Any]) -> float | None:
    """Measured seconds less the best candidate's, estimated from the same statistics; of batches of one boundary only,
    since prices are of one, and not of a process's first, which also starts Spark whatever the plan."""
    counts = entry["best_s"] is not None and entry["boundaries"] == 1 and not entry["started"]
    return float(entry["measured_s"] - entry["best_s"]) if counts else None
