"""Tables as Forebay left them: what a power cut or somebody else does to a log is noticed before anything is published
from it.
"""
from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from forebay import cli
from jobs.commands import rebuild
from jobs.commands.doctor_tables import tables as facts_of
from jobs.ledger import ledger
from jobs.maintenance import integrity
from jobs.storage import delta_log, failpoints, places, tables
from optimizer.errors import ForebayError
from optimizer.time import instant
from tests.jobs.pipelines import COUNT, answers, boundary, equal, opened, pipeline, ran, rows

pytestmark = pytest.mark.slow

JOINED = ("SELECT a.x, b.k FROM views AS a [WINDOW 20 SECONDS], views AS b [WINDOW 20 SECONDS] WHERE a.k = b.k AND a.x "
          "< b.x")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A query at work up to 40 s; more rows have come."""
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, range(1, 42))
    assert ran(pipe) == [10, 20, 30, 40]
    rows(pipe, [45, 55, 65])
    return tmp_path


def log(folder: Path, table: str) -> list[Path]:
    return sorted((folder / "warehouse" / table / "_delta_log").glob("*.json"))


def refused(folder: Path, code: str, word: str, work: str = "run") -> ForebayError:
    with pytest.raises(ForebayError) as caught:
        getattr(opened(folder), work)(*(["q"] if work == "table" else []))
    assert (caught.value.code, caught.value.exit_code) == (code, 1), caught.value
    assert word in caught.value.message and caught.value.hint
    return caught.value


@pytest.mark.parametrize("content", [b"", b'{"add":{"path":"x', b"\0" * 300], ids=["empty", "cut off", "zeros"])
@pytest.mark.parametrize("work", ["run", "verify"])
def test_a_torn_commit_of_a_stream(shop: Path, content: bytes, work: str) -> None:
    """Rows of the last ingest are gone: nothing is published without them, and doctor says which table it is."""
    log(shop, "streams/views")[-1].write_bytes(content)
    assert "views" in refused(shop, "damaged-table", "streams/views", work).message
    assert not all(f.ok for f in facts_of(opened(shop).runtime.pipeline))


def test_a_torn_commit_of_a_stream_that_was_run_already(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [1, 11, 25])
    ran(pipe, batches=1)
    log(tmp_path, "streams/views")[-1].write_bytes(b"")
    refused(tmp_path, "damaged-table", "streams/views")


def test_answers_that_vanished_are_noticed_and_made_anew(shop: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = answers(opened(shop), "q")
    log(shop, "results/q")[-1].write_bytes(b"")
    for work in ("run", "table"):
        assert "--rebuild q" in (refused(shop, "damaged-table", "results/q", work).hint or "")
    assert [f.name for f in facts_of(opened(shop).runtime.pipeline) if not f.ok] == ["result"]
    assert cli.main(["doctor", "--pipeline", str(shop), "--rebuild", "q"]) == 0
    assert "results/q is sound again: 4 answers computed anew" in capfd.readouterr().out
    pipe = opened(shop)
    assert answers(pipe, "q") == before
    assert ran(pipe) == [50, 60] and equal(pipe)


def test_answers_whose_log_is_gone_are_made_anew(shop: Path) -> None:
    before = answers(opened(shop), "q")
    for file in log(shop, "results/q"):
        file.unlink()
    refused(shop, "damaged-table", "results/q")
    assert opened(shop).rebuild("q").boundaries == 4
    assert answers(opened(shop), "q") == before


def test_a_lost_file_of_answers_is_made_anew(shop: Path) -> None:
    before = answers(opened(shop), "q")
    next((shop / "warehouse/results/q").glob("*.parquet")).unlink()
    assert opened(shop).rebuild("q").boundaries == 4
    assert answers(opened(shop), "q") == before and equal(opened(shop))


def test_joined_rows_are_made_anew_each_once(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": JOINED})
    for start in (1, 15, 29):
        rows(pipe, range(start, start + 14), x=list(range(start, start + 14)), k=[second % 2 for second in range(14)])
        ran(pipe)
    before = sorted(answers(pipe, "q"))
    log(tmp_path, "results/q")[-1].write_bytes(b"")
    assert opened(tmp_path).rebuild("q").boundaries == 4
    assert sorted(answers(opened(tmp_path), "q")) == before and equal(opened(tmp_path))


def test_answers_of_a_query_that_shares_are_made_anew(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={f"q{n}": f"{COUNT} WHERE v.x < {n + 2}" for n in range(4)})
    rows(pipe, range(1, 42), x=[second % 5 for second in range(41)])
    ran(pipe)
    before = {n: answers(pipe, f"q{n}") for n in range(4)}
    log(tmp_path, "results/q0")[-1].write_bytes(b"")
    refused(tmp_path, "damaged-table", "results/q0")
    opened(tmp_path).rebuild("q0")
    assert {n: answers(opened(tmp_path), f"q{n}") for n in range(4)} == before and equal(opened(tmp_path))


def test_an_appended_row_in_a_stream_is_refused_until_it_is_taken_back(shop: Path) -> None:
    path = str(shop / "warehouse/streams/views")
    before = DeltaTable(path)
    write_deltalake(path, before.to_pyarrow_table().slice(0, 1), mode="append")
    for work in ("run", "ingest"):
        assert "RESTORE" in (refused(shop, "changed-outside", "WRITE", work).hint or "")
    DeltaTable(path).restore(before.version())
    assert ran(opened(shop)) == [50, 60] and equal(opened(shop))


def test_a_deleted_row_in_a_stream_is_refused(shop: Path) -> None:
    DeltaTable(str(shop / "warehouse/streams/views")).delete("x = 1 AND k = 1")
    refused(shop, "changed-outside", "DELETE")


@pytest.mark.parametrize("table", ["streams/views", "results/q"])
def test_what_changes_no_rows_is_accepted(shop: Path, table: str) -> None:
    path = str(shop / "warehouse" / table)
    DeltaTable(path).alter.set_table_properties({
        "delta.appendOnly": "false",
        "owner": "somebody"
    }, raise_if_not_exists=False)
    DeltaTable(path).alter.set_table_description("what people look at")
    rows(opened(shop), [66])
    DeltaTable(path).optimize.compact()
    pipe = opened(shop)
    assert ran(pipe) == [50, 60] and equal(pipe)
    assert ran(opened(shop), flush=True) == [70] and equal(opened(shop))
    assert all(f.ok for f in facts_of(opened(shop).runtime.pipeline))


def test_what_somebody_else_optimized_still_holds_its_nans(tmp_path: Path) -> None:
    """Other writers' bounds leave NaN out, and the engine would take it for a number between them."""
    pipe = pipeline(tmp_path,
                    queries={"q": "SELECT COUNT(*) AS n FROM views AS v [WINDOW UNTIL NOW] WHERE v.d BETWEEN 0 AND 7"},
                    columns="{ts: timestamp, d: double}")
    for start in (1, 11):
        frame = pa.table({
            "ts": pa.array([instant(boundary(start + n)) for n in range(3)], pa.timestamp("us", "UTC")),
            "d": [1.0, 5.0, float("nan")]
        })
        pq.write_table(frame, tmp_path / f"{start}.parquet")
        pipe.ingest("views", str(tmp_path / f"{start}.parquet"))
    path = str(tmp_path / "warehouse/streams/views")
    DeltaTable(path).optimize.compact()
    assert len(DeltaTable(path).file_uris()) == 1, "it was optimized"
    assert ran(pipe, flush=True) == [10, 20] and answers(pipe, "q") == [(10, 2), (20, 4)] and equal(pipe)


