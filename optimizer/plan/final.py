"""From output partials to published rows: merge what tasks hand over, states into values, HAVING, SELECT.

One statement for any number of boundaries.
"""
from __future__ import annotations

from collections.abc import Sequence

from optimizer.expression import dialect as d
from optimizer.expression.decimals import quotient
from optimizer.expression.expr import AggregateRef, Expr, GroupRef
from optimizer.expression.scalar import fails, render, safe
from optimizer.expression.types import TIMESTAMP, Type, decimal
from optimizer.plan.lowering import Lowering, merged
from optimizer.plan.nested.statement import FAILED, above
from optimizer.plan.operators.join import failing, group_columns
from optimizer.plan.wording import aggregate_as_written, as_written
from optimizer.query.model import Aggregate
from optimizer.query.shape import Shape, measure_of


def final(ctx: Lowering, partials: str = "partials", due: str = "due", owner: tuple[str, ...] = ()) -> str:
    """Rows (boundary, outputs) from relations `partials` (_t and output partials) and `due` (_t: the boundaries to
    publish).

    `owner` is a column of both, and of the rows, where several queries have their rows in them.
    """
    query = ctx.shape.query
    inner = [*owner, "_t", *group_columns(ctx.shape)]
    inner += [f"{_value(ctx.shape, aggregate)} AS f{k}" for k, aggregate in enumerate(query.aggregates)]
    where = render(query.having, ctx.dialect, _name) if query.having is not None else "TRUE"
    if failing(ctx):
        inner.append("e")
        where = f"CASE WHEN e > 0 THEN {d.failure(FAILED, ctx.dialect)} ELSE {where} END"
    columns = [*owner, f"{d.from_micros('_t', ctx.dialect)} AS boundary"]
    for name, expr in query.outputs:
        value = render(expr, ctx.dialect, _name)
        columns.append(f"CAST({value} AS {d.name(expr.type, ctx.dialect)}) AS {d.identifier(name, ctx.dialect)}")
    valued = f"SELECT {', '.join(inner)} FROM ({_merged(ctx, partials, due, owner)}) AS merged"
    return f"SELECT {', '.join(columns)} FROM ({valued}) AS valued WHERE {where}"


def published(ctx: Lowering, due: Sequence[int]) -> str:
    """What is published at these boundaries: the answer's rows, or what is asked above them, at each by itself."""
    query = ctx.shape.query
    if query.above is None:
        return final(ctx)
    rows = []
    for t in due:
        at_t = f"(SELECT * FROM answer WHERE boundary = {d.from_micros(f'CAST({t} AS BIGINT)', ctx.dialect)})"
        rows.append(f"SELECT * FROM ({above(query, at_t, t, ctx.dialect)}) AS at_{t}")
    return f"WITH answer AS ({final(ctx)}) {' UNION ALL '.join(rows)}"


def failing_groups(ctx: Lowering, partials: str = "partials", due: str = "due") -> list[tuple[str, str]]:
    """What can fail on a row of the answer, as it is written, and the statement that gives the groups of the first row
    on which it does.
    """
    query, keys = ctx.shape.query, group_columns(ctx.shape)
    rows = _merged(ctx, partials, due, ())
    values = [_value(ctx.shape, aggregate) for aggregate in query.aggregates]
    valued = ", ".join(["_t", *keys, *(f"TRY({value}) AS f{k}" for k, value in enumerate(values))])
    selected, order = ", ".join(keys) or "1", f" ORDER BY {', '.join(keys)}" if keys else ""
    statements = []
    for aggregate, value in zip(query.aggregates, values):
        statements.append((aggregate_as_written(query, aggregate),
                           f"SELECT {selected} FROM ({rows}) AS q WHERE TRY(hash({value})) IS NULL{order} LIMIT 1"))
    passing = "TRUE" if query.having is None else f"COALESCE({safe(query.having, 'duckdb', _name)}, FALSE)"
    for expr in (query.having, *(expr for _, expr in query.outputs)):
        doubt = None if expr is None else fails(expr, "duckdb", _name)
        if expr is not None and doubt is not None:
            where = doubt if expr is query.having else f"{passing} AND {doubt}"
            statements.append((as_written(query, expr), f"SELECT {selected} FROM (SELECT {valued} FROM ({rows}) AS q) "
                                                        f"AS v WHERE {where}{order} LIMIT 1"))
    return statements


