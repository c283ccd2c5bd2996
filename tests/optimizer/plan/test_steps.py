"""A boundary's statements by each way of keeping, as text that an engine accepts: what came, what left, and from where
the answer is.
"""
from __future__ import annotations

import pytest

from jobs.engine import kernel
from jobs.engine.work import relation
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import KEEPING, named
from optimizer.plan.program import BEGINNING, Program
from optimizer.plan.tree import ANSWERS, program
from optimizer.query.shape import shape
from tests.optimizer.planning import BATCH, QUERIES, query

T = 1_000 * BATCH


def made(name: str, plan: str, boundaries: tuple[int, ...] = (T,), previous: int = T - BATCH) -> Program:
    asked = query(name)
    return program(Lowering(shape(asked), named(asked, plan)), boundaries, previous)


def run(found: Program) -> list[int]:
    """Rows of each answer over sources without rows."""
    con = kernel.shared()
    for source in found.sources:
        con.execute(f"CREATE TEMP VIEW {source.name} AS {relation(con, source, ())}")
    for name, sql, kept in (*found.setup, *(d for step in found.steps for d in step.define)):
        con.execute(f"CREATE TEMP {'TABLE' if kept else 'VIEW'} {name} AS {sql}")
    counts = [len(con.execute(step.answer).fetchall()) for step in found.steps]
    con.close()
    return counts


@pytest.mark.parametrize("plan", ["LAP recompute", "EAP10 recompute", "EAP11 running", "EAP01 retract", "EAP11 expire"])
def test_over_nothing_there_is_no_partial(plan: str) -> None:
    assert run(made("two-streams", plan, (T, T + BATCH))) == [0, 0]


@pytest.mark.parametrize("name", QUERIES)
def test_every_query_has_statements_that_an_engine_accepts(name: str) -> None:
    assert run(made(name, "LAP recompute")) == [0]


def test_each_way_of_keeping_has_its_step() -> None:
    assert set(ANSWERS) == set(KEEPING)


def test_later_steps_build_on_the_relations_of_earlier_ones() -> None:
    for plan, kept in (("EAP11 running", "totals_0"), ("LAP retract", "answer"), ("LAP expire", "answer")):
        first, second = made("two-streams", plan, (T, T + BATCH)).steps
        assert f"{kept}_after_0" in {n for n, _, _ in first.define}
        assert any(f"{kept}_after_0" in sql for n, sql, _ in second.define if n.startswith(kept)), plan


def test_running_adds_what_came_and_takes_away_what_left() -> None:
    (step,) = made("two-streams", "EAP10 running").steps
    (name, sql, kept), = step.define
    assert (name, kept) == ("totals_0_after_0", True)
    assert f"_in > {T - BATCH} AND _in <= {T} AND _out >= {T}" in sql
    assert f"_in <= {T - BATCH} AND _out >= {T - BATCH} AND _out < {T}" in sql
    assert "FROM totals_0_before " in sql and sql.rstrip().endswith("HAVING sum(c) <> 0")


def test_retract_has_a_signed_term_for_each_window_and_one_from_the_beginning() -> None:
    (step,), (fresh,) = (made("two-streams", "LAP retract", previous=p).steps for p in (T - BATCH, BEGINNING))
    assert [s.define[0][1].count("CAST(-1 AS BIGINT)") for s in (step, fresh)] == [2, 1]


def test_a_relation_brings_no_change() -> None:
    (step,) = made("relation", "LAP expire").steps
    made_new = step.define[0][1]
    assert "UNION ALL" not in made_new and "least(v0._out, v1._out)" in made_new


def test_expire_reads_only_what_has_not_ended() -> None:
    (step,) = made("two-streams", "EAP11 expire").steps
    (new, _, materialised), (all_, kept, view) = step.define
    assert (new, all_, materialised, view) == ("added_at_0", "answer_after_0", True,
                                               False) and f"_e >= {T}" in kept and f"_e >= {T}" in step.answer


def test_recompute_keeps_nothing_between_steps() -> None:
    assert all(not s.define for s in made("two-streams", "EAP11 recompute", (T, T + BATCH)).steps)


MANY = tuple(T + n * BATCH for n in range(5))


def statements(name: str, plan: str, together: int, boundaries: tuple[int, ...] = MANY) -> Program:
    asked = query(name)
    return program(Lowering(shape(asked), named(asked, plan), together=together), boundaries, BEGINNING)


def test_one_statement_answers_several_boundaries_from_partials() -> None:
    found = statements("two-streams", "EAP11 recompute", 2)
    assert [step.boundary for step in found.steps] == [MANY[1], MANY[3], MANY[4]] and run(found) == [0, 0, 0]
    assert run(statements("relation", "EAP11 recompute", 9)) == [0]


