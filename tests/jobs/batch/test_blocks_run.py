"""Queries of several SELECTs in a pipeline: answers worked out by hand, at boundary after boundary, by every plan that
the grouped join below has; failures named, answers printed in the text's order.
"""
from __future__ import annotations

from pathlib import Path

import pytest

from jobs.requests import requests
from tests.jobs.pipelines import boundary, pipeline, rows

TOP = """SELECT k, n FROM (SELECT k, COUNT(*) AS n FROM views [WINDOW 20 SECONDS] GROUP BY k) AS t
ORDER BY n DESC LIMIT 2"""
WITHOUT = """SELECT v.k, COUNT(*) AS n FROM views AS v [WINDOW 20 SECONDS]
WHERE NOT EXISTS (SELECT 1 FROM buys AS b [WINDOW 20 SECONDS] WHERE b.k = v.k) GROUP BY v.k"""
OUTER = """SELECT v.k, COUNT(*) AS n, SUM(b.x) AS spent FROM views AS v [WINDOW 20 SECONDS]
LEFT JOIN buys AS b [WINDOW 20 SECONDS] ON b.k = v.k GROUP BY v.k"""
PLANS = ["LAP recompute", "EAP1 recompute", "EAP1 running", "LAP retract", "EAP1 expire"]


def answers(pipe: object, name: str) -> dict[int, list[tuple[object, ...]]]:
    """By seconds after the beginning, in the order in which the answer is printed."""
    found: dict[int, list[tuple[object, ...]]] = {}
    for row in pipe.table(name, every=True).to_pylist():      # type: ignore[attr-defined]
        seconds = round((row.pop("boundary").timestamp() * 10**6 - boundary(0)) / 10**6)
        found.setdefault(seconds, []).append(tuple(row.values()))
    return found


WITH = """SELECT v.k, COUNT(*) AS n, SUM(v.x) AS s FROM views AS v [WINDOW 20 SECONDS]
WHERE EXISTS (SELECT 1 FROM buys AS b [WINDOW 10 SECONDS] WHERE b.k = v.k) GROUP BY v.k"""


@pytest.mark.parametrize("plan", ["LAP recompute", "EAP01 recompute", "EAP10 recompute", "EAP11 recompute",
                                  "EAP01 running", "EAP10 running", "EAP11 running"])
def test_a_row_with_several_partners_counts_once(tmp_path: Path, plan: str) -> None:
    pipe = pipeline(tmp_path, {"views": "", "buys": ""})
    requests.create(pipe.runtime, "with_buys", WITH)
    requests.change(pipe.runtime, "with_buys", "pin", plan)
    rows(pipe, [1, 2, 3], k=[1, 1, 2], x=[1, 2, 4])
    rows(pipe, [4, 5, 6], stream="buys", k=1)
    pipe.run(flush=True)
    rows(pipe, [12, 25, 33], k=[1, 2, 2], x=[8, 16, 32])
    rows(pipe, [13, 31], stream="buys", k=[2, 2])
    pipe.run(flush=True)
    assert answers(pipe, "with_buys") == {10: [(1, 2, 3)], 20: [(2, 1, 4)], 40: [(2, 2, 48)]}


@pytest.mark.parametrize("plan", PLANS)
def test_what_stands_above_a_grouped_join_leaves_it_all_its_plans(tmp_path: Path, plan: str) -> None:
    pipe = pipeline(tmp_path)
    requests.create(pipe.runtime, "top", TOP)
    requests.change(pipe.runtime, "top", "pin", plan)
    rows(pipe, [1, 2, 3, 4, 5], k=[1, 1, 1, 2, 3])
    pipe.run(flush=True)
    rows(pipe, [11, 12, 25, 35], k=[2, 2, 4, 5])
    ran = pipe.run(flush=True)["ran"]
    # Ties by all columns: of 2 and 3 with one row each the smaller key; printed by falling count.
    assert answers(pipe, "top") == {10: [(1, 3), (2, 1)], 20: [(1, 3), (2, 3)], 30: [(2, 2), (4, 1)],
                                    40: [(4, 1), (5, 1)]}
    assert {entry["plans"]["top"] for entry in ran} == {plan}


