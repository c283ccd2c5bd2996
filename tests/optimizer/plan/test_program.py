"""What a program reads and writes: no more than what came and what leaves, and state by the names that a plan keeps."""
from __future__ import annotations

from itertools import product

import pytest

from optimizer.plan.division import dealt, divided, pivot, share
from optimizer.plan.lowering import Lowering
from optimizer.plan.membership import Range
from optimizer.plan.model import named
from optimizer.plan.program import BEGINNING
from optimizer.plan.tree import program, state_columns, state_sets
from optimizer.query.shape import shape
from optimizer.query.windows import ALWAYS
from tests.optimizer.planning import BATCH, query

T = 1_000 * BATCH
MINUTE = 6 * BATCH


def lowering(name: str, plan: str, parts: int = 1, part: int = 0) -> Lowering:
    asked = query(name)
    return Lowering(shape(asked), named(asked, plan), parts=parts, part=part)


@pytest.mark.parametrize("plan,kept", [("LAP recompute", []), ("EAP01 recompute", ["panes1"]),
                                       ("EAP11 running", ["totals0", "totals1"]),
                                       ("EAP10 retract", ["panes0", "answer"]), ("LAP expire", ["answer"])])
def test_what_a_plan_keeps(plan: str, kept: list[str]) -> None:
    low = lowering("two-streams", plan)
    assert list(state_columns(low)) == kept
    assert [w.set for w in program(low, (T,), T - BATCH).writes] == kept


def test_running_totals_keep_extremes_beside_them() -> None:
    low = lowering("extremes", "EAP10 running")
    assert [(s.name, s.ends) for s in state_sets(low)] == [("totals0", None), ("extremes0", "_out")]


@pytest.mark.parametrize(
    "plan,ranges",
    [("LAP recompute", {Range(-ALWAYS, T, T - MINUTE)}), ("EAP10 recompute", {Range(T - BATCH, T)}),
     ("EAP10 expire", {Range(T - BATCH, T)}),
     ("EAP10 running", {Range(T - BATCH, T), Range(-ALWAYS, T, T - BATCH - MINUTE, T - MINUTE)}),
     ("LAP retract", {Range(-ALWAYS, T, T - BATCH - MINUTE)})])
def test_rows_that_are_read_of_a_stream(plan: str, ranges: set[Range]) -> None:
    source = next(s for s in program(lowering("two-streams", plan), (T,), T - BATCH).sources if s.name == "files_0")
    assert set(source.ranges) == ranges


def test_from_the_beginning_the_whole_window_is_read_and_no_state() -> None:
    made = program(lowering("two-streams", "EAP11 expire"), (T, T + BATCH), BEGINNING)
    assert {s.kind
            for s in made.sources} == {"stream"} and made.sources[0].ranges == (Range(-ALWAYS, T + BATCH, T - MINUTE),)
    assert [s.boundary for s in made.steps] == [T, T + BATCH]


@pytest.mark.parametrize(
    "plan,exchange",
    list(product(["LAP recompute", "EAP01 expire", "EAP10 running", "EAP11 retract"], ["slice", "partition"])))
def test_exactly_one_input_is_divided_or_all_by_the_common_key(plan: str, exchange: str) -> None:
    low = lowering("two-streams", plan, parts=2, part=1)
    low = Lowering(low.shape,
                   type(low.plan)(low.plan.digits, low.plan.keeping, low.plan.order, exchange), parts=2, part=1)
    shares = [share(low, i, [a.name for a in low.shape.attributes[i]]) is not None or dealt(low, i) for i in low.inputs]
    assert shares == [divided(low, i) for i in low.inputs
                      ] == ([True, True] if exchange == "partition" else [i == pivot(low) for i in low.inputs])


def test_what_is_computed_whole_cannot_be_divided() -> None:
    with pytest.raises(ValueError, match="one task"):
        lowering("distinct", "LAP recompute", parts=2)
    with pytest.raises(ValueError, match="part 2 of 2"):
        lowering("two-streams", "LAP recompute", parts=2, part=2)
