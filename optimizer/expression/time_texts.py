"""Texts that CAST reads as dates and timestamps: which Spark reads so, and the SQL that reads them in DuckDB.

Dates are read as Spark does, timestamps in the forms that name no region: `2000-02-29`, `2000-02-29 12:34:56.7+02:00`.
What stands for a year before 1 or after 9999 fails, also in TRY_CAST.
"""
from __future__ import annotations

from optimizer.expression.dialect import string

# Dates and times of other years are no values that files' statistics and Python could hold: what gives one fails.
BEYOND = "a date or time before the year 1 or after 9999"
DATES = "BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
INSTANTS = {
    "duckdb": "BETWEEN TIMESTAMPTZ '0001-01-01 00:00:00+00' AND TIMESTAMPTZ '9999-12-31 23:59:59.999999+00'",
    "spark": "BETWEEN TIMESTAMP '0001-01-01 00:00:00Z' AND TIMESTAMP '9999-12-31 23:59:59.999999Z'"}
_BLANK = r"[\x00-\x20\x7F]*"
_DAY = rf"(?s)^{_BLANK}\+?0{{0,3}}([0-9]{{4}})(?:-([0-9]{{1,2}})(?:-([0-9]{{1,2}})(?:[ T].*)?)?)?{_BLANK}$"
_FAR_YEAR = r"(?:-[0-9]{4,7}|\+?(?:[1-9][0-9]{4,6}|0[1-9][0-9]{4,5}|00[1-9][0-9]{4}|0{4,7}))"
_MONTH_AND_DAY = r"(?:-(?:0?[1-9]|1[0-2])(?:-(?:0?[1-9]|[12][0-9]|3[01])(?:[ T].*)?)?)?"
_FAR_DAY = rf"(?s)^{_BLANK}{_FAR_YEAR}{_MONTH_AND_DAY}{_BLANK}$"
_ZONE = r" *(?:Z|UTC|GMT|[+-](?:(?:0?[0-9]|1[0-7]):[0-5]?[0-9]|18:00))"
_CLOCK = rf"([01]?[0-9]|2[0-3])(?::([0-5]?[0-9])(?::([0-5]?[0-9])(?:\.([0-9]*))?({_ZONE})?)?)?"
MOMENT = (rf"^{_BLANK}\+?0{{0,2}}([0-9]{{4}})(?:-([0-9]{{1,2}})(?:-([0-9]{{1,2}})(?:[ T]{_CLOCK})?)?)?{_BLANK}$")
_PARTS = "['y', 'mo', 'd', 'h', 'mi', 's', 'f', 'z']"


def date_of(keyword: str, text: str) -> str:
    """DuckDB's SQL of CAST(text AS DATE) or TRY_CAST."""
    day = (f"regexp_extract(x, '{_DAY}', 1) || '-' || {_or_one(2)} || '-' || {_or_one(3)}")
    value = (f"CASE WHEN regexp_matches(x, '{_FAR_DAY}') THEN CAST('{BEYOND}' AS DATE) "
             f"WHEN regexp_matches(x, '{_DAY}') THEN {keyword}({day} AS DATE) "
             f"WHEN x IS NOT NULL THEN {keyword}('CAST_INVALID_INPUT' AS DATE) END")
    return f"list_transform([{text}], lambda x: {value})[1]"


def _or_one(group: int) -> str:
    return f"coalesce(nullif(regexp_extract(x, '{_DAY}', {group}), ''), '1')"


def moment_of(text: str) -> str:
    """DuckDB's SQL of CAST(text AS TIMESTAMP)."""
    clock = " || ':' || ".join(f"lpad(p.{part}, 2, '0')" for part in ("h", "mi", "s"))
    month, day = (f"coalesce(nullif(p.{part}, ''), '1')" for part in ("mo", "d"))
    time = (f"CAST(p.y || '-' || {month} || '-' || {day} || ' ' || {clock} || '.' || left(rpad(p.f, 6, '0'), 6) AS "
            "TIMESTAMP)")
    sign = "CASE WHEN contains(p.z, '-') THEN -1 ELSE 1 END"
    hours, minutes = (f"CAST('0' || regexp_extract(p.z, '([0-9]+):([0-9]+)', {n}) AS INTEGER)" for n in (1, 2))
    moment = f"make_timestamptz(epoch_us({time} - to_minutes({sign} * ({hours} * 60 + {minutes}))))"
    beyond = f"CAST('{BEYOND}' AS TIMESTAMP WITH TIME ZONE)"
    kept = f"CASE WHEN t {INSTANTS['duckdb']} THEN t ELSE {beyond} END"
    read = (f"list_transform(list_transform([regexp_extract(x, '{MOMENT}', {_PARTS})], lambda p: {moment}), lambda t: "
            f"{kept})[1]")
    value = (f"CASE WHEN regexp_matches(x, '{MOMENT}') AND regexp_extract(x, '{MOMENT}', 1) <> '0000' THEN {read} "
             "WHEN x IS NOT NULL THEN CAST('CAST_INVALID_INPUT' AS TIMESTAMP WITH TIME ZONE) END")
    return f"list_transform([{text}], lambda x: {value})[1]"


def spark_time_of(function: str, kind: str, text: str, otherwise: str) -> str:
    """Spark's SQL of a cast that gives `otherwise` for what leaves the calendar, or is read by Spark only."""
    calendar = DATES if kind == "date" else INSTANTS["spark"]
    value = f"{function}({text} AS {kind.upper()})"
    cast = f"CAST({otherwise} AS {kind.upper()})"
    inside = f"CASE WHEN {value} {calendar} OR {value} IS NULL THEN {value} ELSE {cast} END"
    if kind == "date":
        return inside
    known = f"({text}) IS NULL OR {text} RLIKE {string(MOMENT, 'spark')}"
    return f"CASE WHEN {known} THEN {inside} ELSE CAST({otherwise} AS TIMESTAMP) END"