def test_a_match_that_comes_or_leaves_changes_who_has_none(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, {"views": "", "buys": ""}, queries={"without": WITHOUT, "outer_join": OUTER})
    rows(pipe, [1, 2, 3, 15], k=[1, 1, 2, 1])
    rows(pipe, [4], stream="buys", k=1, x=7)
    pipe.run(flush=True)
    rows(pipe, [21, 31], k=[1, 2])
    rows(pipe, [32, 39], stream="buys", k=[2, 2], x=[1, 2])
    pipe.run(flush=True)
    assert answers(pipe, "without") == {10: [(2, 1)], 20: [(2, 1)], 30: [(1, 2)], 40: [(1, 1)]}
    assert answers(pipe, "outer_join") == {10: [(1, 2, 14), (2, 1, None)], 20: [(1, 3, 21), (2, 1, None)],
                                           30: [(1, 2, None)], 40: [(1, 1, None), (2, 2, 3)]}


def test_a_session_is_published_when_it_has_ended(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"visits": """SELECT k, COUNT(*) AS n, SUM(x) AS s FROM views [WINDOW SESSION
        12 SECONDS BY k] GROUP BY k"""})
    rows(pipe, [1, 5, 17, 4, 30, 45], k=[1, 1, 1, 2, 1, 3], x=[1, 2, 4, 8, 16, 32])
    pipe.run(flush=True)
    # 1: from 1 to 17 (a pause of exactly 12 seconds is within it), ended at 29, and at 30; 2: 4, ended at 16.
    assert answers(pipe, "visits") == {20: [(2, 1, 8)], 30: [(1, 3, 7)], 50: [(1, 1, 16)]}
    rows(pipe, [70], k=9)
    pipe.run(flush=True)
    assert answers(pipe, "visits")[60] == [(3, 1, 32)]


def test_sessions_of_rows_that_have_a_partner(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, {"views": "", "buys": ""}, queries={"visits": """SELECT k, COUNT(*) AS n FROM views
        [WINDOW SESSION 12 SECONDS BY k] WHERE k IN (SELECT k FROM buys [WINDOW UNTIL NOW]) GROUP BY k
        HAVING COUNT(*) < (SELECT COUNT(*) FROM buys [WINDOW UNTIL NOW])"""})
    rows(pipe, [1, 2, 25], k=[1, 2, 9])
    rows(pipe, [3, 4, 25], stream="buys", k=[1, 1, 5])
    pipe.run(flush=True)
    assert answers(pipe, "visits") == {20: [(1, 1)]}


def test_sessions_end_while_nothing_comes(tmp_path: Path) -> None:
    """Ten boundaries are one batch, and no row comes, enters or leaves between the first and the last."""
    pipe = pipeline(tmp_path, queries={"visits": """SELECT k, COUNT(*) AS n FROM views [WINDOW SESSION 12 SECONDS BY k]
        GROUP BY k""", "longest": """SELECT MAX(n) AS m FROM (SELECT k, COUNT(*) AS n FROM views [WINDOW SESSION
        40 SECONDS BY k] GROUP BY k) AS s"""})
    rows(pipe, [1, 95], k=[1, 2])
    pipe.run(flush=True)
    assert answers(pipe, "visits") == {20: [(1, 1)]}
    assert answers(pipe, "longest") == {t: [(1 if t == 50 else None,)] for t in range(10, 101, 10)}


@pytest.mark.parametrize("text", [
    "SELECT k, 10 / n AS q FROM (SELECT k, SUM(x) AS n FROM views [WINDOW 20 SECONDS] GROUP BY k) AS t",
    "SELECT v.k, MAX(10 / v.x) AS q FROM views v [WINDOW 20 SECONDS] LEFT JOIN buys b [WINDOW 20 SECONDS] ON v.k = b.k "
    "GROUP BY v.k",
    "SELECT k FROM views [WINDOW 20 SECONDS] GROUP BY k EXCEPT SELECT k FROM buys [WINDOW 20 SECONDS] WHERE 1 / x > 0 "
    "GROUP BY k",
])
def test_a_value_that_cannot_be_computed_fails_the_query_from_there_on(tmp_path: Path, text: str) -> None:
    pipe = pipeline(tmp_path, {"views": "", "buys": ""}, queries={"asked": text})
    rows(pipe, [1], k=1, x=5)
    rows(pipe, [2], stream="buys", k=1, x=1)
    assert not pipe.run(flush=True)["failed"]
    rows(pipe, [31], k=1, x=0)
    rows(pipe, [32], stream="buys", k=2, x=0)
    failure, = pipe.run(flush=True)["failed"]
    assert failure["boundary"] == boundary(40) and "fails on a row that the answer needs" in failure["message"]
    assert "10" in failure["message"] or "b" in failure["message"]