def test_somebodys_rows_in_answers_are_noticed_and_taken_out(shop: Path) -> None:
    path = str(shop / "warehouse/results/q")
    before = answers(opened(shop), "q")
    write_deltalake(path, pa.table({
        "boundary": pa.array([instant(boundary(40))], pa.timestamp("us", "UTC")),
        "n": [77]
    }), mode="append")
    refused(shop, "changed-outside", "results/q")
    mended = opened(shop).rebuild("q")
    assert (mended.tables, mended.boundaries) == (("results/q",), 0), "the files of the last commit are put back"
    assert answers(opened(shop), "q") == before
    assert ran(opened(shop)) == [50, 60] and equal(opened(shop))


@pytest.mark.parametrize("table", ["streams/views", "quarantine/views", "ledger/files"])
def test_an_ingest_torn_by_a_power_cut_is_taken_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                      table: str) -> None:
    """The cut comes before the ledger's row of the input, so nothing relies on what came before.

    What of it is on the disk is chance.
    """
    pipe = pipeline(tmp_path, {"views": "lateness: 5 seconds"}, queries={"q": COUNT})
    rows(pipe, [1, 11, 21])
    ran(pipe)
    with monkeypatch.context() as patched:
        patched.setattr("jobs.ingest.register.append", _cut)
        with pytest.raises(KeyboardInterrupt):
            rows(pipe, [5, 25, 31])      # 5 s is too late: it goes to quarantine
    last = log(tmp_path, table)[-1]
    if table == "ledger/files":
        (last.parent / f"{int(last.stem) + 1:020d}.json").write_bytes(b"")
    else:
        last.write_bytes(b"")
    pipe = opened(tmp_path)
    taken = pipe.ingest("views", str(tmp_path / "views-1.parquet"))["streams"]["views"]
    assert taken["rows"] in (0, 2) and ran(pipe) == [30] and equal(pipe)
    assert answers(pipe, "q")[-1] == (30, 3), "rows at 11, 21 and 25 s, each once"


def test_an_ingest_whose_rows_did_not_reach_the_disk_is_taken_again(tmp_path: Path,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [1, 11, 21])
    ran(pipe)
    with monkeypatch.context() as patched:
        patched.setattr("jobs.ingest.register.append", _cut)
        with pytest.raises(KeyboardInterrupt):
            rows(pipe, [25, 31])
    newest = max((tmp_path / "warehouse/streams/views").glob("*.parquet"), key=lambda p: p.stat().st_mtime_ns)
    newest.write_bytes(newest.read_bytes()[:40])
    pipe = opened(tmp_path)
    assert pipe.ingest("views", str(tmp_path / "views-1.parquet"))["streams"]["views"]["rows"] == 2
    assert ran(pipe) == [30] and equal(pipe)


