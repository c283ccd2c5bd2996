"""The paper's way to share a join (E, section 3): cells meet on the key with their query-sets, which must intersect,
and are split by query when all is merged.

A cell's query-set are the classes whose choice its marks pass, a bit each. What meets is merged by (groups, query-sets)
before any class is told apart: few statements a cell where few cells meet, too many where each meets hundreds.
"""
from __future__ import annotations

from collections.abc import Mapping

from optimizer.plan.lowering import Lowering
from optimizer.plan.operators.join import joined, merged_answer
from optimizer.plan.operators.sets import grouped
from optimizer.plan.program import Definition
from optimizer.sharing.expand import CHOICE, CLASS, choices_table, inside
from optimizer.sharing.group import Group
from optimizer.sharing.marks import WORD, Marks

SET = "_m"              # the number of a query-set, among those of its input


def split_after(group: Group, ctx: Lowering, cells: Mapping[int, str], suffix: str, prefix: str,
                more: tuple[tuple[str, str], ...]) -> tuple[tuple[Definition, ...], str]:
    """Relations to define, and the group's answer by class and `more` columns, from each input's cells."""
    apart = tuple(i for i in group.told_apart if group.marks[i].names)
    words = set_words(group)
    define: list[Definition] = []
    sources = {}
    for i in ctx.inputs:
        sources[i] = f"(SELECT * FROM {f'{prefix}numbered_{i}{suffix}' if i in apart else cells[i]})"
    for i in apart:
        define += _query_sets(group, ctx, i, cells[i], suffix, prefix, several=len(apart) > 1)
    met = joined(ctx, sources, extra=(*((f"{SET}{i}", f"v{i}.{SET}") for i in apart), *more),
                 where=_sets_intersect(ctx, apart, words))
    numbers = ", ".join(f"{SET}{i}" for i in apart)
    split = (f"SELECT p.* EXCLUDE ({numbers}), s.{CLASS} FROM {prefix}met{suffix} AS p "
             f"JOIN {prefix}met_classes{suffix} AS s USING ({numbers})")
    define.append(Definition(f"{prefix}met{suffix}", met, True))
    define += _classes_of_met(apart, words, suffix, prefix)
    define.append(Definition(f"{prefix}split{suffix}", split, True))
    # In one statement with the join the engine would also merge below it, which is slower by far.
    by = (CLASS, *(name for name, _ in more))
    return tuple(define), merged_answer(ctx, f"SELECT * FROM {prefix}split{suffix}", extra=by)


def passing(marks: Marks, relation: str, choices: str, listed: str, passed: str) -> tuple[Definition, ...]:
    """The choices without classes (`listed`), and the marks of a relation's rows with each class that they pass
    (`passed`).
    """
    names = ", ".join(marks.names)
    chosen = (f"(SELECT d.*, k.{CHOICE} FROM (SELECT DISTINCT {names} FROM {relation}) AS d JOIN {listed} AS k ON "
              f"{inside(marks)})")
    by_class = f"SELECT {names}, k.{CLASS} FROM {chosen} AS c JOIN {choices} AS k ON c.{CHOICE} = k.{CHOICE}"
    return (Definition(listed, f"SELECT DISTINCT * EXCLUDE ({CLASS}) FROM {choices}", True),
            Definition(passed, by_class, True))


def set_words(group: Group) -> range:
    """The words of a query-set: a bit for each class."""
    return range(-(-len(group.classes) // WORD))


def words_of(group: Group) -> str:
    """The words that the classes of a group of rows make, as aggregates."""
    return ", ".join(
        f"bit_or(CASE WHEN {CLASS} // {WORD} = {w} THEN CAST(1 AS BIGINT) << CAST({CLASS} % {WORD} AS BIGINT) ELSE 0 "
        f"END) AS _q{w}"
        for w in set_words(group))


def _query_sets(group: Group, ctx: Lowering, i: int, cells: str, suffix: str, prefix: str,
                several: bool) -> list[Definition]:
    """What `passing` defines; marks with the number and the words of their query-set (query_sets_0); cells by number,
    with the words if they are to be compared (numbered_0).

    Cells of no query end here.
    """
    marks, names = group.marks[i], _words(set_words(group))
    mark_names = ", ".join(marks.names)
    listed, passed, sets, numbered_cells = (
        f"{prefix}{name}_{i}{suffix}" for name in ("listed", "passed", "query_sets", "numbered"))
    numbered = (f"SELECT *, dense_rank() OVER (ORDER BY {names}) AS {SET} FROM (SELECT {mark_names}, {words_of(group)} "
                f"FROM {passed} GROUP BY {mark_names}) AS b")
    with_number = (f"(SELECT * FROM {cells} JOIN (SELECT {mark_names}, {SET} FROM {sets}) AS s "
                   f"USING ({mark_names})) AS q")
    merged = f"SELECT * EXCLUDE ({mark_names}) FROM {with_number}"
    if marks.bits or len(marks.scales) > 1:
        merged = grouped(ctx, i, with_number, (SET,))
    if several:
        merged = (f"SELECT g.*, {names} FROM ({merged}) AS g JOIN (SELECT DISTINCT {SET}, {names} FROM {sets}) AS w "
                  f"USING ({SET})")
    return [
        *passing(marks, cells, choices_table(i, prefix), listed, passed),
        Definition(sets, numbered, True),
        Definition(numbered_cells, merged, True),
    ]


def _sets_intersect(ctx: Lowering, apart: tuple[int, ...], words: range) -> str:
    """qs1 & qs2 & … ≠ 0, for each further input as soon as it is joined."""
    order = [i for i in ctx.plan.order if i in apart]
    conditions = []
    for count in range(2, len(order) + 1):
        intersections = [" & ".join(f"v{i}._q{w}" for i in order[:count]) for w in words]
        conditions.append(f"({' OR '.join(f'({bits}) <> 0' for bits in intersections)})")
    return " AND ".join(conditions) or "TRUE"


def _classes_of_met(apart: tuple[int, ...], words: range, suffix: str, prefix: str) -> tuple[Definition, ...]:
    """Each distinct combination of query-sets that met, with their intersection; the same with each of its classes."""
    numbers = ", ".join(f"{SET}{i}" for i in apart)
    intersections = [" & ".join(f"c{i}._q{w}" for i in apart) for w in words]
    bits = ", ".join(f"{intersection} AS _q{w}" for w, intersection in zip(words, intersections))
    listed = "".join(
        f" JOIN (SELECT DISTINCT {SET}, {_words(words)} FROM {prefix}query_sets_{i}{suffix}) AS c{i} "
        f"ON c{i}.{SET} = d.{SET}{i}"
        for i in apart)
    common = f"SELECT d.*, {bits} FROM (SELECT DISTINCT {numbers} FROM {prefix}met{suffix}) AS d{listed}"
    each = f"(SELECT n, CAST(1 AS BIGINT) << n AS bit FROM range({WORD}) AS r(n)) AS r"
    by_word = (
        f"SELECT {numbers}, {w * WORD} + r.n AS {CLASS} FROM {prefix}met_sets{suffix} AS b JOIN {each} "
        f"ON (b._q{w} & r.bit) <> 0"
        for w in words)
    return (Definition(f"{prefix}met_sets{suffix}", common, True),
            Definition(f"{prefix}met_classes{suffix}", " UNION ALL ".join(by_word), True))


def _words(words: range) -> str:
    return ", ".join(f"_q{w}" for w in words)
