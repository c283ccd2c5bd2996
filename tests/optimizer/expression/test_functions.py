"""The allow-list, its rendering table and its page in the docs say the same."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
from function_cases import calls
from judge_cases import candidates
from scalar_cases import read, texts

from optimizer.errors import ForebayError
from optimizer.expression.expr import Call, walk
from optimizer.expression.functions.row import Function
from optimizer.expression.functions.table import FUNCTIONS, NAMES, OPERATORS, TABLE
from optimizer.expression.scalar import can_fail, fails
from optimizer.sql.aggregates import AGGREGATES

PAGE = Path(__file__).resolve().parents[3] / "docs" / "queries.md"
SYNTAX = ("CASE", "CAST", "TRY_CAST", "IF")


def listed(heading: str) -> dict[str, str]:
    """The first two columns of the table under a heading."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return dict(re.findall(r"^\| `(\w+)[^`]*` \| (.+?) \|$", section, re.MULTILINE))


def test_no_name_call_or_operator_has_two_rows() -> None:
    assert len(NAMES) == sum(len(row.names) for row in TABLE)
    assert len(OPERATORS) == sum(len(row.operators) for row in TABLE)
    assert len(FUNCTIONS) == sum(isinstance(row, Function) for row in TABLE)


def test_a_row_that_can_be_written_has_a_typing_rule() -> None:
    with pytest.raises(ValueError, match="needs a typing rule"):
        Function(name="half", operators=("½",), duckdb="({0} / 2)")


def test_the_docs_list_every_aggregate() -> None:
    assert set(listed("Aggregates")) == set(AGGREGATES)


# nobody writes these: GROUP BY puts one around doubles, aggregates and subqueries are compared in their own tests
BY_GROUPING = {"one_zero", "pair", "in_subquery"}


@pytest.mark.slow
def test_every_function_is_compared_between_the_engines() -> None:
    """By the judge, or over all rows of edge values in test_scalar.py."""
    by_name: dict[str, list[str]] = {name: [] for name in NAMES}
    for text in candidates():
        if (name := text.partition("(")[0]) in by_name:
            by_name[name].append(text)
    of_names = [next(filter(None, map(calls_of, of_name)), []) for of_name in by_name.values()]
    of_texts = [calls_of(t) for t in (*texts(), *calls())]
    assert {e.function for calls_of_text in (*of_names,
                                             *of_texts) for e in calls_of_text} == set(FUNCTIONS) - BY_GROUPING


def calls_of(text: str) -> list[Call]:
    """The calls of an expression, none where the parser refuses it or reads a constant."""
    try:
        return [e for e in walk(read(text)) if isinstance(e, Call)]
    except ForebayError:
        return []


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_wrong_number_of_arguments_is_refused(name: str) -> None:
    known = NAMES[name]
    for count in (known.least - 1, known.most + 1) if known.most < 5 else (known.least - 1,):
        if count < 0:
            continue
        with pytest.raises(ForebayError) as caught:
            read(f"{name}({', '.join(['x_i32'] * count)})")
        assert caught.value.code == "wrong-arguments" and caught.value.line == 1, count


@pytest.mark.parametrize(
    ("text", "may"), [("x_i32 + 1", True), ("x_d + 1", False), ("x_p10 + x_p10", False), ("x_p38 + x_p38", True),
                      ("x_i32 / 2", False), ("x_i32 / 0", True), ("x_i32 / y_i32", True), ("x_i64 DIV 2", False),
                      ("x_i64 DIV -1", True), ("x_d % y_d", True), ("x_d % 2", False), ("CAST(x_i32 AS BIGINT)", False),
                      ("CAST(x_i64 AS INT)", True), ("TRY_CAST(x_s AS INT)", False), ("CAST(x_s AS INT)", True),
                      ("CAST(x_i32 AS STRING)", False), ("CAST(x_p10 AS DECIMAL(12,2))", False),
                      ("CAST(x_p10 AS DECIMAL(9,1))", True), ("UPPER(x_s)", False), ("-x_i32", True), ("-x_d", False),
                      ("LENGTH(x_s) + 1 > 0 OR x_b", True), ("FLOOR(x_d)", False)])
def test_what_can_fail_is_known(text: str, may: bool) -> None:
    expr = read(text)
    assert can_fail(expr) is may
    for dialect in ("duckdb", "spark"):
        assert (fails(expr, dialect, lambda leaf: "x") is not None) is may