@pytest.mark.parametrize("table", ["results/q", "state/total/*/*", "ledger/batches", "ledger/changes"])
@pytest.mark.parametrize("torn", ["log", "rows"])
def test_a_batch_torn_by_a_power_cut_is_carried_out_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str,
                                                          torn: str) -> None:
    """The cut comes after the tables' commits and before the ledger's; only its intent is on the disk for certain."""
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    pipe.create("total", "SELECT COUNT(*) AS n FROM views AS v [WINDOW UNTIL NOW]")
    pipe.change("total", "pin", "EAP1 running")
    rows(pipe, [1, 11, 21, 31])
    ran(pipe, batches=2)
    with monkeypatch.context() as patched:
        patched.setattr(ledger.Ledger, "commit", _cut)
        with pytest.raises(KeyboardInterrupt):
            ran(pipe, batches=1)
    pipe.close()
    folder = next((tmp_path / "warehouse").glob(table))
    if table.startswith("ledger"):
        end = sorted((folder / "_delta_log").glob("*.json"))[-1]
        (end.parent / f"{int(end.stem) + 1:020d}.json").write_bytes(b"" if torn == "log" else b'{"add"')
    elif torn == "log":
        sorted((folder / "_delta_log").glob("*.json"))[-1].write_bytes(b"")
    else:
        newest = max(folder.glob("*.parquet"), key=lambda p: p.stat().st_mtime_ns)
        newest.write_bytes(newest.read_bytes()[:40])
    pipe = opened(tmp_path)
    assert ran(pipe) == [30] and equal(pipe)
    assert [t for t, _ in answers(pipe, "total")] == [10, 20, 30]


def test_a_ledger_that_forgot_a_batch_is_noticed(shop: Path) -> None:
    """Its last batch is in the answers, so the next one would have its number."""
    for file in log(shop, "ledger/batches")[-2:]:
        file.unlink()
    refused(shop, "damaged-table", "does not know batch")


def test_what_the_ledger_relies_on_is_on_the_disk_before_it_says_so(tmp_path: Path,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the last commit of a table and the ledger's there is a sync, and one between the intent and the first
    table.
    """
    pipe, events = pipeline(tmp_path, queries={"q": COUNT}), list[str]()
    rows(pipe, [1, 11])
    commit, sync = tables.Table.commit, places.sync
    monkeypatch.setattr(places, "sync", lambda path: (events.append("sync"), sync(path))[1])
    monkeypatch.setattr(
        tables.Table, "commit", lambda table, *a, **k:
        (events.append("/".join(table.path.split("/")[-2:])), commit(table, *a, **k))[1])
    ran(pipe)
    intent, commit_entry = (n for n, event in enumerate(events) if event == "ledger/batches")
    answer = events.index("results/q")
    assert "sync" in events[intent:answer] and "sync" in events[answer:commit_entry], events


def test_logs_are_read_as_they_lie_on_the_disk(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for n in range(3):
        write_deltalake(path, pa.table({"a": [n]}), mode="append")
    assert delta_log.versions(path) == [0, 1, 2] and delta_log.torn(path) == []
    last = delta_log.read(path, 2)
    assert last.operation == "WRITE" and last.data_files == last.added and len(last.added) == 1 and not last.torn
    Path(delta_log.commit_path(path, 2)).write_bytes(b"")
    assert delta_log.torn(path) == [2] and delta_log.read(path, 2).torn
    assert delta_log.mend_end(path, after=2) == 0, "somebody relies on it"
    assert delta_log.mend_end(path) == 1 and DeltaTable(path).version() == 1


def _cut(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_nothing_is_wrong_with_an_undisturbed_warehouse(shop: Path) -> None:
    rt = opened(shop).runtime
    assert {
        path: integrity.damage(rt, path) for path in ("streams/views", "results/q")
    } == {
        "streams/views": None,
        "results/q": None
    }
    assert {"streams/views", "results/q"} <= set(integrity.checked_paths(rt))
    assert rebuild.rebuild(rt, "q").tables == ()


def test_a_rebuild_while_a_batch_has_begun_leaves_its_answer_to_it(tmp_path: Path,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [1, 11, 25])
    ran(pipe)
    rows(pipe, [36])
    monkeypatch.setattr(failpoints, "_passes", Counter())
    monkeypatch.setenv("FOREBAY_FAILPOINT", "batch.after-tasks:1:raise")
    with pytest.raises(failpoints.Reached):
        pipe.run()
    monkeypatch.delenv("FOREBAY_FAILPOINT")
    for file in (tmp_path / "warehouse/results/q").glob("*.parquet"):
        file.unlink()
    assert "results/q" in opened(tmp_path).rebuild("q").tables
    again = opened(tmp_path)
    assert ran(again) == [30] and [t for t, _ in answers(again, "q")] == [10, 20, 30] and equal(again)
