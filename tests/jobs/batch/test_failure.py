"""What a failed query says: the expression, and the row or the group on which it fails."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs.storage import failpoints
from tests.jobs.pipelines import answers, boundary, equal, opened, pipeline, ran, rows

BAD = 7      # the value of x, at second 25, that brings every failure about
MESSAGES = {
    "SELECT v.k, SUM(10 / (v.x - 7)) AS s FROM views AS v [WINDOW 20 SECONDS] GROUP BY v.k":
        "fails on the row of views with ts = 2026-01-01T00:00:25Z, k = 3, x = 7 (division by zero)",
    "SELECT v.k, COUNT(*) AS n FROM views AS v [WINDOW 20 SECONDS] WHERE v.x * 1317624576693539402 > 0 GROUP BY v.k":
        "(v.x * 1317624576693539402) > 0) fails on the row of views with ts = 2026-01-01T00:00:25Z, k = 3, x = 7 "
        "(Out of Range Error: Overflow in multiplication of INT64 (7 * 1317624576693539402)!)",
    "SELECT v.k, 10 / (MAX(v.x) - 7) AS ratio FROM views AS v [WINDOW 20 SECONDS] GROUP BY v.k":
        "fails for the group with v.k = 3 (division by zero)",
    "SELECT v.k, SUM(v.x * 1317624576693539401) AS s FROM views AS v [WINDOW 30 SECONDS] GROUP BY v.k":
        "SUM((v.x * 1317624576693539401)) fails for the group with v.k = 3",
    "SELECT COUNT(*) AS n FROM views AS v [WINDOW 20 SECONDS] HAVING 1 / (MAX(v.x) - 7) < 5":
        "fails (division by zero)",
    "SELECT v.k, 10 / (v.x - 7) AS ratio FROM views AS v [WINDOW 20 SECONDS]":
        "fails on the row of views with ts = 2026-01-01T00:00:25Z, k = 3, x = 7 (division by zero)",
    "SELECT v.k, SUM(10 / (v.x - w.x - 6)) AS s FROM views AS v [WINDOW 20 SECONDS], views AS w [WINDOW 20 SECONDS] "
    "WHERE v.k = w.k GROUP BY v.k": "fails on a joined row",
}


def failing(folder: Path, sql: str, **more: Any) -> Any:
    pipe = pipeline(folder, queries={"bad": sql, "good": "SELECT COUNT(*) AS n FROM views AS v [WINDOW 20 SECONDS]"},
                    **more)
    rows(pipe, [1, 12, 25, 26, 38, 41], k=[1, 2, 3, 3, 4, 1], x=[1, 1, BAD, 1, 1, 1])
    return pipe


@pytest.mark.slow
@pytest.mark.parametrize("sql", MESSAGES)
def test_the_message_names_the_expression_and_the_row_or_the_group(tmp_path: Path, sql: str) -> None:
    pipe = failing(tmp_path, sql)
    report = pipe.run()
    (failure,) = report["failed"]
    assert (failure["query"], failure["boundary"]) == ("bad", boundary(30))
    for part in MESSAGES[sql].split(" … "):
        assert part in failure["message"], failure["message"]
    assert report["ran"][2]["failed"] == {"bad": failure["message"]}
    assert pipe.query("bad")["error"] == failure["message"]
    assert [t for t, _ in answers(pipe, "good")] == [10, 20, 30, 40]
    assert pipe.run()["failed"] == []


@pytest.mark.slow
def test_a_query_that_shares_says_the_same(tmp_path: Path) -> None:
    sql = "SELECT v.k, SUM(10 / (v.x - 7)) AS s FROM views AS v [WINDOW 20 SECONDS] GROUP BY v.k"
    pipe = failing(tmp_path / "alone", sql)
    alone = pipe.run()["failed"][0]["message"]
    shared = failing(tmp_path / "shared", sql)
    for k in range(3):
        shared.create(f"other{k}", f"SELECT v.k, SUM(v.x + {k}) AS s FROM views AS v [WINDOW 20 SECONDS] GROUP BY v.k")
    assert [failure["message"] for failure in shared.run()["failed"]] == [alone] and equal(shared)


@pytest.mark.slow
def test_values_of_sensitive_columns_are_not_shown(tmp_path: Path) -> None:
    columns = "{ts: timestamp, k: {type: bigint, sensitive: true}, x: {type: bigint, sensitive: true}}"
    pipe = failing(tmp_path / "row", next(iter(MESSAGES)), columns=columns)
    (failure,) = pipe.run()["failed"]
    assert failure["message"].endswith("with ts = 2026-01-01T00:00:25Z, k = ***, x = ***")
    pipe = failing(tmp_path / "group", "SELECT v.k, 10 / (MAX(v.x) - 7) AS ratio FROM views AS v [WINDOW 20 SECONDS] "
                                       "GROUP BY v.k", columns=columns)
    assert "fails for a group" in pipe.run()["failed"][0]["message"]


@pytest.mark.slow
def test_a_mended_query_answers_again(tmp_path: Path) -> None:
    pipe = failing(tmp_path, next(iter(MESSAGES)))
    pipe.run()
    pipe.change("bad", "resume")      # in force from 50 on: the row at 25 has left its window by then
    rows(pipe, [55, 71])
    assert ran(pipe) == [50, 60, 70] and pipe.query("bad")["state"] == "active"
    assert sorted({t for t, *_ in answers(pipe, "bad")}) == [10, 20, 50, 60, 70]


@pytest.mark.slow
def test_a_crash_after_it_failed_tells_it_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = failing(tmp_path, next(iter(MESSAGES)))
    monkeypatch.setenv("FOREBAY_FAILPOINT", "batch.before-commit:1:raise")
    with pytest.raises(failpoints.Reached):
        pipe.run()
    monkeypatch.delenv("FOREBAY_FAILPOINT")
    again = opened(tmp_path)
    (failure,) = again.run()["failed"]
    assert "k = 3, x = 7" in failure["message"] and again.query("bad")["state"] == "failed"
