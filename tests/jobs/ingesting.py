"""Pipelines in temporary folders, ingested in this process."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from jobs.ingest import ingest, relations
from jobs.pipeline.config import Pipeline, load
from jobs.pipeline.warehouse import Warehouse
from jobs.storage import tables

SECOND = 10**6
NOW = 10_000 * SECOND                  # the clock of these tests
COLUMNS = "{ts: timestamp, user: string, ms: bigint}"


class RefreshedVersions(NamedTuple):
    versions: dict[str, int]
    refused: list[dict[str, str]]


class Inline:
    """Tasks in this process."""

    inline, width = True, 2

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        return [function(item) for item in items]

    def suit(self, seconds: float) -> None:
        """They are where they are."""


def pipeline(folder: Path, columns: str = COLUMNS, stream: str = "", source: str = '{files: "landing/*"}',
             relations: str = "") -> Pipeline:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "landing").mkdir(exist_ok=True)
    given = (f", source: {source}" if source else "") + (f", {stream}" if stream else "")
    (folder / "forebay.yml").write_text(
        f"name: test\nbatch: 10 seconds\nstreams:\n  views: {{columns: {columns}, event_time: ts{given}}}\n{relations}")
    return load(str(folder))


def take(pipe: Pipeline, last: int | None = None, only: Mapping[str, Any] | None = None, clock: int = NOW,
         tasks: Any = Inline()) -> dict[str, Any]:
    return ingest.ingest(pipe, Warehouse(pipe.warehouse), last, tasks, only, lambda: clock)


def refreshed(pipe: Pipeline, tasks: Any = Inline()) -> RefreshedVersions:
    refreshed_relations = relations.refresh(pipe, Warehouse(pipe.warehouse), tasks)
    versions = {name: one["version"] for name, one in refreshed_relations.relations.items()
                if one["version"] is not None}
    return RefreshedVersions(versions, refreshed_relations.refused)


def counts(pipe: Pipeline, last: int | None = None, only: Mapping[str, Any] | None = None,
           clock: int = NOW) -> tuple[int, int, int, int]:
    """(files, rows, quarantined, late) of an ingest that refuses nothing."""
    said = take(pipe, last, only, clock)
    assert said["refused"] == []
    return tuple(said["streams"]["views"][k] for k in ("files", "rows", "quarantined", "late"))


def lines(pipe: Pipeline, name: str, rows: Iterable[Mapping[str, Any] | str]) -> None:
    text = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
    Path(pipe.folder, "landing", name).write_text(text)


def parquet(pipe: Pipeline, name: str, **columns: pa.Array) -> None:
    pq.write_table(pa.table(columns), Path(pipe.folder, "landing", name))


def rows(pipe: Pipeline, folder: str, sql: str) -> list[tuple[Any, ...]]:
    """What a table holds: its committed files only."""
    path = os.path.join(pipe.warehouse, folder)
    files = [os.path.join(path, f.path) for f in tables.open_table(path).files()] if tables.exists(path) else []
    if not files:
        return []
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    return con.execute(f"SELECT {sql} FROM read_parquet({files})").fetchall()


def stored(pipe: Pipeline,
           sql: str = "epoch_us(ts) // 1000000, epoch_us(_boundary) // 1000000") -> list[tuple[Any, ...]]:
    return sorted(rows(pipe, "streams/views", sql))


def reasons(pipe: Pipeline) -> list[str]:
    return sorted(r for r, in rows(pipe, "quarantine/views", "_reason"))


def content(pipe: Pipeline) -> dict[str, Any]:
    """What three tables say, but for names that differ from run to run."""
    columns = {
        "streams/views": "*",
        "quarantine/views": "_reason, _row, _source, _ingest",
        "ledger/files": "stream, path, size, digest, \"rows\", late, quarantined, ingest, first_event, last_event"
    }
    return {folder: sorted(map(repr, rows(pipe, folder, sql))) for folder, sql in columns.items()}


def process(pipe: Pipeline, failpoint: str | None = None, last: int | None = None) -> int:
    """One ingest in a process of its own; its exit code."""
    program = f"from tests.jobs.ingesting import *\ntake(load({pipe.folder!r}), {last!r})"
    environment = {
        **os.environ, "FOREBAY_FAILPOINT": failpoint
    } if failpoint else {
        k: v for k, v in os.environ.items() if k != "FOREBAY_FAILPOINT"
    }
    return subprocess.run([sys.executable, "-c", program], env=environment, cwd=Path(__file__).parents[2],
                          capture_output=True).returncode


def at(*seconds: float | None) -> pa.Array:
    return pa.array([None if s is None else round(s * SECOND) for s in seconds], pa.timestamp("us", "UTC"))
