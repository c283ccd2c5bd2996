"""Aggregates as users write them: what they take, what they give, which are the same.

Where they may stand is not decided here.
"""
from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from optimizer.errors import ForebayError
from optimizer.expression.arguments import is_bare_null
from optimizer.expression.coercion import bounded, mismatch, number
from optimizer.expression.expr import AggregateRef, Expr, Literal
from optimizer.expression.functions.table import OPERATORS
from optimizer.expression.types import BIGINT, DOUBLE, INT, Type
from optimizer.query.model import Aggregate

AGGREGATES = {
    "COUNT": "count",
    "SUM": "sum",
    "AVG": "avg",
    "MEAN": "avg",
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
    "PERCENTILE_CONT": "percentile"
}
Reader = Callable[[exp.Expr], Expr]


def aggregate(node: exp.Expr, condition: Expr | None, read: Reader, numbers: dict[Aggregate, int]) -> AggregateRef:
    """The aggregate of a call by its number: that of the same one before it, or the next."""
    call = node.this if isinstance(node, exp.WithinGroup) else node
    wanted = _made(call.name.upper(), node, condition, read)
    return AggregateRef(numbers.setdefault(wanted, len(numbers)), wanted.type)


def _made(name: str, node: exp.Expr, condition: Expr | None, read: Reader) -> Aggregate:
    function = AGGREGATES[name]
    if function == "percentile":
        argument, parameter = _percentile(name, node, read)
        return Aggregate(function, _kept(argument, condition), DOUBLE, parameter)
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
    return Aggregate(function, _kept(argument, condition), _result(name, function, argument.type))


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
    call = node.this if isinstance(node, exp.WithinGroup) else node
    if isinstance(node, exp.WithinGroup) != (name == "PERCENTILE_CONT") or len(
            call.expressions) != (1 if name == "PERCENTILE_CONT" else 2):
        raise ForebayError("wrong-arguments", f"{name} is incomplete",
                           hint="write PERCENTILE(x, 0.5) or PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)")
    share = _share(call.expressions[-1])
    if not isinstance(node, exp.WithinGroup):
        argument = read(call.expressions[0])
    else:
        ordered = node.expression.expressions
        if len(ordered) != 1:
            raise ForebayError("wrong-arguments", "WITHIN GROUP orders by one expression")
        argument, share = read(ordered[0].this), 1 - share if ordered[0].args.get("desc") else share
    _result(name, "percentile", argument.type)
    return argument, share


def _share(node: exp.Expr) -> float:
    value = number(str(node.this)).value if isinstance(node, exp.Literal) and not node.args.get("is_string") else None
    if value is None or not 0 <= float(value) <= 1:
        raise ForebayError("wrong-arguments", "a percentile's share must be a constant from 0 to 1",
                           hint="for instance 0.95")
    return float(value)
