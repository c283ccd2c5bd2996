"""Delta tables as values: a commit wins or conflicts, a batch's number is told once, bounds hold their rows, an old
version stays readable.
"""
from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from jobs.engine import kernel
from jobs.storage import tables
from jobs.storage.tables import File
from optimizer.errors import ForebayError
from optimizer.time import instant

SCHEMA = pa.schema([("n", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("s", pa.string())])


def rows(*numbers: int | None) -> pa.Table:
    stamps = [None if n is None else instant(n) for n in numbers]
    return pa.table({"n": list(numbers), "at": stamps, "s": [str(n) for n in numbers]}, schema=SCHEMA)


def made(folder: Path) -> tables.Table:
    return tables.create(str(folder / "t"), SCHEMA)


def test_of_two_that_read_the_same_version_one_commits_and_one_conflicts(tmp_path: Path) -> None:
    first = made(tmp_path)
    second = tables.open_table(first.path)
    first.append(rows(1))
    with pytest.raises(tables.Conflict) as caught:
        second.append(rows(2))
    assert caught.value.exit_code == 3 and first.path in caught.value.message
    assert second.refresh().version == 1 and [f.rows for f in second.files()] == [1]
    assert second.append(rows(2)) == 2


def test_files_that_say_less_or_more_of_their_columns_are_read_as_one(tmp_path: Path) -> None:
    table = made(tmp_path)
    strict = pa.schema([SCHEMA.field("n").with_nullable(False), SCHEMA.field("at")])
    written = tables.write(table.path, rows(1).drop_columns(["s"]).cast(strict), "old.parquet")
    table.commit([written])
    table.append(rows(2, None))
    assert sorted(map(str, table.rows()["n"].to_pylist())) == ["1", "2", "None"]
    assert None in table.rows()["s"].to_pylist()


def test_one_commit_adds_and_removes(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.append(rows(1))
    (old,) = table.files()
    table.commit([tables.write(table.path, rows(2, 3), "new.parquet")], [old.path])
    assert [f.path for f in table.files()] == [f.path for f in tables.open_table(table.path).files()] == ["new.parquet"]


def test_a_transaction_is_the_highest_number_told_and_survives_other_commits(tmp_path: Path) -> None:
    table = made(tmp_path)
    assert table.transaction("batch") == -1
    table.append(rows(1), ("batch", 7))
    table.append(rows(2))
    assert tables.open_table(table.path).transaction("batch") == 7 and table.transaction("other") == -1
    assert not table.foreign


def test_a_commit_by_someone_else_is_foreign(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.append(rows(1))
    write_deltalake(table.path, rows(2), mode="append")
    assert table.refresh().foreign and sum(f.rows for f in table.files()) == 2
    table.append(rows(3))
    assert not table.foreign


def test_an_old_version_stays_what_it_was(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.append(rows(1))
    (old,) = table.files()
    table.commit([tables.write(table.path, rows(2, 3), "new.parquet")], [old.path])
    assert [f.path for f in table.at(1).files()] == [old.path] and table.at(0).files() == ()
    assert table.at(2) is table and table.at(1).version == 1


@given(st.lists(st.one_of(st.none(), st.integers(-2 ** 50, 2 ** 50)), min_size=1, max_size=20))
def test_bounds_hold_every_value_also_after_a_commit_and_to_the_microsecond_before(
        tmp_path_factory: pytest.TempPathFactory, numbers: list[int | None]) -> None:
    """Delta keeps instants to the millisecond: the bounds grow, they never shrink."""
    table = made(tmp_path_factory.mktemp("bounds"))
    file = tables.write(table.path, rows(*numbers), "f.parquet")
    known = [n for n in numbers if n is not None]
    assert {k: v for k, v in file.low.items() if known} == ({"n": min(known), "at": min(known)} if known else {})
    table.commit([file])
    (listed,) = tables.open_table(table.path).files()
    assert listed.rows == len(numbers)
    if known:
        assert (listed.low["n"], listed.high["n"]) == (min(known), max(known))
        assert listed.low["at"] <= min(known) and max(
            known) <= listed.high["at"] and listed.high["at"] - max(known) <= 1000


def test_a_table_that_was_begun_and_has_no_commit_is_made(tmp_path: Path) -> None:
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    assert not tables.exists(str(tmp_path / "t"))
    assert made(tmp_path).version == 0 and tables.exists(str(tmp_path / "t"))


def test_no_rows_are_a_commit_without_a_file(tmp_path: Path) -> None:
    table = made(tmp_path)
    assert table.append(rows(), ("batch", 1)) == 1 and table.files() == () and table.transaction("batch") == 1


def test_what_is_no_table_or_damaged_is_said(tmp_path: Path) -> None:
    with pytest.raises(ForebayError) as caught:
        tables.open_table(str(tmp_path))
    assert caught.value.code == "no-table"
    table = made(tmp_path)
    (Path(table.path) / "_delta_log" / f"{0:020d}.json").write_text("{")
    with pytest.raises(ForebayError) as caught:
        tables.open_table(table.path)
    assert caught.value.code == "damaged-table"


def test_a_written_file_has_no_bounds_that_deny_nan(tmp_path: Path) -> None:
    tables.write(str(tmp_path), pa.table({"x": [0.0, float("nan"), 1.0]}), "x.parquet")
    file = kernel.file_list((str(tmp_path / "x.parquet"),))
    assert kernel.shared().execute(
        f"SELECT count(*) FILTER (x > 1), count(*) FILTER (x <= 1) FROM read_parquet({file})").fetchall() == [(1, 2)]


@pytest.mark.parametrize(("first", "last", "may"), [(10, 20, True), (5, 10, True), (20, 25, True), (5, 9, False),
                                                    (21, 25, False), (14, 15, True)])
def test_a_file_may_hold_what_its_bounds_do_not_rule_out(first: int, last: int, may: bool) -> None:
    bounded = File("a.parquet", 2, 900, {"ts": 10}, {"ts": 20})
    assert bounded.may_hold("ts", first, last) is may
    assert bounded.may_hold("other", first, last) and File("b.parquet", 2, 900).may_hold("ts", first, last)
