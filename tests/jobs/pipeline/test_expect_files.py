"""Expectations as files: every mistake is refused with its file, line and what exists, before anything changes.

What is sound says the same again.
"""
from __future__ import annotations

from pathlib import Path

import pytest

from jobs.ingest.row_rules import rules
from jobs.pipeline import declared as expect_files
from jobs.pipeline.config import load
from optimizer.errors import ForebayError
from optimizer.expression.types import BIGINT, STRING

COLUMNS = '{ts: timestamp, user: string, x: bigint, d: "decimal(5,2)", f: double, b: boolean, day: date}'
HEAD = "stream: views\nexpectations:\n"
BETWEEN = "expect_column_values_to_be_between"
WRONG = [
    ("[]", "[", "bad-config", "not keys with values"),
    ("expectations: []", "expectations", "bad-config", "`stream: NAME`"),
    ("stream: views\nquery: q\nexpectations: []", "stream", "bad-config", "stream and query"),
    ("stream: view\nexpectations: []", "view", "unknown-stream", "'views'"),
    ("stream: views\nexpectation: []", "expectation", "unknown-key", "'expectations'"),
    ("stream: views", "stream", "missing-key", "expectations"),
    ("stream: views\nexpectations: {}", "{", "bad-config", "list"),
    (HEAD + "- {type: expect_x}", "expect_x", "unknown-expectation", "expect_column_values_to_not_be_null"),
    (HEAD + "- {column: x}", "{", "missing-key", "type"),
    (HEAD + f"- {{type: {BETWEEN}, column: y, min_value: 1}}", "y", "unknown-column", "x"),
    (HEAD + f"- {{type: {BETWEEN}, column: x, min_value: 1, severity: fatal}}", "fatal", "unknown-severity",
     "critical, warning, row"), (HEAD + f"- {{type: {BETWEEN}, column: x, min: 1}}", "min", "unknown-key", "min_value"),
    (HEAD + f"- {{type: {BETWEEN}, column: x, regex: a}}", "regex", "unknown-key", "min_value"),
    (HEAD + f"- {{type: {BETWEEN}, column: x}}", "{", "missing-key", "give one or both"),
    (HEAD + f"- {{type: {BETWEEN}, column: x, min_value: 1.5}}", "1.5", "bad-value", "bigint"),
    (HEAD + f"- {{type: {BETWEEN}, column: x, min_value: {2**63}}}", "9223372036854775808", "bad-value", "bigint"),
    (HEAD + f"- {{type: {BETWEEN}, column: x, min_value: 3, max_value: 2}}", "{", "bad-value", "more than max_value"),
    (HEAD + f"- {{type: {BETWEEN}, column: d, max_value: 1000}}", "1000", "bad-value", "decimal(5,2)"),
    (HEAD + f"- {{type: {BETWEEN}, column: d, max_value: 0.001}}", "0.001", "bad-value", "decimal(5,2)"),
    (HEAD + f"- {{type: {BETWEEN}, column: f, max_value: .nan}}", ".nan", "bad-value", "double"),
    (HEAD + f"- {{type: {BETWEEN}, column: ts, max_value: soon}}", "soon", "bad-value", "2013-01-02T00:00:00Z"),
    (HEAD + f"- {{type: {BETWEEN}, column: b, min_value: true}}", "{", "bad-expectation", "boolean"),
    (HEAD + "- {type: expect_column_values_to_be_in_set, column: x, value_set: 7}", "7", "bad-config", "list"),
    (HEAD + "- {type: expect_column_values_to_be_in_set, column: x, value_set: []}", "[", "bad-value", "0 values"),
    (HEAD + "- {type: expect_column_values_to_be_in_set, column: x, value_set: [1, a]}", "[", "bad-value", "'a'"),
    (HEAD + "- {type: expect_column_values_to_match_regex, column: x, regex: a}", "{", "bad-expectation", "strings"),
    (HEAD + "- {type: expect_column_values_to_match_regex, column: user, regex: '(?<=a)b'}", "'", "bad-value", "RE2"),
    (HEAD + "- {type: expect_column_values_to_match_regex, column: user}", "{", "missing-key", "regex"),
    (HEAD + "- {type: expect_column_values_to_not_be_null, column: x, mostly: 2}", "2", "bad-value", "0 to 1"),
    (HEAD + "- {type: expect_column_values_to_not_be_null, column: x, mostly: 0.5, severity: row}", "row",
     "unknown-severity", "mostly"),
    (HEAD + "- {type: expect_column_max_to_be_between, column: x, max_value: 5, severity: row}", "row",
     "unknown-severity", "single rows"),
    (HEAD + "- {type: expect_table_row_count_to_be_between, min_value: -1}", "-", "bad-value", "from 0 on"),
    (HEAD + "- {type: expect_column_mean_to_be_between, column: user, max_value: 5}", "{", "bad-expectation",
     "numbers"),
    (HEAD + "- {type: expect_column_pair_values_a_to_be_greater_than_b, column_A: x, column_B: f}", "{",
     "bad-expectation", "one type"),
    (HEAD + "- {type: expect_compound_columns_to_be_unique, column_list: [x, y]}", "y", "unknown-column", "ts"),
    (HEAD + "- type: [", "", "bad-yaml", "YAML"),
]


