"""Plans as people read them: golden trees and statements, each plan of which also gives the oracle's answers."""
from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest

from optimizer.choice.consider import Costs, consider
from optimizer.choice.explain import document, sql, tree
from optimizer.cost.measured import prior
from optimizer.plan.model import candidates, named
from optimizer.query.shape import shape
from optimizer.statistics.estimate import assumed
from optimizer.time import span
from tests import oracle
from tests.differential import answers, differences, query_of
from tests.optimizer.planning import BATCH, QUERIES, query
from tests.streams import SECOND, Case

GOLDENS = Path(__file__).resolve().parents[2] / "plans"
CHOSEN = [("two-streams", "EAP01 recompute"), ("two-streams", "EAP11 running"), ("two-streams", "EAP10 retract"),
          ("extremes", "EAP11 running"), ("extremes", "EAP01 expire"), ("relation", "EAP10 expire"),
          ("hopping", "EAP1 running"), ("landmark", "EAP11 retract"), ("across", "LAP expire"),
          ("rows", "LAP recompute"), ("distinct", "LAP recompute")]


@pytest.mark.parametrize("name,plan", CHOSEN)
def test_a_plan_reads_as_it_did(name: str, plan: str, golden: Callable[[Path, str], None]) -> None:
    asked = query(name)
    chosen = named(asked, plan)
    text = "\n\n".join([QUERIES[name], tree(asked, chosen), *(s + ";" for s in sql(asked, chosen))])
    golden(GOLDENS / f"{name}-{plan.replace(' ', '-')}.plan", text + "\n")


def case(name: str) -> Case:
    choice = Random(name)
    start = 1_700_000_000 * SECOND

    def row(*values: object) -> tuple[object, ...]:
        ts = start + choice.randrange(12 * BATCH)
        return (ts, *values, (ts // BATCH + 1 + choice.choice([0, 0, 0, 2])) * BATCH)

    users, pages = ["ann", "bob", None], ["a", "b", "x"]
    views = [
        row(choice.choice(users), choice.choice(pages), choice.randrange(9),
            choice.randrange(9) / 4) for _ in range(60)
    ]
    clicks = [row(choice.choice(users), choice.choice([None, Decimal("1.25"), Decimal("2.00")])) for _ in range(40)]
    columns = {"ts": "timestamp", "user": "string", "page": "string", "ms": "bigint", "score": "double"}
    streams = {
        "views": ("ts", columns, views),
        "clicks": ("ts", {
            "ts": "timestamp",
            "user": "string",
            "amount": "decimal(10,2)"
        }, clicks)
    }
    relations = {
        "pages": ({
            "page": "string",
            "section": "string"
        }, [(0, [("a", "news"), ("b", "news"), ("x", "sport")])])
    }
    return Case(BATCH, streams, relations, QUERIES[name], list(range(start + BATCH, start + 16 * BATCH, BATCH)), False)


@pytest.mark.slow
@pytest.mark.parametrize("name,plan", CHOSEN)
def test_a_plan_that_is_shown_gives_the_oracles_answers(name: str, plan: str) -> None:
    asked = case(name)
    parsed = query_of(asked)
    expected = oracle.answers(asked)
    assert any(getattr(a, "num_rows", 0) for a in expected.values())
    assert differences(expected, answers(asked, parsed, named(parsed, plan), Random(plan))) == []


@pytest.mark.parametrize("name", QUERIES)
def test_the_document_has_every_candidate(name: str) -> None:
    asked = query(name)
    decision = consider(asked, assumed(shape(asked), BATCH), Costs(prior(), 2), everything=True)
    made = document(asked, decision, {"streams": {}})
    listed = made["candidates"]
    assert isinstance(listed, list)
    names = [c["plan"] for c in listed]
    assert names == [c.plan.name for c in candidates(asked)] and made["chosen"] in names
    assert all((c["predicted_s"] is None) == (c["refused"] is not None) == (c["paper_cost"] is None) for c in listed)
    assert min(c["predicted_s"] for c in listed if c["refused"] is None) == next(
        c["predicted_s"] for c in listed if c["plan"] == made["chosen"])
    assert set(made) == {"chosen", "summary", "why", "statistics", "tree", "sql", "candidates"}
    assert str(made["tree"]).startswith(str(made["chosen"]))


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_every_plan_can_be_shown(name: str, step: int) -> None:
    """In the fast set every ninth."""
    asked = query(name)
    for candidate in candidates(asked)[::step]:
        if candidate.refused is None:
            lines = tree(asked, candidate.plan).splitlines()
            assert sum("Scan " in line for line in lines) == len(asked.inputs)
            assert sum("AS " in line and "γ by" in line for line in lines) == sum(candidate.plan.digits)
            assert all("SELECT" in s for s in sql(asked, candidate.plan))


def test_lengths_of_time_are_said_in_their_largest_unit() -> None:
    assert [span(n) for n in (90 * SECOND, 3600 * SECOND, 1_500_000, 7)] == ["90 s", "1 h", "1500 ms", "7 µs"]
