"""One address for each query: all that was ever published of it, and the last answer beside it, whoever shares with
whom, however often it is replaced, whatever dies on the way.
"""
from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import forebay
from jobs.addresses import addresses
from jobs.commands import scheduled
from jobs.engine import spark
from jobs.maintenance import compact
from jobs.storage import failpoints
from optimizer.errors import ForebayError
from optimizer.time import iso, micros
from tests.jobs.pipelines import (
    COUNT,
    SECOND,
    answers,
    boundary,
    cheap_sharing,
    equal,
    opened,
    pipeline,
    ran,
    rows,
)

pytestmark = pytest.mark.slow

BY_KEY = "SELECT v.k, COUNT(*) AS n FROM views AS v [WINDOW 20 SECONDS] WHERE v.x < {n} GROUP BY v.k"
TOTAL = "SELECT COUNT(*) AS n, SUM(v.x) AS x FROM views AS v [WINDOW 20 SECONDS]"
FLOATS = "SELECT COUNT(*) * 0.5D AS n FROM views AS v [WINDOW 20 SECONDS]"
POINTS = ("batch.after-commit", "address.before", "address.after-table", "address.after-results",
          "address.after-latest", "address.after-boundaries")


def table(folder: Path, path: str, version: int | None = None) -> list[tuple[Any, ...]]:
    """The rows that any reader of Delta finds, in order."""
    there = pa.table(DeltaTable(str(folder / "warehouse" / path), version=version).to_pyarrow_table())
    return sorted((tuple(row.values()) for row in there.to_pylist()), key=repr)


def published(folder: Path, query: str) -> dict[float, tuple[int, int]]:
    """By boundary in seconds: revision, and how many rows, as `ledger/boundaries` says."""
    there = DeltaTable(str(folder / "warehouse/ledger/boundaries")).to_pyarrow_table().to_pylist()
    mine = [row for row in there if row["query"] == query]
    assert len({row["boundary"] for row in mine}) == len(mine), "each once"
    return {seconds(row["boundary"]): (row["revision"], row["rows"]) for row in mine}


def seconds(stamp: Any) -> float:
    return (micros(stamp) - boundary(0)) / SECOND


def sharing_four(folder: Path, **more: str) -> forebay.Pipeline:
    return pipeline(folder, queries={**{f"q{n}": BY_KEY.format(n=n) for n in range(1, 5)}, **more})


def test_queries_that_share_have_their_own_tables(tmp_path: Path) -> None:
    pipe = sharing_four(tmp_path)
    rows(pipe, [1, 12, 24, 36], k=[1, 2, 1, 2], x=[0, 1, 2, 3])
    assert ran(pipe) == [10, 20, 30] and equal(pipe)
    assert len(pipe.runtime.ledger.last().batch.query_groups) == 1      # type: ignore[union-attr]
    for n in range(1, 5):
        address = str(pipe.queries()[n - 1]["table"])
        assert address == f"results/q{n}"
        assert [(seconds(t), *values) for t, *values in table(tmp_path, address)] == answers(pipe, f"q{n}")
    assert published(tmp_path, "q1") == {10: (1, 1), 20: (1, 1), 30: (1, 0)}      # also a boundary without rows
    assert not list((tmp_path / "warehouse/shared").rglob("*.parquet"))           # what is public is there once


def test_the_last_answer_has_a_table_of_its_own(tmp_path: Path) -> None:
    pipe = sharing_four(tmp_path, alone=TOTAL)
    rows(pipe, [1, 12, 24], k=[1, 2, 1], x=[0, 1, 2])
    ran(pipe)
    for name in ("q4", "alone"):
        last = [answer for answer in answers(pipe, name) if answer[0] == 20]
        assert [(seconds(t), *values) for t, *values in table(tmp_path, f"latest/{name}")] == last
    pipe.change("q4", "pause")
    rows(pipe, [36, 47], k=5)
    assert ran(pipe) == [30, 40]
    assert {seconds(t) for t, *_ in table(tmp_path, "latest/q4")} == {20}      # as it was
    assert {seconds(t) for t, *_ in table(tmp_path, "latest/alone")} == {40}


