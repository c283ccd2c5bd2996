"""One scalar expression of a user's SQL as DuckDB SQL that means what Spark SQL (ANSI, UTC) means; written apart from
the optimizer and never importing it.

A failing expression raises in DuckDB too, by a cast that cannot succeed: unlike DuckDB's error(), TRY accepts it.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from sqlglot import exp

from jobs.verify.functions import Recur, function
from jobs.verify.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    INTEGERS,
    NULL,
    SMALLINT,
    TIMESTAMPTZ,
    TINYINT,
    VARCHAR,
    Kind,
    Typed,
    as_decimal,
    bounded,
    cast,
    converted,
    in_calendar,
    kind_of,
    quotient,
    remainder,
    unscaled,
    widest,
)
from optimizer.errors import failed

Leaf = Callable[[exp.Expr], Typed | None]
NUMBER = re.compile(r"(-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(L|S|Y|D|F|BD|)", re.I)
LETTERS = {"L": BIGINT, "S": SMALLINT, "Y": TINYINT, "D": DOUBLE, "F": FLOAT}


def translate(node: exp.Expr, leaf: Leaf) -> Typed:
    """`leaf` gives the names of columns and, above an aggregation, of groups and aggregates."""
    named = leaf(node)
    if named is not None:
        return named
    rule = next((RULES[c] for c in type(node).__mro__ if c in RULES), None)
    return (rule or function)(node, lambda child: translate(child, leaf))


def _literal(node: Any, _: Recur) -> Typed:
    """A constant; beside a decimal a whole one has the digits it is written with, but TINYINT's."""
    if node.is_string:
        return Typed(node.sql("duckdb"), VARCHAR)
    match = NUMBER.fullmatch(node.this)
    if not match:
        raise failed("cannot-verify", f"{node.this} is no number")
    text, letter = match[1], match[2].upper()
    kind = LETTERS.get(letter) or (DOUBLE if "e" in text.lower() and not letter else None)
    if kind is None and not letter and re.fullmatch(r"-?\d+", text) and -2**63 <= int(text) < 2**63:
        kind = INTEGER if -2**31 <= int(text) < 2**31 else BIGINT
    if kind is not None:
        return Typed(f"CAST('{text}' AS {kind})", kind,
                     digits=len(str(abs(int(text)))) if kind in (SMALLINT, INTEGER, BIGINT) else 0)
    value = Decimal(text)
    figures, exponent = value.as_tuple()[1:]
    places = max(0, -int(exponent))
    kind = Kind("DECIMAL", max(len("".join(map(str, figures)).lstrip("0")) + max(0, int(exponent)), places, 1), places)
    return Typed(f"CAST('{value:f}' AS {kind})", kind)


def _arithmetic(node: Any, recur: Recur) -> Typed:
    left, right = _same_null(recur(node.this), recur(node.expression))
    if "INTERVAL" in (left.kind.name, right.kind.name):
        kind = DATE if DATE in (left.kind, right.kind) else TIMESTAMPTZ
        return Typed(in_calendar(f"CAST({left.sql} {OPERATORS[type(node)]} {right.sql} AS {kind})", kind), kind, True)
    kind = widest([left, right])
    if kind.name == "DECIMAL":
        return _decimal_arithmetic(node, left, right)
    return _guarded(node, cast(left, kind), cast(right, kind), kind)


def _same_null(left: Typed, right: Typed) -> tuple[Typed, Typed]:
    """NULL as a word has the type of what stands beside it."""
    def typed(value: Typed, other: Typed) -> Typed:
        return Typed(f"CAST(NULL AS {other.kind})", other.kind) if value.kind == NULL != other.kind else value

    return typed(left, right), typed(right, left)


def _decimal_arithmetic(node: Any, left: Typed, right: Typed) -> Typed:
    """Result types of Spark's DecimalPrecision (spark.sql.decimalOperations.allowPrecisionLoss)."""
    a, b = as_decimal(left), as_decimal(right)
    whole, scale = max(a.precision - a.scale, b.precision - b.scale), max(a.scale, b.scale)
    left, right = cast(left, a), cast(right, b)
    if isinstance(node, exp.Mod):
        result = bounded(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)
        return Typed(_unless_zero(left, right, remainder(left, right, result), result), result, True)
    if isinstance(node, exp.Mul):
        result = bounded(a.precision + b.precision + 1, a.scale + b.scale)
        left = cast(left, Kind("DECIMAL", min(38, a.precision + b.precision), a.scale))
    else:
        result = bounded(whole + scale + 1, scale)
        left, right = cast(left, result), cast(right, result)
    return cast(_guarded(node, left, right, Kind("DECIMAL")), result)


