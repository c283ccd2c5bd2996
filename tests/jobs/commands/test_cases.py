"""Tests that a pipeline brings: one that passes and one that fails for each kind of difference, and what is refused."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs.commands.cases import running
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.pipeline.config import load
from optimizer.errors import ForebayError
from optimizer.plan.model import candidates
from tests.jobs.pipelines import boundary

pytestmark = pytest.mark.slow
STREAMS = """
name: small
batch: 10 seconds
streams:
  views: {columns: {ts: timestamp, k: bigint, x: "decimal(10,2)", seen: timestamp, d: double}, event_time: ts,
          lateness: 15 seconds, source: {csv: "landing/*", delimiter: ";"}}
relations:
  pages: {columns: {k: bigint, name: string}, source: {files: "pages.csv"}}
"""
SUMS = ("SELECT v.k, COUNT(*) AS n, SUM(v.x) AS x, MAX(v.seen) AS seen, SUM(v.d) AS d "
        "FROM views AS v [WINDOW 20 SECONDS] GROUP BY v.k")
NAMES = "SELECT p.name, COUNT(*) AS n FROM views AS v [WINDOW 20 SECONDS], pages AS p WHERE v.k = p.k GROUP BY p.name"
TEN, TWENTY = "2026-01-01T00:00:10Z", "2026-01-01T00:00:20Z"
COUNTED = """
- test: counts
  steps:
  - ingest:
      views:
      - {ts: 2026-01-01T00:00:01Z, k: 1, x: 5, seen: "2026-01-01 01:00:00+01:00", d: 0.1}
      - {ts: 2026-01-01T00:00:02Z, k: 1, x: 0.25, d: 0.2}
      - {ts: 2026-01-01T00:00:12Z, k: 2}
  - run: {flush: true}
  expect:
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "queries").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "forebay.yml").write_text(STREAMS)
    (tmp_path / "queries" / "sums.sql").write_text(SUMS)
    return tmp_path


def of(folder: Path, text: str) -> list[dict[str, Any]]:
    (folder / "tests" / "a.yml").write_text(text)
    return list(running.tested(load(str(folder)))["tests"])


def messages(folder: Path, text: str) -> list[str]:
    """Of the only test, which must have failed."""
    test, = of(folder, text)
    assert not test["passed"]
    return [difference["message"] for difference in test["differences"]]


def counted(answer: str) -> str:
    return COUNTED + f"    sums: {answer}\n"


def refusal(folder: Path, text: str) -> ForebayError:
    with pytest.raises(ForebayError) as error:
        of(folder, text)
    assert error.value.exit_code == 2
    return error.value


def test_answers_in_any_order_on_the_columns_named(folder: Path) -> None:
    text = counted("{%s: [{n: 2, k: 1, x: 5.25, seen: 2026-01-01T00:00:00Z, d: 0.3}], "
                   "%s: [{k: 2, n: 1, x: null}, {n: 2, k: 1, x: 5.250}]}" % (TEN, TWENTY))
    (folder / "landing").mkdir()
    (folder / "landing" / "other.csv").write_text("neither read nor written")
    test, = of(folder, text)
    assert test["passed"] and not test["differences"]
    assert (test["file"], test["test"]) == ("tests/a.yml", "counts") and list(test["plans"]) == ["sums"]
    assert not (folder / "warehouse").exists()


@pytest.mark.parametrize(("answer", "missing", "too_many"), [
    ("{%s: [{k: 1, n: 3}]}" % TEN, [{"k": 1, "n": 3}], [{"k": 1, "n": 2}]),
    ("{%s: []}" % TEN, [], [{"k": 1, "n": 2, "x": "5.25"}]),
    ("{%s: [{k: 1}, {k: 1}]}" % TEN, [{"k": 1}], []),
    ("{%s: [{x: 5.26}]}" % TEN, [{"x": "5.26"}], [{"x": "5.25"}]),
    ("{%s: [{d: 0.30001}]}" % TEN, [{"d": 0.30001}], [{"d": 0.30000000000000004}]),
    ("{%s: [{k: 1}]}" % TWENTY, [], [{"k": 2}])])
