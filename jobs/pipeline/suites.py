"""Suites as Great Expectations writes them, from PIPELINE/expectations/*.json, and the names of custom classes beside
them, from *.py; none of their code is run here.

A suite is about the stream or the query whose name it has, or that its `meta` names. Refused whole if any cannot be
meant.
"""
from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from expectations.great import SEVERITIES, GreatExpectation, kind_of_class
from jobs.pipeline.lines import suggest
from jobs.pipeline.model import Pipeline
from optimizer.errors import ForebayError, suggestion
from optimizer.expression.types import Type

STREAM, QUERY = "stream", "query"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")      # pages and folders are called by it
OURS = (f"{STREAM}_", f"{QUERY}_")      # how names of suites begin that Forebay itself makes, of what it derives
# Great Expectations 1.24's own; a test holds the list against it, since importing it takes seconds.
CORE = frozenset((
    "expect_column_bootstrapped_ks_test_p_value_to_be_greater_than",
    "expect_column_chisquare_test_p_value_to_be_greater_than", "expect_column_distinct_values_to_be_in_set",
    "expect_column_distinct_values_to_contain_set", "expect_column_distinct_values_to_equal_set",
    "expect_column_kl_divergence_to_be_less_than", "expect_column_max_to_be_between",
    "expect_column_mean_to_be_between", "expect_column_median_to_be_between", "expect_column_min_to_be_between",
    "expect_column_most_common_value_to_be_in_set", "expect_column_pair_cramers_phi_value_to_be_less_than",
    "expect_column_pair_values_a_to_be_greater_than_b", "expect_column_pair_values_to_be_equal",
    "expect_column_pair_values_to_be_in_set",
    "expect_column_parameterized_distribution_ks_test_p_value_to_be_greater_than",
    "expect_column_proportion_of_non_null_values_to_be_between",
    "expect_column_proportion_of_unique_values_to_be_between", "expect_column_quantile_values_to_be_between",
    "expect_column_stdev_to_be_between", "expect_column_sum_to_be_between", "expect_column_to_exist",
    "expect_column_type_to_be", "expect_column_unique_value_count_to_be_between",
    "expect_column_value_lengths_to_be_between", "expect_column_value_lengths_to_equal",
    "expect_column_value_z_scores_to_be_less_than", "expect_column_values_to_be_between",
    "expect_column_values_to_be_dateutil_parseable", "expect_column_values_to_be_decreasing",
    "expect_column_values_to_be_in_set", "expect_column_values_to_be_in_type_list",
    "expect_column_values_to_be_increasing", "expect_column_values_to_be_json_parseable",
    "expect_column_values_to_be_null", "expect_column_values_to_be_of_type", "expect_column_values_to_be_unique",
    "expect_column_values_to_match_json_schema", "expect_column_values_to_match_like_pattern",
    "expect_column_values_to_match_like_pattern_list", "expect_column_values_to_match_regex",
    "expect_column_values_to_match_regex_list", "expect_column_values_to_match_strftime_format",
    "expect_column_values_to_not_be_in_set", "expect_column_values_to_not_be_null",
    "expect_column_values_to_not_be_outliers", "expect_column_values_to_not_match_like_pattern",
    "expect_column_values_to_not_match_like_pattern_list", "expect_column_values_to_not_match_regex",
    "expect_column_values_to_not_match_regex_list", "expect_compound_columns_to_be_unique",
    "expect_multicolumn_sum_to_equal", "expect_multicolumn_values_to_be_equal",
    "expect_multicolumn_values_to_be_unique", "expect_query_results_to_match_comparison",
    "expect_select_column_values_to_be_unique_within_record", "expect_table_column_count_to_be_between",
    "expect_table_column_count_to_equal", "expect_table_columns_to_match_ordered_list",
    "expect_table_columns_to_match_set", "expect_table_row_count_to_be_between", "expect_table_row_count_to_equal",
    "expect_table_row_count_to_equal_other_table", "unexpected_rows_expectation",
))


@dataclass(frozen=True)
class GivenSuite:
    """One file: what it is called, what it is about, and its entries, not yet held against columns.

    `GivenSuite("expectations/views.json", "views", "stream", "views", ({"type": …},))`.
    """

    file: str
    name: str
    subject: str               # stream or query
    of: str
    entries: tuple[Mapping[str, Any], ...]


def read(pipeline: Pipeline, folder: str) -> tuple[GivenSuite, ...]:
    """Every suite of the folder; streams are looked up, queries are kinds only to the ledger."""
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    kinds = CORE | set(custom_kinds(folder))
    suites = [_suite(pipeline, os.path.join(folder, name), name, kinds) for name in names if name.endswith(".json")]
    for number, suite in enumerate(suites):
        if any(suite.name == other.name for other in suites[:number]):
            raise _refused(suite.file, f"a suite {suite.name!r} is in another file too", "give it another name")
    return tuple(suites)


