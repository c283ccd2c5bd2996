"""The functions a query can hold: how each is written in each dialect so that both give Spark's value, and whether it can raise; no typing here."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

from optimizer.expression import casting
from optimizer.expression.casting import constant, naive, sql_type, zoned
from optimizer.expression.decimals import quotient, remainder
from optimizer.expression.expr import Call, Literal
from optimizer.expression.types import INTEGERS, Type, decimal

# Dates and times of other years are no values that files' statistics and Python could hold: what gives one fails.
BEYOND = "a date or time before the year 1 or after 9999"
_DAYS = ("DATE '0001-01-01'", "DATE '9999-12-31'")
_CALENDAR = {"duckdb": ("TIMESTAMPTZ '0001-01-01 00:00:00+00'", "TIMESTAMPTZ '9999-12-31 23:59:59.999999+00'"),
             "spark": ("TIMESTAMP '0001-01-01 00:00:00Z'", "TIMESTAMP '9999-12-31 23:59:59.999999Z'")}
Args = tuple[str, ...]
Template = Callable[[Call, Args], str]


@dataclass(frozen=True)
class Function:
    """How a Call of this name is written and when it raises. `attempt` is Spark's form that gives NULL instead of raising. `order` is `strict`
    (arguments left to right, a NULL ends it), `divisor` (the same, the second first), `all` (every argument, NULL or not) or `lazy`
    (optimizer.expression.scalar knows). `quiet` is Spark's condition under which values that are not NULL give NULL without an error."""

    duckdb: Template
    spark: Template
    fails: Callable[[Call], bool] = lambda call: False
    attempt: Template | None = None
    order: str = "strict"
    quiet: Template | None = None


def _infix(operator: str) -> Template:
    return lambda call, args: "(" + f" {operator} ".join(args) + ")"


def _plain(name: str, narrow: bool = False) -> Template:
    """`name(args)`; `narrow` where DuckDB's result is wider than Spark's."""
    def write(call: Call, args: Args) -> str:
        text = f"{name}({', '.join(args)})"
        return f"CAST({text} AS {sql_type(call.type, 'duckdb')})" if narrow else text
    return write


def _overflows(call: Call) -> bool:
    """Whole numbers always can; decimals only where Spark had to cut the result to 38 digits."""
    return call.type.integral or call.type.precision == 38


def _divides(call: Call) -> bool:
    return not nonzero(call) or call.type.precision == 38 or call.function == "div" and constant(call, 1) == -1


def _arithmetic(sign: str, name: str) -> Template:
    """DuckDB moves constants across comparisons (x + 1 > 0 becomes x > -1) and loses the overflow; it does so only with operators, not with these functions."""
    def write(call: Call, args: Args) -> str:
        if call.type.name == "decimal":
            return _decimal_product(call, args) if sign == "*" else _decimal_sum(sign, call, args)
        opaque = call.type.integral and any(isinstance(a, Literal) for a in call.args)
        return f"{name}({args[0]}, {args[1]})" if opaque else _infix(sign)(call, args)
    return write


def _smallest(kind: Type) -> str:
    return f"CAST('{-(1 << 8 * INTEGERS[kind.name] - 1)}' AS {sql_type(kind, 'spark')})"


def _try_negate(call: Call, args: Args) -> str:
    return f"try_subtract(CAST(0 AS {sql_type(call.type, 'spark')}), {args[0]})"


def _try_absolute(call: Call, args: Args) -> str:
    return f"abs(nullif({args[0]}, {_smallest(call.type)}))"


def _try_div(call: Call, args: Args) -> str:
    return f"CASE WHEN {args[1]} = -1 THEN try_subtract(0L, {args[0]}) ELSE {args[0]} DIV nullif({args[1]}, 0L) END"


def _add_interval(call: Call, args: Args) -> str:
    return _in_calendar(f"({args[0]} + {_spark_interval(call, args)})", f"CAST(raise_error('{BEYOND}') AS TIMESTAMP)", *_CALENDAR["spark"])


def _try_add_interval(call: Call, args: Args) -> str:
    return _in_calendar(f"try_add({args[0]}, {_spark_interval(call, args)})", "CAST(NULL AS TIMESTAMP)", *_CALENDAR["spark"])


def _always(call: Call, args: Args) -> str:
    return "TRUE"


def _same(name: str, **more: object) -> Function:
    return Function(_plain(name), _plain(name), **more)  # type: ignore[arg-type]


def _operator(sign: str, spark: str | None = None) -> Function:
    return Function(_infix(sign), _infix(spark or sign))