def test_rows_missing_and_rows_too_many_are_told(folder: Path, answer: str, missing: list[dict[str, Any]],
                                                 too_many: list[dict[str, Any]]) -> None:
    test, = of(folder, counted(answer))
    difference, = test["differences"]
    assert not test["passed"] and difference["query"] == "sums" and difference["plan"] is None
    assert difference["boundary"] == boundary(10 if TEN in answer else 20)
    assert (difference["missing_rows"], difference["too_many_rows"]) == (len(missing), len(too_many))
    for told, expected in ((difference["missing"], missing), (difference["too_many"], too_many)):
        shown = [{name: str(value) if name == "x" else value for name, value in row.items()} for row in told]
        assert [{name: row[name] for name in wanted} for row, wanted in zip(shown, expected)] == expected


def test_at_most_ten_rows_of_a_difference_are_told(folder: Path) -> None:
    rows = ", ".join(f"{{k: {k}}}" for k in range(2, 14))
    difference, = of(folder, counted(f"{{{TEN}: [{rows}]}}"))[0]["differences"]
    assert len(difference["missing"]) == 10 and difference["missing_rows"] == 12 and difference["too_many_rows"] == 1


@pytest.mark.parametrize(("at", "why"), [
    ("2026-01-01T00:00:30Z", "the next boundary is 2026-01-01T00:00:30Z, which waits for views"),
    ("2026-01-01T00:00:15Z", "no answer is due there"),
    ("2026-01-01T00:00:00Z", "only from 2026-01-01T00:00:10Z to 2026-01-01T00:00:20Z")])
def test_a_boundary_that_was_not_published_says_so(folder: Path, at: str, why: str) -> None:
    message, = messages(folder, counted(f"{{{at}: []}}"))
    assert f"sums at {at}: not published: " in message and why in message


def test_nothing_is_published_without_a_run_or_a_row(folder: Path) -> None:
    step = "- {test: a, steps: [%s], expect: {sums: {%s: []}}}"
    assert messages(folder, step % ("{ingest: {views: []}}", TEN)) == [
        f"sums at {TEN}: not published: no step runs the pipeline"]
    assert messages(folder, step % ("{run: }", TEN)) == [f"sums at {TEN}: not published: the pipeline has no row"]


def test_a_row_in_quarantine_fails_unless_the_step_says_so(folder: Path) -> None:
    text = """
- test: a word
  steps:
  - ingest: {views: [{ts: 2026-01-01T00:00:01Z, k: one}, {ts: 2026-01-01T00:00:01Z, k: 1}]}%s
  - run: {flush: true}
  expect: {sums: {2026-01-01T00:00:10Z: [{k: 1, n: 1}]}}
"""
    message, = messages(folder, text % "")
    assert message == "step 1: rows of views in quarantine: 1, expected 0 (1 bad type: column k)"
    assert of(folder, text % "\n    quarantined: {views: 1}")[0]["passed"]
    message, = messages(folder, text % "\n    quarantined: {views: 2}")
    assert "rows of views in quarantine: 1, expected 2" in message


def test_late_rows_count_from_the_next_boundary_and_steps_go_in_order(folder: Path) -> None:
    test, = of(folder, """
- test: late
  steps:
  - ingest: {views: [{ts: 2026-01-01T00:00:01Z, k: 1}, {ts: 2026-01-01T00:00:20Z, k: 1}]}
  - run: {to: 2026-01-01T00:00:10Z}
  - ingest: {views: [{ts: 2026-01-01T00:00:02Z, k: 1}]}
  - run: {}
  - ingest: {views: [{ts: 2026-01-01T00:00:02Z, k: 1}, {ts: 2026-01-01T00:00:06Z, k: 1}]}
    quarantined: {views: 1}
  - ingest: {views: [{ts: 2026-01-01T00:00:06Z, k: 1}]}
  - run: {flush: true}
  expect:
    sums:
      2026-01-01T00:00:10Z: [{k: 1, n: 1}]
      2026-01-01T00:00:20Z: [{k: 1, n: 2}]
      2026-01-01T00:00:30Z: [{k: 1, n: 1}]
""")
    assert test["differences"] == []


