"""What the ledger's changes amount to: which query is in force at a boundary, with which text, plan and result table; reads no table."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from jobs.ledger import Change

STARTS = ("create", "resume")
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
    found: dict[str, Standing] = {}
    for change in sorted(changes, key=_when):      # a failure is found after what was asked for later boundaries meanwhile
        if boundary is None or change.effective is None or change.effective <= boundary:
            changed = _apply(found.get(change.query), change)
            if changed is not None:
                found[change.query] = changed
    return found


def _when(change: Change) -> int:
    return -1 if change.effective is None else change.effective


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
    return min((c.effective for c in changes if c.effective is not None and c.effective > after), default=None)
