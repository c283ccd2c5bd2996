"""Joins that repeat rows: told where they do, with how often, beside plain SQL; never where they do not."""
from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import duckdb
import pytest

import forebay
from jobs.batch.works import parsed
from jobs.results import repeats
from tests import seeds
from tests.jobs.pipelines import pipeline, rows

pytestmark = pytest.mark.slow
JOIN = "FROM views AS v [WINDOW 1 HOUR], buys AS b [WINDOW 30 MINUTES] WHERE v.k = b.k"
NAMES = "relations:\n  names: {columns: {k: bigint, name: string}, source: {files: \"names.csv\"}}\n"
SILENT = [
    "SELECT b.k, MAX(b.x) AS x, MIN(v.x) AS y, COUNT(DISTINCT b.x) AS z, COUNT(*) AS n",
    "SELECT COUNT(*) AS n, SUM(v.x * b.x) AS x, COUNT(*) FILTER (WHERE b.x > 1) AS m",
]


def two(folder: Path, **more: Any) -> forebay.Pipeline:
    return pipeline(folder, {"views": "", "buys": ""}, batch="10 minutes", **more)


def told(pipe: forebay.Pipeline, sql: str) -> list[tuple[str, tuple[str, ...], float | None]]:
    query = parsed(sql, pipe.runtime.catalog)
    return [(one.source, one.aggregates, one.times) for one in repeats.repeated(pipe.loop.statistics, query)]


def test_a_purchase_is_counted_once_a_view(tmp_path: Path) -> None:
    """Three views and two of them by the buyer of two purchases, one purchase of somebody who looked at nothing."""
    pipe = two(tmp_path)
    rows(pipe, [10, 20, 30], k=[1, 1, 2])
    rows(pipe, [40, 50, 60], "buys", k=[1, 1, 3], x=[5, 7, 9])
    assert told(pipe, f"SELECT SUM(b.x) AS x, AVG(b.x) AS y {JOIN}") == [("buys", ("SUM(b.x)", "AVG(b.x)"), 2.0)]
    assert told(pipe, f"SELECT SUM(b.x) AS x, COUNT(v.x) AS y {JOIN}") == [
        ("views", ("COUNT(v.x)",), 2.0), ("buys", ("SUM(b.x)",), 2.0)]
    document = pipe.create("spent", f"SELECT v.k, SUM(b.x) AS spent {JOIN} GROUP BY v.k")
    message = document["repeats"][0]["message"]
    assert "SUM(b.x): each row of buys that the join finds is counted 2 times on average within a group" in message
    assert "WHERE EXISTS" in message and "2026-01-01T00:10:00Z" in message
    assert pipe.explain("spent")["repeats"] == document["repeats"]


def test_a_group_that_tells_the_others_apart_counts_once(tmp_path: Path) -> None:
    """A purchase in the sum of each page that its buyer saw is in each of them once."""
    pipe = two(tmp_path)
    rows(pipe, [10, 20, 30], k=1, x=[1, 2, 3])
    rows(pipe, [40, 50], "buys", k=1)
    assert told(pipe, f"SELECT v.x, SUM(b.x) AS s {JOIN} GROUP BY v.x") == []
    assert told(pipe, f"SELECT v.k, SUM(b.x) AS s {JOIN} GROUP BY v.k") == [("buys", ("SUM(b.x)",), 3.0)]


@pytest.mark.parametrize("select", SILENT)
def test_what_a_repeated_row_does_not_change_is_not_told(tmp_path: Path, select: str) -> None:
    pipe = two(tmp_path)
    rows(pipe, [10, 20], k=1)
    rows(pipe, [40, 50], "buys", k=1)
    grouped = " GROUP BY b.k" if "b.k," in select else ""
    assert told(pipe, f"{select} {JOIN}{grouped}") == []


def test_a_key_that_is_unique_on_the_other_side_repeats_nothing(tmp_path: Path) -> None:
    (tmp_path / "names.csv").write_text("k,name\n1,one\n2,two\n")
    pipe = two(tmp_path, top=NAMES)
    rows(pipe, [10, 20, 30], k=[1, 1, 2])
    rows(pipe, [40, 50], "buys", k=[1, 2])
    sql = "SELECT n.name, SUM(v.x) AS x FROM views AS v [WINDOW 1 HOUR], names AS n WHERE v.k = n.k GROUP BY n.name"
    assert told(pipe, sql) == []
    assert told(pipe, f"SELECT SUM(v.x) AS x {JOIN}") == []      # one purchase for each buyer in the window


