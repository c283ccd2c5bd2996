"""What operators say that they handle, beside what they really handle: stated within 1.3 × of counted for nine in ten
amounts.

Plans get exact statistics of their inputs (rates, rows, combinations, each key's share), and nothing of what stands
between operators: that is what they estimate. Rows are counted in DuckDB over random rows
(tests/optimizer/plan/counted.py).
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

import pytest

from optimizer.cost.features import steady
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import Plan, candidates
from optimizer.plan.operators.running import panes_that_can_matter
from optimizer.plan.tree import state_sets
from optimizer.query.model import Query
from optimizer.query.shape import shape
from optimizer.statistics.cardinality import MERGED
from tests.optimizer.plan.counted import Life, Setting, counted, exact_statistics
from tests.optimizer.planning import query
from tests.seeds import seed

NEAR = 1.3
SHARE = 0.9
FEW = 8.0             # rows or values below which a share says nothing
KINDS = ("scan", "keep", "group", "made", "build", "probe", "pairs", "state_read", "state_write")
TWO = "FROM views AS v [WINDOW 1 MINUTE], clicks AS c [WINDOW 40 SECONDS] WHERE v.user = c.user"
QUERIES = (
    f"SELECT v.page, COUNT(*) AS n, SUM(c.amount) AS s {TWO} GROUP BY v.page",
    f"SELECT v.page, MIN(c.amount) AS low, MAX(v.ms) AS high {TWO} GROUP BY v.page",
    f"SELECT v.user, c.amount, COUNT(*) AS n {TWO} GROUP BY v.user, c.amount",
    "SELECT v.page, COUNT(*) AS n, MAX(v.ms) AS high, MIN(v.score) AS low FROM views AS v [WINDOW 6 MINUTES] GROUP BY "
    "v.page",
    "SELECT p.section, COUNT(*) AS n, SUM(v.ms) AS s FROM views AS v [WINDOW 1 MINUTE TUMBLING], pages AS p "
    "WHERE v.page = p.page GROUP BY p.section",
    "SELECT v.user, COUNT(*) AS n, MAX(v.ms) AS m FROM views AS v [WINDOW 5 MINUTES SLIDE 20 SECONDS] GROUP BY v.user",
    "SELECT v.page, COUNT(*) AS n, SUM(c.amount) AS s, SUM(w.ms) AS m FROM views AS v [WINDOW 1 MINUTE], "
    "clicks AS c [WINDOW 40 SECONDS], views AS w [WINDOW 30 SECONDS] WHERE v.user = c.user AND w.user = c.user GROUP "
    "BY v.page",
)


@dataclass(frozen=True)
class Amount:
    """One amount of work that an operator of a plan stated, and what was counted of it."""

    plan: str
    node: str
    kind: str
    stated: float
    counted: float

    @property
    def is_near(self) -> bool:
        return self.counted / NEAR <= self.stated <= self.counted * NEAR

    def __str__(self) -> str:
        return f"{self.plan}: {self.node} states {self.stated:,.0f} of {self.kind!r}, counted {self.counted:,.0f}"


def forms(text: str) -> list[tuple[Query, Plan]]:
    asked = query(text)
    plans = [candidate.plan for candidate in candidates(asked) if candidate.refused is None]
    raw = [replace(plan, layout="raw") for plan in plans if plan.keeping == "recompute" and any(plan.digits)]
    return [(asked, plan) for plan in (*plans, *raw)]


def settings(random: Random) -> Setting:
    return Setting(random.randint(20, 120), random.randint(10, 60), random.randint(8, 60), random.randint(4, 30),
                   random.choice((0.0, 0.5)))


def amounts(asked: Query, plan: Plan, setting: Setting, random: Random) -> Iterator[Amount]:
    """Of a plan that has settled: state holds whole windows, and its files have been merged where a window has many."""
    life = Life(asked, replace(plan, exchange="slice"), setting, random)
    steps = max(i.window.range // asked.every for i in asked.inputs if i.window)
    many = steps > MERGED
    amounts_of, last = counted(life, steps + (MERGED + 2 if many else 3), MERGED + 1 if many else 6)
    features = steady(asked, plan, exact_statistics(life, last))
    for node, kind in sorted({(node, kind) for node in features.nodes for kind in KINDS} | set(amounts_of)):
        amount = Amount(plan.name, node, kind,
                        features.nodes.get(node, {}).get(kind, 0.0), amounts_of.get((node, kind), 0.0))
        if kind in KINDS and max(amount.stated, amount.counted) > FEW:
            yield amount


def check(found: list[Amount]) -> None:
    far = [amount for amount in found if not amount.is_near]
    for amount in far:
        print(amount)
    assert found, "no operator stated anything"
    assert len(found) - len(far) >= SHARE * len(found), (
        f"{len(far)} of {len(found)} amounts are not within {NEAR} × of what was counted, expected at most "
        f"{1 - SHARE:.0%}:\n"
        + "\n".join(map(str, far)))


@pytest.mark.slow
def test_stated_work_is_what_is_counted() -> None:
    random = Random(seed())
    drawn = [random.choice(forms(text)) for text in QUERIES[:-1] for _ in range(2)]
    check([amount for asked, plan in drawn for amount in amounts(asked, plan, settings(random), random)])


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_every_plan_states_what_is_counted() -> None:
    random = Random(seed())
    every = [form for text in QUERIES for form in forms(text)]
    check([amount for asked, plan in every for amount in amounts(asked, plan, settings(random), random)])


def test_extremes_that_can_matter_grow_like_the_logarithm_of_the_window() -> None:
    for measures in (1, 2, 3):
        rows = [panes_that_can_matter(panes, measures) for panes in (0.5, 1, 2, 50, 999, 1_000, 1_001, 1_100, 100_000)]
        assert rows == sorted(rows) and rows[1] == 1
        assert rows[-1] < 12 * measures + 6


def test_the_counting_can_fail() -> None:
    """A plan that is priced as another one is far from what is counted of it."""
    asked, random = query(QUERIES[3]), Random(1)
    by_name = {plan.name: plan for _, plan in forms(QUERIES[3])}
    running, other = by_name["EAP1 running"], by_name["LAP recompute"]
    assert [s.name for s in state_sets(Lowering(shape(asked), running))] == ["totals0", "extremes0"]
    life = Life(asked, other, Setting(40, 0, 10, 5), random)
    rows, last = counted(life, 3, 2)
    stated = steady(asked, running, exact_statistics(life, last)).nodes
    with pytest.raises(AssertionError, match="are not within"):
        check([
            Amount("", node, kind,
                   stated.get(node, {}).get(kind, 0.0), amount) for (node, kind), amount in rows.items()
        ])
