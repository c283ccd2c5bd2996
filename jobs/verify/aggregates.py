"""One aggregate of a user's SQL over joined rows, as DuckDB SQL of Spark's type and meaning, with the Σ|x| by which a
double's error is judged.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp

from jobs.verify.functions import without_rule
from jobs.verify.scalar import Leaf, translate
from jobs.verify.types import BIGINT, DOUBLE, INTEGERS, VARCHAR, Kind, Typed, cast, quotient

STATISTICS: dict[type[exp.Expr], str] = {
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop"
}
PLAIN: dict[type[exp.Expr], str] = {exp.LogicalAnd: "bool_and", exp.LogicalOr: "bool_or", exp.BitwiseAndAgg: "bit_and",
                                    exp.BitwiseOrAgg: "bit_or", exp.BitwiseXorAgg: "bit_xor"}
PAIRS: dict[type[exp.Expr], str] = {
    exp.Corr: "corr", exp.CovarPop: "covar_pop", exp.CovarSamp: "covar_samp", exp.RegrSxx: "regr_sxx",
    exp.RegrSxy: "regr_sxy", exp.RegrSyy: "regr_syy", exp.RegrSlope: "regr_slope",
    exp.RegrIntercept: "regr_intercept", exp.RegrR2: "regr_r2", exp.RegrCount: "regr_count"}
AGGREGATES: tuple[type[Any], ...] = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median, exp.Quantile,
                                     exp.PercentileCont, exp.PercentileDisc, exp.ApproxDistinct, exp.ApproxQuantile,
                                     exp.CountIf, exp.WithinGroup, exp.Filter, *STATISTICS, *PLAIN, *PAIRS,
                                     exp.RegrAvgx, exp.RegrAvgy)


def aggregate(node: Any, leaf: Leaf) -> tuple[Typed, str]:
    """Its value, and Σ|x| (empty where the value is exact)."""
    keep = None
    if isinstance(node, exp.Filter):
        keep, node = translate(node.expression.this, leaf), node.this
    if isinstance(node, exp.WithinGroup):
        if node.this.name.upper() in ("LISTAGG", "STRING_AGG"):
            return _listed(node, leaf, keep), ""
        order = node.expression.expressions[0]
        share = exp.Literal.number(1 - float(node.this.this.this)) if order.args.get("desc") else node.this.this
        discrete = isinstance(node.this, exp.PercentileDisc)
        node = (exp.ApproxQuantile if discrete else exp.Quantile)(this=order.this, quantile=share)
    elif isinstance(node, exp.ApproxQuantile):
        node = node.copy()
        node.set("approximate", True)
    inner = node.this
    if isinstance(node, exp.Count) and (isinstance(inner, exp.Star)
                                        or isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)):
        return Typed(f"count({_when(keep, '1')})", BIGINT, keep is not None and keep.fallible), ""
    if isinstance(node, (exp.RegrAvgx, exp.RegrAvgy)):
        return _of_one_side(node, translate(inner, leaf), translate(node.expression, leaf), keep)
    if type(node) in PAIRS:
        return _of_pairs(PAIRS[type(node)], translate(inner, leaf), translate(node.expression, leaf), keep)
    distinct = isinstance(inner, exp.Distinct)
    value = translate(inner.expressions[0] if distinct else inner, leaf)
    result, magnitude = _function(node, Typed(_when(keep, value.sql), value.kind), "DISTINCT " if distinct else "")
    return replace(result, fallible=value.fallible or keep is not None and keep.fallible), magnitude


def _of_pairs(name: str, y: Typed, x: Typed, keep: Typed | None) -> tuple[Typed, str]:
    """Of pairs of doubles; what their error is judged by follows from the largest of each and the spread of x."""
    fallible = y.fallible or x.fallible or keep is not None and keep.fallible
    left, right = (_when(keep, cast(v, DOUBLE).sql) for v in (y, x))
    pair = f"({left} + {right})"
    if name == "regr_count":
        return Typed(f"count({pair})", BIGINT, fallible), ""
    call, most = f"{name}({left}, {right})", f"(1 + max(abs({left}))) * (1 + max(abs({right})))"
    beyond = "CAST(CASE WHEN TRUE THEN 'beyond doubles' END AS DOUBLE)"
    flat = {"corr": f"WHEN regr_sxx({left}, {right}) = 0 OR regr_syy({left}, {right}) = 0 THEN {beyond}",
            "regr_slope": f"WHEN regr_sxx({left}, {right}) = 0 THEN NULL",
            "regr_intercept": f"WHEN isinf(regr_sxx({left}, {right})) OR isnan(regr_sxx({left}, {right})) THEN "
                              f"{beyond}"}.get(name, "")
    sql = (f"(CASE WHEN count({pair}) < {2 if name in ('corr', 'covar_samp') else 1} THEN NULL "
           f"WHEN count(CASE WHEN isfinite({left}) AND isfinite({right}) THEN 1 END) < count({pair}) "
           f"THEN CAST('nan' AS DOUBLE) {flat} WHEN isinf({call}) OR isnan({call}) THEN {beyond} ELSE {call} END)")
    spread = f"{most} / nullif(regr_sxx({left}, {right}), 0) * count({pair})"
    magnitude = {"corr": "1.0", "regr_r2": "1.0", "regr_slope": spread, "regr_intercept": f"{most} * {spread}"}
    return Typed(sql, DOUBLE, fallible), magnitude.get(name, f"{most} * count({pair})")


def _listed(node: Any, leaf: Leaf, keep: Typed | None) -> Typed:
    """Strings one after another, in their own order, with a constant between them."""
    values = [translate(v, leaf) for v in node.this.expressions]
    if values[0].kind != VARCHAR or translate(node.expression.expressions[0].this, leaf).sql != values[0].sql:
        raise without_rule(node)
    text = _when(keep, values[0].sql)
    separator = values[1].sql if len(values) > 1 else "''"
    return Typed(f"string_agg({text}, {separator} ORDER BY {text})", VARCHAR, any(v.fallible for v in values))


def _of_one_side(node: Any, y: Typed, x: Typed, keep: Typed | None) -> tuple[Typed, str]:
    """The mean of one over the pairs in which both are there."""
    value = x if isinstance(node, exp.RegrAvgx) else y
    pair = f"CASE WHEN ({y.sql}) IS NOT NULL AND ({x.sql}) IS NOT NULL THEN {value.sql} END"
    result, magnitude = _function(exp.Avg(), Typed(_when(keep, pair), value.kind), "")
    return replace(result, fallible=any(v.fallible for v in (y, x, *([keep] if keep else [])))), magnitude


def _when(keep: Typed | None, sql: str) -> str:
    return f"CASE WHEN {keep.sql} THEN {sql} END" if keep else sql


def _function(node: Any, value: Typed, distinct: str) -> tuple[Typed, str]:
    double = cast(value, DOUBLE).sql
    if isinstance(node, exp.Count):
        return Typed(f"count({distinct}{value.sql})", BIGINT), ""
    if isinstance(node, exp.CountIf):
        return Typed(f"count(CASE WHEN {value.sql} THEN 1 END)", BIGINT), ""
    if isinstance(node, exp.ApproxDistinct):      # exactly, which is within what Spark promises
        return Typed(f"count(DISTINCT {value.sql})", BIGINT), ""
    if isinstance(node, exp.ApproxQuantile):
        kind = value.kind if node.args.get("approximate") else DOUBLE
        return Typed(f"CAST(quantile_disc({value.sql}, {node.args['quantile'].sql()}) AS {kind})", kind), ""
    if type(node) in PLAIN:
        return Typed(f"{PLAIN[type(node)]}({value.sql})", value.kind), ""
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
