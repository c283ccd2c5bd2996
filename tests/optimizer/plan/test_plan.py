"""Which plans a query has, what they are called, and why some cannot hold it."""
from __future__ import annotations

import pytest

from optimizer.errors import ForebayError
from optimizer.plan.model import Plan, candidates, connected_order, default, named
from optimizer.query.shape import shape
from tests.optimizer.planning import QUERIES, query


@pytest.mark.parametrize("name,count", [("hopping", 7), ("two-streams", 15), ("relation", 15), ("rows", 1)])
def test_every_name_is_listed_once(name: str, count: int) -> None:
    names = [c.plan.name for c in candidates(query(name))]
    assert len(names) == len(set(names)) == count and "LAP running" not in names


def refused(name: str) -> dict[str, str]:
    return {c.plan.name: c.refused for c in candidates(query(name)) if c.refused}


def test_extremes_are_not_retracted_and_holistic_functions_have_one_plan() -> None:
    assert set(refused("extremes")) == {"LAP retract", "EAP01 retract", "EAP10 retract", "EAP11 retract"}
    assert len(candidates(query("distinct"))) - len(refused("distinct")) == 1
    assert not refused("landmark") and not refused("two-streams")


def test_floating_sums_are_not_subtracted() -> None:
    assert set(refused("SELECT SUM(score) AS s FROM views [WINDOW 1 MINUTE]")) == {
        "LAP retract", "EAP1 retract", "EAP1 running"
    }


@pytest.mark.parametrize("name", QUERIES)
def test_the_default_can_hold_the_query(name: str) -> None:
    chosen = default(query(name))
    assert named(query(name), chosen.name).name == chosen.name


def test_the_default_shrinks_inputs_without_a_grouping_attribute() -> None:
    assert default(query("two-streams")).name == "EAP01 recompute" and default(
        query("hopping")).name == "EAP1 recompute"


def test_a_plan_that_is_not_there_or_cannot_be_is_refused() -> None:
    with pytest.raises(ForebayError, match="not a plan") as unknown:
        named(query("two-streams"), "EAP111 expire")
    assert unknown.value.hint is not None and "EAP11 expire" in unknown.value.hint
    with pytest.raises(ForebayError, match="cannot be retracted"):
        named(query("extremes"), "EAP11 retract")
    assert named(query("two-streams"), "  EAP11   expire ").name == "EAP11 expire"


def test_plans_are_valid_or_are_not_made() -> None:
    with pytest.raises(ForebayError, match="not a part"):
        Plan((True,), "forget", (0,))
    with pytest.raises(ValueError, match="order"):
        Plan((True, False), "expire", (0, 0))


def test_the_order_keeps_joined_inputs_together() -> None:
    text = ("SELECT COUNT(*) AS n FROM views AS a [WINDOW 1 MINUTE], pages AS p, views AS c [WINDOW 1 MINUTE] WHERE "
            "a.user = c.user AND a.page = p.page")
    assert connected_order(shape(query(text))) == (0, 1, 2)
    assert connected_order(shape(query(text.replace("AND a.page = p.page", "AND c.page = p.page")))) == (0, 2, 1)
