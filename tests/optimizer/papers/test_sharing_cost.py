"""Paper E's formulas and its worked example: queries Q1 … Q7 on videos, views, comments, reactions (Figs 6 and 7)."""
from __future__ import annotations

from random import Random

import pytest

from optimizer.papers.reorder import Joins, Orders, orders, replanned
from optimizer.papers.sharing import HYSTERESIS, JoinSizes, QuerySets, Side, cost, gain, groups, union


def sets(**rows: float) -> QuerySets:
    """Rows by the queries that select them, written as digits: q14=3 is three rows for Q1 and Q4."""
    return QuerySets({frozenset("Q" + c for c in name[1:]): n for name, n in rows.items()})


def test_inclusion_and_exclusion_of_three_sets() -> None:
    sizes = {"A": 10.0, "B": 8.0, "C": 6.0, "AB": 4.0, "BC": 3.0, "AC": 2.0, "ABC": 1.0}
    assert union("ABC", lambda of: sizes["".join(sorted(of))]) == 10 + 8 + 6 - 4 - 3 - 2 + 1


def test_counted_unions_are_what_the_formula_gives() -> None:
    choice = Random(7)
    found = QuerySets(
        {frozenset(q for q in "ABCDE" if choice.random() < 0.4): float(choice.randrange(1, 9)) for _ in range(20)})
    for wanted in ("A", "AB", "BDE", "ABCDE"):
        assert found.of(wanted) == pytest.approx(union(wanted, found.all_of))
    with pytest.raises(ValueError, match="intersections"):
        union((str(n) for n in range(17)), lambda _: 0.0)


def test_the_cost_of_a_join_has_four_terms() -> None:
    assert cost(Side(100, 10), Side(50, 7)) == 100 + 50 + 7
    assert cost(Side(100, 10, indexed=False), Side(50, 7), joined=500, materialised=True) == 50 + 7 + 500


def test_query_sets_of_the_text_share_three_of_four_tuples() -> None:
    """t1 … t4 have query-sets 100100, 101100, 100100, 100000."""
    found = sets(q14=2, q134=1, q1=1)
    assert found.all_of(("Q1", "Q4")) == 3 and found.of(("Q2", "Q3", "Q5", "Q6")) == 1


def test_sharing_loses_where_nothing_is_shared_and_the_join_is_formed() -> None:
    """Fig. 6: Q4 and Q5 select other videos and other views, and a shared join forms what neither asked for."""
    join = JoinSizes(sets(q4=100, q5=100), sets(q4=100, q5=100), 50, 50, materialised=True)
    assert join.together(("Q4", "Q5")) > join.apart(("Q4", "Q5"))
    assert groups(("Q4", "Q5"), join.together) == (frozenset({"Q4"}), frozenset({"Q5"}))


def test_groups_of_figure_7a() -> None:
    """Q1 and Q2 take all videos and views, Q4 and Q6 mostly the same French ones, Q5 others."""
    rows = sets(q12=1000, q1246=60, q124=5, q126=5, q125=80)
    join = JoinSizes(rows, rows, 400, 400, materialised=True)
    each = sets(q12=1000, q46=60, q4=5, q6=5, q5=80)
    together = JoinSizes(each, each, 400, 400, materialised=True)
    found = groups(("Q1", "Q2", "Q4", "Q5", "Q6"), together.together)
    assert found == (frozenset({"Q1", "Q2"}), frozenset({"Q4", "Q6"}), frozenset({"Q5"}))
    assert gain(frozenset({"Q1"}), frozenset({"Q2"}), join.together) == pytest.approx(0.5)


def test_groups_that_stand_move_only_for_more_than_the_hysteresis() -> None:
    standing = (frozenset("ab"),)
    costs = {frozenset("a"): 10.0, frozenset("b"): 10.0, frozenset("c"): 10.0}

    def shared(apart: float) -> dict[frozenset[str], float]:
        return {**costs, frozenset("ab"): 20 * (1 - apart), **{frozenset(g): 40.0 for g in ("abc", "ac", "bc")}}

    for won in (-HYSTERESIS / 2, HYSTERESIS / 2):
        assert groups("abc", shared(won).__getitem__, standing)[0] == frozenset("ab")
    assert frozenset("ab") not in groups("abc", shared(-2 * HYSTERESIS).__getitem__, standing)
    assert frozenset("ab") in groups("abc",
                                     shared(HYSTERESIS / 2).__getitem__) and frozenset("ab") not in groups(
                                         "abc",
                                         shared(-0.01).__getitem__)


