"""Warehouses that older code wrote (tests/fixtures/warehouses) open, go on exactly, and tell their history."""
from __future__ import annotations

import tarfile
from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable

import forebay
from jobs.maintenance import compact
from jobs.storage import failpoints
from tests.jobs.pipelines import equal
from tests.older_warehouse import PINS, QUERIES, WRITTEN, live

pytestmark = pytest.mark.slow
FIXTURES = Path(__file__).parent / "fixtures" / "warehouses"


def unpacked(name: str, folder: Path) -> Path:
    with tarfile.open(FIXTURES / f"{name}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "shop"


def boundaries(pipe: forebay.Pipeline, query: str) -> list[int]:
    return sorted({at.value // 1000 for at in pipe.result(query, every=True)["boundary"]})


def test_a_warehouse_of_before_is_read_and_goes_on(tmp_path: Path) -> None:
    folder = unpacked("whole", tmp_path)
    before = forebay.open(str(folder))
    last = before.runtime.ledger.committed()
    committed = {q["query"] for q in before.queries()}
    waiting = before.status()
    assert (waiting["committed"], waiting["published"]) == (last, None)
    assert all(query["unpublished"] for query in waiting["queries"].values())
    assert before.run(to=last)["ran"] == []      # nothing to do, but to bring the answers to their addresses
    assert last is not None and equal(before) and committed
    assert {q["query"]: q["pinned"] for q in before.queries() if q["pinned"]} == PINS
    for query, told in before.status()["queries"].items():
        assert told["boundary"] == boundaries(before, query)[-1] and told["plan"] and not told["unpublished"]
    for query, plan in PINS.items():
        assert {entry["plan"] for entry in before.plans(query)["decisions"]} == {plan}
    shared = next(q for q in before.queries() if q["query"] == "shared0")
    assert {"shared1", "shared2"} <= set(shared["shares_with"])      # others may join them: prices say who shares
    state = (folder / "warehouse/state/expire").iterdir()
    epochs = {entry.name for entry in state}
    before.close()

    live(folder, range(WRITTEN, WRITTEN + 2))

    after = forebay.open(str(folder))
    assert equal(after)
    assert max(boundaries(after, "expire")) == max(boundaries(after, "shared1")) > last
    assert {entry.name for entry in (folder / "warehouse/state/expire").iterdir()} == epochs      # kept state served on
    after.close()


def test_the_move_to_the_addresses_can_be_killed_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = unpacked("whole", tmp_path)
    told = [row for path in sorted((folder / "warehouse/results").glob("shared-*"))
            for row in DeltaTable(str(path)).to_pyarrow_table().to_pylist()]
    compact.sweep(forebay.open(str(folder)).runtime)      # which takes nothing that has not moved yet
    passed = 0
    for number in range(1, 100):
        monkeypatch.setattr(failpoints, "_passes", Counter())
        monkeypatch.setenv("FOREBAY_FAILPOINT", f"address.after-move:{1 + number % 2}:raise")
        pipe = forebay.open(str(folder))
        try:
            pipe.run(to=pipe.runtime.ledger.committed())
            break
        except failpoints.Reached:
            passed += 1
        finally:
            pipe.close()
    monkeypatch.delenv("FOREBAY_FAILPOINT")
    pipe = forebay.open(str(folder))
    for query in ("shared0", "shared1", "shared2"):
        there = DeltaTable(str(folder / "warehouse/results" / query)).to_pyarrow_table()
        assert there.num_rows == sum(row["query"] == query for row in told) > 0
        assert there.schema.names == ["boundary", "user", "n", "ms"]
    assert passed > 3 and equal(pipe)
    pipe.close()


def test_a_batch_that_older_code_began_is_finished(tmp_path: Path) -> None:
    folder = unpacked("killed", tmp_path)
    before = forebay.open(str(folder))
    committed = before.runtime.ledger.committed()
    before.close()

    pipe = forebay.open(str(folder))
    entries = pipe.run()["ran"]
    assert committed is not None and entries and min(entry["boundary"] for entry in entries) > committed
    assert {query for entry in entries for query in entry["plans"]} >= QUERIES.keys() - {"divides", "shared3"}
    assert pipe.run()["ran"] == [] and equal(pipe)
    pipe.close()
    live(folder, range(WRITTEN, WRITTEN + 1))
    again = forebay.open(str(folder))
    assert equal(again)
    again.close()
