"""What the ledger's changes amount to: which query is in force at a boundary, with which text, plan and result table; reads no table."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from jobs.ledger.ledger import Change

STARTS = ("create", "resume")
BEFORE_ALL = -1      # of a request made while the pipeline had no row: from the first boundary on
ENDS = {"delete": "deleted", "pause": "paused", "fail": "failed"}


@dataclass(frozen=True)
class Standing:
    """A query as of some boundary. `since` is where it was last created or resumed; None: from the first boundary."""

    name: str
    state: str
    since: int | None
    sql: str
    table: str
    columns: str
    pin: str | None = None
    error: str | None = None

    @property
    def active(self) -> bool:
        return self.state == "active"


def standings(changes: Iterable[Change], boundary: int | None = None) -> dict[str, Standing]:
    """Every query that was ever created, as it stands at the boundary (None: after all that was asked)."""
    by_name: dict[str, Standing] = {}
    for change in in_order(changes):
        if boundary is None or _when(change) <= boundary:
            changed = _apply(by_name.get(change.query), change)
            if changed is not None:
                by_name[change.query] = changed
    return by_name


def in_order(changes: Iterable[Change]) -> list[Change]:
    """By the boundary from which they are in force, given in the order in which they were made.

    A request is never in force before an earlier one for the same query: rows older than all before them can make the first
    boundary an earlier one between the two. A failure keeps its boundary: it is found after what was asked for later ones meanwhile.
    """
    latest: dict[str, int] = {}
    dated = []
    for change in changes:
        if change.action != "fail":
            when = max(_when(change), latest.get(change.query, BEFORE_ALL))
            latest[change.query] = when
            change = change if when == _when(change) else replace(change, effective=when)
        dated.append(change)
    return sorted(dated, key=_when)


def never_before(changes: Iterable[Change], name: str, boundary: int | None) -> int | None:
    """The boundary of a request for this query that would be in force at `boundary`, were there no earlier one for it."""
    latest = max((_when(c) for c in changes if c.query == name and c.action != "fail"), default=BEFORE_ALL)
    return latest if boundary is not None and latest > boundary else boundary


def text_since(changes: Iterable[Change], name: str, boundary: int | None = None) -> int:
    """From which boundary on the query has had the text of this boundary (None: the last one that was asked for).

    What was decided, measured and kept before that was another question's.
    """
    since, text = BEFORE_ALL, None
    for change in in_order(changes):
        if change.query == name and change.action == "create" and change.sql != text and (boundary is None or _when(change) <= boundary):
            since, text = _when(change), change.sql
    return since


def _when(change: Change) -> int:
    return BEFORE_ALL if change.effective is None else change.effective


def _apply(old: Standing | None, change: Change) -> Standing | None:
    if change.action == "create":
        return Standing(change.query, "active", change.effective, change.sql or "", change.table or f"results/{change.query}",
                        change.columns or "[]", change.plan)
    if old is None:
        return None
    if change.action == "resume":
        return replace(old, state="active", since=change.effective, error=None)
    if change.action in ENDS:
        return replace(old, state=ENDS[change.action], error=change.reason if change.action == "fail" else None)
    if change.action in ("pin", "unpin"):
        return replace(old, pin=change.plan if change.action == "pin" else None)
    return old


def next_change(changes: Iterable[Change], after: int) -> int | None:
    """The first boundary later than `after` at which something changes."""
    return min((c.effective for c in in_order(changes) if c.effective is not None and c.effective > after), default=None)
