"""Runs of several boundaries, with strings as numbers and several boundaries a statement: answers are the oracle's."""
from __future__ import annotations

from random import Random

import pytest

import tests.engine
from optimizer.plan.model import named
from optimizer.plan.operators.recompute import RecomputedAnswer
from optimizer.plan.program import BEGINNING
from tests import oracle
from tests.differential import differences, folder_of, query_of, relations_at
from tests.engine import Ask
from tests.optimizer.choice.test_explain import case

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("size", [3, 4])
@pytest.mark.parametrize("name, plan", [("two-streams", "LAP recompute"), ("two-streams", "EAP01 recompute"),
                                        ("two-streams", "EAP10 recompute"), ("two-streams", "EAP11 recompute"),
                                        ("extremes", "EAP10 recompute"), ("extremes", "LAP recompute"),
                                        ("relation", "LAP recompute"), ("relation", "EAP10 recompute"),
                                        ("relation", "EAP11 recompute")])
def test_answers_of_several_boundaries_at_once(name: str, plan: str, size: int, parts: int,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ask, "_divides_boundaries", False)      # runs of fewer have a test of their own
    programs = []
    program = RecomputedAnswer.program

    def noted(*args: object) -> object:
        programs.append(program(*args))      # type: ignore[arg-type]
        return programs[-1]
    monkeypatch.setattr(RecomputedAnswer, "program", noted)
    asked = case(name)
    query, folder, previous, got = query_of(asked), folder_of(asked, query_of(asked), Random(name)), BEGINNING, {}
    chosen, boundaries = named(query, plan), [t for t in asked.boundaries if t % query_of(asked).every == 0]
    for first in range(0, len(boundaries), size):
        run = tuple(boundaries[first:first + size])
        relations_at(asked, query, folder, run[0])
        got.update(tests.engine.together(query, chosen, folder, run, parts, previous))
        previous = run[-1]
    folder.remove()
    assert differences(oracle.answers(asked), got) == []
    assert size % 2 or any(made.codes for made in programs)      # runs of even length are coded (tests.engine)
