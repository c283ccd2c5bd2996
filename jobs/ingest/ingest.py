"""New input into the stream tables, each once: finds it, lets tasks land it, commits it stream by stream.

It decides no boundary and runs no query.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.ingest import behind
from jobs.ingest import register as intake
from jobs.ingest import sources
from jobs.ingest.commit import APPLICATION, LandedInput, commit, recover, stream_table
from jobs.ingest.land import LandOrder, forget, land
from jobs.ingest.reading import BYTES_A_SECOND, MARK, IngestInput
from jobs.ingest.row_rules import Rules, rules
from jobs.pipeline.lines import suggest
from jobs.pipeline.model import Pipeline, Stream
from jobs.pipeline.warehouse import Warehouse
from jobs.storage import places, tables
from optimizer.errors import ForebayError

__all__ = ["ingest", "now", "recover"]
FILES_A_COMMIT = 256
ROWS_A_TASK = 500_000                  # where there are fewer inputs than tasks
MOST_ROWS = 4_000_000                  # of a task in any case
LARGE = 2 << 20                        # bytes from which a Parquet file's number of rows is looked up


def now() -> int:
    return time.time_ns() // 1000


def ingest(pipeline: Pipeline, warehouse: Warehouse, last_begun: int | None, tasks: Any,
           only: Mapping[str, Sequence[Any]] | None = None, clock: Callable[[], int] = now) -> dict[str, Any]:
    """`only`: paths or data frames by stream; without it, every source.

    Rows before `last_begun`, the last boundary that has begun, are late.

    Counts by stream, under `refused` the files that could not be taken, and under `ignored` those of which something
    was left out.

    The caller holds the pipeline's lock: a boundary that began meanwhile would not count the rows given to it.
    """
    expected = rules(pipeline)
    recover(warehouse, pipeline.streams)
    sources.clear(pipeline)
    try:
        given = _given(pipeline, only)
        before = _ingests(warehouse, pipeline.streams)
        report = _take(pipeline, warehouse, last_begun, tasks, given, clock, expected)
    finally:
        sources.clear(pipeline)
    if last_begun is not None:
        return report
    return _settled(report, behind.settle(pipeline, warehouse, clock()), before)


def _ingests(warehouse: Warehouse, streams: Iterable[str]) -> dict[str, int]:
    """The number of the last ingest of each stream that has a table."""
    stored = [name for name in streams if tables.exists(warehouse.path("streams", name))]
    return {name: warehouse.latest(f"streams/{name}").transaction(APPLICATION) for name in stored}


def _settled(report: dict[str, Any], departures: Sequence[behind.Gone], before: Mapping[str, int]) -> dict[str, Any]:
    """The report, with rows of this ingest that were too old counted as quarantined; a note tells of all of them."""
    counts = {name: dict(of_stream) for name, of_stream in report["streams"].items()}
    for leaving in departures:
        fresh = sum(rows for ingest, rows in leaving.rows.items() if ingest > before.get(leaving.stream, -1))
        if leaving.stream in counts:
            counts[leaving.stream]["rows"] -= fresh
            counts[leaving.stream]["quarantined"] += fresh
    return {**report, "streams": counts, "notes": [*report["notes"], *(leaving.note for leaving in departures)]}


def _given(pipeline: Pipeline, only: Mapping[str, Sequence[Any]] | None) -> dict[str, list[IngestInput]]:
    """What was handed over, checked whole before anything changes."""
    for name in only or ():
        if name not in pipeline.streams:
            raise ForebayError("unknown-stream", f"{name!r} is not a stream of {pipeline.name}",
                               hint=suggest(name, pipeline.streams))
    return {name: sources.handed(pipeline, pipeline.streams[name], things) for name, things in (only or {}).items()}


def _take(pipeline: Pipeline, warehouse: Warehouse, last: int | None, tasks: Any,
          given: Mapping[str, list[IngestInput]], clock: Callable[[], int],
          expected: Mapping[str, Rules]) -> dict[str, Any]:
    counts = {name: {"files": 0, "rows": 0, "quarantined": 0, "late": 0} for name in (given or pipeline.streams)}
    refused, ignored = list[dict[str, str]](), list[dict[str, str]]()
    for name in counts:
        stream_table(pipeline, warehouse, pipeline.streams[name])
    waiting = {name: _waiting(pipeline, warehouse, name, tasks, given.get(name), refused) for name in counts}
    notes = _notes(pipeline, warehouse, waiting, refused) if not given else []
    while any(waiting.values()):
        turn = {name: inputs[:FILES_A_COMMIT] for name, inputs in waiting.items() if inputs}
        waiting = {name: inputs[FILES_A_COMMIT:] for name, inputs in waiting.items()}
        for name, landed in _landed(pipeline, warehouse, turn, last, clock(), tasks, expected).items():
            commit(pipeline, warehouse, name, [source for source in landed if not source.refused], clock())
            for source in landed:
                first = source.landed[0]
                if source.refused:
                    refused.append({"stream": name, "path": first.input.name, "reason": source.refused})
                elif not source.came_before:
                    _count(counts[name], source)
                    if first.ignored:
                        ignored.append({"stream": name, "path": first.input.name, "reason": first.ignored})
    return {"streams": counts, "refused": refused, "ignored": ignored, "notes": notes}


def _notes(pipeline: Pipeline, warehouse: Warehouse, waiting: Mapping[str, Sequence[IngestInput]],
           refused: Sequence[Mapping[str, str]]) -> list[str]:
    """The streams that never got a file, since none matches their pattern: none waits, and none is known."""
    unreadable = {refusal["stream"] for refusal in refused}
    notes = []
    for name, stream in pipeline.streams.items():
        if stream.source is None or stream.source.kind in ("delta", "kafka") or waiting[name] or name in unreadable:
            continue
        if not intake.known_paths(warehouse, name):
            notes.append(f"stream {name}: no file matches {stream.source.path}")
    return notes


def _waiting(pipeline: Pipeline, warehouse: Warehouse, name: str, tasks: Any, given: list[IngestInput] | None,
             refused: list[dict[str, str]]) -> list[IngestInput]:
    """A source that cannot be read is refused like a file, and the other streams go on."""
    try:
        return sources.pending(pipeline, warehouse, pipeline.streams[name], tasks, given)
    except ForebayError as error:
        source = pipeline.streams[name].source
        if error.exit_code != 1 or source is None:
            raise
        refused.append({"stream": name, "path": source.path, "reason": str(error)})
        return []


def _landed(pipeline: Pipeline, warehouse: Warehouse, turn: Mapping[str, Sequence[IngestInput]], last: int | None,
            clock: int, tasks: Any, expected: Mapping[str, Rules]) -> dict[str, list[LandedInput]]:
    """One job for all streams; the parts of an input stand together."""
    tasks.suit(sum(source.size for inputs in turn.values() for source in inputs) / BYTES_A_SECOND)
    share = ROWS_A_TASK if sum(map(len, turn.values())) < tasks.width else MOST_ROWS
    orders: list[LandOrder] = []
    for name, inputs in turn.items():
        of_stream = _orders(pipeline, warehouse, pipeline.streams[name], inputs, last, clock, share)
        orders += [replace(order, rules=expected[name]) for order in of_stream]
    landed_by_stream: dict[str, list[LandedInput]] = {name: [] for name in turn}
    by_input = groupby(zip(orders, tasks.map(land, orders)), key=lambda pair: (pair[0].stream.name, pair[0].input.name))
    for (name, _), pairs in by_input:
        parts = list(pairs)
        landed = LandedInput(tuple(part for _, part in parts))
        if landed.refused or landed.came_before:
            for order, part in parts:      # what some parts wrote before another one found out
                forget(order, part)
            landed = LandedInput((next((part for _, part in parts if part.refused), parts[0][1]),))
        landed_by_stream[name].append(landed)
    return landed_by_stream


def _orders(pipeline: Pipeline, warehouse: Warehouse, stream: Stream, inputs: Sequence[IngestInput], last: int | None,
            clock: int, share: int) -> list[LandOrder]:
    root, aside = warehouse.path("streams", stream.name), warehouse.path("quarantine", stream.name)
    number = stream_table(pipeline, warehouse, stream).transaction(APPLICATION) + 1
    known_paths = intake.known_paths(warehouse, stream.name)
    orders = []
    for source in inputs:
        digests = known_paths[source.name].digests if source.name in known_paths else frozenset[str]()
        for part in _parts(source, share):
            orders.append(LandOrder(stream, source, root, aside, number, pipeline.batch, last, clock, part, digests))
    return orders


def _parts(item: IngestInput, share: int) -> list[tuple[int, int] | None]:
    """Ranges of row numbers for a large Parquet file, so that several tasks share it."""
    if item.format != "parquet" or item.size < LARGE:
        return [None]
    try:
        with places.opened(item.path) as file:
            rows = pq.read_metadata(file).num_rows
    except (OSError, pa.ArrowException):
        return [None]
    count = -(-rows // share)
    return [None] if count < 2 else [(rows * i // count, rows * (i + 1) // count) for i in range(count)]


def _count(counts: dict[str, int], source: LandedInput) -> None:
    counts["files"] += source.landed[0].input.format != MARK
    for part in source.landed:
        counts["rows"] += part.rows
        counts["late"] += part.late
        counts["quarantined"] += part.quarantined
