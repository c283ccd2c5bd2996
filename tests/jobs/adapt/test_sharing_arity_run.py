"""Queries that join other streams on other keys, as one work: paper E's Q1 to Q7 by default, whoever comes, goes or
fails, however tasks divide it.
"""
from __future__ import annotations

from collections import Counter
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

import forebay
from forebay.text import query as shown_query
from jobs.adapt import sharing
from jobs.engine.tasks import Tasks
from jobs.papers.benches.arity import PAPER, AritySetting, make, paper_queries, query, written
from jobs.storage import failpoints
from optimizer.sharing.price import STATED
from tests.jobs.pipelines import equal, opened

pytestmark = pytest.mark.slow

SETTING = AritySetting(rate=10, window=20, batch=10, keys=12, copies=(1,))


def paper(folder: Path, more: str = "") -> forebay.Pipeline:
    """Q1 to Q7 with rows of some batches, none of them answered yet."""
    written(str(folder), SETTING, f"spark: {{master: inline}}\n{more}")
    make(str(folder / "landing"), SETTING)
    (folder / "queries").mkdir()
    for name, text in paper_queries(SETTING.window).items():
        (folder / "queries" / f"{name}.sql").write_text(text)
    pipe = opened(folder)
    pipe.ingest()
    return pipe


def groups(pipe: forebay.Pipeline) -> list[set[str]]:
    last = pipe.runtime.ledger.last()
    return [set(names) for names in last.batch.query_groups.values()] if last else []


def shown(pipe: forebay.Pipeline, name: str) -> dict[str, object]:
    return next(q for q in pipe.queries() if q["query"] == name)


@pytest.mark.parametrize("width, tasks", [(1, "files"), (2, "one task"), (3, "one task")])
def test_the_papers_queries_share_with_default_thresholds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int,
                                                          tasks: str) -> None:
    """With few rows one task is cheapest; on one processor it is the same."""
    monkeypatch.setattr(Tasks, "width", property(lambda tasks: width))
    pipe = paper(tmp_path)
    pipe.loop.run(flush=True, limit=2)
    assert groups(pipe) == [set(PAPER)] and equal(pipe)
    out = StringIO()
    shown_query(shown(pipe, "Q3"))(out)
    assert "shares with" in out.getvalue() and tasks in out.getvalue() and "s together and" in out.getvalue()


def test_tasks_divide_the_files_of_a_stream_that_all_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All seven read the views; a query that does not makes it one task's work, until it goes."""
    monkeypatch.setattr(Tasks, "width", property(lambda tasks: 2))
    monkeypatch.setattr(sharing, "machine_costs", lambda unit_costs: replace(STATED, task=0.0))
    pipe = paper(tmp_path)
    pipe.loop.run(flush=True, limit=1)
    assert shown(pipe, "Q1")["way"] == {"split": "before", "exchange": "slice", "divided": "w"}
    pipe.create("Q8", "SELECT COUNT(*) AS n FROM c [WINDOW 10 SECONDS], r [WINDOW 20 SECONDS] WHERE c.usr = r.usr")
    pipe.loop.run(flush=True, limit=1)
    assert groups(pipe) == [{*PAPER, "Q8"}] and shown(pipe, "Q1")["way"]["tasks"] == 1      # type: ignore[index]
    again = opened(tmp_path)
    again.change("Q8", "delete")
    again.loop.run(flush=True, limit=1)
    assert groups(again) == [set(PAPER)] and equal(again)


def test_where_they_are_dearer_together_the_decision_says_by_how_much(tmp_path: Path,
                                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "machine_costs", lambda unit_costs: replace(STATED, shared_row=1.0))
    pipe = paper(tmp_path)
    pipe.loop.run(flush=True, limit=1)
    assert groups(pipe) == [] and equal(pipe)
    told = str(shown(pipe, "Q7")["alone"])
    assert "with 6 queries of other forms on its streams" in told and "s together, 0.35 s apart" in told


def test_queries_come_go_and_are_replaced_by_others_of_another_arity(tmp_path: Path) -> None:
    pipe = paper(tmp_path)
    pipe.loop.run(flush=True, limit=1)
    pipe.change("Q4", "delete")      # the changes of the paper's section 4: Q4 goes, another of W and C comes
    pipe.create("Q9", query("w c", "c.photo IS NULL", 20))
    pipe.create("Q5", PAPER_Q5_OF_THREE, replace=True)
    pipe.loop.run(flush=True, limit=1)
    assert groups(pipe) == [{*PAPER, "Q9"} - {"Q4"}]
    pipe.change("Q6", "pause"), pipe.change("Q2", "pin", "LAP recompute")
    pipe = opened(tmp_path)
    pipe.loop.run(flush=True, limit=1)
    assert groups(pipe) == [{*PAPER, "Q9"} - {"Q4", "Q6", "Q2"}]
    pipe.change("Q6", "resume"), pipe.change("Q2", "unpin")
    pipe.loop.run(flush=True, limit=1)
    assert groups(pipe) == [{*PAPER, "Q9"} - {"Q4"}] and equal(pipe)


