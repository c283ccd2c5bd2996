"""Aggregates as users write them: what they take, what they give, which are the same.

Where they may stand is not decided here.
"""
from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from optimizer.errors import ForebayError
from optimizer.expression.arguments import is_bare_null, whole_number
from optimizer.expression.coercion import bounded, coerce, mismatch, number
from optimizer.expression.expr import AggregateRef, Call, Expr, Literal
from optimizer.expression.functions.table import OPERATORS
from optimizer.expression.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, Type
from optimizer.query.aggregate import PAIRED, Aggregate

DIGITS_OF_DOUBLES = 15
AGGREGATES = {
    "COUNT": "count",
    "SUM": "sum",
    "AVG": "avg",
    "MEAN": "avg",
    "TRY_SUM": "sum",
    "TRY_AVG": "avg",
    "MIN": "min",
    "MAX": "max",
    "STDDEV": "stddev_samp",
    "STD": "stddev_samp",
    "STDDEV_SAMP": "stddev_samp",
    "STDDEV_POP": "stddev_pop",
    "VARIANCE": "var_samp",
    "VAR_SAMP": "var_samp",
    "VAR_POP": "var_pop",
    "MEDIAN": "median",
    "PERCENTILE": "percentile",
    "PERCENTILE_CONT": "percentile",
    "PERCENTILE_DISC": "percentile_disc",
    "PERCENTILE_APPROX": "percentile_disc",
    "APPROX_PERCENTILE": "percentile_disc",
    "APPROX_COUNT_DISTINCT": "count_distinct",
    "COUNT_IF": "count_if",
    "BOOL_AND": "bool_and",
    "EVERY": "bool_and",
    "BOOL_OR": "bool_or",
    "SOME": "bool_or",
    "ANY": "bool_or",
    "BIT_AND": "bit_and",
    "BIT_OR": "bit_or",
    "BIT_XOR": "bit_xor",
    "LISTAGG": "listagg",
    "STRING_AGG": "listagg",
    "CORR": "corr",
    "COVAR_POP": "covar_pop",
    "COVAR_SAMP": "covar_samp",
    "REGR_COUNT": "regr_count",
    "REGR_AVGX": "regr_avgx",
    "REGR_AVGY": "regr_avgy",
    "REGR_SXX": "regr_sxx",
    "REGR_SXY": "regr_sxy",
    "REGR_SYY": "regr_syy",
    "REGR_SLOPE": "regr_slope",
    "REGR_INTERCEPT": "regr_intercept",
    "REGR_R2": "regr_r2"
}
ORDERED = ("PERCENTILE_CONT", "PERCENTILE_DISC", "LISTAGG", "STRING_AGG")      # WITHIN GROUP (ORDER BY x) follows
EXTREMES = {"bool_and": "min", "bool_or": "max"}      # of FALSE and TRUE
Reader = Callable[[exp.Expr], Expr]


def aggregate(node: exp.Expr, condition: Expr | None, read: Reader, numbers: dict[Aggregate, int]) -> AggregateRef:
    """The aggregate of a call by its number: that of the same one before it, or the next."""
    call = node.this if isinstance(node, exp.WithinGroup) else node
    wanted = _made(call.name.upper(), node, condition, read)
    return AggregateRef(numbers.setdefault(wanted, len(numbers)), wanted.type)


def _made(name: str, node: exp.Expr, condition: Expr | None, read: Reader) -> Aggregate:
    function = AGGREGATES[name]
    if function in ("percentile", "percentile_disc"):
        argument, parameter = _percentile(name, node, read)
        kind = argument.type if "APPROX" in name else DOUBLE
        return Aggregate(function, _kept(argument, condition), kind, parameter)
    if function == "listagg":
        return _listed(name, node, condition, read)
    if function in PAIRED or function.startswith("regr_"):
        return _paired(name, function, node, condition, read)
    if len(node.expressions) != 1:
        hint = "count rows with COUNT(*), or each column by itself" if name == "COUNT" else None
        raise ForebayError("wrong-arguments", f"{name} takes 1 argument, not {len(node.expressions)}", hint=hint)
    only = node.expressions[0]
    if function == "count":
        return _count(only, condition, read)
    if isinstance(only, exp.Distinct):
        raise ForebayError("not-supported", f"{name}(DISTINCT …) is not accepted",
                           hint="only COUNT(DISTINCT x) is; MIN and MAX do not need it")
    argument = read(only)
    if is_bare_null(argument):
        raise mismatch(f"{name} of NULL has no type", f"give it one: {name}(CAST(NULL AS INT))")
    if name.startswith("TRY_") and argument.type != DOUBLE and not _has_room(function, argument.type):
        raise mismatch(f"{name} takes doubles, decimals of up to 28 digits and INT, not {argument.type}",
                       f"{name.removeprefix('TRY_')} fails where it has no room")
    if function == "count_distinct":
        return Aggregate(function, _kept(argument, condition), BIGINT)
    if function == "count_if" or function in EXTREMES:
        return _of_condition(name, function, argument, condition)
    return Aggregate(function, _kept(argument, condition), _result(name, function, argument.type))


