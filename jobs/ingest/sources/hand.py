"""Data frames handed over in Python become a Parquet file.

The same content is the same input, so handing it over again adds nothing.
"""
from __future__ import annotations

import hashlib
import os
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.ingest.reading import IngestInput
from jobs.pipeline.model import Pipeline, Stream
from jobs.storage import failpoints, places
from jobs.storage.places import size_and_time
from optimizer.errors import ForebayError


def staging(pipeline: Pipeline, owner: str) -> str:
    """Of a stream or a relation."""
    return places.join(pipeline.warehouse, "staging", owner)


def staged(pipeline: Pipeline, stream: Stream, frame: Any) -> IngestInput:
    """A pandas, Arrow or Spark table as an input."""
    rows, folder = _arrow(frame), staging(pipeline, stream.name)
    name = f"hand-{os.urandom(8).hex()}.parquet"
    path = places.join(folder, name)
    try:
        with places.draft(folder) as here:
            pq.write_table(rows, os.path.join(here, name))
    except pa.ArrowException as error:
        raise ForebayError("bad-frame", f"the data for {stream.name} cannot be written as rows: {error}",
                           hint="give columns of plain types") from error
    with places.opened(path) as file:
        digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    failpoints.at("ingest.after-stage")
    return IngestInput("hand", f"hand:{digest}", path, "parquet", *size_and_time(path), digest=digest)


def _arrow(frame: Any) -> pa.Table:
    """As an Arrow table; kinds are told apart by what they can do, so that none of their packages is imported."""
    if isinstance(frame, (pa.Table, pa.RecordBatch)):
        return frame if isinstance(frame, pa.Table) else pa.Table.from_batches([frame])
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    if not hasattr(frame, "columns") or not hasattr(frame, "iloc"):
        raise ForebayError("bad-frame", f"a {type(frame).__name__} is neither a path nor a data frame",
                           hint="give a path, or a pandas, Arrow or Spark table")
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ForebayError("bad-frame", f"the data frame cannot be taken as rows: {error}",
                           hint="give each column values of one type") from error
