"""Which forms of queries one work answers: by streams in common, by the key that divides tasks, by the price of the
rows that there are.
"""
from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest

from optimizer.query.model import Query
from optimizer.query.windows import SECOND, Window
from optimizer.sharing import pool
from optimizer.sharing.family import Family, apart, family_program, related
from optimizer.sharing.group import Group, group
from optimizer.sharing.pool import UNITS, Form, Rows, Set, form
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
    return tuple(Form(f.name, f.windows, f.keys, members, members, f.apart) for f in forms)


def families(forms: Iterable[Form], rows: Rows, standing: Iterable[frozenset[str]] = (),
             fewest: int = 2) -> tuple[Set, ...]:
    return pool.families(forms, rows, standing, fewest=fewest)


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


def test_few_queries_of_several_forms_keep_plans_of_their_own() -> None:
    forms = made(of_views(20), of_views(60), of_views(40, "v.user"))
    assert [len(families(forms, rows, fewest=n)) for n in (3, 4)] == [1, 3]


def test_joins_on_other_keys_and_other_streams_are_other_families() -> None:
    by_user, by_page, clicks = grouped(joined(20)), grouped(joined(
        20, "v.page = c.user")), grouped(f"SELECT COUNT(*) AS n FROM {CLICKS.format(20)}")
    assert not related((by_user, by_page)) and not related((grouped(of_views(20)), clicks))
    assert related((by_user, clicks, grouped(of_views(20)))), "the join connects the two streams"


@pytest.mark.parametrize("text, word", [(
    f"SELECT COUNT(*) AS n FROM {VIEWS.format(20)}, {CLICKS.format(20)}, pages AS p WHERE v.user = c.user AND v.page = "
    "p.page",
    "no key in common"), (f"SELECT SUM(10 % v.ms) AS n FROM {VIEWS.format(20)}", "can fail")])
def test_what_can_join_no_other_form_says_why(text: str, word: str) -> None:
    assert word in (apart(grouped(text)) or "")
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