@pytest.mark.parametrize("name, plan", [("two-streams", "LAP recompute"), ("two-streams", "EAP01 recompute"),
                                        ("across", "LAP recompute"), ("relation", "LAP recompute")])
def test_one_statement_answers_several_boundaries_from_rows(name: str, plan: str) -> None:
    found = statements(name, plan, 9)
    assert len(found.steps) == 1 and found.setup == statements(name, plan, 1).setup and run(found) == [0]


@pytest.mark.parametrize("name", ["rows", "distinct"])
def test_rows_and_what_does_not_merge_have_a_statement_each_boundary(name: str) -> None:
    assert statements(name, "LAP recompute", 9) == statements(name, "LAP recompute", 1)


@pytest.mark.parametrize("name, plan", [("two-streams", "EAP11 running"), ("two-streams", "EAP01 running"),
                                        ("extremes", "EAP11 running"), ("hopping", "EAP1 running"),
                                        ("landmark", "EAP11 running"), ("relation", "EAP10 running")])
def test_running_totals_of_several_boundaries_are_made_by_one_statement(name: str, plan: str) -> None:
    found = statements(name, plan, 2)
    assert [step.define for step in found.steps] == [(), (), ()] and run(found) == [0, 0, 0]
    assert not any("_after_" in definition.name for definition in found.setup)


@pytest.mark.parametrize("name, plan", [("two-streams", "EAP11 expire"), ("two-streams", "LAP expire"),
                                        ("extremes", "EAP11 expire"), ("relation", "EAP10 expire"),
                                        ("two-streams", "EAP11 retract"), ("two-streams", "LAP retract"),
                                        ("landmark", "EAP11 retract"), ("relation", "EAP11 retract")])
def test_what_several_boundaries_change_of_a_kept_answer_is_made_by_one_statement(name: str, plan: str) -> None:
    """The next ones go on from what these have left, and of it the last is written."""
    found = statements(name, plan, 2)
    assert [step.boundary for step in found.steps] == [MANY[1], MANY[3], MANY[4]] and run(found) == [0, 0, 0]
    defined = [[definition.name for definition in step.define] for step in found.steps]
    assert [names[-1] for names in defined] == ["answer_after_1", "answer_after_3", "answer_after_4"]
    assert any("FROM answer_after_1" in definition.sql for definition in found.steps[1].define)
    (write,) = (write for write in found.writes if write.set == "answer")
    read = ("added_at_1", "added_at_3", "added_at_4") if plan.endswith("expire") else ("answer_after_4",)
    assert all(name in write.sql for name in read)


@pytest.mark.parametrize("together", [2, 9])
@pytest.mark.parametrize("plan", ["EAP11 recompute", "EAP11 running", "EAP11 expire", "EAP11 retract"])
def test_the_statements_of_one_boundary_stay_as_they_are(plan: str, together: int) -> None:
    assert statements("two-streams", plan, together, (T,)) == statements("two-streams", plan, 1, (T,))


def test_what_no_later_boundary_reads_leaves_memory() -> None:
    for plan, kept in (("EAP11 running", ("totals_0", "totals_1")), ("EAP11 retract", ("answer",))):
        steps = statements("two-streams", plan, 1).steps
        assert [step.drop for step in steps] == [(), *(tuple(f"{name}_after_{n}" for name in kept) for n in range(4))]


def test_a_long_run_does_not_stack_views_without_end() -> None:
    found = statements("two-streams", "EAP11 expire", 1, tuple(T + n * BATCH for n in range(40)))
    tables = [name for step in found.steps for name, _, is_table in step.define if is_table and "answer" in name]
    assert tables == ["answer_after_15", "answer_after_31"]


def coded(name: str, plan: str, boundaries: tuple[int, ...] = MANY) -> Program:
    asked = query(name)
    return program(Lowering(shape(asked), named(asked, plan), coded=True), boundaries, BEGINNING)


def test_strings_that_several_boundaries_join_and_group_by_become_numbers() -> None:
    """`user` of both streams has one enumeration, `page` its own."""
    codes = coded("two-streams", "LAP recompute").codes
    assert codes is not None
    assert sorted(name for name, _ in codes.types) == ["codes_a0_0", "codes_a0_1"]
    assert [name for name, _, _ in codes.tables] == ["input_0", "input_1"] and codes.drop == ()
    joined_values = next(sql for name, sql in codes.types if "uncoded_1" in sql)
    assert "uncoded_0" in joined_values


@pytest.mark.parametrize("name, plan, boundaries", [("two-streams", "LAP recompute", (T,)),
                                                    ("across", "LAP recompute", MANY),
                                                    ("distinct", "LAP recompute", MANY),
                                                    ("two-streams", "EAP11 running", MANY)])
def test_where_strings_are_more_than_equal_or_joined_once_they_stay(
        name: str, plan: str, boundaries: tuple[int, ...]) -> None:
    assert coded(name, plan, boundaries).codes is None
