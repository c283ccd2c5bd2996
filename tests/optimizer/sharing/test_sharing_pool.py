"""Which forms of queries one work answers: by streams in common, by the key that divides tasks, by the price of the
rows that there are.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest

from optimizer.query.model import Query
from optimizer.query.windows import SECOND, Window
from optimizer.sharing.families import pool
from optimizer.sharing.families.division import BY_KEY, ONE_TASK, FamilyDivision, division_of, of_all, planned, reading
from optimizer.sharing.families.family import Family, apart, family_program, related
from optimizer.sharing.families.pool import UNITS, Form, Pricing, Rows, Set, form, losers
from optimizer.sharing.group import Group, group
from optimizer.sharing.price import STATED, pays
from optimizer.sharing.program import lowering
from tests.optimizer.planning import BATCH, query

VIEWS, CLICKS = "views AS v [WINDOW {} SECONDS]", "clicks AS c [WINDOW {} SECONDS]"
RATE = 1_000            # rows a second and stream


def grouped(*texts: str) -> Group:
    found: dict[str, Query] = {text: query(text) for text in texts}
    return group(found)


def of_views(seconds: int, by: str = "v.page", where: str = "v.ms < 5") -> str:
    return f"SELECT COUNT(*) AS n FROM {VIEWS.format(seconds)} WHERE {where} GROUP BY {by}"


def joined(seconds: int, on: str = "v.user = c.user", select: str = "COUNT(*)") -> str:
    return (f"SELECT v.page, {select} AS n FROM {VIEWS.format(seconds)}, {CLICKS.format(seconds)} WHERE {on} GROUP BY "
            "v.page")


def rows(stream: str, windows: frozenset[Window]) -> tuple[float, float]:
    return RATE * max(w.range for w in windows) / SECOND, 10.0 * RATE


def made(*texts: str, members: int = 1) -> tuple[Form, ...]:
    forms = (form(text, grouped(text)) for text in texts)
    return tuple(Form(f.name, f.windows, f.reading, members, members, f.apart) for f in forms)


# Where a work's fixed statements cost little beside its rows, scans decide.
LEAN = replace(STATED, form=0.012)


def families(forms: Iterable[Form], rows: Rows, standing: Iterable[frozenset[str]] = (),
             parts: int = 2) -> tuple[Set, ...]:
    return pool.families(forms, Pricing(rows, parts, LEAN), standing)


def names(found: tuple[Set, ...]) -> set[frozenset[str]]:
    return {frozenset(f.name for f in s.forms) for s in found}


def test_windows_groupings_and_joins_on_a_stream_become_one() -> None:
    forms = made(of_views(20), of_views(60), of_views(60, "v.user"), joined(40))
    assert names(families(forms, rows)) == {frozenset(f.name for f in forms)}


def test_a_window_that_costs_more_to_scan_than_its_queries_save_stays_apart() -> None:
    short, long = made(of_views(20), of_views(40, "v.user"), of_views(40)), made(of_views(36_000))
    assert names(families((*short, *long), rows)) == {frozenset(f.name for f in short), frozenset(f.name for f in long)}


def test_many_make_up_for_a_scan_that_no_two_can_pay() -> None:
    few, many = (made(*(of_views(400, f"v.page, v.user, v.ms % {n}")
                        for n in range(2, 2 + count)))
                 for count in (4, 40))
    assert len(families(few, rows)) == 4 and len(families(many, rows)) == 1


def test_what_stands_stays_where_it_would_not_be_made() -> None:
    forms = made(*(of_views(seconds, f"v.ms % {seconds}") for seconds in (20, 30)))
    for seconds in range(20, 900, 20):
        forms = made(of_views(20), of_views(seconds, "v.user"))
        if len(families(forms, rows)) == 2:
            break
    assert len(families(forms, rows, [frozenset(f.name for f in forms)])) == 1
    far = made(of_views(20), of_views(20 * seconds, "v.user"))
    assert len(families(far, rows, [frozenset(f.name for f in far)])) == 2


def test_a_few_queries_of_as_many_forms_keep_plans_of_their_own() -> None:
    """By price: each form's statements cost nearly what a query alone does."""
    for count, shares in ((2, False), (4, False), (7, False), (40, True)):
        forms = made(*(of_views(60, f"v.page, v.ms % {n}") for n in range(2, 2 + count)))
        whole = pool.united([pool.one(f, Pricing(rows)) for f in forms], Pricing(rows))
        assert pays(whole.together_s, whole.load, standing=False) == shares
    told = losers(forms[:7], Pricing(rows))
    assert told.keys() == {f.name for f in forms[:7]}
    assert {s.load.members for s in told.values()} == {7}


