"""Functions of timestamps and dates, all in UTC and in the calendar of years 1 to 9999."""
from __future__ import annotations

from functools import partial

from optimizer.errors import ForebayError
from optimizer.expression.arguments import Args, want, whole_number
from optimizer.expression.casting import constant, naive, zoned
from optimizer.expression.coercion import mismatch
from optimizer.expression.expr import Call, Expr, Literal
from optimizer.expression.functions.row import Function, Name, Texts, Written
from optimizer.expression.time_texts import BEYOND, DATES, INSTANTS
from optimizer.expression.types import BIGINT, DATE, INT, STRING, TIMESTAMP
from optimizer.time import DAY

UNITS = ("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")
# Spark's other words for units, which are date_trunc's own and, but for the shorter ones, trunc's.
UNIT_WORDS = {"yyyy": "year", "yy": "year", "mon": "month", "mm": "month", "dd": "day"}


def part(function: str, args: Args) -> Expr:
    if args[0].type not in (DATE, TIMESTAMP):
        raise mismatch(f"{function.upper()} takes a timestamp or a date, not {args[0].type}")
    return Call(function, args, INT)


def _part_of_day(function: str, args: Args) -> Expr:
    """Also of dates."""
    return Call(function, (want(args[0], function.upper(), TIMESTAMP, "date"),), INT)


def _instant(function: str, args: Args) -> Expr:
    """A timestamp as a number."""
    return Call(function, (want(args[0], function.upper(), TIMESTAMP),), BIGINT)


def _truncate(args: Args) -> Expr:
    word = str(args[0].value).lower() if isinstance(args[0], Literal) else ""
    unit = UNIT_WORDS.get(word, word)
    if unit not in UNITS:
        raise ForebayError("bad-unit", "DATE_TRUNC's unit must be a constant",
                           hint=f"one of {', '.join((*UNITS, *UNIT_WORDS))}")
    return Call("date_trunc", (Literal(unit, STRING), want(args[1], "DATE_TRUNC", TIMESTAMP, "date")), TIMESTAMP)


def add_days(sign: int, args: Args) -> Expr:
    if args[1].type == BIGINT:
        raise mismatch("the number of days is an INT, not a BIGINT")
    days = sign * whole_number(args[1], "the number of days", -10_000_000, 10_000_000)
    return Call("date_add", (want(args[0], "DATE_ADD", DATE, "timestamp"), Literal(days, INT)), DATE)


