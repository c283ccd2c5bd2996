"""`retract`: the answer is kept and changed by what came and what left (the counting algorithm; paper C's IC, equation
2).

A(t) = A(t′) + Σᵢ γ( S₍<i₎(t) ⋈ Δᵢ ⋈ S₍>i₎(t′) ), where Δᵢ holds what came with sign +1 and what left with −1.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

from optimizer.plan import table
from optimizer.plan.lowering import Lowering
from optimizer.plan.operators.answer import NODE, AnswerOperator, KeptAnswer, changing, looking_work, merging_work
from optimizer.plan.operators.join import joined, merged_answer, out_columns
from optimizer.plan.operators.operator import Boundary, Expected, KeptSet, Run, Work, came, counts, left
from optimizer.plan.operators.sets import rows_where
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
        changed_answer = merged_answer(ctx, changed, having=_something_left(ctx))
        after = table.answer_after(number)
        read = (table.answer_before(number),) if number else ()
        return Step(t, (Definition(after, changed_answer, is_table=True),), answer(ctx, t, f"SELECT * FROM {after}"),
                    drop=read)

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
        yield NODE, {
            "state_read": before * width,
            "files": 1 / ctx.parts if before else 0,
            "group": (before + changes) * width,
            "made": (changes + groups) * width,
            "keep": groups * width,
            "state_write": groups * width,
            "statements": 3,
        }


def _signed_changes(i: int, boundary: Boundary) -> str:
    """Δ_i: what came (+1) and what left (−1)."""
    rows = table.of_input(i)
    return (f"(SELECT *, CAST(1 AS BIGINT) AS _s FROM {rows} WHERE {came(boundary)} "
            f"UNION ALL SELECT *, CAST(-1 AS BIGINT) AS _s FROM {rows} WHERE {left(boundary)})")


def _something_left(ctx: Lowering) -> str:
    """A task's share of a group is gone when nothing of it is left.

    A share, unlike a group, can have rows taken away that another share has.
    """
    counted = [f"sum({name}) <> 0" for name, _ in out_columns(ctx) if name in ("c", "e")]
    return " OR ".join(counted + [f"COALESCE(sum({m.name}), 0) <> 0" for m in ctx.shape.measures if m.additive])


def _changes(expected: Expected, i: int) -> Operand:
    """What came and what left of input i, as a join reads it; from nothing, all."""
    if expected.from_nothing:
        return expected.by_pane(i)
    arrived = expected.came(i)
    times = 2 if expected.flow(i).left else 1
    return replace(arrived, rows=arrived.rows * times, raw_rows=expected.flow(i).came * times)