def _dated(name: str, spark: str | None = None) -> Function:
    return Function(partial(_part, name), _plain(spark or name))


def _widths(call: Call) -> str:
    return sql_type(call.type, "duckdb")


def _negate(call: Call, args: Args) -> str:
    """Whole numbers by a function, for the reason given at _arithmetic."""
    return f"subtract(CAST(0 AS {_widths(call)}), {args[0]})" if call.type.integral else f"CAST(-({args[0]}) AS {_widths(call)})"


def _decimal_sum(sign: str, call: Call, args: Args) -> str:
    """Both operands to the result's type first, so that DuckDB's narrower result type never counts."""
    target = _widths(call)
    return f"CAST((CAST({args[0]} AS {target}) {sign} CAST({args[1]} AS {target})) AS {target})"


def _decimal_product(call: Call, args: Args) -> str:
    """The first operand widened: DuckDB keeps 18 digits where both have no more."""
    left, right = call.args[0].type, call.args[1].type
    wide = sql_type(decimal(min(38, left.precision + right.precision), left.scale), "duckdb")
    return f"CAST((CAST({args[0]} AS {wide}) * {args[1]}) AS {_widths(call)})"


def nonzero(call: Call, index: int = 1) -> bool:
    value = constant(call, index)
    return isinstance(value, (int, float, Decimal)) and value != 0


def _divide(call: Call, args: Args) -> str:
    if call.type.floating:
        return f"({args[0]} / {args[1]})"
    return quotient(call.args[0].type, call.args[1].type, call.type, args[0], args[1])


def _remainder(call: Call, args: Args) -> str:
    """Java's sign rules are DuckDB's too; but the smallest integer % -1 overflows there, so % 1 is asked, which is 0 as well."""
    if call.type.integral and (not nonzero(call) or constant(call, 1) == -1):
        return f"({args[0]} % CASE WHEN {args[1]} = -1 THEN 1 ELSE {args[1]} END)"
    if call.type.name == "decimal":
        return remainder(call.args[0].type, call.args[1].type, call.type, args[0], args[1])
    return f"({args[0]} % {args[1]})"


def _positive_remainder(call: Call, args: Args) -> str:
    return f"((({args[0]} % {args[1]}) + CASE WHEN {args[0]} % {args[1]} < 0 THEN {args[1]} ELSE CAST(0 AS {_widths(call)}) END))"


def _sign(call: Call, args: Args) -> str:
    return f"CASE WHEN isnan({args[0]}) OR {args[0]} = 0 THEN {args[0]} ELSE CAST(sign({args[0]}) AS DOUBLE) END"


def _rounding(call: Call, args: Args) -> str:
    """Doubles are rounded half up in decimal, by their shortest text, as Java's BigDecimal does; from 2^52 on they are whole."""
    if call.type.integral:
        return args[0]
    if call.type.name == "decimal":
        return f"CAST({args[0]} AS {_widths(call)})"
    digits = int(str(constant(call, 1)))
    text = f"CAST(CAST({args[0]} AS VARCHAR) AS DECIMAL(38,{digits}))"
    return f"CASE WHEN abs({args[0]}) < 4503599627370496 THEN CAST(CAST({text} AS VARCHAR) AS DOUBLE) ELSE {args[0]} END"


def _whole(function: str, call: Call, args: Args) -> str:
    """FLOOR and CEIL: BIGINT of doubles saturates in Spark, NaN is 0."""
    if call.type.name == "decimal":
        return f"CAST({function}({args[0]}) AS {_widths(call)})"
    if call.args[0].type.integral:
        return args[0]
    top = "CAST('9223372036854775808' AS DOUBLE)"
    return (f"CASE WHEN isnan({args[0]}) THEN CAST(0 AS BIGINT) WHEN {args[0]} >= {top} THEN CAST(9223372036854775807 AS BIGINT) "
            f"WHEN {args[0]} < -{top} THEN CAST('-9223372036854775808' AS BIGINT) ELSE CAST({function}({args[0]}) AS BIGINT) END")


def _positive(function: str, call: Call, args: Args) -> str:
    """Logarithms of zero and below are NULL in Spark."""
    return f"CASE WHEN {args[0]} <= 0 THEN CAST(NULL AS DOUBLE) ELSE {function}({args[0]}) END"


def _extreme(function: str, call: Call, args: Args) -> str:
    """Of zeros of both signs the first, as in Spark."""
    plain = f"{function}({', '.join(args)})"
    zeros = ", ".join(f"CASE WHEN {a} = 0 THEN {a} END" for a in args)
    return f"CASE WHEN {plain} = 0 THEN coalesce({zeros}) ELSE {plain} END" if call.type.floating else plain


