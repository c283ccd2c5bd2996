"""Queries for joined rows: each combination once, at the first boundary that knows all its rows.

Two rows are combined if at some instant both are in their windows. Nothing is kept: what came is joined with the rows
of the others that it can still meet.
"""
from __future__ import annotations

from dataclasses import dataclass

from optimizer.expression import dialect as d
from optimizer.expression.scalar import render
from optimizer.plan import table
from optimizer.plan.division import dealt
from optimizer.plan.lowering import Lowering, fallible
from optimizer.plan.membership import Range, first_boundary, instants, within
from optimizer.plan.operators.answer import NODE, AnswerOperator, changing
from optimizer.plan.operators.join import leaf_name, residual_conditions, tables
from optimizer.plan.operators.operator import Boundary, Expected, Operator, Run, Work, of_all
from optimizer.plan.operators.scan import read_columns
from optimizer.plan.operators.sets import raw
from optimizer.plan.program import BEGINNING, Definition, Program, Source, Step
from optimizer.query.windows import ALWAYS

FAILED = "a selection of the query failed on a row of the answer"


@dataclass(frozen=True)
class JoinedRows(AnswerOperator):
    """The joined rows that are known at a boundary and were not before: a term for each stream, each row written."""

    formula = "each joined combination once"

    @property
    def children(self) -> tuple[Operator, ...]:
        return self.late.children

    def program(self, ctx: Lowering, run: Run) -> Program:
        sources = []
        for i in ctx.inputs:
            kind, stored = "relation" if ctx.window(i) is None else "stream", ctx.shape.query.inputs[i].source
            ranges, columns = _ranges(ctx, i, run), read_columns(ctx, i)
            sources.append(Source(table.files(i), kind, stored, ranges, columns, dealt(ctx, i)))
        setup = tuple(_rows(ctx, i, run) for i in ctx.inputs)
        return Program(tuple(sources), setup, tuple(self.step(ctx, run, boundary) for boundary in run.steps))

    def step(self, ctx: Lowering, run: Run, boundary: Boundary) -> Step:
        """A term for each input that came last."""
        t, previous = boundary.at, boundary.previous
        where = f"{of_all(ctx, 'greatest', '_lo')} <= {of_all(ctx, 'least', '_hi')}{residual_conditions(ctx)}"
        terms = []
        for i in changing(ctx, previous == BEGINNING, first=0):
            sources = {}
            for j in ctx.inputs:
                arrived = f"_came > {previous} AND _came <= {t}" if j == i else f"_came <= {previous if j < i else t}"
                sources[j] = f"(SELECT * FROM {table.of_input(j)} WHERE {arrived})"
            outputs = ", ".join(_outputs(ctx))
            terms.append(f"SELECT CAST({t} AS BIGINT) AS _t, {outputs} FROM {tables(ctx, sources)} WHERE {where}")
        return Step(t, (), " UNION ALL ".join(terms))

    def own_work(self, expected: Expected) -> Work:
        ctx, joined_rows = expected.ctx, 0.0
        for i in ctx.inputs:
            if ctx.window(i):
                term = self.late.term(expected, expected.arrivals(i))
                joined_rows += term.rows
                yield from term.charges
        yield NODE, {"state_write": joined_rows * len(ctx.shape.query.outputs), "statements": 1}


def _ranges(ctx: Lowering, i: int, run: Run) -> tuple[Range, ...]:
    """No row that comes after `run.previous` meets one that had left its window at `run.floor`."""
    window = ctx.window(i)
    if window is None:
        return ()
    anew = run.from_nothing or run.floor == ALWAYS
    return (Range(-ALWAYS, run.last, -ALWAYS if anew else window.oldest(run.floor + 1)),)


def _rows(ctx: Lowering, i: int, run: Run) -> Definition:
    """Rows with the instants at which they are in their window, [_lo, _hi], and the boundary that first counts them."""
    is_stream, (first, last) = ctx.window(i) is not None, instants(ctx, i)
    came = d.micros(first_boundary(ctx), ctx.dialect) if is_stream else "CAST(0 AS BIGINT)"
    where = within(ctx, i, _ranges(ctx, i, run)) if is_stream else "TRUE"
    also = (f"{first} AS _lo", f"{last} AS _hi", f"{came} AS _came")
    sql = raw(ctx, i, table.files(i), interval=False, where=where, also=also)
    return Definition(table.of_input(i), sql, is_table=True)


def _outputs(ctx: Lowering) -> list[str]:
    """The SELECT list, evaluated on each joined row: here an expression may raise, since a row of the answer needs it.
    """
    doubts = " OR ".join(f"v{i}.e > 0" for i in ctx.inputs if fallible(ctx, i))
    columns = []
    for name, expr in ctx.shape.query.outputs:
        value = render(expr, ctx.dialect, leaf_name(ctx))
        if doubts:
            value = f"CASE WHEN {doubts} THEN {d.failure(FAILED, ctx.dialect)} ELSE {value} END"
        columns.append(f"CAST({value} AS {d.name(expr.type, ctx.dialect)}) AS {d.identifier(name, ctx.dialect)}")
    return columns