def plus_interval(expr: Expr, us: int) -> Expr:
    """A timestamp, or a date and whole days, moved by a fixed length."""
    if expr.type == DATE:
        if us % DAY:
            raise mismatch("an interval added to a date must be of whole days", "cast the date: CAST(… AS TIMESTAMP)")
        return add_days(1, (expr, Literal(us // DAY, INT)))
    moment = want(expr, "an interval is added to a timestamp or a date; it", TIMESTAMP)
    return Call("add_interval", (moment, Literal(us, BIGINT)), TIMESTAMP)


# Their SQL
def _part_sql(function: str, call: Call, args: Texts) -> str:
    value = naive(args[0]) if call.args[0].type.name == "timestamp" else args[0]
    shifted = {"dayofweek": " + 1", "weekday": " - 1"}.get(call.function, "")
    return f"CAST({function}({value}){shifted} AS INTEGER)"


def _whole_units(us: int, call: Call, args: Texts) -> str:
    """Whole seconds or milliseconds, towards minus infinity."""
    instant = f"epoch_us({args[0]})"
    return f"(({instant} - (({instant} % {us}) + {us}) % {us}) // {us})"


def in_calendar(moment: str, calendar: str, otherwise: str) -> str:
    return f"CASE WHEN {moment} {calendar} OR ({moment}) IS NULL THEN {moment} ELSE {otherwise} END"


def _days_later(call: Call, args: Texts) -> str:
    return in_calendar(f"CAST({args[0]} + {args[1]} AS DATE)", DATES, f"CAST('{BEYOND}' AS DATE)")


def _spark_days_later(call: Call, args: Texts) -> str:
    return in_calendar(f"date_add({args[0]}, {args[1]})", DATES, f"CAST(raise_error('{BEYOND}') AS DATE)")


def _try_days_later(call: Call, args: Texts) -> str:
    return in_calendar(f"date_add({args[0]}, {args[1]})", DATES, "CAST(NULL AS DATE)")


def _interval_later(call: Call, args: Texts) -> str:
    later = f"({args[0]} + to_microseconds({constant(call, 1)}))"
    return in_calendar(later, INSTANTS["duckdb"], f"CAST('{BEYOND}' AS TIMESTAMP WITH TIME ZONE)")


def _spark_interval_later(call: Call, args: Texts) -> str:
    later = f"({args[0]} + {_spark_interval(call)})"
    return in_calendar(later, INSTANTS["spark"], f"CAST(raise_error('{BEYOND}') AS TIMESTAMP)")


def _try_interval_later(call: Call, args: Texts) -> str:
    later = f"try_add({args[0]}, {_spark_interval(call)})"
    return in_calendar(later, INSTANTS["spark"], "CAST(NULL AS TIMESTAMP)")


def _spark_interval(call: Call) -> str:
    """The interval's constant in Spark, to be added."""
    value = int(str(constant(call, 1)))
    seconds, micros = divmod(abs(value), 1_000_000)
    days, seconds = divmod(seconds, 86_400)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{micros:06d}"
    return f"INTERVAL '{'-' if value < 0 else ''}{days} {clock}' DAY TO SECOND"


def _date_part(name: str, *names: Name, duckdb: str = "", spark: str = "") -> Function:
    """A row of a part of a timestamp or date; `duckdb` is what that calls it, where not so, as `spark`."""
    return Function(partial(part, name), names, name=name, duckdb=partial(_part_sql, duckdb or name),
                    spark=spark or f"{name}({{0}})")


def _day_part(name: str, about: str) -> Function:
    """A row of hour, minute, second."""
    return Function(partial(_part_of_day, name), (Name(name.upper(), 1, 1, about),), name=name,
                    duckdb=partial(_part_sql, name), spark=f"{name}({{0}})")


ROWS: tuple[Written, ...] = (
    _date_part("year", Name("YEAR", 1, 1, "year")),
    _date_part("quarter", Name("QUARTER", 1, 1, "quarter from 1")),
    _date_part("month", Name("MONTH", 1, 1, "month from 1")),
    _date_part("day", Name("DAY", 1, 1, "day of the month"), Name("DAYOFMONTH", 1, 1, "the same")),
    _date_part("dayofweek", Name("DAYOFWEEK", 1, 1, "1 for Sunday to 7 for Saturday")),
    _date_part("dayofyear", Name("DAYOFYEAR", 1, 1, "day of the year from 1")),
    _date_part("weekofyear", Name("WEEKOFYEAR", 1, 1,
                                  "week of the year, 1 to 53; the first one has four days and more"),
               duckdb="week"),
    _date_part("weekday", Name("WEEKDAY", 1, 1, "0 for Monday to 6 for Sunday"), duckdb="isodow"),
    _date_part("dayofweek_iso", duckdb="isodow", spark="extract(DAYOFWEEK_ISO FROM {0})"),
    _date_part("yearofweek", duckdb="isoyear", spark="extract(YEAROFWEEK FROM {0})"),
    _day_part("hour", "hour of the day, UTC"),
    _day_part("minute", "minute of the hour"),
    _day_part("second", "whole second of the minute"),
    Function(_truncate, (Name("DATE_TRUNC", 2, 2, f"start of the unit (a constant: {', '.join(UNITS)})"),),
             name="date_trunc", duckdb=lambda call, args: zoned(f"date_trunc({args[0]}, {naive(args[1])})"),
             spark="date_trunc({0}, {1})"),
    Function(name="date_add", duckdb=_days_later, spark=_spark_days_later,
             fails=lambda call: constant(call, 1) != 0, attempt=_try_days_later),
    Written(partial(add_days, -1), (Name("DATE_SUB", 2, 2, "the date so many days earlier (a whole constant)"),)),
    Function(name="datediff", duckdb="CAST({0} - {1} AS INTEGER)", spark="datediff({0}, {1})"),
    Function(partial(_instant, "unix_micros"), (Name("UNIX_MICROS", 1, 1, "microseconds since 1970"),),
             name="unix_micros", duckdb="epoch_us({0})", spark="unix_micros({0})"),
    Function(partial(_instant, "unix_millis"), (Name("UNIX_MILLIS", 1, 1, "milliseconds since 1970, rounded down"),),
             name="unix_millis", duckdb=partial(_whole_units, 1_000), spark="unix_millis({0})"),
    Function(partial(_instant, "unix_seconds"), (Name("UNIX_SECONDS", 1, 1, "seconds since 1970, rounded down"),),
             name="unix_seconds", duckdb=partial(_whole_units, 1_000_000), spark="unix_seconds({0})"),
    Function(name="add_interval", duckdb=_interval_later, spark=_spark_interval_later,
             fails=lambda call: True, attempt=_try_interval_later),
)
