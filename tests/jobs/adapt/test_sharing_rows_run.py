"""Row queries that share one work: each combination once a query, whoever comes, goes, fails or dies on the way."""
from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

import forebay
from jobs.engine import memory
from jobs.storage import failpoints
from tests.jobs.adapt.test_sharing_run import filled, four, private, request_of_any_kind, shown, varied
from tests.jobs.pipelines import answers, boundary, cheap_sharing, equal, opened, pipeline, ran, restarted, rows

pytestmark = pytest.mark.slow

JOINED = ("SELECT {shown} FROM views AS a [WINDOW 20 SECONDS], clicks AS b [WINDOW 30 SECONDS] WHERE a.k = b.k AND "
          "{where}")


def joined(where: str, shown: str = "a.x, b.x AS y") -> str:
    return JOINED.format(shown=shown, where=where)


def five() -> dict[str, str]:
    """Of one form; two of them show other columns, two select the same rows."""
    return {
        "q1": joined("a.x < 1"),
        "q2": joined("a.x < 2 AND b.x > 0"),
        "q3": joined("a.x < 2 AND b.x > 0", "*"),
        "q4": joined("b.x <> 2", "a.x + b.x AS both"),
        "q5": joined("b.x >= 2")
    }


def arrive(pipe: forebay.Pipeline, at: float) -> None:
    for x in range(3):
        rows(pipe, [at + x], "views", k=x % 2, x=x)
        rows(pipe, [at + x + 0.5], "clicks", k=x % 2, x=x + 1)


def groups(pipe: forebay.Pipeline) -> list[set[str]]:
    last = pipe.runtime.ledger.last()
    assert last is not None
    return [set(names) for names in last.batch.query_groups.values()]


def test_row_queries_of_one_form_are_one_work_and_each_gets_its_own_rows(tmp_path: Path) -> None:
    pipe = filled(tmp_path, five())
    assert ran(pipe) == [10, 20] and groups(pipe) == [{"q1", "q2", "q3", "q4", "q5"}]
    for at in (31, 45, 52):
        arrive(pipe, at)
        ran(pipe)
    assert equal(pipe) and all(answers(pipe, name) for name in five())
    # one private table for each list of columns, and nothing left in them
    assert len(private(pipe.runtime)) == 3 and not any(pipe.runtime.table(t).files() for t in private(pipe.runtime))
    assert shown(pipe, "q1")["shares_with"] == ["q2", "q3", "q4", "q5"]
    assert shown(pipe, "q1")["way"] == {"split": "after", "exchange": "partition", "divided": None}


def test_a_newcomer_gets_all_of_the_history_and_the_others_go_on(tmp_path: Path) -> None:
    pipe = filled(tmp_path, five())
    ran(pipe)
    assert pipe.create("late", joined("a.x >= 0"))["effective"] == boundary(30)
    arrive(pipe, 31)
    ran(pipe)
    assert {t for t, *_ in answers(pipe, "late")} == {30} and groups(pipe)[0] > {"late"}
    pipe = restarted(opened(tmp_path))
    arrive(pipe, 45)
    ran(pipe)
    assert equal(pipe)


def test_who_leaves_comes_back_pauses_or_is_replaced_gets_each_combination_once(tmp_path: Path) -> None:
    pipe = restarted(filled(tmp_path, five()), share_from=4)
    ran(pipe)
    for at, name, change in ((31, "q1", "pin"), (45, "q2", "pause"), (55, "q1", "unpin"), (66, "q2", "resume"),
                             (75, "q5", "delete")):
        pipe.change(name, change, *(["LAP recompute"] if change == "pin" else []))
        arrive(pipe, at)
        ran(pipe)
        assert equal(pipe)
    assert groups(pipe) == [{"q1", "q2", "q3", "q4"}]
    pipe.change("q3", "delete")
    arrive(pipe, 85)
    ran(pipe)
    assert groups(pipe) == [] and equal(pipe)      # too few are left, and each goes on by itself


def test_where_tasks_decide_adapt_forms_the_group_and_newcomers_join_it(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, {"views": "", "clicks": ""}, queries=five(), top="decide: task\n")
    arrive(pipe, 1), arrive(pipe, 12)
    assert ran(pipe) == [10] and groups(pipe) == []
    decisions = pipe.adapt()["decisions"]
    assert len(decisions) == 5 and "one work answers 5 queries, split after" in decisions[0]["reason"]
    arrive(pipe, 22)
    assert ran(pipe) == [20] and groups(pipe) == [{"q1", "q2", "q3", "q4", "q5"}]
    pipe.create("late", joined("a.x >= 0"))
    arrive(pipe, 32)
    assert ran(pipe) == [30] and "late" in groups(pipe)[0] and equal(pipe)