def _guarded(node: Any, left: Typed, right: Typed, kind: Kind) -> Typed:
    """By functions where DuckDB would move a constant over to the other side of a comparison, and lose the overflow."""
    operator = OPERATORS[type(node)]
    if operator in ("//", "%", "/"):
        smallest = right.sql
        if operator == "%" and kind.name in INTEGERS:
            smallest = f"CASE WHEN {right.sql} = -1 THEN 1 ELSE {right.sql} END"
        return Typed(_unless_zero(left, right, f"({left.sql} {operator} {smallest})", kind), kind, True)
    name = {"+": "add", "-": "subtract", "*": "multiply"}[operator]
    plain = f"{name}({left.sql}, {right.sql})" if kind.name in INTEGERS else f"({left.sql} {operator} {right.sql})"
    return Typed(f"(CASE WHEN ({left.sql}) IS NOT NULL THEN {plain} END)" if right.fallible else plain, kind, True)


def _unless_zero(left: Typed, right: Typed, sql: str, kind: Kind) -> str:
    """NULL / 0 is NULL in Spark; x / 0 raises. The divisor is evaluated first: where it is NULL the dividend is not."""
    target = kind if kind != Kind("DECIMAL") else "INTEGER"
    raising = f"CAST(CASE WHEN {right.sql} = 0 THEN 'division by zero' END AS {target})"
    zero = f"WHEN ({left.sql}) IS NOT NULL AND {right.sql} = 0 THEN {raising}"
    return f"(CASE WHEN ({right.sql}) IS NULL THEN NULL {zero} WHEN {right.sql} <> 0 THEN {sql} END)"


def _divide(node: Any, recur: Recur) -> Typed:
    left, right = recur(node.this), recur(node.expression)
    left, right = (cast(left, DOUBLE) if left.kind == NULL else left), _same_null(left, right)[1]
    widest([left, right])      # refuses text beside numbers
    names = {left.kind.name, right.kind.name}
    if "DECIMAL" not in names or names & {"FLOAT", "DOUBLE"}:
        return _guarded(node, cast(left, DOUBLE), cast(right, DOUBLE), DOUBLE)
    a, b = as_decimal(left), as_decimal(right)
    scale = max(6, a.scale + b.precision + 1)
    result = bounded(a.precision - a.scale + b.scale + scale, scale)
    left, right = cast(left, a), cast(right, b)
    return Typed(
        _unless_zero(left, right, quotient(left, unscaled(right), result.scale + b.scale, result, b.precision), result),
        result, True)


def _whole_division(node: Any, recur: Recur) -> Typed:
    left, right = cast(recur(node.this), BIGINT), cast(recur(node.expression), BIGINT)
    return _guarded(node, left, right, BIGINT)


def _compare(node: Any, recur: Recur) -> Typed:
    left, right = recur(node.this), recur(node.expression)
    return replace(_compared(OPERATORS[type(node)], left, right), fallible=left.fallible or right.fallible)


def _compared(operator: str, left: Typed, right: Typed) -> Typed:
    """Both as their common type; what stands to the right of a NULL is not evaluated, unless NULLs are equal."""
    left, right = _common([left, right])
    plain = f"({left.sql} {operator} {right.sql})"
    guarded = right.fallible and operator != OPERATORS[exp.NullSafeEQ]
    return Typed(f"(CASE WHEN ({left.sql}) IS NOT NULL THEN {plain} END)" if guarded else plain, BOOLEAN)


def _common(values: list[Typed]) -> list[Typed]:
    if "DECIMAL" in {v.kind.name for v in values} and all(v.kind.name in ("DECIMAL", *INTEGERS) for v in values):
        values = [cast(v, as_decimal(v)) for v in values]
    kind = widest(values)
    return [cast(v, kind) if v.kind != kind != NULL else v for v in values]


def _connective(node: Any, recur: Recur) -> Typed:
    """AND and OR as CASE where the right side may raise: the left one decides first, as in Spark."""
    left, right = recur(node.this), recur(node.expression)
    word = "AND" if isinstance(node, exp.And) else "OR"
    if not right.fallible:
        return Typed(f"({left.sql} {word} {right.sql})", BOOLEAN, left.fallible)
    stop = "FALSE" if word == "AND" else "TRUE"
    return Typed(
        f"(CASE WHEN ({left.sql}) IS NOT DISTINCT FROM {stop} THEN {stop} ELSE ({left.sql} {word} {right.sql}) END)",
        BOOLEAN, True)


def _case(node: Any, recur: Recur) -> Typed:
    branches = node.args.get("ifs") or [node]
    last = node.args.get("default") if isinstance(node, exp.Case) else node.args.get("false")
    tests = [
        exp.EQ(this=node.this.copy(), expression=b.this.copy()) if isinstance(node, exp.Case) and node.this else b.this
        for b in branches
    ]
    conditions, values = [recur(t) for t in tests
                          ], [recur(b.args["true"]) for b in branches] + ([recur(last)] if last else [])
    kind = widest(values)
    whens = " ".join(f"WHEN {c.sql} THEN {_cast_sql(v, kind)}" for c, v in zip(conditions, values))
    otherwise = f" ELSE {_cast_sql(values[-1], kind)}" if last else ""
    return Typed(f"(CASE {whens}{otherwise} END)", kind, any(v.fallible for v in conditions + values))


