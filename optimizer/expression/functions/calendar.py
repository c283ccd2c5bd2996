"""Functions of months, weeks and differences of times, in UTC and in the calendar of years 1 to 9999."""
from __future__ import annotations

from functools import partial

from optimizer.errors import ForebayError
from optimizer.expression.arguments import Args, want, whole_number
from optimizer.expression.casting import constant, naive, zoned
from optimizer.expression.coercion import coerce, mismatch
from optimizer.expression.expr import Call, Expr, Literal
from optimizer.expression.functions.pieces import constant_text
from optimizer.expression.functions.row import Function, Name, Texts, Written
from optimizer.expression.functions.times import (
    add_days,
    in_calendar,
    part,
    plus_interval,
)
from optimizer.expression.time_texts import BEYOND, DATES, INSTANTS
from optimizer.expression.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, decimal
from optimizer.time import DAY

MONTHS = {"month": 1, "quarter": 3, "year": 12}
LENGTHS = {"microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000,
           "day": DAY, "week": 7 * DAY}
MOST_MONTHS = 12 * 9998
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
WEEKDAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
DATE_UNITS = {"year": ("year", "yyyy", "yy"), "quarter": ("quarter",), "month": ("month", "mon", "mm"),
              "week": ("week",)}
FIELDS = {"year": "year y years yr yrs", "quarter": "quarter qtr", "month": "month mon mons months",
          "week": "week w weeks",
          "day": "day d days", "dayofweek": "dayofweek dow", "isodow": "dayofweek_iso dow_iso", "doy": "doy",
          "yearofweek": "yearofweek", "hour": "hour h hours hr hrs", "minute": "minute m min mins minutes",
          "seconds": "second s sec seconds secs"}
_ROWS = {"week": "weekofyear", "isodow": "dayofweek_iso", "doy": "dayofyear", "seconds": "second_with_fraction"}


def plus_months(expr: Expr, months: int) -> Expr:
    """A date or timestamp so many months later, on the month's last day where it has no such day."""
    if abs(months) > MOST_MONTHS:
        raise mismatch(f"{months} months are more than the calendar has")
    if expr.type == DATE:
        return Call("add_months", (expr, Literal(months, INT)), DATE)
    moment = want(expr, "months are added to a timestamp or a date; it", TIMESTAMP)
    return Call("add_months", (moment, Literal(months, INT)), TIMESTAMP)


def _add_months(args: Args) -> Expr:
    months = whole_number(args[1], "the number of months", -MOST_MONTHS, MOST_MONTHS)
    return plus_months(want(args[0], "ADD_MONTHS", DATE, "timestamp"), months)


def unit_word(arg: Expr, function: str) -> str:
    """The unit of DATEADD and its like, which is written as a word."""
    word = constant_text(f"{function}'s unit", arg).lower()
    unit = "day" if word == "dayofyear" and "ADD" in function else word
    if unit not in LENGTHS and unit not in MONTHS:
        raise ForebayError("bad-unit", f"{unit.upper()} is no unit of {function}",
                           hint=f"units are {', '.join((*LENGTHS, *MONTHS)).upper()}")
    return unit


def _moved(function: str, args: Args) -> Expr:
    """DATEADD(unit, count, time), always a timestamp."""
    unit, count = unit_word(args[0], function), whole_number(args[1], f"{function}'s count")
    moment = want(args[2], function, TIMESTAMP, "date")
    if unit in MONTHS:
        return plus_months(moment, count * MONTHS[unit])
    if abs(count) > 2**62 // LENGTHS[unit]:
        raise mismatch(f"{count} {unit}s are more than the calendar has")
    return plus_interval(moment, count * LENGTHS[unit])


def _difference(function: str, args: Args) -> Expr:
    """TIMESTAMPDIFF(unit, from, to): whole units, towards zero."""
    unit = unit_word(args[0], function)
    moments = tuple(want(a, function, TIMESTAMP, "date") for a in args[1:])
    if unit in MONTHS:
        return Call("months_apart", (*moments, Literal(MONTHS[unit], BIGINT)), BIGINT)
    return Call("units_apart", (*moments, Literal(LENGTHS[unit], BIGINT)), BIGINT)


