"""Long silences are passed over: which boundaries, what answers say before and after, and that each one left out would
have repeated the one before it.
"""
from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import forebay
from jobs import run
from jobs.ingest import silences
from jobs.requests import boundaries, passing
from optimizer.errors import ForebayError
from tests import seeds
from tests.jobs import pipelines
from tests.jobs.pipelines import BEGINNING, SECOND, boundary, opened, pipeline, ran, rows

pytestmark = pytest.mark.slow
YEAR = 365 * 24 * 3600
QUERIES = {
    "sliding": "SELECT k, COUNT(*) AS n, MAX(x) AS most FROM views AS v [WINDOW 30 SECONDS] GROUP BY k",
    "total": "SELECT COUNT(*) AS n FROM views AS v [WINDOW UNTIL NOW]",
    "tumbling": "SELECT COUNT(*) AS n FROM views AS v [WINDOW 40 SECONDS TUMBLING]",
    "hopping": "SELECT SUM(x) AS x FROM views AS v [WINDOW 40 SECONDS SLIDE 20 SECONDS]",
    "seldom": "SELECT COUNT(*) AS n FROM views AS v [WINDOW 20 SECONDS] EVERY 1 MINUTE",
    "pairs": "SELECT v.k, b.x FROM views AS v [WINDOW 30 SECONDS], buys AS b [WINDOW 20 SECONDS] WHERE v.k = b.k",
    "joined": "SELECT v.k, COUNT(*) AS n FROM views AS v [WINDOW 30 SECONDS], buys AS b [WINDOW 1 MINUTE] "
              "WHERE v.k = b.k GROUP BY v.k",
    "windows": "SELECT System.Window().Id, COUNT(*) AS n FROM views v GROUP BY Windows("
               "Window('20 s', TumblingWindow(second, 20)), Window('1 min', HoppingWindow(second, 60, 20)))",
}
EMPTY_WHEN_SILENT = ("pairs", "windows")


def short_silences(patch: pytest.MonkeyPatch, length: int) -> None:
    for module in (silences, passing, boundaries, run):
        patch.setattr(module, "LONG", length)


def test_years_of_silence_are_one_entry(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"n": pipelines.COUNT})
    rows(pipe, [5, 15])
    assert ran(pipe, flush=True) == [10, 20]
    rows(pipe, [20 * YEAR + 5])
    report = pipe.run(flush=True)
    # the window of 20 seconds lets go of its last row at 40
    told = [((entry["boundary"] - BEGINNING) // SECOND, entry.get("passed_over")) for entry in report["ran"]]
    assert told == [(30, None), (40, None), (20 * YEAR, 2 * YEAR - 5), (20 * YEAR + 10, None)]
    assert pipelines.answers(pipe, "n") == [(10.0, 1), (20.0, 2), (30.0, 1), (40.0, 0), (20.0 * YEAR, 0),
                                            (20.0 * YEAR + 10, 1)]
    assert pipelines.equal(pipe) and pipe.verify()["queries"]["n"]["boundaries"] == 6
    with pytest.raises(ForebayError, match="a long silence was passed over there") as refused:
        pipe.result("n", at=boundary(YEAR))
    assert refused.value.code == "unknown-boundary"
    assert pipe.runtime.ledger.last().batch.passed_over == ((boundary(50), boundary(20 * YEAR - 10)),)


def test_a_silence_is_entered_at_a_named_boundary_and_by_numbers(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"n": pipelines.COUNT})
    rows(pipe, [5])
    assert ran(pipe, flush=True) == [10]
    rows(pipe, [20 * YEAR + 5])
    assert ran(pipe, to=boundary(10 * YEAR + 7), flush=True) == [20, 30, 10 * YEAR]
    assert ran(pipe, flush=True, batches=1) == [20 * YEAR]
    assert ran(pipe, flush=True) == [20 * YEAR + 10]
    assert pipelines.equal(pipe)


def test_a_row_within_a_file_ends_the_silence(tmp_path: Path) -> None:
    """One file holds rows on both sides of the silence, and one of another stream in the middle."""
    pipe = pipeline(tmp_path, {"views": "behind: for ever", "buys": "behind: for ever"},
                    queries={"joined": QUERIES["joined"]})
    rows(pipe, [5, 20 * YEAR + 5])
    rows(pipe, [7, 10 * YEAR + 5, 20 * YEAR + 6], "buys")
    seconds = ran(pipe, flush=True)
    assert len(seconds) < 40 and {10 * YEAR + 10, 20 * YEAR + 10} <= set(seconds)
    assert pipelines.equal(pipe)


def test_a_query_made_meanwhile_answers_before_boundaries_are_passed_over(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"n": pipelines.COUNT})
    rows(pipe, [5])
    ran(pipe, flush=True)
    rows(pipe, [20 * YEAR + 5])
    ran(pipe, to=boundary(50))
    pipe.create("late", "SELECT COUNT(*) AS n FROM views AS v [WINDOW UNTIL NOW] EVERY 1 MINUTE")
    assert ran(pipe, flush=True) == [60, 20 * YEAR, 20 * YEAR + 10]
    assert pipelines.answers(pipe, "late")[0] == (60.0, 1) and pipelines.equal(pipe)


