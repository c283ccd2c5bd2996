"""The other lowering: the same programs in Spark SQL, sources read by delta-spark; for tables that the kernel may not
read, and the twin in tests.

One Spark job a statement and no sharing with other queries: right everywhere, several times slower than tasks on small
batches (docs/limits.md).
"""
from __future__ import annotations

import pickle
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from jobs.engine import spark
from jobs.engine.partials import Collected, DividedPartials, Handover
from jobs.engine.sample import SampleOrder, SampleResult, follow
from jobs.engine.work import TaskResult
from jobs.storage import places, tables
from optimizer.errors import first_line
from optimizer.expression import dialect as d
from optimizer.plan.program import Program, Source

# Spark's error classes for what a value brings about; any other error ends the batch.
DATA_ERRORS = ("ARITHMETIC_OVERFLOW", "DIVIDE_BY_ZERO", "REMAINDER_BY_ZERO", "CAST_INVALID_INPUT", "CAST_OVERFLOW",
               "NUMERIC_VALUE_OUT_OF_RANGE", "BINARY_ARITHMETIC_OVERFLOW", "USER_RAISED_EXCEPTION", "DATETIME_OVERFLOW",
               "DATETIME_FIELD_OUT_OF_BOUNDS")


LEAST_WIDTH = 8          # bytes of a value in memory, at least


@dataclass(frozen=True)
class SparkOrder:
    """As jobs.engine.work.TaskOrder.

    `streams` are Delta tables at a version by source name, `files` Parquet files of relations and state. `handover`
    says from how many bytes on partials are left in files.
    """

    query: str
    program: Program
    streams: Mapping[str, tuple[str, int]]
    files: Mapping[str, tuple[str, ...]]
    folders: Mapping[str, str]
    label: str
    rows_to: str | None = None
    handover: Handover | None = None


def perform(session: Any, order: SparkOrder) -> TaskResult:
    started = time.perf_counter()
    persisted: list[Any] = []
    try:
        return replace(_run(session, order, persisted), seconds=time.perf_counter() - started)
    # any class: classic Spark and Spark Connect raise different ones, and no Spark is imported here
    except Exception as error:
        if not any(word in str(error) for word in DATA_ERRORS):
            with spark.guarded():
                raise
        return TaskResult(order.query, 0, failed=first_line(error), seconds=time.perf_counter() - started)
    finally:
        for frame in persisted:
            frame.unpersist()


def take(session: Any, sample_order: SampleOrder) -> SampleResult:
    """A sample by Spark SQL: its hashes are Spark's, so it merges with others of its kind only."""
    persisted: list[Any] = []
    source, started = sample_order.sampling.source, time.process_time()
    try:
        streams = {source.name: sample_order.stream} if sample_order.stream else {}
        order = SparkOrder(sample_order.query, Program((), (), ()), streams, {source.name: sample_order.files}, {}, "")
        _read(session, order, source).createOrReplaceTempView(source.name)
        sample = follow(sample_order.sampling, lambda *definition: _define(session, (definition,), persisted),
                        lambda sql: session.sql(sql).collect(), None)
        return SampleResult(sample_order.query, sample_order.input, sample, time.process_time() - started)
    except Exception:      # any class, as above: a batch goes on without its sample
        return SampleResult(sample_order.query, sample_order.input, None, time.process_time() - started)
    finally:
        for frame in persisted:
            frame.unpersist()


def _run(session: Any, order: SparkOrder, persisted: list[Any]) -> TaskResult:
    for source in order.program.sources:
        _read(session, order, source).createOrReplaceTempView(source.name)
    _define(session, order.program.setup, persisted)
    answers = []
    for step in order.program.steps:
        _define(session, step.define, persisted)
        answers.append(step.answer)
    if order.rows_to:
        union = " UNION ALL ".join(f"({answer})" for answer in answers)
        rows = f"SELECT {d.from_micros('_t', 'spark')} AS boundary, * EXCEPT (_t) FROM ({union}) AS q"
        answer_files = _store(session, rows, order.rows_to, order.label)
        return TaskResult(order.query, 0, rows={0: tuple(answer_files)})
    frames = [session.sql(answer) for answer in answers]
    partials = _in_memory(frames, order.handover)
    divided = {} if partials is not None or order.handover is None else {0: _divided(frames, order.handover)}
    written = []
    for write in order.program.writes:
        files = _store(session, write.sql, order.folders[write.set], order.label)
        written += [(write.set, file) for file in files]
    return TaskResult(order.query, 0, partials, tuple(written), divided=divided)


def _in_memory(frames: Sequence[Any], handover: Handover | None) -> pa.Table | None:
    """All partials, None where they are more than the driver should hold: of each frame one row too many is asked."""
    if handover is None or not handover.groupings:
        return pa.concat_tables([frame.toArrow() for frame in frames])
    parts, left = [], handover.most
    for frame in frames:
        most = left // (LEAST_WIDTH * len(frame.columns))
        parts.append(frame.limit(most + 1).toArrow())
        if parts[-1].num_rows > most:
            return None
        left = max(left - parts[-1].nbytes, 0)
    return pa.concat_tables(parts)


def _divided(frames: Sequence[Any], handover: Handover) -> tuple[DividedPartials, ...]:
    """The partials in files, written where Spark has them."""
    payloads = [payload for frame in frames for payload in spark.by_partition(frame, _Dividing(handover))]
    return tuple(file for payload in payloads if (file := pickle.loads(payload)) is not None)


@dataclass(frozen=True)
class _Dividing:
    """One partition's rows as a file, None for none; in a Python task."""

    handover: Handover

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> bytes:
        with Collected(replace(self.handover, most=-1), 0) as partials:
            for batch in filter(len, batches):
                partials.add(pa.Table.from_batches([batch]))
        return pickle.dumps(partials.divided)


def _define(session: Any, relations: tuple[tuple[str, str, bool], ...], persisted: list[Any]) -> None:
    for name, sql, materialised in relations:
        frame = session.sql(sql)
        if materialised:
            frame = frame.persist()
            persisted.append(frame)
        frame.createOrReplaceTempView(name)


def _read(session: Any, order: SparkOrder, source: Source) -> Any:
    if source.name in order.streams:
        path, version = order.streams[source.name]
        return session.read.format("delta").option("versionAsOf", version).load(path)
    files = order.files.get(source.name, ())
    if files:
        return session.read.parquet(*files)
    columns = ", ".join(f"CAST(NULL AS {d.name(t, 'spark')}) AS `{n}`" for n, t in source.columns)
    return session.sql(f"SELECT {columns or '1 AS _nothing'} WHERE FALSE")


def _store(session: Any, sql: str, folder: str, label: str) -> list[tables.File]:
    """Rows as Parquet files in the folder, none for no rows.

    Spark writes beside, and each file moves in under a unique name.
    """
    places.make_folder(folder)
    aside = places.join(folder, f"_jvm-{uuid.uuid4().hex}")
    session.sql(sql).coalesce(1).write.parquet(aside)
    try:
        files = []
        for part in places.listed(aside):
            if part.endswith(".parquet"):
                name = tables.unique(label)
                places.move(places.join(aside, part), places.join(folder, name))
                file = tables.describe(folder, name)
                if file.rows:
                    files.append(file)
                else:
                    places.delete(places.join(folder, name))
        return files
    finally:
        places.delete_folder(aside)
