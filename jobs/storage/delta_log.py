"""The end of a Delta table's log as it lies on a disk: which commits are torn, which change data; it reads the log's
JSON and opens no table.

A power cut can leave a commit's file empty or cut off, although the commit was reported as done: delta-rs takes an
empty one for a commit without actions, and refuses to open a table with one that is cut off.
"""
from __future__ import annotations

import json
import os
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from jobs.storage import places

DIGITS = 20          # of a version in the name of its commit


@dataclass(frozen=True)
class Commit:
    """What one commit did. `data_files` are the paths that its adds and removes name where they say that data changed,
    `added` all that it adds; `hides_rows`: whether a file that it adds comes with a list of rows that do not count any
    more (a deletion vector).

    Example: after `OPTIMIZE`, whose files hold the same rows as before, `Commit(7, "OPTIMIZE", frozenset())`."""

    version: int
    operation: str
    data_files: frozenset[str]
    added: frozenset[str] = frozenset()
    hides_rows: bool = False
    torn: bool = False


def commit_path(table: str, version: int) -> str:
    return places.join(table, "_delta_log", f"{version:0{DIGITS}d}.json")


def versions(table: str) -> list[int]:
    """Of the commits whose file is in the log, ascending; older ones may have been cleaned up behind a checkpoint."""
    names = [name for name in places.listed(places.join(table, "_delta_log")) if name.endswith(".json")]
    return sorted(int(name[:DIGITS]) for name in names if name[:DIGITS].isdigit() and len(name) == DIGITS + 5)


def read(table: str, version: int) -> Commit:
    try:
        with places.opened(commit_path(table, version)) as file:
            actions = [json.loads(line) for line in file.read().splitlines() if line.strip()]
    except ValueError:      # of json, and of UTF-8
        actions = []
    info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    adds = [action["add"] for action in actions if "add" in action]
    removes = [action["remove"] for action in actions if "remove" in action]
    data_files = frozenset(str(file["path"]) for file in adds + removes if file.get("dataChange", True))
    hides_rows = any(add.get("deletionVector") for add in adds)
    added = frozenset(str(add["path"]) for add in adds)
    return Commit(version, str(info.get("operation", "a commit")), data_files, added, hides_rows, torn=not actions)


def ends_with(table: str, version: int) -> bool:
    """Whether the log's last commit is this one, and whole; those before it are not looked at."""
    is_last = places.is_file(commit_path(table, version)) and not places.is_file(commit_path(table, version + 1))
    return version >= 0 and is_last and not read(table, version).torn


def torn(table: str) -> list[int]:
    """Versions of commits that a power cut has left empty, and the last one if it is cut off.

    A store writes a commit whole or not at all.
    """
    if isinstance(table, places.Remote):
        return []
    listed = versions(table)
    empty = [v for v in listed if os.path.getsize(commit_path(table, v)) == 0]
    return empty if not listed or listed[-1] in empty or not read(table, listed[-1]).torn else [*empty, listed[-1]]


def mend_end(table: str, after: int = -1) -> int:
    """Takes torn commits off the end of the log, as if they had never been, down to this version; gives how many.

    Only for who holds the pipeline: nothing relies on them, since what would have waited until they were on the
    disk."""
    listed, broken = versions(table), set(torn(table))
    end = list(takewhile(lambda v: v in broken and v > after, reversed(listed)))
    for version in end:
        places.delete(commit_path(table, version))
    return len(end)
