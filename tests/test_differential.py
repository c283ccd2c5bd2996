"""Random queries over random rows: every plan, however its boundaries are run, divided, switched and compacted, gives the oracle's answers."""
from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.verify import Answer
from optimizer.errors import ForebayError
from optimizer.plan import Plan
from optimizer.query import Query
from optimizer.shape import shape
from tests import oracle
from tests.differential import answers, differences, limited, plans, query_of
from tests.streams import Case, cases

PAIRS: Counter[str] = Counter()


def check(case: Case, query: Query, plan: Plan, expected: dict[int, Answer], choice: Random) -> None:
    seed = choice.randrange(2**32)
    parts = 1 if shape(query).whole else choice.choice([1, 1, 2, 3])
    got = answers(case, query, plan, Random(seed), parts)
    found = [] if case.may_fail and limited(query, got) else differences(expected, got)
    PAIRS.update([plan.name if len(query.inputs) < 3 else plan.keeping])
    assert not found, f"{plan.name} in {parts} parts, choices by seed {seed}: {case.sql}\n" + "\n".join(found[:5])


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


def test_plans_give_the_oracles_answers() -> None:
    @settings(max_examples=100, deadline=None, database=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(cases(), st.integers(0, 2**32))
    def run(whole: Case, seed: int) -> None:
        choice = Random(seed)
        case = few(whole, choice, 3)
        query = accepted(case)
        if query is None:
            return
        expected, known = oracle.answers(case), plans(query)
        for plan in choice.sample(known, min(3, len(known))):
            check(case, query, plan, expected, choice)

    PAIRS.clear()
    run()
    assert sum(PAIRS.values()) >= 200 and len(PAIRS) >= 8, PAIRS


@pytest.mark.slow
def test_all_plans_give_the_oracles_answers_at_every_boundary() -> None:
    @settings(max_examples=60, deadline=None, database=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(cases(), st.integers(0, 2**32))
    def run(case: Case, seed: int) -> None:
        query, choice = accepted(case), Random(seed)
        if query is None:
            return
        expected, known = oracle.answers(case), plans(query)
        for plan in choice.sample(known, min(6, len(known))):
            check(case, query, plan, expected, choice)

    run()


@pytest.mark.slow
def test_a_query_created_later_answers_from_the_history_there_is() -> None:
    @settings(max_examples=60, deadline=None, database=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(cases(), st.integers(0, 2**32))
    def run(case: Case, seed: int) -> None:
        query, choice = accepted(case), Random(seed)
        if query is None:
            return
        creation = choice.choice(case.boundaries)
        for plan in choice.sample(plans(query), 1):
            got = answers(case, query, plan, choice, creation=creation)
            found = [] if case.may_fail and limited(query, got) else differences(oracle.answers(case, creation=creation), got)
            assert not found, found[:5]

    run()