def _date_add(args: Args) -> Expr:
    return _moved("DATE_ADD", args) if len(args) == 3 else add_days(1, args)


def _date_diff(args: Args) -> Expr:
    if len(args) == 3:
        return _difference("DATEDIFF", args)
    return Call("datediff", tuple(want(arg, "DATEDIFF", DATE, "timestamp") for arg in args), INT)


def _months_between(args: Args) -> Expr:
    rounded = args[2] if len(args) > 2 else Literal(True, BOOLEAN)
    if not isinstance(rounded, Literal) or not isinstance(rounded.value, bool):
        raise mismatch("MONTHS_BETWEEN's third argument is TRUE or FALSE")
    moments = tuple(want(a, "MONTHS_BETWEEN", TIMESTAMP, "date") for a in args[:2])
    return Call("months_between", (*moments, rounded), DOUBLE)


def _next_day(args: Args) -> Expr:
    word = constant_text("NEXT_DAY's day of the week", args[1]).upper()
    days = [n for n, name in enumerate(WEEKDAYS) if word in (name[:2], name[:3], name)]
    if not days:
        raise mismatch(f"{word!r} is no day of the week", "for instance 'MON'")
    return Call("next_day", (want(args[0], "NEXT_DAY", DATE, "timestamp"), Literal(days[0], INT)), DATE)


def _truncated(args: Args) -> Expr:
    word = constant_text("TRUNC's unit", args[1]).lower()
    units = [unit for unit, words in DATE_UNITS.items() if word in words]
    if not units:
        raise ForebayError("bad-unit", f"TRUNC's unit {word!r} is not known",
                           hint=f"one of {', '.join(w for words in DATE_UNITS.values() for w in words)}")
    return Call("trunc", (want(args[0], "TRUNC", DATE, "timestamp"), Literal(units[0], STRING)), DATE)


def _field(args: Args) -> Expr:
    """EXTRACT(field FROM time) and DATE_PART('field', time)."""
    word = constant_text("the field", args[0]).lower()
    field = next((f for f, words in FIELDS.items() if word in words.split()), None)
    if field is None:
        raise ForebayError("bad-unit", f"{word!r} is no field of a time", hint=f"one of {', '.join(FIELDS)}")
    if args[1].type not in (DATE, TIMESTAMP):
        raise mismatch(f"a field is extracted from a timestamp or a date, not {args[1].type}")
    if field in ("hour", "minute", "seconds"):
        moment = want(args[1], "EXTRACT", TIMESTAMP, "date")
        return Call(_ROWS.get(field, field), (moment,), decimal(8, 6) if field == "seconds" else INT)
    return part(_ROWS.get(field, field), (args[1],))


def _instant_of(function: str, per_second: int, args: Args) -> Expr:
    """TIMESTAMP_SECONDS and its like."""
    if not args[0].type.integral:
        raise mismatch(f"{function.upper()} takes whole numbers, not {args[0].type}", "cast it: CAST(… AS BIGINT)")
    return Call(function, (coerce(args[0], BIGINT),), TIMESTAMP)


def seconds_of(name: str, args: Args) -> Expr:
    """UNIX_TIMESTAMP of a timestamp or date."""
    return Call("unix_seconds", (want(args[0], name, TIMESTAMP, "date"),), BIGINT)


def _day_number(args: Args) -> Expr:
    return Call("unix_date", (want(args[0], "UNIX_DATE", DATE),), INT)


def _day_of_number(args: Args) -> Expr:
    if args[0].type.name not in ("tinyint", "smallint", "int"):
        raise mismatch(f"DATE_FROM_UNIX_DATE takes an int, not {args[0].type}")
    return Call("date_from_unix_date", (coerce(args[0], INT),), DATE)


