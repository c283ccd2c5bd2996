"""Requests: what is allowed when, from which boundary it counts, and what stays readable."""
from __future__ import annotations

from pathlib import Path

import pytest

from jobs.requests import requests
from jobs.results import history
from optimizer.errors import ForebayError
from tests.jobs.pipelines import COUNT, answers, boundary, equal, opened, pipeline, ran, rows

pytestmark = pytest.mark.slow

SUM = "SELECT COUNT(*) AS n, SUM(v.x) AS x FROM views AS v [WINDOW 20 SECONDS]"
FAILS = "SELECT SUM(10 % v.x) AS r FROM views AS v [WINDOW 20 SECONDS]"


def refused(code: str, call: object, *args: object) -> None:
    with pytest.raises(ForebayError) as caught:
        call(*args)      # type: ignore[operator]
    assert (caught.value.code, caught.value.exit_code) == (code, 2)
    assert caught.value.hint


def test_effective_is_null_until_there_is_a_row(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path)
    assert pipe.create("early", COUNT)["effective"] is None
    rows(pipe, [5, 25])
    assert pipe.create("first", COUNT)["effective"] == boundary(10)
    assert pipe.query("early")["effective"] == boundary(10), "the first boundary, now that there is one"
    assert ran(pipe) == [10, 20]
    assert pipe.query("early")["effective"] == boundary(10)
    assert pipe.create("later", COUNT)["effective"] == boundary(30)
    assert answers(pipe, "early") == answers(pipe, "first") == [(10, 1), (20, 1)]


def test_a_query_answers_at_its_first_boundary_from_all_history(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"base": COUNT})
    rows(pipe, [1, 2, 15, 25])
    ran(pipe)
    pipe.create("all", "SELECT COUNT(*) AS n FROM views AS v [WINDOW UNTIL NOW]")
    pipe.create("rows",
                "SELECT a.x, b.k FROM views AS a [WINDOW 1 MINUTE], views AS b [WINDOW 1 MINUTE] WHERE a.k = b.k")
    rows(pipe, [35])
    assert ran(pipe) == [30]
    assert answers(pipe, "all") == [(30, 4)]
    assert len(answers(pipe, "rows")) == 16 and equal(pipe)


def test_pause_and_delete_give_no_answer_from_there_on_and_keep_the_others(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"base": COUNT, "q": COUNT, "d": COUNT})
    rows(pipe, [1, 25])
    ran(pipe)
    assert pipe.change("q", "pause")["effective"] == pipe.change("d", "delete")["effective"] == boundary(30)
    rows(pipe, [45])
    ran(pipe)
    assert [t for t, _ in answers(pipe, "base")] == [10, 20, 30, 40]
    assert [t for t, _ in answers(pipe, "q")] == [t for t, _ in answers(pipe, "d")] == [10, 20]
    assert pipe.change("q", "resume")["effective"] == boundary(50)
    rows(pipe, [55])
    ran(pipe)
    assert [t for t, _ in answers(pipe, "q")] == [10, 20, 50] and equal(pipe)


def test_names_are_used_again(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [1, 25])
    ran(pipe)
    refused("query-exists", pipe.create, "q", COUNT)
    pipe.change("q", "delete")
    refused("columns-differ", pipe.create, "q", SUM)
    again = pipe.create("q", COUNT.replace("20 SECONDS", "10 SECONDS"))
    assert (again["table"], again["effective"]) == ("results/q", boundary(30))
    rows(pipe, [36])
    ran(pipe)
    assert answers(pipe, "q") == [(10, 1), (20, 1), (30, 1)] and equal(pipe)


def test_other_columns_are_null_in_the_answers_so_far(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [1, 25])
    ran(pipe)
    assert pipe.create("q", SUM, replace=True)["table"] == "results/q"
    rows(pipe, [36])
    ran(pipe)
    assert answers(pipe, "q") == [(10, 1, None), (20, 1, None), (30, 1, 1)] and equal(pipe)
    assert pipe.create("q", COUNT, replace=True)["table"] == "results/q"


def test_one_fails_and_the_others_go_on(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"base": COUNT, "bad": FAILS})
    rows(pipe, [1, 11])
    rows(pipe, [25], x=0)
    rows(pipe, [75])
    entries = pipe.run()["ran"]
    assert [list(e["failed"]) for e in entries] == [[], [], ["bad"], [], [], [], []]
    assert [t for t, _ in answers(pipe, "base")] == [10, 20, 30, 40, 50, 60, 70]
    assert [t for t, _ in answers(pipe, "bad")] == [10, 20]
    with pytest.raises(ForebayError) as caught:
        pipe.result("bad")
    assert caught.value.exit_code == 1
    assert pipe.change("bad", "resume")["effective"] == boundary(80)
    rows(pipe, [95])
    ran(pipe)
    assert [t for t, _ in answers(pipe, "bad")] == [10, 20, 80, 90] and equal(pipe)