def _cast_sql(value: Typed, kind: Kind) -> str:
    return value.sql if kind == NULL else cast(value, kind).sql


def _choice(node: Any, recur: Recur) -> Typed:
    """COALESCE, LEAST, GREATEST."""
    values = [recur(v) for v in [node.this, *node.expressions]]
    kind = widest(values)
    texts = [_cast_sql(v, kind) for v in values]
    text = f"{type(node).__name__.upper()}({', '.join(texts)})"
    if kind.name in ("FLOAT", "DOUBLE") and not isinstance(node, exp.Coalesce):      # of both zeros the first
        text = f"(CASE WHEN {text} = 0 THEN list_filter([{', '.join(texts)}], lambda x: x = 0)[1] ELSE {text} END)"
    return Typed(text, kind, any(v.fallible for v in values))


def _null_if(node: Any, recur: Recur) -> Typed:
    left, right = recur(node.this), recur(node.expression)
    return Typed(f"(CASE WHEN {_compared('=', left, right).sql} THEN NULL ELSE {left.sql} END)", left.kind,
                 left.fallible or right.fallible)


def _cast(node: Any, recur: Recur) -> Typed:
    value, kind = recur(node.this), kind_of(node.to.sql("spark"))
    attempt = isinstance(node, exp.TryCast)
    if value.kind == NULL:
        return Typed(f"CAST(NULL AS {kind})", kind)
    return Typed(converted("TRY_CAST" if attempt else "CAST", value, kind), kind, not attempt or value.fallible)


def _in(node: Any, recur: Recur) -> Typed:
    subject, *values = _common([recur(v) for v in (node.this, *node.expressions)])
    constants = all(isinstance(v.unnest(), (exp.Literal, exp.Null, exp.Boolean)) for v in node.expressions)
    if not constants:      # one after the other, as Spark does
        tests = [_compared("=", subject, v) for v in values]
        text = tests[-1].sql
        for test in reversed(tests[:-1]):
            text = f"(CASE WHEN ({test.sql}) IS NOT DISTINCT FROM TRUE THEN TRUE ELSE ({test.sql} OR {text}) END)"
        return Typed(text, BOOLEAN, subject.fallible or any(v.fallible for v in values))
    return Typed(f"({subject.sql} IN ({', '.join(v.sql for v in values)}))", BOOLEAN, subject.fallible)


def _between(node: Any, recur: Recur) -> Typed:
    low = exp.GTE(this=node.this.copy(), expression=node.args["low"])
    return _connective(exp.And(this=low, expression=exp.LTE(this=node.this.copy(), expression=node.args["high"])),
                       recur)


def _prefix(node: Any, recur: Recur) -> Typed:
    value = recur(node.this)
    if value.kind == NULL:
        return Typed("CAST(NULL AS DOUBLE)", DOUBLE)
    integral = value.kind.name in INTEGERS
    sql = f"subtract(CAST(0 AS {value.kind}), {value.sql})" if integral else f"(-{value.sql})"
    return replace(value, sql=sql, fallible=integral or value.fallible, digits=0)


def _is(node: Any, recur: Recur) -> Typed:
    value = recur(node.this)
    return Typed(f"({value.sql} IS {node.expression.sql('duckdb')})", BOOLEAN, value.fallible)


def _interval(node: Any, _: Recur) -> Typed:
    unit = node.args.get("unit")
    return Typed(f"INTERVAL '{node.this.this} {unit.sql() if unit else ''}'", Kind("INTERVAL"))


def _keep(node: Any, recur: Recur) -> Typed:
    return recur(node.this)


OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Mod: "%", exp.Div: "/", exp.IntDiv: "//",
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM"}
RULES: dict[type, Callable[[Any, Recur], Typed]] = {
    exp.Literal: _literal,
    exp.Boolean: lambda n, _: Typed(n.sql("duckdb"), BOOLEAN),
    exp.Null: lambda n, _: Typed("NULL", NULL),
    exp.Div: _divide,
    exp.IntDiv: _whole_division,
    exp.And: _connective,
    exp.Or: _connective,
    exp.Case: _case,
    exp.If: _case,
    exp.Coalesce: _choice,
    exp.Least: _choice,
    exp.Greatest: _choice,
    exp.Nullif: _null_if,
    exp.TryCast: _cast,
    exp.Cast: _cast,
    exp.In: _in,
    exp.Between: _between,
    exp.Neg: _prefix,
    exp.Not: lambda node, recur: replace(recur(node.this), sql=f"(NOT {recur(node.this).sql})", kind=BOOLEAN),
    exp.Is: _is,
    exp.Interval: _interval,
    exp.Paren: _keep,
    exp.Alias: _keep,
    exp.Ordered: _keep,
    **{
        c: _arithmetic for c in (exp.Add, exp.Sub, exp.Mul, exp.Mod)
    },
    **{
        c: _compare for c in (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)
    }
}
