"""Merging a set's files changes no answer and leaves out what has ended."""
from __future__ import annotations

from random import Random

import pytest

from optimizer.compaction import compaction
from optimizer.lowering import Lowering
from optimizer.plan import named
from optimizer.program import BEGINNING
from optimizer.shape import shape
from tests import oracle
from tests.differential import differences, folder_of, query_of
from tests.engine import compact, together
from tests.optimizer.planning import query
from tests.optimizer.test_explain import case


@pytest.mark.parametrize("name,plan", [
    ("two-streams", "EAP11 recompute"), *(pytest.param(*p, marks=pytest.mark.slow) for p in (
        ("two-streams", "EAP10 retract"), ("extremes", "EAP11 running"), ("extremes", "EAP01 expire")))])
def test_answers_after_compaction_are_the_same(name: str, plan: str) -> None:
    asked = case(name)
    parsed, choice, previous, got, merged = query_of(asked), Random(plan), BEGINNING, {}, 0
    chosen, folder = named(parsed, plan), folder_of(asked, parsed, choice)
    for n, t in enumerate(asked.boundaries):
        got.update(together(parsed, chosen, folder, (t,), 1 + n % 2, previous))
        previous = t
        if choice.random() < 0.4:
            before = {s: len(files) for s, files in folder.state.items()}
            compact(parsed, chosen, folder, t)
            merged += sum(len(folder.state[s]) < count for s, count in before.items())
    folder.remove()
    assert merged and differences(oracle.answers(asked), got) == []


def test_what_is_replaced_by_each_batch_is_not_merged() -> None:
    asked = query("two-streams")
    with pytest.raises(ValueError, match="nothing to merge"):
        compaction(Lowering(shape(asked), named(asked, "EAP11 running")), "totals0", "files", 10)
