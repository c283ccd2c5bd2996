"""Which queries share, how their selections are told apart, and what a group knows of its members."""
from __future__ import annotations

import pytest

from optimizer.plan.operators.operator import Run
from optimizer.query.model import Query
from optimizer.query.normal import normal
from optimizer.sharing.group import Group, alone, form, forms, group
from optimizer.sharing.marks import WORD, marks
from optimizer.sharing.program import lowering, shared_program
from optimizer.sharing.rows import rows_program
from tests.optimizer.planning import BATCH, query

JOINED = ("SELECT v.page, COUNT(*) AS n FROM views AS v [WINDOW 1 MINUTE], clicks AS c [WINDOW 40 SECONDS] WHERE "
          "v.user = c.user{more} GROUP BY v.page")


def asked(*selections: str) -> dict[str, Query]:
    return {f"q{n}": query(JOINED.format(more=f" AND {s}" if s else "")) for n, s in enumerate(selections)}


def grouped(*selections: str) -> Group:
    return group(asked(*selections))


def test_aliases_and_orders_leave_no_trace() -> None:
    one = query(
        "SELECT a.page, a.user, COUNT(*) AS n, SUM(b.amount) AS s FROM views AS a [WINDOW 1 MINUTE], clicks AS b "
        "[WINDOW 40 SECONDS] "
        "WHERE a.user = b.user AND a.ms < 5 AND b.amount > 1 GROUP BY a.page, a.user")
    other = query(
        "SELECT x.page, x.user, COUNT(*) AS n, SUM(y.amount) AS s FROM clicks AS y [WINDOW 40 SECONDS], views AS x "
        "[WINDOW 1 MINUTE] "
        "WHERE y.amount > 1 AND y.user = x.user AND x.ms < 5 GROUP BY x.user, x.page")
    assert one != other and normal(one) == normal(other)


@pytest.mark.parametrize("other", [
    "v.user = c.user AND v.ms > c.amount GROUP BY v.page", "v.user = c.user GROUP BY v.user",
    "v.page = c.user GROUP BY v.page"
])
def test_another_join_or_grouping_is_another_form(other: str) -> None:
    text = f"SELECT COUNT(*) AS n FROM views AS v [WINDOW 1 MINUTE], clicks AS c [WINDOW 40 SECONDS] WHERE {other}"
    assert form(query(text)) != form(asked("")["q0"])


def test_what_can_fail_is_shared_only_by_those_that_all_read_it() -> None:
    text = JOINED.format(more="{more}").replace("COUNT(*) AS n", "SUM({x}) AS n")
    plain, fails, again = (query(text.format(x=x, more=more))
                           for x, more in (("v.ms", ""), ("10 % v.ms", ""), ("10 % v.ms", " AND c.amount > 3")))
    assert form(plain) != form(fails) == form(again)


def test_what_cannot_share_says_why() -> None:
    names, refused = forms({"a": query("distinct"), "b": query("two-streams")})
    assert names == (("b",),) and "count_distinct" in refused["a"]


ROWS = ("SELECT {shown} FROM views AS v [WINDOW 1 MINUTE], clicks AS c [WINDOW 40 SECONDS] WHERE v.user = "
        "c.user{more}")


def rows_grouped(*shown: str) -> Group:
    return group({f"q{n}": query(ROWS.format(shown=s, more=f" AND v.ms < {n}")) for n, s in enumerate(shown)})


def test_row_queries_share_with_row_queries_whatever_they_select_and_show() -> None:
    texts = [ROWS.format(shown=shown, more=more) for shown, more in (
        ("*", ""), ("v.page", " AND v.ms < 5"), ("v.ms / c.amount AS r", " AND c.amount > 1"))]
    more = {"sums": query(JOINED.format(more="")), "other": query(texts[1].replace("40", "30"))}
    names, refused = forms({**{f"q{n}": query(text) for n, text in enumerate(texts)}, **more})
    assert names == (("q0", "q1", "q2"), ("sums",), ("other",)) and not refused


def test_row_queries_read_what_any_of_them_shows_once() -> None:
    made = rows_grouped("v.page, c.amount", "c.amount AS a, v.ms", "v.page, c.amount")
    assert [expr.name for _, expr in made.common.outputs] == ["page", "amount", "ms"]      # type: ignore[attr-defined]
    assert [dict(t.members) for t in made.templates] == [{"q0": 0, "q2": 2}, {"q1": 1}]


def test_rows_meet_where_their_query_sets_do_and_each_template_asks_for_its_own_classes() -> None:
    made = group({f"q{n}": query(ROWS.format(shown="v.page" if n < WORD else "c.amount",
                                             more=f" AND v.ms < {n} AND c.amount > {n}")) for n in range(WORD + 2)})
    first, second = rows_program(made, lowering(made), Run((100 * BATCH,), 99 * BATCH)).steps
    assert f"(v0._q0 & v1._q0 & {2**WORD - 1}) <> 0" in first.answer and "_q1" not in first.answer
    assert "(v0._q1 & v1._q1 & 3) <> 0" in second.answer and "_q0" not in second.answer
    assert (first.number, second.number) == (0, 1) and first.answer.count("UNION ALL") == 1      # a term a stream


