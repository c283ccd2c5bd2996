"""Queries that share one work: as many commits as tables, answers as if each ran alone, whoever comes, goes or fails.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from io import StringIO
from pathlib import Path
from random import Random

import pytest

import forebay
from forebay.text import query
from jobs.adapt import decisions_table, sharing
from jobs.addresses import addresses
from jobs.ledger.entries import Batch
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.maintenance import compact
from jobs.storage import failpoints
from optimizer.errors import ForebayError
from optimizer.sharing.price import STATED, SharingPast
from optimizer.sharing.ways import Way
from optimizer.time import micros
from tests.jobs.pipelines import answers, boundary, cheap_sharing, equal, opened, pipeline, ran, restarted, rows

pytestmark = pytest.mark.slow

JOINED = ("SELECT a.k, COUNT(*) AS n, SUM(b.x) AS x FROM views AS a [WINDOW 20 SECONDS], clicks AS b [WINDOW 30 "
          "SECONDS] WHERE a.k = b.k{more} GROUP BY a.k")
ROWS = "SELECT a.x, b.x AS y FROM views AS a [WINDOW 20 SECONDS], clicks AS b [WINDOW 20 SECONDS] WHERE a.k = b.k"
FAILING = "SELECT SUM(10 % (a.x - 9)) AS r FROM views AS a [WINDOW 20 SECONDS]"
MEDIAN = "SELECT MEDIAN(a.x) AS m FROM views AS a [WINDOW 20 SECONDS]"
STREAMS = {"views": "", "clicks": ""}


def joined(more: str = "") -> str:
    return JOINED.format(more=f" AND {more}" if more else "")


def four(**others: str) -> dict[str, str]:
    return {**{f"q{n}": joined(f"a.x < {n}") for n in range(1, 5)}, **others}


def filled(folder: Path, queries: dict[str, str]) -> forebay.Pipeline:
    pipe = pipeline(folder, STREAMS, queries=queries)
    for x in range(4):
        rows(pipe, [1, 12, 24 + x], "views", k=x % 2, x=x)
        rows(pipe, [3, 15, 26 + x], "clicks", k=x % 2, x=x)
    return pipe


def shown(pipe: forebay.Pipeline, name: str) -> dict[str, object]:
    return next(q for q in pipe.queries() if q["query"] == name)


def results(rt: OpenPipeline) -> set[str]:
    """The queries that have an address."""
    return {p.name for p in Path(rt.path("results")).iterdir()}


def private(rt: OpenPipeline) -> list[str]:
    return [f"shared/{p.name}" for p in Path(rt.path("shared")).iterdir()]


def test_one_table_one_commit_a_batch_and_each_its_own_answer(tmp_path: Path) -> None:
    pipe = filled(tmp_path, four())
    assert ran(pipe) == [10, 20]
    (table,) = private(pipe.runtime)
    # both boundaries in one batch; then its rows have come to the addresses, and it is empty again
    assert pipe.runtime.table(table).version == 2 and not pipe.runtime.table(table).files()
    assert {pipe.runtime.table(f"results/q{n}").version for n in range(1, 5)} == {1}
    assert equal(pipe) and len({tuple(answers(pipe, f"q{n}")) for n in range(1, 5)}) == 4
    said = shown(pipe, "q1")
    assert said["table"] == "results/q1" and said["shares_with"] == ["q2", "q3", "q4"]


def test_few_or_different_or_pinned_run_alone_and_say_why(tmp_path: Path) -> None:
    pipe = filled(tmp_path, four(rows=ROWS, other=FAILING, pinned=joined()))
    pipe.synchronise()
    pipe.change("pinned", "pin", "EAP11 recompute")
    ran(pipe)
    assert {
        n: w
        for n in ("rows", "other", "pinned")
        for w in ("no other", "pinned to")
        if w in str(shown(pipe, n)["alone"])
    } == {
        "rows": "no other",
        "other": "no other",
        "pinned": "pinned to"
    }
    assert {"rows", "other", "pinned"} < results(pipe.runtime) and equal(pipe)
    pipe.change("q1", "delete")
    assert shown(pipe, "q2")["members"] == 3, "two of a group that stands stay together, one has nothing to share"
    pipe.change("q3", "delete"), pipe.change("q4", "delete")
    assert "no other query in force" in str(shown(pipe, "q2")["alone"]) and "alone" not in shown(pipe, "q1")


FAMILY = {
    "shorter": "SELECT a.k, COUNT(*) AS n FROM views AS a [WINDOW 10 SECONDS], clicks AS b [WINDOW 20 SECONDS] WHERE "
               "a.k = b.k AND a.x > 0 GROUP BY a.k",
    "whole": "SELECT SUM(b.x) AS x, MAX(a.x) AS m FROM views AS a [WINDOW 20 SECONDS], clicks AS b [WINDOW 30 SECONDS] "
             "WHERE a.k = b.k",
    "by_x": "SELECT a.x, AVG(b.x) AS n FROM views AS a [WINDOW 20 SECONDS], clicks AS b [WINDOW 30 SECONDS] WHERE a.k "
            "= b.k GROUP BY a.x",
    "tumbling": "SELECT COUNT(*) AS n FROM views AS a [WINDOW 20 SECONDS TUMBLING] WHERE a.x < 3",
    "three": "SELECT COUNT(*) AS n FROM views AS a [WINDOW 20 SECONDS], clicks AS b [WINDOW 30 SECONDS], views AS c "
             "[WINDOW 10 SECONDS] "
    "WHERE a.k = b.k AND b.k = c.k AND c.x >= 1"
}


def test_other_windows_groupings_and_joins_share_the_scan(tmp_path: Path) -> None:
    """E6: five forms more, of one query each, are one work with the five of one form.

    Each is published when it is due.
    """
    pipe = filled(tmp_path, four(q5=joined("a.x < 5"), **FAMILY))
    ran(pipe)
    rows(pipe, [36, 44], "views"), rows(pipe, [37, 45], "clicks")
    assert ran(pipe) == [30, 40] and equal(pipe)
    last = pipe.runtime.ledger.last()
    assert last is not None and [set(names) for names in last.batch.query_groups.values()
                                 ] == [{"q1", "q2", "q3", "q4", "q5", *FAMILY}]
    assert results(pipe.runtime) == {"q1", "q2", "q3", "q4", "q5", *FAMILY}
    assert [t for t, *_ in answers(pipe, "tumbling")] == [20, 40] and {t for t, *_ in answers(pipe, "three")
                                                                       } == {10, 20, 30, 40}
    assert shown(pipe, "by_x")["members"] == 10


def test_prices_and_equation_2_of_a_group_are_shown(tmp_path: Path) -> None:
    """COST(2) from counts that the shared work takes itself; here they are counted again, from the stream tables."""
    pipe = filled(tmp_path, four())
    assert ran(pipe) == [10, 20]
    rows(pipe, [31], "views"), rows(pipe, [31], "clicks")
    assert ran(pipe) == [30]
    read = {s: pipe.runtime.table(f"streams/{s}").rows().to_pylist() for s in STREAMS}
    span = {"views": (0, 20), "clicks": (-10, 20)}      # the batch that counted ended at 20 s
    held = {s: [r for r in read[s] if boundary(span[s][0]) <= micros(r["ts"]) < boundary(span[s][1])] for s in STREAMS}
    views, clicks = held["views"], held["clicks"]
    sizes = [[r for r in views if r["x"] < n] for n in range(1, 5)]
    keys = [len({r["k"] for r in side}) for side in (views, clicks)]
    # of a selection's keys is known that they are no more
    cost = [len(one) + len(clicks) + min(len(one), *keys) for one in (*sizes, views)]
    told = dict(shown(pipe, "q1")["weighed"])      # type: ignore[call-overload]
    assert (told["paper_apart"], told["paper_together"]) == (sum(
        cost[:-1]), cost[-1]) and 0 < told["together_s"] < told["apart_s"]
    out = StringIO()
    query(shown(pipe, "q1"))(out)
    assert "as priced; equation (2) says" in out.getvalue()


def test_the_way_that_costs_least_is_taken_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first boundary counts, the next one goes by it, and a process after it goes on so; answers are the same."""
    # Only what differs between the ways is priced: beside a batch they cost next to nothing with so few rows.
    monkeypatch.setattr(sharing, "machine_costs", lambda unit_costs: replace(STATED, shared=0.0, form=0.0))
    pipe = filled(tmp_path, four())
    ran(pipe)
    assert shown(pipe, "q1")["way"] == {"split": "before", "exchange": "partition", "divided": None}
    for again in (pipe, opened(tmp_path)):
        rows(again, [36 if again is pipe else 46], "views"), rows(again, [36 if again is pipe else 46], "clicks")
        ran(again)
        assert shown(again, "q1")["way"] == {
            "split": "after",
            "exchange": "partition",
            "divided": None
        } and equal(again)
    # of each change one row, and none because a process began
    written = [str(row["reason"]) for row in decisions_table.rows(pipe.runtime, "q1")]
    assert ["split before" in r
            for r in written] == [True, False] and "split after the join, divided by key" in written[1]
    told = shown(pipe, "q1")["weighed"]
    assert isinstance(told, dict) and told["after by key"] < told["before by key"]
    out = StringIO()
    query(shown(pipe, "q1"))(out)
    assert "joined with their query-sets" in out.getvalue() and "tasks divide by key" in out.getvalue()


