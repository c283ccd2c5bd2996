"""Each kind of expectation asked of rows by DuckDB: what fails, what passes, NULL, the ends of ranges.

The verdicts are told by hand here.
"""
from __future__ import annotations

from typing import Any

import pytest

from expectations.expectation import Expectation, argument, check
from expectations.kinds import KINDS
from expectations.sql import failing, judged
from jobs.engine import kernel
from optimizer.expression.types import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, Type, decimal

ROWS = """(SELECT * FROM (VALUES
    (1, 'ab', 1.5::DECIMAL(5,2), 0.5::DOUBLE, true, DATE '2020-01-01', TIMESTAMPTZ '2020-01-01 00:00:00+00', 5),
    (2, 'it''s', -3::DECIMAL(5,2), 'NaN'::DOUBLE, false, DATE '2020-01-02', TIMESTAMPTZ '2020-01-02 00:00:00+00', 2),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (3, '', 0::DECIMAL(5,2), 2::DOUBLE, true, DATE '2021-01-01', TIMESTAMPTZ '2021-01-01 00:00:00+00', 3)) AS t(i, s,
    d, f, b, day, ts, j))"""
TYPES = {
    "i": BIGINT,
    "s": STRING,
    "d": decimal(5, 2),
    "f": DOUBLE,
    "b": BOOLEAN,
    "day": DATE,
    "ts": TIMESTAMP,
    "j": BIGINT
}
BETWEEN = "expect_column_values_to_be_between"
FAILS: list[tuple[str, tuple[str, ...], dict[str, Any], list[int]]] = [
    ("expect_column_values_to_not_be_null", ("s",), {}, [2]),
    (BETWEEN, ("i",), {"min_value": "2"}, [0]),
    (BETWEEN, ("i",), {"min_value": "2", "strict_min": "true"}, [0, 1]),
    (BETWEEN, ("i",), {"min_value": "1", "max_value": "2"}, [2, 3]),
    (BETWEEN, ("i",), {"max_value": "3", "strict_max": "true"}, [2, 3]),
    (BETWEEN, ("d",), {"min_value": "-3", "max_value": "1.49"}, [0]),
    (BETWEEN, ("f",), {"max_value": "1"}, [1, 3]),
    (BETWEEN, ("s",), {"min_value": "b"}, [0, 3]),
    (BETWEEN, ("day",), {"max_value": "2020-01-01"}, [1, 3]),
    (BETWEEN, ("ts",), {"max_value": "2020-01-02T01:00:00+01:00"}, [3]),
    ("expect_column_values_to_be_in_set", ("s",), {"value_set": ("it's", "ab")}, [3]),
    ("expect_column_values_to_be_in_set", ("b",), {"value_set": ("True",)}, [1]),
    ("expect_column_values_to_not_be_in_set", ("d",), {"value_set": ("0.00", "1.5")}, [0, 3]),
    ("expect_column_values_to_match_regex", ("s",), {"regex": "^[a-z']+$"}, [3]),
    ("expect_column_values_to_not_match_regex", ("s",), {"regex": "'"}, [1]),
    ("expect_column_value_lengths_to_be_between", ("s",), {"min_value": "1", "max_value": "2"}, [1, 3]),
    ("expect_column_pair_values_a_to_be_greater_than_b", ("j", "i"), {}, [1, 3]),
    ("expect_column_pair_values_a_to_be_greater_than_b", ("j", "i"), {"or_equal": "true"}, []),
]
MANY: list[tuple[str, tuple[str, ...], dict[str, Any], bool,
                 str]] = [("expect_column_values_to_not_be_null", ("s",), {
                     "mostly": "0.75"
                 }, True, "1 of 4 rows fail"),
                          ("expect_column_values_to_not_be_null", ("s",), {
                              "mostly": "0.76"
                          }, False, "1 of 4 rows fail"),
                          ("expect_column_values_to_be_unique", ("s",), {}, True, "0 rows repeat others"),
                          ("expect_column_values_to_be_unique", ("i",), {}, False, "1 rows repeat others"),
                          ("expect_compound_columns_to_be_unique", ("i", "s"), {}, True, "0 rows repeat others"),
                          ("expect_compound_columns_to_be_unique", ("b",), {}, False, "1 rows repeat others"),
                          ("expect_table_row_count_to_be_between", (), {
                              "min_value": "4",
                              "max_value": "4"
                          }, True, "4"), ("expect_table_row_count_to_be_between", (), {
                              "max_value": "3"
                          }, False, "4"), ("expect_column_min_to_be_between", ("d",), {
                              "min_value": "-3"
                          }, True, "-3.00"),
                          ("expect_column_min_to_be_between", ("ts",), {
                              "min_value": "2020-01-01T00:00:01Z"
                          }, False, "2020-01-01 00:00:00+00"),
                          ("expect_column_max_to_be_between", ("i",), {
                              "max_value": "2"
                          }, False, "3"),
                          ("expect_column_mean_to_be_between", ("i",), {
                              "min_value": "2.25",
                              "max_value": "2.25"
                          }, True, "2.25"),
                          ("expect_column_sum_to_be_between", ("d",), {
                              "max_value": "-1.6"
                          }, False, "-1.5"),
                          ("expect_column_proportion_of_non_null_values_to_be_between", ("s",), {
                              "min_value": "0.75"
                          }, True, "0.75"),
                          ("expect_column_proportion_of_non_null_values_to_be_between", ("s",), {
                              "max_value": "0.7"
                          }, False, "0.75"),]