def _has_room(function: str, kind: Type) -> bool:
    """Whether totals never leave their type, so that TRY_SUM is SUM: less than 2^32 rows, less than 10^10 decimals."""
    return kind.name == "decimal" and kind.precision <= 28 or kind.integral and (kind != BIGINT or function == "avg")


def _listed(name: str, node: exp.Expr, condition: Expr | None, read: Reader) -> Aggregate:
    """LISTAGG(x, ', ') WITHIN GROUP (ORDER BY x): in the order of the strings themselves, so no two orders differ."""
    call = node.this if isinstance(node, exp.WithinGroup) else node
    ordered = node.expression.expressions if isinstance(node, exp.WithinGroup) else []
    if len(call.expressions) not in (1, 2) or len(ordered) != 1 or ordered[0].args.get("desc"):
        raise ForebayError("wrong-arguments", f"{name} is incomplete",
                           hint=f"write {name}(x, ', ') WITHIN GROUP (ORDER BY x)")
    argument, order = read(call.expressions[0]), read(ordered[0].this)
    separator = read(call.expressions[1]) if len(call.expressions) > 1 else Literal("", STRING)
    if argument.type != STRING or not isinstance(separator, Literal) or not isinstance(separator.value, str):
        raise mismatch(f"{name} takes strings and a constant between them")
    if argument != order:
        raise ForebayError("not-supported", f"{name} is ordered by something else than its argument",
                           hint="order by the argument itself, or which comes first among equals is open")
    return Aggregate("listagg", Call("concat", (_kept(argument, condition), separator), STRING), STRING)


def _of_condition(name: str, function: str, argument: Expr, condition: Expr | None) -> Aggregate:
    """COUNT_IF counts rows, BOOL_AND is the smallest of FALSE and TRUE, BOOL_OR the largest."""
    if argument.type != BOOLEAN:
        raise mismatch(f"{name} takes a condition, not {argument.type}")
    if function == "count_if":
        both = argument if condition is None else OPERATORS["AND"]((condition, argument))
        return Aggregate("count", _kept(Literal(1, INT), both), BIGINT)
    return Aggregate(EXTREMES[function], _kept(argument, condition), BOOLEAN)


def _paired(name: str, function: str, node: exp.Expr, condition: Expr | None, read: Reader) -> Aggregate:
    """Of the rows in which both arguments are there, y before x."""
    if len(node.expressions) != 2:
        raise ForebayError("wrong-arguments", f"{name} takes 2 arguments, not {len(node.expressions)}")
    y, x = (read(n) for n in node.expressions)
    for argument in (y, x):
        _result(name, "avg", argument.type)
        if is_bare_null(argument):
            raise mismatch(f"{name} of NULL has no type", f"give it one: {name}(CAST(NULL AS INT), …)")
    there = [OPERATORS["NOT"]((OPERATORS["IS NULL"]((a,)),)) for a in (y, x)]
    both = OPERATORS["AND"]((*([condition] if condition else []), *there))
    if function == "regr_count":
        return Aggregate("count", _kept(Literal(1, INT), both), BIGINT)
    if function in ("regr_avgx", "regr_avgy"):
        argument = x if function == "regr_avgx" else y
        return Aggregate("avg", _kept(argument, both), _result(name, "avg", argument.type))
    pair = tuple(_kept(coerce(a, DOUBLE), condition) for a in (y, x))
    return Aggregate(function, Call("pair", pair, DOUBLE), DOUBLE)


