"""Random queries over random rows: every plan, however its boundaries are run, divided, switched and compacted, gives
the oracle's answers.
"""
from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import seed as seeded
from hypothesis import settings
from hypothesis import strategies as st

from jobs.verify.recompute import Answer
from optimizer.errors import ForebayError
from optimizer.plan.model import Plan
from optimizer.query.model import Query
from optimizer.query.shape import shape
from tests import oracle
from tests.differential import answers, differences, folder_of, limited, plans, query_of, relations_at, varied, versions
from tests.engine import Ask, Failed, run
from tests.seeds import seed
from tests.streams import Case, cases

SHARDS = 4      # each its own test, so that they run beside each other
PAIRS = 200     # of a query and a plan, at least, in all shards
FULL = os.environ.get("FOREBAY_TESTS") == "full"
EACH = 3 if FULL else 4      # plans of a query: the oracle answers it once
DRAWS = 40 if FULL else 16   # queries a shard, of which the fast set stops at its share of the pairs


def check(case: Case, query: Query, named: Plan, expected: dict[int, Answer], choice: Random,
          creation: int | None = None) -> None:
    number, plan = choice.randrange(2**32), varied(query, named, choice)
    parts = 1 if shape(query).whole else choice.choice([1, 1, 2, 3] if FULL else [1, 1, 1, 2, 3])
    got = answers(case, query, plan, Random(number), parts, creation)
    found = [] if case.may_fail and limited(query, got) else differences(expected, got)
    assert not found, f"{plan} in {parts} parts, choices by seed {number}: {case.sql}\n" + "\n".join(found[:5])


def accepted(case: Case) -> Query | None:
    """None for what the front end refuses: what cannot be computed exactly in 38 digits."""
    try:
        return query_of(case)
    except ForebayError:
        return None


def few(case: Case, choice: Random, most: int) -> Case:
    """Some consecutive boundaries: the query is created at the first of them."""
    start = choice.randrange(max(1, len(case.boundaries) - most + 1))
    return replace(case, boundaries=case.boundaries[start:start + most])


def drawn(count: int, body: Callable[[Case, Query, Random], None]) -> Callable[[], None]:
    """body(case, its query, choices) for so many random cases that the front end accepts."""

    @settings(max_examples=count, deadline=None, database=None, print_blob=True,
              suppress_health_check=list(HealthCheck))
    @given(cases(), st.integers(0, 2 ** 32))
    def test(case: Case, number: int) -> None:
        query = accepted(case)
        if query is not None:
            body(case, query, Random(number))

    return test


@pytest.mark.parametrize("shard", range(SHARDS))
def test_plans_give_the_oracles_answers(shard: int) -> None:
    pairs: Counter[str] = Counter()

    def body(whole: Case, query: Query, choice: Random) -> None:
        if not FULL and pairs.total() >= PAIRS // SHARDS:
            return
        case, known = few(whole, choice, choice.choice((1, 2))), plans(query)
        expected = oracle.answers(case)
        for plan in choice.choices(known, k=EACH):
            check(case, query, plan, expected, choice)
            pairs.update([plan.name if len(query.inputs) < 3 else plan.keeping])

    found = drawn(DRAWS, body)
    seeded(shard + seed())(found)()
    assert pairs.total() >= PAIRS // SHARDS and len(pairs) >= 4, pairs


@pytest.mark.slow
def test_all_plans_give_the_oracles_answers_at_every_boundary() -> None:
    def body(case: Case, query: Query, choice: Random) -> None:
        expected, known = oracle.answers(case), plans(query)
        for plan in choice.sample(known, min(6, len(known))):
            check(case, query, plan, expected, choice)

    drawn(8, body)()


@pytest.mark.slow
def test_a_query_created_later_answers_from_the_history_there_is() -> None:
    def body(case: Case, query: Query, choice: Random) -> None:
        creation = choice.choice(case.boundaries)
        check(case, query, choice.choice(plans(query)), oracle.answers(case, creation=creation), choice, creation)

    drawn(30, body)()


@pytest.mark.slow
def test_batches_split_and_merged_give_the_same_answers() -> None:
    """All boundaries at once, one by one, and cut anywhere, over the same files."""
    def body(case: Case, query: Query, choice: Random) -> None:
        due = tuple(t for t in case.boundaries if t % query.every == 0)
        if case.may_fail or not due or versions(case, query):
            return
        plan, cut, expected = varied(query, choice.choice(plans(query)),
                                     choice), choice.randrange(len(due)), oracle.answers(case)
        # a product of large values; the first test here is for that
        if any(isinstance(answer, ForebayError) for answer in expected.values()):
            return
        folder = folder_of(case, query, choice)
        relations_at(case, query, folder, due[0])
        for groups in ([due], [(t,) for t in due], [g for g in (due[:cut], due[cut:]) if g]):
            folder.state = {}
            found = differences(expected, dict(run(query, plan, folder, groups)))
            assert not found, f"{plan} by {groups}: {case.sql}\n" + "\n".join(found[:5])
        folder.remove()

    drawn(20, body)()


@pytest.mark.slow
def test_tasks_that_divide_the_boundaries_give_the_oracles_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """In runs of one boundary and of many, with state carried on from each run of the tasks to the next."""
    monkeypatch.setattr(Ask, "_divides_boundaries", True)
    pairs: Counter[str] = Counter()

    def body(case: Case, query: Query, choice: Random) -> None:
        expected = oracle.answers(case)
        known = [plan for plan in plans(query) if plan.keeping == "recompute" and not query.returns_rows]
        for named in choice.choices(known, k=3) if known else ():
            plan, number = varied(query, named, choice), choice.randrange(2**32)
            parts = 1 if shape(query).whole else choice.choice([2, 3, 5])
            got = answers(case, query, plan, Random(number), parts, by_tasks=choice.random() < 0.3)
            found = [] if case.may_fail and limited(query, got) else differences(expected, got)
            assert not found, f"{plan} in {parts} runs, seed {number}: {case.sql}\n" + "\n".join(found[:5])
            pairs.update([f"{plan.layout} {bool(query.windows)} {shape(query).whole}"])

    drawn(120 if FULL else 40, body)()
    assert len(pairs) >= 4, pairs


@pytest.mark.slow
def test_tasks_that_merge_many_groups_give_the_same_answers() -> None:
    """To the last digit what the driver's merge gives, failures included."""
    pairs: Counter[str] = Counter()

    def body(whole: Case, query: Query, choice: Random) -> None:
        case = few(whole, choice, choice.choice((1, 2, 4)))
        for named in choice.choices(plans(query), k=3):
            plan, number = varied(query, named, choice), choice.randrange(2**32)
            parts = 1 if shape(query).whole else choice.choice([1, 2, 3])
            here, there = (answers(case, query, plan, Random(number), parts, by_tasks=by_tasks)
                           for by_tasks in (False, True))
            assert list(here) == list(there), f"{plan} by seed {number}: {case.sql}"
            for t, answer in here.items():
                assert alike(answer, there[t]), f"{t} by {plan} in {parts} parts, seed {number}: {case.sql}"
            pairs.update([plan.keeping])

    drawn(60, body)()
    assert len(pairs) == 4, pairs


def alike(answer: pa.Table | Failed, other: pa.Table | Failed) -> bool:
    """Rows are equal to the last bit, in any order; a failure is a failure."""
    if isinstance(answer, Failed) or isinstance(other, Failed):
        return isinstance(answer, Failed) and isinstance(other, Failed)
    return Counter(map(repr, answer.to_pylist())) == Counter(map(repr, other.to_pylist()))