def _power(call: Call, args: Args) -> str:
    """Java's: one to the power of infinity is not a number."""
    return f"CASE WHEN abs({args[0]}) = 1 AND NOT isfinite({args[1]}) THEN CAST('NaN' AS DOUBLE) ELSE power({args[0]}, {args[1]}) END"


def _one_zero(call: Call, args: Args) -> str:
    """Both zeros are one value where values are grouped, and Spark shows it as 0.0."""
    return f"CASE WHEN {args[0]} = 0 THEN CAST('0.0' AS {sql_type(call.type, 'duckdb')}) ELSE {args[0]} END"


def _substring(call: Call, args: Args) -> str:
    """Spark counts position 0 as 1 and takes nothing where the length is not positive."""
    start, length = int(str(constant(call, 1))), int(str(constant(call, 2)))
    if length <= 0:
        return f"left({args[0]}, 0)"
    return f"substring({args[0]}, {start or 1}, {length})"


def _edge(function: str, call: Call, args: Args) -> str:
    return f"{function}({args[0]}, {max(0, int(str(constant(call, 1))))})"


def _like(call: Call, args: Args) -> str:
    r"""Spark escapes with \ without being asked."""
    return f"({args[0]} LIKE {args[1]} ESCAPE '\\')"


def _part(function: str, call: Call, args: Args) -> str:
    value = naive(args[0]) if call.args[0].type.name == "timestamp" else args[0]
    shifted = " + 1" if function == "dayofweek" else ""
    return f"CAST({function}({value}){shifted} AS INTEGER)"


def _truncate(call: Call, args: Args) -> str:
    return zoned(f"date_trunc({args[0]}, {naive(args[1])})")


def _seconds(unit: int, call: Call, args: Args) -> str:
    """Whole seconds or milliseconds, towards minus infinity."""
    us = f"epoch_us({args[0]})"
    return f"(({us} - (({us} % {unit}) + {unit}) % {unit}) // {unit})"


def _interval(call: Call, args: Args) -> str:
    return _in_calendar(f"({args[0]} + to_microseconds({constant(call, 1)}))", f"CAST('{BEYOND}' AS TIMESTAMP WITH TIME ZONE)", *_CALENDAR["duckdb"])


def _days_later(call: Call, args: Args) -> str:
    return _in_calendar(f"CAST({args[0]} + {args[1]} AS DATE)", f"CAST('{BEYOND}' AS DATE)", *_DAYS)


def _in_calendar(moment: str, otherwise: str, first: str, last: str) -> str:
    return f"CASE WHEN {moment} BETWEEN {first} AND {last} OR ({moment}) IS NULL THEN {moment} ELSE {otherwise} END"


def _spark_days_later(call: Call, args: Args) -> str:
    return _in_calendar(_plain("date_add")(call, args), f"CAST(raise_error('{BEYOND}') AS DATE)", *_DAYS)


def _try_days_later(call: Call, args: Args) -> str:
    return _in_calendar(_plain("date_add")(call, args), "CAST(NULL AS DATE)", *_DAYS)


def _spark_interval(call: Call, args: Args) -> str:
    """The interval's constant in Spark, to be added."""
    value = int(str(constant(call, 1)))
    rest, micro = divmod(abs(value), 1_000_000)
    days, rest = divmod(rest, 86_400)
    return f"INTERVAL '{'-' if value < 0 else ''}{days} {rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}.{micro:06d}' DAY TO SECOND"


def _branches(args: Args) -> str:
    """Conditions and values in turn, the last one ELSE."""
    pairs = "".join(f" WHEN {args[i]} THEN {args[i + 1]}" for i in range(0, len(args) - 1, 2))
    return f"CASE{pairs} ELSE {args[-1]} END"