def _count(only: exp.Expr, condition: Expr | None, read: Reader) -> Aggregate:
    if isinstance(only, exp.Distinct):
        if len(only.expressions) != 1 or isinstance(only.expressions[0], (exp.Star, exp.Tuple)):
            raise ForebayError("wrong-arguments", "COUNT(DISTINCT …) takes one expression",
                               hint="concatenate the columns, or count each by itself")
        return Aggregate("count_distinct", _kept(read(only.expressions[0]), condition), BIGINT)
    star = only if isinstance(
        only, exp.Star) else only.this if isinstance(only, exp.Column) and isinstance(only.this, exp.Star) else None
    if star is None:
        argument = read(only)
    elif any(star.args.values()):
        raise ForebayError("not-supported", "COUNT(*) takes no EXCEPT")
    else:
        argument = Literal(1, INT)
    if isinstance(argument, Literal) and argument.value is not None:
        return Aggregate("count", _kept(Literal(1, INT), condition) if condition else None, BIGINT)
    return Aggregate("count", _kept(argument, condition), BIGINT)


def _kept(argument: Expr, condition: Expr | None) -> Expr:
    """FILTER as CASE WHEN condition THEN argument END."""
    return argument if condition is None else OPERATORS["CASE"]((condition, argument))


def _result(name: str, function: str, kind: Type) -> Type:
    """Spark's type of the result."""
    if function in ("min", "max"):
        return kind
    if function.startswith("bit_"):
        if not kind.integral:
            raise mismatch(f"{name} takes whole numbers, not {kind}")
        return kind
    if not kind.numeric:
        raise mismatch(f"{name} takes numbers, not {kind}",
                       f"cast it: {name}(CAST(… AS DOUBLE))" if kind.name == "string" else None)
    if function == "sum" and kind.name == "decimal":
        return bounded(kind.precision + 10, kind.scale)
    if function == "avg" and kind.name == "decimal":
        return bounded(kind.precision + 4, kind.scale + 4)
    return BIGINT if function == "sum" and kind.integral else DOUBLE


def _percentile(name: str, node: exp.Expr, read: Reader) -> tuple[Expr, float]:
    """PERCENTILE(x, p) or PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x [DESC])."""
    call, approximate = node.this if isinstance(node, exp.WithinGroup) else node, "APPROX" in name
    counts = (1,) if name in ORDERED else (2, 3) if approximate else (2,)
    if isinstance(node, exp.WithinGroup) != (name in ORDERED) or len(call.expressions) not in counts:
        raise ForebayError("wrong-arguments", f"{name} is incomplete",
                           hint="write PERCENTILE(x, 0.5) or PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)")
    share = _share(call.expressions[1 if len(call.expressions) > 1 else 0])
    if len(call.expressions) == 3:      # how exact Spark's answer has to be: ours is exact
        whole_number(read(call.expressions[2]), f"{name}'s accuracy", 1)
    if not isinstance(node, exp.WithinGroup):
        argument = read(call.expressions[0])
    else:
        ordered = node.expression.expressions
        if len(ordered) != 1:
            raise ForebayError("wrong-arguments", "WITHIN GROUP orders by one expression")
        descending = bool(ordered[0].args.get("desc"))
        if descending and name == "PERCENTILE_DISC":
            raise ForebayError("not-supported", "PERCENTILE_DISC takes an ascending order", hint="leave DESC out")
        argument, share = read(ordered[0].this), 1 - share if descending else share
    if not approximate or argument.type not in (DATE, TIMESTAMP):
        _result(name, "percentile", argument.type)
    if approximate and argument.type.name == "decimal" and argument.type.precision > DIGITS_OF_DOUBLES:
        raise mismatch(f"{name} takes decimals of at most {DIGITS_OF_DOUBLES} digits, not {argument.type}: Spark "
                       "rounds longer ones to doubles", f"write PERCENTILE_DISC({share}) WITHIN GROUP (ORDER BY …)")
    return argument, share


def _share(node: exp.Expr) -> float:
    value = number(str(node.this)).value if isinstance(node, exp.Literal) and not node.args.get("is_string") else None
    if value is None or not 0 <= float(value) <= 1:
        raise ForebayError("wrong-arguments", "a percentile's share must be a constant from 0 to 1",
                           hint="for instance 0.95")
    return float(value)
