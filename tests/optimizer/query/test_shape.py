"""What a query asks of each input: keys, measures and what stays for the join."""
from __future__ import annotations

from optimizer.expression.expr import Column
from optimizer.query.shape import Shape, home, mergeable, shape, states
from tests.optimizer.planning import query


def attributes(asked: Shape, i: int) -> set[str]:
    return {a.expr.name for a in asked.attributes[i] if isinstance(a.expr, Column)}


def test_partials_are_keyed_by_their_own_grouping_and_join_attributes() -> None:
    asked = shape(query("two-streams"))
    assert (attributes(asked, 0), attributes(asked, 1)) == ({"page", "user"}, {"user"})


def test_what_an_expression_across_inputs_reads_stays_for_the_join() -> None:
    asked = shape(query("across"))
    assert (attributes(asked, 0), attributes(asked, 1)) == ({"user", "ms"}, {"user", "amount"})
    assert all(m.home is None for m in asked.measures) and len(asked.selections[0]) == 1


def test_each_state_is_carried_once() -> None:
    asked = shape(
        query(
            "SELECT SUM(ms) AS a, AVG(ms) AS b, STDDEV(ms) AS c, COUNT(ms) AS d, COUNT(*) AS e FROM views [WINDOW 1 "
            "MINUTE]"
        ))
    assert [m.kind for m in asked.measures] == ["count", "sum", "square"]


def test_one_holistic_aggregate_makes_all_whole() -> None:
    asked = shape(query("distinct"))
    assert asked.whole and [m.kind for m in asked.measures] == ["whole", "whole"]
    assert not shape(query("two-streams")).whole


def test_spreads_of_doubles_have_no_partial_states() -> None:
    exact, floating = query("SELECT STDDEV(ms) AS a, STDDEV(score) AS b FROM views [WINDOW 1 MINUTE]").aggregates
    assert mergeable(exact) and not mergeable(floating)
    assert [kind for kind, _ in states(exact)] == ["count", "sum", "square"]


def test_equalities_in_a_chain_are_one_class_and_its_common_key() -> None:
    text = (
        "SELECT COUNT(*) AS n FROM views AS a [WINDOW 1 MINUTE], views AS b [WINDOW 1 MINUTE], clicks AS c [WINDOW 1 "
        "MINUTE] "
        "WHERE a.user = b.user AND b.user = c.user")
    asked = shape(query(text))
    assert len(asked.keys) == 1 and asked.common_key() == tuple(own[0] for own in asked.attributes)
    star = shape(query(text.replace("b.user = c.user", "b.page = c.user")))
    assert len(star.keys) == 2 and star.common_key() is None


def test_home_of_an_expression() -> None:
    across = query("across").aggregates[0].argument
    assert across is not None and home(across) is None and home(query("two-streams").groups[0]) == 0
