"""Boundaries a statement: many where each takes little, as few as its rows allow, one where it takes much."""
from __future__ import annotations

from dataclasses import replace

import pytest

from optimizer.choice.statements import (
    MOST_TOGETHER,
    boundaries_a_shared_statement,
    boundaries_a_statement,
)
from optimizer.plan.model import named
from optimizer.sharing.group import Group, group
from optimizer.statistics.model import QueryStatistics
from tests.optimizer.planning import query
from tests.optimizer.statistics.observing import two


@pytest.mark.parametrize("plan, rate, together", [("EAP11 recompute", 10, MOST_TOGETHER),
                                                  ("EAP11 running", 10, MOST_TOGETHER), ("EAP11 running", 1_000, 1),
                                                  ("EAP01 running", 10, MOST_TOGETHER), ("EAP01 running", 1_000, 1),
                                                  ("EAP11 expire", 10, MOST_TOGETHER), ("EAP11 expire", 10_000, 1),
                                                  ("LAP expire", 10, MOST_TOGETHER), ("LAP expire", 10_000, 1),
                                                  ("EAP11 retract", 10, MOST_TOGETHER), ("EAP11 retract", 10_000, 1),
                                                  ("LAP retract", 10, MOST_TOGETHER), ("LAP retract", 10_000, 1),
                                                  ("EAP11 recompute", 10_000, 1),
                                                  ("LAP recompute", 10, MOST_TOGETHER), ("LAP recompute", 1_000, 1),
                                                  ("EAP01 recompute", 300, 29), ("EAP01 recompute", 1_000, 1)])
def test_where_a_boundary_takes_little_one_statement_answers_many(plan: str, rate: float, together: int) -> None:
    asked = query("two-streams")
    assert boundaries_a_statement(asked, named(asked, plan), two(views=rate)) == together


def test_an_answer_of_many_groups_is_changed_boundary_by_boundary() -> None:
    asked = query("two-streams")
    plan, known = named(asked, "EAP11 retract"), two(views=1_000, keys=10_000, clicks=50, pairs=20_000, groups=20)
    assert boundaries_a_statement(asked, plan, known) > 1
    assert boundaries_a_statement(asked, plan, replace(known, groups=10_000.0)) == 1


@pytest.mark.parametrize("plan", ["EAP11 recompute", "EAP11 running", "EAP11 expire"])
def test_a_statement_answers_the_fewer_boundaries_the_more_rows_each_has(plan: str) -> None:
    """Until each has a statement of its own."""
    asked = query("two-streams")
    counts = [boundaries_a_statement(asked, named(asked, plan), two(views=rate)) for rate in range(10, 20_000, 50)]
    assert counts == sorted(counts, reverse=True) and counts[0] == MOST_TOGETHER and counts[-1] == 1
    assert len(set(counts)) > 3


@pytest.mark.parametrize("windows, together", [("10", 29), ("10, 20, 30, 40, 50, 60", 1)])
def test_each_window_reads_the_kept_answer(windows: str, together: int) -> None:
    listed = ", ".join(f"Window('{size}', HoppingWindow(second, {size}, 10))" for size in windows.split(", "))
    asked = query(f"SELECT System.Window().Id AS w, page, COUNT(*) AS n FROM views GROUP BY page, Windows({listed})")
    known = two(views=3_000, pairs=24_000, groups=24_000)
    known = replace(known, inputs=known.inputs[:1], classes=())
    assert boundaries_a_statement(asked, named(asked, "EAP1 expire"), known) == together


def sharing(count: int, selection: str = "v.ms < {n}") -> Group:
    sql = ("SELECT v.page, COUNT(*) AS n FROM views AS v [WINDOW 1 MINUTE], clicks AS c [WINDOW 40 SECONDS] "
           "WHERE v.user = c.user AND {} GROUP BY v.page")
    return group({f"q{n}": query(sql.format(selection.format(n=n))) for n in range(count)})


def clicks_first(views: float) -> QueryStatistics:
    """Statistics in the order of a group's inputs, which are in normal form."""
    known = two(views=views)
    return replace(known, inputs=known.inputs[::-1])


@pytest.mark.parametrize("members, views, together", [(5, 100, 27), (50, 100, 1), (50, 5, 64)])
def test_few_cells_and_sets_of_queries_that_share_are_answered_by_one_statement(members: int, views: float,
                                                                                together: int) -> None:
    """6,000 views a window, each of a user and page of its own: a set of them for each selection."""
    assert boundaries_a_shared_statement(sharing(members), clicks_first(views)) == together


def test_cells_that_are_split_after_the_join_have_no_sets() -> None:
    made = sharing(50)
    after = replace(made, chosen=replace(made.plan, split="after"))
    assert boundaries_a_shared_statement(after, clicks_first(100)) == MOST_TOGETHER
    assert boundaries_a_shared_statement(made, clicks_first(100)) == 1
    assert boundaries_a_shared_statement(after, clicks_first(10_000)) == 1


def test_marks_of_very_many_predicates_count_as_many() -> None:
    assert boundaries_a_shared_statement(sharing(2_000, "v.page LIKE '%{n}'"), clicks_first(10_000)) == 1
