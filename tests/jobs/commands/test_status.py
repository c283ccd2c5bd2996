"""`status` as a pipeline lives: it says what holds it up, what is public, what was refused, and changes nothing."""
from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import forebay
from jobs.requests import requests
from jobs.storage import failpoints
from jobs.storage.lock import held
from optimizer.errors import ForebayError
from tests.jobs.pipelines import COUNT, SECOND, answers, boundary, opened, pipeline, ran, restarted, rows

pytestmark = pytest.mark.slow

BY_KEY = "SELECT v.k, COUNT(*) AS n FROM views AS v [WINDOW 20 SECONDS] WHERE v.x < {n} GROUP BY v.k"
DIVIDES = "SELECT SUM(10 % v.x) AS n FROM views AS v [WINDOW 10 SECONDS]"
NO_ROWS = "expectations:\n- {type: expect_table_row_count_to_be_between, max_value: 0, severity: critical}\n"
READS_PAGES = "SELECT COUNT(*) AS n FROM views AS v [WINDOW 20 SECONDS], pages AS p WHERE v.k = p.k"
PAGES = "relations: {pages: {columns: {k: bigint}, source: {files: pages.csv}}}\n"


def said(folder: Path) -> dict[str, Any]:
    """As another process would say it."""
    return opened(folder).status()


def state(folder: Path) -> str:
    return str(said(folder)["state"])


def expected(pipe: forebay.Pipeline, subject: str) -> None:
    folder = Path(pipe.runtime.pipeline.folder) / "expectations"
    folder.mkdir()
    (folder / "mine.yml").write_text(f"{subject}\n{NO_ROWS}")


