"""Another program's Delta table with a feature that the kernel lacks: Spark reads it, each version once, and what is
deleted there never comes.
"""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.pipeline.config import Pipeline
from jobs.storage import tables
from tests.jobs.ingesting import pipeline, reasons, refreshed, rows, stored, take

pytestmark = pytest.mark.spark
MAPPED, VECTORS = "'delta.columnMapping.mode' = 'name'", "'delta.enableDeletionVectors' = 'true'"
Sql = Callable[[str], Any]


@pytest.fixture
def other(spark: Any, tmp_path: Path) -> Sql:
    """Runs SQL in which `other` is the other program's table."""
    return lambda sql: spark.sql(sql.replace("other", f"delta.`{tmp_path / 'other'}`"))


def made(other: Sql, folder: Path, properties: str) -> Pipeline:
    other(
        "CREATE TABLE other (ts TIMESTAMP, user STRING, ms BIGINT) USING delta PARTITIONED BY (user) TBLPROPERTIES "
        f"({properties})"
    )
    put(other, 1, 2, 3)
    return pipeline(folder, source="{delta: other}")


def put(other: Sql, *seconds: int) -> None:
    other("INSERT INTO other VALUES "
          + ", ".join(f"(timestamp_micros({s}000001), '{'a b' if s % 2 else 'c=%'}', {s})" for s in seconds))


def counted(pipe: Pipeline) -> tuple[int, int]:
    said = take(pipe)
    assert said["refused"] == []
    return said["streams"]["views"]["rows"], said["streams"]["views"]["quarantined"]


def taken(pipe: Pipeline) -> list[int]:
    """Each row's ms; every other column is checked on the way."""
    found = stored(pipe, 'ms, epoch_us(ts), "user"')
    assert all((ts, user) == (ms * 10**6 + 1, "a b" if ms % 2 else "c=%") for ms, ts, user in found)
    return [ms for ms, *_ in found]


def test_mapped_columns(other: Sql, tmp_path: Path) -> None:
    pipe = made(other, tmp_path, MAPPED)
    assert tables.open_table(str(
        tmp_path / "other")).features >= {"columnMapping"}, "although the protocol is too old to name it"
    assert counted(pipe) == (3, 0) and counted(pipe) == (0, 0) and taken(pipe) == [1, 2, 3]
    put(other, 4, 5)
    put(other, 6)
    other("OPTIMIZE other")
    put(other, 7)
    assert counted(pipe) == (4, 0) and taken(pipe) == [*range(1, 8)]
    other("OPTIMIZE other")
    assert counted(pipe) == (0, 0) and not (tmp_path / "warehouse" / "staging").exists()
    put(other, 8)
    other("DELETE FROM other WHERE ms = 1")
    refused, = take(pipe)["refused"]
    assert "version 8 of" in refused["reason"] and "removes rows" in refused["reason"] and taken(pipe) == [*range(1, 8)]


def test_rows_come_under_the_names_of_their_version(other: Sql, tmp_path: Path) -> None:
    pipe = made(other, tmp_path, MAPPED)
    counted(pipe)
    put(other, 4)
    other("ALTER TABLE other RENAME COLUMN ms TO millis")
    put(other, 5)
    assert counted(pipe) == (1, 1) and taken(pipe) == [1, 2, 3, 4] and reasons(pipe) == ["unknown column millis"]


def test_deletion_vectors(other: Sql, tmp_path: Path) -> None:
    pipe = made(other, tmp_path, VECTORS)
    other("INSERT INTO other SELECT timestamp_micros(1000000 * id + 1), 'a b', id FROM range(11, 31, 2, 1)")
    other("DELETE FROM other WHERE ms = 13")
    assert any("deletionVector" in log.read_text()
               for log in (tmp_path / "other" / "_delta_log").glob("*3.json")), "the file stays, with a vector"
    left = [1, 2, 3, 11, *range(15, 31, 2)]
    assert counted(pipe) == (len(left), 0) and taken(pipe) == left
    put(other, 4)
    put(other, 6)
    assert counted(pipe) == (2, 0) and counted(pipe) == (0, 0) and taken(pipe) == sorted([*left, 4, 6])
    other("DELETE FROM other WHERE ms = 15")
    assert "version 6 of" in take(pipe)["refused"][0]["reason"] and taken(pipe) == sorted([*left, 4, 6])


def test_a_relation(other: Sql, tmp_path: Path) -> None:
    made(other, tmp_path, f"{MAPPED}, {VECTORS}")
    told = 'relations:\n  pages: {columns: {user: string, ms: bigint}, source: {delta: other}}\n'
    pipe = pipeline(tmp_path, source="", relations=told)
    assert refreshed(pipe) == ({"pages": 0}, []) and refreshed(pipe).versions == {"pages": 0}
    other("DELETE FROM other WHERE ms = 2")
    assert refreshed(pipe).versions == {"pages": 1}
    assert sorted(rows(pipe, "relations/pages", "_version, ms, \"user\"")) == [(0, 1, "a b"), (0, 2, "c=%"),
                                                                               (0, 3, "a b"), (1, 1, "a b"),
                                                                               (1, 3, "a b")]
