"""Which plan answered a query at which boundary, as the ledger tells it; it decides nothing."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs import requests
from jobs.queries import standings

if TYPE_CHECKING:
    from jobs.runner import Runtime

RULE = "the rule: inputs without grouping attributes aggregate early"


def document(rt: Runtime, name: str) -> dict[str, Any]:
    """INTERFACE's `plans`: one entry a batch, whose time is that of all its queries divided by its boundaries."""
    standing, changes = requests.show(rt, name), rt.ledger.all_changes()
    decisions: list[dict[str, Any]] = []
    for first, boundaries, plans, seconds in rt.ledger.told():
        if name in plans:
            pinned = (asked := standings(changes, first).get(name)) is not None and asked.pin is not None
            before = decisions[-1]["plan"] if decisions else plans[name]
            decisions.append({"boundary": first, "boundaries": boundaries, "plan": plans[name], "switched_from": None if before == plans[name] else before,
                              "predicted_s": None, "measured_s": seconds / boundaries, "reason": "pinned" if pinned else RULE})
    return {"query": name, "pinned": standing.pin, "decisions": decisions}
