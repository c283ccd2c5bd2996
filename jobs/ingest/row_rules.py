"""Row expectations as the SQL that ingest asks of each row before it is appended.

A row that fails one goes to quarantine, and no row is read here.
"""
from __future__ import annotations

from collections.abc import Mapping

from expectations.sql import failing
from jobs.pipeline import declared as expect_files
from jobs.pipeline.model import Pipeline

Rules = tuple[tuple[str, str], ...]      # (reason, SQL that is true where the row fails)


def rules(pipeline: Pipeline) -> Mapping[str, Rules]:
    """By stream, over the values as jobs.ingest.land names them, in the order in which they are declared."""
    given = expect_files.read(pipeline)
    rules_by_stream = {}
    for stream in pipeline.streams:
        names = {column: f"v{i}" for i, column in enumerate(pipeline.streams[stream].columns)}
        of_rows = [e for e in expect_files.of_stream(pipeline, given, stream) if e.severity == "row"]
        rules_by_stream[stream] = tuple((f"expectation: {e}", failing(e, names)) for e in of_rows)
    return rules_by_stream
