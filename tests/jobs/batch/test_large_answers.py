"""Answers that tasks merge and write, forced for few groups: what users see is as if the driver had merged them."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import forebay
from jobs.batch import large
from jobs.batch.works import Context, parsed
from jobs.commands.rebuild import rebuild
from jobs.engine import spark
from jobs.engine.tasks import Tasks
from jobs.expectations import findings
from jobs.requests import requests
from jobs.storage import failpoints
from optimizer.errors import ForebayError
from tests.jobs.pipelines import answers, equal, opened, pipeline, ran, restarted, rows

pytestmark = pytest.mark.slow
SETTING = "FOREBAY_DRIVER_PARTIALS"
ALONE = "SELECT v.k, COUNT(*) AS n, SUM(v.x) AS s, AVG(v.x) AS a FROM views AS v [WINDOW 20 SECONDS] GROUP BY v.k"
JOINED = ("SELECT v.k, c.x, COUNT(*) AS n, SUM(v.x) AS s FROM views AS v [WINDOW 20 SECONDS], "
          "clicks AS c [WINDOW 30 SECONDS] WHERE v.k = c.k GROUP BY v.k, c.x HAVING COUNT(*) > 1")
OTHER = "SELECT v.x, MEDIAN(v.k) AS middle, COUNT(*) AS n FROM views AS v [WINDOW 20 SECONDS] GROUP BY v.x"
QUERIES = {"alone": ALONE, "joined": JOINED, "other": OTHER, "total": ALONE.replace("v.k, ", "")
           .removesuffix(" GROUP BY v.k")}


def life(folder: Path, plan: Callable[[str], str | None] = lambda name: None,
         engine: str | None = None) -> forebay.Pipeline:
    """Late rows, several boundaries in a batch, quiet ones among them."""
    pipe = pipeline(folder, {"views": "lateness: 1 hour", "clicks": "lateness: 1 hour"}, queries=QUERIES)
    restarted(pipe, engine=engine)
    pipe.synchronise()
    for name in QUERIES:
        if plan(name):
            pipe.change(name, "pin", plan(name))
    for upto in (25, 35, 95):
        for stream in ("views", "clicks"):
            rows(pipe, [upto - 20 + n / 4 for n in range(40)], stream, k=[n % 7 for n in range(40)],
                 x=[n % 3 - 1 for n in range(40)])
            rows(pipe, [upto], stream)
        assert ran(pipe)
    return pipe


def published(pipe: forebay.Pipeline) -> dict[str, list[tuple[Any, ...]]]:
    return {name: sorted(answers(pipe, name), key=repr) for name in QUERIES}


@pytest.mark.parametrize("plan", [None, "LAP recompute", "EAP1 running", "EAP1 expire", "EAP1 retract"])
def test_answers_are_those_of_the_drivers_merge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                plan: str | None) -> None:
    def of(name: str) -> str | None:
        joined = plan and plan.replace("EAP1", "EAP11")
        return {"alone": plan, "joined": joined}.get(name)

    merged = counted_merges(monkeypatch)
    here = published(life(tmp_path / "here", of))
    assert not merged
    monkeypatch.setenv(SETTING, "0")
    there = life(tmp_path / "there", of)
    assert {name for name, _ in merged} == {"alone", "joined", "other"}, "one row a boundary needs no second merge"
    assert published(there) == here and equal(there)
    assert os.listdir(tmp_path / "there" / "warehouse" / "handover") == []
    assert findings.entered(there.runtime) == []


def counted_merges(monkeypatch: pytest.MonkeyPatch) -> list[large.Number]:
    """What tasks have merged, as it is merged."""
    merged: list[large.Number] = []
    merge = large.merge

    def noted(order: large.ShareOrder) -> large.Merged:
        merged.append(order.how.of)
        return merge(order)

    monkeypatch.setattr(large, "merge", noted)
    return merged


def test_what_is_sampled_and_learnt_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def known(pipe: forebay.Pipeline) -> list[tuple[Any, ...]]:
        samples = [pipe.loop.statistics.samples(name, pipe_query(pipe, name)) for name in ("alone", "joined")]
        return [(s.at, s.groups, s.joined) for of_query in samples for s in of_query]

    here = known(life(tmp_path / "here"))
    monkeypatch.setenv(SETTING, "0")
    assert known(life(tmp_path / "there")) == here and any(groups for _, groups, _ in here)


def pipe_query(pipe: forebay.Pipeline, name: str) -> Any:
    return parsed(requests.show(pipe.runtime, name).sql, pipe.runtime.catalog)


@pytest.mark.parametrize("value", ["SUM(100 / v.x)", "100 / (COUNT(*) - 2)"])
def test_a_query_fails_at_the_boundary_at_which_a_row_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                           value: str) -> None:
    """In a task's own work and in the last statement."""
    def failed(folder: Path) -> tuple[Any, ...]:
        pipe = pipeline(folder, queries={"q": f"SELECT v.k, {value} AS y FROM views AS v [WINDOW 10 SECONDS] "
                                              "GROUP BY v.k", "sound": ALONE})
        for second, x in ((1, 5), (11, 5), (21, 0), (22, 0), (31, 5)):
            rows(pipe, [second], k=second % 4, x=x)
        rows(pipe, [23], k=1, x=0)
        ran(pipe, flush=True)
        shown = pipe.query("q")
        return shown["state"], shown["error"], answers(pipe, "q"), answers(pipe, "sound")

    here = failed(tmp_path / "here")
    monkeypatch.setenv(SETTING, "0")
    there = failed(tmp_path / "there")
    assert there == here and here[0] == "failed" and here[2] and here[3]


