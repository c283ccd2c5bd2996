"""Values of an expected answer as they are written, and rows held against each other as multisets."""
from __future__ import annotations

import math
from datetime import date
from decimal import Decimal

import pytest

from jobs.commands.cases.comparing import moment, typed, unmatched
from jobs.commands.cases.model import Row, Value
from jobs.pipeline.lines import Entry, document
from optimizer.errors import ForebayError
from optimizer.expression.types import BIGINT, BOOLEAN, DATE, DOUBLE, FLOAT, STRING, TIMESTAMP, Type, decimal

NAN = math.nan
COLUMNS = (("k", STRING), ("x", DOUBLE))


def entry(text: str) -> Entry:
    return document(text, "a value")


@pytest.mark.parametrize(("text", "kind", "value"), [
    ("7", BIGINT, 7), ("-7.0", BIGINT, -7), ("null", BIGINT, None), ("~", STRING, None), ('"null"', STRING, "null"),
    ("01", STRING, "01"), ("true", STRING, "true"), ("True", BOOLEAN, True), ("1.50", decimal(10, 2), Decimal("1.5")),
    ("1e3", DOUBLE, 1000.0), ("Infinity", DOUBLE, math.inf), ("-.inf", DOUBLE, -math.inf),
    ("0.1", FLOAT, 0.10000000149011612), ("2025-01-31", DATE, date(2025, 1, 31)),
    ("1970-01-01T00:00:01.5Z", TIMESTAMP, 1_500_000), ("1970-01-01 01:00:00+01:00", TIMESTAMP, 0),
    ("1970-01-01T00:00:02", TIMESTAMP, 2_000_000)])
def test_a_value_is_read_as_its_column_has_it(text: str, kind: Type, value: Value) -> None:
    read = typed(entry(text), kind)
    assert read == value and type(read) is type(value)


@pytest.mark.parametrize(("text", "kind"), [
    ("7.5", BIGINT), ("1_000", BIGINT), ("seven", decimal(10, 2)), ("1_0", DOUBLE), ("yes", BOOLEAN), ("noon", DATE),
    ("2025-13-01T00:00:00Z", TIMESTAMP), ("[1]", BIGINT)])
def test_what_is_no_value_of_the_type_is_refused_with_its_place(text: str, kind: Type) -> None:
    with pytest.raises(ForebayError) as refusal:
        typed(entry(text), kind)
    assert (refusal.value.line, refusal.value.column) == (1, 1) and refusal.value.hint


def test_an_instant_is_not_empty() -> None:
    with pytest.raises(ForebayError, match="not a time"):
        moment(entry("null"))


@pytest.mark.parametrize(("expected", "answer", "missing", "too_many"), [
    ([("a", 1.0), ("b", 2.0)], [("b", 2.0), ("a", 1.0)], [], []),
    ([("a", 1.0), ("a", 1.0)], [("a", 1.0)], [("a", 1.0)], []),
    ([("a", 1.0)], [("a", 1.0), ("a", 1.0)], [], [("a", 1.0)]),
    ([("a", 1.0)], [("a", 1.0 + 1e-10)], [], []),
    ([("a", 1.0)], [("a", 1.0 + 1e-8)], [("a", 1.0)], [("a", 1.0 + 1e-8)]),
    ([(None, None), ("a", NAN)], [("a", NAN), (None, None)], [], []),
    ([("a", None)], [("a", 0.0)], [("a", None)], [("a", 0.0)]),
    ([(None, 1.0)], [("", 1.0)], [(None, 1.0)], [("", 1.0)])])
def test_rows_are_compared_in_any_order_as_often_as_they_are_there(expected: list[Row], answer: list[Row],
                                                                   missing: list[Row], too_many: list[Row]) -> None:
    assert unmatched(expected, answer, COLUMNS) == (missing, too_many)


def test_decimals_are_equal_to_the_last_digit() -> None:
    columns = (("d", decimal(20, 2)),)
    same: Row = (Decimal("12345678901234567.80"),)
    assert unmatched([(Decimal("12345678901234567.8"),)], [same], columns) == ([], [])
    other: Row = (Decimal("12345678901234567.81"),)
    assert unmatched([same], [other], columns) == ([same], [other])
