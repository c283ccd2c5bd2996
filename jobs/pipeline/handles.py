"""Handles of a warehouse's tables, kept with the pipeline's value: following a table costs a look for its next commit, opening one reads its log anew."""
from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from jobs.pipeline.model import Pipeline
from jobs.storage import places, tables
from jobs.storage.tables import Table


def kept(pipeline: Pipeline, path: str, schema: pa.Schema | None = None, properties: Mapping[str, str] | None = None) -> Table:
    """As this process last saw it; made if there is none and a schema is given."""
    if path not in pipeline.handles:
        pipeline.handles[path] = tables.open_table(path) if schema is None else tables.create(path, schema, properties)
    return pipeline.handles[path]


def latest(pipeline: Pipeline, path: str, schema: pa.Schema | None = None, properties: Mapping[str, str] | None = None) -> Table:
    """As it is now. One handle serves all who ask: what was taken of it before moves along."""
    known = pipeline.handles.get(path)
    if known is not None and known.stands():
        return known.refresh()
    pipeline.handles.pop(path, None)
    return kept(pipeline, path, schema, properties)


def refresh(pipeline: Pipeline) -> None:
    """All as they are now; those that are gone are forgotten."""
    for path, table in list(pipeline.handles.items()):
        if table.stands():
            table.refresh()
        else:
            del pipeline.handles[path]


def versions(pipeline: Pipeline, kinds: tuple[str, ...]) -> dict[str, int]:
    """Of the tables that are open, by path under the warehouse: those whose path begins like one of `kinds`."""
    root = len(places.join(pipeline.warehouse, ""))
    paths = {path[root:]: table for path, table in pipeline.handles.items()}
    return {path: table.version for path, table in paths.items() if path.startswith(kinds)}