def test_queries_that_share_are_answered_alike_and_one_that_fails_runs_apart(tmp_path: Path,
                                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    def shared(folder: Path) -> forebay.Pipeline:
        sql = "SELECT v.k, COUNT(*) AS n, {value} AS y FROM views AS v [WINDOW 20 SECONDS] WHERE v.x > {x} GROUP BY v.k"
        queries = {f"q{x}": sql.format(x=x, value="SUM(v.x)") for x in range(4)}
        queries["fails"] = sql.format(x=1, value="100 / (COUNT(*) - 3)")
        pipe = restarted(pipeline(folder, queries=queries), share_from=2)
        for second in range(40):
            rows(pipe, [second], k=second % 4, x=second % 5)
        ran(pipe, flush=True)
        return pipe

    here = shared(tmp_path / "here")
    monkeypatch.setenv(SETTING, "0")
    merged = counted_merges(monkeypatch)
    there = shared(tmp_path / "there")
    assert merged and all(answers(there, f"q{x}") == answers(here, f"q{x}") for x in range(4))
    assert equal(there) and findings.entered(there.runtime) == []
    states = [{q["query"]: (q["state"], q.get("error")) for q in pipe.queries()} for pipe in (here, there)]
    assert states[0] == states[1] and states[0]["fails"][0] == "failed"


def test_a_repeated_batch_may_be_merged_in_another_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is published twice, whether the tables were committed before the crash or not."""
    expected = published(life(tmp_path / "expected"))
    for name in ("batch.after-tasks", "batch.after-state", "batch.after-table", "batch.after-results"):
        for first, second in (("0", "1g"), ("1g", "0")):
            folder = tmp_path / f"{name}-{first}"
            monkeypatch.setattr(failpoints, "_passes", type(failpoints._passes)())
            monkeypatch.setenv("FOREBAY_FAILPOINT", f"{name}:2:raise")
            monkeypatch.setenv(SETTING, first)
            with pytest.raises(failpoints.Reached):
                life(folder)
            monkeypatch.delenv("FOREBAY_FAILPOINT")
            monkeypatch.setenv(SETTING, second)
            again = opened(folder)
            ran(again)
            seen = published(again)
            for query, rows_ in seen.items():
                upto = max(row[0] for row in rows_)
                assert rows_ == [row for row in expected[query] if row[0] <= upto], (name, first, query)


@pytest.mark.parametrize("share_from", [None, 2])
def test_what_the_merge_loses_stops_the_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                              share_from: int | None) -> None:
    monkeypatch.setenv(SETTING, "0")
    pipe = pipeline(tmp_path, queries={"q": ALONE, "r": ALONE.replace("GROUP BY", "WHERE v.x > 0 GROUP BY")})
    restarted(pipe, share_from=share_from)
    rows(pipe, range(30), k=[n % 5 for n in range(30)], x=[n % 3 for n in range(30)])
    read = large.read

    def lossy(*given: Any) -> Any:
        return read(*given).slice(1)

    monkeypatch.setattr(large, "read", lossy)
    with pytest.raises(ForebayError) as stopped:
        ran(pipe)
    assert stopped.value.code == "expectation-failed" and "sums_conserved" in str(stopped.value)
    assert not (tmp_path / "warehouse" / "results" / "q" / "_delta_log").exists()
    monkeypatch.setattr(large, "read", read)
    assert ran(pipe) and equal(pipe)


def test_declared_expectations_are_judged_by_a_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "expectations").mkdir()
    (tmp_path / "expectations" / "q.yml").write_text(
        "query: q\nexpectations:\n"
        "  - {type: expect_column_max_to_be_between, column: n, max_value: 2, severity: critical}\n")
    pipe = pipeline(tmp_path, queries={"q": ALONE})
    rows(pipe, [1, 2, 3, 25])
    stops = []
    for most in ("1g", "0"):
        monkeypatch.setenv(SETTING, most)
        with pytest.raises(ForebayError) as stopped:
            ran(opened(tmp_path))
        stops.append(str(stopped.value))
    assert stops[0] == stops[1] and "observed: 3" in stops[0]


@pytest.mark.parametrize("share_from", [None, 2])
def test_answers_are_made_anew_where_they_were_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                    share_from: int | None) -> None:
    monkeypatch.setenv(SETTING, "0")
    pipe = restarted(pipeline(tmp_path, queries={"q": ALONE, "r": ALONE.replace("GROUP BY", "WHERE v.x > 0 GROUP BY")}),
                     share_from=share_from)
    rows(pipe, range(50), k=[n % 5 for n in range(50)], x=[n % 3 for n in range(50)])
    ran(pipe)
    expected = answers(pipe, "q")
    for file in (tmp_path / "warehouse" / "results").glob("*/b*.parquet"):
        file.unlink()
    again = opened(tmp_path)
    assert rebuild(again.runtime, "q").boundaries and rebuild(again.runtime, "r") is not None
    assert sorted(answers(opened(tmp_path), "q")) == sorted(expected) and equal(opened(tmp_path))


def test_the_drivers_share_is_divided_among_a_batchs_answers() -> None:
    def most(partials: str, answer_count: int) -> int:
        tasks = Tasks("inline", {"forebay.driver.partials": partials})
        context = Context("/shop", None, tasks, None, None)      # type: ignore[arg-type]
        return large.handover(context, answer_count).most

    assert most("64m", 2) == 32 << 20
    assert most("64m", 10**6) == 256 << 10
    assert most("0", 10**6) == 0


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_spark_sql_leaves_many_partials_in_files_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = published(life(tmp_path / "here"))
    merged = counted_merges(monkeypatch)
    with spark.kept():
        assert published(life(tmp_path / "few", engine="jvm")) == here and not merged
        monkeypatch.setenv(SETTING, "0")
        assert published(life(tmp_path / "many", engine="jvm")) == here
    assert {name for name, _ in merged} == {"alone", "joined", "other"}
    assert os.listdir(tmp_path / "many" / "warehouse" / "handover") == []


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_ten_million_groups_a_boundary_with_a_driver_of_one_gibibyte(tmp_path: Path,
                                                                     capsys: pytest.CaptureFixture[str]) -> None:
    """Of Spark's JVM on one machine, which also is where its tasks' rows would pass, and of Python."""
    groups = int(os.environ.get("FOREBAY_LARGE_GROUPS", 10**7))
    command = [sys.executable, "-m", "tests.large_answers", str(tmp_path / "pipe")]
    subprocess.run([*command, "rows", str(groups), "3"], check=True)
    result = subprocess.run([*command, "run", "-"], check=True, capture_output=True, text=True)
    measured = json.loads(result.stdout.splitlines()[-1])
    with capsys.disabled():
        print(f"{groups} groups a boundary: {measured}")
    assert measured["rows"] == [groups] * 3
    assert measured["driver"] < 1024 and measured["jvm"] < 1024