def _date_of_parts(args: Args) -> Expr:
    if any(a.type.name not in ("tinyint", "smallint", "int") for a in args):
        raise mismatch("MAKE_DATE takes ints", "cast them: CAST(… AS INT)")
    return Call("make_date", tuple(coerce(a, INT) for a in args), DATE)


def _shifted(function: str, sign: int, args: Args) -> Expr:
    """FROM_UTC_TIMESTAMP and TO_UTC_TIMESTAMP, of zones that are a fixed offset."""
    zone = constant_text(f"{function}'s zone", args[1])
    return plus_interval(want(args[0], function, TIMESTAMP, "date"), sign * _offset(zone))


def _offset(zone: str) -> int:
    if zone in ("UTC", "Z", "GMT", "UTC+0", "UTC-0"):
        return 0
    sign, hours, colon, minutes = zone[:1], zone[1:3], zone[3:4], zone[4:]
    fixed = sign in ("+", "-") and colon == ":" and len(zone) == 6 and zone.isascii() and (hours + minutes).isdigit()
    if not fixed or int(hours) * 60 + int(minutes) > 18 * 60 or int(minutes) > 59:
        raise mismatch(f"the zone {zone!r} is not offered: rules of regions differ between the engines' versions",
                       "a fixed offset such as '+02:00', or 'UTC'")
    return (1 if sign == "+" else -1) * (int(hours) * 60 + int(minutes)) * 60_000_000


# Their SQL
def _months_later(call: Call, args: Texts) -> str:
    months = f"to_months({constant(call, 1)})"
    if call.type == DATE:
        return in_calendar(f"CAST({args[0]} + {months} AS DATE)", DATES, f"CAST('{BEYOND}' AS DATE)")
    later = zoned(f"({naive(args[0])} + {months})")
    return in_calendar(later, INSTANTS["duckdb"], f"CAST('{BEYOND}' AS TIMESTAMP WITH TIME ZONE)")


def _spark_months_later(call: Call, args: Texts) -> str:
    if call.type == DATE:
        return in_calendar(f"add_months({args[0]}, {args[1]})", DATES, f"CAST(raise_error('{BEYOND}') AS DATE)")
    return in_calendar(f"({args[0]} + {_interval(call)})", INSTANTS["spark"],
                       f"CAST(raise_error('{BEYOND}') AS TIMESTAMP)")


def _try_months_later(call: Call, args: Texts) -> str:
    if call.type == DATE:
        return in_calendar(f"add_months({args[0]}, {args[1]})", DATES, "CAST(NULL AS DATE)")
    return in_calendar(f"try_add({args[0]}, {_interval(call)})", INSTANTS["spark"], "CAST(NULL AS TIMESTAMP)")


def _interval(call: Call) -> str:
    return f"INTERVAL '{constant(call, 1)}' MONTH"


def _bound(**parts: str) -> str:
    """A struct in a list of one, which binds each value once."""
    return "[{" + ", ".join(f"'{name}': {sql}" for name, sql in parts.items()) + "}]"


# LocalDateTime.until: the day counts less where the clock is earlier, on the way there; then whole months of days
_DAY = "(year(CAST({0} AS DATE)) * 12 + month(CAST({0} AS DATE)) - 1) * 32 + day(CAST({0} AS DATE))"
_CLOCK = "(epoch_us({0}) - epoch_us(CAST(CAST({0} AS DATE) AS TIMESTAMP)))"


def _months_apart(call: Call, args: Texts) -> str:
    first, second = (_CLOCK.format(name) for name in ("p.a", "p.b"))
    days = (f"CASE WHEN CAST(p.b AS DATE) > CAST(p.a AS DATE) AND {second} < {first} THEN -1 WHEN CAST(p.b AS DATE) < "
            f"CAST(p.a AS DATE) AND {second} > {first} THEN 1 ELSE 0 END")
    moved = f"list_transform([p.b + to_days({days})], lambda q: {_DAY.format('q')})[1]"
    months = f"(({moved}) - ({_DAY.format('p.a')})) // 32"
    bound = _bound(a=naive(args[0]), b=naive(args[1]))
    return f"CAST(list_transform({bound}, lambda p: ({months}) // {constant(call, 2)})[1] AS BIGINT)"


