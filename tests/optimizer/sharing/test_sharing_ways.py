"""Which way a group's work is done, by what it counted: each way is the cheapest somewhere, and none takes another's
place for little.
"""
from __future__ import annotations

from dataclasses import replace

import pytest

from optimizer.plan.division import dealt, pivot
from optimizer.query.model import Query
from optimizer.sharing.counted import HEAVY, JOINED, KEYS, MARKS, MET, UNION, Tally, paper, tallied
from optimizer.sharing.group import Group, group
from optimizer.sharing.program import lowering, shared_program
from optimizer.sharing.ways import Way, chosen, planned, seconds, way_of, ways
from tests.optimizer.planning import BATCH, query

JOIN = ("SELECT v.page, COUNT(*) AS n FROM views AS v [WINDOW 1 MINUTE], clicks AS c [WINDOW 40 SECONDS] WHERE v.user "
        "= c.user{more} GROUP BY v.page")
BEFORE, AFTER = Way("before"), Way("after")


def joined(count: int, both: bool = True) -> Group:
    """`count` queries with a range of each input, clicks first."""
    def text(n: int) -> Query:
        return query(JOIN.format(more=f" AND v.ms < {n}" + (f" AND c.amount < {n}" if both else "")))
    return group({f"q{n}": text(n) for n in range(count)})


def tally(made: Group, rows: float = 1e5, keys: float = 500, cells: float = 1e5, heaviest: float = 0.0,
          scale: float = 1.0) -> Tally:
    """Both inputs alike, but that the second has `scale` times the rows of the first.

    Half of all cells pass a choice; the heaviest key's share.
    """
    found: dict[tuple[int, int], tuple[float, float]] = {}
    for i, many in enumerate((rows, rows * scale)):
        own = min(cells, many)
        found |= {
            (i, UNION): (many, own),
            (i, KEYS): (keys, min(10 * keys, own)),
            (i, HEAVY): (max(heaviest, 1 / keys) * many, max(heaviest, 1 / keys) * own)
        }
        found |= {
            (i, n): (many / 2, own / 2) for n in range(len(made.choices[i]))
        } | {
            (i, MARKS): (float(len(made.choices[i])), 0.0)
        }
    met = found[0, UNION][1] * found[1, UNION][1] / keys
    return {**found, (JOINED, MET): (met, max(heaviest, 1 / keys) * met)}


def best(made: Group, counted: Tally, parts: int = 2) -> Way:
    return chosen(made, seconds(made, counted, 10.0, parts))


def test_where_few_cells_meet_they_are_split_after_the_join_and_where_many_meet_before() -> None:
    made = joined(100)
    assert best(made, tally(made, keys=1e5)) == AFTER and best(made, tally(made, keys=500)) == BEFORE


def test_with_selections_of_one_input_each_cell_meets_one() -> None:
    made = joined(100, both=False)
    counted = tally(made, keys=1e4)
    assert best(made, {**counted, (JOINED, MET): (counted[1, UNION][1], 10.0)}) == AFTER


def test_a_hot_key_is_split_by_dealing_the_files_of_an_input() -> None:
    """Of the input with many cells.

    The other is whole in each task then. Where keys divide evenly, or a hot key has few cells, it is not worth that.
    """
    made = joined(30)

    def counted(heaviest: float, cells: float) -> Tally:
        own = {(1, UNION): (2e5, cells), (1, KEYS): (500.0, cells), (1, HEAVY): (heaviest * 2e5, heaviest * cells)}
        chosen_by = {(1, n): (1e5, cells / 2) for n in range(30)}
        return {
            **tally(made, rows=2e5, keys=500, cells=5e3),
            **own,
            **chosen_by, (JOINED, MET): (10 * cells, heaviest * 10 * cells)
        }

    assert best(made, counted(0.9, 2e5), parts=4).divided is not None
    assert all(
        best(made, c, parts).divided is None
        for c, parts in ((counted(0.01, 2e5), 4), (counted(0.9, 2e3), 4), (counted(0.9, 2e5), 1)))


def test_what_stands_stays_until_another_is_cheaper_by_more_than_chance() -> None:
    made = joined(10)
    priced = dict.fromkeys((w.name for w in ways(made)), 2.0) | {BEFORE.name: 1.0, AFTER.name: 0.9}
    assert chosen(made, priced) == BEFORE and chosen(made, priced, AFTER) == AFTER
    assert chosen(made, priced | {AFTER.name: 0.5}) == AFTER and chosen(made, {}, AFTER) == AFTER and chosen(
        made, {}) == BEFORE


def test_one_input_one_class_or_no_common_key_leave_one_way() -> None:
    single = group(
        {f"q{n}": query(f"SELECT COUNT(*) AS n FROM views AS v [WINDOW 1 MINUTE] WHERE v.ms < {n}") for n in range(3)})
    assert ways(single) == (BEFORE,)
    assert {w.split for w in ways(joined(1))} == {"before"}


@pytest.mark.parametrize("way", [BEFORE, AFTER, Way("before", 1), Way("after", 0)])
def test_a_plan_says_its_way_and_the_way_its_plan(way: Way) -> None:
    made = joined(3)
    found = replace(made, chosen=planned(made, way))
    assert way_of(found.plan) == way and found.plan.exchange == ("partition" if way.divided is None else "slice")
    low = lowering(found, parts=2)
    assert [dealt(low, i) for i in (0, 1)] == [way.divided == i
                                               for i in (0, 1)] and (way.divided is None or pivot(low) == way.divided)


def test_query_sets_meet_as_bits_and_only_where_they_intersect() -> None:
    made = joined(70)
    text = "\n".join(sql for _, sql, _ in shared_program(replace(made, chosen=planned(made, AFTER)), lowering(made), (
        10 * BATCH,)).steps[0].define)
    assert "((v0._q0 & v1._q0) <> 0 OR (v0._q1 & v1._q1) <> 0)" in text and "_q2" not in text


def test_of_tasks_by_key_the_heaviest_key_is_in_one_and_of_files_in_each() -> None:
    made = joined(3)
    rows = [[(1, HEAVY, 10.0, 2.0), (1, UNION, 20.0, 4.0)], [(1, HEAVY, 3.0, 1.0), (1, UNION, 5.0, 3.0)]]
    by_key, by_file = (tallied(lowering(replace(made, chosen=planned(made, w)), parts=2), rows)
                       for w in (BEFORE, Way("before", 1)))
    assert by_key == {(1, HEAVY): (10.0, 2.0), (1, UNION): (25.0, 7.0)} and by_file[1, HEAVY] == (13.0, 3.0)


def test_equation_2_is_of_two_inputs() -> None:
    made = joined(2)
    found = paper(made, tally(made, rows=100, keys=10, cells=100))
    assert found is not None and (found.together, found.apart) == (100 + 100 + 10, 2 * (50 + 50 + 10))