def folder(path: Path, text: str, name: str = "more.yml") -> Path:
    (path / "expectations").mkdir(parents=True, exist_ok=True)
    (path / "forebay.yml"
     ).write_text(f"name: test\nbatch: 10 seconds\nstreams:\n  views: {{columns: {COLUMNS}, event_time: ts}}\n")
    (path / "expectations" / name).write_text(text)
    return path


@pytest.mark.parametrize(("text", "at", "code", "said"), WRONG, ids=[f"{k}-{w[2]}" for k, w in enumerate(WRONG)])
def test_a_mistake_is_refused_where_it_stands(tmp_path: Path, text: str, at: str, code: str, said: str) -> None:
    with pytest.raises(ForebayError) as raised:
        rules(load(str(folder(tmp_path, text))))
    error = raised.value
    assert (error.code, error.exit_code) == (code, 2)
    assert said in str(error) and "expectations/more.yml" in error.message
    assert error.line and error.column and text.splitlines()[error.line - 1][error.column - 1:].startswith(at)


def test_what_is_declared_is_read(tmp_path: Path) -> None:
    pipeline = load(str(folder(tmp_path, HEAD + f"""
- {{type: {BETWEEN}, column: x, min_value: 0, max_value: "10", strict_max: true, severity: row, note: no negatives}}
- {{type: {BETWEEN}, column: ts, min_value: 2020-01-01}}
- {{type: expect_column_values_to_be_in_set, column: user, value_set: [it's, b, b], severity: critical}}
- {{type: expect_column_values_to_not_be_null, column: f, mostly: 0.9}}
""")))
    given = expect_files.read(pipeline)
    assert [f"{e} {e.severity}" for e in expect_files.of_stream(pipeline, given, "views")] == [
        f"{BETWEEN}(x, min_value: 0, max_value: 10, strict_max: true) row",
        f"{BETWEEN}(ts, min_value: 2020-01-01 00:00:00.000000+00) warning",
        "expect_column_values_to_be_in_set(user, value_set: [it's, b]) critical",
        "expect_column_values_to_not_be_null(f, mostly: 0.9) warning"]
    (reason, sql), = rules(pipeline)["views"]
    assert reason.startswith("expectation: expect_column_values_to_be_between(x") and "v2" in sql


def test_columns_of_a_query_are_checked_against_its_own(tmp_path: Path) -> None:
    text = "query: q\nexpectations:\n- {type: expect_column_values_to_be_in_set, column: n, value_set: [1]}\n"
    given = expect_files.read(load(str(folder(tmp_path, text))))
    assert [str(e) for e in expect_files.of_query(given, "q", {"n": BIGINT})
            ] == ["expect_column_values_to_be_in_set(n, value_set: [1])"]
    with pytest.raises(ForebayError, match="there is no column 'n'.*known are page") as raised:
        expect_files.of_query(given, "q", {"page": STRING})
    assert raised.value.line == 3


def test_a_file_of_another_kind_is_left_alone(tmp_path: Path) -> None:
    assert expect_files.read(load(str(folder(tmp_path, "no yaml: [", "README.md")))) == ()
