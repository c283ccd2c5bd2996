"""Files that match a pattern, in the order of their names.

Their endings tell what they are, and they are not opened here.
"""
from __future__ import annotations

import os

from jobs.ingest.reading import IngestInput
from jobs.pipeline.model import Pipeline, Source, Stream
from jobs.storage import patterns, places
from optimizer.errors import ForebayError

ENDINGS = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".csv": "csv"}
UNKNOWN = ""                           # a format nobody reads: the file is refused when its turn comes


def pending(pipeline: Pipeline, stream: Stream) -> list[IngestInput]:
    assert stream.source is not None
    return [_input(pipeline, path, stream.source) for path in matching(stream.source.path, pipeline.folder)]


def matching(pattern: str, folder: str = "") -> list[str]:
    """Names that start with . or _ are another program's unfinished or private ones."""
    return [path for path in patterns.matching(pattern, folder) if not os.path.basename(path).startswith((".", "_"))]


def named(pipeline: Pipeline, stream: Stream, path: str) -> IngestInput:
    """A file given by hand."""
    full = places.place(path, pipeline.spark.settings) if "://" in path else os.path.abspath(os.path.expanduser(path))
    if not (patterns.matching(full) == [full] if isinstance(full, places.Remote) else os.path.isfile(full)):
        folder = os.path.isdir(full)
        hint = f"name files, as {path.rstrip('/')}/*" if folder else "paths are relative to where you are"
        raise ForebayError("no-file", f"{path} is {'a folder' if folder else 'not there'}", hint=hint)
    item = _input(pipeline, full, stream.source)
    if item.format == UNKNOWN:
        hint = "name the file by what it is, or give the stream a source of json or csv"
        raise ForebayError("unknown-format", f"{path} is none of {', '.join(ENDINGS)}", hint=hint)
    return item


def format_of(path: str) -> str:
    return ENDINGS.get(os.path.splitext(path.removesuffix(".gz"))[1].lower(), UNKNOWN)


def label(pipeline: Pipeline, path: str) -> str:
    """What the ledger calls a file: relative to the pipeline's folder if it is in there, so that the folder can be
    moved.

    In a store by its URI.
    """
    if isinstance(path, places.Remote):
        return str(path)
    inside = os.path.relpath(path, pipeline.folder)
    return path if inside.startswith("..") else inside


def _input(pipeline: Pipeline, path: str, source: Source | None) -> IngestInput:
    forced = source.kind if source is not None and source.kind in ("json", "csv") else format_of(path)
    return IngestInput("files", label(pipeline, path), path, forced, *places.size_and_time(path),
                       options=source.options if source is not None else {})
