"""A pipeline's query with several windows from rows to results: any levels, with late rows and maintenance between, and
what explain says of it.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.maintenance import compact
from optimizer.errors import ForebayError
from optimizer.plan.model import Plan
from tests.jobs.pipelines import BEGINNING, SECOND, boundary, equal, forced, opened, pipeline, ran, rows

SQL = """SELECT v.k, System.Window().Id, COUNT(*) AS n, MAX(v.x) AS m, STDDEV(v.x) AS s FROM views v GROUP BY v.k,
    Windows(Window('20 s', TumblingWindow(second, 20)), Window('1 min', TumblingWindow(second, 60)),
            Window('2 min', HoppingWindow(second, 120, 60)))"""


EXTREMES = """SELECT v.k, System.Window().Id, MIN(v.x) AS least, MAX(v.x) AS most FROM views v GROUP BY v.k,
    Windows(Window('1 min', HoppingWindow(second, 60, 20)), Window('2 min', HoppingWindow(second, 120, 20)))"""


def check_levels(folder: Path, monkeypatch: pytest.MonkeyPatch, sql: str, form: Callable[[Plan], Plan]) -> None:
    """Batches, late rows, maintenance and new processes under a plan of this form, which keeps panes and one level."""
    monkeypatch.setattr(compact, "STATE_FILES", 3)
    forced(monkeypatch, form)
    pipe = pipeline(folder, {"views": "lateness: 5 minutes"}, queries={"all": sql})
    ran(pipe)
    pipe.change("all", "pin", "EAP1 recompute")
    for minute in range(6):
        rows(pipe, (60 * minute + s / 2 for s in range(120)), k=minute % 2, x=minute)
        rows(pipe, (max(60 * minute - 90 + s, 0) for s in range(5)), k=2, x=-minute)
        ran(pipe)
        pipe = opened(folder)
    ran(pipe, flush=True)
    assert equal(pipe) and len(pipe.result("all", every=True)) > 20
    state = {p.name for p in (folder / "warehouse" / "state" / "all").glob("*/*")}
    assert state == {"panes0", "level0_0"}


@pytest.mark.slow
def test_levels_hold_over_batches_late_rows_and_maintenance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_levels(tmp_path, monkeypatch, SQL, lambda plan: replace(plan, sharing="together", levels=(60 * SECOND,)))


@pytest.mark.slow
def test_overlapping_levels_hold_over_batches_late_rows_and_maintenance(tmp_path: Path,
                                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    """Two minutes of every 20 seconds from one minute of every 20: four instances, where their panes are six."""
    check_levels(tmp_path, monkeypatch, EXTREMES,
                 lambda plan: replace(plan, levels=(60 * SECOND,), hops=(20 * SECOND,)))


def test_explain_shows_the_windows_and_what_is_shared(tmp_path: Path) -> None:
    found = pipeline(tmp_path).explain(SQL)
    graph = "Windows as written: 4 panes and instances a boundary and group\npanes of 20 s\n├─ 20 s, 20 s every 20 s: 1"
    assert graph in found["tree"]
    early = next(c for c in found["candidates"] if c["plan"] == "EAP1 recompute")
    assert early["sharing"] in ("each", "together") and early["levels"] in ([], ["1 min"])


@pytest.mark.parametrize("lengths,code", [("second, 15", "bad-window"), ("second, 0", "bad-length"),
                                          ("second, -20", "bad-length"), ("second, 60", "duplicate-window")])
def test_lengths_that_cannot_be(tmp_path: Path, lengths: str, code: str) -> None:
    pipe = pipeline(tmp_path)
    with pytest.raises(ForebayError) as caught:
        pipe.create("bad", SQL.replace("second, 20", lengths))
    assert caught.value.code == code and caught.value.line in (1, 2, 3) and caught.value.hint


@pytest.mark.slow
def test_between_the_slides_of_all_windows_nothing_is_published(tmp_path: Path) -> None:
    """Slides of 20 and 30 seconds: no window ends at 10 or 50."""
    pipe = pipeline(
        tmp_path, queries={
            "q": """SELECT v.k, System.Window().Id, COUNT(*) AS n FROM views AS v TIMESTAMP BY ts
        GROUP BY v.k, Windows(Window('a', TumblingWindow(second, 20)), Window('b', TumblingWindow(second, 30)))"""
        })
    rows(pipe, range(1, 62))
    entries = pipe.run(flush=True)["ran"]
    assert [[(e["boundary"] - BEGINNING) // SECOND, list(e["plans"])] for e in entries] == [
        [10, []], [20, ["q"]], [30, ["q"]], [40, ["q"]], [50, []], [60, ["q"]], [70, []]]
    for second in (10, 50, 70):
        with pytest.raises(ForebayError) as caught:
            pipe.result("q", at=boundary(second))
        assert (caught.value.code, caught.value.exit_code) == ("unknown-boundary", 2)
    assert pipe.verify()["queries"]["q"]["boundaries"] == 4 and equal(pipe)