def test_a_failure_does_not_undo_what_was_asked_for_later_boundaries(tmp_path: Path) -> None:
    """The failure at 10 is found while a replacement from 20 on is in the ledger already."""
    pipe = pipeline(tmp_path)
    pipe.create("q", FAILS)
    rows(pipe, [1], x=0)
    rows(pipe, [25])
    ledger = pipe.runtime.ledger
    assert ledger.begin(boundary(10), ledger.changes_version())
    pipe.create("q", COUNT, replace=True)
    assert ran(pipe) == [10, 20]
    assert requests.show(pipe.runtime, "q").is_active
    assert answers(pipe, "q") == [(20, 1)]


@pytest.mark.parametrize(("state", "action", "ok"), [("active", "resume", False), ("paused", "pause", False),
                                                     ("deleted", "resume", False), ("deleted", "delete", False),
                                                     ("paused", "delete", True),])
def test_what_can_follow_what(state: str, action: str, ok: bool, tmp_path: Path) -> None:
    pipe = pipeline(tmp_path)
    pipe.create("q", COUNT)
    for done in {"active": [], "paused": ["pause"], "deleted": ["delete"]}[state]:
        pipe.change("q", done)
    if ok:
        assert pipe.change("q", action)["state"] == "deleted"
    else:
        refused("wrong-state", pipe.change, "q", action)


def test_too_many_queries_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "MOST_QUERIES", 3)
    pipe = pipeline(tmp_path)
    for name in "abc":
        pipe.create(name, COUNT)
    refused("too-many-queries", pipe.create, "d", COUNT)
    pipe.change("a", "delete")
    assert pipe.create("d", COUNT)["state"] == "active"


def test_many_queries_are_one_request_or_none(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path)
    rows(pipe, [1, 15])
    texts = {name: COUNT for name in "abc"}
    assert set(pipe.create_together(texts).values()) == {boundary(10)}
    assert pipe.runtime.ledger.changes.version == 1
    assert ran(pipe) == [10] and all(pipe.result(name)["n"].tolist() == [1] for name in texts)
    with pytest.raises(ForebayError, match="e: no stream or relation"):
        pipe.create_together({"d": COUNT, "e": "SELECT COUNT(*) FROM nothing [WINDOW 1 HOUR]"})
    refused("query-exists", pipe.create_together, {"d": COUNT, "a": SUM})
    assert [query["query"] for query in pipe.queries()] == [*"abc"]
    assert set(pipe.create_together({"a": COUNT, "d": COUNT}, replace=True)) == {"a", "d"}


def test_a_pin_stays_with_a_name_as_far_as_its_new_text_has_the_plan(tmp_path: Path) -> None:
    """A query of joined rows has no EAP1: it is not pinned, and runs."""
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [1, 15])
    ran(pipe)
    pipe.change("q", "pin", "EAP1 expire")
    assert pipe.create("q", COUNT.replace("20 SECONDS", "10 SECONDS"), replace=True)["pinned"] == "EAP1 expire"
    assert pipe.create("q", "SELECT v.x FROM views AS v [WINDOW 20 SECONDS]", replace=True)["pinned"] is None
    rows(pipe, [31])
    assert ran(pipe) == [20, 30] and equal(pipe)


