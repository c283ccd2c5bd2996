"""Functions of numbers: Spark's result types, decimals by their own rules, SQL where DuckDB's value would differ."""
from __future__ import annotations

from decimal import Decimal
from functools import partial

from optimizer.expression.arguments import Args, is_bare_null, numeric, read_texts, typed_nulls, unify, whole_number
from optimizer.expression.casting import constant, sql_type
from optimizer.expression.coercion import as_decimal, coerce, mismatch
from optimizer.expression.decimals import quotient, remainder, supported
from optimizer.expression.expr import Call, Expr, Literal
from optimizer.expression.functions.conversion import cast
from optimizer.expression.functions.row import Function, Name, Template, Texts, Typing, Written, filled
from optimizer.expression.types import BIGINT, DOUBLE, INT, INTEGERS, STRING, decimal

OPERATOR_OF = {"add": "+", "subtract": "-", "multiply": "*", "mod": "%", "divide": "/"}


def _calculate(function: str, args: Args) -> Expr:
    """+ - * % of numbers: the wider type, decimals by their own rules."""
    left, right = (numeric(a, OPERATOR_OF.get(function, function.upper())) for a in typed_nulls(read_texts(args)))
    if left.type.floating or right.type.floating or not (left.type.name == "decimal" or right.type.name == "decimal"):
        left, right = unify((left, right))
        return Call(function, (left, right), left.type)
    left, right = coerce(left, as_decimal(left.type, left)), coerce(right, as_decimal(right.type, right))
    return Call(function, (left, right), supported(function, left.type, right.type))


def _divide(args: Args) -> Expr:
    """NULL as divisor has the dividend's type; as dividend it is a double."""
    args = read_texts(args)
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


def _signed(function: str, instead: str, args: Args) -> Expr:
    """Spark rounds to 34 digits when it changes a decimal's sign; what has more is refused rather than changed."""
    arg = numeric(args[0], function)
    if arg.type.precision > 34:
        raise mismatch(f"{function} of {arg.type}: Spark keeps 34 digits there", instead)
    return arg


def _positive_remainder(args: Args) -> Expr:
    left, right = unify(args)
    divisor = right.value if isinstance(right, Literal) else None
    if not left.type.integral or not isinstance(divisor, int) or divisor <= 0:
        raise mismatch("PMOD takes a whole number and a positive whole constant", "for instance PMOD(x, 10)")
    return Call("pmod", (left, right), left.type)


def real(function: str, args: Args) -> Expr:
    return Call(function, tuple(coerce(numeric(a, function.upper()), DOUBLE) for a in args), DOUBLE)


def _round(args: Args) -> Expr:
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
    """FLOOR and CEIL."""
    arg = numeric(args[0], function.upper())
    if arg.type.name == "decimal":
        carried = 1 if arg.type.scale else 0
        return Call(function, (arg,), decimal(arg.type.precision - arg.type.scale + carried, 0))
    return Call(function, (coerce(arg, BIGINT if arg.type.integral else DOUBLE),), BIGINT)


def grouped(expr: Expr) -> Expr:
    """A grouping expression as its groups show it: 0.0 where rows hold -0.0, as in Spark."""
    return Call("one_zero", (expr,), expr.type) if expr.type.floating else expr


# When they raise
def nonzero(call: Call, index: int = 1) -> bool:
    value = constant(call, index)
    return isinstance(value, (int, float, Decimal)) and value != 0


def _overflows(call: Call) -> bool:
    """Whole numbers always can; decimals only where Spark had to cut the result to 38 digits."""
    return call.type.integral or call.type.precision == 38


def _division_fails(call: Call) -> bool:
    return not nonzero(call) or call.type.precision == 38 or call.function == "div" and constant(call, 1) == -1


def _of_whole_numbers(call: Call) -> bool:
    return call.type.integral


# Their SQL
def _duckdb_type(call: Call) -> str:
    return sql_type(call.type, "duckdb")


