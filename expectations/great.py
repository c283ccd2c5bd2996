"""Expectations as Great Expectations writes them in a suite's JSON, and which of them SQL judges as it does.

Where values, types or options leave any doubt, Great Expectations itself judges: see docs/expectations.md. NaN counts
as missing here, as in pandas.
"""
from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from expectations.expectation import LONGEST
from expectations.literals import literal
from optimizer.errors import ForebayError
from optimizer.expression.dialect import string
from optimizer.expression.types import Type

SEVERITIES = ("critical", "warning", "info")      # as Great Expectations names them; the first is its default
EXACT = 2**53             # beyond, a double is not the whole number that it stands for
COLUMN_KEYS = ("column", "column_A", "column_B")
IGNORED = ("result_format", "catch_exceptions", "include_config")      # how it reports, not what it judges
# A pattern that Python's engine and RE2 read alike: plain characters, classes of them, groups, repetitions.
_CLASS = r"\[[A-Za-z0-9_ .,:;@%/+-]+\]"
_ATOM = rf"(?:[A-Za-z0-9_ ,:;@%/=<>!#&'\"~-]|\\[.+*?()\[\]{{}}|^$/-]|{_CLASS})"
_OFTEN = r"(?:[*+?]|\{\d{1,3}(?:,\d{1,3})?\})?"
_GROUP = rf"\((?:{_ATOM}{_OFTEN})+(?:\|(?:{_ATOM}{_OFTEN})+)*\)"
ALIKE = re.compile(rf"\^?(?:(?:{_ATOM}|{_GROUP}){_OFTEN})+")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?")
_ZONE = re.compile(r"(Z|[+-]\d\d:\d\d)$")
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True)
class GreatExpectation:
    """One entry of a suite: `GreatExpectation("views", 0, "expect_table_row_count_to_equal", {"value": 3}, "warning")`.

    `types` are those of all columns of its subject, in their order.
    """

    suite: str
    place: int
    kind: str
    kwargs: Mapping[str, Any] = field(hash=False)
    severity: str
    types: Mapping[str, Type] = field(hash=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """Those that it names."""
        named = [self.kwargs.get(key) for key in COLUMN_KEYS]
        for key in ("column_list", "column_set"):
            listed = self.kwargs.get(key)
            named += listed if isinstance(listed, list) else []
        return tuple(dict.fromkeys(name for name in named if isinstance(name, str) and name in self.types))

    @property
    def typed_columns(self) -> dict[str, Type]:
        """The columns that its SQL reads."""
        return {name: self.types[name] for name in self.columns}

    @property
    def given(self) -> dict[str, Any]:
        """What it says, without what only repeats a default."""
        return {key: value for key, value in self.kwargs.items()
                if value is not None and key not in IGNORED and not (key.startswith("strict_") and value is False)}

    @property
    def shows_values(self) -> bool:
        """Whether what is observed of it can be a value of a column."""
        return not self.kind.startswith(("expect_column_values_", "expect_table_", "expect_compound_"))

    def __str__(self) -> str:
        parameters = {key: value for key, value in self.given.items() if key not in COLUMN_KEYS}
        parts = [*map(str, (self.kwargs[key] for key in COLUMN_KEYS if key in self.kwargs)),
                 *(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in parameters.items())]
        text = f"{self.kind}({', '.join(parts)})"
        return text if len(text) <= LONGEST else text[:LONGEST - 2] + "…)"


def kind_of_class(name: str) -> str:
    """`expect_x_y` of the class ExpectXY."""
    return _WORDS.sub("_", name).lower()


def with_zone(value: object, kind: Type) -> object:
    """A bound of a timestamp column: without a zone it is UTC."""
    is_instant = isinstance(value, str) and kind.name == "timestamp" and _INSTANT.fullmatch(value)
    if not is_instant or _ZONE.search(str(value)):
        return value
    return f"{value}+00:00" if len(str(value)) > len("2020-01-01") else f"{value}T00:00:00+00:00"


# What SQL judges

Verdict = tuple[str, str]      # what is observed, and whether it passes, as aggregates over the rows where `_there`


def verdict(e: GreatExpectation, names: Mapping[str, str]) -> Verdict | None:
    """None where Great Expectations has to judge; `names` are the SQL of the columns."""
    given = e.given
    of_kind = _VERDICTS.get(e.kind)
    if of_kind is None or set(given) - set(of_kind.takes):
        return None
    if any(not isinstance(given.get(key, ""), str) or given.get(key, "") not in {"", *e.types} for key in COLUMN_KEYS):
        return None
    if isinstance(given.get("column"), str):
        type_ = e.types[given["column"]]
        return of_kind.write(e, _value(names[given["column"]], type_), type_)
    return of_kind.write(e, "", Type("bigint"))


def _value(sql: str, type_: Type) -> str:
    """NaN is missing, as in pandas."""
    return f"CASE WHEN isnan({sql}) THEN NULL ELSE {sql} END" if type_.floating else sql


def _rows(e: GreatExpectation, value: str, fails: str, missing_counts: bool = False) -> Verdict | None:
    """Of single rows: those that fail, beside all that have a value; over none it passes."""
    mostly = e.given.get("mostly", 1)
    if isinstance(mostly, bool) or not isinstance(mostly, (int, float)) or not 0 <= mostly <= 1:
        return None
    all_ = "count(_there)" if missing_counts else f"count({value})"
    bad = f"count(*) FILTER (WHERE _there AND {fails})"
    share = f"CAST({all_} - {bad} AS DOUBLE) / {all_}"
    return f"{bad} || ' of ' || {all_} || ' rows fail'", f"if({all_} = 0, true, {share} >= {float(mostly)!r})"


def _not_null(e: GreatExpectation, value: str, type_: Type) -> Verdict | None:
    return _rows(e, value, f"({value}) IS NULL", missing_counts=True)


def _null(e: GreatExpectation, value: str, type_: Type) -> Verdict | None:
    return _rows(e, value, f"({value}) IS NOT NULL", missing_counts=True)


def _between(e: GreatExpectation, value: str, type_: Type) -> Verdict | None:
    sides = _sides(e, value, type_)
    return None if sides is None else _rows(e, value, f"NOT ({sides})")


def _sides(e: GreatExpectation, value: str, type_: Type) -> str | None:
    """The condition that a value lies between the bounds; None where that could be another one elsewhere."""
    terms, bounds = [], list[Any]()
    for key, strict, more, at_least in (("min_value", "strict_min", ">", ">="), ("max_value", "strict_max", "<", "<=")):
        if key in e.given:
            bound = _bound(e.given[key], type_)
            if bound is None or e.given.get(strict, False) not in (True, False):
                return None
            bounds.append(bound)
            text = f"CAST({string(str(bound))} AS {'DOUBLE' if isinstance(bound, float) else 'TIMESTAMPTZ'})"
            terms.append(f"{value} {more if e.given.get(strict) else at_least} {text}")
    if len(bounds) > 1 and bounds[0] > bounds[1]:
        return None
    return " AND ".join(terms) or None


def _bound(bound: object, type_: Type) -> float | str | None:
    """A number, or an instant in one way of writing; None where it could be read in another way."""
    if type_.name == "timestamp" and isinstance(bound, str) and _INSTANT.fullmatch(bound):
        try:
            return literal(str(with_zone(bound, type_)), type_)
        except ForebayError:
            return None
    if not isinstance(bound, (int, float)) or isinstance(bound, bool) or not (type_.integral or type_.floating):
        return None
    return float(bound) if math.isfinite(bound) and abs(bound) < EXACT else None


def _in_set(e: GreatExpectation, value: str, type_: Type) -> Verdict | None:
    members = e.given.get("value_set")
    wanted: type | None = int if type_.integral else str if type_.name == "string" else None
    if wanted is None or not isinstance(members, list) or not members:
        return None
    if any(type(member) is not wanted for member in members):
        return None
    if wanted is int and any(abs(member) >= EXACT for member in members):
        return None
    texts = ", ".join(string(member) if wanted is str else f"{member}::BIGINT" for member in dict.fromkeys(members))
    listed = f"{value} IN ({texts})"
    return _rows(e, value, f"NOT ({listed})" if e.kind.endswith("to_be_in_set") else listed)


def _regex(e: GreatExpectation, value: str, type_: Type) -> Verdict | None:
    pattern = e.given.get("regex")
    if type_.name != "string" or not isinstance(pattern, str) or not ALIKE.fullmatch(pattern):
        return None
    try:
        re.compile(pattern)
    except re.error:
        return None
    matches = f"regexp_matches({value}, {string(pattern)})"
    return _rows(e, value, matches if "_not_" in e.kind else f"NOT {matches}")


def _lengths(e: GreatExpectation, value: str, type_: Type) -> Verdict | None:
    low, high = e.given.get("min_value"), e.given.get("max_value")
    if e.kind.endswith("_to_equal"):
        low = high = e.given.get("value")
    bounds = [bound for bound in (low, high) if bound is not None]
    if type_.name != "string" or not bounds or any(type(b) is not int or not 0 <= b < EXACT for b in bounds):
        return None
    if len(bounds) > 1 and bounds[0] > bounds[1]:
        return None
    terms = [f"length({value}) {sign} {bound}" for sign, bound in ((">=", low), ("<=", high)) if bound is not None]
    return _rows(e, value, f"NOT ({' AND '.join(terms)})")


def _is_plain(type_: Type) -> bool:
    """Whether equal values are equal everywhere."""
    return type_.integral or type_.name in ("string", "timestamp")


def _unique(e: GreatExpectation, value: str, type_: Type) -> Verdict | None:
    if not _is_plain(type_) or e.given.get("mostly", 1) != 1:
        return None
    repeated = f"(count({value}) - count(DISTINCT {value}))"
    return f"{repeated} || ' rows repeat others'", f"{repeated} = 0"


def _row_count(e: GreatExpectation, value: str, type_: Type) -> Verdict | None:
    if e.kind.endswith("_to_equal"):
        wanted = e.given.get("value")
        return None if type(wanted) is not int else ("CAST(count(_there) AS VARCHAR)", f"count(_there) = {wanted}")
    return _count(e, "count(_there)")


def _count(e: GreatExpectation, value: str) -> Verdict | None:
    """Great Expectations cuts the fraction of a count's bound off."""
    bounds = [e.given[key] for key in ("min_value", "max_value") if key in e.given]
    return _aggregate(e, value, Type("bigint")) if all(type(bound) is int for bound in bounds) else None


def _aggregate(e: GreatExpectation, value: str, type_: Type) -> Verdict | None:
    """A figure over all rows; where there is none, it fails."""
    sides = _sides(e, value, type_)
    return None if sides is None else (f"CAST({value} AS VARCHAR)", f"coalesce({sides}, false)")


def _extreme(e: GreatExpectation, value: str, type_: Type) -> Verdict | None:
    function = "min" if "_min_" in e.kind else "max"
    return _aggregate(e, f"{function}({value})", type_) if type_.integral or type_.floating else None


def _sum(e: GreatExpectation, value: str, type_: Type) -> Verdict | None:
    """Of numbers of at most 32 bits: sums of four million of them are exact as doubles, whoever adds them."""
    if type_.name not in ("tinyint", "smallint", "int"):
        return None
    total = f"CAST(coalesce(sum({value}), 0) AS DOUBLE)"
    figure = total if "_sum_" in e.kind else f"{total} / nullif(count({value}), 0)"
    return _aggregate(e, figure, Type("double"))


def _share(e: GreatExpectation, value: str, type_: Type) -> Verdict | None:
    counted = f"count({value})" if "non_null" in e.kind else f"count(DISTINCT {value})"
    of = "count(_there)" if "non_null" in e.kind else f"count({value})"
    if "non_null" not in e.kind and not _is_plain(type_):
        return None
    return _aggregate(e, f"coalesce(CAST({counted} AS DOUBLE) / nullif({of}, 0), 0)", Type("double"))


def _distinct(e: GreatExpectation, value: str, type_: Type) -> Verdict | None:
    return _count(e, f"count(DISTINCT {value})") if _is_plain(type_) else None


def _schema(e: GreatExpectation, value: str, type_: Type) -> Verdict | None:
    """Of the columns themselves, which are declared."""
    present = list(e.types)
    if e.kind == "expect_column_to_exist":
        holds = e.kwargs.get("column") in present
    elif e.kind == "expect_table_column_count_to_equal":
        holds = e.given.get("value") == len(present)
    else:
        holds = e.given.get("column_list") == present
    return f"'{len(present)} columns' || if(count(_there) < 0, '', '')", f"count(_there) >= {0 if holds else EXACT}"


@dataclass(frozen=True)
class _Sql:
    """How a kind is written, and the parameters with which it is."""

    write: Any
    takes: Sequence[str]


_BOUNDS = ("min_value", "max_value", "strict_min", "strict_max")
_VERDICTS: Mapping[str, _Sql] = {
    "expect_column_values_to_not_be_null": _Sql(_not_null, ("column", "mostly")),
    "expect_column_values_to_be_null": _Sql(_null, ("column", "mostly")),
    "expect_column_values_to_be_between": _Sql(_between, ("column", "mostly", *_BOUNDS)),
    "expect_column_values_to_be_in_set": _Sql(_in_set, ("column", "mostly", "value_set")),
    "expect_column_values_to_not_be_in_set": _Sql(_in_set, ("column", "mostly", "value_set")),
    "expect_column_values_to_match_regex": _Sql(_regex, ("column", "mostly", "regex")),
    "expect_column_values_to_not_match_regex": _Sql(_regex, ("column", "mostly", "regex")),
    "expect_column_value_lengths_to_be_between": _Sql(_lengths, ("column", "mostly", "min_value", "max_value")),
    "expect_column_value_lengths_to_equal": _Sql(_lengths, ("column", "mostly", "value")),
    "expect_column_values_to_be_unique": _Sql(_unique, ("column", "mostly")),
    "expect_table_row_count_to_be_between": _Sql(_row_count, _BOUNDS),
    "expect_table_row_count_to_equal": _Sql(_row_count, ("value",)),
    "expect_column_min_to_be_between": _Sql(_extreme, ("column", *_BOUNDS)),
    "expect_column_max_to_be_between": _Sql(_extreme, ("column", *_BOUNDS)),
    "expect_column_mean_to_be_between": _Sql(_sum, ("column", *_BOUNDS)),
    "expect_column_sum_to_be_between": _Sql(_sum, ("column", *_BOUNDS)),
    "expect_column_proportion_of_non_null_values_to_be_between": _Sql(_share, ("column", *_BOUNDS)),
    "expect_column_proportion_of_unique_values_to_be_between": _Sql(_share, ("column", *_BOUNDS)),
    "expect_column_unique_value_count_to_be_between": _Sql(_distinct, ("column", *_BOUNDS)),
    "expect_column_to_exist": _Sql(_schema, ("column",)),
    "expect_table_column_count_to_equal": _Sql(_schema, ("value",)),
    "expect_table_columns_to_match_ordered_list": _Sql(_schema, ("column_list",)),
}
JUDGED_BY_SQL = tuple(_VERDICTS)
