"""A Kafka topic through Spark's connector: from the offsets in the ledger to the latest, staged as Parquet.

Offsets move with the commit of what was read.
"""
from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from jobs.engine import kernel
from jobs.engine.kernel import files
from jobs.ingest import register as intake
from jobs.ingest.reading import IngestInput
from jobs.ingest.sources.hand import staging
from jobs.ingest.sources.spark_delta import session
from jobs.pipeline.model import Pipeline, Source, Stream
from jobs.pipeline.warehouse import Warehouse
from jobs.storage import failpoints, places
from jobs.storage.places import size_and_time
from optimizer.errors import failed

FILES = 64                             # at most so many staged files: all of a batch's offsets move in one commit
EARLIEST = -2
# how the connector refuses offsets that leave out a partition: it names them all
INCOMPLETE = "Assigned: Set("
_CAUSE = re.compile(r"(Caused by: |: )?[a-z]+(\.\w+)+(Exception|Error)\b")
Offsets = Mapping[int, int]            # partition → the next offset to read


def pending(pipeline: Pipeline, warehouse: Warehouse, stream: Stream, tasks: Any) -> list[IngestInput]:
    assert stream.source is not None
    name, topic = f"kafka:{stream.source.path}", stream.source.path
    last = intake.last(warehouse, stream.name, name)
    offsets = json.loads(last)[topic] if last else {}
    before: Offsets = {int(partition): int(offset) for partition, offset in offsets.items()}
    folder = places.join(staging(pipeline, stream.name), f"kafka-{os.urandom(8).hex()}")
    before = _staged(session(tasks), stream.source, before, folder)
    failpoints.at("ingest.after-stage")
    names = [name for name in places.listed(folder) if name.endswith(".parquet")]
    paths = tuple(sorted(places.join(folder, name) for name in names))
    after = {**before, **(_ends(paths) if paths else {})}
    if not paths or after == before:
        return []
    digest = json.dumps({topic: {str(partition): after[partition] for partition in sorted(after)}})
    return [IngestInput("kafka", name, path, "kafka", *size_and_time(path), digest=digest) for path in paths]


def _staged(session: Any, source: Source, before: Offsets, folder: str) -> Offsets:
    """Writes what is there from `before` on; the offsets come back with partitions that were added since."""
    try:
        _write(session, source, before, folder)
        return before
    except Exception as error:         # what the connector raises depends on how Spark is reached
        if INCOMPLETE not in str(error):
            raise _unread(source, error) from error
        # A topic's partitions are told by the connector in this refusal only.
        listed = str(error)[str(error).rfind(INCOMPLETE):].partition(")")[0]
        partitions = re.findall(rf"\b{re.escape(source.path)}-(\d+)\b", listed)
        grown = {**{int(partition): EARLIEST for partition in partitions}, **before}
    try:
        _write(session, source, grown, folder)
    except Exception as error:
        raise _unread(source, error) from error
    return grown


def _write(session: Any, source: Source, offsets: Offsets, folder: str) -> None:
    start = json.dumps({source.path: {str(p): o for p, o in offsets.items()}}) if offsets else "earliest"
    options = {**source.options, "subscribe": source.path, "startingOffsets": start, "endingOffsets": "latest"}
    messages = session.read.format("kafka").options(**options).load().selectExpr("value", "partition", "offset")
    messages.coalesce(FILES).write.mode("overwrite").parquet(folder)


def _ends(paths: tuple[str, ...]) -> dict[int, int]:
    con = kernel.shared()
    try:
        sql = f'SELECT "partition", max("offset") + 1 FROM read_parquet({files(con, paths)}) GROUP BY ALL'
        return dict(con.execute(sql).fetchall())
    finally:
        con.close()


def _unread(source: Source, error: Exception) -> Exception:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    cause = next((line for line in reversed(lines) if _CAUSE.match(line)), lines[0])
    lost = "data loss" in str(error).lower() or "OffsetOutOfRange" in str(error)
    hint = "see that the servers answer and the topic exists"
    if lost:
        hint = "messages were removed before they were read: start a new stream"
    return failed("kafka-unread",
                  f"topic {source.path} at {source.options['kafka.bootstrap.servers']} cannot be read: {cause[:300]}",
                  hint)
