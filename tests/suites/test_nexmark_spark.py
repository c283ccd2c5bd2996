"""Nexmark, query by query: plans give Spark's answer, and that of plain SQL where it has a rule."""
from __future__ import annotations

from random import Random
from typing import Any

import pytest

from jobs.verify.recompute import without_rule
from tests import oracle
from tests.differential import answers, differences, plans, query_of
from tests.suites.nexmark import BATCH, QUERIES, case

pytestmark = pytest.mark.spark
PLANS = 4      # of a query, drawn


@pytest.mark.parametrize("name", QUERIES)
def test_nexmark(spark: Any, seed: int, name: str) -> None:
    asked = case(name, seed)
    query, choice = query_of(asked), Random(seed)
    expected = oracle.answers(asked, "jvm", spark)
    assert any(answer.num_rows for answer in expected.values())      # type: ignore[union-attr]
    for plan in choice.sample(plans(query), min(PLANS, len(plans(query)))):
        got = answers(asked, query, plan, choice)
        assert not differences(expected, got), plan.name
        if without_rule(asked.sql, oracle.catalog(asked), BATCH) is None:
            assert not differences(oracle.answers(asked), got), plan.name


def test_all_of_it_counts() -> None:
    assert list(QUERIES) == [f"q{n}" for n in range(24)]