def test_a_failed_query_keeps_its_last_answer(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": "SELECT SUM(10 % v.x) AS n FROM views AS v [WINDOW 10 SECONDS]"})
    rows(pipe, [1, 11, 25], x=[3, 4, 0])
    rows(pipe, [35])
    ran(pipe)
    assert [(seconds(t), n) for t, n in table(tmp_path, "latest/q")] == [(20, 2)]
    assert set(published(tmp_path, "q")) == {10, 20}


def test_a_replacement_adds_drops_and_widens_columns(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": "SELECT CAST(COUNT(*) AS INT) AS n, MAX(v.x) AS m "
                                            "FROM views AS v [WINDOW 10 SECONDS]"})
    rows(pipe, [1, 11, 25])
    ran(pipe)
    pipe.create("q", "SELECT COUNT(*) AS n, MIN(v.x) AS least FROM views AS v [WINDOW 10 SECONDS]", replace=True)
    rows(pipe, [36])
    ran(pipe)
    there = DeltaTable(str(tmp_path / "warehouse/results/q")).to_pyarrow_table()
    assert there.schema.names == ["boundary", "n", "m", "least"] and there.schema.field("n").type == pa.int64()
    assert [(seconds(row["boundary"]), row["n"], row["m"], row["least"])
            for row in sorted(there.to_pylist(), key=lambda row: row["boundary"])] == [
                (10, 1, 1, None), (20, 1, 1, None), (30, 1, None, 1)]
    latest = DeltaTable(str(tmp_path / "warehouse/latest/q")).to_pyarrow_table()
    assert latest.schema.names == ["boundary", "n", "least"]
    assert answers(pipe, "q") == [(10, 1, None), (20, 1, None), (30, 1, 1)] and equal(pipe)


def test_another_type_needs_a_new_history(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [1, 11, 25])
    ran(pipe)
    with pytest.raises(ForebayError) as caught:
        pipe.create("q", FLOATS, replace=True)
    assert caught.value.code == "columns-changed" and "n bigint becomes n double" in caught.value.message
    created = pipe.create("q", FLOATS, replace=True, new_history=True)
    assert created["before"] == "results/q.before-20260101T000030Z"
    rows(pipe, [36, 47])
    assert ran(pipe) == [30, 40]
    assert [(seconds(t), n) for t, n in table(tmp_path, "results/q")] == [(30, 1.0), (40, 1.0)] == answers(pipe, "q")
    assert [(seconds(t), n) for t, n in table(tmp_path, str(created["before"]))] == [(10, 1), (20, 2)]
    assert equal(pipe) and set(published(tmp_path, "q")) == {10, 20, 30, 40}
    before = DeltaTable(str(tmp_path / "warehouse/results/q"), version=1)      # and time travel still reaches them
    assert before.to_pyarrow_table().num_rows == 2


