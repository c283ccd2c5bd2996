"""Expectations in a pipeline's life: rows that fail are set aside, batches stop before anything is published and pass
when released, warnings are kept.
"""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import forebay
from jobs.expectations import findings as expect_ledger
from jobs.expectations import releases
from jobs.ingest import row_rules as expect_rows
from jobs.ingest.land import LandOrder
from jobs.storage import tables
from optimizer.errors import ForebayError
from tests.jobs.pipelines import COUNT, answers, boundary, equal, opened, pipeline, ran, restarted, rows

pytestmark = pytest.mark.slow

SUMS = "SELECT v.k, COUNT(*) AS n, SUM(v.x) AS s FROM views AS v [WINDOW 20 SECONDS] GROUP BY v.k"
EACH = "SELECT v.k, v.x FROM views AS v [WINDOW 20 SECONDS]"
BETWEEN = "type: expect_column_values_to_be_between"


def declared(pipe: forebay.Pipeline, subject: str, *expectations: str, name: str = "mine") -> None:
    folder = Path(pipe.runtime.pipeline.folder) / "expectations"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.yml").write_text(f"{subject}\nexpectations:\n" + "".join(f"- {{{e}}}\n" for e in expectations))


def stopped(pipe: forebay.Pipeline, **options: Any) -> ForebayError:
    with pytest.raises(ForebayError) as raised:
        pipe.run(**options)
    assert (raised.value.code, raised.value.exit_code) == ("expectation-failed", 1)
    return raised.value


def kept(pipe: forebay.Pipeline) -> list[tuple[Any, ...]]:
    """Not by time: the clock of these tests stands still."""
    found = sorted(expect_ledger.entered(pipe.runtime), key=lambda row: (row["boundary"], row["released"]))
    return [((row["boundary"] - boundary(0)) / 1e6, row["subject"], row["expectation"].split("(")[0], row["severity"],
             row["observed"], row["released"]) for row in found]


def commits(pipe: forebay.Pipeline) -> int:
    path = pipe.runtime.path("ledger/expectations")
    return tables.open_table(path).version if tables.exists(path) else 0


def test_rows_that_fail_are_set_aside_and_the_counts_add_up(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, {"views": "lateness: 1 hour"}, queries={"q": SUMS, "each": EACH})
    declared(pipe, "stream: views", f"{BETWEEN}, column: x, min_value: 0, severity: row",
             f"{BETWEEN}, column: k, max_value: 5, severity: row")
    assert rows(pipe, (1, 2), x=3)["streams"]["views"] == {"files": 1, "rows": 2, "quarantined": 0, "late": 0}
    assert rows(pipe, (3, 4, 5), x=-1)["streams"]["views"] == {"files": 1, "rows": 0, "quarantined": 3, "late": 0}
    assert rows(pipe, (6, 25), k=9, x=-1)["streams"]["views"]["quarantined"] == 2
    rows(pipe, (25,))
    assert ran(pipe) == [10, 20]
    rows(pipe, (7,), k=6)
    table = tables.open_table(pipe.runtime.path("quarantine/views")).rows()
    reasons = [r.split("(")[1] for r in table["_reason"].to_pylist()]
    assert sorted(reasons) == ["k, max_value: 5)", *["x, min_value: 0)"] * 5]
    assert answers(pipe, "q") == [(10, 1, 2, 6), (20, 1, 2, 6)] and equal(pipe)


def test_a_null_passes_unless_it_is_forbidden(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path)
    declared(pipe, "stream: views", f"{BETWEEN}, column: x, min_value: 0, severity: row")
    (tmp_path / "in.json").write_text('{"ts": "2026-01-01T00:00:01Z", "k": 1}\n')
    assert pipe.ingest("views", str(tmp_path / "in.json"))["streams"]["views"]["rows"] == 1
    declared(pipe, "stream: views", "type: expect_column_values_to_not_be_null, column: x, severity: row")
    (tmp_path / "more.json").write_text('{"ts": "2026-01-01T00:00:02Z", "k": 1}\n')
    assert pipe.ingest("views", str(tmp_path / "more.json"))["streams"]["views"]["quarantined"] == 1


