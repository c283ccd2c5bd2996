"""Runs of several boundaries, with strings as numbers and several boundaries a statement: answers are the oracle's, and
what they leave behind is what statements of one boundary leave.
"""
from __future__ import annotations

import os
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tests.engine
from optimizer.plan.model import Plan, named
from optimizer.plan.operators.recompute import RecomputedAnswer
from optimizer.plan.program import BEGINNING
from optimizer.query.model import Query
from tests import oracle
from tests.differential import differences, folder_of, query_of, relations_at
from tests.engine import Ask, Folder
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


# Kept sets, of windows of each kind: rows of these cases come late, and their groups come and go.
KEPT = [("two-streams", "EAP11 running"), ("two-streams", "EAP10 running"), ("two-streams", "EAP01 running"),
        ("extremes", "EAP11 running"), ("extremes", "EAP01 running"), ("relation", "EAP11 running"),
        ("hopping", "EAP1 running"), ("landmark", "EAP11 running"), ("two-streams", "EAP11 expire"),
        ("two-streams", "LAP expire"), ("extremes", "EAP01 expire"), ("relation", "EAP10 expire"),
        ("hopping", "EAP1 expire"), ("landmark", "EAP11 expire"), ("across", "LAP expire"),
        ("two-streams", "EAP11 retract"), ("two-streams", "LAP retract"), ("relation", "EAP11 retract"),
        ("relation", "LAP retract"), ("hopping", "EAP1 retract"), ("landmark", "EAP11 retract")]


@pytest.mark.parametrize("parts, size", [(1, 5), (2, 3)])
@pytest.mark.parametrize("name, plan", KEPT)
def test_kept_sets_of_several_boundaries_are_what_single_ones_leave(name: str, plan: str, parts: int, size: int,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    """By statements of one boundary, of two and of all of a run: answers as the oracle's, and after each run the same
    state.
    """
    asked = case(name)
    query = query_of(asked)
    chosen, boundaries = named(query, plan), [t for t in asked.boundaries if t % query.every == 0]
    runs = [tuple(boundaries[first:first + size]) for first in range(0, len(boundaries), size)]
    expected, lives = oracle.answers(asked), []
    for together in (1, 2, size):
        monkeypatch.setattr(tests.engine, "_together", lambda _, many=together: many)
        folder = folder_of(asked, query, Random(name))
        answers, states = _lived(asked, query, chosen, folder, runs, parts)
        folder.remove()
        assert differences(expected, answers) == [], together
        lives.append(states)
    assert lives[1] == lives[0] and lives[2] == lives[0] and any(rows for state in lives[0] for rows in state.values())


def _lived(asked: Any, query: Query, plan: Plan, folder: Folder, runs: list[tuple[int, ...]],
           parts: int) -> tuple[dict[int, pa.Table], list[dict[str, list[str]]]]:
    """The answers of all runs, and the rows of each state set after each of them."""
    answers, states, previous = dict[int, pa.Table](), list[dict[str, list[str]]](), BEGINNING
    for run in runs:
        relations_at(asked, query, folder, run[0])
        answers.update(tests.engine.together(query, plan, folder, run, parts, previous))
        previous = run[-1]
        states.append({name: sorted(str(row) for file in files for row in _rows(folder, name, file.path))
                       for name, files in folder.state.items()})
    return answers, states


def _rows(folder: Folder, name: str, path: str) -> list[dict[str, Any]]:
    """A sum over no value is NULL or 0, whichever way it came to that: its count says that there is none."""
    rows = pq.read_table(os.path.join(folder.root, "state", name, path)).to_pylist()
    sums = ("m",) if name.startswith("totals") else ()
    return [{column: value or 0 if column.startswith(sums) else value for column, value in row.items()} for row in rows]