PAPER_Q5_OF_THREE = query("v w c", "w.geo = 'GER'", 20).replace("w.geo AS g", "v.lang AS g").replace(
    "GROUP BY w.geo", "GROUP BY v.lang").replace("MAX(c.length)", "SUM(c.length)")


def test_where_tasks_decide_adapt_makes_the_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its decisions hold how tasks divide it, all members alike; newcomers run apart until it is asked again."""
    monkeypatch.setattr(Tasks, "width", property(lambda tasks: 2))
    pipe = paper(tmp_path, "decide: task\n")
    pipe.loop.run(flush=True, limit=1)
    assert groups(pipe) == [] and len(pipe.adapt()["decisions"]) == 7
    pipe.create("Q9", query("w c", "c.photo IS NULL", 20))
    pipe.loop.run(flush=True, limit=1)
    assert groups(pipe) == [{*PAPER, "Q9"}] and "one task" in str(pipe.plans("Q1")["decisions"][-1]["reason"])
    assert pipe.adapt()["decisions"]
    pipe.loop.run(flush=True, limit=1)
    assert groups(pipe) == [{*PAPER, "Q9"}] and equal(pipe)


def cheap_joins(patch: pytest.MonkeyPatch) -> None:
    """A join that several forms have in common is made once wherever it can: its statements are priced at nothing."""
    patch.setattr(sharing, "machine_costs", lambda unit_costs: replace(STATED, joined_once=0.0, joined_cells=0.0))


@pytest.mark.parametrize("width", [1, 2])
def test_a_join_of_several_forms_is_made_once_where_it_pays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                            width: int) -> None:
    """The first batch counts, the next goes by it, a process after it goes on so, and Q6 is of another join without Q2.
    """
    cheap_joins(monkeypatch)
    monkeypatch.setattr(Tasks, "width", property(lambda tasks: width))
    pipe = paper(tmp_path)
    pipe.loop.run(flush=True, limit=1)
    assert "joined_once" not in shown(pipe, "Q2")["way"]      # type: ignore[operator]
    for again in (pipe, opened(tmp_path)):
        again.loop.run(flush=True, limit=1)
        assert shown(again, "Q7")["way"]["joined_once"] == ["c", "w"] and equal(again)      # type: ignore[index]
    out = StringIO()
    shown_query(shown(again, "Q3"))(out)
    assert "c ⋈ w is made once for several forms" in out.getvalue() and "s by each form for itself" in out.getvalue()
    again.change("Q7", "delete"), again.change("Q3", "delete")
    again.loop.run(flush=True, limit=2)
    assert groups(again) == [set(PAPER) - {"Q7", "Q3"}] and equal(again)


def test_where_it_does_not_pay_the_decision_says_by_how_much(tmp_path: Path) -> None:
    pipe = paper(tmp_path)
    pipe.loop.run(flush=True, limit=2)
    told, out = shown(pipe, "Q1"), StringIO()
    shown_query(told)(out)
    assert "joined_once" not in told["way"] and equal(pipe)      # type: ignore[operator]
    assert "v 20 s ⋈ w 20 s on vid = vid: 0.11" in out.getvalue() and "tuples" in out.getvalue()


def test_a_batch_that_is_run_again_makes_the_joins_of_its_intent(tmp_path: Path,
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    cheap_joins(monkeypatch)
    pipe = paper(tmp_path)
    pipe.loop.run(flush=True, limit=1)
    monkeypatch.setattr(failpoints, "_passes", Counter())
    monkeypatch.setenv("FOREBAY_FAILPOINT", "batch.after-intent:1:raise")
    with pytest.raises(failpoints.Reached):
        pipe.loop.run(flush=True, limit=1)
    monkeypatch.delenv("FOREBAY_FAILPOINT")
    monkeypatch.setattr(sharing, "machine_costs", lambda unit_costs: STATED)
    again = opened(tmp_path)
    again.loop.run(flush=True, limit=1)
    last = again.runtime.ledger.last()
    assert last is not None and last.batch.plans["Q7"].read_joined and equal(again)
