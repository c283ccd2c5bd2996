"""Another program's Delta table as a source: each version once, appended rows only."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from jobs.ingest.sources import delta
from jobs.pipeline.config import Pipeline
from jobs.storage import tables
from optimizer.errors import ForebayError
from tests.jobs.ingesting import at, counts, pipeline, rows, stored, take

pytestmark = pytest.mark.slow


def table(*seconds: int, user: str = "u") -> pa.Table:
    return pa.table({"ts": at(*seconds), "user": pa.array([user] * len(seconds)), "ms": pa.array(seconds, pa.int64())})


def source(folder: Path) -> Pipeline:
    return pipeline(folder, source="{delta: other}")


def test_versions_are_read_once(tmp_path: Path) -> None:
    pipe, other = source(tmp_path), tmp_path / "other"
    write_deltalake(other, table(1, 2))
    write_deltalake(other, table(3), mode="append")
    assert counts(pipe) == (2, 3, 0, 0) and counts(pipe) == (0, 0, 0, 0)
    write_deltalake(other, table(4), mode="append")
    write_deltalake(other, table(5), mode="append")
    assert counts(pipe) == (2, 2, 0, 0)
    assert stored(pipe, "ms") == [(i,) for i in range(1, 6)]


def test_compaction_is_no_change(tmp_path: Path) -> None:
    pipe, other = source(tmp_path), tmp_path / "other"
    for i in range(4):
        write_deltalake(other, table(i), mode="append")
    counts(pipe)
    DeltaTable(other).optimize.compact()
    write_deltalake(other, table(9), mode="append")
    assert counts(pipe) == (1, 1, 0, 0) and stored(pipe, "ms") == [(0,), (1,), (2,), (3,), (9,)]


def test_partition_values_are_columns(tmp_path: Path) -> None:
    pipe, other = source(tmp_path), tmp_path / "other"
    write_deltalake(other, pa.concat_tables([table(1, user="a b"), table(2, user="c=%")]), partition_by=["user"])
    counts(pipe)
    write_deltalake(other, table(3, user="d"), mode="append", partition_by=["user"])
    counts(pipe)
    assert stored(pipe, 'ms, "user"') == [(1, "a b"), (2, "c=%"), (3, "d")]


def test_a_version_that_removes_rows_is_refused(tmp_path: Path) -> None:
    pipe, other = source(tmp_path), tmp_path / "other"
    write_deltalake(other, table(1, 2))
    counts(pipe)
    DeltaTable(other).delete("ms = 1")
    refused, = take(pipe)["refused"]
    assert refused["stream"] == "views" and "version 1 of" in refused["reason"] and refused["path"] == str(other)
    assert stored(pipe, "ms") == [(1,), (2,)]


def test_no_table(tmp_path: Path) -> None:
    refused, = take(source(tmp_path))["refused"]
    assert "is not a Delta table" in refused["reason"] and rows(source(tmp_path), "ledger/files", "1") == []


def test_a_file_that_was_vacuumed_before_it_was_read_is_told(tmp_path: Path) -> None:
    pipe, other = source(tmp_path), tmp_path / "other"
    write_deltalake(other, table(1))
    counts(pipe)
    write_deltalake(other, table(2), mode="append")
    file, = set(DeltaTable(other).file_uris()) - set(DeltaTable(other, version=0).file_uris())
    Path(file.removeprefix("file://")).unlink()
    refused, = take(pipe)["refused"]
    assert "is gone" in refused["reason"] and stored(pipe, "ms") == [(1,)]


def test_column_mapping_of_an_older_protocol_is_recognised(tmp_path: Path) -> None:
    pipe, other = source(tmp_path), tmp_path / "other"
    write_deltalake(other, table(1))
    counts(pipe)
    log = other / "_delta_log" / f"{1:020d}.json"
    said = json.loads(
        (other / "_delta_log" / f"{0:020d}.json").read_text().split('{"metaData":')[1].splitlines()[0].join(
            ('{"metaData":', "")))
    schema = json.loads(said["metaData"]["schemaString"])
    for number, column in enumerate(schema["fields"], 1):
        column["metadata"] = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": column["name"]}
    said["metaData"] |= {
        "schemaString": json.dumps(schema),
        "configuration": {
            "delta.columnMapping.mode": "name",
            "delta.columnMapping.maxColumnId": "3"
        }
    }
    log.write_text(
        json.dumps({"protocol": {
            "minReaderVersion": 2,
            "minWriterVersion": 5
        }}) + "\n" + json.dumps(said) + "\n")
    assert "columnMapping" in tables.open_table(str(other)).features


def logged(folder: Path, *versions: str) -> str:
    """A log by letters: +a adds file a, ~b re-adds it as it was, -a removes it by compaction, !a deletes its rows, m
    changes the columns.
    """
    def action(word: str) -> dict[str, Any]:
        kind = {"+": "add", "~": "add", "-": "remove", "!": "remove", "m": "metaData"}[word[0]]
        return {kind: {"path": word[1:], "dataChange": word[0] in "+!"}}

    (folder / "_delta_log").mkdir()
    for version, words in enumerate(versions, 1):
        (folder / "_delta_log" / f"{version:020d}.json").write_text("".join(
            json.dumps(action(w)) + "\n" for w in words.split()))
    return str(folder)


@pytest.mark.parametrize(("versions", "parts"), [(("+a", "+b", "+c"), [(3, "abc")]),
                                                 (("+a +b", "-a ~d", "+c"), [(1, "a"), (3, "bc")]),
                                                 (("+a", "m", "+b", "m +c"), [(1, "a"), (3, "b"), (4, "c")]),
                                                 (("-x ~y", "m"), []), (("+a", "~a", "+b"), [(1, "a"), (3, "b")])])
def test_what_spark_would_read_of_which_version(tmp_path: Path, versions: tuple[str, ...],
                                                parts: list[tuple[int, str]]) -> None:
    assert [
        (v, "".join(sorted(files or ""))) for v, files in delta._parts(logged(tmp_path, *versions), 0, len(versions))
    ] == parts


def test_rows_deleted_by_a_vector_are_told_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(ForebayError) as caught:
        list(delta._parts(logged(tmp_path, "+a", "!x +x"), 0, 2))
    assert "version 2 of" in caught.value.message and caught.value.exit_code == 1
