"""Queries for joined rows: each combination once, at the first boundary that knows all its rows.

Two rows are combined if at some instant both are in their windows. Nothing is kept: what came is joined with the rows
of the others that it can still meet.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from optimizer.expression import dialect as d
from optimizer.expression.expr import Expr
from optimizer.expression.scalar import fails, render
from optimizer.plan import table
from optimizer.plan.division import dealt
from optimizer.plan.lowering import Lowering, fallible
from optimizer.plan.membership import Range, first_boundary, instants, within
from optimizer.plan.operators.answer import NODE, AnswerOperator, changing
from optimizer.plan.operators.join import leaf_name, residual_conditions, tables
from optimizer.plan.operators.operator import Boundary, Expected, Operator, Run, Work, of_all
from optimizer.plan.operators.scan import read_columns
from optimizer.plan.operators.sets import raw
from optimizer.plan.program import BEGINNING, Columns, Definition, Program, Source, Step
from optimizer.query.windows import ALWAYS

FAILED = "a condition or a key of the query failed on a row of the answer"


@dataclass(frozen=True)
class JoinedRows(AnswerOperator):
    """The joined rows that are known at a boundary and were not before: a term for each stream, each row written."""

    formula = "each joined combination once"

    @property
    def children(self) -> tuple[Operator, ...]:
        return self.late.children

    def program(self, ctx: Lowering, run: Run) -> Program:
        sources = tuple(source(ctx, i, run, read_columns(ctx, i)) for i in ctx.inputs)
        setup = tuple(Definition(table.of_input(i), rows(ctx, i, run), is_table=True) for i in ctx.inputs)
        values = ", ".join(output_values(ctx, ctx.shape.query.outputs))
        return Program(sources, setup, tuple(Step(b.at, (), new_combinations(ctx, b, values)) for b in run.steps))

    def own_work(self, expected: Expected) -> Work:
        ctx, joined_rows = expected.ctx, 0.0
        for i in ctx.inputs:
            if ctx.window(i):
                term = self.late.term(expected, expected.arrivals(i))
                joined_rows += term.rows
                yield from term.charges
        yield NODE, {"state_write": joined_rows * len(ctx.shape.query.outputs), "statements": 1}


def source(ctx: Lowering, i: int, run: Run, columns: Columns) -> Source:
    """The stored rows of input i that a run can need."""
    kind, stored = "relation" if ctx.window(i) is None else "stream", ctx.shape.query.inputs[i].source
    return Source(table.files(i), kind, stored, _ranges(ctx, i, run), columns, dealt(ctx, i))


def rows(ctx: Lowering, i: int, run: Run, also: tuple[str, ...] = ()) -> str:
    """Rows with the instants at which they are in their window, [_lo, _hi], and the boundary that first counts them;
    with `also` more columns.
    """
    is_stream, (first, last) = ctx.window(i) is not None, instants(ctx, i)
    came = d.micros(first_boundary(ctx), ctx.dialect) if is_stream else "CAST(0 AS BIGINT)"
    where = within(ctx, i, _ranges(ctx, i, run)) if is_stream else "TRUE"
    times = (f"{first} AS _lo", f"{last} AS _hi", f"{came} AS _came")
    return raw(ctx, i, table.files(i), interval=False, where=where, also=(*times, *also))


def new_combinations(ctx: Lowering, boundary: Boundary, values: str, where: str = "") -> str:
    """These values of each combination that is known at the boundary and was not before: a SELECT for each input that
    came last. `where` begins with AND.
    """
    t, previous = boundary.at, boundary.previous
    met = f"{of_all(ctx, 'greatest', '_lo')} <= {of_all(ctx, 'least', '_hi')}{residual_conditions(ctx)}{where}"
    terms = []
    for i in changing(ctx, previous == BEGINNING, first=0):
        sources = {}
        for j in ctx.inputs:
            arrived = f"_came > {previous} AND _came <= {t}" if j == i else f"_came <= {previous if j < i else t}"
            sources[j] = f"(SELECT * FROM {table.of_input(j)} WHERE {arrived})"
        terms.append(f"SELECT CAST({t} AS BIGINT) AS _t, {values} FROM {tables(ctx, sources)} WHERE {met}")
    return " UNION ALL ".join(terms)


def output_values(ctx: Lowering, outputs: Sequence[tuple[str, Expr]]) -> list[str]:
    """A SELECT list, evaluated on each joined row: here an expression may raise, since a row of the answer needs it; as
    does a condition across inputs that could not be decided.
    """
    undecided = [fails(expr, ctx.dialect, leaf_name(ctx)) for expr in ctx.shape.query.residuals]
    doubts = " OR ".join([*(f"v{i}.e > 0" for i in ctx.inputs if fallible(ctx, i)),
                          *(f"({doubt})" for doubt in undecided if doubt is not None)])
    columns = []
    for name, expr in outputs:
        value = render(expr, ctx.dialect, leaf_name(ctx))
        if doubts:
            value = f"CASE WHEN {doubts} THEN {d.failure(FAILED, ctx.dialect)} ELSE {value} END"
        columns.append(f"CAST({value} AS {d.name(expr.type, ctx.dialect)}) AS {d.identifier(name, ctx.dialect)}")
    return columns


def _ranges(ctx: Lowering, i: int, run: Run) -> tuple[Range, ...]:
    """No row that comes after `run.previous` meets one that had left its window at `run.floor`."""
    window = ctx.window(i)
    if window is None:
        return ()
    anew = run.from_nothing or run.floor == ALWAYS
    return (Range(-ALWAYS, run.last, -ALWAYS if anew else window.oldest(run.floor + 1)),)
