"""Queries for joined rows: each combination once, at the first boundary that knows all its rows, if at some instant all are in their windows together."""
from __future__ import annotations

from optimizer.expression import dialect as d
from optimizer.expression.scalar import render
from optimizer.plan.division import dealt
from optimizer.plan.lowering import Lowering, fallible, quoted
from optimizer.plan.membership import Range, instants, known, within
from optimizer.plan.operators.join import leaf_name, residual_conditions, tables
from optimizer.plan.operators.sets import raw
from optimizer.plan.operators.views import read_columns
from optimizer.plan.program import BEGINNING, Definition, Program, Source, Step
from optimizer.query.windows import ALWAYS

FAILED = "a selection of the query failed on a row of the answer"


def row_program(low: Lowering, boundaries: tuple[int, ...], previous: int, floor: int) -> Program:
    """No row that comes after `previous` meets one that had left its window at `floor`."""
    views = [_view(low, i, boundaries[-1], ALWAYS if previous == BEGINNING else floor) for i in low.inputs]
    before = (previous, *boundaries[:-1])
    steps = tuple(Step(t, (), _combinations(low, p, t)) for p, t in zip(before, boundaries))
    return Program(tuple(source for source, _ in views), tuple(definition for _, definition in views), steps)


def _view(low: Lowering, i: int, last: int, floor: int) -> tuple[Source, Definition]:
    """Rows with the instants at which they are in their window, [_lo, _hi], and the boundary that first counts them."""
    declared, window, (lo, hi) = low.shape.query.inputs[i], low.window(i), instants(low, i)
    ranges = (Range(-ALWAYS, last, -ALWAYS if floor == ALWAYS else window.oldest(floor + 1)),) if window else ()
    came = d.micros(known(low), low.dialect) if window else "CAST(0 AS BIGINT)"
    where = within(low, i, ranges) if window else "TRUE"
    rows = raw(low, i, f"s{i}", interval=False, where=where, also=(f"{lo} AS _lo", f"{hi} AS _hi", f"{came} AS _came"))
    source = Source(f"s{i}", "stream" if window else "relation", declared.source, ranges, read_columns(low, i), dealt(low, i))
    return source, (f"w{i}", rows, True)


def _combinations(low: Lowering, p: int, t: int) -> str:
    """What is known at t and was not at p: a term for each input that came last."""
    where = f"{_of_all(low, 'greatest', '_lo')} <= {_of_all(low, 'least', '_hi')}{residual_conditions(low)}"
    terms = []
    for i in [0] if p == BEGINNING else [i for i in low.inputs if low.window(i)]:
        roles = {j: (f"_came <= {p}" if j < i else f"_came > {p} AND _came <= {t}" if j == i else f"_came <= {t}") for j in low.inputs}
        sources = {j: f"(SELECT * FROM w{j} WHERE {roles[j]})" for j in low.inputs}
        terms.append(f"SELECT CAST({t} AS BIGINT) AS _t, {', '.join(_outputs(low))} FROM {tables(low, sources)} WHERE {where}")
    return " UNION ALL ".join(terms)


def _of_all(low: Lowering, function: str, column: str) -> str:
    return f"{function}({', '.join(f'v{i}.{column}' for i in low.inputs)})" if len(low.inputs) > 1 else f"v0.{column}"


def _outputs(low: Lowering) -> list[str]:
    """The SELECT list, evaluated on each joined row: here an expression may raise, since a row of the answer needs it."""
    marked = [f"v{i}.e > 0" for i in low.inputs if fallible(low, i)]
    guard = f"CASE WHEN {' OR '.join(marked)} THEN {d.failure(FAILED, low.dialect)} ELSE " if marked else ""
    values = [(name, expr, f"{guard}{render(expr, low.dialect, leaf_name(low))}{' END' if guard else ''}") for name, expr in low.shape.query.outputs]
    return [f"CAST({sql} AS {d.name(expr.type, low.dialect)}) AS {quoted(name, low.dialect)}" for name, expr, sql in values]
