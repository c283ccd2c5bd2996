"""`keep`: rows, results and refused rows that nothing to come needs leave, whatever crashes.

What is needed stays; verify says what it cannot know.
"""
from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import forebay
from jobs.commands.doctor_tables import tables as told
from jobs.maintenance import compact, retention
from jobs.storage import failpoints, tables
from jobs.storage.failpoints import Reached
from optimizer.errors import ForebayError
from optimizer.time import micros
from tests.jobs.pipelines import COUNT, SECOND, answers, boundary, opened, pipeline, ran, restarted, rows

JOINED = ("SELECT v.k, COUNT(*) AS n FROM views AS v [WINDOW 30 SECONDS], buys AS b [WINDOW 20 SECONDS] WHERE v.k = "
          "b.k GROUP BY v.k")
PAIRS = "SELECT v.x, b.x AS y FROM views AS v [WINDOW 20 SECONDS], buys AS b [WINDOW 20 SECONDS] WHERE v.k = b.k"
LANDMARK = "SELECT COUNT(*) AS n FROM views AS v [WINDOW UNTIL NOW]"
KEPT = {"views": "keep: 40 seconds, lateness: 30 seconds", "buys": "keep: 40 seconds"}

pytestmark = pytest.mark.slow


def lived(folder: Path, streams: dict[str, str], seconds: int = 160, **queries: str) -> forebay.Pipeline:
    """Rows of every second, taken and run in steps of 10 s."""
    pipe = pipeline(folder, streams, queries=queries)
    for start in range(0, seconds, 10):
        for name in streams:
            rows(pipe, [start + s for s in range(0, 10, 2)] + ([max(start - 25, 0)] if name == "views" else []), name,
                 k=start % 3, x=start)
        pipe.run()
    return pipe


Copied = Callable[[Path], forebay.Pipeline]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Copied:
    """The life that most tests begin with, lived once: each goes on with a copy of its folder."""
    folder = tmp_path_factory.mktemp("kept")
    lived(folder, KEPT, q=COUNT)
    return lambda to: opened(Path(shutil.copytree(folder, to, dirs_exist_ok=True)))


def stored(pipe: forebay.Pipeline, path: str, column: str) -> list[float]:
    root = Path(pipe.runtime.pipeline.warehouse) / path
    found = [
        v for f in tables.open_table(str(root)).files()
        for v in pq.read_table(root / f.path, partitioning=None)[column].to_pylist()
    ]
    return sorted((micros(v) - boundary(0)) / SECOND for v in found)


def checked(pipe: forebay.Pipeline, name: str) -> dict[str, Any]:
    said = pipe.verify(name)["queries"][name]
    assert said["differences"] == [] and said["equal"] == said["boundaries"] > 0, said
    return said


@pytest.mark.long
def test_rows_and_results_leave_and_answers_stay_right(tmp_path: Path) -> None:
    forever = lived(tmp_path / "all", {
        "views": "lateness: 30 seconds",
        "buys": ""
    }, q=COUNT, joined=JOINED, pairs=PAIRS)
    pipe = lived(tmp_path / "kept", KEPT, q=COUNT, joined=JOINED, pairs=PAIRS)
    for name in ("q", "joined", "pairs"):
        mine, whole = answers(pipe, name), answers(forever, name)
        assert sorted(mine) == sorted(row for row in whole if row[0] >= mine[0][0]) and len(mine) < len(whole)
        assert 0 < checked(pipe, name)["left"] < checked(forever, name)["boundaries"]
        assert checked(pipe, name)["boundaries"] > 3
    assert 0 < stored(pipe, "streams/views", "ts")[0] <= 150 - 40 - 50 and 0 < stored(pipe, "streams/buys", "ts")[0]
    assert stored(forever, "streams/views", "ts")[0] == 0


def test_a_row_that_a_window_or_a_late_row_still_needs_stays(tmp_path: Path) -> None:
    pipe = lived(tmp_path, KEPT, q=COUNT, pairs=PAIRS)
    for late in (122, 135):
        rows(pipe, [late], "views", k=0, x=late)
    rows(pipe, [165], "views")
    rows(pipe, [165], "buys")
    assert ran(pipe)[-1] == 160
    checked(pipe, "pairs")
    checked(pipe, "q")


@pytest.mark.long
@pytest.mark.parametrize("plan", ["EAP1 running", "EAP1 retract"])
def test_what_kept_state_has_to_subtract_stays(plan: str, tmp_path: Path) -> None:
    """A query due each minute has its state as of the last minute."""
    sql = "SELECT COUNT(*) AS n, SUM(v.x) AS x FROM views AS v [WINDOW 40 SECONDS] EVERY 1 MINUTE"
    pipe = pipeline(tmp_path, KEPT)
    pipe.create("q", sql)
    pipe.change("q", "pin", plan)
    for start in range(0, 250, 10):
        rows(pipe, range(start, start + 10, 3), x=start)
        pipe.run()
    checked(pipe, "q")
    assert stored(pipe, "streams/views", "ts")[0] > 0


def test_a_query_created_later_answers_from_what_is_kept(tmp_path: Path, kept: Copied) -> None:
    pipe = kept(tmp_path)
    pipe.create("minute", COUNT.replace("20 SECONDS", "40 SECONDS"))
    rows(pipe, [161, 171])
    rows(pipe, [171], "buys")
    pipe.run()
    assert "left" not in checked(pipe, "minute")


