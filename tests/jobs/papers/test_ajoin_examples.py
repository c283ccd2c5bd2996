"""Worked examples of paper E on a pipeline: the tuples of Fig.

4 with its queries, the phases of Fig. 5, the two windows of Fig. 8.
"""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import forebay
from jobs.adapt import sharing
from optimizer.sharing.price import STATED
from tests.jobs.pipelines import answers, boundary, cheap_sharing, equal, pipeline, ran, restarted, rows

pytestmark = pytest.mark.slow

# Fig. 4a, after filters: V by vID; W by usrID and vID; C and R by usrID. Here k is the first of these, x the second.
FIGURE_4 = {"v": [(4, 0), (4, 0), (7, 0), (8, 0), (8, 0)], "w": [(1, 1), (1, 8), (3, 8), (5, 8), (5, 4), (8, 4)],
            "c": [(k, 0) for k in (1, 1, 5, 5, 8, 8, 8)], "r": [(k, 0) for k in (1, 1, 1, 5, 5, 5)]}
JOINS = {"Q1": ("v.k", "v {0}, w {0}", "v.k = w.x"), "Q2": ("w.k", "v {0}, w {0}, c {0}", "v.k = w.x AND w.k = c.k"),
         "Q3": ("w.k", "w {0}, c {0}, r {0}", "w.k = c.k AND c.k = r.k")}
# Figs 4b, 4c, 4e: lists of matches by key, crossed. A tuple of W with usrID 3 leaves with its matches from V.
RESULTS = {"Q1": {4: 2 * 2, 8: 2 * 3}, "Q2": {1: 2 * 2, 5: 2 * 2 + 2 * 2, 8: 2 * 3}, "Q3": {1: 2 * 2 * 3, 5: 2 * 2 * 3}}


def figure_4(folder: Path, queries: dict[str, str]) -> forebay.Pipeline:
    pipe = pipeline(folder, dict.fromkeys(FIGURE_4, ""), queries=queries)
    for stream, tuples in FIGURE_4.items():
        rows(pipe, [1 + n / 10 for n in range(len(tuples))], stream, k=[k for k, _ in tuples], x=[x for _, x in tuples])
        rows(pipe, [11], stream, k=99, x=98)
    return pipe


def test_the_tuples_of_figure_4_give_its_results(tmp_path: Path) -> None:
    """As answers by key, and as rows: as many combinations as the lists cross to."""
    texts = {}
    for name, (by, sources, where) in JOINS.items():
        of = f"FROM {sources.format('[WINDOW 10 SECONDS]')} WHERE {where}"
        texts |= {
            name: f"SELECT {by} AS id, COUNT(*) AS n {of} GROUP BY {by}",
            f"{name}_rows": f"SELECT {by} AS id {of}"
        }
    pipe = figure_4(tmp_path, texts)
    assert ran(pipe) == [10] and equal(pipe)
    for name, expected in RESULTS.items():
        assert {key: n for _, key, n in answers(pipe, name)} == expected
        assert sorted(key for _, key in answers(pipe, f"{name}_rows")) == sorted(
            key for key, n in expected.items() for _ in range(n))


PAIR = "SELECT COUNT(*) AS n FROM a [WINDOW {0} SECONDS], b [WINDOW {0} SECONDS] WHERE a.k = b.k"


def bucket(pipe: forebay.Pipeline, number: int, left: int, right: int) -> None:
    """Rows of one batch, all of one key."""
    for stream, count in (("a", left), ("b", right)):
        rows(pipe, [10 * number - 9 + n / 100 for n in range(count)], stream)


def shared(pipe: forebay.Pipeline) -> list[set[str]]:
    last = pipe.runtime.ledger.last()
    return [set(names) for names in last.batch.query_groups.values()] if last else []


def test_windows_of_figure_8_share_the_buckets_that_both_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Q1 counts bucket 3 ⋈ 3 only, Q2, created meanwhile with a window twice as long, 3 ⋈ 3, 2 ⋈ 3, 3 ⋈ 2 and 2 ⋈ 2: by
    one work.
    """
    cheap_sharing(monkeypatch)
    sizes = {1: (2, 7), 2: (3, 11), 3: (5, 13), 4: (1, 1)}
    pipe = pipeline(tmp_path, {"a": "", "b": ""}, queries={"Q1": PAIR.format(10)})
    for number in (1, 2):
        bucket(pipe, number, *sizes[number])
    assert ran(pipe) == [10] and shared(pipe) == []
    assert pipe.create("Q2", PAIR.format(20))["effective"] == boundary(20)
    bucket(pipe, 3, *sizes[3])
    assert ran(pipe) == [20] and shared(pipe) == [{"Q1", "Q2"}]
    pipe.change("Q1", "delete")
    bucket(pipe, 4, *sizes[4])
    assert ran(pipe) == [30] and shared(pipe) == []
    assert answers(pipe, "Q1") == [(10, 2 * 7), (20, 3 * 11)]
    assert answers(pipe, "Q2") == [(20, (2 + 3) * (7 + 11)), (30, (3 + 5) * (11 + 13))] and equal(pipe)


def test_a_changelog_goes_through_the_phases_of_figure_5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new query shares what runs at its first boundary.

    Then statistics are taken and it stays, or goes, by price; nothing is lost on the way.
    """
    cheap_sharing(monkeypatch)
    three = ("SELECT COUNT(*) AS n FROM a [WINDOW 10 SECONDS], b [WINDOW 10 SECONDS], c [WINDOW 10 SECONDS] WHERE a.k "
             "= b.k AND b.k = c.k")
    pipe = pipeline(tmp_path, {
        "a": "",
        "b": "",
        "c": ""
    }, queries={
        "Q1": PAIR.format(10),
        "Q4": PAIR.format(10) + " AND a.x < 5"
    })
    for number in range(1, 7):
        bucket(pipe, number, 2, 3)
        rows(pipe, [10 * number - 5], "c")
        if number == 3:
            pipe.create("Q2", three)                        # common sources: the scans of a and b are there
            assert shared(pipe) == [{"Q1", "Q4"}]
        if number == 5:
            # as if rows had become dear: phase 2 parts them
            monkeypatch.setattr(sharing, "machine_costs", lambda unit_costs: replace(STATED, shared_row=1.0))
            restarted(pipe)
        ran(pipe)
        if number == 4:
            assert shared(pipe) == [{"Q1", "Q2", "Q4"}]
    assert shared(pipe) == []
    assert answers(pipe, "Q1") == [(t, 6) for t in (10, 20, 30, 40, 50)] and answers(
        pipe, "Q2") == [(t, 6) for t in (20, 30, 40, 50)] and equal(pipe)
