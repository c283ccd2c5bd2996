"""What an expectation says of rows, as DuckDB SQL over columns of known types.

A value is a cast text: no user's SQL is run and no cast fails.
"""
from __future__ import annotations

from collections.abc import Mapping

from expectations.expectation import Expectation
from expectations.great import GreatExpectation, verdict
from expectations.kinds import LEAST, MOST, MOSTLY, OR_EQUAL, PATTERN, STRICT_LEAST, STRICT_MOST
from optimizer.expression.casting import sql_type
from optimizer.expression.dialect import string

Names = Mapping[str, str]      # a column → the SQL that stands for it


def failing(e: Expectation, names: Names) -> str:
    """True where the row fails; NULL passes unless it is what is forbidden."""
    first = names[e.columns[0]]
    if e.kind == "expect_column_values_to_not_be_null":
        return f"{first} IS NULL"
    return f"coalesce(NOT ({_holds(e, first, names[e.columns[-1]])}), false)"


def judged(e: Expectation | GreatExpectation, names: Names) -> tuple[str, str]:
    """Of many rows (those where `_there`): what is observed, and whether it passes, as aggregates.

    Over no value at all it passes; one of a suite as Great Expectations says, and only one that SQL judges is asked.
    """
    if isinstance(e, GreatExpectation):
        of_suite = verdict(e, names)
        assert of_suite is not None
        return of_suite
    if e.form.row:
        bad, all_ = f"count(*) FILTER (WHERE _there AND {failing(e, names)})", "count(_there)"
        allowed = f"{all_} * (1 - {e.get(MOSTLY) or 1}::DOUBLE) + 1e-9"
        return f"{bad} || ' of ' || {all_} || ' rows fail'", f"{bad} <= {allowed}"
    if e.form.columns in (("column",), ("column_list",)) and e.kind.endswith("_unique"):
        key = f"({', '.join(names[c] for c in e.columns)},)"
        filled = " AND ".join(["_there", *(f"{names[c]} IS NOT NULL" for c in e.columns if len(e.columns) == 1)])
        repeated = f"count(*) FILTER (WHERE {filled}) - count(DISTINCT {key}) FILTER (WHERE {filled})"
        return f"{repeated} || ' rows repeat others'", f"{repeated} = 0"
    value, type_ = _measured(e, names)
    return f"CAST({value} AS VARCHAR)", f"coalesce({_between(e, value, type_)}, true)"


def _measured(e: Expectation, names: Names) -> tuple[str, str]:
    """An aggregate, and the type in which it is compared."""
    if not e.columns:
        return "count(_there)", "BIGINT"
    column = names[e.columns[0]]
    if e.form.of == "share":
        return f"count({column}) / nullif(count(_there), 0)", "DOUBLE"
    function = e.kind.split("_")[2]      # min, max, mean, sum
    if e.form.of == "number":
        return f"{'avg' if function == 'mean' else function}(CAST({column} AS DOUBLE))", "DOUBLE"
    return f"{function}({column})", sql_type(e.types[0], "duckdb")


def _holds(e: Expectation, first: str, last: str) -> str:
    if e.kind.endswith("_set"):
        type_ = sql_type(e.types[0], "duckdb")
        listed = f"{first} IN ({', '.join(f'CAST({string(value)} AS {type_})' for value in e.values)})"
        return listed if e.kind.endswith("to_be_in_set") else f"NOT ({listed})"
    if e.kind.endswith("_regex"):
        matches = f"regexp_matches({first}, {string(e.get(PATTERN) or '')})"
        return f"NOT {matches}" if "_not_" in e.kind else matches
    if e.form.of == "count":
        return _between(e, f"length({first})", "BIGINT")
    if e.kind.endswith("_than_b"):
        return f"{first} {'>=' if e.get(OR_EQUAL) == 'true' else '>'} {last}"
    return _between(e, first, sql_type(e.types[0], "duckdb"))


def _between(e: Expectation, value: str, type_: str) -> str:
    low, high = e.get(LEAST), e.get(MOST)
    sides = []
    if low is not None:
        sides.append(f"{value} {'>' if e.get(STRICT_LEAST) == 'true' else '>='} CAST({string(low)} AS {type_})")
    if high is not None:
        sides.append(f"{value} {'<' if e.get(STRICT_MOST) == 'true' else '<='} CAST({string(high)} AS {type_})")
    return " AND ".join(sides)