def broken_off(pipe: forebay.Pipeline, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends at a failpoint."""
    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "_passes", Counter())
        patch.setenv("FOREBAY_FAILPOINT", f"{point}:1:raise")
        with pytest.raises(failpoints.Reached):
            pipe.run()


def test_it_waits_for_rows_and_then_can_run(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, {"views": "", "unread": ""}, queries={"q": COUNT})
    empty = said(tmp_path)
    assert empty["state"] == "waiting" and "no row yet" in empty["because"] and empty["next"] is None
    rows(pipe, [1, 25])
    assert "takes in those of queries/" in said(tmp_path)["because"]
    pipe.synchronise()
    complete = said(tmp_path)
    assert (complete["state"], complete["next"], complete["waiting_for"]) == ("running", boundary(10), [])
    assert complete["queries"]["q"]["boundary"] is None and complete["queries"]["q"]["plan"] is None
    ran(pipe)
    waiting = said(tmp_path)
    assert (waiting["state"], waiting["next"], waiting["waiting_for"]) == ("waiting", boundary(30), ["views"])
    assert "newer rows of views" in waiting["because"]
    assert waiting["streams"]["views"]["last_row"] == boundary(25)
    assert waiting["streams"]["views"]["lag_s"] == 10**9 - 25      # behind the clock of these tests
    assert waiting["streams"]["unread"]["last_row"] is None
    pipe.change("q", "delete")
    assert said(tmp_path)["queries"] == {} and "no query in force" in said(tmp_path)["because"]


def test_it_tells_each_querys_last_answer(tmp_path: Path) -> None:
    queries = {**{f"q{n}": BY_KEY.format(n=n) for n in range(1, 5)}, "alone": COUNT, "ends": COUNT,
               "seldom": f"{COUNT} EVERY 30 SECONDS"}
    pipe = pipeline(tmp_path, queries=queries)
    rows(pipe, [1, 12, 24, 24.5, 36], k=[1, 2, 1, 2, 2], x=[0, 1, 2, 3, 3])
    assert ran(pipe, to=boundary(20)) == [10, 20]
    pipe.change("ends", "pause")
    pipe.change("alone", "pin", "LAP recompute")
    assert ran(pipe) == [30]
    told = said(tmp_path)["queries"]
    for name in queries:
        frame = opened(tmp_path).result(name)
        assert told[name]["boundary"] == boundary(20 if name == "ends" else 30)
        assert (told[name]["rows"], told[name]["address"]) == (len(frame), f"results/{name}")
        assert told[name]["plan"] == pipe.plans(name)["decisions"][-1]["plan"]
        assert (told[name]["problem"], told[name]["unpublished"]) == (None, 0)
    assert (told["ends"]["state"], told["alone"]["pinned"]) == ("paused", "LAP recompute")
    assert told["q1"]["rows"] == 0      # also an answer without rows is one


def test_a_new_history_has_no_answer_at_first(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [1, 25])
    ran(pipe)
    pipe.create("q", "SELECT COUNT(*) * 0.5D AS n FROM views AS v [WINDOW 20 SECONDS]", replace=True, new_history=True)
    assert said(tmp_path)["queries"]["q"]["boundary"] == boundary(20)      # in force from 30 on
    rows(pipe, [36])
    ran(pipe)
    assert said(tmp_path)["queries"]["q"]["boundary"] == boundary(30)


def test_a_boundary_that_is_stopped_until_it_is_released(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    expected(pipe, "stream: views")
    rows(pipe, [1, 11, 25])
    with pytest.raises(ForebayError):
        pipe.run()
    stopped = said(tmp_path)
    assert (stopped["state"], stopped["next"]) == ("stopped", boundary(10))
    assert "stream views expects expect_table_row_count" in stopped["because"]
    assert f"forebay --pipeline {tmp_path} release 2026-01-01T00:00:10Z" in stopped["because"]
    pipe.release(boundary(10), "a sale")
    assert state(tmp_path) == "running"
    with pytest.raises(ForebayError):
        pipe.run()
    assert (state(tmp_path), said(tmp_path)["queries"]["q"]["boundary"]) == ("stopped", boundary(10))


def test_an_answer_that_is_stopped_names_its_query(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT, "other": BY_KEY.format(n=5)})
    expected(pipe, "query: q")
    rows(pipe, [1, 25])
    with pytest.raises(ForebayError):
        pipe.run()
    stopped = said(tmp_path)
    assert stopped["state"] == "stopped" and stopped["next"] == boundary(10)
    assert stopped["queries"]["q"]["problem"].startswith("stopped at 2026-01-01T00:00:10Z: expects")
    assert stopped["queries"]["other"]["problem"] is None
    pipe.change("q", "pause")      # after the boundary that has begun, which it therefore goes on to stop
    assert state(tmp_path) == "stopped"
    with pytest.raises(ForebayError):
        pipe.run()


def test_a_stream_that_nobody_reads_any_more_stops_nobody(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, {"views": "", "clicks": ""}, queries={
        "q": COUNT, "other": "SELECT COUNT(*) AS n FROM clicks AS c [WINDOW 20 SECONDS]"})
    expected(pipe, "stream: views")
    rows(pipe, [1, 25])
    rows(pipe, [1, 25], "clicks")
    with pytest.raises(ForebayError):
        pipe.run()
    assert state(tmp_path) == "stopped"
    pipe.change("q", "pause")
    assert state(tmp_path) == "running" and ran(pipe) == [10, 20]


def test_a_failed_query_until_it_is_ended(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"bad": DIVIDES, "good": COUNT})
    rows(pipe, [1, 11, 25], x=[3, 0, 4])
    ran(pipe)
    failed = said(tmp_path)
    assert failed["state"] == "failed" and "query bad failed at 2026-01-01T00:00:20Z" in failed["because"]
    assert failed["queries"]["bad"]["state"] == "failed" and failed["queries"]["good"]["problem"] is None
    assert failed["queries"]["bad"]["problem"].startswith("failed at 2026-01-01T00:00:20Z: ")
    assert [failed["queries"][name]["boundary"] for name in ("bad", "good")] == [boundary(10), boundary(20)]
    assert failed["next"] == boundary(30) and failed["waiting_for"] == ["views"]
    pipe.change("bad", "delete")
    assert state(tmp_path) == "waiting"


def test_a_relation_without_a_version_is_waited_for(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": READS_PAGES, "other": COUNT}, top=PAGES)
    rows(pipe, [5, 15])
    ran(pipe)
    waiting = said(tmp_path)
    assert (waiting["state"], waiting["waiting_for"], waiting["without_version"]) == ("waiting", ["pages"], ["pages"])
    assert "a first version of pages" in waiting["because"]
    assert "a first version of pages" in waiting["queries"]["q"]["problem"]
    assert waiting["queries"]["other"]["problem"] is None
    (tmp_path / "pages.csv").write_text("k\n1\n")
    pipe.ingest()
    assert state(tmp_path) == "running"


@pytest.mark.parametrize("point", ["batch.after-commit", "address.after-results", "address.after-latest"])
def test_what_is_committed_and_not_public_is_its_lag(tmp_path: Path, point: str,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    queries = {**{f"q{n}": BY_KEY.format(n=n) for n in range(1, 5)}, "alone": COUNT}
    pipe = pipeline(tmp_path, queries={**queries, "seldom": f"{COUNT} EVERY 30 SECONDS"})
    rows(pipe, [1, 15], k=[1, 2], x=[0, 1])
    ran(pipe)
    rows(pipe, [26, 37], k=[1, 2], x=[0, 1])
    broken_off(pipe, point, monkeypatch)
    behind = said(tmp_path)
    assert (behind["committed"], behind["published"]) == (boundary(30), boundary(10))
    assert behind["queries"]["q1"]["unpublished"] == behind["queries"]["alone"]["unpublished"] == 2
    assert behind["queries"]["seldom"]["unpublished"] == 1 and behind["queries"]["seldom"]["boundary"] is None
    assert behind["queries"]["q1"]["boundary"] == boundary(10)
    ran(opened(tmp_path))
    after = said(tmp_path)
    assert (after["committed"], after["published"]) == (boundary(30), boundary(30))
    assert {query["unpublished"] for query in after["queries"].values()} == {0}
    assert {query["boundary"] for query in after["queries"].values()} == {boundary(30)}


def test_a_first_run_that_published_nothing_lags_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [1, 25])
    broken_off(pipe, "batch.after-commit", monkeypatch)
    behind = said(tmp_path)
    assert (behind["published"], behind["committed"]) == (None, boundary(20))
    assert behind["queries"]["q"]["unpublished"] == 2 and behind["queries"]["q"]["boundary"] is None


@pytest.mark.parametrize("point", ["batch.after-mark", "batch.after-intent", "batch.before-commit"])
def test_a_batch_that_was_broken_off_is_next(tmp_path: Path, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [1, 25])
    ran(pipe, batches=1)
    broken_off(pipe, point, monkeypatch)
    broken = said(tmp_path)
    assert (broken["state"], broken["next"], broken["committed"]) == ("running", boundary(20), boundary(10))
    assert ("did not end" in broken["because"]) == (point != "batch.after-mark")
    assert broken["queries"]["q"]["unpublished"] == 0
    ran(opened(tmp_path))
    assert answers(opened(tmp_path), "q") == [(10, 1), (20, 1)] and state(tmp_path) == "waiting"


def test_late_and_refused_rows_are_counted_with_their_reasons(tmp_path: Path,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = pipeline(tmp_path, {"views": "lateness: 15 seconds, ahead: 1 minute", "clicks": ""}, queries={"q": COUNT})
    restarted(pipe, clock=lambda: boundary(100))
    rows(pipe, [5, 30])
    ran(pipe)
    rows(pipe, [15, 14.9, 14.8, 16, 41, 400])
    monkeypatch.setattr("jobs.commands.status.MOST_REASONS", 1)
    views = said(tmp_path)["streams"]["views"]
    assert (views["late"], views["quarantined"], views["reasons"]) == (2, 3, {"too late": 2})
    monkeypatch.setattr("jobs.commands.status.MOST_REASONS", 2)
    views = said(tmp_path)["streams"]["views"]
    assert list(views["reasons"].items()) == [("too late", 2), ("event time ahead of the clock", 1)]
    assert views["last_row"] == boundary(41)
    clicks = said(tmp_path)["streams"]["clicks"]
    assert (clicks["late"], clicks["quarantined"], clicks["reasons"]) == (0, 0, {})


def test_a_runner_at_work_is_named_and_not_waited_for(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [1, 25])
    ran(pipe)
    with held(pipe.runtime.pipeline.warehouse):
        told = said(tmp_path)
    assert told["state"] == "running" and told["runner"] in told["because"] and "process" in told["runner"]
    assert state(tmp_path) == "waiting" and said(tmp_path)["runner"] is None


def test_it_says_how_old_decisions_are(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT}, top="decide: task\n")
    rows(pipe, [1, 25])
    decided = pipe.run()["decided"]
    assert said(tmp_path)["decided"] == decided and decided["at"] is None
    pipe.adapt()
    assert said(tmp_path)["decided"] == {**pipe.run()["decided"]} and said(tmp_path)["decided"]["at"] is not None


def test_it_changes_nothing(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [1, 25])
    ran(pipe)
    (tmp_path / "queries" / "new.sql").write_text(COUNT)
    before = [(str(log.parent), DeltaTable(str(log.parent)).version())
              for log in sorted((tmp_path / "warehouse").rglob("_delta_log"))]
    said(tmp_path)
    after = [(str(log.parent), DeltaTable(str(log.parent)).version())
             for log in sorted((tmp_path / "warehouse").rglob("_delta_log"))]
    assert after == before and "new" not in {query.name for query in requests.listed(opened(tmp_path).runtime)}


def test_instants_are_microseconds_of_event_time(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [1.000001, 25.5])
    ran(pipe)
    assert said(tmp_path)["streams"]["views"]["last_row"] == boundary(0) + 25_500_000 and boundary(1) % SECOND == 0
