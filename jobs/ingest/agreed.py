"""What a stream's table was made for and may not change: columns, event time, batch length.

Rows' `_boundary` rests on them. Here they are only compared.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping

from jobs.ledger.open_pipeline import OpenPipeline
from jobs.pipeline.model import Pipeline, Stream
from jobs.pipeline.schema import stream_schema
from jobs.storage import places, tables
from jobs.storage.tables import Table
from optimizer.errors import ForebayError

BATCH, EVENT_TIME = "forebay.batch", "forebay.event_time"      # properties of the table


def properties(pipeline: Pipeline, stream: Stream) -> Mapping[str, str]:
    return {BATCH: str(pipeline.batch), EVENT_TIME: stream.event_time}


def streams(pipe: OpenPipeline, names: Iterable[str] | None = None) -> None:
    """Refuses a forebay.yml that contradicts the table of a stream: of any stream, or of those with these names."""
    for name in pipe.pipeline.streams if names is None else names:
        if name in pipe.pipeline.streams and tables.exists(places.join(pipe.pipeline.warehouse, "streams", name)):
            check(pipe.pipeline, pipe.pipeline.streams[name], pipe.table(f"streams/{name}"))


def check(pipeline: Pipeline, stream: Stream, table: Table) -> None:
    _check_columns(stream, table)
    event_time = table.properties.get(EVENT_TIME, stream.event_time)
    if event_time != stream.event_time:
        raise ForebayError(
            "event-time-changed",
            f"the event time of {stream.name} is {stream.event_time}, but its rows were taken in by {event_time}",
            hint=f"declare `event_time: {event_time}`, or give the stream with another event time another name")
    batch = int(table.properties.get(BATCH, pipeline.batch))
    if batch != pipeline.batch:
        before = f"{batch / 1_000_000:g} seconds"
        now = f"{pipeline.batch / 1_000_000:g} seconds"
        raise ForebayError("batch-changed",
                           f"the batch is {now}, but the rows of {stream.name} were taken in for one of {before}",
                           hint=f"write `batch: {before}` again, or name another warehouse and ingest anew")


def _check_columns(stream: Stream, table: Table) -> None:
    declared = [(column.name, column.type) for column in stream_schema(stream.columns)]
    stored = [(column.name, column.type) for column in table.schema]
    if declared != stored:
        different = dict.fromkeys(column[0] for column in [*stored, *declared]
                                  if column not in stored or column not in declared)
        raise ForebayError(
            "columns-changed",
            f"the columns of {stream.name} are not those of its table: {', '.join(different) or 'their order'}",
            hint="declare them as they were, or give the stream with the new columns another name")