def _spark_months_apart(call: Call, args: Texts) -> str:
    unit = {months: unit for unit, months in MONTHS.items()}[int(str(constant(call, 2)))]
    return f"timestampdiff({unit.upper()}, {args[0]}, {args[1]})"


def _units_apart(call: Call, args: Texts) -> str:
    return f"((epoch_us({args[1]}) - epoch_us({args[0]})) // {constant(call, 2)})"


def _spark_units_apart(call: Call, args: Texts) -> str:
    return f"((unix_micros({args[1]}) - unix_micros({args[0]})) DIV {constant(call, 2)}L)"


def _months_between_sql(call: Call, args: Texts) -> str:
    """Spark's DateTimeUtils.monthsBetween: a month has 31 days where days differ, seconds are whole."""
    months = "(year(p.a) * 12 + month(p.a) - year(p.b) * 12 - month(p.b))"
    seconds = "(({0} - ({0} % 1000000)) // 1000000)"
    clocks = [seconds.format(_CLOCK.format(name)) for name in ("p.a", "p.b")]
    rest = f"((day(p.a) - day(p.b)) * 86400 + {clocks[0]} - {clocks[1]})"
    value = f"(CAST({months} AS DOUBLE) + CAST({rest} AS DOUBLE) / CAST(2678400 AS DOUBLE))"
    if constant(call, 2):
        value = f"(floor({value} * CAST('1e8' AS DOUBLE) + CAST('0.5' AS DOUBLE)) / CAST('1e8' AS DOUBLE))"
    whole = ("day(p.a) = day(p.b) OR last_day(CAST(p.a AS DATE)) = CAST(p.a AS DATE) AND last_day(CAST(p.b AS DATE)) = "
             "CAST(p.b AS DATE)")
    bound = _bound(a=naive(args[0]), b=naive(args[1]))
    return (f"list_transform({bound}, lambda p: CASE WHEN {whole} THEN CAST({months} AS DOUBLE) ELSE {value} END)[1]")


def _next_day_sql(call: Call, args: Texts) -> str:
    day = f"CAST({args[0]} + 1 + CAST(({constant(call, 1)} - isodow({args[0]}) + 7) % 7 AS INTEGER) AS DATE)"
    return in_calendar(day, DATES, f"CAST('{BEYOND}' AS DATE)")


def _spark_next_day(otherwise: str, call: Call, args: Texts) -> str:
    return in_calendar(f"next_day({args[0]}, '{WEEKDAYS[int(str(constant(call, 1)))]}')", DATES,
                       f"CAST({otherwise} AS DATE)")


def _instant_sql(dialect: str, function: str, per_second: int, otherwise: str, call: Call, args: Texts) -> str:
    """Within the calendar, which is asked of the number: before it is multiplied."""
    first, last = FIRST_SECOND * per_second, LAST_SECOND * per_second + per_second - 1
    us = f"{args[0]} * {1_000_000 // per_second}"
    moment = f"make_timestamptz({us})" if dialect == "duckdb" else f"{function}({args[0]})"
    kind = "TIMESTAMP WITH TIME ZONE" if dialect == "duckdb" else "TIMESTAMP"
    return (f"CASE WHEN {args[0]} BETWEEN {first} AND {last} OR ({args[0]}) IS NULL THEN {moment} "
            f"ELSE CAST({otherwise} AS {kind}) END")


def _instant_row(function: str, per_second: int, about: str) -> Function:
    write = partial(partial, _instant_sql)
    return Function(partial(_instant_of, function, per_second), (Name(function.upper(), 1, 1, about),), name=function,
                    duckdb=write("duckdb", function, per_second, f"'{BEYOND}'"),
                    spark=write("spark", function, per_second, f"raise_error('{BEYOND}')"),
                    attempt=write("spark", function, per_second, "NULL"), fails=lambda call: True)


