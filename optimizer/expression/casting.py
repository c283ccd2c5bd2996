"""CAST as Spark's ANSI mode does it, in both dialects: which pairs exist, which can fail.

No pair is offered that cannot give Spark's value.
"""
from __future__ import annotations

from optimizer.expression.expr import Call, Literal
from optimizer.expression.time_texts import BEYOND, date_of, moment_of, spark_time_of
from optimizer.expression.types import DOUBLE, INTEGERS, STRING, Type, decimal

_NAMES = {"int": "INTEGER", "string": "VARCHAR", "timestamp": "TIMESTAMP WITH TIME ZONE"}
_SPACE = r"[\x00-\x20\x7F]*"
_WHOLE = f"^{_SPACE}([+-]?[0-9]+){_SPACE}$"
_NUMBER = f"^{_SPACE}([+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?){_SPACE}$"
_REAL = f"(?i)^{_SPACE}([+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)(e[+-]?[0-9]+)?)[fd]?{_SPACE}$"
_SPECIAL = f"(?i)^{_SPACE}([+-]?inf(inity)?|nan){_SPACE}$"
_TWO_63 = "9223372036854775808"       # 2^63, where Spark's check lets BIGINT's largest value through


_OF_TEXT = ("boolean", "double", "date", "timestamp")


def sql_type(kind: Type, dialect: str) -> str:
    """The type's name in a dialect."""
    return _NAMES.get(kind.name, str(kind).upper()) if dialect == "duckdb" else str(kind).upper()


def castable(source: Type, to: Type) -> bool:
    """Whether CAST(source AS to) is offered."""
    if source == to:
        return True
    if to.name == "decimal" and to.scale == 38 and (source == STRING or source.floating):
        return False      # DuckDB has no decimal with a digit more, by way of which these are read
    pairs = {"string": to.exact or to.name in _OF_TEXT, "boolean": to.name == "string" or to.integral,
             "date": to.name in ("timestamp", "string"), "timestamp": to.name in ("date", "string")}
    return pairs.get(source.name, to.numeric or (source.exact and to.name == "string"))


def cast_fails(call: Call) -> bool:
    """Whether some value of the argument's type has no image, so that Spark's ANSI mode raises."""
    source, to = call.args[0].type, call.type
    if source.name == "string" and to.name in ("date", "timestamp"):
        return True
    if source == to or source.name == "boolean" or to.name in ("string", "timestamp", "date"):
        return False
    if to.floating and source.numeric:
        return False
    if source.integral and to.integral:
        return INTEGERS[source.name] > INTEGERS[to.name]
    if source.name == "decimal" and to.name == "decimal":
        return to.precision - to.scale < source.precision - source.scale + (to.scale < source.scale)
    if source.integral and to.name == "decimal":
        return to.precision - to.scale < {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}[source.name]
    return True


def cast_is_null(call: Call, args: tuple[str, ...]) -> str:
    """Spark gives NULL for NaN and the infinities as a decimal, even in ANSI mode."""
    beyond = call.args[0].type.floating and call.type.name == "decimal"
    return f"isnan({args[0]}) OR abs({args[0]}) = double('Infinity')" if beyond else ""


def try_cast_fails(call: Call) -> bool:
    """A text of a year that the calendar does not hold is no NULL."""
    return call.args[0].type.name == "string" and call.type.name == "date"


def spark_cast(call: Call, args: tuple[str, ...]) -> str:
    return _spark_cast("CAST", f"raise_error('{BEYOND}')", call, args)


def spark_try_cast(call: Call, args: tuple[str, ...]) -> str:
    """TRY_CAST itself."""
    return _spark_cast("try_cast", f"raise_error('{BEYOND}')", call, args)


def spark_quiet_cast(call: Call, args: tuple[str, ...]) -> str:
    """NULL for whatever fails."""
    return _spark_cast("try_cast", "NULL", call, args)


def try_cast_is_null(call: Call, args: tuple[str, ...]) -> str:
    return f"try_cast({args[0]} AS {sql_type(call.type, 'spark')}) IS NULL" if try_cast_fails(call) else "TRUE"


def _spark_cast(function: str, otherwise: str, call: Call, args: tuple[str, ...]) -> str:
    if call.args[0].type.name == "string" and call.type.name in ("date", "timestamp"):
        return spark_time_of(function, call.type.name, args[0], otherwise)
    return f"{function}({args[0]} AS {sql_type(call.type, 'spark')})"


def duckdb_cast(call: Call, args: tuple[str, ...]) -> str:
    return _convert("CAST", call.args[0].type, call.type, args[0])


def duckdb_try_cast(call: Call, args: tuple[str, ...]) -> str:
    return _convert("TRY_CAST", call.args[0].type, call.type, args[0])