def _by_function(sign: str, name: str) -> Template:
    """DuckDB moves constants across comparisons (x + 1 > 0 becomes x > -1) and loses the overflow.

    It does so only with operators, not with these functions.
    """
    def write(call: Call, args: Texts) -> str:
        if call.type.name == "decimal" and sign == "*":
            return _decimal_product(call, args)
        if call.type.name == "decimal":      # cast first, so that DuckDB's narrower result type never counts
            target = _duckdb_type(call)
            return f"CAST((CAST({args[0]} AS {target}) {sign} CAST({args[1]} AS {target})) AS {target})"
        opaque = call.type.integral and any(isinstance(a, Literal) for a in call.args)
        return f"{name}({args[0]}, {args[1]})" if opaque else f"({args[0]} {sign} {args[1]})"
    return write


def _decimal_product(call: Call, args: Texts) -> str:
    """The first operand widened: DuckDB keeps 18 digits where both have no more."""
    left, right = call.args[0].type, call.args[1].type
    wide = sql_type(decimal(min(38, left.precision + right.precision), left.scale), "duckdb")
    return f"CAST((CAST({args[0]} AS {wide}) * {args[1]}) AS {_duckdb_type(call)})"


def _quotient_sql(call: Call, args: Texts) -> str:
    if call.type.floating:
        return f"({args[0]} / {args[1]})"
    return quotient(call.args[0].type, call.args[1].type, call.type, args[0], args[1])


def _remainder_sql(call: Call, args: Texts) -> str:
    """Java's sign rules are DuckDB's too.

    But the smallest integer % -1 overflows there, so % 1 is written, which is 0 as well.
    """
    if call.type.integral and (not nonzero(call) or constant(call, 1) == -1):
        return f"({args[0]} % CASE WHEN {args[1]} = -1 THEN 1 ELSE {args[1]} END)"
    if call.type.name == "decimal":
        return remainder(call.args[0].type, call.args[1].type, call.type, args[0], args[1])
    return f"({args[0]} % {args[1]})"


def _positive_remainder_sql(call: Call, args: Texts) -> str:
    rest, zero = f"{args[0]} % {args[1]}", f"CAST(0 AS {_duckdb_type(call)})"
    return f"((({rest}) + CASE WHEN {rest} < 0 THEN {args[1]} ELSE {zero} END))"


def _negate_sql(call: Call, args: Texts) -> str:
    """Whole numbers by a function, for the reason given at _by_function."""
    target = _duckdb_type(call)
    return f"subtract(CAST(0 AS {target}), {args[0]})" if call.type.integral else f"CAST(-({args[0]}) AS {target})"


def _try_absolute(call: Call, args: Texts) -> str:
    smallest = -(1 << 8 * INTEGERS[call.type.name] - 1)
    return f"abs(nullif({args[0]}, CAST('{smallest}' AS {sql_type(call.type, 'spark')})))"


def _round_sql(call: Call, args: Texts) -> str:
    """Doubles are rounded half up in decimal, by their shortest text, as Java's BigDecimal does.

    From 2^52 on they are whole.
    """
    if call.type.integral:
        return args[0]
    if call.type.name == "decimal":
        return f"CAST({args[0]} AS {_duckdb_type(call)})"
    digits = int(str(constant(call, 1)))
    decimals = f"CAST(CAST({args[0]} AS VARCHAR) AS DECIMAL(38,{digits}))"
    rounded = f"CAST(CAST({decimals} AS VARCHAR) AS DOUBLE)"
    return f"CASE WHEN abs({args[0]}) < 4503599627370496 THEN {rounded} ELSE {args[0]} END"