def test_types_null_times_and_the_domain_are_held_by_ingest(tmp_path: Path) -> None:
    """The derived expectations of a row, each failing once beside a row that passes."""
    pipe = pipeline(tmp_path)
    given = ('{"ts": "2026-01-01T00:00:01Z", "k": 1}', '{"ts": "2026-01-01T00:00:01Z", "k": "one"}', '{"k": 1}',
             '{"ts": "1969-12-31T23:59:59Z"}', '{"ts": "2999-01-01T00:00:00Z"}')
    (tmp_path / "in.json").write_text("\n".join(given))
    assert pipe.ingest("views", str(tmp_path / "in.json"))["streams"]["views"] == {
        "files": 1,
        "rows": 1,
        "quarantined": 4,
        "late": 0
    }
    assert sorted(tables.open_table(pipe.runtime.path("quarantine/views")).rows()["_reason"].to_pylist()) == [
        "bad type: column k", "event time ahead of the clock", "event time before 1970", "event time is NULL"]


@pytest.mark.parametrize("file", ["stream: nobody", "stream: views\nexpectations:\n- {type: expect_x}"])
def test_a_wrong_file_changes_nothing(tmp_path: Path, file: str) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, (1, 11))
    (tmp_path / "expectations").mkdir()
    (tmp_path / "expectations" / "x.yml").write_text(file)
    for act in (lambda: rows(pipe, (2,)), lambda: pipe.run()):
        with pytest.raises(ForebayError) as raised:
            act()
        assert raised.value.exit_code == 2 and "expectations/x.yml" in str(raised.value)
    assert pipe.runtime.ledger.begun() is None and pipe.stats()["streams"]["views"]["rows"] == 2
    assert pipe.change("q", "pause")["state"] == "paused" if pipe.synchronise() == [] else False


def test_an_unknown_query_or_column_is_refused_before_anything_begins(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, (1, 11))
    for subject, expectation, code in (("query: p", f"{BETWEEN}, column: n, min_value: 0", "unknown-query"),
                                       ("query: q", f"{BETWEEN}, column: m, min_value: 0", "unknown-column")):
        declared(pipe, subject, expectation)
        with pytest.raises(ForebayError) as raised:
            pipe.run()
        assert (raised.value.code,
                raised.value.exit_code) == (code, 2) and raised.value.line and pipe.runtime.ledger.begun() is None


