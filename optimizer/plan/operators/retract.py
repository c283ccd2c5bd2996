"""`retract`: the answer is kept and changed by what came and what left (the counting algorithm; paper C's IC, equation
2).

A(t) = A(t′) + Σᵢ γ( S₍<i₎(t) ⋈ Δᵢ ⋈ S₍>i₎(t′) ), where Δᵢ holds what came with sign +1 and what left with −1. Of
several boundaries one statement makes the sums over i by boundary, and adds them up.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from optimizer.plan import table
from optimizer.plan.lowering import Lowering
from optimizer.plan.operators.answer import NODE, AnswerOperator, KeptAnswer, changing, looking_work, merging_work
from optimizer.plan.operators.join import by_boundary, group_columns, joined, merged_answer, out_columns, out_working
from optimizer.plan.operators.operator import Boundary, Expected, KeptSet, Run, Work, at_each, came, counts, left
from optimizer.plan.operators.sets import rows_where, summed_up
from optimizer.plan.operators.windows import answer
from optimizer.plan.program import BEGINNING, Definition, Source, Step
from optimizer.statistics.cardinality import Operand

STATE = KeptAnswer(by_end=False)


@dataclass(frozen=True)
class RetractedAnswer(AnswerOperator):
    """The answer as of the boundary before, plus the signed joins of each input's changes with the others' members."""

    formula = "A(t) = A(t′) + Σᵢ γ( S₍<i₎(t) ⋈ Δᵢ ⋈ S₍>i₎(t′) ), Δ = came − left"

    def kept(self, ctx: Lowering) -> tuple[KeptSet, ...]:
        return (STATE,)

    def sources(self, ctx: Lowering, run: Run) -> tuple[Source, ...]:
        return STATE.source(ctx, run)

    def setup(self, ctx: Lowering, run: Run) -> tuple[Definition, ...]:
        return (STATE.as_of_previous(ctx, run),)

    def step(self, ctx: Lowering, run: Run, boundary: Boundary) -> Step:
        t, number, previous = boundary.at, boundary.number, boundary.previous
        terms = []
        for i in changing(ctx, previous == BEGINNING, first=ctx.inputs[-1]):
            members = {i: _signed_changes(i, boundary)}
            for j in ctx.inputs:
                if j != i:
                    members[j] = rows_where(ctx, j, table.of_input(j), counts(t if j < i else previous))
            terms.append(joined(ctx, members, signed=i))
        columns = ", ".join(name for name, _ in out_columns(ctx))
        before = f"SELECT {columns} FROM {table.answer_before(number)}"
        changed = " UNION ALL ".join([before, *(f"SELECT {columns} FROM ({term}) AS q" for term in terms)])
        changed_answer = merged_answer(ctx, changed, having=_something_left(ctx, "sum({})"))
        after = table.answer_after(number)
        read = (table.answer_before(number),) if number else ()
        return Step(t, (Definition(after, changed_answer, is_table=True),), answer(ctx, t, f"SELECT * FROM {after}"),
                    drop=read)

    def step_of_several(self, ctx: Lowering, boundaries: Sequence[Boundary]) -> Step:
        """The changes of these boundaries, summed up from the answer before; a group's sums from one change to the
        next.
        """
        first, last = boundaries[0], boundaries[-1]
        groups, columns = group_columns(ctx.shape), ", ".join(name for name, _ in out_columns(ctx))
        before = f"SELECT {columns}, CAST({first.at} AS BIGINT) AS _at FROM {table.answer_before(first.number)}"
        terms = [f"SELECT {columns}, _t AS _at FROM ({term}) AS q" for term in _terms_of_several(ctx, boundaries)]
        functions = {m.name: m.kind if m.kind in ("min", "max") else "sum" for m in ctx.shape.measures}
        sums = {name: (functions.get(name, "sum"), kind) for name, kind in out_working(ctx).items()
                if name not in groups}
        changed = summed_up(groups, sums, " UNION ALL ".join([before, *terms]), _something_left(ctx, "{}"))
        upto, after = table.answers_upto(last.number), table.answer_after(last.number)
        define = (Definition(upto, changed, is_table=True),
                  Definition(after, f"SELECT {columns} FROM {upto} WHERE {counts(last.at)}", is_table=False))
        return Step(last.at, define, answer(ctx, "_t", f"SELECT * FROM {at_each(upto, boundaries, counts('_t'))}"))

    def own_work(self, expected: Expected) -> Work:
        """A term for each stream: what came and left, among the merged members of the others, which each term makes
        anew.
        """
        ctx, width, groups = expected.ctx, expected.answer_width, expected.sizes.groups
        changes = 0.0
        for i in changing(ctx, expected.from_nothing, first=ctx.inputs[-1]):
            for j in ctx.inputs:
                if j != i and ctx.early(j):
                    yield from merging_work(expected, j, expected.flow(j).stored)
                yield from looking_work(expected, j, times=2 if j == i else 1)
            operands = [_changes(expected, j) if j == i else expected.merged(j) for j in ctx.plan.order]
            term = self.late.term(expected, operands, more=1)
            yield from term.charges
            changes += term.groups(expected)
        before = 0.0 if expected.from_nothing else groups / ctx.parts
        merged, kept = before, groups
        if ctx.together > 1:      # only groups that change have sums of the boundary
            merged = kept = min(changes, groups)
        yield NODE, {
            "state_read": before * width,
            "files": 1 / ctx.parts if before else 0,
            "group": (merged + changes) * width,
            "made": (changes + kept) * width,
            "keep": kept * width,
            "state_write": groups * width,
            "statements": 3,
        }


def _signed_changes(i: int, boundary: Boundary) -> str:
    """Δ_i: what came (+1) and what left (−1)."""
    rows, previous, t = table.of_input(i), boundary.previous, boundary.at
    return (f"(SELECT *, CAST(1 AS BIGINT) AS _s FROM {rows} WHERE {came(previous, t)} "
            f"UNION ALL SELECT *, CAST(-1 AS BIGINT) AS _s FROM {rows} WHERE {left(previous, t)})")


def _terms_of_several(ctx: Lowering, boundaries: Sequence[Boundary]) -> list[str]:
    """The terms of all boundaries that have them, by `_t`; a relation's rows count at all of them."""
    terms, streams = [], [i for i in ctx.inputs if ctx.window(i) is not None]
    for i in ctx.inputs:
        having_it = [b for b in boundaries if i in changing(ctx, b.previous == BEGINNING, first=ctx.inputs[-1])]
        if not having_it:
            continue
        sources = {}
        for j in ctx.inputs:
            rows = table.of_input(j)
            if j == i:
                sources[j] = _signed_changes_at_each(rows, having_it) if j in streams else (
                    f"(SELECT *, CAST(1 AS BIGINT) AS _s FROM {rows})")
            elif j in streams:
                at_boundaries = at_each(rows, having_it, counts("_t" if j < i else "_after"))
                sources[j] = rows_where(ctx, j, at_boundaries, "TRUE", extra=("_t",))
            else:
                sources[j] = rows_where(ctx, j, rows, "TRUE")
        terms.append(joined(by_boundary(ctx), sources, extra=(("_t", f"v{streams[0]}._t"),), signed=i))
    return terms


