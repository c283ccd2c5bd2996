"""Random texts of several SELECTs answered from windows' rows, and by Spark SQL over the same rows: equality is the
test.
"""
from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from jobs.engine import jvm
from optimizer.errors import ForebayError
from optimizer.plan.model import placed
from tests import oracle
from tests.differential import answers, course, differences, plans, query_of
from tests.engine import jvm_order
from tests.nested_queries import drawn

pytestmark = pytest.mark.spark
QUERIES = 40      # a shard
SHARDS, SHORT = 5, 1


def check(spark: Any, number: int, kinds: Counter[str]) -> list[str]:
    case = drawn(number)
    try:
        query = query_of(case)
    except ForebayError as error:
        kinds[f"refused: {error.code}"] += 1
        return []
    choice = Random(number)
    expected = oracle.answers(case, "jvm", spark)
    wrong = []
    kinds["with partners"] += bool(query.semi)
    for plan in choice.sample(plans(query), min(3, len(plans(query)))):
        got = answers(case, query, plan, choice)
        kinds["of several" if query.blocks is not None or query.above is not None else "of one SELECT"] += 1
        kinds["rows"] += sum(getattr(answer, "num_rows", 0) for answer in got.values())
        wrong += [f"{number} {plan.name}: {case.sql}\n  {what}" for what in differences(expected, got)[:3]]
    return wrong


@pytest.mark.parametrize("shard",
                         [pytest.param(n, marks=[pytest.mark.long] if n >= SHORT else []) for n in range(SHARDS)])
def test_texts_of_several_selects_mean_what_spark_means(spark: Any, seed: int, shard: int) -> None:
    kinds: Counter[str] = Counter()
    numbers = [seed * 1000 + shard * QUERIES + n for n in range(QUERIES)]
    wrong = [what for number in numbers for what in check(spark, number, kinds)]
    print(kinds)
    assert not wrong, "\n".join(wrong[:10])
    assert kinds["of several"] > QUERIES / 4 and kinds["with partners"] > 2 and kinds["rows"] > QUERIES


def test_spark_sql_runs_the_same_statements(spark: Any, seed: int) -> None:
    """Where tables have features that the kernel must not ignore, a batch runs in the JVM."""
    wrong, compared = [], 0
    for number in range(seed * 1000 + 500, seed * 1000 + 512):
        case = drawn(number)
        query = query_of(case)
        if query.blocks is None:
            continue
        case = replace(case, boundaries=case.boundaries[:1])
        asked = course(case, query, placed(plans(query)[0], "jvm"), Random(number))
        got, told = None, None
        while got is None:
            try:
                told = [jvm.perform(spark, jvm_order(asked.send(told)))]      # type: ignore[arg-type]
            except StopIteration as end:
                got = end.value
        compared += 1
        wrong += [f"{number}: {case.sql}\n  {what}" for what in differences(oracle.answers(case, "jvm", spark), got)]
    assert compared > 3 and not wrong, "\n".join(wrong[:5])
