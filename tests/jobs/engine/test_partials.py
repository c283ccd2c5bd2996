"""Partials on their way to whoever merges them: in memory while they are few, else in a file, divided by group."""
from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from jobs.engine import memory, partials
from jobs.engine.partials import Collected, DividedPartials, Handover, PartialsGrouping, divided, read, shares
from jobs.engine.sums import added, sums

GROUPING = PartialsGrouping(("g0", "g1"), ("_t",), ("c",))
STRANGE = [0.0, -0.0, float("nan"), None, 1e300, 1.0]


def of(count: int, t: int = 60) -> pa.Table:
    return pa.table({"_t": pa.array([t] * count, pa.int64()),
                     "g0": pa.array([n // 2 for n in range(count)], pa.int64()),
                     "g1": pa.array([STRANGE[n % 6] for n in range(count)], pa.float64()),
                     "c": pa.array([n % 5 for n in range(count)], pa.int64())})


def place(folder: Path, most: int) -> Handover:
    return Handover(str(folder), most, {0: GROUPING})


def collected(where: Handover | None, number: int = 0) -> Collected:
    with Collected(where, number) as partials_:
        partials_.add(of(100))
        partials_.add(of(300, 120))
    return partials_


def listed(rows: pa.Table) -> Counter[str]:
    return Counter(map(repr, rows.to_pylist()))


def test_few_stay_in_memory_and_many_go_to_a_file(tmp_path: Path) -> None:
    everything = pa.concat_tables([of(100), of(300, 120)])
    for where, number in ((None, 0), (place(tmp_path, 1 << 20), 0), (place(tmp_path, 0), 1)):
        few = collected(where, number)
        assert few.divided is None and listed(few.in_memory()) == listed(everything)
    many = collected(place(tmp_path, of(100).nbytes + 1))
    assert many.in_memory() is None and many.divided is not None
    assert many.divided.rows == 400 and many.divided.size == everything.nbytes
    assert listed(read([many.divided], range(partials.BUCKETS))) == listed(everything)
    assert many.divided.sums == sums(everything, ["_t"], ["c"])
    assert [file.name for file in tmp_path.iterdir()] == [Path(many.divided.path).name]


def test_a_group_is_in_one_share_whichever_task_made_its_partials(tmp_path: Path,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partials, "CHUNK", 64)
    rows = [of(400), pa.concat_tables([of(100, 120), of(250).slice(50)])]
    files = [divided(table, place(tmp_path, 0), 0) for table in rows]
    parts = shares(files, 3, 1 << 30)
    assert len(parts) == 3 and [n for part in parts for n in part] == list(range(partials.BUCKETS))
    read_parts = [read(files, part) for part in parts]
    assert sum(map(listed, read_parts), Counter()) == listed(pa.concat_tables(rows))
    groups = [{(row["g0"], None if row["g1"] is None else row["g1"] + 0.0 if row["g1"] == row["g1"] else "NaN")
               for row in part.to_pylist()} for part in read_parts]
    assert all(groups) and not groups[0] & groups[1] and not groups[0] & groups[2] and not groups[1] & groups[2]


def test_what_is_read_has_the_types_that_were_written(tmp_path: Path) -> None:
    rows = of(10).append_column("m", pa.array([None] * 10, pa.decimal128(38, 0)))
    file = divided(rows, place(tmp_path, 0), 0)
    assert read([file], range(partials.BUCKETS)).schema == rows.schema
    assert read([file], range(0)).schema == rows.schema and not read([file], range(0)).num_rows


def test_after_an_error_no_file_is_left(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        with Collected(place(tmp_path, 0), 0) as partials_:
            partials_.add(of(10))
            assert list(tmp_path.iterdir())
            raise ValueError("an overflow")
    assert partials_.divided is None and not list(tmp_path.iterdir())


@pytest.mark.parametrize("size,least,count", [(0, 1, 1), (100, 2, 2), (1000, 2, 10), (10**9, 1, partials.BUCKETS)])
def test_shares_are_as_many_as_tasks_and_no_larger_than_asked(size: int, least: int, count: int) -> None:
    assert len(shares([DividedPartials("", 1, size, (), {})], least, 100)) == count


def test_sums_of_parts_are_sums_of_all() -> None:
    rows = pa.table({"_t": [1, 1, 2], "x": [3, -4, None], "y": [0.5, 1.0, 2.0]})
    whole = sums(rows, ["_t"], ["x", "y"])
    assert whole == {(1,): ((-1.0, 7.0), (1.5, 1.5)), (2,): ((0.0, 0.0), (2.0, 2.0))}
    assert added([sums(rows.slice(n, 1), ["_t"], ["x", "y"]) for n in range(3)]) == whole


def test_what_the_driver_merges_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FOREBAY_DRIVER_PARTIALS", raising=False)
    assert memory.partials_of_driver({}) == memory.DRIVER_PARTIALS
    assert memory.partials_of_driver({"forebay.driver.partials": "1g"}) == 1 << 30
    monkeypatch.setenv("FOREBAY_DRIVER_PARTIALS", "0")
    assert memory.partials_of_driver({"forebay.driver.partials": "1g"}) == 0