def test_windows_longer_than_keep_are_refused(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, KEPT)
    for sql, said in ((LANDMARK, "UNTIL NOW"), (COUNT.replace("20 SECONDS", "41 SECONDS"), "longer")):
        with pytest.raises(ForebayError, match=said) as caught:
            pipe.create("q", sql)
        assert caught.value.code == "rows-leave" and caught.value.exit_code == 2
    assert pipe.queries() == []


def test_a_landmark_query_from_before_keeps_every_row(tmp_path: Path) -> None:
    pipe = lived(tmp_path, {"views": ""}, 100, total=LANDMARK)
    pipe = pipeline(tmp_path, {"views": "keep: 20 seconds"}, queries={"total": LANDMARK})
    rows(pipe, [101, 111])
    pipe.run()
    assert stored(pipe, "streams/views", "ts")[0] == 0
    checked(pipe, "total")
    assert answers(pipe, "total")[-1][0] == 110
    assert [f.name for f in told(pipe.runtime.pipeline) if not f.ok] == ["keep"]


def test_what_has_left_is_said_and_is_no_difference(tmp_path: Path, kept: Copied) -> None:
    pipe = kept(tmp_path)
    with pytest.raises(ForebayError, match="have left by `keep`") as caught:
        pipe.result("q", at=boundary(10))
    assert (caught.value.code, caught.value.exit_code) == ("unknown-boundary", 2)
    pipe.change("q", "delete")
    pipe.create("other", COUNT)
    for start in range(160, 240, 20):
        for name in KEPT:
            rows(pipe, [start, start + 5, start + 15], name)
        pipe.run()
    with pytest.raises(ForebayError, match="cannot be recomputed") as caught:
        pipe.verify("q")
    assert (caught.value.code, caught.value.exit_code) == ("rows-left", 2)
    assert any(f.name == "keep" and "since 2026-" in f.value for f in told(pipe.runtime.pipeline))


def test_refused_rows_leave_by_the_clock(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, KEPT, queries={"q": COUNT})
    now = boundary(1000)
    restarted(pipe, clock=lambda: now)
    rows(pipe, [5, 10**8])
    rows(pipe, [35])
    rows(pipe, [35], "buys")
    pipe.run()
    assert stored(pipe, "quarantine/views", "_at") == [1000]
    now = boundary(1041)
    rows(pipe, [45, 10**8])
    rows(pipe, [45], "buys")
    pipe.run()
    assert stored(pipe, "quarantine/views", "_at") == [1041]


@pytest.mark.long
@pytest.mark.parametrize("name", ["keep.before", "keep.after"])
def test_a_crash_while_rows_leave_changes_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = lived(tmp_path, KEPT, 60, q=COUNT, joined=JOINED)
    for nth in range(6):
        monkeypatch.setattr(failpoints, "_passes", type(failpoints._passes)())
        monkeypatch.setenv("FOREBAY_FAILPOINT", f"{name}:{nth % 3 + 1}:raise")
        for start in range(60 + 30 * nth, 90 + 30 * nth, 10):
            for stream in KEPT:
                rows(pipe, [start, start + 5], stream, k=start % 3, x=start)
            try:
                pipe.run()
            except Reached:
                pipe = opened(tmp_path)
    monkeypatch.delenv("FOREBAY_FAILPOINT")
    rows(pipe, [240])
    rows(pipe, [240], "buys")
    pipe = opened(tmp_path)
    pipe.run()
    assert checked(pipe, "q")["left"] and checked(pipe, "joined")["left"]
    assert stored(pipe, "streams/views", "ts")[0] >= 240 - 40 - 60


def test_a_file_that_straddles_is_cut_when_it_is_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "SMALL_FILES", 4)
    pipe = lived(tmp_path, {"views": "keep: 40 seconds, lateness: 30 seconds"}, 250, q=COUNT)
    assert 0 < stored(pipe, "streams/views", "ts")[0] and 10 < answers(pipe, "q")[0][0]
    checked(pipe, "q")


def test_files_leave_the_disk_later(tmp_path: Path, kept: Copied, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = kept(tmp_path)
    folder = Path(pipe.runtime.pipeline.warehouse) / "streams/views"
    (folder / "rows-of-another-machine.parquet").write_bytes(b"not yet committed")
    named = {f.path for f in tables.open_table(str(folder)).files()}
    there = {f.name for f in folder.glob("*.parquet")}
    assert there > named
    compact.sweep(pipe.runtime)
    assert {f.name for f in folder.glob("*.parquet")} == there
    monkeypatch.setattr(compact, "GRACE_HOURS", 0)
    compact.sweep(pipe.runtime)
    assert {f.name for f in folder.glob("*.parquet")} == named | {"rows-of-another-machine.parquet"}
    checked(pipe, "q")


def test_without_keep_nothing_leaves(tmp_path: Path) -> None:
    pipe = lived(tmp_path, {"views": "", "buys": "keep: 40 seconds"}, 160, q=COUNT, joined=JOINED)
    assert stored(pipe, "streams/views", "ts")[0] == 0 and retention.since(pipe.runtime, "streams/views") is None
    assert stored(pipe, "streams/buys", "ts")[0] > 0
    assert answers(pipe, "joined")[0][0] == 10, "results stay as long as the rows of the stream that keeps longest"
