"""Joins that query groups have in common: which they are, which of them the order over many queries takes first, by
seconds and by equation (2), and when each is made once.
"""
from __future__ import annotations

from dataclasses import replace

from optimizer.expression.types import parse_type
from optimizer.query.model import Catalog
from optimizer.sharing.counted import JOINED, KEYS, MARKS, MET, UNION, Tally
from optimizer.sharing.families.division import BY_KEY, ONE_TASK, FamilyDivision
from optimizer.sharing.families.family import Family, family_program
from optimizer.sharing.families.steering import (
    SubJoinPrice,
    as_seconds,
    by_tuples,
    countable,
    from_seconds,
    priced,
    steered,
    with_joins_of,
)
from optimizer.sharing.families.subjoin import candidates, chosen, pairs
from optimizer.sharing.group import Group, forms, group
from optimizer.sharing.price import STATED
from optimizer.sharing.program import lowering
from optimizer.sql.parse import parse

STREAMS = {"v": "vid lang", "w": "vid usr geo", "c": "usr length", "r": "usr reaction"}
CATALOG = Catalog(10_000_000, tuple(
    (name, "ts", (("ts", parse_type("timestamp")), *((column, parse_type("bigint")) for column in columns.split())))
    for name, columns in STREAMS.items()), ())
VIDEO, USER = "v.vid = w.vid", "w.usr = c.usr"


def text(streams: str, where: str, shown: str = "COUNT(*) AS n", seconds: int = 20) -> str:
    return f"SELECT {shown} FROM {', '.join(f'{s} [WINDOW {seconds} SECONDS]' for s in streams.split())} WHERE {where}"


# The joins of paper E's example: Q1, Q4, Q5; Q2, Q6; Q3; Q7.
PAPER = (text("v w", f"{VIDEO} AND v.lang = 1"), text("v w c", f"{VIDEO} AND {USER} AND w.geo < 3"),
         text("w c r", f"{USER} AND c.usr = r.usr"), text("w c", f"{USER} AND c.length > 5"))


def grouped(*texts: str) -> tuple[Group, ...]:
    queries = {f"q{n}": parse(sql, CATALOG) for n, sql in enumerate(texts)}
    groups = [group({name: queries[name] for name in names}) for names in forms(queries)[0]]
    return tuple(replace(one, chosen=replace(one.plan, parts=1)) for one in groups)


def named(*texts: str) -> dict[str, set[int]]:
    return {sub.key.name: set(sub.numbers) for sub in candidates(grouped(*texts))}


VW, WC = "v 20 s ⋈ w 20 s on vid = vid", "c 20 s ⋈ w 20 s on usr = usr"


def test_the_papers_queries_have_two_joins_in_common() -> None:
    assert named(*PAPER) == {VW: {0, 1}, WC: {1, 2, 3}}


def test_other_windows_or_another_equality_are_another_join() -> None:
    assert named(PAPER[0], text("v w c", f"{VIDEO} AND {USER}", seconds=30)) == {}
    assert named(PAPER[0], text("v w c", f"v.lang = w.vid AND {USER}")) == {}


def test_an_equality_by_way_of_another_stream_counts() -> None:
    by_way = text("v w c", "v.vid = c.usr AND c.usr = w.vid")
    assert named(PAPER[0], by_way)[VW] == {0, 1}


def test_what_would_have_to_be_equal_twice_is_no_sub_join() -> None:
    twice = grouped(text("v w", "v.vid = w.vid AND v.vid = w.usr"))[0]
    itself = grouped("SELECT COUNT(*) AS n FROM v [WINDOW 20 SECONDS], v AS u [WINDOW 20 SECONDS] WHERE v.vid = u.vid")
    assert pairs(twice) == {} and pairs(itself[0]) == {}


def test_a_sub_join_has_a_class_for_all_that_is_selected_of_both() -> None:
    same, other = (text("v w", f"{VIDEO} AND v.lang = {n}", "v.lang AS g, COUNT(*) AS n") + " GROUP BY v.lang"
                   for n in (1, 2))
    (sub,) = candidates(grouped(PAPER[0], same, other))
    assert len(sub.group.classes) == 2 and [reader.classes for reader in sub.readers] == [(0,), (0, 1)]
    assert len(sub.of_reader(0).classes) == 1


