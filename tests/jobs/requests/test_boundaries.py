"""Which boundaries run when: wait, idle, lateness, ahead, --to, --flush, --batches, gaps, and streams that nobody
reads.
"""
from __future__ import annotations

from pathlib import Path

import pytest

from jobs.requests import boundaries
from optimizer.errors import ForebayError
from tests.jobs.pipelines import COUNT, SECOND, answers, boundary, equal, opened, pipeline, ran, restarted, rows

pytestmark = pytest.mark.slow

BOTH = "SELECT COUNT(*) AS n FROM views AS v [WINDOW 20 SECONDS], buys AS b [WINDOW 20 SECONDS] WHERE v.k = b.k"


def test_the_first_boundary_is_the_first_multiple_after_the_earliest_row(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    assert ran(pipe) == [] and pipe.run()["next"] is None
    rows(pipe, [15, 31])
    assert ran(pipe) == [20, 30]
    assert answers(pipe, "q") == [(20, 1), (30, 1)]


def test_a_row_on_a_boundary_counts_at_the_next(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [20, 50])
    assert ran(pipe) == [30, 40, 50]
    assert answers(pipe, "q") == [(30, 1), (40, 1), (50, 0)]


def test_wait_holds_a_boundary_until_a_row_at_or_after_it(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, {"views": "wait: 5 seconds"}, queries={"q": COUNT})
    rows(pipe, [1, 14.999999])
    assert ran(pipe) == [] and pipe.run()["waiting_for"] == ["views"]
    rows(pipe, [15])
    assert ran(pipe) == [10]


def test_each_stream_that_is_read_is_waited_for_and_no_other(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, {"views": "", "buys": "", "silent": ""}, queries={"q": BOTH})
    rows(pipe, [1, 35])
    assert ran(pipe) == [] and pipe.run()["waiting_for"] == ["buys"]
    rows(pipe, [2, 21], "buys")
    assert ran(pipe) == [10, 20] and pipe.run()["waiting_for"] == ["buys"]
    assert equal(pipe)


def test_an_idle_stream_holds_nothing_up(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, {"views": "", "buys": "idle: 1 minute"}, queries={"q": BOTH})
    now = boundary(10**6)
    restarted(pipe, clock=lambda: now)
    rows(pipe, [1, 35])
    rows(pipe, [2], "buys")
    assert ran(pipe) == []
    now += 61 * SECOND
    assert ran(pipe) == [10, 20, 30]
    assert equal(pipe)


def test_late_rows_count_from_the_next_boundary_on(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, {"views": "lateness: 15 seconds"}, queries={"q": COUNT})
    rows(pipe, [5, 30])
    assert ran(pipe) == [10, 20, 30]
    said = rows(pipe, [15, 14.9, 16, 41])
    assert said["streams"]["views"] == {"files": 1, "rows": 1, "quarantined": 1, "late": 2}
    assert ran(pipe) == [40]
    assert answers(pipe, "q") == [(10, 1), (20, 1), (30, 0), (40, 1)]      # 16 and 15 have left the window at 40
    assert equal(pipe)


def test_a_row_far_ahead_of_the_clock_moves_nothing(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, {"views": "ahead: 1 minute"}, queries={"q": COUNT})
    restarted(pipe, clock=lambda: boundary(0))
    assert rows(pipe, [5, 60.000001])["streams"]["views"]["quarantined"] == 1
    assert ran(pipe) == []
    assert rows(pipe, [60])["streams"]["views"]["quarantined"] == 0
    assert ran(pipe) == [10, 20, 30, 40, 50, 60]


def test_to_stops_and_completes_nothing(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [1, 45])
    assert ran(pipe, to=boundary(25)) == [10, 20]
    assert ran(pipe, to=boundary(1000)) == [30, 40]


def test_batches_counts_boundaries(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [1, 65])
    assert ran(pipe, batches=2) == [10, 20]
    assert ran(pipe, batches=1) == [30]
    assert ran(pipe) == [40, 50, 60]


def test_flush_ends_at_the_first_boundary_after_the_last_row(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, {"views": "wait: 1 hour", "buys": ""}, queries={"q": BOTH})
    rows(pipe, [1])
    rows(pipe, [30], "buys")
    assert ran(pipe) == []
    assert ran(pipe, flush=True) == [10, 20, 30, 40]
    assert ran(pipe, flush=True) == []
    assert equal(pipe)


def test_what_comes_after_a_flush_is_late(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, {"views": "lateness: 1 minute"}, queries={"q": COUNT})
    rows(pipe, [11])
    assert ran(pipe, flush=True) == [20]
    assert rows(pipe, [12, 25])["streams"]["views"]["late"] == 1
    assert ran(pipe, flush=True) == [30]
    assert answers(pipe, "q") == [(20, 1), (30, 3)] and equal(pipe)


def test_a_batch_coarser_than_every_boundary_answers_at_multiples_only(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path,
                    queries={"q": "SELECT COUNT(*) AS n FROM views AS v [WINDOW 20 SECONDS] EVERY 30 SECONDS"})
    rows(pipe, [1, 21, 65])
    assert ran(pipe) == [10, 20, 30, 40, 50, 60]
    assert answers(pipe, "q") == [(30, 1), (60, 0)]
    with pytest.raises(ForebayError, match="no answer of 'q' is published"):
        pipe.result("q", at=boundary(40))


def test_a_landmark_answers_at_every_boundary_also_when_nothing_comes(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": "SELECT COUNT(*) AS n, SUM(v.x) AS x FROM views AS v [WINDOW UNTIL NOW]"})
    rows(pipe, [1, 2, 55])
    ran(pipe)
    assert answers(pipe, "q") == [(t, 2, 2) for t in (10, 20, 30, 40, 50)]


def test_boundaries_without_a_query_are_skipped(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, {"views": "lateness: 1 hour"}, queries={"q": COUNT})
    rows(pipe, [1, 25])
    assert ran(pipe) == [10, 20]
    pipe.change("q", "pause")
    rows(pipe, [26, 95])
    assert ran(pipe) == []
    assert pipe.change("q", "resume")["effective"] == boundary(30)      # nothing has begun since
    assert ran(pipe) == [30, 40, 50, 60, 70, 80, 90]
    assert answers(pipe, "q")[:3] == [(10, 1), (20, 1), (30, 2)] and equal(pipe)


def test_a_long_gap_costs_next_to_nothing(tmp_path: Path) -> None:
    """3,000 empty boundaries."""
    pipe = pipeline(
        tmp_path, queries={
            "q": COUNT,
            "k": "SELECT v.k, COUNT(*) AS n FROM views AS v [WINDOW 1 MINUTE] GROUP BY v.k"
        })
    rows(pipe, [1])
    rows(pipe, [30_001])
    assert len(ran(pipe)) == 3_000
    assert pipe.runtime.ledger.last().batch.number < 100
    assert len(answers(pipe, "q")) == 3_000
    assert answers(pipe, "k") == [(t, 1, 1) for t in (10, 20, 30, 40, 50, 60)]


def test_a_gap_of_years_is_no_list_of_boundaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Grouping looks no further than the boundaries that it takes."""
    pipe = pipeline(tmp_path, {"views": "behind: for ever"}, batch="1 second", queries={"q": COUNT})
    rows(pipe, [1, 50 * 365 * 86400])
    restarted(pipe, clock=lambda: boundary(10**10))
    rows(pipe, [50 * 365 * 86400])
    monkeypatch.setattr(boundaries, "GROUP_BOUNDARIES", 3)
    monkeypatch.setattr(boundaries, "LONG", 10**12)
    assert len(ran(pipe, batches=3)) == 3


def test_a_boundary_waits_for_the_first_version_of_a_relation(tmp_path: Path) -> None:
    top = "relations: {pages: {columns: {k: bigint}, source: {files: pages.csv}}}\n"
    pipe = pipeline(
        tmp_path, queries={"q": "SELECT COUNT(*) AS n FROM views AS v [WINDOW 20 SECONDS], pages AS p WHERE v.k = p.k"},
        top=top)
    rows(pipe, [5, 15])
    for flush in (False, True):
        said = pipe.run(flush=flush)
        assert (said["ran"], said["next"], said["waiting_for"], said["without_version"]) == ([], boundary(10),
                                                                                             ["pages"], ["pages"])
    (tmp_path / "pages.csv").write_text("k\n1\n")
    pipe.ingest()
    assert ran(pipe) == [10] and answers(pipe, "q") == [(10, 1)] and pipe.run()["without_version"] == [] and equal(pipe)


@pytest.mark.parametrize(("before", "after", "code"), [("batch: 10 seconds", "batch: 5 seconds", "batch-changed"),
                                                       ("event_time: ts", "event_time: at", "event-time-changed"),
                                                       ("k: bigint", "k: int", "columns-changed")])
def test_what_rows_were_taken_in_for_cannot_change(tmp_path: Path, before: str, after: str, code: str) -> None:
    """Their `_boundary` would be another one: a wrong answer."""
    pipeline(tmp_path, queries={"q": COUNT})
    file = tmp_path / "forebay.yml"
    file.write_text(file.read_text().replace("x: bigint", "x: bigint, at: timestamp"))
    pipe = opened(tmp_path)
    rows(pipe, [5, 15, 25])
    assert ran(pipe, batches=1) == [10]
    file.write_text(file.read_text().replace(before, after))
    changed = opened(tmp_path)
    for wish in (changed.ingest, changed.run, changed.verify, lambda: changed.result("q"),
                 lambda: changed.create("other", COUNT)):
        with pytest.raises(ForebayError) as caught:
            wish()
        assert (caught.value.code, caught.value.exit_code) == (code, 2) and caught.value.hint
    file.write_text(file.read_text().replace(after, before))
    assert ran(opened(tmp_path)) == [20] and equal(opened(tmp_path))