V, W, C, R = "VWCR"
Q: dict[str, Joins] = {
    "Q1": Joins(frozenset("VW"), frozenset({frozenset("VW")})),
    "Q2": Joins(frozenset("VWC"), frozenset({frozenset("VW"), frozenset("WC")})),
    "Q3": Joins(frozenset("WCR"), frozenset({frozenset("WC"), frozenset("CR")})),
    "Q4": Joins(frozenset("VW"), frozenset({frozenset("VW")})),
    "Q5": Joins(frozenset("VW"), frozenset({frozenset("VW")})),
    "Q6": Joins(frozenset("VWC"), frozenset({frozenset("VW"), frozenset("WC")}))}
GROUP = {("Q1", "VW"): 1, ("Q2", "VW"): 1, ("Q4", "VW"): 2, ("Q6", "VW"): 2, ("Q5", "VW"): 3,
         ("Q2", "CW"): 1, ("Q3", "CW"): 1, ("Q6", "CW"): 2, ("Q7", "CW"): 2}
PRICES = {"VW": 100.0, "CW": 150.0, "CR": 400.0}


def group(query: str, sources: frozenset[str]) -> object:
    return GROUP.get((query, "".join(sorted(sources))), query if len(sources) > 2 else 0)


def price(query: str, left: frozenset[str], right: frozenset[str]) -> float:
    return PRICES.get("".join(sorted(left | right)), 300.0)


def test_join_orders_of_figure_7b() -> None:
    """V ⋈ W is cheapest shared, so Q2 and Q6 begin with it; Q3 keeps W ⋈ C although Q2 shares it no longer."""
    found = orders(Q, price, group)
    for q in ("Q1", "Q2", "Q4", "Q5", "Q6"):
        assert set(map(frozenset, found[q][:1])) == {frozenset({frozenset(V), frozenset(W)})}
    assert found["Q2"][1] in ((frozenset(C), frozenset("VW")), (frozenset("VW"), frozenset(C)))
    assert set(found["Q3"][0]) == {frozenset(W), frozenset(C)} and len(found["Q3"]) == 2


def test_sharing_turns_an_order_around() -> None:
    """Alone Q2 begins with the cheaper V ⋈ W; where two others share W ⋈ C in its group and none V ⋈ W, with that."""
    alone = orders({"Q2": Q["Q2"]}, price, group)
    together = orders({"Q2": Q["Q2"], "Q3": Q["Q3"]}, price, group)
    assert set(alone["Q2"][0]) == {frozenset(V), frozenset(W)} and set(
        together["Q2"][0]) == {frozenset(W), frozenset(C)}


def test_a_change_touches_only_its_group_and_many_changes_touch_all() -> None:
    """Q4 leaves, Q7 = W ⋈ C comes into the group of Q6: Q6 and Q7 are planned, the others stand."""
    before: Orders = orders(Q, price, group)
    now = {q: j for q, j in Q.items() if q != "Q4"} | {"Q7": Joins(frozenset("WC"), frozenset({frozenset("WC")}))}
    seen: set[str] = set()

    def watched(query: str, left: frozenset[str], right: frozenset[str]) -> float:
        seen.add(query)
        return price(query, left, right)

    after = replanned(now, before, ("Q4", "Q7"), watched, group)
    assert seen <= {"Q6", "Q7"} and "Q7" in after and "Q4" not in after
    assert {q: after[q] for q in ("Q1", "Q2", "Q3", "Q5")} == {q: before[q] for q in ("Q1", "Q2", "Q3", "Q5")}
    replanned(now, before, ("Q1", "Q2", "Q3", "Q4"), watched, group)
    assert {"Q1", "Q5"} & seen