def test_late_rows_count_from_the_boundary_after_the_silence_on(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, {"views": "lateness: 7000 days"}, queries={"total": QUERIES["total"]})
    rows(pipe, [5])
    ran(pipe, flush=True)
    rows(pipe, [20 * YEAR + 5])
    ran(pipe, to=boundary(20 * YEAR), flush=True)
    assert rows(pipe, [10 * YEAR])["streams"]["views"]["late"] == 1
    ran(pipe, flush=True)
    assert pipelines.answers(pipe, "total")[-1] == (20.0 * YEAR + 10, 3) and pipelines.equal(pipe)


def test_a_kill_after_the_mark_passes_over_the_same(tmp_path: Path) -> None:
    from jobs.storage import failpoints

    for point in ("batch.after-mark", "batch.after-intent", "batch.before-commit", "batch.after-commit"):
        folder = tmp_path / point
        pipe = pipeline(folder, queries={"n": pipelines.COUNT, "joined": QUERIES["joined"]},
                        streams={"views": "", "buys": ""})
        rows(pipe, [5])
        rows(pipe, [6], "buys")
        ran(pipe, flush=True)
        rows(pipe, [20 * YEAR + 5])
        ran(pipe, to=boundary(90), flush=True)
        failpoints._passes.clear()
        with pytest.MonkeyPatch.context() as patch, pytest.raises(failpoints.Reached):
            patch.setenv("FOREBAY_FAILPOINT", f"{point}:1:raise")
            pipe.run(flush=True)
        pipe = opened(folder)
        assert ran(pipe, flush=True)[-1] == 20 * YEAR + 10
        assert pipe.runtime.ledger.last().batch.passed_over == ((boundary(100), boundary(20 * YEAR - 10)),), point
        assert pipelines.equal(pipe)


def test_what_is_passed_over_repeats_the_answer_before_it(tmp_path: Path) -> None:
    """Random streams with holes: a twin runs every boundary. Silences of more than 4 boundaries are long here."""
    draw = random.Random(seeds.seed())
    passed = 0
    for life in range(2):
        moments: dict[str, list[int]] = {"views": [], "buys": []}
        now = 0
        for _ in range(9):
            now += draw.choice([3, 8, 15, 70, 120, 300])
            moments[draw.choice(["views", "buys"])].append(now)
        twins = []
        for name, length in (("each", 10**6), ("some", 4)):
            with pytest.MonkeyPatch.context() as patch:
                short_silences(patch, length)
                pipe = pipeline(tmp_path / f"{name}{life}", queries=QUERIES, streams={
                    "views": "behind: for ever", "buys": "behind: for ever"})
                for stream, times in moments.items():
                    if times:
                        rows(pipe, times, stream, x=list(range(len(times))))
                pipe.run(flush=True)
                assert pipelines.equal(pipe)
                twins.append(pipe)
        passed += len(twins[1].runtime.ledger.last().batch.passed_over)
        for name in QUERIES:
            compare(*twins, name)
    assert passed > 1


def test_sessions_end_in_a_silence(tmp_path: Path) -> None:
    """The same twins: a session ends, is shown and is shown no more before anything is passed over."""
    asked = {"visits": "SELECT k, COUNT(*) AS n FROM views AS v [WINDOW SESSION 35 SECONDS BY k] GROUP BY k",
             "longest": "SELECT MAX(n) AS m FROM (SELECT k, COUNT(*) AS n FROM views GROUP BY k, session_window(ts, "
                        "'12 seconds')) AS s EVERY 20 SECONDS"}
    draw, passed, shown = random.Random(seeds.seed()), 0, 0
    for life in range(2):
        moments, twins = [5], []
        for _ in range(8):
            moments.append(moments[-1] + draw.choice([3, 8, 15, 40, 70, 120, 300]))
        for name, length in (("each", 10**6), ("some", 4)):
            with pytest.MonkeyPatch.context() as patch:
                short_silences(patch, length)
                pipe = pipeline(tmp_path / f"{name}{life}", queries=asked, streams={"views": "behind: for ever"})
                rows(pipe, moments, k=[n % 3 for n in range(len(moments))])
                pipe.run(flush=True)
                twins.append(pipe)
        passed += len(twins[1].runtime.ledger.last().batch.passed_over)
        shown += len(pipelines.answers(twins[0], "visits"))
        for name in asked:
            compare(*twins, name)
    assert passed > 1 and shown > 2


def compare(each: forebay.Pipeline, some: forebay.Pipeline, name: str) -> None:
    spans = some.runtime.ledger.last().batch.passed_over
    everywhere, there = by_boundary(each, name), by_boundary(some, name)
    before: Any = None
    for t, answer in everywhere.items():
        if any(first <= t <= last for first, last in spans):
            assert t not in there and answer == ([] if name in EMPTY_WHEN_SILENT else before), (name, t)
        else:
            assert there[t] == answer, (name, t)
        before = answer
    assert set(there) <= set(everywhere)


def by_boundary(pipe: forebay.Pipeline, name: str) -> dict[int, list[Any]]:
    from jobs.ledger import published

    answers: dict[int, list[Any]] = {t: [] for t in published.boundaries(pipe.runtime.warehouse, name)}
    for second, *values in pipelines.answers(pipe, name):
        answers[boundary(second)].append(values)
    return {t: sorted(map(repr, values)) for t, values in sorted(answers.items())}
