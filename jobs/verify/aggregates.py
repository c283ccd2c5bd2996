"""One aggregate of a user's SQL over joined rows, as DuckDB SQL of Spark's type and meaning, with the Σ|x| by which a
double's error is judged.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp

from jobs.verify.scalar import Leaf, translate
from jobs.verify.types import BIGINT, DOUBLE, INTEGERS, Kind, Typed, cast, quotient

STATISTICS: dict[type[exp.Expr], str] = {
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop"
}
AGGREGATES: tuple[type[Any], ...] = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median, exp.Quantile,
                                     exp.PercentileCont, exp.WithinGroup, exp.Filter, *STATISTICS)


def aggregate(node: Any, leaf: Leaf) -> tuple[Typed, str]:
    """Its value, and Σ|x| (empty where the value is exact)."""
    keep = None
    if isinstance(node, exp.Filter):
        keep, node = translate(node.expression.this, leaf), node.this
    if isinstance(node, exp.WithinGroup):
        order = node.expression.expressions[0]
        share = exp.Literal.number(1 - float(node.this.this.this)) if order.args.get("desc") else node.this.this
        node = exp.Quantile(this=order.this, quantile=share)
    inner = node.this
    if isinstance(node, exp.Count) and (isinstance(inner, exp.Star)
                                        or isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)):
        return Typed(f"count({_when(keep, '1')})", BIGINT, keep is not None and keep.fallible), ""
    distinct = isinstance(inner, exp.Distinct)
    value = translate(inner.expressions[0] if distinct else inner, leaf)
    result, magnitude = _function(node, Typed(_when(keep, value.sql), value.kind), "DISTINCT " if distinct else "")
    return replace(result, fallible=value.fallible or keep is not None and keep.fallible), magnitude


def _when(keep: Typed | None, sql: str) -> str:
    return f"CASE WHEN {keep.sql} THEN {sql} END" if keep else sql


def _function(node: Any, value: Typed, distinct: str) -> tuple[Typed, str]:
    double = cast(value, DOUBLE).sql
    if isinstance(node, exp.Count):
        return Typed(f"count({distinct}{value.sql})", BIGINT), ""
    if isinstance(node, (exp.Min, exp.Max)):
        return Typed(f"{type(node).__name__.lower()}({value.sql})", value.kind), ""
    if isinstance(node, (exp.Sum, exp.Avg)) and value.kind.name == "DECIMAL":
        return _decimal_aggregate(node, value), ""
    if isinstance(node, exp.Sum):
        kind = BIGINT if value.kind.name in INTEGERS else DOUBLE
        return Typed(f"CAST(sum({value.sql}) AS {kind})", kind), f"sum(abs({double}))" if kind == DOUBLE else ""
    if isinstance(node, exp.Avg):
        return Typed(f"avg({double})", DOUBLE), f"avg(abs({double}))"
    if isinstance(node, (exp.Median, exp.Quantile)):
        return Typed(
            f"quantile_cont({double}, {node.args['quantile'].sql() if isinstance(node, exp.Quantile) else 0.5})",
            DOUBLE), f"max(abs({double}))"
    return _statistic(STATISTICS[type(node)], double)


def _decimal_aggregate(node: exp.Expr, value: Typed) -> Typed:
    """Spark: SUM widens by 10 digits; AVG by 4 digits and 4 places, rounded half up."""
    p, s = value.kind.precision, value.kind.scale
    total = Typed(f"sum({value.sql})", Kind("DECIMAL", 38, s))
    if isinstance(node, exp.Sum):
        return cast(total, Kind("DECIMAL", min(38, p + 10), s))
    kind = Kind("DECIMAL", min(38, p + 4), min(38, s + 4))
    return Typed(quotient(total, f"CAST(nullif(count({value.sql}), 0) AS HUGEINT)", kind.scale, kind), kind)


def _statistic(name: str, double: str) -> tuple[Typed, str]:
    """A root is as good as what it is the root of: its tolerance is the variance's, divided by twice the root (10^4.5
    when that is 0).
    """
    square = f"max({double} * {double})"
    root = f"least({square} / nullif({name}({double}), 0), 31623 * sqrt({square}))"
    least, finite = 2 if name.endswith("samp") else 1, f"count(*) FILTER (WHERE isfinite({double}))"
    beyond = f"CAST(CASE WHEN isinf({name}({double})) THEN 'squares beyond doubles' END AS DOUBLE)"
    value = f"CASE WHEN isinf({name}({double})) THEN {beyond} ELSE {name}({double}) END"
    sql = (f"(CASE WHEN count({double}) < {least} THEN NULL WHEN {finite} < count({double}) THEN CAST('nan' AS DOUBLE) "
           f"ELSE {value} END)")
    return Typed(sql, DOUBLE), root if name.startswith("stddev") else square
