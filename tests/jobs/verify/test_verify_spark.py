"""Verification by Spark SQL: of a pipeline that runs without Spark, and by itself where DuckDB has no rule of ours."""
from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from forebay import show, text
from jobs.results import answers
from jobs.verify.recompute import recompute, without_rule
from jobs.verify.sql import Table, as_written, plain
from optimizer.errors import ForebayError
from tests.jobs.pipelines import COUNT, SECOND, pipeline, ran, rows

NO_RULE = "SELECT COUNT(*) AS n, MAX(CONCAT('a', NULL)) AS m FROM views AS v [WINDOW 20 SECONDS]"
REASON = "CONCAT('a', NULL): NULL as an argument cannot be recomputed independently"
TABLES = {"views": Table({"ts": "timestamp", "k": "bigint", "x": "bigint"}, "ts")}


def test_what_has_no_rule_is_told_and_read_as_written() -> None:
    assert without_rule(COUNT, TABLES, 10 * SECOND) is None
    assert without_rule(NO_RULE, TABLES, 10 * SECOND) == REASON
    with pytest.raises(ForebayError, match="cannot be recomputed independently"):
        recompute(NO_RULE, {}, TABLES, 10 * SECOND, [])
    read = as_written(NO_RULE, TABLES, 10 * SECOND)
    assert [name for name, _ in read.selects] == ["n", "m"] and read.every == 10 * SECOND and not read.returns_rows


@pytest.mark.parametrize("value", ["MAX(DATEADD(MONTH, 1, v.ts))", "MAX(v.x RLIKE 'a')", "MAX(REGEXP_REPLACE(v.k, "
                                                                                         "'a', 'b'))",
                                   "TIMESTAMPDIFF(DAY, MAX(v.ts), MIN(v.ts))", "MAX(EXTRACT(YEAR FROM v.ts))",
                                   "MAX(TRIM(BOTH 'a' FROM v.k))", "MAX(CAST(CONCAT('2000-', v.x) AS DATE))"])
def test_functions_without_a_rule_go_to_spark_wherever_they_stand(value: str) -> None:
    for sql in (f"SELECT v.k, {value} AS m FROM views AS v [WINDOW 20 SECONDS] GROUP BY v.k HAVING {value} IS NOT NULL",
                f"SELECT {value.replace('MAX(', '(').replace('MIN(', '(')} AS m FROM views AS v [WINDOW 20 SECONDS]"):
        because = without_rule(sql, TABLES, 10 * SECOND)
        assert because and "cannot be recomputed independently" in because
        assert [name for name, _ in as_written(sql, TABLES, 10 * SECOND).selects][-1] == "m"


@pytest.mark.parametrize("sql", [COUNT, "SELECT v.k FROM views AS v [WINDOW 20 SECONDS] WHERE v.x > 1"])
def test_a_query_is_the_same_read_for_either_engine(sql: str) -> None:
    ours, as_it_is = plain(sql, TABLES, 10 * SECOND), as_written(sql, TABLES, 10 * SECOND)
    assert (ours.sources, ours.every, ours.returns_rows) == (as_it_is.sources, as_it_is.every, as_it_is.returns_rows)
    assert [name for name, _ in ours.outputs] == [name for name, _ in as_it_is.selects]


def test_only_a_query_without_a_rule_goes_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The document and what people read say so."""
    asked: dict[str, str] = {}

    def differences(pipe: Any, state: Any, boundaries: list[int], first: int, engine: str) -> list[dict[str, Any]]:
        asked[state.name] = engine
        return []

    pipe = pipeline(tmp_path, queries={"q": COUNT, "r": NO_RULE})
    rows(pipe, [1, 11, 21])
    ran(pipe, flush=True)
    monkeypatch.setattr(answers, "_differences", differences)
    document = show.verified(pipe.verify())
    assert asked == {"q": "duckdb", "r": "jvm"}
    assert document["queries"]["q"] == {"boundaries": 3, "equal": 3, "differences": [], "engine": "duckdb"}
    assert document["queries"]["r"]["engine"] == "jvm" and document["queries"]["r"]["because"] == REASON
    said = io.StringIO()
    text.verified(document)(said)
    assert f"r: recomputed by Spark SQL: {REASON}" in said.getvalue() and "q: recomputed" not in said.getvalue()
    assert [q["engine"] for q in pipe.verify(engine="jvm")["queries"].values()] == ["jvm", "jvm"]


UNNAMED = ("SELECT COUNT_IF(v.x > 1), MAX(v.x) + 1, BOOL_OR(v.x > 2), SUM(v.x * 2), REGR_COUNT(v.x, v.k) "
           "FROM views AS v [WINDOW 20 SECONDS] GROUP BY v.k")


def test_columns_without_a_name_are_compared_by_their_place(tmp_path: Path) -> None:
    """The text itself gives them none, and each engine calls them as it likes."""
    pipe = pipeline(tmp_path, queries={"q": UNNAMED})
    rows(pipe, [1, 11, 21])
    ran(pipe, flush=True)
    assert pipe.verify()["queries"] == {"q": {"boundaries": 3, "equal": 3, "differences": [], "engine": "duckdb"}}
    pipe.close()


@pytest.mark.spark
def test_a_pipeline_without_spark_can_be_verified_by_it(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT, "r": NO_RULE})
    rows(pipe, [1, 11, 21])
    ran(pipe, flush=True)
    equal = {"boundaries": 3, "equal": 3, "differences": []}
    try:
        assert pipe.verify("q", "jvm")["queries"]["q"] == {**equal, "engine": "jvm"}
        assert pipe.verify()["queries"] == {"q": {**equal, "engine": "duckdb"},
                                            "r": {**equal, "engine": "jvm", "because": REASON}}
    finally:
        pipe.close()
