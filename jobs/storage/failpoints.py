"""Named places where a test can stop the program as a crash would.

Without FOREBAY_FAILPOINT they do nothing, and a name that is not registered is refused.
"""
from __future__ import annotations

import os
import signal
from collections import Counter

from optimizer.errors import ForebayError

NAMES = frozenset({
    "ingest.before-land", "ingest.after-good", "ingest.after-land", "ingest.before-stream", "ingest.after-stream",
    "ingest.before-quarantine", "ingest.after-quarantine", "ingest.before-files", "ingest.after-files",
    "ingest.before-depart", "ingest.after-depart", "ingest.before-recover", "ingest.after-recover",
    "ingest.after-stage", "request.before-commit", "request.after-commit", "batch.before-mark", "batch.after-mark",
    "batch.before-intent", "batch.after-intent", "batch.after-tasks", "batch.before-state", "batch.before-table",
    "batch.after-table", "batch.after-state", "batch.after-results", "batch.before-commit", "batch.after-commit",
    "batch.after-discard", "recover.before", "recover.after", "compact.before", "compact.after", "keep.before",
    "keep.after", "relations.before-write", "relations.before-commit", "relations.after-commit", "address.before",
    "address.after-table", "address.after-results", "address.after-latest", "address.after-boundaries",
    "address.set-aside", "address.after-move"
})
ACTIONS = ("kill", "raise", "exit")
_passes: Counter[str] = Counter()


class Reached(Exception):
    """What the action `raise` raises: no part of the program catches it."""


def at(name: str) -> None:
    """Stops here if FOREBAY_FAILPOINT is `name[:n][:action]` and this is the n-th pass of this process."""
    if name not in NAMES:
        raise ValueError(f"failpoint {name!r} is not registered")
    setting = os.environ.get("FOREBAY_FAILPOINT")
    if not setting:
        return
    wanted, number, action = parse(setting)
    if wanted != name:
        return
    _passes[name] += 1
    if _passes[name] == number:
        _stop(name, action)


def parse(setting: str) -> tuple[str, int, str]:
    name, *rest = setting.split(":")
    number = int(rest.pop(0)) if rest and rest[0].isdigit() else 1
    action = rest.pop(0) if rest else "kill"
    if name not in NAMES or action not in ACTIONS or rest or number < 1:
        raise ForebayError("bad-failpoint", f"FOREBAY_FAILPOINT={setting!r} is not name[:n][:action]",
                           hint=f"names are {', '.join(sorted(NAMES))}; actions are {', '.join(ACTIONS)}")
    return name, number, action


def _stop(name: str, action: str) -> None:
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "exit":
        os._exit(86)
    raise Reached(name)
