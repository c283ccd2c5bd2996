"""One more commit at the end of a Delta log whose end is known, without reading the table; or the first of a new table.

Making or opening a table and committing to it takes delta-rs some five milliseconds; hundreds of queries have two
tables each, and each gets one file a run. The commit is written by the protocol's own rule: the file of the next
version must not exist. Where somebody else has committed, or the table is in a store, nothing is done, and the table
has to be opened.
"""
from __future__ import annotations

import json
import os
import tempfile
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa

from jobs.storage import delta_log, places, tables
from jobs.storage.tables import OURS, File, statistics

ENGINE = "forebay"


def commit_after(table: str, version: int, schema: pa.Schema, add: Sequence[File], remove: Sequence[File],
                 transaction: tuple[str, int]) -> bool:
    """Files that come and files that leave, as the version after this one; false where that cannot be."""
    if isinstance(table, places.Remote) or not places.is_file(delta_log.commit_path(table, version)):
        return False
    now = int(time.time() * 1000)
    actions = [_info(now, "Overwrite" if remove else "Append"), _transaction(OURS, version + 1, now),
               _transaction(*transaction, now), *(_addition(file, schema, now) for file in add),
               *(_removal(file, now) for file in remove)]
    return _put_if_absent(delta_log.commit_path(table, version + 1), actions)


def begin(table: str, schema: pa.Schema, properties: Mapping[str, str]) -> bool:
    """A new table at version 0, as delta-rs makes it; false where there is one already, or the table is in a store."""
    if isinstance(table, places.Remote) or tables.exists(table):
        return False
    now = int(time.time() * 1000)
    os.makedirs(os.path.dirname(delta_log.commit_path(table, 0)), exist_ok=True)
    actions = [_made_now(json.loads(line), now) for line in _first_commit(schema, tuple(properties.items()))]
    return _put_if_absent(delta_log.commit_path(table, 0), actions)


@lru_cache(maxsize=256)
def _first_commit(schema: pa.Schema, properties: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """What delta-rs writes for a table of this schema, a line an action."""
    with tempfile.TemporaryDirectory() as folder:
        made = tables.create(os.path.join(folder, "table"), schema, dict(properties))
        with open(delta_log.commit_path(made.path, 0), encoding="utf-8") as file:
            return tuple(file.read().splitlines())


def _made_now(action: dict[str, Any], now: int) -> dict[str, Any]:
    """The same action, of another table that is made now."""
    if "metaData" in action:
        return {"metaData": {**action["metaData"], "id": str(uuid.uuid4()), "createdTime": now}}
    if "commitInfo" in action:
        return {"commitInfo": {**action["commitInfo"], "timestamp": now}}
    return action


def _put_if_absent(path: str, actions: Iterable[Mapping[str, Any]]) -> bool:
    """Whole or not at all: written under another name first."""
    draft = f"{path}.{os.urandom(8).hex()}.tmp"
    with open(draft, "w", encoding="utf-8") as file:
        file.write("".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions))
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(draft)
    return True


def _info(now: int, mode: str) -> dict[str, Any]:
    return {"commitInfo": {"timestamp": now, "operation": "WRITE", "engineInfo": ENGINE,
                           "operationParameters": {"mode": mode, "partitionBy": "[]"}}}


def _transaction(app: str, number: int, now: int) -> dict[str, Any]:
    return {"txn": {"appId": app, "version": number, "lastUpdated": now}}


def _addition(file: File, schema: pa.Schema, now: int) -> dict[str, Any]:
    return {"add": {"path": file.path, "partitionValues": {}, "size": file.size, "modificationTime": now,
                    "dataChange": True, "stats": json.dumps(statistics(file, schema))}}


def _removal(file: File, now: int) -> dict[str, Any]:
    return {"remove": {"path": file.path, "dataChange": True, "deletionTimestamp": now, "extendedFileMetadata": True,
                       "partitionValues": {}, "size": file.size}}
