"""A generated stream as messages of a Kafka topic that `forebay ingest` takes: JSON objects with the columns of the
files, sent by Spark's connector.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobs.engine import spark
from jobs.papers.generator import Drift, GeneratedStream
from jobs.papers.generator_files import pieces

ROWS = 100_000          # of one sending, about


def sent(session: Any, stream: GeneratedStream, seconds: float, servers: str, topic: str, seed: int = 0,
         drifts: Sequence[Drift] = (), rows: int = ROWS, options: Mapping[str, str] | None = None) -> Iterator[int]:
    """One piece after another, how many messages each.

    A message's key is its join value, so those of one join value stay in order of arrival.
    """
    for piece in pieces(stream, seconds, seed, drifts, rows):
        spark.produce(session, piece, "j", servers, topic, options or {})
        yield piece.num_rows
