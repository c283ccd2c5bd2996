"""CAST, TRY_CAST and what is made of them; the SQL of each pair of types stands in optimizer.expression.casting."""
from __future__ import annotations

from optimizer.expression import casting
from optimizer.expression.arguments import is_bare_null
from optimizer.expression.coercion import coerce, mismatch
from optimizer.expression.expr import Call, Expr, Literal
from optimizer.expression.functions.row import Function, Written
from optimizer.expression.types import DATE, STRING, TIMESTAMP, Type


def cast(arg: Expr, to: Type, attempt: bool = False) -> Expr:
    """CAST and TRY_CAST; constants of text to timestamps are read now.

    Any other constant is none any more once it is cast, as in Spark, which counts the digits of 7 in m / 7, but not in
    m / CAST(7 AS INT).
    """
    if is_bare_null(arg):
        return Call("cast", (coerce(arg, to),), to)
    text_to_time = arg.type == STRING and to in (DATE, TIMESTAMP)
    if isinstance(arg, Literal) and text_to_time and not attempt:
        return coerce(arg, to)
    if attempt and arg.type == STRING and to == TIMESTAMP:
        raise mismatch("TRY_CAST of a text to timestamp is not offered: some texts are read by Spark only",
                       "TRY_TO_TIMESTAMP(text, 'yyyy-MM-dd HH:mm:ss') says which form is meant")
    if not casting.castable(arg.type, to):
        raise mismatch(f"a cast from {arg.type} to {to} is not offered")
    plain = arg.type == to and not isinstance(arg, Literal)
    return arg if plain else Call("try_cast" if attempt else "cast", (arg,), to)


ROWS: tuple[Written, ...] = (
    Function(name="cast", duckdb=casting.duckdb_cast, spark=casting.spark_cast, fails=casting.cast_fails,
             attempt=casting.spark_quiet_cast, quiet=casting.cast_is_null),
    Function(name="try_cast", duckdb=casting.duckdb_try_cast, spark=casting.spark_try_cast,
             fails=casting.try_cast_fails, attempt=casting.spark_quiet_cast, quiet=casting.try_cast_is_null),
)