def prices(**once: tuple[float, float, float]) -> dict[str, float]:
    """Seconds once and by each, and tuples, of the two joins."""
    seconds: dict[str, float] = {}
    for name, (made_once, each, tuples) in once.items():
        seconds |= as_seconds({"vw": VW, "wc": WC}[name], SubJoinPrice(made_once, each, tuples))
    return seconds


def joins(seconds: dict[str, float], standing: tuple[str, ...] = ()) -> dict[int, str]:
    """The sub-join that each group reads."""
    groups = grouped(*PAPER)
    plans = steered(groups, ONE_TASK, seconds, standing)
    made = chosen([replace(one, chosen=plan) for one, plan in zip(groups, plans)])
    return {number: sub.key.name for sub in made for number in sub.numbers}


def test_the_order_over_all_queries_says_with_whom_a_stream_is_joined_first() -> None:
    """V ⋈ W ⋈ C may begin with either; the cost is divided by those that share it, as the paper divides it."""
    assert joins(prices(vw=(0.1, 0.5, 0), wc=(0.3, 0.9, 0))) == {0: VW, 1: VW, 2: WC, 3: WC}
    assert joins(prices(vw=(0.1, 0.5, 0), wc=(0.12, 0.9, 0))) == {1: WC, 2: WC, 3: WC}


def test_what_does_not_pay_is_made_by_each_and_the_next_join_is_asked() -> None:
    assert joins(prices(vw=(0.4, 0.45, 0), wc=(0.6, 0.5, 0))) == {}
    assert joins(prices(vw=(0.4, 0.45, 0), wc=(0.6, 0.5, 0)), standing=(VW,)) == {0: VW, 1: VW}
    assert joins(prices(vw=(0.1, 0.05, 0), wc=(0.4, 0.9, 0))) == {1: WC, 2: WC, 3: WC}
    assert joins({}) == {}


def test_equation_2_may_say_otherwise() -> None:
    seconds = prices(vw=(0.1, 0.5, 90_000), wc=(0.3, 0.9, 40_000))
    assert by_tuples(grouped(*PAPER), ONE_TASK, seconds) == (WC,)
    assert from_seconds(VW, seconds) == SubJoinPrice(0.1, 0.5, 90_000) and from_seconds("x", seconds) is None


def test_joins_stand_without_counts_as_long_as_tasks_can_make_them() -> None:
    groups = grouped(*PAPER)
    before = dict(zip(("q0", "q1", "q2", "q3"), steered(groups, ONE_TASK, prices(vw=(0.1, 0.5, 0)))))
    assert [sub.numbers for sub in chosen(with_joins_of(groups, ONE_TASK, before))] == [{0, 1}]
    of_comments = FamilyDivision("files", "c")
    assert {sub.key.name for sub in countable(groups, of_comments)} == {WC}
    assert chosen(with_joins_of(groups, of_comments, before)) == ()


def tally(rows: float, met: float) -> Tally:
    counts = {(i, what): (rows, rows) for i in (0, 1) for what in (UNION, KEYS, MARKS, *range(4))}
    return {**counts, (JOINED, MET): (met, 1.0)}


def test_a_join_made_once_pays_with_its_readers_and_not_with_what_meets() -> None:
    wide = [text("v w", f"{VIDEO} AND v.lang < {n}", f"w.geo % {by} AS g, COUNT(*) AS n") + f" GROUP BY w.geo % {by}"
            for by in (2, 3, 4, 5) for n in range(1, 6)]
    (many,) = candidates(grouped(*wide))
    (few,) = candidates(grouped(*wide[:1], wide[5]))
    for sub, met, pays in ((many, 20_000, True), (few, 20_000, False), (few, 2_000_000, False)):
        price = priced(sub, tally(20_000, met), 1, BY_KEY, STATED)
        assert price.pays(len(sub.readers), len(sub.readers), False) == pays, (price, met)


def test_its_rows_are_a_table_that_all_readers_name() -> None:
    groups = grouped(*PAPER)
    plans = steered(groups, ONE_TASK, prices(wc=(0.1, 0.9, 0)))
    family = Family(tuple(replace(one, chosen=plan) for one, plan in zip(groups, plans)))
    program = family_program(family, tuple(map(lowering, family.groups)), (100_000_000,))
    defined = [definition.name for step in program.steps for definition in step.define]
    assert defined.count("join_0_at_0") == 1
    assert ["join_0_at_0" in step.answer for step in program.steps] == [False, True, True, True]
