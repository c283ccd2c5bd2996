"""Damage: a run over a broken table stops, says which and what to do, and publishes nothing wrong.

State that is damaged can be made anew.
"""
from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import forebay
from forebay import cli
from jobs.commands.doctor_tables import tables as told
from jobs.maintenance import repair
from jobs.storage import tables
from optimizer.errors import ForebayError
from tests.jobs.pipelines import COUNT, answers, equal, opened, pipeline, ran, rows

pytestmark = pytest.mark.slow

TOTAL = "SELECT COUNT(*) AS n, SUM(v.x) AS x FROM views AS v [WINDOW UNTIL NOW]"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Two queries, one with a running total as its state, at work up to 40 s; more rows have come."""
    pipe = pipeline(tmp_path, queries={"q": COUNT, "total": TOTAL})
    pipe.runtime.ledger      # the queries become known at the first run
    pipe.create("kept", TOTAL)
    pipe.change("kept", "pin", "EAP1 running")
    rows(pipe, range(1, 42))
    assert ran(pipe) == [10, 20, 30, 40]
    rows(pipe, [45, 55, 65])
    return tmp_path


def state(folder: Path) -> Path:
    return next(p.parent for p in (folder / "warehouse/state/kept").rglob("_delta_log"))


def stopped(folder: Path) -> ForebayError:
    before = committed(folder)
    with pytest.raises(ForebayError) as caught:
        opened(folder).run()
    assert committed(folder) == before
    assert caught.value.exit_code == 1 and caught.value.hint and "doctor" in caught.value.hint
    return caught.value


def committed(folder: Path) -> int | None:
    return opened(folder).runtime.ledger.committed()


def mended(folder: Path) -> None:
    """Rebuilt, it goes on, and every answer is right."""
    pipe = opened(folder)
    assert [query for query, _ in repair.damaged(pipe.runtime)] == ["kept"]
    assert repair.rebuild(pipe.runtime, "kept")
    pipe = opened(folder)
    assert ran(pipe)[-1] == 60 and equal(pipe)
    assert answers(pipe, "kept")[-2:] == [(50, 42, 42), (60, 43, 43)]
    assert repair.damaged(pipe.runtime) == []


def test_a_truncated_commit(shop: Path) -> None:
    last = sorted((state(shop) / "_delta_log").glob("*.json"))[-1]
    last.write_bytes(last.read_bytes()[:100])
    assert "kept" in str(stopped(shop)) or stopped(shop).code == "damaged-table"
    mended(shop)


def test_a_deleted_commit(shop: Path) -> None:
    """The table is whole, but one batch too old: every row of that batch would be missing."""
    sorted((state(shop) / "_delta_log").glob("*.json"))[-1].unlink()
    assert stopped(shop).code == "damaged-state"
    mended(shop)


def test_a_foreign_commit(shop: Path) -> None:
    table = tables.open_table(str(state(shop)))
    rows = pa.concat_tables([pa.parquet.read_table(state(shop) / f.path, partitioning=None) for f in table.files()])
    write_deltalake(str(state(shop)), rows, mode="append")
    assert stopped(shop).code == "damaged-state"
    mended(shop)


def test_a_deleted_data_file(shop: Path) -> None:
    for file in tables.open_table(str(state(shop))).files():
        (state(shop) / file.path).unlink()
    assert stopped(shop).code == "damaged-state"
    mended(shop)


def test_a_deleted_folder_of_state(shop: Path) -> None:
    for path in state(shop).rglob("*"):
        if path.is_file():
            path.unlink()
    assert stopped(shop).exit_code == 1
    mended(shop)


def test_a_deleted_file_of_a_stream(shop: Path) -> None:
    file = next((shop / "warehouse/streams/views").glob("*.parquet"))
    file.unlink()
    said = stopped(shop)
    assert said.code == "damaged-table" and str(file) in said.message


def test_a_lost_mark_is_noticed_before_rows_are_put_into_boundaries_that_have_run(shop: Path) -> None:
    log = sorted((shop / "warehouse/ledger/changes/_delta_log").glob("*.json"))
    log[-1].unlink()
    with pytest.raises(ForebayError, match="a commit of it is gone"):
        rows(opened(shop), [33])


def test_a_full_disk(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(tables.pq, "write_table", full)
        assert stopped(shop).code == "disk-full"
    pipe = opened(shop)
    assert ran(pipe)[-1] == 60 and equal(pipe)


def test_there_is_nothing_to_rebuild_without_state(tmp_path: Path) -> None:
    pipe: forebay.Pipeline = pipeline(tmp_path, queries={"q": COUNT})
    assert not repair.rebuild(pipe.runtime, "q")


def test_reading_a_damaged_result_says_what_is_damaged(shop: Path) -> None:
    for file in (shop / "warehouse/results/q").glob("*.parquet"):
        file.write_bytes(file.read_bytes()[:50])
    for ask in (lambda p: p.table("q", every=True), lambda p: p.verify("q")):
        with pytest.raises(ForebayError) as caught:
            ask(opened(shop))
        assert (caught.value.code, caught.value.exit_code) == ("damaged-table", 1) and "doctor" in (caught.value.hint
                                                                                                    or "")


def test_doctor_lists_damage_and_rebuilds(shop: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert [f.ok for f in told(opened(shop).runtime.pipeline)] == [True]
    for file in tables.open_table(str(state(shop))).files():
        (state(shop) / file.path).unlink()
    assert [(f.name, f.ok) for f in told(opened(shop).runtime.pipeline)] == [("state", False)]
    assert cli.main(["doctor", "--pipeline", str(shop), "--json"]) == 1
    bad = [f for f in json.loads(capfd.readouterr().out)["facts"] if f["name"] == "state"]
    assert len(bad) == 1 and "forebay doctor --rebuild kept" in bad[0]["fix"]
    assert cli.main(["doctor", "--pipeline", str(shop), "--rebuild", "kept", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == {
        "query": "kept",
        "rebuilt": True,
        "state": True,
        "tables": [],
        "boundaries": 0
    }
    assert cli.main(["doctor", "--pipeline", str(shop), "--rebuild", "nobody", "--json"]) == 2
    pipe = opened(shop)
    assert ran(pipe)[-1] == 60 and equal(pipe)


def test_doctor_names_a_table_that_lacks_a_file(shop: Path) -> None:
    gone = next((shop / "warehouse/streams/views").glob("*.parquet"))
    gone.unlink()
    assert [(f.name, f.ok, gone.name in f.value) for f in told(opened(shop).runtime.pipeline)] == [("table", False,
                                                                                                    True)]