def _convert(keyword: str, source: Type, to: Type, value: str) -> str:
    """DuckDB rounds where Spark truncates, takes underscores in numbers, and reads zones with a calendar.

    Each line undoes one of these.
    """
    target = sql_type(to, "duckdb")
    if source == to:
        return value
    if source.name == "string":
        return _from_string(keyword, to, value)
    if to.integral and source.floating:
        return _float_to_integer(keyword, source, to, value)
    if to.integral and source.name == "decimal":
        return f"{keyword}(trunc({value}) AS {target})"
    if to.name == "decimal" and source.floating:
        return _float_to_decimal(keyword, to, value)
    if to.floating and source.name == "decimal" and (source.precision > 15 or to.name == "float"):
        return f"CAST(CAST({value} AS VARCHAR) AS {target})"
    if to.name == "float" and source == DOUBLE:
        return _to_float(value)
    if to.name == "string":
        return _to_string(source, value)
    if source.name == "timestamp":
        return f"CAST({naive(value)} AS DATE)"
    if source.name == "date":
        return zoned(f"CAST({value} AS TIMESTAMP)")
    return f"{keyword}({value} AS {target})"


def naive(value: str) -> str:
    """A TIMESTAMPTZ as the UTC wall clock, without the zone library's calendar."""
    return f"make_timestamp(epoch_us({value}))"


def zoned(value: str) -> str:
    """And back."""
    return f"make_timestamptz(epoch_us({value}))"


def _from_string(keyword: str, to: Type, value: str) -> str:
    target = sql_type(to, "duckdb")
    if to.name in ("date", "timestamp"):
        return date_of(keyword, value) if to.name == "date" else moment_of(value)
    if to.integral:
        return f"{keyword}(regexp_extract({value}, '{_WHOLE}', 1) AS {target})"
    if to.name == "decimal":
        wide = f"{keyword}(regexp_extract({value}, '{_NUMBER}', 1) AS DECIMAL(38,{to.scale}))"
        return f"{keyword}(CAST({wide} AS VARCHAR) AS {target})"
    if to == DOUBLE:
        return (f"{keyword}(regexp_extract({value}, '{_REAL}', 1) || regexp_extract({value}, '{_SPECIAL}', 1) AS "
                f"{target})")
    name = f"lower(regexp_extract({value}, '^{_SPACE}([A-Za-z01]+){_SPACE}$', 1))"
    return (f"{keyword}(regexp_replace(regexp_replace({name}, '^(t|y|yes|1)$', 'true'), '^(f|n|no|0)$', 'false') AS "
            "BOOLEAN)")


def _float_to_integer(keyword: str, source: Type, to: Type, value: str) -> str:
    plain = f"{keyword}(trunc({value}) AS {sql_type(to, 'duckdb')})"
    if to.name != "bigint":
        return plain
    return (f"CASE WHEN {value} = CAST('{_TWO_63}' AS {sql_type(source, 'duckdb')}) THEN CAST(9223372036854775807 AS "
            f"BIGINT) ELSE {plain} END")


def _float_to_decimal(keyword: str, to: Type, value: str) -> str:
    """By its shortest text, as Java does.

    The range is checked here because DuckDB lets exponents through that are too large.
    """
    limit = f"CAST('1e{to.precision - to.scale}' AS DOUBLE)"
    text = (f"CASE WHEN abs({value}) < {limit} THEN CAST(CAST({value} AS DOUBLE) AS VARCHAR) ELSE "
            "'NUMERIC_VALUE_OUT_OF_RANGE' END")
    if to.precision == to.scale:      # DuckDB reads no exponent where no digit stands before the point
        text = f"{keyword}({text} AS {sql_type(decimal(to.precision + 1, to.scale), 'duckdb')})"
    return f"CASE WHEN isfinite({value}) THEN {keyword}({text} AS {sql_type(to, 'duckdb')}) END"


def _to_float(value: str) -> str:
    """What is nearer to 2^128 than to the largest float becomes infinite, where DuckDB raises."""
    top = "CAST('3.4028235677973366e38' AS DOUBLE)"
    return (f"CASE WHEN isnan({value}) THEN CAST('NaN' AS FLOAT) WHEN {value} >= {top} THEN CAST('Infinity' AS FLOAT) "
            f"WHEN {value} <= -{top} THEN CAST('-Infinity' AS FLOAT) ELSE CAST({value} AS FLOAT) END")


def _to_string(source: Type, value: str) -> str:
    if source.name == "timestamp":
        return (f"({_date_text(f'CAST({naive(value)} AS DATE)')} || regexp_extract(CAST({naive(value)} AS VARCHAR), ' "
                "[0-9:.]+'))")
    if source.name == "date":
        return _date_text(value)
    if source.name == "decimal" and source.precision == source.scale:
        return f"CAST(CAST({value} AS DECIMAL({min(38, source.precision + 1)},{source.scale})) AS VARCHAR)"
    return f"CAST({value} AS VARCHAR)"


def _date_text(value: str) -> str:
    """Spark signs years of five digits and negative ones; DuckDB writes (BC)."""
    sign = f"CASE WHEN year({value}) > 9999 THEN '+' WHEN year({value}) < 0 THEN '-' ELSE '' END"
    return f"({sign} || printf('%04d', abs(year({value}))) || strftime({value}, '-%m-%d'))"


def constant(call: Call, index: int) -> object:
    """The value of an argument that must be a constant, None where it is not one."""
    arg = call.args[index]
    return arg.value if isinstance(arg, Literal) else None
