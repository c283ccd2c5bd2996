"""The tree of a plan's operators, and what is read off it: statements, state, words; its work is priced in
optimizer.cost.

    operators(shape, plan)                     the tree, made when it is needed and never stored
    program(ctx, boundaries, previous)         what one task runs
    state_sets(ctx)                            what is kept between boundaries
"""
from __future__ import annotations

from optimizer.plan.lowering import Lowering
from optimizer.plan.model import Plan
from optimizer.plan.nested.answer import AnswerOfBlocks
from optimizer.plan.operators.answer import AnswerOperator, LateAggregate
from optimizer.plan.operators.expire import ExpiringAnswer
from optimizer.plan.operators.join import Join
from optimizer.plan.operators.operator import InputOperator, KeptSet, Operator, Run
from optimizer.plan.operators.panes import Level, Panes
from optimizer.plan.operators.recompute import AnswerFromRunningSets, RecomputedAnswer
from optimizer.plan.operators.retract import RetractedAnswer
from optimizer.plan.operators.rows import JoinedRows
from optimizer.plan.operators.running import RunningSet
from optimizer.plan.operators.scan import EarlyAggregate, Scan
from optimizer.plan.program import BEGINNING, Columns, Program, StateSet
from optimizer.query.shape import Shape
from optimizer.query.windows import ALWAYS

ANSWERS: dict[str, type[AnswerOperator]] = {
    "recompute": RecomputedAnswer,
    "running": AnswerFromRunningSets,
    "retract": RetractedAnswer,
    "expire": ExpiringAnswer,
}


def operators(shape: Shape, plan: Plan) -> AnswerOperator:
    """The plan's tree, from the answer down to the scans."""
    inputs = tuple(_input(shape, plan, i) for i in range(len(plan.digits)))
    if shape.query.blocks is not None:
        return AnswerOfBlocks(LateAggregate(Join(inputs)))
    answer = JoinedRows if shape.query.returns_rows else ANSWERS[plan.keeping]
    return answer(LateAggregate(Join(inputs)))


def program(ctx: Lowering, boundaries: tuple[int, ...], previous: int, floor: int = -ALWAYS) -> Program:
    """All statements for these boundaries; `previous` is the boundary to which the state was brought, or BEGINNING.

    `floor`, for row queries: an instant before which no row that comes now can meet an older one.
    """
    return program_of_run(ctx, Run(boundaries, previous, floor))


def program_of_run(ctx: Lowering, run: Run) -> Program:
    """The same; of a run that has a share only where `may_divide_boundaries`."""
    return operators(ctx.shape, ctx.plan).program(ctx, run)


def state_sets(ctx: Lowering) -> tuple[StateSet, ...]:
    """What the plan keeps between boundaries."""
    return tuple(part.state(ctx) for part in kept_sets(ctx))


def state_columns(ctx: Lowering) -> dict[str, Columns]:
    """The names of the state sets, with their schemas."""
    return {state.name: state.columns for state in state_sets(ctx)}


def kept_sets(ctx: Lowering) -> tuple[KeptSet, ...]:
    """The operators' parts that keep a set: the inputs' in FROM order, then the answer's."""
    answer = operators(ctx.shape, ctx.plan)
    return tuple(part for operator in (*answer.join.inputs, answer) for part in operator.kept(ctx))


def merge_files(ctx: Lowering, name: str, files: str, boundary: int, since: int = BEGINNING) -> str:
    """SQL of the one file that replaces many of set `name`, as of the boundary to which its state was brought; `since`
    is the newest end that the oldest of them has.

    Partials that count at the same boundaries are merged, ended ones are left out; no answer changes by it.
    """
    part = next(part for part in kept_sets(ctx) if part.state(ctx).name == name)
    return part.merge_files(ctx, files, boundary, since)


def tree_in_words(ctx: Lowering) -> list[str]:
    """A line for each operator, as `explain` shows the tree."""
    answer, query = operators(ctx.shape, ctx.plan), ctx.shape.query
    if query.above is None:
        return _lines(ctx, answer, "", "")
    shown = ", ".join(name for name, _ in query.columns)
    return [f"Published ({shown}): the other SELECTs, over the answer, at each boundary",
            *_lines(ctx, answer, "└─ ", "   ")]


def _input(shape: Shape, plan: Plan, i: int) -> InputOperator:
    scan, window = Scan(i), shape.query.inputs[i].window
    if not plan.digits[i]:
        return scan
    if window is None or plan.keeping == "recompute" and plan.layout == "raw":
        return EarlyAggregate(scan)
    if plan.keeping == "running":
        return RunningSet(scan)
    return Panes(scan, tuple(Level(place, window) for place, window in enumerate(plan.kept_windows)))


def _lines(ctx: Lowering, operator: Operator, first: str, rest: str) -> list[str]:
    lines = [first + operator.words(ctx)]
    children = operator.children
    if len(children) > 1:      # the inputs, in the order in which they are joined
        children = tuple(children[i] for i in ctx.plan.order)
    for child in children:
        is_last = child is children[-1]
        lines += _lines(ctx, child, rest + ("└─ " if is_last else "├─ "), rest + ("   " if is_last else "│  "))
    return lines
