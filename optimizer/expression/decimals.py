"""Decimal results as Spark has them, and exact division, which DuckDB lacks.

What 38 digits cannot hold is refused, never rounded differently.
"""
from __future__ import annotations

from decimal import Decimal

from optimizer.errors import ForebayError
from optimizer.expression.casting import sql_type
from optimizer.expression.coercion import arithmetic
from optimizer.expression.types import Type, decimal


def supported(operation: str, left: Type, right: Type) -> Type:
    """Spark's result type of decimal arithmetic, where DuckDB's 128 bits can compute it exactly."""
    result = arithmetic(operation, left, right)
    if not _exact(operation, left, right, result):
        raise ForebayError("type-mismatch", f"{operation} of {left} and {right} needs more than 38 digits",
                           hint="cast an operand to fewer digits, or to DOUBLE")
    return result


def _exact(operation: str, left: Type, right: Type, result: Type) -> bool:
    if operation == "divide":
        k = _shift(left, right, result)      # the long division below stays within 38 digits
        return k >= 0 and (left.precision + k <= 38 or right.precision + k <= 38)
    if operation == "mod":
        return right.scale >= left.scale and (left.precision + right.scale - left.scale <= 38
                                              or right.precision < 38) or right.scale < left.scale
    if operation == "multiply":
        return result.scale == left.scale + right.scale or left.precision + right.precision <= 38
    # of operands, which are cast to the result's type before they are added
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return result.scale == max(left.scale, right.scale) and result.precision - result.scale >= whole


def quotient(left: Type, right: Type, result: Type, dividend: str, divisor: str) -> str:
    """Exact division of the unscaled integers, half up.

    DuckDB itself divides decimals as doubles. The list binds each operand once.
    """
    k = 10 ** _shift(left, right, result)
    n, d = unscaled(left, dividend), unscaled(right, divisor)
    if left.precision + _shift(left, right, result) <= 38:
        exact = _rounded(f"(x.n * {_huge(k)})", "x.d")
    else:
        exact = f"((x.n // x.d) * {_huge(k)} + {_rounded(f'((x.n % x.d) * {_huge(k)})', 'x.d')})"
    whole = f"list_transform([{{'n': {n}, 'd': {d}}}], lambda x: {exact})[1]"
    return f"CAST({scaled(whole, result.scale)} AS {sql_type(result, 'duckdb')})"


def remainder(left: Type, right: Type, result: Type, dividend: str, divisor: str) -> str:
    """Exact remainder of the unscaled integers, with the sign of the dividend.

    DuckDB itself computes it in doubles. The list binds each operand once.
    """
    n, d = unscaled(left, dividend), unscaled(right, divisor)
    whole = f"list_transform([{{'n': {n}, 'd': {d}}}], lambda x: {_remaining(left, right)})[1]"
    return f"CAST({scaled(whole, max(left.scale, right.scale))} AS {sql_type(result, 'duckdb')})"


def _remaining(left: Type, right: Type) -> str:
    """x.n % x.d, after the one of fewer places got as many as the other; never more than 38 digits on the way."""
    k = left.scale - right.scale
    if k >= 0 and right.precision + k <= 38:
        return f"(x.n % (x.d * {_huge(10 ** k)}))"
    if k >= 0:      # a divisor that would have more digits is larger than any dividend
        return f"CASE WHEN abs(x.d) >= {_huge(10 ** (38 - k))} THEN x.n ELSE x.n % (x.d * {_huge(10 ** k)}) END"
    if left.precision - k <= 38:
        return f"((x.n * {_huge(10 ** -k)}) % x.d)"
    text, rest, room = "(x.n % x.d)", -k, 38 - right.precision
    while rest:
        text = f"(({text} * {_huge(10 ** min(rest, room))}) % x.d)"
        rest -= min(rest, room)
    return text


def _shift(left: Type, right: Type, result: Type) -> int:
    """By how many digits the dividend's integer is moved to get the quotient's integer."""
    return result.scale + right.scale - left.scale


def _huge(value: int) -> str:
    return f"CAST('{value}' AS HUGEINT)"


def _rounded(n: str, d: str) -> str:
    return (f"({n} // {d} + CASE WHEN abs({n} % {d}) >= abs({d}) - abs({n} % {d}) THEN (CASE WHEN ({n} < 0) = ({d} < "
            "0) THEN 1 ELSE -1 END) ELSE 0 END)")


def unscaled(kind: Type, value: str) -> str:
    """The integer behind a decimal."""
    if kind.scale == 0:
        return f"CAST({value} AS HUGEINT)"
    if kind.precision + kind.scale <= 38:
        wide = f"CAST({value} AS {sql_type(decimal(kind.precision + kind.scale, kind.scale), 'duckdb')})"
        return f"CAST({wide} * CAST('1{'0' * kind.scale}' AS DECIMAL({kind.scale + 1},0)) AS HUGEINT)"
    return f"CAST(replace(CAST({value} AS VARCHAR), '.', '') AS HUGEINT)"


def scaled(whole: str, scale: int) -> str:
    """The decimal behind an integer."""
    number = f"CAST({whole} AS DECIMAL(38,0))"
    return f"{number} * CAST('{Decimal(1).scaleb(-scale):f}' AS DECIMAL({scale},{scale}))" if scale else number