def test_relations_change_between_runs(folder: Path) -> None:
    (folder / "queries" / "names.sql").write_text(NAMES)
    (folder / "pages.csv").write_text("not read by a test")
    text = """
- test: versions
  steps:
  - ingest:
      views: [{ts: 2026-01-01T00:00:01Z, k: 1}, {ts: 2026-01-01T00:00:10Z, k: 7}]
      pages: [{k: 1, name: old}]
  - run: {}
  - ingest: {pages: [{k: 1, name: new}, {k: 2, name: }]}
  - run: {flush: true}
  expect: {names: {2026-01-01T00:00:10Z: [{name: old, n: 1}], 2026-01-01T00:00:20Z: [{name: new, n: 1}]}}
- test: without rows
  steps: [{ingest: {views: [{ts: 2026-01-01T00:00:01Z, k: 1}]}}, {run: {flush: true}}]
  expect: {names: {2026-01-01T00:00:10Z: []}, sums: {2026-01-01T00:00:10Z: [{k: 1, n: 1}]}}
"""
    assert [test["differences"] for test in of(folder, text)] == [[], []]
    message = messages(folder, text.split("- test: without rows")[0].replace("k: 1, name: old", "k: one, name: old"))[0]
    assert message.startswith("step 1: the input of pages is refused: ") and "bad type: column k" in message


def test_files_are_read_as_the_source_says(folder: Path) -> None:
    (folder / "queries" / "names.sql").write_text(NAMES)
    (folder / "rows.txt").write_text("ts;k\n2026-01-01T00:00:01Z;1\n2026-01-01T00:00:02Z;1\n")
    (folder / "names.json").write_text('{"k": 1, "name": "one"}\n')
    test, = of(folder, """
- test: files
  steps:
  - ingest: {views: rows.txt, pages: names.json}
  - ingest: {views: [{ts: 2026-01-01T00:00:03Z, k: 1}]}
  - ingest: {views: [{ts: 2026-01-01T00:00:03Z, k: 1}]}
  - run: {flush: true}
  expect: {names: {2026-01-01T00:00:10Z: [{name: one, n: 4}]}}
""")
    assert test["differences"] == []


def test_a_query_that_fails_fails_the_test(folder: Path) -> None:
    (folder / "queries" / "bad.sql").write_text("SELECT SUM(1 DIV (v.k - v.k)) AS x FROM views AS v [WINDOW 1 HOUR]")
    message, = messages(folder, counted("{%s: [{k: 1, n: 2}]}" % TEN))
    assert message.startswith(f"step 2: query bad failed at {TEN}: ")


def test_what_an_expectation_stops_fails_with_the_reason(folder: Path) -> None:
    (folder / "expectations").mkdir()
    (folder / "expectations" / "views.yml").write_text(
        "stream: views\nexpectations:\n- {type: expect_table_row_count_to_be_between, max_value: 0, "
        "severity: critical}\n")
    message, = messages(folder, counted("{%s: [{k: 1, n: 2}]}" % TEN))
    assert message.startswith("step 2: ") and "expect_table_row_count_to_be_between" in message


def test_under_each_plan(folder: Path) -> None:
    (folder / "queries" / "names.sql").write_text(NAMES)
    text = """
- test: plans
  plans: all
  steps:
  - ingest:
      views: [{ts: 2026-01-01T00:00:01Z, k: 1}, {ts: 2026-01-01T00:00:10Z, k: 1}]
      pages: [{k: 1, name: one}]
  - run: {}
  - ingest: {views: [{ts: 2026-01-01T00:00:31Z, k: 1}]}
  - run: {}
  expect:
    names:
      2026-01-01T00:00:10Z: [{name: one, n: 1}]
      2026-01-01T00:00:20Z: [{name: one, n: 3}]      # two: wrong under each plan, and nothing else is
      2026-01-01T00:00:30Z: [{name: one, n: 1}]
"""
    queries = running.reading.subject_of(load(str(folder))).queries
    names = sorted(c.plan.name for c in candidates(queries["names"]) if c.refused is None)
    test, = of(folder, text)
    assert test["plans"] == {"names": names} and len(names) > 10
    assert sorted(difference["plan"] for difference in test["differences"]) == names
    assert {difference["boundary"] for difference in test["differences"]} == {boundary(20)}


