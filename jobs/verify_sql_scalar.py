"""One scalar expression of a user's SQL as DuckDB SQL that means what Spark SQL (ANSI, UTC) means; written apart from the optimizer and never importing it.

A failing expression raises in DuckDB too, by a cast that cannot succeed: unlike DuckDB's error(), TRY accepts it.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from sqlglot import exp

from jobs.verify_sql_functions import Recur, function
from jobs.verify_sql_types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    INTEGERS,
    NULL,
    TIMESTAMPTZ,
    VARCHAR,
    Kind,
    Typed,
    as_decimal,
    bounded,
    cast,
    kind_of,
    quotient,
    unscaled,
    widest,
)

Leaf = Callable[[exp.Expr], Typed | None]


def translate(node: exp.Expr, leaf: Leaf) -> Typed:
    """`leaf` gives what columns (and, above an aggregation, groups and aggregates) are called."""
    found = leaf(node)
    if found is not None:
        return found
    rule = next((RULES[c] for c in type(node).__mro__ if c in RULES), None)
    return (rule or function)(node, lambda child: translate(child, leaf))


def _literal(node: Any, _: Recur) -> Typed:
    if node.is_string:
        return Typed(node.sql("duckdb"), VARCHAR)
    if "e" in node.this.lower():
        return Typed(f"CAST('{node.this}' AS DOUBLE)", DOUBLE)
    sign, digits, exponent = Decimal(node.this).as_tuple()
    places = -int(exponent)
    if places == 0 and "." not in node.this and abs(int(node.this)) < 2**63:
        kind = INTEGER if int(node.this) < 2**31 else BIGINT
        return Typed(f"CAST({node.this} AS {kind})", kind, digits=len(digits))
    kind = Kind("DECIMAL", max(len(digits), places), places)
    return Typed(f"CAST('{node.this}' AS {kind})", kind)


def _arithmetic(node: Any, recur: Recur) -> Typed:
    left, right = recur(node.this), recur(node.expression)
    if left.kind.name in ("TIMESTAMPTZ", "DATE") or right.kind.name == "TIMESTAMPTZ":
        return Typed(f"({left.sql} {OPERATORS[type(node)]} {right.sql})", TIMESTAMPTZ, True)
    kind = widest([left, right])
    if kind.name == "DECIMAL":
        return _decimal_arithmetic(node, left, right)
    return _guarded(node, cast(left, kind), cast(right, kind), f"{OPERATORS[type(node)]}", kind)


def _decimal_arithmetic(node: Any, left: Typed, right: Typed) -> Typed:
    """Result types of Spark's DecimalPrecision (spark.sql.decimalOperations.allowPrecisionLoss)."""
    a, b = as_decimal(left), as_decimal(right)
    whole, scale = max(a.precision - a.scale, b.precision - b.scale), max(a.scale, b.scale)
    if isinstance(node, exp.Mul):
        result, left, right = bounded(a.precision + b.precision + 1, a.scale + b.scale), cast(left, a), cast(right, b)
    else:
        result = bounded(whole + scale + 1, scale)
        left, right = cast(left, result), cast(right, result)
    if isinstance(node, exp.Mod):
        result = bounded(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)
    return cast(_guarded(node, left, right, OPERATORS[type(node)], Kind("DECIMAL")), result)


def _guarded(node: Any, left: Typed, right: Typed, operator: str, kind: Kind) -> Typed:
    plain = f"({left.sql} {operator} {right.sql})"
    if operator not in ("/", "//", "%"):
        return Typed(plain, kind, True)
    return Typed(_unless_zero(left.sql, right.sql, plain, kind), kind, True)


def _unless_zero(left: str, right: str, sql: str, kind: Kind) -> str:
    """NULL / 0 is NULL in Spark; x / 0 raises."""
    target = kind if kind != Kind("DECIMAL") else "INTEGER"
    raising = f"CAST(CASE WHEN {right} = 0 THEN 'division by zero' END AS {target})"
    return f"(CASE WHEN {left} IS NOT NULL AND {right} = 0 THEN {raising} WHEN {right} <> 0 THEN {sql} END)"


def _divide(node: Any, recur: Recur) -> Typed:
    left, right = recur(node.this), recur(node.expression)
    names = {left.kind.name, right.kind.name}
    if "DECIMAL" not in names or names & {"FLOAT", "DOUBLE"}:
        return _guarded(node, cast(left, DOUBLE), cast(right, DOUBLE), "/", DOUBLE)
    a, b = as_decimal(left), as_decimal(right)
    scale = max(6, a.scale + b.precision + 1)
    result = bounded(a.precision - a.scale + b.scale + scale, scale)
    left, right = cast(left, a), cast(right, b)
    return Typed(_unless_zero(left.sql, right.sql, quotient(left, unscaled(right), result.scale + b.scale, result), result), result, True)


def _whole_division(node: Any, recur: Recur) -> Typed:
    left, right = cast(recur(node.this), BIGINT), cast(recur(node.expression), BIGINT)
    return _guarded(node, left, right, "//", BIGINT)


