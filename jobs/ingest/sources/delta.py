"""Another program's Delta table, by its versions: the rows each version appended; a version that changes or removes
rows is refused.

The log says which files those are. Files rewritten without a change of data (compaction) are neither new nor gone.
Tables with a feature that the kernel lacks are read by Spark (jobs.ingest.sources.spark_delta), all others where they
lie.
"""
from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from jobs.ingest import register as intake
from jobs.ingest.reading import MARK, IngestInput
from jobs.ingest.sources import spark_delta
from jobs.ingest.sources.files import label
from jobs.ingest.sources.hand import staging
from jobs.pipeline.model import Pipeline, Stream
from jobs.pipeline.warehouse import Warehouse
from jobs.storage import places, tables
from jobs.storage.tables import Table
from optimizer.errors import failed

LACKING = frozenset({"deletionVectors", "columnMapping"})
_HINT = "a stream takes appended rows only, before the log is cleaned; start a new stream from the table as it is"
Action = tuple[str, dict[str, Any]]


def pending(pipeline: Pipeline, warehouse: Warehouse, stream: Stream, tasks: Any) -> list[IngestInput]:
    """What came since the version in the ledger, and the mark of the version reached."""
    assert stream.source is not None
    path = stream.source.path
    name, table = f"delta:{label(pipeline, path)}", tables.open_table(path)
    last, now = intake.last(warehouse, stream.name, name), table.version
    before = None if last is None else int(last)
    if before == now:
        return []
    mark = IngestInput("delta", name, "", MARK, size=now, digest=str(now))
    if by_spark(table):
        parts: list[spark_delta.Part] = [(now, None)] if before is None else list(_parts(path, before, now))
        return staged(pipeline, stream.name, tasks, table, parts) or [mark]
    if before is None:
        return [*snapshot(pipeline, path), mark]
    inputs = []
    for version in range(before + 1, now + 1):
        for action in _added(path, version, _actions(path, version)):
            inputs.append(_input(pipeline, path, action["path"], action.get("partitionValues") or {}))
    return [*inputs, mark]


def by_spark(table: Table) -> bool:
    return bool(table.features & LACKING)


def snapshot(pipeline: Pipeline, path: str) -> list[IngestInput]:
    """All rows of the newest version, in the order of the files' names."""
    partitions = tables.open_table(path).partitions()
    return [_input(pipeline, path, f, partitions[f]) for f in sorted(partitions)]


def staged(pipeline: Pipeline, owner: str, tasks: Any, table: Table,
           parts: Iterable[spark_delta.Part]) -> list[IngestInput]:
    """Rows that Spark read, under the table's name and version: they land together, and say how far it was read."""
    name = f"delta:{label(pipeline, table.path)}"
    folder = places.join(staging(pipeline, owner), f"delta-{os.urandom(8).hex()}")
    files = spark_delta.staged(tasks, table.path, list(parts), folder)
    return [IngestInput("delta", name, file, "parquet", *places.size_and_time(file), digest=str(table.version))
            for file in files]


def _parts(path: str, before: int, now: int) -> Iterator[spark_delta.Part]:
    """What versions appended, each file by the last version that has it and its columns: so what is read does not
    depend on when.
    """
    waiting: set[str] = set()
    for version in range(before + 1, now + 1):
        actions = list(_actions(path, version))
        added = {action["path"] for action in _added(path, version, actions)}
        touched = {action["path"] for kind, action in actions if kind in ("add", "remove")}
        gone = waiting if any(kind == "metaData" for kind, _ in actions) else waiting & touched
        if gone:
            yield version - 1, frozenset(gone)
        waiting = (waiting - gone) | added
    if waiting:
        yield now, frozenset(waiting)


def _added(path: str, version: int, actions: Iterable[Action]) -> Iterator[dict[str, Any]]:
    for kind, action in actions:
        if kind == "remove" and action.get("dataChange", True):
            raise failed("not-appended", f"version {version} of {path} changes or removes rows", _HINT)
        if kind == "add" and action.get("dataChange", True):
            yield action


def _actions(path: str, version: int) -> Iterator[Action]:
    try:
        with places.opened(places.join(path, "_delta_log", f"{version:020d}.json")) as file:
            lines = file.read().decode().splitlines()
    except FileNotFoundError:
        raise failed("not-appended", f"version {version} of {path} is no longer in its log", _HINT) from None
    for line in lines:
        yield from json.loads(line).items()


def _input(pipeline: Pipeline, root: str, file: str, partition: dict[str, str | None]) -> IngestInput:
    path = places.join(root, unquote(file))
    try:
        return IngestInput("delta", label(pipeline, path), path, "parquet", *places.size_and_time(path),
                           constants=partition)
    except FileNotFoundError:
        raise failed("not-appended", f"{path}, which a version appended, is gone", _HINT) from None
