"""The answer to a question of several SELECTs: one statement over what the windows hold, at each boundary anew."""
from __future__ import annotations

from dataclasses import dataclass

from optimizer.plan.lowering import Lowering
from optimizer.plan.nested.statement import statement
from optimizer.plan.operators.answer import NODE, AnswerOperator
from optimizer.plan.operators.operator import Boundary, Expected, Operator, Run, Work
from optimizer.plan.operators.windows import answer
from optimizer.plan.program import Step


@dataclass(frozen=True)
class AnswerOfBlocks(AnswerOperator):
    """Rows as they are, from which one task makes the answer: nothing is kept, and nothing merges parts of it."""

    formula = "its SQL over what the windows hold, in one task"

    @property
    def children(self) -> tuple[Operator, ...]:
        return self.join.inputs

    def step(self, ctx: Lowering, run: Run, boundary: Boundary) -> Step:
        members = {each.input: each.members(ctx, run, boundary) for each in self.join.inputs}
        return Step(boundary.at, (), answer(ctx, boundary.at, statement(ctx, members, boundary.at)))

    def own_work(self, expected: Expected) -> Work:
        """Every row is joined or grouped about once for each SELECT; what they give is not estimated."""
        rows = sum(expected.flow(i).window * expected.width(i) for i in expected.ctx.inputs)
        yield NODE, {"group": rows, "statements": 1}
