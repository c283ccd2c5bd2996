"""What a user may write: every function and operator of the allow-list with its arity and Spark's typing; a name that is not here cannot enter a query."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

from optimizer.errors import ForebayError
from optimizer.expression import casting
from optimizer.expression.arguments import Args, choose, is_bare_null, numeric, typed_nulls, unify, want, whole_number
from optimizer.expression.coercion import as_decimal, coerce, mismatch
from optimizer.expression.decimals import supported
from optimizer.expression.expr import Call, Expr, Literal, walk
from optimizer.expression.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, INTEGERS, STRING, TIMESTAMP, Type, decimal

OPERATOR_OF = {"add": "+", "subtract": "-", "multiply": "*", "mod": "%", "divide": "/"}
UNITS = ("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")


@dataclass(frozen=True)
class Name:
    """What a user may write: how many arguments, how they are typed, and one line for docs/queries.md."""

    least: int
    most: int
    build: Callable[[Args], Expr]
    about: str


def _compare(function: str, args: Args) -> Expr:
    left, right = args
    _check_reach(function, left, right)
    if "decimal" in (left.type.name, right.type.name) and left.type.exact and right.type.exact:
        left, right = coerce(left, as_decimal(left.type, left)), coerce(right, as_decimal(right.type, right))
    return Call(function, unify((left, right)), BOOLEAN)


def _check_reach(function: str, left: Expr, right: Expr) -> None:
    """Spark answers these without a look at the whole number, FALSE or TRUE for NULL too."""
    for number, bound in ((left, right), (right, left)):
        value = bound.value if isinstance(bound, Literal) and isinstance(bound.value, Decimal) else Decimal(0)
        if number.type.integral and not -2**63 <= value < 2**63 and function in ("lt", "le", "gt", "ge"):
            raise mismatch(f"every {number.type} is on one side of {value}", "leave the comparison out")


def _calculate(function: str, args: Args) -> Expr:
    """+ - * % of numbers: the wider type, decimals by their own rules."""
    left, right = (numeric(a, OPERATOR_OF.get(function, function.upper())) for a in typed_nulls(args))
    if left.type.floating or right.type.floating or not (left.type.name == "decimal" or right.type.name == "decimal"):
        left, right = unify((left, right))
        return Call(function, (left, right), left.type)
    left, right = coerce(left, as_decimal(left.type, left)), coerce(right, as_decimal(right.type, right))
    return Call(function, (left, right), supported(function, left.type, right.type))


def _divide(args: Args) -> Expr:
    """NULL as divisor has the dividend's type; as dividend it is a double."""
    left, right = (numeric(a, "/") for a in (args[0], typed_nulls(args)[1]))
    kinds = {left.type.name, right.type.name}
    if "decimal" in kinds and not kinds & {"float", "double"}:
        return _calculate("divide", (left, right))
    return Call("divide", (coerce(left, DOUBLE), coerce(right, DOUBLE)), DOUBLE)


def _whole_division(args: Args) -> Expr:
    for arg in args:
        if not arg.type.integral:
            raise mismatch(f"DIV takes whole numbers, not {arg.type}", "use /, or FLOOR(a / b)")
    return Call("div", tuple(coerce(a, BIGINT) for a in args), BIGINT)


def _negate(args: Args) -> Expr:
    arg = _signed("-", "write 0 - x", args)
    return Call("negate", (arg,), arg.type)


def _plus(args: Args) -> Expr:
    """The number itself, but no constant any more: in m / +7 seven has ten digits."""
    arg = numeric(args[0], "+")
    return cast(arg, arg.type)


def _absolute(args: Args) -> Expr:
    arg = _signed("ABS", "write CASE WHEN x < 0 THEN 0 - x ELSE x END", args)
    return Call("abs", (arg,), arg.type)


def _signed(what: str, instead: str, args: Args) -> Expr:
    """Spark rounds to 34 digits when it changes a decimal's sign; what has more is refused rather than changed."""
    arg = numeric(args[0], what)
    if arg.type.precision > 34:
        raise mismatch(f"{what} of {arg.type}: Spark keeps 34 digits there", instead)
    return arg


