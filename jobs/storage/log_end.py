"""One more commit at the end of a Delta log whose end is known, without reading the table.

Opening a table and committing to it takes delta-rs some five milliseconds; hundreds of queries have two tables each,
and each gets one file a run. The commit is written by the protocol's own rule: the file of the next version must not
exist. Where somebody else has committed, or the table is in a store, nothing is done, and the table has to be opened.
"""
from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from jobs.storage import delta_log, places
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