def test_what_is_wrong_with_a_request_is_said_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two creations of one name, the deletion of an unknown one, one query more than there may be; nothing changes."""
    pipe = pipeline(tmp_path)
    pipe.create("a", COUNT)
    monkeypatch.setattr(requests, "MOST_QUERIES", 1)
    calls = {"there is a query 'a' already (active); give --replace, or another name": lambda: pipe.create("a", SUM),
             "there is no query 'nobody'; there are a": lambda: pipe.change("nobody", "delete"),
             "there are 1 queries in force, at most 1 are possible; delete some first": lambda: pipe.create("b", COUNT)}
    for text, call in calls.items():
        with pytest.raises(ForebayError) as caught:
            call()
        assert f"{caught.value.message}; {caught.value.hint}" == text
    assert [(q["query"], q["state"]) for q in pipe.queries()] == [("a", "active")]


def test_unknown_and_bad_names(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path)
    refused("unknown-query", pipe.change, "nobody", "pause")
    for name in ("", "1a", "a b", "ä", "a" * 65, "../up"):
        refused("bad-name", pipe.create, name, COUNT)


def test_files_become_queries_and_later_differences_are_said_not_applied(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT, "r": COUNT})
    rows(pipe, [1, 15])
    ran(pipe)
    (tmp_path / "queries/q.sql").write_text(SUM)
    (tmp_path / "queries/r.sql").unlink()
    (tmp_path / "queries/s.sql").write_text(COUNT)
    pipe = opened(tmp_path)
    notices = requests.synchronise(pipe.runtime)
    assert [n.query for n in notices] == ["q", "r"]
    assert {q["query"]: q["state"] for q in pipe.queries()} == {"q": "active", "r": "active", "s": "active"}


def test_a_file_with_a_wrong_name_is_named(tmp_path: Path) -> None:
    with pytest.raises(ForebayError) as caught:
        pipeline(tmp_path, queries={"1st": COUNT}).synchronise()
    assert caught.value.code == "bad-name" and "queries/1st.sql" in caught.value.message


JOINS = {
    1: "SELECT b.k, COUNT(*) AS n FROM b AS b [WINDOW 20 SECONDS] GROUP BY b.k",
    2: "SELECT b.k, COUNT(*) AS n FROM a AS a [WINDOW 20 SECONDS], b AS b [WINDOW 20 SECONDS] WHERE a.k = b.k GROUP BY "
       "b.k",
    3: """SELECT b.k, COUNT(*) AS n FROM a AS a [WINDOW 20 SECONDS], b AS b [WINDOW 20 SECONDS], c AS c [WINDOW 20
    SECONDS]
               WHERE a.k = b.k AND b.k = c.k GROUP BY b.k"""
}


@pytest.mark.parametrize("reopened", [False, True], ids=["same process", "new process"])
@pytest.mark.parametrize("before,after", [(2, 1), (1, 2), (1, 3), (2, 3), (3, 1), (3, 2)])
def test_a_replacement_may_read_another_number_of_inputs(tmp_path: Path, before: int, after: int,
                                                         reopened: bool) -> None:
    """What was decided and measured of the text before it is not the new one's: not in this process, not in the ledger.
    """
    pipe = pipeline(tmp_path, {"a": "", "b": "", "c": ""})
    for stream in "abc":
        rows(pipe, range(0, 60, 5), stream, k=[second % 3 for second in range(12)])
    pipe.create("q", JOINS[before])
    assert ran(pipe, batches=2) == [10, 20]
    pipe.create("q", JOINS[after], replace=True)
    pipe = opened(tmp_path) if reopened else pipe
    assert ran(pipe, flush=True) == [30, 40, 50, 60] and equal(pipe)
    entries = pipe.plans("q")["decisions"]
    assert [e["boundary"] for e in entries if e["switched_from"]] == [], "the first plan of a new text is no switch"
    assert [len(span.query.inputs) for span in history.spans(pipe.runtime, "q")] == [before, after]


def test_a_later_request_is_never_in_force_before_an_earlier_one(tmp_path: Path) -> None:
    """An older row arrives between two requests, so the first boundary is an earlier one than the first request named.
    """
    pipe = pipeline(tmp_path)
    rows(pipe, [605])
    assert pipe.create("q", COUNT)["effective"] == boundary(610)
    rows(pipe, [5])
    ended = pipe.change("q", "delete")
    assert (ended["state"], ended["effective"]) == ("deleted", boundary(610))
    assert ran(pipe, flush=True) == []


def test_a_later_replacement_wins_also_where_an_older_row_came_between(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path)
    rows(pipe, [605])
    pipe.create("q", COUNT)
    rows(pipe, [5])
    assert pipe.create("q", SUM, replace=True)["effective"] == boundary(610)
    assert ran(pipe, flush=True) == [610]
    assert answers(pipe, "q") == [(610, 1, 1)] and equal(pipe)
    assert pipe.change("q", "pause")["effective"] == boundary(620)


def test_a_run_names_no_plan_for_a_query_that_did_not_answer(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"base": COUNT, "bad": FAILS})
    rows(pipe, [1, 11])
    rows(pipe, [25], x=0)
    rows(pipe, [45])
    assert [sorted(e["plans"]) for e in pipe.run()["ran"]] == [["bad", "base"], ["bad", "base"], ["base"], ["base"]]