def _signed_changes_at_each(rows: str, boundaries: Sequence[Boundary]) -> str:
    """Δ of each boundary, by `_t`."""
    arrived, gone = (at_each(rows, boundaries, condition("_after", "_t")) for condition in (came, left))
    return (f"(SELECT *, CAST(1 AS BIGINT) AS _s FROM {arrived} "
            f"UNION ALL SELECT *, CAST(-1 AS BIGINT) AS _s FROM {gone})")


def _something_left(ctx: Lowering, total: str) -> str:
    """A task's share of a group is gone when nothing of it is left; `total` says how to write a column's sum.

    A share, unlike a group, can have rows taken away that another share has.
    """
    counted = [f"{total.format(name)} <> 0" for name, _ in out_columns(ctx) if name in ("c", "e")]
    sums = [f"COALESCE({total.format(m.name)}, 0) <> 0" for m in ctx.shape.measures if m.additive]
    return " OR ".join(counted + sums)


def _changes(expected: Expected, i: int) -> Operand:
    """What came and what left of input i, as a join reads it; from nothing, all."""
    if expected.from_nothing:
        return expected.by_pane(i)
    arrived = expected.came(i)
    times = 2 if expected.flow(i).left else 1
    return replace(arrived, rows=arrived.rows * times, raw_rows=expected.flow(i).came * times)
