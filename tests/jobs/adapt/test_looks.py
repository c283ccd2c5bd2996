"""Looks at whole windows: when they are due, what they read, what follows from them and from samples of batches."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import forebay
from jobs.adapt import adaptations, looks, statistics_table
from jobs.adapt.looks import Budget, QueryWindows, chosen_files
from jobs.adapt.statistics import Statistics, digest
from jobs.batch.works import parsed
from jobs.commands import adapt
from jobs.engine import sample
from jobs.engine.sample import SampleResult
from jobs.storage.tables import File
from optimizer.statistics.figures import inputs
from optimizer.statistics.model import QueryStatistics
from tests.jobs.pipelines import boundary, equal, opened, pipeline, rows
from tests.optimizer.planning import query

pytestmark = pytest.mark.slow
JOIN = ("SELECT v.x, COUNT(*) AS n FROM views AS v [WINDOW 5 MINUTES], buys AS b [WINDOW 5 MINUTES] WHERE v.k = b.k "
        "AND v.x < 100 GROUP BY v.x")


def started(folder: Path, batches: int = 31, top: str = "decide: task\n") -> forebay.Pipeline:
    """Each batch has five keys of its own, of which `views` has 24 rows, four of them selected out, and `buys` 20."""
    pipe = pipeline(folder, {"views": "", "buys": ""}, top=top)
    pipe.create("q", JOIN)
    for n in range(batches):
        come(pipe, n)
    return pipe


def come(pipe: forebay.Pipeline, n: int) -> None:
    keys = [5 * n + r % 5 for r in range(24)]
    rows(pipe, [10 * n + r / 3 for r in range(24)], k=keys, x=[100 if r >= 20 else r % 2 for r in range(24)])
    rows(pipe, [10 * n + r / 3 for r in range(20)], "buys", k=keys[:20])
    pipe.run(flush=True)


def known(pipe: forebay.Pipeline, name: str = "q") -> QueryStatistics:
    fresh = Statistics(pipe.runtime)
    observed = fresh.observed(name, parsed(pipe.query(name)["sql"], pipe.runtime.catalog))
    assert observed is not None
    return observed


def test_a_look_tells_of_whole_windows_what_samples_of_batches_cannot(tmp_path: Path) -> None:
    pipe = started(tmp_path)
    before = inputs(parsed(JOIN, pipe.runtime.catalog), known(pipe))
    assert before[0]["combinations"] < 120      # as if the keys of the last batches were all there are
    document = pipe.adapt()["statistics"]
    assert document["due"] and document["looked_at"] == ["q"] and document["since"] == boundary(310)
    assert document["rows"] == 30 * 44 and set(document["streams"]) == {"views", "buys"}
    view, buy = document["queries"]["q"]["inputs"]
    assert view["combinations"] == pytest.approx(30 * 10, rel=0.15)      # pairs of group and key in the window
    assert buy["combinations"] == pytest.approx(30 * 5, rel=0.15)
    assert (view["rate"], buy["rate"]) == pytest.approx((2.4, 2.0), rel=0.05)
    assert view["selectivity"] == pytest.approx(20 / 24, rel=0.05)
    join, = document["queries"]["q"]["joins"]
    assert join["keys"] == pytest.approx(150, rel=0.15) and join["overlap"] == pytest.approx(1.0, rel=0.15)
    assert join["selectivity"] == pytest.approx(1 / 150, rel=0.15) and document["queries"]["q"]["groups"] == 2
    look = Statistics(pipe.runtime).look("q", parsed(JOIN, pipe.runtime.catalog))
    assert look is not None and look.inputs[0].groups is not None and len(look.inputs[0].groups.counts) == 2
    again = pipe.adapt()["statistics"]
    assert not again["due"] and "no rows have come" in again["reason"] and again["queries"] == document["queries"]
    assert equal(pipe)


def test_samples_of_later_batches_join_the_look_and_a_change_ends_it(tmp_path: Path) -> None:
    pipe = started(tmp_path)
    pipe.adapt()
    come(pipe, 31)
    pipe = opened(tmp_path)
    for n in range(32, 36):
        come(pipe, n)
    later = inputs(parsed(JOIN, pipe.runtime.catalog), known(pipe))
    assert later[0]["combinations"] > 250      # still the window's
    for n in range(36, 39):      # ten times as many rows: what the look told is over
        rows(pipe, [10 * n + r / 30 for r in range(290)], k=[r % 3 for r in range(290)])
        come(pipe, n)
    assert inputs(parsed(JOIN, pipe.runtime.catalog), known(pipe))[0]["rate"] > 20


def test_it_is_due_by_the_budget_and_says_when_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = started(tmp_path, 6)
    assert pipe.adapt()["statistics"]["due"]      # never looked at, whatever it costs
    monkeypatch.setattr(looks, "SHARE", 1e-3)
    come(pipe, 6)
    document = pipe.adapt()["statistics"]
    last = adaptations.last(pipe.runtime, "statistics")
    assert last is not None and last.boundary == boundary(60) and last.rows == 6 * 44
    assert not document["due"] and document["reason"].startswith("not due, next at 2026-")
    assert document["next"] > boundary(70) and document["since"] == boundary(60) and document["queries"]["q"]
    monkeypatch.setattr(looks, "SHARE", 1e3)
    assert pipe.adapt()["statistics"]["due"]


def test_queries_that_share_and_new_ones_are_looked_at_too(tmp_path: Path) -> None:
    pipe = started(tmp_path, 3)
    for n in range(30):
        pipe.create(f"s{n}", JOIN.replace("100", str(n)))
    come(pipe, 3)
    first = pipe.adapt()["statistics"]
    assert set(first["looked_at"]) == {"q", *(f"s{n}" for n in range(30))}
    pipe.create("late", "SELECT COUNT(*) AS n FROM views AS v [WINDOW 1 MINUTE]")
    come(pipe, 4)
    assert pipe.runtime.ledger.last().batch.query_groups      # type: ignore[union-attr]
    assert "late" in pipe.adapt()["statistics"]["looked_at"]
    assert equal(pipe)


def test_what_contradicts_itself_or_cannot_be_read_is_not_believed(tmp_path: Path,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = started(tmp_path, 4)
    pipe.adapt()
    asked = parsed(JOIN, pipe.runtime.catalog)
    good = Statistics(pipe.runtime).look("q", asked)
    assert good is not None
    wrong = replace(good, at=good.at + 1,
                    inputs=tuple(replace(one, passing=10 * one.rows, rows=one.rows) for one in good.inputs))
    text = f"{digest(asked)}{statistics_table.LOOK}"
    figures = inputs(asked, known(pipe))
    statistics_table.append(pipe.runtime, statistics_table.rows("q", text, wrong, figures))
    assert Statistics(pipe.runtime).look("q", asked) == wrong
    assert known(pipe).inputs[0].selectivity <= 1      # by batches alone
    come(pipe, 4)
    monkeypatch.setattr(looks, "take", lambda order: SampleResult(order.query, order.input, None))
    monkeypatch.setattr(looks, "SHARE", 1e3)
    report = adapt.statistics(pipe.runtime)
    assert report["due"] and "1 could not be looked at" in report["reason"] and equal(pipe)


def test_a_kill_between_what_was_found_and_what_it_took_loses_nothing(tmp_path: Path,
                                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = started(tmp_path, 4)

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(adaptations, "append", killed)
        with pytest.raises(KeyboardInterrupt):
            pipe.adapt()
    again = opened(tmp_path).adapt()
    assert again["statistics"]["queries"]["q"]["weight"] and again["decisions"][0]["query"] == "q"


def test_a_budget_is_a_tenth_and_debts_are_paid_first() -> None:
    budget = Budget(spent_by_batches=80.0, boundaries=100, debt=3.0, row_seconds=1e-6)
    assert budget.seconds == 5.0 and budget.rows == 5e6 and Budget(10.0, 10, 3.0).rows == 0
    assert budget.boundaries_until(6e6) == 13 and Budget(0.0, 0).boundaries_until(1.0) is None


def test_a_look_is_at_a_quarter_of_large_windows_at_least() -> None:
    asked = query("two-streams")
    large = QueryWindows("q", asked, (9e7, 1e7), looked_at=60)
    assert large.wanted == 2.5e7 and large.granted(2e7) == 0 and large.granted(3e7) == 3e7 and large.granted(2e8) == 1e8
    assert replace(large, looked_at=None).granted(0) == 200_000
    assert QueryWindows("q", asked, (50.0, 10.0), None).granted(0) == 60


def test_the_newest_files_and_a_seeded_share_of_the_others_are_read() -> None:
    files = [File(f"{n}.parquet", 100, 1, {"_boundary": n}, {"_boundary": n}, {}) for n in range(20)]
    chosen = chosen_files(files, 800, seed=7)
    numbers = [file.low["_boundary"] for file in chosen]
    assert numbers[:4] == [19, 18, 17, 16] and len(set(numbers)) == 8 and chosen == chosen_files(files[::-1], 800, 7)
    assert chosen != chosen_files(files, 800, seed=8) and len(chosen_files(files, 2000, 7)) == 20


def test_a_look_reads_only_the_window(tmp_path: Path) -> None:
    pipe = started(tmp_path, 3)
    pipe.create("short", "SELECT COUNT(*) AS n FROM views AS v [WINDOW 10 SECONDS]")
    come(pipe, 3)
    pipe.adapt()
    look = Statistics(pipe.runtime).look("short", parsed(pipe.query("short")["sql"], pipe.runtime.catalog))
    assert look is not None and look.inputs[0].rows == 24 and look.inputs[0].seconds == pytest.approx(10.0)
    assert sample.take is looks.take