def _positive_remainder(args: Args) -> Expr:
    left, right = unify(args)
    if not left.type.integral or not isinstance(right, Literal) or not isinstance(right.value, int) or right.value <= 0:
        raise mismatch("PMOD takes a whole number and a positive whole constant", "for instance PMOD(x, 10)")
    return Call("pmod", (left, right), left.type)


def _real(function: str, args: Args) -> Expr:
    return Call(function, tuple(coerce(numeric(a, function.upper()), DOUBLE) for a in args), DOUBLE)


def _rounding(args: Args) -> Expr:
    arg = numeric(args[0], "ROUND")
    digits = whole_number(args[1], "ROUND's number of digits", 0, 15) if len(args) > 1 else 0
    if arg.type.name == "float":
        raise mismatch("ROUND takes double, decimal and whole numbers, not float", "cast it: CAST(… AS DOUBLE)")
    kind = arg.type
    if kind.name == "decimal":
        scale = min(kind.scale, digits)
        kind = decimal(min(38, kind.precision - kind.scale + 1 + scale), scale)
    return Call("round", (arg, Literal(digits, INT)), kind)


def _whole(function: str, args: Args) -> Expr:
    arg = numeric(args[0], function.upper())
    if arg.type.name == "decimal":
        carried = 1 if arg.type.scale else 0
        return Call(function, (arg,), decimal(arg.type.precision - arg.type.scale + carried, 0))
    return Call(function, (coerce(arg, BIGINT if arg.type.integral else DOUBLE),), BIGINT)


def _logical(function: str, args: Args) -> Expr:
    """AND and OR of any number of terms; nested ones of the same kind are one."""
    terms = tuple(t for a in args for t in (a.args if isinstance(a, Call) and a.function == function else (want(a, function.upper(), BOOLEAN),)))
    return Call(function, terms, BOOLEAN)


def _negation(args: Args) -> Expr:
    return Call("not", (want(args[0], "NOT", BOOLEAN),), BOOLEAN)


def _is_null(args: Args) -> Expr:
    return Call("is_null", args, BOOLEAN)


def _member(args: Args) -> Expr:
    """IN: a list of constants stays a list, other items are compared one after another, as Spark does."""
    first, *rest = unify(args)
    if all(isinstance(a, Literal) for a in rest):
        return Call("in", (first, *rest), BOOLEAN)
    return _logical("or", tuple(Call("eq", (first, a), BOOLEAN) for a in rest)) if len(rest) > 1 else Call("eq", (first, rest[0]), BOOLEAN)


def _like(args: Args) -> Expr:
    text, pattern = want(args[0], "LIKE", STRING), args[1]
    if not isinstance(pattern, Literal) or pattern.type != STRING:
        raise mismatch("LIKE's pattern must be a string constant")
    rest = str(pattern.value)
    for escaped in ("\\\\", "\\%", "\\_"):
        rest = rest.replace(escaped, "")
    if "\\" in rest:
        raise ForebayError("bad-literal", "LIKE's pattern has a \\ before something other than %, _ or \\", hint="write \\\\\\\\ in the text for one backslash")
    return Call("like", (text, pattern), BOOLEAN)


