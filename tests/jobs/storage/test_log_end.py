"""A commit at the end of a log whose end is known is one that delta-rs reads, and loses to whoever was faster."""
from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from jobs.storage import log_end, tables
from jobs.storage.tables import OURS

SCHEMA = pa.schema([("boundary", pa.timestamp("us", "UTC")), ("n", pa.int64())])


def written(table: tables.Table, *numbers: int) -> tables.File:
    stamps = pa.array([number * 10**6 for number in numbers], SCHEMA.field("boundary").type)
    rows = pa.table({"boundary": stamps, "n": pa.array(numbers, pa.int64())}, schema=SCHEMA)
    return tables.write(table.path, rows, tables.unique("rows"))


def test_files_come_and_go_as_one_version(tmp_path: Path) -> None:
    table = tables.create(str(tmp_path / "t"), SCHEMA, {"delta.enableChangeDataFeed": "true"})
    first, second = written(table, 1, 2), written(table, 3)
    assert log_end.commit_after(table.path, 0, SCHEMA, [first], [], ("batch", 7))
    assert log_end.commit_after(table.path, 1, SCHEMA, [second], [first], ("batch", 8))
    there = DeltaTable(table.path)
    assert there.version() == 2 and there.to_pyarrow_table()["n"].to_pylist() == [3]
    assert (there.transaction_version("batch"), there.transaction_version(OURS)) == (8, 2)
    feed = pa.RecordBatchReader.from_stream(there.load_cdf(1)).read_all().to_pylist()
    assert sorted((row["_commit_version"], row["_change_type"], row["n"]) for row in feed) == [
        (1, "insert", 1), (1, "insert", 2), (2, "delete", 1), (2, "delete", 2), (2, "insert", 3)]
    assert table.refresh().version == 2 and [(f.path, f.rows, f.low, f.high) for f in table.files()] == [
        (second.path, 1, second.low, second.high)]


def test_who_was_faster_wins(tmp_path: Path) -> None:
    table = tables.create(str(tmp_path / "t"), SCHEMA)
    table.commit([written(table, 1)])
    assert not log_end.commit_after(table.path, 0, SCHEMA, [written(table, 2)], [], ("batch", 1))
    assert not log_end.commit_after(table.path, 5, SCHEMA, [written(table, 2)], [], ("batch", 1)), "no such version"
    assert DeltaTable(table.path).to_pyarrow_table()["n"].to_pylist() == [1]
    assert not list(Path(table.path, "_delta_log").glob("*.tmp"))


def test_a_table_is_begun_as_delta_rs_makes_it(tmp_path: Path) -> None:
    properties = {"delta.enableChangeDataFeed": "true"}
    made, begun = tables.create(str(tmp_path / "made"), SCHEMA, properties), str(tmp_path / "begun")
    assert log_end.begin(begun, SCHEMA, properties) and not log_end.begin(begun, SCHEMA, properties)
    assert not log_end.begin(made.path, SCHEMA, properties)
    ours, theirs = DeltaTable(begun), DeltaTable(made.path)
    assert ours.schema().to_json() == theirs.schema().to_json() and ours.protocol() == theirs.protocol()
    assert ours.metadata().configuration == theirs.metadata().configuration
    assert ours.version() == 0 and ours.metadata().id != theirs.metadata().id
    assert log_end.commit_after(begun, 0, SCHEMA, [written(tables.open_table(begun), 1)], [], ("batch", 1))
    assert DeltaTable(begun).to_pyarrow_table()["n"].to_pylist() == [1]
