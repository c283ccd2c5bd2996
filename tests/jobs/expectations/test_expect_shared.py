"""Answers of queries that share a work are held to what each alone is held to: sound ones pass, damaged ones fail by
query, and stop their batch.
"""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import forebay
from jobs.batch import batch as batches
from jobs.batch.batch import Answered
from jobs.batch.shared import Shared
from jobs.commands import scheduled
from jobs.expectations import findings as expect_ledger
from jobs.expectations import gate as expect
from jobs.expectations import judgement as expect_answers
from jobs.expectations import releases
from jobs.expectations.findings import Finding
from jobs.ledger.entries import Batch, KeptState
from optimizer.errors import ForebayError
from tests.jobs.ledger.test_ledger import LATE
from tests.jobs.pipelines import boundary, equal, pipeline, ran, rows

pytestmark = pytest.mark.slow
JOINED = (
    "SELECT a.k, COUNT(*) AS n, SUM(b.x) AS s FROM views AS a [WINDOW 20 SECONDS], clicks AS b [WINDOW 30 SECONDS] "
    "WHERE a.k = b.k AND a.x < {n} GROUP BY a.k")
WHOLE = "SELECT COUNT(*) AS n, SUM(v.x) AS s FROM views AS v [WINDOW 20 SECONDS] WHERE v.x < {n}"
Caught = tuple[Batch, Shared]


def filled(folder: Path, sql: str) -> forebay.Pipeline:
    pipe = pipeline(folder, {"views": "", "clicks": ""}, queries={f"q{n}": sql.format(n=n) for n in range(1, 6)})
    for x in range(4):
        rows(pipe, [1, 12, 24 + x], "views", k=x % 2, x=x)
        rows(pipe, [3, 15, 26 + x], "clicks", k=x % 2, x=x)
    return pipe


def caught(folder: Path, patch: pytest.MonkeyPatch, sql: str) -> list[Caught]:
    """Every group's answers of a life, as they were about to be written."""
    seen: list[Caught] = []
    made = batches.answers

    def noted(context: Any, batch: Any, *rest: Any) -> Any:
        found = made(context, batch, *rest)
        seen.extend((batch, shared) for shared in found.shared)
        return found
    patch.setattr(batches, "answers", noted)
    pipe = filled(folder, sql)
    ran(pipe)
    for at in (45, 95):
        rows(pipe, [at], "views"), rows(pipe, [at], "clicks")
        ran(pipe)
    assert seen and expect_ledger.entered(pipe.runtime) == [] and equal(pipe)
    return seen


def judged(one: Caught, change: Any = lambda rows: rows) -> list[Finding]:
    batch, shared = one
    return expect_answers.of_shared(batch,
                                    replace(shared, answers=tuple(replace(a, rows=change(a.rows))
                                                                  for a in shared.answers)),
                                    {})


def kinds(found: list[Finding]) -> set[tuple[str, str]]:
    return {(f.subject, f.expectation.split("(")[0]) for f in found if f.severity == "critical"}


def of(name: str, change: Any) -> Any:
    """Changes the rows of one query only."""
    def changed(table: pa.Table) -> pa.Table:
        mine = pc.equal(table["query"], name)
        return pa.concat_tables([table.filter(pc.invert(mine)), change(table.filter(mine))])
    return changed


def put(column: str, change: Any) -> Any:
    def changed(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index(column)
        return table.set_column(at, table.schema.field(at), pc.cast(change(table[column]), table.schema.field(at).type))
    return changed


@pytest.mark.parametrize("sql", [JOINED, WHOLE, JOINED + " HAVING COUNT(*) > 1"])
def test_sound_answers_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    seen = caught(tmp_path, monkeypatch, sql)
    assert [f for one in seen for f in judged(one)] == []
    assert sum(a.rows.num_rows for _, s in seen for a in s.answers) > 0


def test_what_is_damaged_is_named_with_its_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = caught(tmp_path, monkeypatch, JOINED)[0]
    assert kinds(judged(one, of("q3",
                                lambda t: pa.concat_tables([t, t.slice(0, 1)])))) == {("query q3", "groups_unique"),
                                                                                      ("query q3", "sums_conserved")}
    assert kinds(judged(one, of("q4", lambda t: t.slice(1)))) == {("query q4", "sums_conserved")}
    assert ("query q5", "counts_not_negative") in kinds(judged(one, of("q5", put("n", pc.negate))))
    later = put("boundary", lambda c: pc.add(c.cast(pa.int64()), 10**9).cast(c.type))
    assert ("query q4", "boundary_monotone") in kinds(judged(one, of("q4", later)))
    swapped = judged(
        one,
        put(
            "query", lambda c: pc.replace_substring(
                pc.replace_substring(pc.replace_substring(c, "q5", "x"), "q2", "q5"), "x", "q2")))
    assert kinds(swapped) == {("query q2", "sums_conserved"), ("query q5", "sums_conserved")}


def test_a_boundary_that_a_member_published_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch, shared = caught(tmp_path, monkeypatch, JOINED)[0]
    before = replace(batch, states={"q2": KeptState(LATE, 0, batch.boundaries[0])})
    assert kinds(judged((before, shared))) == {("query q2", "boundary_monotone")}


def test_a_damaged_answer_stops_the_batch_until_it_is_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = batches.answers

    def damaged(*given: Any) -> Answered:
        found = made(*given)
        lost = of("q4", lambda t: t.slice(1))
        return replace(
            found, shared=[replace(s, answers=tuple(replace(a, rows=lost(a.rows)) for a in s.answers))
                           for s in found.shared])
    monkeypatch.setattr(batches, "answers", damaged)
    pipe = filled(tmp_path, JOINED)
    with pytest.raises(ForebayError) as stopped:
        ran(pipe)
    assert stopped.value.code == expect.STOPPED and "query q4 expects sums_conserved" in stopped.value.message
    said = scheduled.maintain(str(tmp_path))
    assert said["left"] == [] and "query q4 expects sums_conserved" in said["stopped"]
    releases.release(pipe.runtime, boundary(10), "the test damaged it")
    assert ran(pipe) == [10, 20]
    assert scheduled.maintain(str(tmp_path))["stopped"] is None
