"""Where an expression of a query fails, for the message of a query that has failed: the statements that give the first
row of an input's window, or the first group of the answer, on which it does; nothing is run.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from optimizer.expression import dialect as d
from optimizer.expression.expr import Expr
from optimizer.expression.expr import columns as columns_of
from optimizer.expression.expr import inputs
from optimizer.expression.scalar import can_fail, fails, render, safe
from optimizer.plan import table
from optimizer.plan.lowering import Lowering, evaluated, stored_name
from optimizer.plan.membership import Range, within
from optimizer.plan.operators.join import on_joined_rows
from optimizer.plan.operators.scan import read_columns
from optimizer.plan.program import Columns, Source
from optimizer.plan.wording import as_written
from optimizer.query.windows import ALWAYS

FAILING_ROW = "failing_row"


@dataclass(frozen=True)
class ExpressionOnRows:
    """One expression over rows of one input, and the columns that it reads: `row` gives the first row on which it
    fails, `value` evaluates it on that row, which raises.
    """

    expression: str
    reads: frozenset[str]
    source: Source
    columns: Columns
    row: str
    value: str


def expressions_on_rows(ctx: Lowering, t: int, since: int) -> Iterator[ExpressionOnRows]:
    """What can fail on a row that the windows hold at boundary t, or at one after `since`; of one input each."""
    for i in ctx.inputs:
        declared = ctx.shape.query.inputs[i]
        window, name = declared.window, stored_name(ctx)
        ranges = () if window is None else (Range(-ALWAYS, t, window.oldest(since)),)
        kind = "relation" if window is None else "stream"
        source = Source(table.files(i), kind, declared.source, ranges, read_columns(ctx, i))
        type_by_name = dict(source.columns)
        names = [column for column in dict.fromkeys((declared.event_time or "", *type_by_name))
                 if column not in ("", "_boundary")]
        columns = tuple((column, type_by_name[column]) for column in names)
        order = ", ".join(map(d.identifier, names))
        reached = [within(ctx, i, ranges)] if ranges else []
        for expr in _of_rows(ctx, i):
            doubt = fails(expr, ctx.dialect, name)
            if doubt is None:
                continue
            passing = [] if expr in ctx.shape.selections[i] else _passing(ctx, i)
            where = " AND ".join([*reached, *passing, doubt])
            reads = frozenset(column.name for column in columns_of(expr))
            yield ExpressionOnRows(as_written(ctx.shape.query, expr), reads, source, columns,
                                   f"SELECT * FROM {table.files(i)} WHERE {where} ORDER BY {order} LIMIT 1",
                                   f"SELECT {render(expr, ctx.dialect, name)} FROM {FAILING_ROW}")


def expressions_on_joined_rows(ctx: Lowering) -> tuple[str, ...]:
    """What can fail on a joined row, as it is written."""
    query = ctx.shape.query
    shown = [expr for _, expr in query.outputs if len(inputs(expr)) > 1] if query.returns_rows else []
    fallible = [expr for expr in dict.fromkeys([*on_joined_rows(ctx), *shown]) if can_fail(expr)]
    return tuple(as_written(query, expr) for expr in fallible)


def _of_rows(ctx: Lowering, i: int) -> list[Expr]:
    """Everything that is computed of rows of input i alone, each once."""
    query = ctx.shape.query
    shown = [expr for _, expr in query.outputs if inputs(expr) == {i}] if query.returns_rows else []
    return [expr for expr in dict.fromkeys([*evaluated(ctx, i), *shown]) if can_fail(expr)]


def _passing(ctx: Lowering, i: int) -> list[str]:
    return [f"COALESCE({safe(expr, ctx.dialect, stored_name(ctx))}, FALSE)" for expr in ctx.shape.selections[i]]
