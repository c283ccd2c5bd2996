"""What every sound answer fulfils: real answers pass, the same answers damaged by hand fail, by name and boundary."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import forebay
from jobs.batch import batch as batches
from jobs.batch.batch import Answer
from jobs.batch.works import Context
from jobs.expectations import findings as expect_ledger
from jobs.expectations import judgement as expect_answers
from jobs.expectations.findings import Finding
from jobs.ledger.entries import Batch, KeptState
from tests.jobs.ledger.test_ledger import LATE
from tests.jobs.pipelines import boundary, pipeline, ran, restarted, rows

pytestmark = pytest.mark.slow
Caught = tuple[Context, Batch, Answer]
GROUPED = "SELECT v.k, COUNT(*) AS n, COUNT(v.x) AS m, SUM(v.x) AS s FROM views AS v [WINDOW 20 SECONDS] GROUP BY v.k"
ALONE = "SELECT COUNT(*) AS n, SUM(v.x) AS s FROM views AS v [WINDOW 20 SECONDS]"
ROWS = "SELECT v.k, v.x FROM views AS v [WINDOW 20 SECONDS]"
PLANS = ("LAP recompute", "EAP1 expire", "EAP1 running", "EAP1 retract", "LAP retract")


def caught(folder: Path, patch: pytest.MonkeyPatch, sql: str, plan: str | None = None) -> list[Caught]:
    """Every batch of a life with several groups, quiet boundaries and late rows, as its answers were about to be
    written.
    """
    seen: list[Caught] = []
    made = batches.answers

    def noted(context: Any, batch: Any, *rest: Any) -> Any:
        found = made(context, batch, *rest)
        seen.extend((context, batch, answer) for answer in found.answers)
        return found
    patch.setattr(batches, "answers", noted)
    pipe = pipeline(folder, {"views": "lateness: 1 hour"}, queries={"q": sql})
    if plan:
        pipe.synchronise()
        pipe.change("q", "pin", plan)
    for k in (1, 2, 3):
        rows(pipe, (1, 2, 12), k=k, x=k * 10)
    ran_some(pipe, 25)
    rows(pipe, (3, 4), k=1, x=-5)
    ran_some(pipe, 35)
    ran_some(pipe, 95)
    assert len({t for _, batch, _ in seen for t in batch.boundaries}) == 9 and expect_ledger.entered(pipe.runtime) == []
    return seen


def ran_some(pipe: forebay.Pipeline, upto: float) -> None:
    rows(pipe, (upto,), k=7, x=1)
    assert ran(pipe)


def judged(one: Caught, **changed: Any) -> list[Finding]:
    context, batch, answer = one
    return expect_answers.findings(context, batch, replace(answer, **changed), (), {})


def first_with(seen: list[Caught], rows_: int) -> Caught:
    return next(one for one in seen if one[2].rows is not None and one[2].rows.num_rows >= rows_)


def put(table: pa.Table, column: str, change: Any) -> pa.Table:
    at = table.schema.get_field_index(column)
    return table.set_column(at, table.schema.field(at), pc.cast(change(table[column]), table.schema.field(at).type))


@pytest.mark.parametrize("plan", PLANS)
def test_sound_answers_pass_under_every_way_of_keeping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                       plan: str) -> None:
    assert [f for one in caught(tmp_path, monkeypatch, GROUPED, plan) for f in judged(one)] == []


@pytest.mark.parametrize("sql", [ALONE, ROWS, GROUPED.replace("GROUP BY v.k", "GROUP BY v.k HAVING COUNT(*) > 1")])
def test_sound_answers_of_other_queries_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    assert [f for one in caught(tmp_path, monkeypatch, sql) for f in judged(one)] == []


def test_damaged_answers_fail_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = first_with(caught(tmp_path, monkeypatch, GROUPED), 3)
    rows_ = one[2].rows
    assert rows_ is not None
    t = pc.min(rows_["boundary"].cast(pa.int64())).as_py()
    twice = judged(one, rows=pa.concat_tables([rows_, rows_.slice(0, 1)]))
    assert [(f.boundary, f.observed) for f in twice if f.expectation.startswith("groups_unique")
            ] == [(t, "1 rows repeat others")]
    cases = {
        "sums_conserved": rows_.slice(1),
        "counts_not_negative": put(rows_, "n", pc.negate),
        "boundary_monotone": put(rows_, "boundary", lambda c: pc.add(c.cast(pa.int64()), 10 ** 7 * 100).cast(c.type))
    }
    for name, damaged in cases.items():
        found = {f.expectation.split("(")[0]: f for f in judged(one, rows=damaged)}
        assert name in found and found[name].severity == "critical" and found[name].subject == "query q", name
    more = judged(one, rows=put(rows_, "s", lambda c: pc.add(c, 1)))
    assert [f.observed.split(":")[0] for f in more] == ["s"] * len({f.boundary for f in more}) and more


def test_a_row_that_the_merge_lost_shows_in_the_sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = first_with(caught(tmp_path, monkeypatch, ALONE), 1)
    assert one[2].partials is not None
    found = judged(one, partials=pa.concat_tables([one[2].partials, one[2].partials]))
    assert {f.expectation.split("(")[0] for f in found} == {"sums_conserved"} and "over the join" in found[0].observed
    context, batch, answer = one
    secret = expect_answers.findings(context, batch, replace(answer, partials=pa.concat_tables([answer.partials] * 2)),
                                     (), {"views": frozenset({"x"})})
    assert {f.observed.split(":")[0]: "***" in f.observed for f in secret} == {"n": False, "s": True}


def test_boundaries_that_were_published_before_or_are_not_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = caught(tmp_path, monkeypatch, ROWS)
    context, batch, answer = next(one for one in seen if one[2].files)
    states = {"q": KeptState(LATE, 0, batch.boundaries[0])}
    assert [f.expectation.split("(")[0] for f in judged((context, replace(batch, states=states), answer))
            ] == ["boundary_monotone"]
    wrong = tuple(replace(f, low={**f.low, "boundary": boundary(5)}) for f in answer.files)
    assert [f.expectation.split("(")[0] for f in judged((context, batch, answer), files=wrong)] == ["boundary_monotone"]


def test_a_failed_query_is_judged_up_to_its_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = first_with(caught(tmp_path, monkeypatch, ALONE), 1)
    due = one[2].work.due
    assert judged(one, rows=None, partials=None, failed=(due[0], "division by zero")) == []


@pytest.mark.parametrize("count", [1, 3])
def test_sums_beyond_what_doubles_hold_exactly_pass(tmp_path: Path, count: int) -> None:
    """Three queries of one form share."""
    pipe = pipeline(tmp_path,
                    queries={f"q{i}": GROUPED.replace("GROUP", f"WHERE v.x > {i} GROUP") for i in range(count)})
    restarted(pipe, share_from=3)
    rows(pipe, (1, 2, 12, 25), k=[1, 2, 1, 2], x=[2**53 + 1, 2**62 + 1, 2**53 + 3, 1])
    assert ran(pipe) == [10, 20] and expect_ledger.entered(pipe.runtime) == []
    assert pipe.result("q0")["s"].to_list() == [2**54 + 4, 2**62 + 1]