def _whole_sql(function: str, call: Call, args: Texts) -> str:
    """BIGINT of doubles saturates in Spark, NaN is 0."""
    if call.type.name == "decimal":
        return f"CAST({function}({args[0]}) AS {_duckdb_type(call)})"
    if call.args[0].type.integral:
        return args[0]
    top = "CAST('9223372036854775808' AS DOUBLE)"
    return (f"CASE WHEN isnan({args[0]}) THEN CAST(0 AS BIGINT) WHEN {args[0]} >= {top} THEN CAST(9223372036854775807 "
            f"AS BIGINT) WHEN {args[0]} < -{top} THEN CAST('-9223372036854775808' AS BIGINT) ELSE "
            f"CAST({function}({args[0]}) AS BIGINT) END")


def _one_zero_sql(call: Call, args: Texts) -> str:
    """Both zeros are one value where values are grouped, and Spark shows it as 0.0."""
    return f"CASE WHEN {args[0]} = 0 THEN CAST('0.0' AS {_duckdb_type(call)}) ELSE {args[0]} END"


SIGN = "CASE WHEN isnan({0}) OR {0} = 0 THEN {0} ELSE CAST(sign({0}) AS DOUBLE) END"
LOGARITHM = "CASE WHEN {0} <= 0 THEN CAST(NULL AS DOUBLE) ELSE %s({0}) END"      # NULL in Spark of zero and below
# Java's: one to the power of infinity is not a number.
POWER = "CASE WHEN abs({0}) = 1 AND NOT isfinite({1}) THEN CAST('NaN' AS DOUBLE) ELSE power({0}, {1}) END"


def _attempt_sql(operation: str, call: Call, args: Texts) -> str:
    """A division of doubles by zero gives an infinity in DuckDB, and no value in Spark."""
    if call.type.floating and operation in ("divide", "mod"):
        return f"({args[0]} {OPERATOR_OF[operation]} nullif({args[1]}, CAST(0 AS {_duckdb_type(call)})))"
    return f"TRY({filled(_OPERATIONS[operation][1], Call(operation, call.args, call.type), args)})"


_OPERATIONS: dict[str, tuple[Typing, Template]] = {
    "add": (partial(_calculate, "add"), _by_function("+", "add")),
    "subtract": (partial(_calculate, "subtract"), _by_function("-", "subtract")),
    "multiply": (partial(_calculate, "multiply"), _by_function("*", "multiply")),
    "divide": (_divide, _quotient_sql), "mod": (partial(_calculate, "mod"), _remainder_sql)}


def _attempted(operation: str, args: Args) -> Expr:
    """TRY_ADD and its like: NULL where the operation fails."""
    if any(a.type == STRING and not is_bare_null(a) for a in args):
        raise mismatch(f"TRY_{operation.upper()} takes numbers, not text", "use TRY_CAST in it")
    plain = _OPERATIONS[operation][0](args)
    assert isinstance(plain, Call)
    return Call(f"try_{operation}", plain.args, plain.type)


def _attempt_row(operation: str, about: str) -> Function:
    return Function(partial(_attempted, operation), (Name(f"TRY_{operation.upper()}", 2, 2, about),),
                    name=f"try_{operation}", duckdb=partial(_attempt_sql, operation),
                    spark=f"try_{operation}({{0}}, {{1}})", quiet="TRUE", unfailing=True)


