"""Spark is the judge of types and values: every row of the optimizer's tables, over all types and their corner values,
as written and in each of our forms.
"""
from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from function_cases import nested
from judge import SIZE, Case, Judge, cases
from judge_aggregates import SETS, TAKEN, asked_aggregates, differing
from judge_cases import FORMS, TARGETS, candidates
from scalar_cases import TYPES, read

from optimizer.errors import ForebayError
from optimizer.expression.casting import castable
from optimizer.expression.functions.table import NAMES, OPERATORS
from optimizer.expression.types import NAMES as TYPE_NAMES
from optimizer.expression.types import parse_type
from optimizer.sql.aggregates import AGGREGATES
from tests.seeds import seed

PARTS = 120     # of some 32,000 expressions; a part takes some 20 s in a warm JVM and has some of each row
DRAWN = 6       # parts that `make test` runs: a third of all would double its time


def parts() -> list[Any]:
    """`make test` runs the parts that its seed says, `make long` the others."""
    drawn = {(seed() + k * PARTS // DRAWN) % PARTS for k in range(DRAWN)}
    return [
        pytest.param(n, marks=[pytest.mark.spark, *([] if n in drawn else [pytest.mark.long])]) for n in range(PARTS)
    ]


@pytest.fixture(scope="module")
def judge(spark: Any) -> Iterator[Judge]:
    found = Judge(spark)
    yield found
    found.close()


@pytest.mark.parametrize("part", parts())
def test_types_and_values_are_those_of_spark(judge: Judge, part: int) -> None:
    wrong = judge.judged(cases(part, PARTS))
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:40])


@pytest.mark.spark
def test_calls_within_calls_are_those_of_spark(judge: Judge) -> None:
    """Drawn by the seed: what fails inside fails outside, a NULL comes before what fails after it."""
    wrong = judge.judged([Case.of(text) for text in nested(Random(seed()), 40, read)])
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:40])


@pytest.mark.spark
def test_the_judge_sees_a_wrong_type_a_wrong_value_and_a_wrong_failure(judge: Judge) -> None:
    """Expressions beside others' trees."""
    read = {
        c.text: c
        for c in (Case.of(t) for t in ("x_i32 + y_i32", "x_i64 + y_i64", "x_i32 * y_i32", "x_b AND y_b", "x_b OR y_b"))
    }
    assert judge.judged([Case("x_i32 + y_i32",
                              read["x_i64 + y_i64"].expr)]) == ["x_i32 + y_i32: bigint here, int in Spark"]
    for text, other in (("x_i32 + y_i32", "x_i32 * y_i32"), ("x_b AND y_b", "x_b OR y_b")):
        assert [w.split(":")[0] for w in judge.judged([Case(text, read[other].expr)])
                ] == [f"{text} in Spark SQL", f"{text} in DuckDB"]
    assert judge.judged(list(read.values())) == [] and len(read) < SIZE


def drawn_kinds() -> list[Any]:
    """A type takes half a minute: `make test` runs the one that its seed says."""
    drawn = list(TYPES)[seed() % len(TYPES)]
    return [
        pytest.param(kind, marks=[pytest.mark.spark, *([] if kind == drawn else [pytest.mark.long])]) for kind in TYPES
    ]


@pytest.mark.parametrize("kind", drawn_kinds())
def test_aggregates_are_those_of_spark(judge: Judge, kind: str) -> None:
    wrong = differing(judge.spark, kind)
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:40])


def test_every_row_of_the_tables_is_asked() -> None:
    assert FORMS.keys() == OPERATORS.keys()
    texts = list(candidates())
    assert all(any(t.startswith(f"{name}(") for t in texts) for name in NAMES)
    assert {parse_type(t).name for t in TARGETS} == set(TYPE_NAMES) == {kind.name for kind in TYPES.values()}
    asked = {name for kind in ("i32", "b", "s") for name, *_ in asked_aggregates(kind)}
    assert asked == set(AGGREGATES) and all(SETS[t] for t in TYPES)
    assert TAKEN.keys() == AGGREGATES.keys()


def test_of_every_row_some_are_accepted() -> None:
    """What is refused is not judged."""
    by_name: dict[str, list[str]] = {name: [] for name in NAMES}
    for text in candidates():
        name = text.partition("(")[0]
        if name in by_name:
            by_name[name].append(text)
    assert [name for name, texts in by_name.items() if not any(map(_accepted, texts))] == []
    assert sum(castable(a, parse_type(b)) for a in TYPES.values() for b in TARGETS) > 150


def _accepted(text: str) -> bool:
    try:
        return bool(Case.of(text))
    except ForebayError:
        return False
