"""Another program's Delta table, by its versions: the files each version appended; a version that changes or removes rows is refused.

Only the log is read here. Files rewritten without a change of data (compaction) are neither new nor gone.
"""
from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from jobs import intake, places, tables
from jobs.pipeline import Pipeline, Stream
from jobs.reading import MARK, Input
from jobs.sources.files import label
from optimizer.errors import failed

_HINT = "a stream takes appended rows only, before the log is cleaned; start a new stream from the table as it is"


def pending(pipeline: Pipeline, stream: Stream, tasks: Any) -> list[Input]:
    """What came since the version in the ledger, and the mark of the version reached."""
    assert stream.source is not None
    path = stream.source.path
    name = f"delta:{label(pipeline, path)}"
    before, table = intake.last(pipeline, stream.name, name), tables.open_table(path)
    now = table.version
    if before is not None and int(before) == now:
        return []
    _understood(path, table.features)      # it may have got them since it was first read
    came = snapshot(pipeline, path) if before is None else [i for version in range(int(before) + 1, now + 1) for i in _appended(pipeline, path, version)]
    return [*came, Input("delta", name, "", MARK, size=now, digest=str(now))]


def snapshot(pipeline: Pipeline, path: str) -> list[Input]:
    """All rows of the newest version, in the order of the files' names."""
    table = tables.open_table(path)
    _understood(path, table.features)
    partitions = table.partitions()
    return [_input(pipeline, path, f, partitions[f]) for f in sorted(partitions)]


def _understood(path: str, features: frozenset[str]) -> None:
    if features & {"deletionVectors", "columnMapping"}:
        raise failed("foreign-table", f"{path} uses {', '.join(sorted(features))}", "give a table without them")


def _appended(pipeline: Pipeline, path: str, version: int) -> Iterator[Input]:
    for kind, action in _actions(path, version):
        if kind == "metaData":
            continue
        if kind == "remove" and action.get("dataChange", True):
            raise failed("not-appended", f"version {version} of {path} changes or removes rows", _HINT)
        if kind == "add" and action.get("dataChange", True):
            yield _input(pipeline, path, action["path"], action.get("partitionValues") or {})


def _actions(path: str, version: int) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        with places.opened(places.join(path, "_delta_log", f"{version:020d}.json")) as file:
            lines = file.read().decode().splitlines()
    except FileNotFoundError:
        raise failed("not-appended", f"version {version} of {path} is no longer in its log", _HINT) from None
    for line in lines:
        yield from json.loads(line).items()


def _input(pipeline: Pipeline, root: str, file: str, partition: dict[str, str | None]) -> Input:
    path = places.join(root, unquote(file))
    try:
        return Input("delta", label(pipeline, path), path, "parquet", *places.size_and_time(path), constants=partition)
    except FileNotFoundError:
        raise failed("not-appended", f"{path}, which a version appended, is gone", _HINT) from None
