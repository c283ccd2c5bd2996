"""Functions that write times as text and read them from text, by a pattern or as CAST does."""
from __future__ import annotations

from functools import partial

from optimizer.expression.arguments import Args, want
from optimizer.expression.casting import constant, naive, zoned
from optimizer.expression.coercion import coerce, mismatch
from optimizer.expression.date_patterns import TextForm, check_written, written
from optimizer.expression.dialect import string
from optimizer.expression.expr import Call, Expr, Literal
from optimizer.expression.functions.calendar import seconds_of
from optimizer.expression.functions.conversion import cast
from optimizer.expression.functions.pieces import constant_text
from optimizer.expression.functions.row import Function, Name, Texts, Written
from optimizer.expression.functions.times import in_calendar
from optimizer.expression.time_texts import BEYOND, INSTANTS
from optimizer.expression.types import BIGINT, DATE, STRING, TIMESTAMP

SECONDS = "yyyy-MM-dd HH:mm:ss"      # Spark's default


def _formatted(args: Args) -> Expr:
    pattern = constant_text("DATE_FORMAT's pattern", args[1])
    check_written(pattern)
    return Call("date_format", (want(args[0], "DATE_FORMAT", TIMESTAMP, "date"), Literal(pattern, STRING)), STRING)


def _from_seconds(args: Args) -> Expr:
    """FROM_UNIXTIME."""
    if not args[0].type.integral:
        raise mismatch(f"FROM_UNIXTIME takes whole numbers, not {args[0].type}", "cast it: CAST(… AS BIGINT)")
    moment = Call("timestamp_seconds", (coerce(args[0], BIGINT),), TIMESTAMP)
    return _formatted((moment, args[1] if len(args) > 1 else Literal(SECONDS, STRING)))


def _read(name: str, attempt: bool, args: Args) -> Expr:
    """TO_TIMESTAMP of a time, or of a text in the form of a pattern."""
    if len(args) == 1:
        return cast(args[0], TIMESTAMP, attempt)
    text, pattern = want(args[0], name, STRING), constant_text(f"{name}'s pattern", args[1])
    TextForm.of(pattern)
    return Call("try_to_timestamp" if attempt else "to_timestamp", (text, Literal(pattern, STRING)), TIMESTAMP)


def _read_date(attempt: bool, args: Args) -> Expr:
    if len(args) == 1:
        return cast(args[0], DATE, attempt)
    return cast(_read("TRY_TO_DATE" if attempt else "TO_DATE", attempt, args), DATE)


def _read_seconds(name: str, args: Args) -> Expr:
    """UNIX_TIMESTAMP of a time, or of a text in the form of a pattern."""
    if len(args) == 1 and args[0].type != STRING:
        return seconds_of(name, args)
    read = _read(name, False, args if len(args) > 1 else (*args, Literal(SECONDS, STRING)))
    return seconds_of(name, (read,))


# Their SQL
def _written_sql(call: Call, args: Texts) -> str:
    return written(str(constant(call, 1)), naive(args[0]))


def _read_sql(keyword: str, call: Call, args: Texts) -> str:
    """What does not match becomes a text that is no time; what the calendar does not hold fails in any case."""
    reading = TextForm.of(str(constant(call, 1)))
    time = f"regexp_replace({args[0]}, {string(reading.regex)}, {string(reading.rewriting)})"
    return (f"CASE WHEN regexp_matches({args[0]}, {string(reading.beyond)}) "
            f"THEN CAST('{BEYOND}' AS TIMESTAMP WITH TIME ZONE) "
            f"WHEN NOT regexp_matches({args[0]}, {string(reading.regex)}) "
            f"THEN {keyword}('CANNOT_PARSE_TIMESTAMP' AS TIMESTAMP WITH TIME ZONE) "
            f"ELSE {zoned(f'{keyword}({time} AS TIMESTAMP)')} END")


def _spark_read(function: str, otherwise: str, call: Call, args: Texts) -> str:
    return in_calendar(f"{function}({args[0]}, {args[1]})", INSTANTS["spark"], f"CAST({otherwise} AS TIMESTAMP)")


def _no_time(call: Call, args: Texts) -> str:
    """Where TRY_TO_TIMESTAMP itself gives NULL."""
    return f"try_to_timestamp({args[0]}, {args[1]}) IS NULL"


_RAISED = f"raise_error('{BEYOND}')"


ROWS: tuple[Written, ...] = (
    Function(_formatted, (Name("DATE_FORMAT", 2, 2, "a time as text by a pattern (a constant: 'yyyy-MM-dd HH:mm')"),),
             name="date_format", duckdb=_written_sql, spark="date_format({0}, {1})"),
    Written(_from_seconds, (Name("FROM_UNIXTIME", 1, 2, "seconds since 1970 as text, by a pattern (a constant)"),)),
    Function(partial(_read, "TO_TIMESTAMP", False),
             (Name("TO_TIMESTAMP", 1, 2, "a timestamp from a text in the form of a pattern (a constant)"),
              Name("TO_TIMESTAMP_LTZ", 1, 2, "the same as TO_TIMESTAMP")),
             name="to_timestamp", duckdb=partial(_read_sql, "CAST"), spark=partial(_spark_read, "to_timestamp",
                                                                                   _RAISED),
             fails=lambda call: True, attempt=partial(_spark_read, "try_to_timestamp", "NULL")),
    Function(partial(_read, "TRY_TO_TIMESTAMP", True),
             (Name("TRY_TO_TIMESTAMP", 1, 2, "as TO_TIMESTAMP; NULL where the text is not in that form"),),
             name="try_to_timestamp", duckdb=partial(_read_sql, "TRY_CAST"),
             spark=partial(_spark_read, "try_to_timestamp", _RAISED), fails=lambda call: True,
             attempt=partial(_spark_read, "try_to_timestamp", "NULL"), quiet=_no_time),
    Written(partial(_read_date, False), (Name("TO_DATE", 1, 2, "the UTC day of a timestamp, or of a text in the form "
                                                               "of a "
                                              "pattern (a constant)"),)),
    Written(partial(_read_date, True), (Name("TRY_TO_DATE", 2, 2,
                                             "as TO_DATE; NULL where the text is not in that form"),)),
    Written(partial(_read_seconds, "UNIX_TIMESTAMP"),
            (Name("UNIX_TIMESTAMP", 1, 2, "seconds since 1970 of a time, or of a text in the form of a pattern"),)),
    Written(partial(_read_seconds, "TO_UNIX_TIMESTAMP"),
            (Name("TO_UNIX_TIMESTAMP", 1, 2, "the same as UNIX_TIMESTAMP"),)),
)