ON_PAGE = joined(20, "v.page = c.user")


def test_joins_on_other_keys_share_where_tasks_divide_files() -> None:
    by_user, by_page = grouped(joined(20)), grouped(ON_PAGE)
    assert related((by_user, by_page)) and related((by_user, grouped(of_views(20))))
    assert not related((grouped(of_views(20)), grouped(f"SELECT COUNT(*) AS n FROM {CLICKS.format(20)}")))
    assert of_all([reading(by_user), reading(grouped(joined(40)))]).divisions == (BY_KEY,)
    both = of_all([reading(by_user), reading(by_page)])
    assert both.divisions == (FamilyDivision("files", "clicks"), FamilyDivision("files", "views"), ONE_TASK)
    with pytest.raises(ValueError, match="cannot divide"):
        Family((by_user, by_page))
    for division in both.divisions:
        groups = tuple(replace(g, chosen=p) for g, p in zip((by_user, by_page), planned((by_user, by_page), division)))
        assert Family(groups).division == division_of(groups) == division


def test_a_stream_that_a_query_joins_with_itself_is_not_divided_by_files() -> None:
    itself = grouped(f"SELECT COUNT(*) AS n FROM {VIEWS.format(20)}, views AS w [WINDOW 20 SECONDS] WHERE v.user = "
                     "w.page")
    assert of_all([reading(itself), reading(grouped(of_views(20)))]).divisions == (ONE_TASK,)


def test_the_stream_with_most_rows_is_divided_and_few_rows_are_one_tasks() -> None:
    def counts(clicks: float) -> Rows:
        return lambda stream, windows: (clicks if stream == "clicks" else 400_000.0, 0.0)

    divisions = []
    for clicks in (800_000.0, 4_000.0):
        forms = made(joined(20), ON_PAGE)
        divisions.append(pool.united([pool.one(f, Pricing(counts(clicks))) for f in forms],
                                     Pricing(counts(clicks), 2)).division.stream)
    assert divisions == ["clicks", "views"]
    few: Rows = lambda stream, windows: (100.0, 0.0)
    assert pool.united([pool.one(f, Pricing(few)) for f in forms], Pricing(few, 2)).division == ONE_TASK


def test_what_is_not_divided_is_dearer_by_the_tasks_that_read_it() -> None:
    same, other = (pool.united([pool.one(f, Pricing(rows, 4)) for f in made(joined(60), joined(30, on))],
                               Pricing(rows, 4)) for on in ("v.user = c.user", "v.page = c.user"))
    assert same.load.spread == 1.0 and other.load.spread == pytest.approx((1 + 4) / 2)
    assert other.together_s > same.together_s


def test_an_expression_that_can_fail_joins_no_other_form() -> None:
    text = f"SELECT SUM(10 % v.ms) AS n FROM {VIEWS.format(20)}"
    assert "can fail" in (apart(grouped(text)) or "")
    with pytest.raises(ValueError, match="no family"):
        Family((grouped(text), grouped(of_views(20))))


@pytest.mark.slow
def test_very_many_windows_are_weighed_by_neighbours() -> None:
    forms = made(*(of_views(20 * n, f"v.ms % {n}") for n in range(2, 3 * UNITS)))
    assert sum(len(s.forms) for s in families(forms, rows)) == len(forms)


def test_each_source_is_scanned_once_and_each_answer_numbered() -> None:
    groups = tuple(grouped(text) for text in (of_views(20), of_views(60, "v.user", "v.ms < 9"), joined(40)))
    program = family_program(Family(groups), tuple(map(lowering, groups)), (100 * BATCH,))
    assert [s.of for s in program.sources] == ["views", "clicks"] and [s.number for s in program.steps] == [0, 1, 2]
    assert sum(name.startswith("scan_0_cells") for step in program.steps for name, _, _ in step.define) == 1
    (range_,) = program.sources[0].ranges
    assert range_.since == 100 * BATCH - 60 * SECOND


@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(n, marks=pytest.mark.slow) for n in range(3, 10))])
def test_whatever_stood_before_each_form_is_in_one_set(seed: int) -> None:
    choice = Random(seed)
    forms = made(*(of_views(20 * choice.randrange(1, 60), f"v.ms % {n}") for n in range(2, 12)), joined(20),
                 joined(400), members=choice.choice([1, 4]))
    stood = [frozenset(f.name for f in choice.sample(forms, choice.randrange(1, 6))) for _ in range(3)]
    found = [f.name for s in families(forms, rows, stood) for f in s.forms]
    assert sorted(found) == sorted(f.name for f in forms)
