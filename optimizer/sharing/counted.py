"""What a group's work counts of its own cells, now and then: for equation (2) of paper E, and for the price of the ways
to do it (optimizer.sharing.ways).

Of each input rows and cells by selection and of their union, distinct keys and sets, what the heaviest key has; of the
join how many cells meet.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

from optimizer.papers.sharing import Side, cost
from optimizer.plan.division import by_key, divided
from optimizer.plan.lowering import Lowering
from optimizer.plan.program import Step
from optimizer.sharing.expand import CHOICE, CLASS, choices_table, inside
from optimizer.sharing.group import Group

UNION, KEYS, HEAVY, MARKS, MET = -1, -2, -3, -4, -5        # beside the numbers of choices
JOINED = -1                                                # beside the numbers of inputs
# By input and what: rows and cells; of KEYS keys and sets; of MET cells that meet, and those of the key with most.
Tally = Mapping[tuple[int, int], tuple[float, float]]


def countable(group: Group) -> bool:
    """Whether a key is common to all of several inputs."""
    return len(group.common.inputs) > 1 and bool(group.keyed)


def numbered(number: int) -> int:
    """The answer's number of what is counted of a group."""
    return -1 - number


def counting(group: Group, ctx: Lowering, t: int, cells: Mapping[int, str], prefix: str = "", number: int = 0) -> Step:
    """(_t, input, what, rows, cells) at t; an input that each task has whole is counted by the first."""
    common = ctx.shape.common_key()
    assert common is not None
    keys: dict[int, str] = {}
    for i in ctx.inputs:
        of_any_query = f"(SELECT * FROM {cells[i]}{_of_any_query(group, i, cells[i], choices_table(i, prefix))})"
        keys[i] = f"(SELECT {common[i].name} AS k, count(*) AS n, sum(c) AS c FROM {of_any_query} AS u GROUP BY 1)"
    product = " * ".join(f"CAST(b{i}.n AS DOUBLE)" for i in keys)
    tables = " JOIN ".join(f"{sql} AS b{i}" + (f" ON b{i}.k = b0.k" if i else "") for i, sql in keys.items())
    parts = [f"SELECT {JOINED}, {MET}, sum({product}), max({product}) FROM {tables}"]
    for i in ctx.inputs:
        if ctx.part == 0 or divided(ctx, i):
            parts += _counts(group, ctx, i, cells[i], keys[i], choices_table(i, prefix))
    union = " UNION ALL ".join(f"({part})" for part in parts)
    numbers = ", ".join(f"CAST({name} AS BIGINT) AS {name}" for name in ("input", "what"))
    columns = f"{numbers}, " + ", ".join(f"CAST(coalesce({name}, 0) AS DOUBLE) AS {name}" for name in ("rows", "cells"))
    return Step(t, (), f"SELECT CAST({t} AS BIGINT) AS _t, {columns} FROM ({union}) AS q(input, what, rows, cells)",
                numbered(number))


def _of_any_query(group: Group, i: int, cells: str, choices: str) -> str:
    """A join that leaves only cells of any query, where that is not all of them."""
    marks = group.marks[i]
    if i not in group.told_apart or not marks.names or marks.direction in ("below", "above"):
        return ""
    names = ", ".join(marks.names)
    listed = f"(SELECT DISTINCT * EXCLUDE ({CLASS}) FROM {choices}) AS k"
    return (f" JOIN (SELECT {names} FROM (SELECT DISTINCT {names} FROM {cells}) AS d SEMI JOIN {listed} ON "
            f"{inside(marks)}) AS a USING ({names})")


def _counts(group: Group, ctx: Lowering, i: int, cells: str, keys: str, choices: str) -> list[str]:
    """What is counted of input i, a SELECT each."""
    names = ", ".join(a.name for a in ctx.shape.attributes[i])
    selects = [
        f"SELECT {i}, {KEYS}, count(*), (SELECT count(*) FROM (SELECT DISTINCT {names} FROM {cells})) FROM {keys} AS b",
        f"SELECT {i}, {HEAVY}, max(c), max(n) FROM {keys} AS b"
    ]
    if i not in group.told_apart or not group.marks[i].names:
        return [
            *selects,
            f"SELECT {i}, n, (SELECT sum(c) FROM {cells}), (SELECT count(*) FROM {cells}) FROM (VALUES (0), ({UNION})) "
            "AS v(n)",
            f"SELECT {i}, {MARKS}, 1, 0"
        ]
    mark_names = ", ".join(group.marks[i].names)
    listed = f"(SELECT DISTINCT * EXCLUDE ({CLASS}) FROM {choices}) AS k"
    merged = f"(SELECT {mark_names}, sum(c) AS c, count(*) AS n FROM {cells} GROUP BY {mark_names}) AS d"
    condition = inside(group.marks[i]) or "TRUE"
    return [
        *selects,
        f"SELECT {i}, k.{CHOICE}, sum(c), sum(n) FROM {merged} JOIN {listed} ON {condition} GROUP BY k.{CHOICE}",
        f"SELECT {i}, {UNION}, sum(c), sum(n) FROM {merged} SEMI JOIN {listed} ON {condition}",
        f"SELECT {i}, {MARKS}, count(*), 0 FROM {merged}"
    ]


def tallied(ctx: Lowering, rows_by_task: Iterable[Iterable[tuple[int, int, float, float]]]) -> Tally:
    """The counts of all tasks together: each task has other keys, or other rows of one input; the heaviest key is in
    one of them, or in each.
    """
    sums: dict[tuple[int, int], tuple[float, float]] = {}
    for i, what, rows, cells in chain.from_iterable(rows_by_task):
        rows_before, cells_before = sums.get((i, what), (0.0, 0.0))
        of_one_task = by_key(ctx) and what in (HEAVY, MET)
        only_largest = what == MARKS or of_one_task and what == HEAVY
        sums[i, what] = (max(rows_before, rows) if only_largest else rows_before + rows,
                         max(cells_before, cells) if of_one_task else cells_before + cells)
    return sums


@dataclass(frozen=True)
class Paper:
    """Equation (2) of a join by all members together and by each apart, in tuples."""

    together: float
    apart: float


def paper(group: Group, tally: Tally) -> Paper | None:
    """COST(Crd(∪Q.V) ⋈ Crd(∪Q.W)) and Σ COST(Crd(Q.V) ⋈ Crd(Q.W)) of a join of two inputs, both indexed.

    Answers are of merged sets: none is materialised.
    """
    if len(group.common.inputs) != 2:
        return None

    classes = [group.classes[number] for template in group.templates for _, number in template.members]
    apart = sum(cost(side(tally, 0, left), side(tally, 1, right)) for left, right in classes)
    return Paper(cost(side(tally, 0, UNION), side(tally, 1, UNION)), apart)


def side(tally: Tally, i: int, what: int) -> Side:
    """One side of a join as equation (2) has it: all rows of a selection, or of any (UNION)."""
    rows, keys = tally.get((i, what), (0.0, 0.0))[0], tally.get((i, KEYS), (0.0, 0.0))[0]
    return Side(rows, min(rows, keys))