def test_a_plan_that_is_wrong_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a plan that were not exact the test would tell: here rows are lost under one plan."""
    read = running.answers.read

    def broken(pipe: OpenPipeline, name: str, at: int | None = None, every: bool = False) -> Any:
        pinned = running.requests.show(pipe, name).pin
        return read(pipe, name, at, every).slice(0, 0 if pinned == "EAP1 expire" else None)

    monkeypatch.setattr(running.answers, "read", broken)
    test, = of(folder, counted("{%s: [{k: 1, n: 2}]}" % TEN).replace("  steps:", "  plans: all\n  steps:", 1))
    assert [(d["plan"], d["missing_rows"]) for d in test["differences"]] == [("EAP1 expire", 1)]


VALID = counted("{%s: [{k: 1, n: 2}]}" % TEN)


@pytest.mark.parametrize(("old", "new", "code", "place", "hint"), [
    ("    sums:", "    summs:", "unknown-query", (11, 5), "did you mean 'sums'?"),
    ("      views:", "      vews:", "unknown-stream", (5, 7), "did you mean 'views'?"),
    ("Z, k: 2}", "Z, kk: 2}", "unknown-column", (8, 36), "did you mean 'k'?"),
    ("{k: 1, n: 2}", "{k: 1, m: 2}", "unknown-column", (11, 42), "known are k, n, x, seen, d"),
    ("{k: 1, n: 2}", "{k: 1, n: two}", "bad-value", (11, 45), "write a whole number"),
    ("  steps:", "  step:", "unknown-key", (3, 3), "did you mean 'steps'?"),
    ("  - run:", "  - runs:", "unknown-key", (9, 5), "did you mean 'run'?"),
    ("flush: true", "flush: now", "bad-value", (9, 18), "true or false"),
    ("flush: true", "to: soon", "bad-value", (9, 15), "2025-01-31T09:10:00Z"),
    (f"{TEN}:", "noon:", "bad-value", (11, 12), "2025-01-31T09:10:00Z"),
    ("  steps:", "  plans: some\n  steps:", "bad-config", (3, 10), "plans: all"),
    ("  - run: {flush: true}", "  - quarantined: {views: 1}", "bad-config", (9, 5), "`run: {}`"),
    ("  - run: {flush: true}", "  - run: {}\n    quarantined: {views: 1}", "bad-config", (10, 5), "beside the"),
    ("  - run: {flush: true}", "  - ingest: {views: nowhere.csv}", "no-file", (9, 21), "the pipeline's folder"),
    ("  - run: {flush: true}", "  - ingest: {pages: forebay.yml}", "unknown-format", (9, 21), "name the file"),
    ("  - run: {flush: true}", "  - ingest: {pages: []}\n    quarantined: {pages: 1}", "unknown-stream", (10, 26), ""),
    (f"sums: {{{TEN}: [{{k: 1, n: 2}}]}}", "{}", "bad-config", (11, 5), "QUERY"),
    (VALID, "test: a\n", "bad-config", (1, 1), "- test: …"),
    ("- test: counts\n", "- steps: {\n", "bad-yaml", None, "")])
def test_a_wrong_file_is_refused_with_its_place(folder: Path, old: str, new: str, code: str,
                                                place: tuple[int, int] | None, hint: str) -> None:
    assert old in VALID
    error = refusal(folder, VALID.replace(old, new, 1))
    assert error.code == code and error.message.startswith("tests/a.yml"), error
    assert place is None or (error.line, error.column) == place, error
    assert hint in (error.hint or ""), error


def test_what_cannot_be_read_is_refused(folder: Path) -> None:
    with pytest.raises(ForebayError, match="has no tests"):
        running.tested(load(str(folder)))
    with pytest.raises(ForebayError, match="nowhere.yml cannot be read"):
        running.tested(load(str(folder)), ["nowhere.yml"])
    (folder / "queries" / "wrong.sql").write_text("SELECT")
    assert refusal(folder, VALID).message.startswith("queries/wrong.sql: ")