def test_queries_of_coarser_boundaries_are_a_group_of_their_own(tmp_path: Path) -> None:
    coarse = {f"c{n}": sql + " EVERY 20 SECONDS" for n, sql in enumerate(five().values())}
    pipe = filled(tmp_path, {**five(), **coarse})
    for at in (31, 45, 52, 66):
        ran(pipe)
        arrive(pipe, at)
    ran(pipe)
    assert len(groups(pipe)) == 2 and {t for t, *_ in answers(pipe, "c1")} <= {20, 40, 60} and equal(pipe)


def test_an_expression_fails_the_queries_whose_rows_need_it(tmp_path: Path) -> None:
    """A division by zero on rows that q2 does not select; q1 and its twin with another SELECT list fail."""
    queries = {"q1": joined("a.x < 2", "10 % a.x AS r"), "q2": joined("a.x > 0", "10 % a.x AS r"),
               "q3": joined("a.x < 2"), "q4": joined("a.x < 3")}
    pipe = pipeline(tmp_path, {"views": "", "clicks": ""}, queries=queries)
    rows(pipe, [1, 12], "views", x=1), rows(pipe, [2, 12], "clicks")
    assert ran(pipe) == [10] and groups(pipe) == [{"q1", "q2", "q3", "q4"}]
    rows(pipe, [13, 35], "views", x=[0, 2]), rows(pipe, [35], "clicks")
    ran(pipe)
    states = {q["query"]: q["state"] for q in pipe.queries()}
    assert states == {"q1": "failed", "q2": "active", "q3": "active", "q4": "active"}
    assert equal(pipe) and {t for t, *_ in answers(pipe, "q1")} == {10}


