"""Answers that tasks have written are judged by what these tell: sound ones pass, damaged ones fail by name."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.batch.figures import Figures, Told, figures, together
from jobs.batch.large import LargeAnswer
from jobs.engine import kernel
from jobs.expectations import judgement
from jobs.expectations.findings import Finding
from tests.jobs.expectations.test_expect_answers import GROUPED, PLANS, Caught, caught, judged
from tests.jobs.expectations.test_expect_shared import JOINED
from tests.jobs.expectations.test_expect_shared import caught as caught_shared

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def by_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREBAY_DRIVER_PARTIALS", "0")


def damaged(large: LargeAnswer, **changed: Any) -> LargeAnswer:
    """The same with other figures of its first file."""
    first, *others = large.rows
    return replace(large, rows=(replace(first, figures=replace(first.figures, **changed)), *others))


def named(found: list[Finding]) -> dict[str, str]:
    return {f.expectation.split("(")[0]: f.observed for f in found}


@pytest.mark.parametrize("plan", PLANS)
def test_sound_answers_pass_under_every_way_of_keeping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                       plan: str) -> None:
    seen = caught(tmp_path, monkeypatch, GROUPED, plan)
    assert [f for one in seen for f in judged(one)] == [] and any(one[2].large for one in seen)


def first_large(seen: list[Caught]) -> Caught:
    return next(one for one in seen if one[2].large is not None and len(one[2].large.rows) > 0)


def test_damaged_answers_fail_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = first_large(caught(tmp_path, monkeypatch, GROUPED))
    large = one[2].large
    assert large is not None
    told = large.rows[0].figures
    key = min(told.rows)
    assert named(judged(one, large=damaged(large, repeated={key: 2}))) == {"groups_unique": "2 rows repeat others"}
    assert named(judged(one, large=damaged(large, least={key: (-1, None)}))) == {"counts_not_negative": "n is -1"}
    later = {(key[0] + 10**15,): 1}
    assert named(judged(one, large=damaged(large, rows=later))) == {"boundary_monotone": f"a row of {key[0] + 10**15}"}
    assert set(named(judged(one, large=damaged(large, sums={})))) == {"sums_conserved"}
    assert set(named(judged(one, large=replace(large, handed_over={})))) == {"sums_conserved"}


def test_of_queries_that_share_each_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = caught_shared(tmp_path, monkeypatch, JOINED)
    batch, shared = next((b, s) for b, s in seen if any(a.large and a.large.rows for a in s.answers))
    answers = shared.answers[0]
    assert answers.large is not None and answers.rows is None
    owner, t = min(answers.large.rows[0].figures.rows)

    def found(**changed: Any) -> list[Finding]:
        assert answers.large is not None
        other = replace(answers, large=damaged(answers.large, **changed))
        return judgement.of_shared(batch, replace(shared, answers=(other,)), {})

    assert found() == []
    for name, changed in {"groups_unique": {"repeated": {(owner, t): 1}}, "sums_conserved": {"sums": {}},
                          "counts_not_negative": {"least": {(owner, t): (-1,)}},
                          "boundary_monotone": {"rows": {(owner, t + 10**15): 1}}}.items():
        findings = [f for f in found(**changed) if f.subject == f"query {owner}"]
        assert {f.expectation.split("(")[0] for f in findings} == {name}


def test_figures_of_files_are_figures_of_their_rows(tmp_path: Path) -> None:
    con, told = kernel.shared(), Told(("query",), ("k",), ("n",), ("n", "s"))
    rows = ("SELECT 'q' AS query, make_timestamptz(60) AS boundary, 1 AS k, -2::BIGINT AS n, 7.5::DECIMAL(9,1) AS s "
            "UNION ALL SELECT 'q', make_timestamptz(60), NULL, 3, -0.5 "
            "UNION ALL SELECT 'r', make_timestamptz(60), NULL, NULL, NULL")
    parts = []
    for number, sql in enumerate((f"({rows}) UNION ALL ({rows})", rows)):
        con.execute(f"COPY ({sql}) TO '{tmp_path}/{number}.parquet' (FORMAT parquet)")
        parts.append(figures(con, f"{tmp_path}/{number}.parquet", told))
    assert parts[1] == Figures({("q", 60): 2, ("r", 60): 1}, {}, {("q", 60): (-2,)},
                               {("q", 60): ((1.0, 5.0), (7.0, 8.0)), ("r", 60): ((0.0, 0.0), (0.0, 0.0))})
    assert parts[0].repeated == {("q", 60): 2, ("r", 60): 1}
    whole = together(parts)
    assert whole.rows == {("q", 60): 6, ("r", 60): 3} and whole.sums["q", 60] == ((3.0, 15.0), (21.0, 24.0))
    assert whole.least == parts[1].least and whole.repeated == parts[0].repeated
