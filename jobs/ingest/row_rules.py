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
    return {name: _rules(pipeline, given, name) for name in pipeline.streams}


def _rules(pipeline: Pipeline, given: tuple[expect_files.Given, ...], stream: str) -> Rules:
    names = {column: f"v{i}" for i, column in enumerate(pipeline.streams[stream].columns)}
    return tuple((f"expectation: {e}", failing(e, names))
                 for e in expect_files.of_stream(pipeline, given, stream)
                 if e.severity == "row")