def _compare(node: Any, recur: Recur) -> Typed:
    left, right = recur(node.this), recur(node.expression)
    kind = widest([left, right])
    mixed = {left.kind.name, right.kind.name} & {"TIMESTAMPTZ", "DATE", "DOUBLE"} and left.kind != right.kind
    left, right = (cast(left, kind), cast(right, kind)) if mixed and kind != NULL else (left, right)
    return Typed(f"({left.sql} {OPERATORS[type(node)]} {right.sql})", BOOLEAN, left.fallible or right.fallible)


def _connective(node: Any, recur: Recur) -> Typed:
    """AND and OR as CASE where the right side may raise: the left one decides first, as in Spark."""
    left, right = recur(node.this), recur(node.expression)
    word = "AND" if isinstance(node, exp.And) else "OR"
    if not right.fallible:
        return Typed(f"({left.sql} {word} {right.sql})", BOOLEAN, left.fallible)
    stop = "FALSE" if word == "AND" else "TRUE"
    return Typed(f"(CASE WHEN ({left.sql}) IS NOT DISTINCT FROM {stop} THEN {stop} ELSE ({left.sql} {word} {right.sql}) END)", BOOLEAN, True)


def _case(node: Any, recur: Recur) -> Typed:
    branches = node.args.get("ifs") or [node]
    last = node.args.get("default") if isinstance(node, exp.Case) else node.args.get("false")
    tests = [exp.EQ(this=node.this.copy(), expression=b.this.copy()) if isinstance(node, exp.Case) and node.this else b.this for b in branches]
    conditions, values = [recur(t) for t in tests], [recur(b.args["true"]) for b in branches] + ([recur(last)] if last else [])
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
    return Typed(f"{type(node).__name__.upper()}({', '.join(_cast_sql(v, kind) for v in values)})", kind, any(v.fallible for v in values))


def _null_if(node: Any, recur: Recur) -> Typed:
    left, same = recur(node.this), _compare(exp.EQ(this=node.this, expression=node.expression), recur)
    return Typed(f"(CASE WHEN {same.sql} THEN NULL ELSE {left.sql} END)", left.kind, True)


def _cast(node: Any, recur: Recur) -> Typed:
    value, kind = recur(node.this), kind_of(node.to.sql("spark"))
    source = value.kind.name
    if kind.name in INTEGERS and source in ("DOUBLE", "FLOAT", "DECIMAL"):
        value = replace(value, sql=f"trunc({value.sql})")
    if source == "VARCHAR":
        value = replace(value, sql=f"trim({value.sql})")
    if source == "TIMESTAMPTZ" and kind == VARCHAR:
        value = replace(value, sql=f"CAST({value.sql} AS TIMESTAMP)")      # without DuckDB's "+00"
    word = "TRY_CAST" if isinstance(node, exp.TryCast) else "CAST"
    return Typed(f"{word}({value.sql} AS {kind})", kind, word == "CAST" or value.fallible)


def _in(node: Any, recur: Recur) -> Typed:
    subject, values = recur(node.this), [recur(v) for v in node.expressions]
    return Typed(f"({subject.sql} IN ({', '.join(v.sql for v in values)}))", BOOLEAN, subject.fallible or any(v.fallible for v in values))


def _between(node: Any, recur: Recur) -> Typed:
    low = exp.GTE(this=node.this.copy(), expression=node.args["low"])
    return _connective(exp.And(this=low, expression=exp.LTE(this=node.this.copy(), expression=node.args["high"])), recur)


def _prefix(node: Any, recur: Recur) -> Typed:
    value = recur(node.this)
    return replace(value, sql=f"(-{value.sql})", fallible=value.kind.name in INTEGERS and not value.digits)


def _not(node: Any, recur: Recur) -> Typed:
    return replace(recur(node.this), sql=f"(NOT {recur(node.this).sql})", kind=BOOLEAN)


def _is(node: Any, recur: Recur) -> Typed:
    value = recur(node.this)
    return Typed(f"({value.sql} IS {node.expression.sql('duckdb')})", BOOLEAN, value.fallible)


def _interval(node: Any, _: Recur) -> Typed:
    return Typed(f"INTERVAL '{node.this.this}' {node.args['unit'].sql()}", Kind("INTERVAL"))


def _keep(node: Any, recur: Recur) -> Typed:
    return recur(node.this)


OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Mod: "%", exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM"}
RULES: dict[type, Callable[[Any, Recur], Typed]] = {
    exp.Literal: _literal, exp.Boolean: lambda n, _: Typed(n.sql("duckdb"), BOOLEAN), exp.Null: lambda n, _: Typed("NULL", NULL),
    exp.Div: _divide, exp.IntDiv: _whole_division, exp.And: _connective, exp.Or: _connective, exp.Case: _case, exp.If: _case, exp.Coalesce: _choice,
    exp.Least: _choice, exp.Greatest: _choice, exp.Nullif: _null_if, exp.TryCast: _cast, exp.Cast: _cast, exp.In: _in, exp.Between: _between, exp.Neg: _prefix,
    exp.Not: _not, exp.Is: _is, exp.Interval: _interval, exp.Paren: _keep, exp.Alias: _keep, exp.Ordered: _keep,
    **{c: _arithmetic for c in (exp.Add, exp.Sub, exp.Mul, exp.Mod)},
    **{c: _compare for c in (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)}}