def test_row_queries_that_select_alike_have_no_query_sets() -> None:
    made = group({name: query(ROWS.format(shown=shown, more=" AND v.ms < 5")) for name, shown in (
        ("a", "v.page"), ("b", "v.page"), ("c", "v.ms"))})
    program = rows_program(made, lowering(made), Run((100 * BATCH,), 99 * BATCH))
    assert not any("_q0" in text for text in (*(d.sql for d in program.setup), *(s.answer for s in program.steps)))


def test_a_selection_that_can_fail_stays_alone() -> None:
    assert "selection" in (alone(asked("10 % v.ms = 1")["q0"]) or "")


def test_equal_selections_are_one_choice_and_what_all_have_is_no_choice() -> None:
    made = grouped("v.ms < 5 AND c.amount > 1", "c.amount > 1 AND v.ms < 7", "v.ms < 5 AND c.amount > 1")
    # clicks come first in normal form
    assert [len(c) for c in made.choices] == [1, 2] and len(made.common.selections) == 1
    assert made.classes == ((0, 0), (0, 1)) and dict(made.templates[0].members) == {"q0": 0, "q1": 1, "q2": 0}


def test_aggregates_are_united_and_each_query_keeps_its_own() -> None:
    made = group({"a": query("two-streams"), "b": query(JOINED.format(more=""))})
    assert len(made.common.aggregates) == 3 and len(made.templates) == 2
    assert {t.query.columns[0][0] for t in made.templates} == {"page"}


def test_ranges_of_one_expression_are_one_number() -> None:
    found = marks([grouped("v.ms < 5", "v.ms <= 5", "v.ms < 9", "").choices[1][n] for n in range(4)])
    assert (len(found.scales), found.bits, found.direction) == (1, (), "below")
    assert [c.spans[0] for c in found.choices] == [(0, 1), (0, 2), (0, 3), (0, 5)]      # the last takes NULL as well
    assert found.reach == ((0, 5),)


def test_two_sided_ranges_and_equalities_are_spans() -> None:
    found = marks([
        grouped("v.ms = 5", "v.ms BETWEEN 3 AND 5", "v.ms > 5", "v.ms > 8 AND v.ms < 2").choices[1][n] for n in range(4)
    ])
    spans = [c.spans[0] for c in found.choices]
    assert found.direction == "between" and spans[0] == (3, 4) and spans[1] == (
        2, 4) and spans[2][0] == 4 and spans[3][0] == spans[3][1]


def test_other_predicates_are_bits_in_words_each_evaluated_once() -> None:
    many = [f"v.page LIKE '%{n}'" for n in range(WORD + 3)]
    found = marks(grouped(*many, f"{many[0]} AND {many[WORD]}").choices[1])
    assert (len(found.bits), found.words, found.names) == (WORD + 3, 2, ("_w0", "_w1"))
    assert [bin(m).count("1") for m in found.choices[-1].masks] == [1, 1]


def test_the_join_agrees_on_the_class_where_both_sides_have_one() -> None:
    made = grouped("v.ms < 5 AND c.amount > 1", "v.ms < 7 AND c.amount > 2")
    (step,) = shared_program(made, lowering(made), (100 * BATCH,)).steps
    assert "v0._class = v1._class" in step.answer and step.answer.count("_class AS _class") == 1
    alike = grouped("v.ms < 5", "v.ms < 7")
    assert "v0._class = v1._class" not in shared_program(alike, lowering(alike), (100 * BATCH,)).steps[0].answer


def test_several_boundaries_are_one_more_attribute_of_cells_and_sets() -> None:
    made, boundaries = grouped("v.ms < 5 AND c.amount > 1", "v.ms < 7 AND c.amount > 2"), (1000 * BATCH, 1001 * BATCH)
    (step,) = shared_program(made, lowering(made, together=2), boundaries).steps
    assert step.boundary == boundaries[-1]
    assert "v0._t = v1._t" in step.answer and "CAST(_t AS BIGINT) AS _t" in step.answer
    apart = shared_program(made, lowering(made), boundaries).steps
    assert [one.boundary for one in apart] == [*boundaries] and not any("v0._t" in one.answer for one in apart)


def test_a_boundary_alone_has_its_own_statements() -> None:
    made = grouped("v.ms < 5", "v.ms < 7")
    assert shared_program(made, lowering(made, together=9), (BATCH,)) == shared_program(made, lowering(made), (BATCH,))


@pytest.mark.parametrize("together", [1, 2, 9])
def test_what_is_counted_is_of_the_last_boundary_however_many_a_statement_answers(together: int) -> None:
    made, boundaries = grouped("v.ms < 5", "v.ms < 7"), tuple(n * BATCH for n in range(100, 105))
    *steps, counted = shared_program(made, lowering(made, together=together), boundaries, count=True).steps
    defined = [name for step in (*steps, counted) for name, _, _ in step.define]
    assert counted.boundary == boundaries[-1] and len(set(defined)) == len(defined)
    assert all(f"cells_{i}_at_4" in counted.answer and f"cells_{i}_at_4" in defined for i in (0, 1))
