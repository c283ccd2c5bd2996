"""Which query is in force at a boundary, with which text, plan and table: what the requests in the ledger amount to.

Requests are never changed or removed; a query as of a boundary is the result of applying them in order. So the same
question about a boundary of long ago has the same answer today. No table is read here.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from jobs.ledger.codec import decode_decision
from jobs.ledger.entries import PlanDecision

DECIDE = "decide"      # the action of a request that gives a query a plan
ADOPT = "adopt"      # of one that notes that a query belongs to its file in queries/: it changes no answer
FROM_FILE = "queries/"      # the reason of a creation that a file in that folder brought about
Status = Literal["active", "paused", "deleted", "failed"]
BEFORE_ALL = -1      # of a request made while the pipeline had no row: from the first boundary on


@dataclass(frozen=True)
class QueryChange:
    """A request of a person, a failure that a batch met, or a plan that was decided: one row of `ledger/changes`.

    `QueryChange("top", "pause", effective=60)` gives no answer at 60 and after. `effective` None: from the first
    boundary, for it was requested when the pipeline had no rows yet. `columns` are the result's, as JSON; of a decision
    they are what it says. `table`, of a creation that begins a new history: where rows of the old one are kept.
    """

    query: str
    action: str
    effective: int | None
    sql: str | None = None
    plan: str | None = None
    columns: str | None = None
    table: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class QueryState:
    """A query as of a boundary.

    `QueryState("top", "active", since=60, sql="SELECT …", columns="[]")` was last created or resumed at boundary 60;
    `since` None: it is there from the first boundary. `creation` counts how often it was.
    `decided` is the last plan decided for this creation, to be in force from `decided_from` on.
    """

    name: str
    status: Status
    since: int | None
    sql: str
    columns: str
    pin: str | None = None
    error: str | None = None
    creation: int = 1
    decided: PlanDecision | None = None
    decided_from: int = BEFORE_ALL

    @property
    def is_active(self) -> bool:
        return self.status == "active"

    @property
    def address(self) -> str:
        """The table of its answers, under the warehouse: always the same (see jobs.ledger.addresses)."""
        return address_of(self.name)


def address_of(query: str) -> str:
    """The table of a query's answers, for ever."""
    return f"results/{query}"


def queries_at(changes: Iterable[QueryChange], boundary: int | None = None) -> dict[str, QueryState]:
    """Every query that was ever created, as of the boundary; None: as of all that was ever requested."""
    states: dict[str, QueryState] = {}
    for change in in_order(changes):
        if boundary is not None and from_boundary(change) > boundary:
            break
        if change.action == "create":
            before = states.get(change.query)
            states[change.query] = created(change, before.creation + 1 if before is not None else 1)
        elif change.query in states:
            states[change.query] = changed(states[change.query], change)
    return states


def in_order(changes: Iterable[QueryChange]) -> list[QueryChange]:
    """By the boundary from which they are in force, given in the order in which they were made.

    A request is never in force before an earlier one for the same query: rows older than all before them can make the
    first boundary an earlier one between the two. A failure keeps its boundary: it is found after what was asked for
    later ones meanwhile.
    """
    latest: dict[str, int] = {}
    dated = []
    for change in changes:
        if change.action != "fail":
            when = max(from_boundary(change), latest.get(change.query, BEFORE_ALL))
            latest[change.query] = when
            change = change if when == from_boundary(change) else replace(change, effective=when)
        dated.append(change)
    return sorted(dated, key=from_boundary)


def from_boundary(change: QueryChange) -> int:
    """Before every boundary, if it is in force from the first one on."""
    return BEFORE_ALL if change.effective is None else change.effective


def created(change: QueryChange, creation: int = 1) -> QueryState:
    return QueryState(change.query, "active", change.effective, change.sql or "", change.columns or "[]",
                      pin=change.plan, creation=creation)


def changed(state: QueryState, change: QueryChange) -> QueryState:
    match change.action:
        case "resume":
            return replace(state, status="active", since=change.effective, error=None, creation=state.creation + 1,
                           decided=None)
        case "delete":
            return replace(state, status="deleted", error=None)
        case "pause":
            return replace(state, status="paused", error=None)
        case "fail":
            return replace(state, status="failed", error=change.reason)
        case "pin":
            return replace(state, pin=change.plan)
        case "unpin":
            return replace(state, pin=None)
        case "decide":
            decision = decode_decision(change.columns or "")
            if decision is None or decision.creation != state.creation:      # its query has been replaced since
                return state
            return replace(state, decided=decision, decided_from=from_boundary(change))
        case _:      # an action of a later version of this program
            return state


def from_files(changes: Iterable[QueryChange]) -> set[str]:
    """The queries whose last text came from a file of queries/, or whose file has been found to have it."""
    names = set[str]()
    for change in changes:
        if change.action == ADOPT or change.action == "create" and change.reason == FROM_FILE:
            names.add(change.query)
        elif change.action == "create":
            names.discard(change.query)
    return names


def never_before(changes: Iterable[QueryChange], name: str, boundary: int | None) -> int | None:
    """The boundary of a request for this query that would be in force at `boundary`, were there no earlier one for it.
    """
    requests = (change for change in changes if change.query == name and change.action != "fail")
    latest = max(map(from_boundary, requests), default=BEFORE_ALL)
    return latest if boundary is not None and latest > boundary else boundary


def text_since(changes: Iterable[QueryChange], name: str, boundary: int | None = None) -> int:
    """From which boundary on the query has had the text of this boundary (None: the last one that was requested).

    What was decided, measured and kept before that was another question's.
    """
    since, text = BEFORE_ALL, None
    for change in in_order(changes):
        in_force = boundary is None or from_boundary(change) <= boundary
        if change.query == name and change.action == "create" and change.sql != text and in_force:
            since, text = from_boundary(change), change.sql
    return since


def next_change(changes: Iterable[QueryChange], after: int) -> int | None:
    """The first boundary later than `after` at which something changes."""
    later = (c.effective for c in in_order(changes) if c.effective is not None and c.effective > after)
    return min(later, default=None)