def test_after_a_crash_queries_without_any_row_become_public_as_well(tmp_path: Path,
                                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = filled(tmp_path, five())
    ran(pipe)
    pipe.create("none", joined("a.x > 100"))
    arrive(pipe, 31)
    monkeypatch.setattr(failpoints, "_passes", Counter())
    monkeypatch.setenv("FOREBAY_FAILPOINT", "batch.after-commit:1:raise")
    with pytest.raises(failpoints.Reached):
        pipe.run()
    monkeypatch.delenv("FOREBAY_FAILPOINT")
    again = opened(tmp_path)
    again.run()
    assert equal(again) and answers(again, "none") == [] and answers(again, "q5")


@pytest.mark.parametrize("count", [1, 3])
def test_a_condition_across_inputs_that_cannot_be_decided_fails_the_query(tmp_path: Path, count: int) -> None:
    """Alone as well as among others: such a row was published once."""
    queries = {f"q{n}": joined(f"a.x % b.x >= 0 AND a.x > {n}") for n in range(count)}
    pipe = pipeline(tmp_path, {"views": "", "clicks": ""}, queries=queries)
    rows(pipe, [1, 12, 15, 35], "views", x=[1, 0, 1, 1]), rows(pipe, [2, 12, 35], "clicks", x=[3, 0, 1])
    ran(pipe)
    states = [q["state"] for q in sorted(pipe.queries(), key=lambda q: str(q["query"]))]
    assert states == ["failed", "active", "active"][:count] and {t for t, *_ in answers(pipe, "q0")} == {10}
    assert all(not q["differences"] for name, q in pipe.verify()["queries"].items())


@pytest.mark.parametrize("point", ["batch.after-intent", "batch.after-tasks", "batch.after-table",
                                   "batch.before-commit", "batch.after-commit", "address.after-table"])
def test_a_crash_anywhere_loses_and_doubles_no_row(tmp_path: Path, point: str,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = filled(tmp_path, five())
    ran(pipe)
    pipe.create("late", joined("a.x >= 0"))
    arrive(pipe, 31)
    arrive(pipe, 41)
    monkeypatch.setattr(failpoints, "_passes", Counter())
    monkeypatch.setenv("FOREBAY_FAILPOINT", f"{point}:2:raise" if point.endswith("-table") else f"{point}:1:raise")
    with pytest.raises(failpoints.Reached):
        pipe.run()
    monkeypatch.delenv("FOREBAY_FAILPOINT")
    again = opened(tmp_path)
    again.run()
    arrive(again, 55)
    again.run()
    assert equal(again) and {t for t, *_ in answers(again, "q5")} == {10, 20, 30, 40, 50}


def test_single_streams_and_three_inputs_share_as_well(tmp_path: Path) -> None:
    three = ("SELECT a.x, b.x AS y, c.x AS z FROM views AS a [WINDOW 20 SECONDS], clicks AS b [WINDOW 30 SECONDS], "
             "views AS c [WINDOW 10 SECONDS TUMBLING] WHERE a.k = b.k AND b.k = c.k AND a.x < {n}")
    one = "SELECT * FROM views AS a [WINDOW 20 SECONDS] WHERE a.x < {n}"
    queries = {f"{name}{n}": sql.format(n=n) for n in range(1, 4) for name, sql in (("one", one), ("three", three))}
    pipe = filled(tmp_path, queries)
    for at in (31, 45, 52):
        ran(pipe)
        arrive(pipe, at)
    ran(pipe)
    assert sorted(map(sorted, groups(pipe))) == [["one1", "one2", "one3"], ["three1", "three2", "three3"]]
    assert equal(pipe) and answers(pipe, "three3")


def test_rows_too_many_for_the_driver_are_copied_by_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "partials_of_driver", lambda settings: 0)
    pipe = filled(tmp_path, five())
    for at in (31, 45):
        ran(pipe)
        arrive(pipe, at)
    ran(pipe)
    assert equal(pipe) and answers(pipe, "q4")


SELECTED = ("a.x < {n}", "b.x >= {n}", "a.x = {n}", "a.k IN (0, {n})", "b.x IS NOT NULL")
SHOWN = ("a.x, b.x AS y", "*", "a.x - b.x AS d, a.k", "b.ts AS t, a.x")
KILLS = ("batch.after-mark", "batch.after-intent", "batch.after-tasks", "batch.after-table", "batch.after-results",
         "batch.before-commit", "batch.after-commit", "address.after-table", "address.after-results",
         "address.after-latest", "address.after-boundaries")


def storm(folder: Path, seed: int, steps: int, changes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> int:
    """Random requests, most of them of row queries, rows, and kills; gives how many changes were made."""
    choice, made = Random(seed), 0
    pipe = filled(folder, {**five(), **four()})
    pipe.synchronise()
    at = 27.0
    for step in range(steps):
        for _ in range(choice.choice(changes)):
            made += _change(pipe, choice, f"n{step}")
        at += choice.choice([1, 6, 14])
        for stream in ("views", "clicks"):
            late = choice.choice([0, 0, 9])
            rows(pipe, [at - late, at + choice.random() * 5], stream, k=choice.randrange(3), x=choice.randrange(-3, 6))
        if choice.random() < 0.3:
            pipe = _killed(pipe, choice, monkeypatch)
        if choice.random() < 0.7:
            pipe.run()
        if choice.random() < 0.1:
            pipe = opened(folder)
    pipe.run(flush=True)
    assert equal(pipe), seed
    return made


def _killed(pipe: forebay.Pipeline, choice: Random, monkeypatch: pytest.MonkeyPatch) -> forebay.Pipeline:
    """A run that dies at some place, if it gets there, and what is left for the next one."""
    monkeypatch.setattr(failpoints, "_passes", Counter())
    monkeypatch.setenv("FOREBAY_FAILPOINT", f"{choice.choice(KILLS)}:{choice.choice([1, 1, 2, 4])}:raise")
    try:
        pipe.run()
    except failpoints.Reached:
        pass
    monkeypatch.delenv("FOREBAY_FAILPOINT")
    return opened(Path(pipe.runtime.pipeline.folder))


def _text(choice: Random) -> str:
    """A row query of one of few forms: of two or three inputs, or one, due at each boundary or at some."""
    sides = choice.sample(SELECTED, choice.choice([0, 1, 2]))
    text = joined(" AND ".join(["TRUE", *(side.format(n=choice.randrange(-1, 5)) for side in sides)]),
                  choice.choice(SHOWN))
    text = text.replace("30 SECONDS", choice.choice(["30 SECONDS", "30 SECONDS", "30 SECONDS TUMBLING"]))
    other = choice.choice(["", "", "", "three", "coarse", "across"])
    if other == "three":
        return text.replace(" WHERE a.k = b.k", ", views AS c [WINDOW 10 SECONDS] WHERE a.k = b.k AND c.k = b.k")
    if other == "across":
        return text.replace("WHERE a.k = b.k", "WHERE a.k = b.k AND a.x <= b.x")
    return text + (" EVERY 20 SECONDS" if other == "coarse" else "")


def _change(pipe: forebay.Pipeline, choice: Random, name: str) -> bool:
    def text() -> str:
        return _text(choice) if choice.random() < 0.8 else varied("", choice)

    return request_of_any_kind(pipe, choice, name, text, "LAP recompute")


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_changes_and_kills_without_end_leave_every_answer_right(tmp_path: Path, seed: int,
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
    cheap_sharing(monkeypatch)
    assert storm(tmp_path, seed, 9, (0, 1, 3), monkeypatch) > 3


@pytest.mark.long
@pytest.mark.parametrize("seed", range(200, 220))
def test_a_thousand_changes_with_row_queries_among_them(tmp_path: Path, seed: int,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    """More than fifty a seed."""
    cheap_sharing(monkeypatch)
    assert storm(tmp_path, seed, 22, (4, 5, 6), monkeypatch) > 50