def test_waiting_input_that_fails_stops_its_boundary_and_those_before_it_run(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    declared(pipe, "stream: views", f"{BETWEEN}, column: x, max_value: 5, severity: critical",
             "type: expect_table_row_count_to_be_between, max_value: 9")
    rows(pipe, (1, 2, 11))
    rows(pipe, (25,), x=7)
    rows(pipe, (45,))
    error = stopped(pipe)
    for said in ("2026-01-01T00:00:30Z", "stream views expects", "max_value: 5", "observed: 1 of 1 rows fail",
                 'release 2026-01-01T00:00:30Z --reason'):
        assert said in str(error)
    assert answers(pipe, "q") == [(10, 2), (20, 3)]
    assert pipe.runtime.ledger.last().phase == "commit" and pipe.runtime.ledger.begun() == boundary(20)
    stopped(pipe)
    assert kept(pipe) == [(30, "stream views", "expect_column_values_to_be_between", "critical", "1 of 1 rows fail",
                           False)]
    assert pipe.change("q", "pin", "LAP recompute")["effective"] == boundary(30)      # requests do not wait
    said = pipe.release(boundary(30), "known")
    assert said["reason"] == "known" and said["by"] and [r["subject"] for r in said["released"]] == ["stream views"]
    assert ran(pipe) == [30, 40] and equal(pipe)
    assert [row[-1] for row in kept(pipe)] == [False, True]
    (one,) = releases.entries(pipe.runtime)
    assert (one["boundary"], one["reason"], one["by"]) == (boundary(30), "known", said["by"])


def test_a_boundary_whose_input_has_not_begun_heals_when_rows_come(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    declared(pipe, "stream: views", "type: expect_table_row_count_to_be_between, min_value: 2, severity: critical")
    rows(pipe, (1, 11))
    assert "observed: 1" in str(stopped(pipe))
    rows(pipe, (2, 12, 21))
    assert ran(pipe) == [10, 20] and answers(pipe, "q") == [(10, 2), (20, 4)] and equal(pipe)


@pytest.mark.parametrize(("sql", "expectation"), [
    (SUMS, f"{BETWEEN}, column: s, max_value: 9, severity: critical"),
    (SUMS, "type: expect_column_sum_to_be_between, column: s, max_value: 9, severity: critical"),
    (EACH, f"{BETWEEN}, column: x, max_value: 9, severity: critical"),
    (EACH, "type: expect_table_row_count_to_be_between, max_value: 1, severity: critical")])
def test_an_answer_that_fails_is_not_published_until_it_is_released(tmp_path: Path, sql: str, expectation: str) -> None:
    pipe = pipeline(tmp_path, queries={"q": sql, "other": COUNT})
    declared(pipe, "query: q", expectation)
    rows(pipe, (1, 11))
    assert ran(pipe) == [10]
    rows(pipe, (12, 13, 25), x=5 if "row_count" in expectation else 10)
    first = stopped(pipe)
    assert "2026-01-01T00:00:20Z" in str(first) and "query q expects" in str(first)
    pipe = opened(tmp_path)
    assert str(stopped(pipe)) == str(first)
    assert [t for t, *_ in answers(pipe, "other")] == [10] and {t for t, *_ in answers(pipe, "q")} == {10}
    assert pipe.change("q", "pause")["effective"] == boundary(30) and pipe.change("q", "resume")["state"] == "active"
    assert pipe.ingest("views", [])["streams"]["views"]["rows"] == 0
    pipe.release(boundary(20), "seen")
    with pytest.raises(ForebayError, match="released already"):
        pipe.release(boundary(20), "again")
    assert ran(opened(tmp_path)) == [20] and equal(
        opened(tmp_path)) and opened(tmp_path).query("q")["state"] == "active"
    assert [(t, severity, released) for t, _, _, severity, _, released in kept(pipe)] == [(20, "critical", False),
                                                                                          (20, "critical", True)]


def test_a_range_of_boundaries_is_released_before_the_run_comes_there(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": SUMS})
    declared(pipe, "stream: views", "type: expect_table_row_count_to_be_between, min_value: 2, severity: critical",
             f"{BETWEEN}, column: x, max_value: 9, severity: critical")
    rows(pipe, (1, 11, 21, 31, 41, 51), x=[1, 1, 1, 10, 1, 1])
    stopped(pipe)
    with pytest.raises(ForebayError, match="are 20,001 boundaries"):
        pipe.release(boundary(10), "all", until=boundary(200_010))
    with pytest.raises(ForebayError, match="stops nothing here") as refused:
        pipe.release(boundary(10), "all", expectation="expect_table_row_count_to_be_betwen")
    assert "did you mean expect_table_row_count_to_be_between" in str(refused.value)
    document = pipe.release(boundary(10), "few rows at night", until=boundary(40),
                            expectation="expect_table_row_count_to_be_between")
    assert (document["until"], len(document["released"])) == (boundary(40), 1)
    error = stopped(pipe)
    assert "2026-01-01T00:00:40Z" in str(error) and "column: x" in str(error).replace("(x,", "column: x")
    assert "published before it in this run: 3 boundaries, 2026-01-01T00:00:10Z to 2026-01-01T00:00:30Z" in str(error)
    pipe.release(boundary(40), "a sale", until=boundary(40))
    assert "2026-01-01T00:00:50Z" in str(stopped(pipe)) and equal(opened(tmp_path))
    assert {t for t, *_ in answers(pipe, "q")} == {10, 20, 30, 40}


def test_one_of_two_expectations_is_released(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": SUMS})
    declared(pipe, "stream: views", "type: expect_table_row_count_to_be_between, min_value: 2, severity: critical",
             f"{BETWEEN}, column: x, max_value: 9, severity: critical")
    rows(pipe, (1, 11), x=10)
    stopped(pipe)
    pipe.release(boundary(10), "few", expectation="expect_table_row_count_to_be_between")
    assert "row_count" not in str(stopped(pipe))
    pipe.release(boundary(10), "large")
    assert ran(pipe) == [10]


def test_an_answer_that_fails_later_in_a_batch_lets_those_before_it_be_published(tmp_path: Path) -> None:
    """One batch of six boundaries: stopped at the third, each warning of the input is entered once."""
    pipe = pipeline(tmp_path, queries={"q": SUMS, "other": COUNT})
    declared(pipe, "query: q", f"{BETWEEN}, column: s, max_value: 9, severity: critical")
    declared(pipe, "stream: views", f"{BETWEEN}, column: x, max_value: 0", name="input")
    rows(pipe, (1, 11, 41, 51, 61))
    rows(pipe, (25,), x=10)
    assert "2026-01-01T00:00:30Z" in str(stopped(pipe))
    assert [t for t, *_ in answers(pipe, "q")] == [10, 20] and [t for t, *_ in answers(pipe, "other")] == [10, 20]
    pipe = opened(tmp_path)
    stopped(pipe)
    assert [row[0] for row in kept(pipe)] == [10, 20, 30, 40]      # both stops are there to be released
    pipe.release(boundary(30), "seen")
    assert "2026-01-01T00:00:40Z" in str(stopped(pipe))
    pipe.release(boundary(40), "seen")
    assert ran(opened(tmp_path)) == [40, 50, 60] and equal(opened(tmp_path))
    last = pipe.runtime.ledger.last()
    assert last is not None and last.batch.number == 2 and [t for t, *_ in answers(pipe, "other")] == [
        10, 20, 30, 40, 50, 60]
    assert len(kept(pipe)) == len(set(kept(pipe)))


def test_a_release_lets_pass_what_was_seen_and_nothing_else(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    declared(pipe, "stream: views", f"{BETWEEN}, column: x, max_value: 5, severity: critical", name="input")
    declared(pipe, "query: q", f"{BETWEEN}, column: n, max_value: 0, severity: critical", name="answers")
    for at, code in ((boundary(10), "nothing-stopped"), (boundary(15), "nothing-stopped")):
        with pytest.raises(ForebayError) as raised:
            pipe.release(at, "x")
        assert raised.value.code == code
    rows(pipe, (1, 11), x=6)
    assert "stream views" in str(stopped(pipe, batches=1))
    pipe.release(boundary(10), "input is known")
    assert "query q" in str(stopped(pipe, batches=1))
    pipe.release(boundary(10), "answer, too")
    assert ran(pipe) == [10] and answers(pipe, "q") == [(10, 1)]
    with pytest.raises(ForebayError, match="nothing is stopped"):
        pipe.release(boundary(10), "after")
    with pytest.raises(ForebayError, match="a reason has"):
        pipe.release(boundary(20), " ")


def test_warnings_are_kept_in_one_commit_a_batch_and_sound_batches_write_none(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    declared(pipe, "stream: views", f"{BETWEEN}, column: x, max_value: 5",
             "type: expect_column_max_to_be_between, column: x, max_value: 5", name="input")
    declared(pipe, "query: q", f"{BETWEEN}, column: n, max_value: 1", name="answers")
    rows(pipe, (1, 11))
    assert ran(pipe) == [10] and not tables.exists(pipe.runtime.path("ledger/expectations"))
    rows(pipe, (12, 21), x=6)
    (entry,) = pipe.run()["ran"]
    assert entry["boundary"] == boundary(20) and len(entry["unexpected"]) == 3 and commits(pipe) == 1
    assert entry["unexpected"][
        1] == "stream views expects expect_column_max_to_be_between(x, max_value: 5), observed: 6"
    assert kept(pipe) == [(20, "stream views", "expect_column_values_to_be_between", "warning", "1 of 2 rows fail",
                           False), (20, "stream views", "expect_column_max_to_be_between", "warning", "6", False),
                          (20, "query q", "expect_column_values_to_be_between", "warning", "1 of 1 rows fail", False)]


def test_a_sensitive_extreme_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "forebay.yml").write_text(
        "name: t\nbatch: 10 seconds\nspark: {master: inline}\nstreams:\n"
        "  views: {columns: {ts: timestamp, x: {type: bigint, sensitive: true}}, event_time: ts}\n")
    pipe = opened(tmp_path)
    pipe.create("q", "SELECT MAX(v.x) AS top, COUNT(*) AS n FROM views AS v [WINDOW 20 SECONDS]")
    declared(pipe, "stream: views", "type: expect_column_max_to_be_between, column: x, max_value: 5", name="a")
    declared(pipe, "query: q", "type: expect_column_max_to_be_between, column: top, max_value: 5", name="b")
    (tmp_path
     / "in.json").write_text('{"ts": "2026-01-01T00:00:01Z", "x": 777}\n{"ts": "2026-01-01T00:00:11Z", "x": 1}\n')
    pipe.ingest("views", str(tmp_path / "in.json"))
    assert ran(pipe) == [10] and [row[4] for row in kept(pipe)] == ["***", "***"]


def test_unusual_volumes_and_silence_are_warnings(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, {
        "views": "",
        "clicks": "idle: 2 minutes"
    }, queries={
        "q": COUNT,
        "c": COUNT.replace("views", "clicks")
    })
    rows(pipe, (1,), stream="clicks")
    restarted(pipe, clock=lambda: boundary(10**9) + 10**9)
    for k in range(10):
        rows(pipe, [k * 10 + n / 20 for n in range(150 if k != 9 else 10)])
    rows(pipe, (101,))
    assert ran(pipe)[-1] == 100
    assert [row[:3] for row in kept(pipe)] == [(100, "stream views", "volume_near_history")]
    rows(pipe, [101 + n / 100 for n in range(800)])
    rows(pipe, (231,))
    assert ran(pipe)[-1] == 230
    volumes = [row[0] for row in kept(pipe) if row[2] == "volume_near_history"]
    assert volumes[:2] == [100, 110]
    assert [row[0] for row in kept(pipe) if row[1] == "stream clicks"] == list(range(130, 240, 10))
    assert equal(pipe)


@pytest.mark.parametrize("failpoint", ["batch.after-intent", "batch.after-tasks", "batch.before-commit"])
def test_a_crash_of_a_batch_that_is_to_be_stopped_or_was_released(tmp_path: Path, failpoint: str) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    declared(pipe, "query: q", f"{BETWEEN}, column: n, max_value: 1, severity: critical")
    rows(pipe, (1, 2, 11))
    crashed(tmp_path, failpoint)
    assert "observed" in str(stopped(pipe))
    pipe.release(boundary(10), "so be it")
    # the intent is there already
    assert crashed(tmp_path, failpoint) == (0 if failpoint == "batch.after-intent" else -9)
    assert ran(opened(tmp_path)) == ([] if failpoint == "batch.after-intent" else [10])
    assert answers(opened(tmp_path), "q") == [(10, 2)] and equal(opened(tmp_path))


def crashed(folder: Path, failpoint: str) -> int:
    program = f"import forebay\nforebay.open({str(folder)!r}).run()"
    return subprocess.run([sys.executable, "-c", program], env={
        **os.environ, "FOREBAY_FAILPOINT": failpoint
    }, cwd=Path(__file__).parents[3], capture_output=True).returncode


def test_rules_go_to_tasks_as_texts(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path)
    declared(pipe, "stream: views", f"{BETWEEN}, column: x, min_value: 0, severity: row",
             f"{BETWEEN}, column: x, min_value: 5")
    assert len(expect_rows.rules(
        pipe.runtime.pipeline)["views"]) == 1 and LandOrder.__dataclass_fields__["rules"].default == ()