def _day_of_number_sql(otherwise: str, call: Call, args: Texts) -> str:
    return in_calendar(f"CAST(DATE '1970-01-01' + {args[0]} AS DATE)", DATES, f"CAST({otherwise} AS DATE)")


def _spark_day_of_number(otherwise: str, call: Call, args: Texts) -> str:
    return in_calendar(f"date_from_unix_date({args[0]})", DATES, f"CAST({otherwise} AS DATE)")


def _spark_date_of_parts(call: Call, args: Texts) -> str:
    return in_calendar(f"make_date({args[0]}, {args[1]}, {args[2]})", DATES, f"CAST(raise_error('{BEYOND}') AS DATE)")


def _try_date_of_parts(call: Call, args: Texts) -> str:
    text = f"concat_ws('-', lpad({args[0]}, 4, '0'), {args[1]}, {args[2]})"
    return (f"CASE WHEN {args[0]} BETWEEN 1 AND 9999 AND {args[1]} BETWEEN 1 AND 12 AND {args[2]} BETWEEN 1 AND 31 "
            f"THEN try_cast({text} AS DATE) END")


def _date_of_parts_sql(call: Call, args: Texts) -> str:
    year = f"CASE WHEN {args[0]} NOT BETWEEN 1 AND 9999 THEN CAST('{BEYOND}' AS INTEGER) ELSE {args[0]} END"
    return f"make_date({year}, {args[1]}, {args[2]})"


def _timestamp_of_parts(function: str, args: Args) -> Expr:
    """MAKE_TIMESTAMP(year, month, day, hour, minute, second), the last with up to six digits of a fraction."""
    if any(a.type.name not in ("tinyint", "smallint", "int") for a in args[:5]):
        raise mismatch(f"{function} takes ints, and a second that is an int or a decimal", "cast them: CAST(… AS INT)")
    second = args[5].type
    if not (second.name in ("tinyint", "smallint", "int") or second.name == "decimal" and second.scale <= 6
            and second.precision - second.scale <= 10):
        raise mismatch(f"{function}'s second is an int or a decimal of at most 6 places, not {second}",
                       "cast it: CAST(… AS DECIMAL(8,6))")
    parts = (*(coerce(a, INT) for a in args[:5]), coerce(args[5], decimal(16, 6)))
    return Call(function.lower().removesuffix("_ltz"), parts, TIMESTAMP)


_VALID = ("p.mo BETWEEN 1 AND 12 AND p.d BETWEEN 1 AND 31 AND p.h BETWEEN 0 AND 23 AND p.mi BETWEEN 0 AND 59 AND p.s "
          "BETWEEN 0 AND 60")


def _timestamp_of_parts_sql(keyword: str, call: Call, args: Texts) -> str:
    """A 60th second is the next minute's first."""
    bound = _bound(**dict(zip(("y", "mo", "d", "h", "mi", "s"), args)))
    none = " OR ".join(f"p.{name} IS NULL" for name in ("y", "mo", "d", "h", "mi", "s"))
    micros = ("(CAST(p.h AS BIGINT) * 3600 + p.mi * 60) * 1000000 + CAST(CAST(p.s AS DECIMAL(18,6)) * CAST(1000000 AS "
              "DECIMAL(7,0)) AS BIGINT)")
    moment = zoned(f"(CAST(make_date(p.y, p.mo, p.d) AS TIMESTAMP) + to_microseconds({micros}))")
    wrong = f"{keyword}('DATETIME_FIELD_OUT_OF_BOUNDS' AS TIMESTAMP WITH TIME ZONE)"
    beyond = f"CAST('{BEYOND}' AS TIMESTAMP WITH TIME ZONE)"
    in_month = "p.d <= day(last_day(make_date(p.y, p.mo, 1)))"
    value = (f"CASE WHEN {none} THEN NULL WHEN NOT ({_VALID}) THEN {wrong} WHEN p.y NOT BETWEEN 1 AND 9999 THEN "
             f"{beyond} WHEN {in_month} THEN {moment} ELSE {wrong} END")
    unchecked = f"list_transform({bound}, lambda p: {value})[1]"
    return f"list_transform([{unchecked}], lambda t: {in_calendar('t', INSTANTS['duckdb'], beyond)})[1]"


