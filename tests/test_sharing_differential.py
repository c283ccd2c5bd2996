"""Random groups of queries answered by one work, each compared with its own plain SQL over the raw rows."""
from __future__ import annotations

from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest

from jobs.verify import compare
from optimizer.sharing.group import forms
from tests import oracle
from tests.differential import folder_of, query_of, relations_at
from tests.sharing import case, texts, together


def differences(seed: int) -> list[str]:
    """Of one random group, as one work says it and as each query's plain SQL does."""
    choice = Random(seed)
    rows, asked = case(choice), texts(choice, choice.choice([1, 2, 5, 12]), one_sided=choice.random() < 0.3)
    queries = {name: query_of(replace(rows, sql=sql)) for name, sql in asked.items()}
    names, refused = forms(queries)
    assert len(names) == 1 and not refused, refused
    some = next(iter(queries.values()))
    folder = folder_of(rows, some, choice)
    relations_at(rows, some, folder, 0)
    due = tuple(t for t in rows.boundaries if t % some.every == 0)
    size = choice.choice([1, 2, len(due)])
    runs = [due[k:k + size] for k in range(0, len(due), size)]
    try:
        parts = choice.choice([1, 2, 3])
        got = {key: answer for run in runs for key, answer in together(queries, folder, run, parts).items()}
    finally:
        folder.remove()
    found = []
    for name, sql in asked.items():
        for t, expected in oracle.answers(replace(rows, sql=sql)).items():
            assert isinstance(expected, pa.Table), expected
            found += [f"{seed} {name} {sql} at {t}: {d}" for d in compare(expected, got[name, t])]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 40, 10))
def test_each_query_is_answered_as_if_it_ran_alone(start: int) -> None:
    assert [d for seed in range(start, start + 10) for d in differences(seed)] == []


@pytest.mark.long
@pytest.mark.parametrize("start", range(1000, 3000, 100))
def test_many_random_groups(start: int) -> None:
    assert [d for seed in range(start, start + 100) for d in differences(seed)] == []
