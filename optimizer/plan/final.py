"""From output partials to published rows: merge what tasks hand over, states into values, HAVING, SELECT.

One statement for any number of boundaries.
"""
from __future__ import annotations

from optimizer.expression import dialect as d
from optimizer.expression.decimals import quotient
from optimizer.expression.expr import AggregateRef, Expr, GroupRef
from optimizer.expression.scalar import render
from optimizer.expression.types import TIMESTAMP, Type, decimal
from optimizer.plan.lowering import Lowering, merged
from optimizer.plan.operators.join import failing, group_columns
from optimizer.query.model import Aggregate
from optimizer.query.shape import Shape, measure_of

FAILED = "an expression of the query failed on a row of the answer (division by zero, overflow or a cast)"


def final(low: Lowering, partials: str = "partials", due: str = "due", owner: tuple[str, ...] = ()) -> str:
    """Rows (boundary, outputs) from relations `partials` (_t and output partials) and `due` (_t: the boundaries to
    publish).

    `owner` is a column of both, and of the rows, where several queries have their rows in them."""
    query = low.shape.query
    values = [f"{_value(low.shape, a)} AS f{k}" for k, a in enumerate(query.aggregates)]
    keys = [*owner, "_t", *group_columns(low.shape)]
    middle = (f"SELECT {', '.join([*keys, *values, *(['e'] if failing(low) else [])])} FROM "
              f"({_merged(low, partials, due, owner)}) AS merged")
    columns = [
        f"CAST({render(e, low.dialect, _name)} AS {d.name(e.type, low.dialect)}) AS {d.identifier(n, low.dialect)}"
        for n, e in query.outputs
    ]
    having = render(query.having, low.dialect, _name) if query.having is not None else "TRUE"
    guard = f"CASE WHEN e > 0 THEN {d.failure(FAILED, low.dialect)} ELSE {having} END" if failing(low) else having
    return (f"SELECT {', '.join([*owner, d.from_micros('_t', low.dialect)])} AS boundary, {', '.join(columns)} FROM "
            f"({middle}) AS valued WHERE {guard}")


def _name(leaf: Expr) -> str:
    assert isinstance(leaf, (GroupRef, AggregateRef))
    return f"g{leaf.index}" if isinstance(leaf, GroupRef) else f"f{leaf.index}"


def _merged(low: Lowering, partials: str, due: str, owner: tuple[str, ...]) -> str:
    """One row a group and boundary.

    Without GROUP BY one a boundary, also over nothing. What is computed whole comes from one task only.
    """
    groups, marks = list(group_columns(low.shape)), ["e"] if failing(low) else []
    sums = ["sum(c) AS c"] + [
        f"{f'any_value({m.name})' if m.kind == 'whole' else merged(m, m.name, low)} AS {m.name}"
        for m in low.shape.measures
    ]
    sums += [f"sum({e}) AS {e}" for e in marks]
    kept = (f"SELECT {', '.join([*owner, '_t', *groups, *sums])} FROM {partials} GROUP BY "
            f"{', '.join([*owner, '_t', *groups])} HAVING sum(c) > 0")
    if groups:
        return kept
    columns = ["c", *(m.name for m in low.shape.measures), *marks]
    each = [*owner, "_t"]
    return (f"SELECT {', '.join([*(f'{due}.{c}' for c in each), *(f'k.{c} AS {c}' for c in columns)])} FROM {due} "
            f"LEFT JOIN ({kept}) AS k ON {' AND '.join(f'k.{c} = {due}.{c}' for c in each)}")


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
    found = {"sum": _sum, "avg": _average}.get(a.function)
    value = found(s, n, a) if found else _spread(shape, a, n, s)
    return f"CASE WHEN {n} > 0 THEN {value} END"


def _sum(s: str, n: str, a: Aggregate) -> str:
    return f"CAST({s} AS {d.name(a.type, 'duckdb')})"


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
    return (f"CAST({column} AS HUGEINT)" if scale == 0 else f"CAST(replace(CAST(CAST({column} AS DECIMAL(38,{scale})) "
                                                            "AS VARCHAR), '.', '') AS HUGEINT)")


def result_columns(low: Lowering) -> tuple[tuple[str, Type], ...]:
    return (("boundary", TIMESTAMP), *low.shape.query.columns)