def _spark_timestamp_of_parts(function: str, otherwise: str, call: Call, args: Texts) -> str:
    return in_calendar(f"{function}({', '.join(args)})", INSTANTS["spark"], f"CAST({otherwise} AS TIMESTAMP)")


def _seconds_sql(call: Call, args: Texts) -> str:
    micros = f"CAST(((epoch_us({args[0]}) % 60000000) + 60000000) % 60000000 AS DECIMAL(10,0))"
    return f"CAST({micros} * CAST('0.000001' AS DECIMAL(6,6)) AS DECIMAL(8,6))"


def _name_sql(directive: str, call: Call, args: Texts) -> str:
    value = naive(args[0]) if call.args[0].type == TIMESTAMP else args[0]
    return f"strftime({value}, '{directive}')"


def _named_part(function: str, args: Args) -> Expr:
    return Call(function, (want(args[0], function.upper(), DATE, "timestamp"),), STRING)


def _always(call: Call) -> bool:
    return True


ROWS: tuple[Written, ...] = (
    Function(_add_months, (Name("ADD_MONTHS", 2, 2, "the date so many months later (a whole constant), on the month's "
                                                    "last day where it has no such day"),),
             name="add_months", duckdb=_months_later, spark=_spark_months_later,
             fails=lambda call: constant(call, 1) != 0, attempt=_try_months_later),
    Written(_date_add, (Name("DATE_ADD", 2, 3, "the date so many days later (a whole constant); DATE_ADD(MONTH, 2, "
                                               "time) as TIMESTAMPADD"),
                        Name("DATEADD", 2, 3, "the same as DATE_ADD"))),
    Written(_date_diff, (Name("DATEDIFF", 2, 3, "days from the second date to the first; DATEDIFF(MONTH, from, to) as "
                                                "TIMESTAMPDIFF"),
                         Name("DATE_DIFF", 2, 3, "the same as DATEDIFF"))),
    Written(partial(_moved, "TIMESTAMPADD"), (Name("TIMESTAMPADD", 3, 3, "TIMESTAMPADD(MONTH, 2, time): the timestamp "
                                                                         "so many units later (a whole constant)"),)),
    Written(partial(_difference, "TIMESTAMPDIFF"), (Name("TIMESTAMPDIFF", 3, 3, "TIMESTAMPDIFF(MONTH, from, to): whole "
                                                                                "units between two times"),)),
    Function(name="months_apart", duckdb=_months_apart, spark=_spark_months_apart),
    Function(name="units_apart", duckdb=_units_apart, spark=_spark_units_apart),
    Function(_months_between, (Name("MONTHS_BETWEEN", 2, 3, "months from the second time to the first, by 31 days a "
                                                            "month, rounded to 8 digits unless the third argument is "
                                                            "FALSE"),),
             name="months_between", duckdb=_months_between_sql, spark="months_between({0}, {1}, {2})"),
    Function(lambda args: Call("last_day", (want(args[0], "LAST_DAY", DATE, "timestamp"),), DATE),
             (Name("LAST_DAY", 1, 1, "last day of the month"),), name="last_day", duckdb="last_day({0})"),
    Function(_next_day, (Name("NEXT_DAY", 2, 2, "first later day of that name (a constant, 'MON' or 'Monday')"),),
             name="next_day", duckdb=_next_day_sql, spark=partial(_spark_next_day, f"raise_error('{BEYOND}')"),
             attempt=partial(_spark_next_day, "NULL"), fails=_always),
    Function(_truncated, (Name("TRUNC", 2, 2, "first day of the unit (a constant: year, quarter, month, week)"),),
             name="trunc", duckdb="CAST(date_trunc({1}, {0}) AS DATE)", spark="trunc({0}, {1})"),
    Written(_field, (Name("EXTRACT", 2, 2, "EXTRACT(YEAR FROM time): a field of a time"),
                     Name("DATE_PART", 2, 2, "DATE_PART('year', time): the same"),
                     Name("DATEPART", 2, 2, "the same as DATE_PART"))),
    Function(name="second_with_fraction", duckdb=_seconds_sql, spark="extract(SECOND FROM {0})"),
    _instant_row("timestamp_seconds", 1, "timestamp of seconds since 1970"),
    _instant_row("timestamp_millis", 1_000, "timestamp of milliseconds since 1970"),
    _instant_row("timestamp_micros", 1_000_000, "timestamp of microseconds since 1970"),
    Function(_day_number, (Name("UNIX_DATE", 1, 1, "days since 1970"),), name="unix_date",
             duckdb="CAST({0} - DATE '1970-01-01' AS INTEGER)", spark="unix_date({0})"),
    Function(_day_of_number, (Name("DATE_FROM_UNIX_DATE", 1, 1, "the date so many days after 1970-01-01"),),
             name="date_from_unix_date", duckdb=partial(_day_of_number_sql, f"'{BEYOND}'"),
             spark=partial(_spark_day_of_number, f"raise_error('{BEYOND}')"),
             attempt=partial(_spark_day_of_number, "NULL"), fails=_always),
    Function(_date_of_parts, (Name("MAKE_DATE", 3, 3, "date of year, month and day; fails where there is no such day"),
                              ),
             name="make_date", duckdb=_date_of_parts_sql, spark=_spark_date_of_parts, attempt=_try_date_of_parts,
             fails=_always),
    Function(partial(_timestamp_of_parts, "MAKE_TIMESTAMP"),
             (Name("MAKE_TIMESTAMP", 6, 6, "timestamp of year, month, day, hour, minute and second; fails where there "
                                           "is no such time"),
              Name("MAKE_TIMESTAMP_LTZ", 6, 6, "the same as MAKE_TIMESTAMP")),
             name="make_timestamp", duckdb=partial(_timestamp_of_parts_sql, "CAST"), fails=_always,
             spark=partial(_spark_timestamp_of_parts, "make_timestamp", f"raise_error('{BEYOND}')"),
             attempt=partial(_spark_timestamp_of_parts, "try_make_timestamp", "NULL")),
    Function(partial(_timestamp_of_parts, "TRY_MAKE_TIMESTAMP"),
             (Name("TRY_MAKE_TIMESTAMP", 6, 6, "as MAKE_TIMESTAMP; NULL where there is no such time"),
              Name("TRY_MAKE_TIMESTAMP_LTZ", 6, 6, "the same as TRY_MAKE_TIMESTAMP")),
             name="try_make_timestamp", duckdb=partial(_timestamp_of_parts_sql, "TRY_CAST"), fails=_always,
             spark=partial(_spark_timestamp_of_parts, "try_make_timestamp", f"raise_error('{BEYOND}')"),
             attempt=partial(_spark_timestamp_of_parts, "try_make_timestamp", "NULL"),
             quiet=lambda call, args: f"try_make_timestamp({', '.join(args)}) IS NULL"),
    Function(partial(_named_part, "dayname"), (Name("DAYNAME", 1, 1, "Mon to Sun"),), name="dayname",
             duckdb=partial(_name_sql, "%a"), spark="dayname({0})"),
    Function(partial(_named_part, "monthname"), (Name("MONTHNAME", 1, 1, "Jan to Dec"),), name="monthname",
             duckdb=partial(_name_sql, "%b"), spark="monthname({0})"),
    Written(partial(_shifted, "FROM_UTC_TIMESTAMP", 1),
            (Name("FROM_UTC_TIMESTAMP", 2, 2, "a UTC time as the clock of a zone shows it (a fixed offset: '+02:00')"),
             )),
    Written(partial(_shifted, "TO_UTC_TIMESTAMP", -1),
            (Name("TO_UTC_TIMESTAMP", 2, 2, "the UTC time at which the clock of a zone shows this (a fixed offset)"),)),
)
