"""The other lowering: the same programs in Spark SQL, sources read by delta-spark; for tables that the kernel may not
read, and the twin in tests.

One Spark job a statement and no sharing with other queries: right everywhere, several times slower than tasks on small
batches (docs/limits.md).
"""
from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from jobs.engine import spark
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


@dataclass(frozen=True)
class SparkOrder:
    """As jobs.engine.work.TaskOrder.

    `streams` are Delta tables at a version by source name, `files` Parquet files of relations and state.
    """

    query: str
    program: Program
    streams: Mapping[str, tuple[str, int]]
    files: Mapping[str, tuple[str, ...]]
    folders: Mapping[str, str]
    label: str
    rows_to: str | None = None


def perform(session: Any, order: SparkOrder) -> TaskResult:
    started = time.perf_counter()
    persisted: list[Any] = []
    try:
        partials, written = _run(session, order, persisted)
        return TaskResult(order.query, 0, partials, tuple(written), seconds=time.perf_counter() - started)
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


def _run(session: Any, order: SparkOrder,
         persisted: list[Any]) -> tuple[pa.Table | None, list[tuple[str, tables.File]]]:
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
        return None, [("", file) for file in _store(session, rows, order.rows_to, order.label)]
    partials = pa.concat_tables([session.sql(answer).toArrow() for answer in answers])
    written = []
    for write in order.program.writes:
        files = _store(session, write.sql, order.folders[write.set], order.label)
        written += [(write.set, file) for file in files]
    return partials, written


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
