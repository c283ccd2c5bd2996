"""Where rows come from: each source says which inputs are there that the ledger does not know.

What is in them is not looked at here.
"""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from jobs.ingest import register as intake
from jobs.ingest.reading import IngestInput
from jobs.ingest.sources import delta, files, hand, kafka
from jobs.pipeline.model import Pipeline, Stream
from jobs.pipeline.warehouse import Warehouse
from jobs.storage import places


def handed(pipeline: Pipeline, stream: Stream, things: Sequence[Any]) -> list[IngestInput]:
    """Paths and data frames that somebody handed over.

    What is not there or cannot be read as rows is refused before anything changes.
    """
    inputs = []
    for thing in things:
        if isinstance(thing, (str, os.PathLike)):
            inputs.append(files.named(pipeline, stream, os.fspath(thing)))
        else:
            inputs.append(hand.staged(pipeline, stream, thing))
    return inputs


def pending(pipeline: Pipeline, warehouse: Warehouse, stream: Stream, tasks: Any,
            given: list[IngestInput] | None) -> list[IngestInput]:
    """Inputs that are not known by name, size and time.

    Some only look new; their digest shows that when they are read.
    """
    known_paths = intake.known_paths(warehouse, stream.name)
    inputs = given if given is not None else _from_source(pipeline, warehouse, stream, tasks)
    new_by_path = {}
    for i in inputs:
        path = known_paths.get(i.name)
        if path is None or i.kind != "hand" and (i.size, i.modified) not in path.states:
            new_by_path[i.path or i.name] = i
    return list(new_by_path.values())


def clear(pipeline: Pipeline) -> None:
    """Deletes staged files, which are of use to one ingest only."""
    places.delete_folder(places.join(pipeline.warehouse, "staging"))


def _from_source(pipeline: Pipeline, warehouse: Warehouse, stream: Stream, tasks: Any) -> list[IngestInput]:
    if stream.source is None:
        return []
    if stream.source.kind == "kafka":
        return kafka.pending(pipeline, warehouse, stream, tasks)
    if stream.source.kind == "delta":
        return delta.pending(pipeline, warehouse, stream, tasks)
    return files.pending(pipeline, stream)