def test_a_new_history_of_what_never_answered_keeps_nothing(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    pipe.synchronise()
    pipe.create("q", FLOATS, replace=True, new_history=True)
    rows(pipe, [1, 11, 25])
    ran(pipe)
    assert [n for _, n in answers(pipe, "q")] == [0.5, 1.0]
    assert not list((tmp_path / "warehouse/results").glob("*before*"))


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("number", [1, 3])
def test_a_crash_loses_and_doubles_nothing(tmp_path: Path, point: str, number: int,
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = sharing_four(tmp_path, alone=TOTAL)
    rows(pipe, [1, 12, 24], k=[1, 2, 1], x=[0, 1, 2])
    ran(pipe)
    rows(pipe, [36, 47], k=[1, 2], x=[0, 1])
    monkeypatch.setattr(failpoints, "_passes", Counter())
    monkeypatch.setenv("FOREBAY_FAILPOINT", f"{point}:{number if point.endswith('-table') else 1}:raise")
    with pytest.raises(failpoints.Reached):
        pipe.run()
    monkeypatch.delenv("FOREBAY_FAILPOINT")
    again = opened(tmp_path)
    rows(again, [58], k=3)
    again.run()
    for name in ("q1", "q4", "alone"):
        assert set(published(tmp_path, name)) == {10, 20, 30, 40, 50}
        assert [(seconds(t), *values) for t, *values in table(tmp_path, f"results/{name}")] == answers(again, name)
    assert equal(again)


def test_rows_too_many_for_the_driver_are_copied_by_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREBAY_DRIVER_PARTIALS", "0")
    pipe = sharing_four(tmp_path, alone=TOTAL)
    rows(pipe, [1, 12, 24, 36], k=[1, 2, 1, 2], x=[0, 1, 2, 3])
    ran(pipe)
    assert equal(pipe)
    for name in ("q4", "alone"):
        assert [(seconds(t), *values) for t, *values in table(tmp_path, f"results/{name}")] == answers(pipe, name)
        assert {seconds(t) for t, *_ in table(tmp_path, f"latest/{name}")} == {30}


def test_what_is_committed_and_not_public_is_brought_by_the_next_run(tmp_path: Path,
                                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = sharing_four(tmp_path)
    rows(pipe, [1, 12, 24], k=[1, 2, 1], x=[0, 1, 2])
    monkeypatch.setenv("FOREBAY_FAILPOINT", "batch.after-commit:1:raise")
    monkeypatch.setattr(failpoints, "_passes", Counter())
    with pytest.raises(failpoints.Reached):
        pipe.run()
    monkeypatch.delenv("FOREBAY_FAILPOINT")
    with pytest.raises(ForebayError) as caught:
        opened(tmp_path).result("q1")
    assert caught.value.code == "not-published"
    again = opened(tmp_path)
    assert ran(again) == [] and [t for t, *_ in answers(again, "q2")] == [10, 20, 20] and equal(again)


def changed(pipe: forebay.Pipeline, choice: Random) -> None:
    """A request to one of the queries: another text with other columns, a pause, the plan, a new history."""
    name, kind = f"q{choice.randrange(1, 5)}", choice.randrange(5)
    state = next(query["state"] for query in pipe.queries() if query["query"] == name)
    try:
        if kind < 2 or state != "active":
            text = choice.choice([BY_KEY.format(n=choice.randrange(1, 5)), TOTAL, COUNT])
            pipe.create(name, text, replace=True)
        elif kind == 2:
            pipe.change(name, "pause")
        elif kind == 3:
            pipe.change(name, "pin", "LAP recompute")
        else:
            pipe.create(name, choice.choice([FLOATS, COUNT]), replace=True, new_history=True)
    except ForebayError as error:
        assert error.code in ("columns-changed", "wrong-state"), error


def lived(folder: Path, monkeypatch: pytest.MonkeyPatch, boundaries: int, seed: int) -> None:
    """So many boundaries with replacements, merged files and crashes."""
    choice = Random(seed)
    monkeypatch.setattr(compact, "SMALL_FILES", 6), cheap_sharing(monkeypatch)
    monkeypatch.setattr(addresses, "TIDIED_EVERY", 3)
    pipe = sharing_four(folder)
    while boundaries > 0:
        count = choice.choice([1, 1, 2, 5])
        first = int((pipe.runtime.ledger.committed() or boundary(0)) - boundary(0)) // SECOND
        rows(pipe, [first + 10 * k + 5 for k in range(count + 2)], k=choice.randrange(3), x=choice.randrange(4))
        if choice.random() < 0.4:
            changed(pipe, choice)
        monkeypatch.setattr(failpoints, "_passes", Counter())
        if choice.random() < 0.3:
            point = choice.choice([*POINTS, "address.set-aside", "batch.after-results", "compact.before"])
            monkeypatch.setenv("FOREBAY_FAILPOINT", f"{point}:{choice.randrange(1, 4)}:raise")
        try:
            boundaries -= len(pipe.run()["ran"])
        except failpoints.Reached:
            pipe = opened(folder)
        monkeypatch.delenv("FOREBAY_FAILPOINT", raising=False)
    pipe.run()
    assert equal(pipe)


def values(row: dict[str, Any]) -> tuple[Any, ...]:
    """A column that comes later is NULL in the rows before."""
    return tuple(sorted((name, value) for name, value in row.items() if value is not None and name[0] != "_"))


def followed(folder: Path, path: str) -> None:
    """Each version of a table is what its feed of changes makes of the one before."""
    place = str(folder / "warehouse" / path)
    kept: Counter[tuple[Any, ...]] = Counter()
    last = DeltaTable(place).version()
    for version in range(1, last + 1):
        then = DeltaTable(place, version=version)
        for change in pa.RecordBatchReader.from_stream(then.load_cdf(version, version)).read_all().to_pylist():
            kept[values(change)] += {"insert": 1, "delete": -1}[change["_change_type"]]
        assert +kept == Counter(map(values, then.to_pyarrow_table().to_pylist())), (path, version)
        assert not -kept and max(kept.values(), default=0) <= 1, "no row twice, none leaves that did not come"
    assert last > 0


@pytest.mark.parametrize("boundaries", [40, pytest.param(200, marks=pytest.mark.long)])
def test_the_feed_of_changes_makes_every_version(tmp_path: Path, boundaries: int,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    lived(tmp_path, monkeypatch, boundaries, seed=7)
    for n in range(1, 5):
        for path in (f"results/q{n}", f"latest/q{n}"):
            followed(tmp_path, path)


@pytest.mark.spark
def test_spark_follows_the_feed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "SMALL_FILES", 3)
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    for step in range(8):
        rows(pipe, [10 * step + 5, 10 * step + 16], x=step)
        if step == 4:
            pipe.create("q", TOTAL, replace=True)
        ran(pipe)
    session = spark.session("local[2]")
    for path in ("results/q", "latest/q"):
        place = str(tmp_path / "warehouse" / path)
        feed = session.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1).load(place)
        changes, kept = [row.asDict() for row in feed.collect()], Counter[tuple[Any, ...]]()
        for version in range(1, DeltaTable(place).version() + 1):
            for change in (change for change in changes if change["_commit_version"] == version):
                kept[values(change)] += {"insert": 1, "delete": -1}[change["_change_type"]]
            then = session.read.format("delta").option("versionAsOf", version).load(place)
            assert +kept == Counter(values(row.asDict()) for row in then.collect()), (path, version)


def test_every_asset_event_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = sharing_four(tmp_path, hourly=f"{COUNT} EVERY 20 SECONDS")
    after = ""
    for step in range(4):
        rows(pipe, [10 * step + 5, 10 * step + 16], k=step)
        if step == 2:
            pipe.create("q1", TOTAL, replace=True)
        ran(pipe)
        publication = scheduled.published(str(tmp_path), after)
        after = publication["boundary"]
        assert publication["queries"].keys() >= {"q1", "q2", "q3", "q4"}
        for name, event in publication["queries"].items():
            there = DeltaTable(event["uri"], version=event["version"]).to_pyarrow_table()
            told = [row for row in there.to_pylist() if iso(micros(row["boundary"])) == event["boundary"]]
            assert len(told) == len(pipe.result(name, at=event["boundary"]))
            assert all(iso(micros(row["boundary"])) <= event["boundary"] for row in there.to_pylist())
    assert scheduled.published(str(tmp_path), after) == {}


def test_a_replacement_that_is_due_later_leaves_the_last_answer_its_columns(tmp_path: Path,
                                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    """The old text's answer and the boundary from which the new one is in force become public together."""
    pipe = pipeline(tmp_path, queries={"q": COUNT + " EVERY 20 SECONDS", "own": COUNT})
    rows(pipe, [1, 12, 24])
    monkeypatch.setattr(failpoints, "_passes", Counter())
    monkeypatch.setenv("FOREBAY_FAILPOINT", "batch.after-intent:1:raise")
    with pytest.raises(failpoints.Reached):
        pipe.run()
    monkeypatch.delenv("FOREBAY_FAILPOINT")
    again = opened(tmp_path)
    assert again.create("q", TOTAL + " EVERY 20 SECONDS", replace=True)["effective"] == boundary(30)
    rows(again, [36])
    assert ran(again) == [10, 20, 30] and table(tmp_path, "latest/q") == [(table(tmp_path, "results/q")[0])]
    rows(again, [45])
    assert ran(again) == [40] and equal(again) and len(table(tmp_path, "latest/q")[0]) == 3
