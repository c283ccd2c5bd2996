"""The same random queries through real Spark, both lowerings: in tasks, all pairs side by side in one job a round.

In the JVM as Spark SQL, a run at a time.
"""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import seed as seeded
from hypothesis import settings
from hypothesis import strategies as st

from jobs.engine import jvm
from jobs.engine.tasks import Tasks
from jobs.engine.work import Joining, TaskResult, prepare
from jobs.verify.recompute import Answer
from optimizer.plan.model import Plan, placed
from optimizer.query.model import Query
from optimizer.query.shape import shape
from tests import oracle
from tests.differential import Course, Got, course, differences, limited, plans, varied
from tests.engine import Ask, jvm_order, orders
from tests.streams import Case, cases
from tests.test_differential import accepted, few

pytestmark = pytest.mark.spark
PAIRS = {"tasks": 60, "jvm": 10}      # a test
# of the JVM's, each under the time limit of a test also on a busy machine; those that `make test` runs
SHARDS, SHORT = 4, 2
BOUNDARIES = 2


@dataclass
class Pair:
    """A query and a plan on the way through its boundaries."""

    case: Case
    query: Query
    plan: Plan
    number: int
    parts: int
    expected: dict[int, Answer]

    def course(self) -> Course:
        return course(self.case, self.query, self.plan, Random(self.number), self.parts)

    def wrong(self, got: Got) -> list[str]:
        found = [] if self.case.may_fail and limited(self.query, got) else differences(self.expected, got)
        return [f"{self.plan} in {self.parts} parts, choices by seed {self.number}",
                repr(self.case), *found[:5]] if found else []


def drawn(place: str, seed: int) -> list[Pair]:
    """So many pairs, two of each query at most; drawn by Hypothesis, run together afterwards."""
    found: list[Pair] = []

    @settings(max_examples=2 * PAIRS[place], deadline=None, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))
    @given(cases(), st.integers(0, 2 ** 32))
    def collect(whole: Case, number: int) -> None:
        query, choice = accepted(whole), Random(number)
        if query is not None and len(found) < PAIRS[place]:
            case = few(whole, choice, BOUNDARIES)
            known, expected = plans(query), oracle.answers(case)
            for plan in choice.sample(known, min(2, len(known), PAIRS[place] - len(found))):
                parts = 1 if place == "jvm" or shape(query).whole else choice.choice([1, 2, 3])
                found.append(
                    Pair(case, query, placed(varied(query, plan, choice), place), choice.randrange(2 ** 32), parts,
                         expected))

    seeded(seed)(collect)()
    return found


def kinds(pairs: list[Pair]) -> Counter[str]:
    """What is among them, so that a run shows what it compared."""
    found: Counter[str] = Counter()
    for p in pairs:
        types = {k for _, columns, _ in p.case.streams.values() for k in columns.values()}
        values = [v for _, _, rows in p.case.streams.values() for row in rows for v in row]
        late = any(row[-1] > row[0] // p.case.batch_us * p.case.batch_us + p.case.batch_us
                   for _, _, rows in p.case.streams.values()
                   for row in rows)
        found.update([
            p.plan.keeping, *(["rows"] if p.query.returns_rows else []), *(["relations"] if p.case.relations else []),
            *(["late"] if late else []), *(["NULL"] if None in values else []),
            *(["decimals"] if "decimal(10,2)" in types else [])
        ])
    return found


def side_by_side(tasks: Tasks, pairs: list[Pair]) -> list[Got]:
    """Round after round: the next run of every pair that is not done, all of them in one Spark job."""
    got: list[Got] = [{} for _ in pairs]
    running, told = {n: p.course() for n, p in enumerate(pairs)}, dict[int, list[TaskResult] | None]()
    while running:
        asked: dict[int, Ask] = {}
        for n in list(running):
            try:
                asked[n] = running[n].send(told.get(n))      # type: ignore[arg-type]
            except StopIteration as end:
                got[n] = end.value
                del running[n]
        todo = [replace(o, query=f"q{n}") for n, a in asked.items() for o in orders(a)]
        sent = tuple(s for found in tasks.map(prepare, [o for o in todo if o.narrow.before]) for s in found)
        made = tasks.map(Joining(sent), todo)
        told = {n: [o for o in made if o.query == f"q{n}"] for n in asked}
    return got


def one_by_one(session: Any, pair: Pair) -> Got:
    running, told = pair.course(), None
    while True:
        try:
            asked = running.send(told)      # type: ignore[arg-type]
        except StopIteration as end:
            return end.value      # type: ignore[no-any-return]
        told = [jvm.perform(session, jvm_order(asked))]


def test_tasks_give_the_oracles_answers(spark: Any, seed: int) -> None:
    pairs = drawn("tasks", seed)
    tasks = Tasks("local[2]", _session=spark)
    wrong = [w for p, got in zip(pairs, side_by_side(tasks, pairs)) for w in p.wrong(got)]
    print(len(pairs), "pairs,", tasks.jobs, "jobs:", kinds(pairs))
    assert len(pairs) == PAIRS["tasks"] and tasks.jobs < len(pairs) and not wrong, "\n".join(wrong)


@pytest.mark.parametrize("shard",
                         [pytest.param(n, marks=[pytest.mark.long] if n >= SHORT else []) for n in range(SHARDS)])
def test_spark_sql_gives_the_oracles_answers(spark: Any, seed: int, shard: int) -> None:
    pairs = drawn("jvm", seed + shard)
    wrong = [w for p in pairs for w in p.wrong(one_by_one(spark, p))]
    print(len(pairs), "pairs:", kinds(pairs))
    assert len(pairs) == PAIRS["jvm"] and not wrong, "\n".join(wrong)