FUNCTIONS: dict[str, Function] = {
    "add": Function(_arithmetic("+", "add"), _infix("+"), _overflows, _plain("try_add")),
    "subtract": Function(_arithmetic("-", "subtract"), _infix("-"), _overflows, _plain("try_subtract")),
    "multiply": Function(_arithmetic("*", "multiply"), _infix("*"), _overflows, _plain("try_multiply")),
    "divide": Function(_divide, _infix("/"), _divides, _plain("try_divide"), "divisor"),
    "div": Function(_infix("//"), _infix("DIV"), _divides, _try_div, "divisor"),
    "mod": Function(_remainder, _infix("%"), lambda call: not nonzero(call), _plain("try_mod"), "divisor"),
    "pmod": Function(_positive_remainder, _plain("pmod")),
    "negate": Function(_negate, lambda call, args: f"(-{args[0]})", lambda call: call.type.integral, _try_negate),
    "abs": Function(_plain("abs"), _plain("abs"), lambda call: call.type.integral, _try_absolute),
    "sign": Function(_sign, _plain("sign")),
    "round": Function(_rounding, _plain("round")),
    "floor": Function(partial(_whole, "floor"), _plain("floor")),
    "ceil": Function(partial(_whole, "ceil"), _plain("ceil")),
    "sqrt": _same("sqrt"), "exp": _same("exp"), "power": Function(_power, _plain("power")),
    "one_zero": Function(_one_zero, _one_zero),
    "ln": Function(partial(_positive, "ln"), _plain("ln"), quiet=_always),
    "log10": Function(partial(_positive, "log10"), _plain("log10"), quiet=_always),
    "eq": _operator("="), "ne": _operator("<>"), "lt": _operator("<"), "le": _operator("<="), "gt": _operator(">"), "ge": _operator(">="),
    "same": Function(_infix("IS NOT DISTINCT FROM"), _infix("<=>"), order="all"),
    "not": Function(lambda call, args: f"(NOT {args[0]})", lambda call, args: f"(NOT {args[0]})"),
    "is_null": Function(lambda call, args: f"({args[0]} IS NULL)", lambda call, args: f"({args[0]} IS NULL)", order="all"),
    "in": Function(lambda call, args: f"({args[0]} IN ({', '.join(args[1:])}))", lambda call, args: f"({args[0]} IN ({', '.join(args[1:])}))", order="all"),
    "like": Function(_like, lambda call, args: f"({args[0]} LIKE {args[1]})"),
    "and": Function(_infix("AND"), _infix("AND"), order="lazy"),
    "or": Function(_infix("OR"), _infix("OR"), order="lazy"),
    "case": Function(lambda call, args: _branches(args), lambda call, args: _branches(args), order="lazy"),
    "coalesce": Function(_plain("coalesce"), _plain("coalesce"), order="lazy"),
    "cast": Function(casting.duckdb_cast, casting.spark_cast, casting.cast_fails, casting.spark_try_cast, quiet=casting.cast_is_null),
    "try_cast": Function(casting.duckdb_try_cast, casting.spark_try_cast, quiet=_always),
    "least": Function(partial(_extreme, "least"), _plain("least"), order="all"),
    "greatest": Function(partial(_extreme, "greatest"), _plain("greatest"), order="all"),
    "upper": Function(_plain("spark_upper"), _plain("upper")),
    "lower": Function(_plain("spark_lower"), _plain("lower")),
    "length": Function(_plain("length", narrow=True), _plain("length")),
    "trim": Function(lambda call, args: f"trim({args[0]}, ' ')", _plain("trim")),
    "ltrim": Function(lambda call, args: f"ltrim({args[0]}, ' ')", _plain("ltrim")),
    "rtrim": Function(lambda call, args: f"rtrim({args[0]}, ' ')", _plain("rtrim")),
    "substring": Function(_substring, _plain("substring")),
    "left": Function(partial(_edge, "left"), _plain("left")),
    "right": Function(partial(_edge, "right"), _plain("right")),
    "concat": Function(_infix("||"), _plain("concat")),
    "replace": _same("replace"),
    "startswith": Function(_plain("starts_with"), _plain("startswith")),
    "endswith": Function(_plain("ends_with"), _plain("endswith")),
    "contains": _same("contains"),
    "year": _dated("year"), "quarter": _dated("quarter"), "month": _dated("month"), "day": _dated("day"),
    "hour": _dated("hour"), "minute": _dated("minute"), "second": _dated("second"), "dayofweek": _dated("dayofweek"), "dayofyear": _dated("dayofyear"),
    "date_trunc": Function(_truncate, _plain("date_trunc")),
    "date_add": Function(_days_later, _spark_days_later, lambda call: constant(call, 1) != 0, _try_days_later),
    "datediff": Function(lambda call, args: f"CAST({args[0]} - {args[1]} AS INTEGER)", _plain("datediff")),
    "unix_micros": Function(_plain("epoch_us"), _plain("unix_micros")),
    "unix_millis": Function(partial(_seconds, 1_000), _plain("unix_millis")),
    "unix_seconds": Function(partial(_seconds, 1_000_000), _plain("unix_seconds")),
    "add_interval": Function(_interval, _add_interval, lambda call: True, _try_add_interval),
}