def _conditional(args: Args) -> Expr:
    """CASE's conditions and values in turn; ELSE is the last, NULL where there was none."""
    if any(is_bare_null(c) for c in args[:len(args) // 2 * 2:2]):
        raise mismatch("WHEN takes a condition, not NULL", "leave the branch out, or write FALSE")
    complete = args if len(args) % 2 else (*args, Literal(None, args[1].type))
    values = choose((*complete[1::2], complete[-1]))
    kept = tuple(x for c, v in zip(complete[:-1:2], values) for x in (want(c, "WHEN", BOOLEAN), v))
    return Call("case", (*kept, values[-1]), values[0].type)


def _if(args: Args) -> Expr:
    """IF(condition, yes, no), which takes NULL for its condition as CASE does not."""
    return _conditional((cast(args[0], BOOLEAN) if is_bare_null(args[0]) else args[0], *args[1:]))


def _coalesce(args: Args) -> Expr:
    unified = choose(args)
    return Call("coalesce", unified, unified[0].type)


def _null_if(args: Args) -> Expr:
    return _conditional((_compare("eq", args), Literal(None, args[0].type), args[0]))


def _extreme(function: str, args: Args) -> Expr:
    """Spark reads no text as a time here."""
    if any(a.type == STRING for a in args) and any(a.type in (TIMESTAMP, DATE) for a in args):
        raise mismatch(f"{function.upper()} takes arguments of one type, not strings and times", "write TIMESTAMP '…' or DATE '…'")
    unified = choose(args)
    return Call(function, unified, unified[0].type)


def _text(function: str, result: Type, args: Args) -> Expr:
    """Functions whose arguments are all strings."""
    return Call(function, tuple(want(a, function.upper(), STRING) for a in args), result)


def _letters(function: str, args: Args) -> Expr:
    """Their form in DuckDB repeats the argument, so they do not nest."""
    if any(isinstance(e, Call) and e.function in ("upper", "lower") for e in walk(args[0])):
        raise ForebayError("too-complex", "UPPER and LOWER are not accepted inside UPPER and LOWER", hint="leave the inner one out")
    return _text(function, STRING, args)


def _concatenation(args: Args) -> Expr:
    parts = tuple(want(a, "CONCAT", STRING, *INTEGERS, "decimal", "date", "timestamp", "boolean") for a in args)
    flat = tuple(p for a in parts for p in (a.args if isinstance(a, Call) and a.function == "concat" else (a,)))
    return flat[0] if len(flat) == 1 else Call("concat", flat, STRING)


def _substring(args: Args) -> Expr:
    numbers = [whole_number(a, "SUBSTRING's position and length") for a in args[1:]]
    length = numbers[1] if len(numbers) > 1 else 2**31 - 1
    return Call("substring", (want(args[0], "SUBSTRING", STRING), Literal(numbers[0], INT), Literal(length, INT)), STRING)


def _edge(function: str, args: Args) -> Expr:
    return Call(function, (want(args[0], function.upper(), STRING), Literal(whole_number(args[1], f"{function.upper()}'s length"), INT)), STRING)


def _part(function: str, args: Args) -> Expr:
    if args[0].type not in (DATE, TIMESTAMP):
        raise mismatch(f"{function.upper()} takes a timestamp or a date, not {args[0].type}")
    return Call(function, args, INT)


def _clock(function: str, args: Args) -> Expr:
    """Parts of the hour also of dates; instants as numbers of timestamps only."""
    if function in ("hour", "minute", "second"):
        return Call(function, (want(args[0], function.upper(), TIMESTAMP, "date"),), INT)
    return Call(function, (want(args[0], function.upper(), TIMESTAMP),), BIGINT)


def _truncate(args: Args) -> Expr:
    unit = str(args[0].value).lower() if isinstance(args[0], Literal) else ""
    if unit not in UNITS:
        raise ForebayError("bad-unit", "DATE_TRUNC's unit must be a constant", hint=f"one of {', '.join(UNITS)}")
    return Call("date_trunc", (Literal(unit, STRING), want(args[1], "DATE_TRUNC", TIMESTAMP, "date")), TIMESTAMP)


def _add_days(sign: int, args: Args) -> Expr:
    if args[1].type == BIGINT:
        raise mismatch("the number of days is an INT, not a BIGINT")
    days = sign * whole_number(args[1], "the number of days", -10_000_000, 10_000_000)
    return Call("date_add", (want(args[0], "DATE_ADD", DATE, "timestamp"), Literal(days, INT)), DATE)


def _days_between(args: Args) -> Expr:
    return Call("datediff", tuple(want(a, "DATEDIFF", DATE, "timestamp") for a in args), INT)


def cast(arg: Expr, to: Type, attempt: bool = False) -> Expr:
    """CAST and TRY_CAST; constants of text to timestamps are read now. Any other constant is none any more once it is cast, as in Spark,
    which counts the digits of 7 in m / 7, but not in m / CAST(7 AS INT)."""
    if is_bare_null(arg):
        return Call("cast", (coerce(arg, to),), to)
    if isinstance(arg, Literal) and arg.type == STRING and to in (DATE, TIMESTAMP) and not attempt:
        return coerce(arg, to)
    if not casting.castable(arg.type, to):
        hint = "declare the column as timestamp or date in forebay.yml" if arg.type == STRING and to in (DATE, TIMESTAMP) else None
        raise mismatch(f"a cast from {arg.type} to {to} is not offered", hint)
    plain = arg.type == to and not isinstance(arg, Literal)
    return arg if plain else Call("try_cast" if attempt else "cast", (arg,), to)


def grouped(expr: Expr) -> Expr:
    """A grouping expression as its groups show it: 0.0 where rows hold -0.0, as in Spark."""
    return Call("one_zero", (expr,), expr.type) if expr.type.floating else expr


def _fixed(function: str) -> Callable[[Args], Expr]:
    return partial(_compare, function)


NAMES: dict[str, Name] = {
    "ABS": Name(1, 1, _absolute, "absolute value"),
    "CEIL": Name(1, 1, partial(_whole, "ceil"), "smallest whole number not below"),
    "CEILING": Name(1, 1, partial(_whole, "ceil"), "the same"),
    "COALESCE": Name(1, 1000, _coalesce, "first argument that is not NULL"),
    "CONCAT": Name(1, 1000, _concatenation, "strings one after another; NULL if one is NULL"),
    "CONTAINS": Name(2, 2, partial(_text, "contains", BOOLEAN), "whether the first string holds the second"),
    "DATEDIFF": Name(2, 2, _days_between, "days from the second date to the first"),
    "DATE_ADD": Name(2, 2, partial(_add_days, 1), "the date so many days later (a whole constant)"),
    "DATE_SUB": Name(2, 2, partial(_add_days, -1), "the date so many days earlier (a whole constant)"),
    "DATE_TRUNC": Name(2, 2, _truncate, f"start of the unit (a constant: {', '.join(UNITS)})"),
    "DAY": Name(1, 1, partial(_part, "day"), "day of the month"),
    "DAYOFMONTH": Name(1, 1, partial(_part, "day"), "the same"),
    "DAYOFWEEK": Name(1, 1, partial(_part, "dayofweek"), "1 for Sunday to 7 for Saturday"),
    "DAYOFYEAR": Name(1, 1, partial(_part, "dayofyear"), "day of the year from 1"),
    "ENDSWITH": Name(2, 2, partial(_text, "endswith", BOOLEAN), "whether the first string ends with the second"),
    "EXP": Name(1, 1, partial(_real, "exp"), "e to the power of"),
    "FLOOR": Name(1, 1, partial(_whole, "floor"), "largest whole number not above"),
    "GREATEST": Name(2, 1000, partial(_extreme, "greatest"), "largest argument; NULLs are skipped"),
    "HOUR": Name(1, 1, partial(_clock, "hour"), "hour of the day, UTC"),
    "IFNULL": Name(2, 2, _coalesce, "second argument where the first is NULL"),
    "LEAST": Name(2, 1000, partial(_extreme, "least"), "smallest argument; NULLs are skipped"),
    "LEFT": Name(2, 2, partial(_edge, "left"), "first characters (how many: a constant)"),
    "LENGTH": Name(1, 1, partial(_text, "length", INT), "number of characters"),
    "LN": Name(1, 1, partial(_real, "ln"), "natural logarithm; NULL for 0 and below"),
    "LOG10": Name(1, 1, partial(_real, "log10"), "logarithm of base 10; NULL for 0 and below"),
    "LOWER": Name(1, 1, partial(_letters, "lower"), "in lower case"),
    "LTRIM": Name(1, 1, partial(_text, "ltrim", STRING), "without leading spaces"),
    "MINUTE": Name(1, 1, partial(_clock, "minute"), "minute of the hour"),
    "MOD": Name(2, 2, partial(_calculate, "mod"), "remainder, with the sign of the first argument"),
    "MONTH": Name(1, 1, partial(_part, "month"), "month from 1"),
    "NULLIF": Name(2, 2, _null_if, "NULL where both are equal, else the first"),
    "NVL": Name(2, 2, _coalesce, "the same as IFNULL"),
    "PMOD": Name(2, 2, _positive_remainder, "remainder that is not negative (by a positive whole constant)"),
    "POW": Name(2, 2, partial(_real, "power"), "the same as POWER"),
    "POWER": Name(2, 2, partial(_real, "power"), "the first to the power of the second"),
    "QUARTER": Name(1, 1, partial(_part, "quarter"), "quarter from 1"),
    "REPLACE": Name(3, 3, partial(_text, "replace", STRING), "every occurrence of the second string by the third"),
    "RIGHT": Name(2, 2, partial(_edge, "right"), "last characters (how many: a constant)"),
    "ROUND": Name(1, 2, _rounding, "half up, to 0 to 15 digits (a constant, default 0)"),
    "RTRIM": Name(1, 1, partial(_text, "rtrim", STRING), "without trailing spaces"),
    "SECOND": Name(1, 1, partial(_clock, "second"), "whole second of the minute"),
    "SIGN": Name(1, 1, partial(_real, "sign"), "-1.0, 0.0 or 1.0"),
    "SQRT": Name(1, 1, partial(_real, "sqrt"), "square root; NaN below 0"),
    "STARTSWITH": Name(2, 2, partial(_text, "startswith", BOOLEAN), "whether the first string begins with the second"),
    "SUBSTR": Name(2, 3, _substring, "the same as SUBSTRING"),
    "SUBSTRING": Name(2, 3, _substring, "from a position (1 is the first, negative from the end), so many characters (constants)"),
    "TO_DATE": Name(1, 1, lambda args: cast(args[0], DATE), "the UTC day of a timestamp"),
    "TRIM": Name(1, 1, partial(_text, "trim", STRING), "without leading and trailing spaces"),
    "UNIX_MICROS": Name(1, 1, partial(_clock, "unix_micros"), "microseconds since 1970"),
    "UNIX_MILLIS": Name(1, 1, partial(_clock, "unix_millis"), "milliseconds since 1970, rounded down"),
    "UNIX_SECONDS": Name(1, 1, partial(_clock, "unix_seconds"), "seconds since 1970, rounded down"),
    "UPPER": Name(1, 1, partial(_letters, "upper"), "in upper case"),
    "YEAR": Name(1, 1, partial(_part, "year"), "year"),
}

OPERATORS: dict[str, Callable[[Args], Expr]] = {
    "+": partial(_calculate, "add"), "-": partial(_calculate, "subtract"), "*": partial(_calculate, "multiply"), "/": _divide, "DIV": _whole_division,
    "%": partial(_calculate, "mod"), "=": _fixed("eq"), "<>": _fixed("ne"), "<": _fixed("lt"), "<=": _fixed("le"), ">": _fixed("gt"), ">=": _fixed("ge"),
    "<=>": _fixed("same"), "AND": partial(_logical, "and"), "OR": partial(_logical, "or"), "NOT": _negation, "NEGATE": _negate, "||": _concatenation,
    "IS NULL": _is_null, "IN": _member, "LIKE": _like, "CASE": _conditional, "IF": _if, "PLUS": _plus,
}


def build(name: str, args: Args) -> Expr:
    """A call of a function as a user named it."""
    known = NAMES[name]
    if not known.least <= len(args) <= known.most:
        wanted = f"{known.least}" if known.least == known.most else f"{known.least} to {known.most}"
        raise ForebayError("wrong-arguments", f"{name} takes {wanted} argument{'s' if wanted != '1' else ''}, not {len(args)}")
    return known.build(args)


def plus_interval(expr: Expr, us: int) -> Expr:
    """A timestamp, or a date and whole days, moved by a fixed length."""
    if expr.type == DATE:
        if us % 86_400_000_000:
            raise mismatch("an interval added to a date must be of whole days", "cast the date: CAST(… AS TIMESTAMP)")
        return _add_days(1, (expr, Literal(us // 86_400_000_000, INT)))
    return Call("add_interval", (want(expr, "an interval is added to a timestamp or a date; it", TIMESTAMP), Literal(us, BIGINT)), TIMESTAMP)