def _name(leaf: Expr) -> str:
    assert isinstance(leaf, (GroupRef, AggregateRef))
    return f"g{leaf.index}" if isinstance(leaf, GroupRef) else f"f{leaf.index}"


def _merged(ctx: Lowering, partials: str, due: str, owner: tuple[str, ...]) -> str:
    """One row a group and boundary.

    Without GROUP BY one a boundary, also over nothing. What is computed whole comes from one task only.
    """
    keys = [*owner, "_t", *group_columns(ctx.shape)]
    sums = {"c": "sum(c)"}
    for measure in ctx.shape.measures:
        is_whole = measure.kind == "whole"
        sums[measure.name] = f"any_value({measure.name})" if is_whole else merged(measure, measure.name, ctx)
    if failing(ctx):
        sums["e"] = "sum(e)"
    selected = [*keys, *(f"{sql} AS {name}" for name, sql in sums.items())]
    by_group = f"SELECT {', '.join(selected)} FROM {partials} GROUP BY {', '.join(keys)} HAVING sum(c) > 0"
    if group_columns(ctx.shape):
        return by_group
    selected = [*(f"{due}.{key}" for key in keys), *(f"k.{name} AS {name}" for name in sums)]
    same_keys = " AND ".join(f"k.{key} = {due}.{key}" for key in keys)
    return f"SELECT {', '.join(selected)} FROM {due} LEFT JOIN ({by_group}) AS k ON {same_keys}"


def _value(shape: Shape, a: Aggregate) -> str:
    if shape.whole:
        if a.function == "count" and a.argument is None:
            return "COALESCE(CAST(c AS BIGINT), 0)"
        name = measure_of(shape, a, "whole").name
        return f"COALESCE({name}, 0)" if a.function in ("count", "count_distinct") else name
    if a.function == "count":
        return f"COALESCE(CAST({'c' if a.argument is None else measure_of(shape, a, 'count').name} AS BIGINT), 0)"
    if a.function in ("min", "max"):
        return measure_of(shape, a, a.function).name
    n, s = measure_of(shape, a, "count").name, measure_of(shape, a, "sum").name
    if a.function == "sum":
        value = f"CAST({s} AS {d.name(a.type, 'duckdb')})"
    else:
        value = _average(s, n, a) if a.function == "avg" else _spread(shape, a, n, s)
    return f"CASE WHEN {n} > 0 THEN {value} END"


def _average(s: str, n: str, a: Aggregate) -> str:
    if a.type.name != "decimal":
        return f"CAST({s} AS DOUBLE) / {n}"
    assert a.argument is not None
    scale = a.argument.type.scale
    return quotient(decimal(38, scale), decimal(19, 0), a.type, f"CAST({s} AS DECIMAL(38,{scale}))",
                    f"CAST({n} AS DECIMAL(19,0))")


def _spread(shape: Shape, a: Aggregate, n: str, s: str) -> str:
    """Variance from exact sums: shifted by the integer mean k first, Σ(x−k)² = Q − 2kS + nk², so nothing cancels in
    doubles.
    """
    assert a.argument is not None
    scale = a.argument.type.scale
    total, squares = _integer(s, scale), _integer(measure_of(shape, a, "square").name, 2 * scale)
    shifted = f"{squares} - 2 * ({total} // {n}) * {total} + CAST({n} AS HUGEINT) * ({total} // {n}) * ({total} // {n})"
    rest = f"({total} - {n} * ({total} // {n}))"
    m2 = (f"greatest((CAST({shifted} AS DOUBLE) - CAST({rest} AS DOUBLE) * CAST({rest} AS DOUBLE) / {n}) / "
          f"{10.0 ** (2 * scale)!r}, 0.0)")
    sample = a.function.endswith("samp")
    variance = f"{m2} / ({n} - 1)" if sample else f"{m2} / {n}"
    value = f"sqrt({variance})" if a.function.startswith("stddev") else variance
    return f"CASE WHEN {n} > 1 THEN {value} END" if sample else value


def _integer(column: str, scale: int) -> str:
    """The integer behind a decimal state."""
    if scale == 0:
        return f"CAST({column} AS HUGEINT)"
    return f"CAST(replace(CAST(CAST({column} AS DECIMAL(38,{scale})) AS VARCHAR), '.', '') AS HUGEINT)"


def result_columns(ctx: Lowering) -> tuple[tuple[str, Type], ...]:
    return (("boundary", TIMESTAMP), *ctx.shape.query.columns)