def custom_files(folder: str) -> list[str]:
    """Python files beside the suites: the operator's own code, which runs when a suite needs one of its classes."""
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in names if name.endswith(".py") and not name.startswith("_")]


def custom_kinds(folder: str) -> dict[str, str]:
    """By kind of expectation, the file with a class of that name; read as text."""
    kinds = {}
    for path in custom_files(folder):
        try:
            with open(path, encoding="utf-8") as file:
                tree = ast.parse(file.read(), path)
        except (OSError, UnicodeDecodeError, SyntaxError, ValueError) as error:
            raise _refused(os.path.basename(path), f"it is no Python that can be read: {error}",
                           "mend it, or give it a name that begins with _") from None
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name.startswith("Expect"):
                kinds[kind_of_class(node.name)] = path
    return kinds


def _suite(pipeline: Pipeline, path: str, name: str, kinds: Iterable[str]) -> GivenSuite:
    title = f"expectations/{name}"
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        hint = "write it as Great Expectations does"
        raise _refused(title, f"it is no JSON that can be read: {error}", hint) from None
    if not isinstance(content, dict) or not isinstance(content.get("expectations"), list):
        form = '{"name": …, "expectations": [{"type": …, "kwargs": {…}}]}'
        raise _refused(title, "it is no suite: it has no list `expectations`",
                       f"write it as Great Expectations does: {form}")
    suite_name = content.get("name", os.path.splitext(name)[0])
    if not isinstance(suite_name, str) or not NAME.fullmatch(suite_name) or suite_name.startswith(OURS):
        hint = ("a name has up to 100 letters, digits, _, . and -; names that begin with stream_ or query_ are of "
                "suites that Forebay makes")
        raise _refused(title, f"its name is {suite_name!r}", hint)
    subject, of = _about(pipeline, title, suite_name, content.get("meta"))
    for place, entry in enumerate(content["expectations"]):
        _check(title, place, entry, kinds)
    given = GivenSuite(title, suite_name, subject, of, tuple(content["expectations"]))
    if subject == STREAM:
        expectations(given, pipeline.streams[of].columns)
    return given


def _about(pipeline: Pipeline, title: str, name: str, meta: object) -> tuple[str, str]:
    """`meta: {"forebay": {"query": NAME}}`, else by its name: a stream's, else a query's."""
    about = meta.get("forebay") if isinstance(meta, dict) else None
    if about is not None:
        if not isinstance(about, dict) or len(about) != 1 or next(iter(about)) not in (STREAM, QUERY):
            raise _refused(title, f"meta.forebay is {about!r}", 'write {"stream": NAME} or {"query": NAME}')
        (subject, of), = about.items()
    else:
        of, subject = name, STREAM if name in pipeline.streams else QUERY
    if subject == STREAM and of not in pipeline.streams:
        raise _refused(title, f"{of!r} is not a stream of {pipeline.name}", suggest(str(of), pipeline.streams))
    return subject, str(of)


def _check(title: str, place: int, entry: object, kinds: Iterable[str]) -> None:
    where = f"expectations[{place}]"
    if not isinstance(entry, dict) or not isinstance(entry.get("type"), str):
        raise _refused(title, f"{where} has no type", "write {\"type\": \"expect_…\", \"kwargs\": {…}}")
    if entry["type"] not in kinds:
        message = (f"{where}: {entry['type']!r} is no expectation of Great Expectations, and no class of "
                   "expectations/*.py is called like it")
        raise _refused(title, message, suggestion(entry["type"], kinds) or "its names are those of its documentation")
    if not isinstance(entry.get("kwargs", {}), dict):
        raise _refused(title, f"{where}.kwargs is {entry['kwargs']!r}", "write {\"column\": …}")
    severity = entry.get("severity") or SEVERITIES[0]
    if severity not in SEVERITIES:
        raise _refused(title, f"{where}: severity is {severity!r}", suggest(str(severity), SEVERITIES))


def expectations(given: GivenSuite, columns: Mapping[str, Type]) -> tuple[GreatExpectation, ...]:
    """The suite's entries about these columns; a column that it names must be there."""
    objects = []
    for place, entry in enumerate(given.entries):
        kwargs = entry.get("kwargs", {})
        for key in ("column", "column_A", "column_B"):
            name = kwargs.get(key)
            if isinstance(name, str) and name not in columns and entry["type"] != "expect_column_to_exist":
                raise _refused(given.file, f"expectations[{place}]: there is no column {name!r}",
                               suggest(name, columns))
        severity = entry.get("severity") or SEVERITIES[0]
        objects.append(GreatExpectation(given.name, place, entry["type"], kwargs, severity, columns))
    return tuple(objects)


def _refused(title: str, message: str, hint: str) -> ForebayError:
    return ForebayError("bad-suite", f"{title}: {message}", hint=hint)