ROWS: tuple[Written, ...] = (
    Function(partial(_calculate, "add"), operators=("+",), name="add", duckdb=_by_function("+", "add"),
             spark="({0} + {1})", fails=_overflows, attempt="try_add({0}, {1})"),
    Function(partial(_calculate, "subtract"), operators=("-",), name="subtract", duckdb=_by_function("-", "subtract"),
             spark="({0} - {1})", fails=_overflows, attempt="try_subtract({0}, {1})"),
    Function(partial(_calculate, "multiply"), operators=("*",), name="multiply", duckdb=_by_function("*", "multiply"),
             spark="({0} * {1})", fails=_overflows, attempt="try_multiply({0}, {1})"),
    Function(_divide, operators=("/",), name="divide", duckdb=_quotient_sql, spark="({0} / {1})",
             fails=_division_fails, attempt="try_divide({0}, {1})", order="divisor"),
    Function(_whole_division, operators=("DIV",), name="div", duckdb="({0} // {1})", spark="({0} DIV {1})",
             fails=_division_fails, order="divisor",
             attempt="CASE WHEN {1} = -1 THEN try_subtract(0L, {0}) ELSE {0} DIV nullif({1}, 0L) END"),
    Function(partial(_calculate, "mod"), (Name("MOD", 2, 2, "remainder, with the sign of the first argument"),),
             operators=("%",), name="mod", duckdb=_remainder_sql, spark="({0} % {1})",
             fails=lambda call: not nonzero(call), attempt="try_mod({0}, {1})", order="divisor"),
    Function(_positive_remainder,
             (Name("PMOD", 2, 2, "remainder that is not negative (by a positive whole constant)"),),
             name="pmod", duckdb=_positive_remainder_sql, spark="pmod({0}, {1})"),
    Function(_negate, (Name("NEGATIVE", 1, 1, "the number with the other sign"),), operators=("NEGATE",),
             name="negate", duckdb=_negate_sql, spark="(-{0})",
             fails=_of_whole_numbers,
             attempt=lambda call, args: f"try_subtract(CAST(0 AS {sql_type(call.type, 'spark')}), {args[0]})"),
    Written(_plus, (Name("POSITIVE", 1, 1, "the number itself"),), operators=("PLUS",)),
    Function(_absolute, (Name("ABS", 1, 1, "absolute value"),), name="abs", duckdb="abs({0})",
             fails=_of_whole_numbers, attempt=_try_absolute),
    Function(partial(real, "sign"), (Name("SIGN", 1, 1, "-1.0, 0.0 or 1.0"), Name("SIGNUM", 1, 1, "the same as SIGN")),
             name="sign", duckdb=SIGN, spark="sign({0})"),
    Function(_round, (Name("ROUND", 1, 2, "half up, to 0 to 15 digits (a constant, default 0)"),),
             name="round", duckdb=_round_sql, spark="round({0}, {1})"),
    Function(partial(_whole, "floor"), (Name("FLOOR", 1, 1, "largest whole number not above"),),
             name="floor", duckdb=partial(_whole_sql, "floor"), spark="floor({0})"),
    Function(partial(_whole, "ceil"), (Name("CEIL", 1, 1, "smallest whole number not below"),
                                       Name("CEILING", 1, 1, "the same")),
             name="ceil", duckdb=partial(_whole_sql, "ceil"), spark="ceil({0})"),
    Function(partial(real, "sqrt"), (Name("SQRT", 1, 1, "square root; NaN below 0"),),
             name="sqrt", duckdb="sqrt({0})"),
    Function(partial(real, "exp"), (Name("EXP", 1, 1, "e to the power of"),), name="exp", duckdb="exp({0})"),
    Function(partial(real, "power"), (Name("POWER", 2, 2, "the first to the power of the second"),
                                      Name("POW", 2, 2, "the same as POWER")),
             name="power", duckdb=POWER, spark="power({0}, {1})"),
    Function(partial(real, "ln"), (Name("LN", 1, 1, "natural logarithm; NULL for 0 and below"),),
             name="ln", duckdb=LOGARITHM % "ln", spark="ln({0})", quiet="TRUE"),
    Function(partial(real, "log10"), (Name("LOG10", 1, 1, "logarithm of base 10; NULL for 0 and below"),),
             name="log10", duckdb=LOGARITHM % "log10", spark="log10({0})", quiet="TRUE"),
    Function(name="one_zero", duckdb=_one_zero_sql),
    _attempt_row("add", "sum, NULL where it has no room"),
    _attempt_row("subtract", "difference, NULL where it has no room"),
    _attempt_row("multiply", "product, NULL where it has no room"),
    _attempt_row("divide", "quotient, NULL of a division by zero"),
    _attempt_row("mod", "remainder, NULL of a division by zero"),
)
