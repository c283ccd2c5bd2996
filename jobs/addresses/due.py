"""Which boundaries of which queries committed batches have answered: a matter of requests and of when each
query is due, whether its answer had rows or none."""
from __future__ import annotations

from jobs.batch.works import parsed
from jobs.ledger import passed
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import from_boundary, in_order, queries_at

CHANGING = ("create", "resume", "delete", "pause", "fail")      # what begins or ends answers


def published_in(pipe: OpenPipeline, after: int, upto: int) -> dict[str, list[int]]:
    """By query: its boundaries after < t <= upto, in order; a query that has none is not in it."""
    first = pipe.ledger.first()
    if first is None:
        return {}
    begin, changes = max(first, after + 1), pipe.ledger.all_changes()
    moments = {from_boundary(change) for change in in_order(changes) if change.action in CHANGING}
    starts = sorted({begin, *(moment for moment in moments if begin < moment <= upto)})
    due: dict[str, list[int]] = {}
    spans = passed.spans(pipe.ledger)
    for start, end in zip(starts, [*starts[1:], upto + 1]):
        for name, state in queries_at(changes, start).items():
            if state.is_active:
                query = parsed(state.sql, pipe.catalog)
                multiples = passed.multiples(query.every, start, end, spans)
                if boundaries := [t for t in multiples if query.due(t)]:
                    due.setdefault(name, []).extend(boundaries)
    return due