def made(kind: str, columns: tuple[str, ...], given: dict[str, Any]) -> Expectation:
    types = tuple(TYPES[c] for c in columns)
    arguments = tuple((p, argument(KINDS[kind], p, v, types[0] if types else None)) for p, v in given.items())
    return check(Expectation(kind, "warning", columns, types, arguments))


def asked(sql: str) -> list[Any]:
    con = kernel.shared()
    try:
        return [row for row in con.execute(sql).fetchall()]
    finally:
        con.close()


@pytest.mark.parametrize(("kind", "columns", "given", "fails"), FAILS, ids=[f"{k}-{f[0]}" for k, f in enumerate(FAILS)])
def test_rows_that_fail(kind: str, columns: tuple[str, ...], given: dict[str, Any], fails: list[int]) -> None:
    found = asked(f"SELECT {failing(made(kind, columns, given), {c: c for c in TYPES})} FROM {ROWS}")
    assert [k for k, (bad,) in enumerate(found) if bad] == fails and all(bad is not None for bad, in found)


@pytest.mark.parametrize(("kind", "columns", "given", "passes", "observed"), MANY,
                         ids=[f"{k}-{m[0]}" for k, m in enumerate(MANY)])
def test_what_is_observed_of_many(kind: str, columns: tuple[str, ...], given: dict[str, Any], passes: bool,
                                  observed: str) -> None:
    seen, verdict = judged(made(kind, columns, given), {c: c for c in TYPES})
    assert asked(f"SELECT {seen}, {verdict} FROM (SELECT true AS _there, * FROM {ROWS})") == [(observed, passes)]


def test_every_kind_is_tried_and_nothing_fails_over_no_rows() -> None:
    tried = [(k, c, g) for k, c, g, _ in FAILS] + [(k, c, g) for k, c, g, _, _ in MANY if g.get("min_value") != "4"]
    assert {k for k, _, _ in [*tried, ("expect_table_row_count_to_be_between", (), {})]} == set(KINDS)
    verdicts = ", ".join(judged(made(*t), {c: c for c in TYPES})[1] for t in tried)
    assert set(
        asked(f"SELECT {verdicts} FROM (SELECT NULL::BOOLEAN AS _there, * FROM {ROWS} WHERE false)")[0]) == {True}


@pytest.mark.parametrize("type_", [STRING, TIMESTAMP])
def test_a_value_is_never_sql(type_: Type) -> None:
    text = "x') OR 1=1 --"
    if type_ == STRING:
        only = made("expect_column_values_to_be_in_set", ("s",), {"value_set": (text,)})
        assert asked(f"SELECT {failing(only, {'s': 's'})} FROM {ROWS} WHERE s = 'ab'") == [(True,)]
    else:
        with pytest.raises(Exception, match="is no timestamp"):
            made(BETWEEN, ("ts",), {"min_value": text})


def test_an_expectation_is_valid_by_construction() -> None:
    for wrong in (("expect_nothing", "row", ()), (BETWEEN, "fatal", ("i",)), ("expect_table_row_count_to_be_between",
                                                                              "row", ())):
        with pytest.raises(ValueError):
            Expectation(wrong[0], wrong[1], wrong[2], tuple(TYPES[c] for c in wrong[2]))