def test_without_rows_it_is_not_known_and_said_so(tmp_path: Path) -> None:
    pipe = two(tmp_path)
    assert "not known yet" in pipe.create("spent", f"SELECT SUM(b.x) AS s {JOIN}")["repeats"][0]["message"]
    rows(pipe, [10], k=1)
    rows(pipe, [20], "buys", k=2)
    assert told(pipe, f"SELECT SUM(b.x) AS s {JOIN}") == [("buys", ("SUM(b.x)",), None)]      # nothing joins


def test_windows_too_large_for_a_look_are_told_by_what_was_measured(tmp_path: Path,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    sql = f"SELECT v.k, SUM(b.x) AS s {JOIN} GROUP BY v.k"
    pipe = two(tmp_path, queries={"spent": sql})
    rows(pipe, list(range(0, 590, 2)), k=[n % 5 for n in range(295)])
    rows(pipe, list(range(0, 600, 10)), "buys", k=[n % 5 for n in range(60)])
    pipe.run(flush=True)
    monkeypatch.setattr(repeats, "MOST_ROWS", 100)
    one, = pipe.explain("spent")["repeats"]
    assert one["at"] is None and one["times"] == pytest.approx(360, rel=0.1) and "at least" in one["message"]


def test_random_windows_beside_plain_sql(tmp_path: Path) -> None:
    draw = random.Random(seeds.seed())
    for life in range(6):
        pipe = two(tmp_path / str(life))
        keys = {name: [draw.randrange(draw.choice((3, 20))) for _ in range(draw.randrange(1, 60))]
                for name in ("views", "buys")}
        for name, drawn in keys.items():
            rows(pipe, [draw.randrange(599) for _ in drawn], name, k=drawn, x=[draw.randrange(9) for _ in drawn])
        expected = duckdb.execute("""SELECT sum(n), count(*) FROM (SELECT count(*) AS n FROM
            (SELECT unnest(?) AS k, unnest(range(len(?))) AS b), (SELECT unnest(?) AS vk) WHERE vk = k GROUP BY b)""",
                                  [keys["buys"], keys["buys"], keys["views"]]).fetchall()[0]
        times = expected[0] / expected[1] if expected[1] else None
        answer = told(pipe, f"SELECT SUM(b.x) AS s {JOIN}")
        assert answer == ([] if times == 1 else [("buys", ("SUM(b.x)",), times)])


def test_files_of_queries_are_told_too(tmp_path: Path) -> None:
    """By check and plan before they are in force, and when a run takes them in."""
    pipe = two(tmp_path, queries={"spent": f"SELECT SUM(b.x) AS s {JOIN}"})
    rows(pipe, [10, 20], k=1)
    rows(pipe, [40, 50], "buys", k=1)
    assert any("query spent: SUM(b.x): each row of buys" in note for note in pipe.check()["notes"])
    change, = pipe.plan()["changes"]
    assert [one["times"] for one in change["repeats"]] == [2.0]
    message, = pipe.synchronise()
    assert "queries/spent.sql: SUM(b.x): each row of buys" in message and pipe.synchronise() == []


@pytest.mark.parametrize("semi", [
    "FROM buys AS b [WINDOW 30 MINUTES] WHERE EXISTS (SELECT 1 FROM views AS v [WINDOW 1 HOUR] WHERE v.k = b.k)",
    "FROM buys AS b [WINDOW 30 MINUTES] LEFT SEMI JOIN views AS v [WINDOW 1 HOUR] ON v.k = b.k"])
def test_the_way_out_is_one(tmp_path: Path, semi: str) -> None:
    """Each purchase of somebody who looked counts once, and nothing is told of it."""
    pipe = two(tmp_path, queries={"joined": f"SELECT SUM(b.x) AS x {JOIN}", "once": f"SELECT SUM(b.x) AS x {semi}"})
    rows(pipe, [10, 20, 30], k=[1, 1, 2])
    rows(pipe, [40, 50, 60], "buys", k=[1, 1, 3], x=[5, 7, 9])
    assert told(pipe, f"SELECT SUM(b.x) AS x {semi}") == []
    pipe.run(flush=True)
    assert (pipe.result("joined")["x"][0], pipe.result("once")["x"][0]) == (24, 12)