def test_what_batches_took_is_known_to_the_next_process(tmp_path: Path) -> None:
    pipe = filled(tmp_path, four())
    ran(pipe)      # a process's first batch also starts Spark, and this is one of two boundaries
    for at in (36, 46):
        rows(pipe, [at], "views"), rows(pipe, [at], "clicks")
        ran(pipe)
    for again in (pipe, opened(tmp_path)):
        last = again.runtime.ledger.last()
        assert last is not None and len(last.batch.sharing_past.together.values) == 2
        assert last.batch.sharing_past.apart.values == ()


def test_a_group_whose_batches_are_dearer_than_its_queries_apart_parts_and_stays_so(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a batch took four times what is priced together, and what is priced apart."""
    def learnt(batch: Batch, priced_apart: Mapping[str, Collection[str]], *_: object) -> SharingPast:
        past = batch.sharing_past
        if batch.query_groups:
            return replace(past, together=past.together.with_batch(batch.number, 4.0))
        assert list(priced_apart.values()) == [("q1", "q2", "q3", "q4")]
        return replace(past, apart=past.apart.with_batch(batch.number, 1.0))

    monkeypatch.setattr(sharing, "learnt", learnt)
    monkeypatch.setattr(sharing, "machine_costs", lambda unit_costs: replace(STATED, shared=0.12))
    pipe, shared = filled(tmp_path, four()), []
    for at in range(36, 186, 10):
        if at == 136:
            pipe = opened(tmp_path)
        ran(pipe)
        last = pipe.runtime.ledger.last()
        assert last is not None
        shared.append(bool(last.batch.query_groups))
        rows(pipe, [at], "views"), rows(pipe, [at], "clicks")
    assert shared == [True] * 6 + [False] * 9 and equal(pipe)
    told = shown(pipe, "q1")
    assert told["weighed"]["together_off"] == 4.0 and told["weighed"]["apart_off"] == 1.0      # type: ignore[index]
    assert "each for itself 0.2 s" in str(told["alone"])
    out = StringIO()
    query(told)(out)
    assert "(times 4.00 and 1.00 by what batches took)" in out.getvalue()


def test_a_batch_that_is_run_again_goes_the_way_of_its_intent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = filled(tmp_path, four())
    ran(pipe)
    monkeypatch.setattr(sharing, "chosen", lambda made, priced, standing: Way("after", 1))
    rows(pipe, [36], "views"), rows(pipe, [36], "clicks")
    monkeypatch.setattr(failpoints, "_passes", Counter())
    monkeypatch.setenv("FOREBAY_FAILPOINT", "batch.after-intent:1:raise")
    with pytest.raises(failpoints.Reached):
        pipe.run()
    monkeypatch.delenv("FOREBAY_FAILPOINT"), monkeypatch.setattr(sharing, "chosen",
                                                                 lambda made, priced, standing: Way("before"))
    again = opened(tmp_path)
    again.run()
    assert shown(again, "q2")["way"] == {"split": "after", "exchange": "slice", "divided": "views"} and equal(again)
    assert {t for t, *_ in answers(again, "q2")} == {10, 20, 30}


def test_a_group_that_is_not_weighed_goes_on_without_prices(tmp_path: Path) -> None:
    """As benchmarks ask it: what was counted before is of no use then."""
    pipe = filled(tmp_path, four())
    ran(pipe)
    restarted(pipe, share_from=2)
    pipe.create("late", joined("b.x > 0"))
    rows(pipe, [36], "views"), rows(pipe, [36], "clicks")
    assert ran(pipe) == [30] and equal(pipe)
    assert [d["reason"] for d in pipe.plans("late")["decisions"]
            ] == ["one work answers 5 queries, split before the join, divided by key"]


def test_decisions_say_when_a_query_shares_and_when_no_more(tmp_path: Path) -> None:
    pipe = filled(tmp_path, four())
    ran(pipe)
    for name in ("q1", "q2", "q4"):
        pipe.change(name, "delete")
    rows(pipe, [36], "views"), rows(pipe, [36], "clicks")
    ran(pipe)
    reasons = [str(d["reason"]) for d in pipe.plans("q3")["decisions"]]
    assert "one work answers 4 queries" in reasons[0] and "together" in reasons[0] and "one work" not in reasons[-1]


def test_answers_go_on_when_a_query_leaves_its_group_and_comes_back(tmp_path: Path) -> None:
    pipe = restarted(filled(tmp_path, four()), share_from=4)
    ran(pipe)
    pipe.change("q1", "pin", "EAP11 recompute")
    rows(pipe, [45], "views"), rows(pipe, [45], "clicks")
    ran(pipe)
    pipe.change("q1", "unpin")
    rows(pipe, [65], "views"), rows(pipe, [65], "clicks")
    ran(pipe)
    assert {t for t, *_ in answers(pipe, "q3")} == {10, 20, 30, 40, 50, 60} and equal(pipe)
    assert results(pipe.runtime) == {"q1", "q2", "q3", "q4"}


OVERFLOWS = "SELECT SUM(v.x * 1) AS s, COUNT(*) AS n FROM views AS v [WINDOW 20 SECONDS] WHERE v.k < {n}"


def test_a_query_that_fails_leaves_its_group_alone(tmp_path: Path) -> None:
    """SUM beyond 64 bits fails the queries that add those rows, and no other."""
    pipe = pipeline(tmp_path, queries={f"q{n}": OVERFLOWS.format(n=n) for n in range(1, 6)})
    rows(pipe, [1], k=1, x=1)
    for at in (2, 3):
        rows(pipe, [at], k=3, x=2**62)
    rows(pipe, [15, 35], k=1)
    assert ran(pipe) == [10, 20, 30]
    states = {q["query"]: q["state"] for q in pipe.queries()}
    assert states == {"q1": "active", "q2": "active", "q3": "active", "q4": "failed", "q5": "failed"}
    assert [t for t, *_ in answers(pipe, "q3")] == [10, 20, 30] and equal(pipe)
    with pytest.raises(ForebayError) as caught:
        pipe.result("q4")
    assert caught.value.code == "query-failed"


def test_a_row_that_fails_fails_only_the_classes_that_hold_it(tmp_path: Path) -> None:
    pipe = pipeline(
        tmp_path, queries={
            f"q{n}": f"SELECT SUM(10 % v.x) AS r FROM views AS v [WINDOW 20 SECONDS] WHERE v.k < {n}"
            for n in range(1, 6)
        })
    rows(pipe, [1], k=1, x=3), rows(pipe, [2], k=3, x=0), rows(pipe, [15, 25], k=1)
    ran(pipe)
    assert [q["state"] for q in sorted(pipe.queries(), key=lambda q: str(q["query"]))
            ] == ["active"] * 3 + ["failed"] * 2
    assert [t for t, _ in answers(pipe, "q1")] == [10, 20] and equal(pipe)


def test_without_group_by_each_has_a_row_at_every_boundary(tmp_path: Path) -> None:
    pipe = pipeline(
        tmp_path, queries={
            f"q{n}": f"SELECT COUNT(*) AS n, MIN(v.x) AS x FROM views AS v [WINDOW 10 SECONDS] WHERE v.x > {n}"
            for n in range(4)
        })
    rows(pipe, [1, 2], x=2), rows(pipe, [45])
    assert ran(pipe) == [10, 20, 30, 40] and equal(pipe)
    assert answers(pipe, "q1") == [(10, 2, 2), (20, 0, None), (30, 0, None), (40, 0, None)]
    assert answers(pipe, "q3") == [(t, 0, None) for t in (10, 20, 30, 40)]


def test_a_query_created_among_many_answers_at_the_next_boundary_from_history(tmp_path: Path) -> None:
    pipe = filled(tmp_path, four())
    ran(pipe)
    assert pipe.create("late", joined("b.x > 0"))["effective"] == boundary(30)
    rows(pipe, [35], "views"), rows(pipe, [35], "clicks")
    assert ran(pipe) == [30] and {t for t, *_ in answers(pipe, "late")} == {30} and equal(pipe)
    assert "late" in shown(pipe, "q1")["shares_with"]      # type: ignore[operator]


@pytest.mark.parametrize(
    "point",
    sorted(
        n for n in failpoints.NAMES if n.startswith("batch.") and n not in ("batch.before-state", "batch.after-state")))
def test_a_crash_anywhere_loses_and_doubles_nothing(tmp_path: Path, point: str,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = filled(tmp_path, four(own="SELECT MAX(v.x) AS m FROM views AS v [WINDOW UNTIL NOW]"))
    monkeypatch.setattr(failpoints, "_passes", Counter())
    monkeypatch.setenv("FOREBAY_FAILPOINT", f"{point}:2:raise" if point.endswith("-table") else f"{point}:1:raise")
    with pytest.raises(failpoints.Reached):
        pipe.run()
    monkeypatch.delenv("FOREBAY_FAILPOINT")
    again = opened(tmp_path)
    again.run()
    assert [t for t, *_ in answers(again, "own")] == [10, 20] and {t for t, *_ in answers(again, "q2")
                                                                   } == {10, 20} and equal(again)


def test_answers_of_queries_that_share_are_compacted_and_kept_as_others_are(tmp_path: Path,
                                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "SMALL_FILES", 3), monkeypatch.setattr(addresses, "TIDIED_EVERY", 2)
    pipe = pipeline(tmp_path, {"views": "keep: 1 minute"}, queries={
        f"q{n}": f"SELECT COUNT(*) AS n FROM views AS v [WINDOW 20 SECONDS] WHERE v.x > {n}" for n in range(4)})
    for at in range(1, 200, 10):
        rows(pipe, [at], x=at % 4)
        pipe.run()
    files = pipe.runtime.table("results/q1").files()
    assert len(files) <= 5 and min(f.low["boundary"] for f in files) > boundary(60)
    times = [t for t, _ in answers(pipe, "q1")]
    assert times[-1] == 190 and times[0] > 60 and equal(pipe)


def test_of_very_many_queries_the_last_boundary_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "PARSED", 3)
    pipe = filled(tmp_path, four(median=MEDIAN))
    ran(pipe)
    pipe.create("new", joined())
    assert shown(pipe, "q1")["shares_with"] == ["q2", "q3", "q4"] and "last boundary" in str(
        shown(pipe, "new")["alone"])
    assert "no exact partial states" in str(shown(pipe, "median")["alone"])


def test_people_are_told_with_whom_and_why_not(tmp_path: Path) -> None:
    pipe = filled(tmp_path, four(median=MEDIAN))
    ran(pipe)
    told = {name: StringIO() for name in ("q1", "median")}
    for name, out in told.items():
        query(shown(pipe, name))(out)
    assert "shares with q2, q3, q4\n" in told["q1"].getvalue(
    ) and "runs alone  median has no exact partial states" in told["median"].getvalue()


def test_a_query_with_expectations_of_its_answer_runs_alone(tmp_path: Path) -> None:
    pipe = filled(tmp_path, four(q5=joined()))
    (tmp_path / "expectations").mkdir()
    (tmp_path / "expectations"
     / "q2.yml").write_text("query: q2\nexpectations:\n  - {type: expect_column_values_to_not_be_null, column: n}\n")
    ran(pipe)
    assert "q2" in results(pipe.runtime) and "expectations" in str(shown(pipe, "q2")["alone"]) and equal(pipe)


def test_one_member_is_sampled_for_all(tmp_path: Path) -> None:
    pipe = filled(tmp_path, four())
    ran(pipe)
    assert set(pipe.stats()["queries"]) == {"q1"} and set(pipe.stats()["streams"]) == {"views", "clicks"}


def test_a_reader_from_outside_finds_a_query_by_its_name(tmp_path: Path) -> None:
    pipe = filled(tmp_path, four())
    ran(pipe)
    table = pipe.runtime.table(str(shown(pipe, "q3")["table"]))
    assert table.schema.names == ["boundary", "k", "n", "x"]
    assert table.rows().num_rows == len(answers(pipe, "q3")) > 0


def storm(folder: Path, seed: int, steps: int, changes: tuple[int, ...] = (0, 1, 3)) -> int:
    """Random requests and rows, so many requests between two takes of rows; gives how many changes were made."""
    choice, made = Random(seed), 0
    pipe = filled(folder, four(own="SELECT MAX(v.x) AS m FROM views AS v [WINDOW UNTIL NOW]"))
    pipe.synchronise()
    at = 27.0
    for step in range(steps):
        for _ in range(choice.choice(changes)):
            made += _change(pipe, choice, step)
        at += choice.choice([1, 6, 14])
        for stream in STREAMS:
            rows(pipe, [at, at + choice.random() * 5], stream, k=choice.randrange(3), x=choice.randrange(-3, 6))
        if choice.random() < 0.7:
            pipe.run()
        if choice.random() < 0.1:
            pipe = opened(folder)
    pipe.run(flush=True)
    assert equal(pipe), seed
    return made


def varied(more: str, choice: Random) -> str:
    """Of another form: window, grouping, aggregate, key, number of inputs, or all joined rows."""
    text = joined(more).replace("20 SECONDS",
                                choice.choice(["10 SECONDS", "20 SECONDS", "30 SECONDS TUMBLING", "25 SECONDS"]))
    text = text.replace("SUM(b.x)", choice.choice(["SUM(b.x)", "MAX(b.x)"]))
    other = choice.choice(["", "grouping", "three", "rows", "by x", "in a row", "four in a row"])
    if other == "grouping":
        return text.replace("GROUP BY a.k", "GROUP BY b.x").replace("SELECT a.k", "SELECT b.x AS k")
    if other == "three":
        return text.replace(" WHERE a.k = b.k", ", views AS c [WINDOW 10 SECONDS] WHERE a.k = b.k AND c.k = b.k")
    if other == "by x":
        return text.replace("WHERE a.k = b.k", "WHERE a.x = b.x")
    if "in a row" in other:      # no key is common to all inputs
        text = text.replace(" WHERE a.k = b.k", ", views AS c [WINDOW 10 SECONDS] WHERE a.k = b.k AND c.x = b.x")
    if other == "four in a row":
        return text.replace(" WHERE a.k", ", clicks AS d [WINDOW 10 SECONDS] WHERE d.k = c.k AND a.k")
    return ROWS + (f" AND {more}" if more else "") if other == "rows" else text


def request_of_any_kind(pipe: forebay.Pipeline, choice: Random, name: str, text: Callable[[], str], pin: str) -> bool:
    """One request, a creation by this name; one that is refused is no change."""
    known = [str(q["query"]) for q in pipe.queries()]
    try:
        action = choice.choice(["create", "create", "delete", "pause", "resume", "pin", "unpin", "replace"])
        if action in ("create", "replace"):
            sql = text()
            pipe.create(choice.choice(known) if action == "replace" else name, sql, replace=action == "replace")
        else:
            pipe.change(choice.choice(known), action, *([pin] if action == "pin" else []))
    except ForebayError as error:
        assert error.exit_code == 2, error
        return False
    return True


def _change(pipe: forebay.Pipeline, choice: Random, step: int) -> bool:
    sides = ("a.x < {n}", "b.x >= {n}", "a.x = {n}", "a.k IN (0, {n})", "b.x IS NOT NULL")

    def text() -> str:
        more = " AND ".join(c.format(n=choice.randrange(-1, 5)) for c in choice.sample(sides, choice.choice([0, 1, 2])))
        return joined(more) if choice.random() < 0.5 else varied(more, choice)

    return request_of_any_kind(pipe, choice, f"n{step}", text, "EAP11 expire")


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_changes_without_end_leave_every_answer_right(tmp_path: Path, seed: int,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    cheap_sharing(monkeypatch)
    assert storm(tmp_path, seed, 9) > 3


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 120))
def test_a_thousand_changes(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than fifty a seed."""
    cheap_sharing(monkeypatch)
    assert storm(tmp_path, seed, 22, (4, 5, 6)) > 50
