"""Random groups of queries answered by one work, each compared with its own plain SQL over the raw rows."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest

from jobs.verify.recompute import compare
from optimizer.plan.program import BEGINNING
from optimizer.query.model import Query
from optimizer.sharing.group import forms
from tests import oracle
from tests.differential import query_of, relations_at, scatter
from tests.engine import Folder
from tests.seeds import seed
from tests.sharing import Answers, case, joins_in_common, relatives, row_texts, rows_together, texts, together
from tests.streams import Case


def differences(number: int, several: bool = False, split: str = "before", sliced: bool = False,
                by_tasks: bool = False, made_once: bool = False) -> list[str]:
    """Of one random group, or of a family of them, as one work says it and as each query's plain SQL does.

    `made_once`: of a family whose forms have a join in common, which is made once.
    """
    choice = Random(number)
    rows, count = case(choice), choice.choice([2, 5, 12] if several else [1, 2, 5, 12])
    if several:
        asked = joins_in_common(choice, count) if made_once else relatives(choice, count)
    else:
        asked = texts(choice, count, one_sided=choice.random() < 0.3)
    queries = {name: query_of(replace(rows, sql=sql)) for name, sql in asked.items()}
    names, refused = forms(queries)
    assert (several or len(names) == 1) and not refused, refused
    folder = Folder()
    try:
        for query in queries.values():
            stored(rows, query, folder, choice)
        size, parts = choice.choice([1, 2, len(rows.boundaries)]), choice.choice([1, 2, 3])
        runs = [tuple(rows.boundaries[k:k + size]) for k in range(0, len(rows.boundaries), size)]
        divided = choice.randrange(3) if sliced or several else None
        joins = choice.choice([0, 1, 2] if made_once else [None, 0, 1, 2]) if several else None
        got = {key: answer for run in runs if any(t % q.every == 0 for t in run for q in queries.values())
               for key, answer in together(queries, folder, run, parts, split, divided, by_tasks, joins).items()}
    finally:
        folder.remove()
    return _from_oracle(number, rows, asked, got)


def _from_oracle(number: int, rows: Case, asked: Mapping[str, str], got: Answers) -> list[str]:
    """What each query's plain SQL says otherwise."""
    found = []
    for name, sql in asked.items():
        for t, expected in oracle.answers(replace(rows, sql=sql)).items():
            assert isinstance(expected, pa.Table), expected
            found += [f"{number} {name} {sql} at {t}: {d}" for d in compare(expected, got[name, t])]
    return found


def row_differences(number: int) -> list[str]:
    """Of one random group of row queries, in runs that follow one another."""
    choice = Random(number)
    rows = case(choice)
    asked = row_texts(choice, choice.choice([1, 2, 5, 12, 70]))
    queries = {name: query_of(replace(rows, sql=sql)) for name, sql in asked.items()}
    names, refused = forms(queries)
    assert len(names) == 1 and not refused, (refused, asked)
    folder, previous, got = Folder(), BEGINNING, {}
    try:
        for query in queries.values():
            stored(rows, query, folder, choice)
        size, every = choice.choice([1, 2, len(rows.boundaries)]), queries["q0"].every
        due = [t for t in rows.boundaries if t % every == 0]
        for run in (tuple(due[k:k + size]) for k in range(0, len(due), size)):
            got |= rows_together(queries, folder, run, previous, choice.choice([1, 2, 3]))
            previous = run[-1]
    finally:
        folder.remove()
    return _from_oracle(number, rows, asked, got)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(5000, 5020, 10))
def test_row_queries_get_each_combination_once(start: int) -> None:
    assert [d for number in range(start, start + 10) for d in row_differences(number)] == []


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("start", range(6000, 7000, 100))
def test_many_random_groups_of_row_queries(start: int) -> None:
    assert [d for number in some_of(start) for d in row_differences(number)] == []


def stored(rows: Case, query: Query, folder: Folder, choice: Random) -> None:
    """What the query reads, in random files, each stream once."""
    for name in dict.fromkeys(i.source for i in query.inputs if i.is_stream and i.source not in folder.rows):
        for part in scatter(oracle.stream_table(rows, name), choice):
            folder.add(name, part)
    relations_at(rows, query, folder, 0)


@pytest.mark.slow
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("start", range(3000, 3010, 5))
def test_many_groups_are_merged_by_tasks_alike(start: int, several: bool) -> None:
    assert [d for number in range(start, start + 5) for d in differences(number, several, by_tasks=True)] == []


def some_of(start: int) -> list[int]:
    """A fifth of a hundred seeds, others in each run: all of them would take two cores an hour."""
    return sorted(Random(f"{seed()} {start}").sample(range(start, start + 100), 20))


WAYS = pytest.mark.parametrize("split, sliced", [("before", False), ("after", False), ("before", True),
                                                 ("after", True)])


@WAYS
@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 10, 5))
def test_each_query_is_answered_as_if_it_ran_alone(start: int, split: str, sliced: bool) -> None:
    assert [d for number in range(start, start + 5) for d in differences(number, split=split, sliced=sliced)] == []


@WAYS
@pytest.mark.long
@pytest.mark.timeout(1800)      # half a minute on a machine that is not busy
@pytest.mark.parametrize("start", range(1000, 3000, 100))
def test_many_random_groups(start: int, split: str, sliced: bool) -> None:
    assert [d for number in some_of(start) for d in differences(number, split=split, sliced=sliced)] == []


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 10, 5))
def test_forms_on_common_streams_are_answered_by_one_work(start: int) -> None:
    """Windows, groupings, aggregates, joins and arity differ (E6)."""
    assert [d for number in range(start, start + 5) for d in differences(number, several=True)] == []


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 10, 5))
def test_a_join_of_several_forms_is_made_once_for_all(start: int) -> None:
    """What forms group by, select and join further differs; the windows and keys of two streams are alike (E4)."""
    assert [d for number in range(start, start + 5) for d in differences(number, several=True, made_once=True)] == []


@pytest.mark.long
@pytest.mark.timeout(1800)      # half a minute on a machine that is not busy
@pytest.mark.parametrize("start", range(1000, 2000, 100))
def test_many_random_families_with_joins_made_once(start: int) -> None:
    assert [d for number in some_of(start) for d in differences(number, several=True, made_once=True)] == []


@pytest.mark.long
@pytest.mark.timeout(1800)      # half a minute on a machine that is not busy
@pytest.mark.parametrize("start", range(1000, 3000, 100))
def test_many_random_families(start: int) -> None:
    assert [d for number in some_of(start) for d in differences(number, several=True)] == []
