"""The papers' experiments: the statements of a graph give each window's own answers; reports have the shape that people compare."""
from __future__ import annotations

import random

import pytest

from jobs import experiments, kernel
from jobs.experiments import windows as paper_d
from optimizer.coverage.algebra import COVERED, PARTITIONED, Window
from optimizer.coverage.graph import as_written, cheapest, prices
from optimizer.coverage.search import best
from optimizer.coverage.statements import name, statements
from optimizer.errors import ForebayError

UNTIL = 120


def answers(con: kernel.Connection, made: tuple[tuple[str, str], ...]) -> dict[str, list[tuple[int, int]]]:
    for table, sql in made:
        con.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {sql}")
    return {table: con.execute(f"SELECT m, v FROM {table} ORDER BY m").fetchall() for table, _ in made}


@pytest.mark.parametrize(("tumbling", "relation"), [(True, PARTITIONED), (False, COVERED)])
def test_statements_give_each_windows_minimum(tumbling: bool, relation: object) -> None:
    """Beside instances looked at one by one, for shared and factored graphs of mixed sets."""
    values = [random.Random(3).randrange(1000) for _ in range(UNTIL)]
    given = {Window(6, 6), Window(10, 10), Window(15, 15)} if tumbling else {Window(6, 2), Window(8, 4), Window(20, 10), Window(12, 12), Window(7, 3)}
    con = kernel.connect()
    con.execute(f"CREATE TABLE events AS SELECT i AS t, v FROM (SELECT unnest(range({UNTIL})) AS i, unnest({values}) AS v)")
    model = prices(given, relation)     # type: ignore[arg-type]
    for graph in (as_written(given, model), cheapest(given, model), best(given, model).graph):
        found = answers(con, statements(graph, UNTIL))
        for w in given:
            assert found[name(w)] == [(m, min(values[m * w.slide:m * w.slide + w.range])) for m in range((UNTIL - w.range) // w.slide + 1)]


def test_the_papers_setups_are_sixteen() -> None:
    assert len(paper_d.PAPER) == 16 and {int(s.split("-")[1]) for s in paper_d.PAPER} == {n for sizes in paper_d.TABLES.values() for n in sizes}
    made = [list(paper_d.sets(s, 2)) for s in paper_d.PAPER]
    assert all(len(w) == int(s.split("-")[1]) for s, found in zip(paper_d.PAPER, made) for w in found)
    assert made == [list(paper_d.sets(s, 2)) for s in paper_d.PAPER]


@pytest.mark.slow
def test_a_row_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper_d, "EVENT_COUNT", 20_000)
    monkeypatch.setattr(paper_d, "TABLES", {1: (5,)})
    told: list[str] = []
    report = paper_d.table_1(True, told.append)
    assert len(report["rows"]) == len(told) == 8 and report["text"].count("\n") == 9
    for row in report["rows"]:
        assert row["cost"]["factored"][0] >= row["cost"]["paper"][0] >= row["cost"]["shared"][0] >= 1 and row["optimizer_ms"]["most"] < 1000


def test_experiments_are_listed_and_unknown_ones_refused() -> None:
    assert set(experiments.document(["list"])["experiments"]) == set(experiments.EXPERIMENTS)
    with pytest.raises(ForebayError, match="no experiment"):
        experiments.document(["windows-table-9"])
