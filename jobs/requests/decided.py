"""Decisions of `forebay adapt` as requests: entered all at once, each for one creation of its query; nothing is priced.

They never wait for a runner, and hold no lock: whoever enters first wins.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from jobs.ledger.codec import encode_decision
from jobs.ledger.entries import PlanDecision
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import DECIDE, QueryChange, QueryState, never_before, queries_at
from jobs.requests.requests import effective

MEANWHILE = "another `forebay adapt` has decided meanwhile"


@dataclass(frozen=True)
class Entered:
    """What became of a decision: `Entered(60)` is in force from boundary 60 on; a refused one says why.

    `Entered(None)` is in force from the first boundary, which is not known before there are rows.
    """

    effective: int | None
    refused: str | None = None


def count(changes: Iterable[QueryChange]) -> int:
    """How many decisions were entered so far: whoever enters others says how many there were when it began to price."""
    return sum(change.action == DECIDE for change in changes)


def enter(pipe: OpenPipeline, decisions: Mapping[str, PlanDecision], known: int) -> dict[str, Entered]:
    """Enters decisions by query, in one commit, each in force from the first boundary not yet begun.

    `known` decisions were there when these were made. Refused is what is for a query that has ended, has been pinned or
    was created anew since, and everything if somebody else has decided since.
    """
    outcomes: dict[str, Entered] = {}

    def make(begun: int | None, changes: tuple[QueryChange, ...]) -> list[QueryChange]:
        outcomes.clear()
        queries, entered = queries_at(changes), []
        for name, decision in decisions.items():
            reason = MEANWHILE if count(changes) != known else _refusal(queries.get(name), decision)
            if reason is not None:
                outcomes[name] = Entered(None, reason)
                continue
            boundary = never_before(changes, name, effective(pipe, begun))
            outcomes[name] = Entered(boundary)
            entered.append(QueryChange(name, DECIDE, boundary, plan=decision.plan.name,
                                       columns=encode_decision(decision), reason=decision.reason))
        return entered

    pipe.ledger.request_together(make)
    return outcomes


def _refusal(query_state: QueryState | None, decision: PlanDecision) -> str | None:
    """Why the decision is no longer one for this query."""
    if query_state is None:
        return "there is no such query"
    if not query_state.is_active:
        return f"the query is {query_state.status} since"
    if query_state.creation != decision.creation:
        return "the query was replaced or resumed since"
    return f"the query is pinned to {query_state.pin} since" if query_state.pin is not None else None
