"""What a group's work counts of its own cells, now and then: for equation (2) of paper E, and for the price of the ways
to do it (optimizer.sharing.ways).

Of each input rows and cells by selection and of their union, distinct keys and sets, what the heaviest key has; of the
join how many cells meet.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from optimizer.papers.sharing import Side, cost
from optimizer.plan.division import by_key, divided
from optimizer.plan.lowering import Lowering
from optimizer.plan.program import Step
from optimizer.sharing.expand import CHOICE, CLASS, inside
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
    of = {i: f"(SELECT * FROM {cells[i]}{_of_any(group, i, cells[i], f'{prefix}k{i}')})" for i in ctx.inputs}
    by = {
        i: f"(SELECT {common[i].name} AS k, count(*) AS n, sum(c) AS c FROM {of[i]} AS u GROUP BY 1)"
        for i in ctx.inputs
    }
    parts = [_met(by)]
    for i in ctx.inputs:
        if ctx.part == 0 or divided(ctx, i):
            parts += _of(group, ctx, i, cells[i], by[i], f"{prefix}k{i}")
    union = " UNION ALL ".join(f"({p})" for p in parts)
    numbers = ", ".join(f"CAST({name} AS BIGINT) AS {name}" for name in ("input", "what"))
    columns = f"{numbers}, " + ", ".join(f"CAST(coalesce({name}, 0) AS DOUBLE) AS {name}" for name in ("rows", "cells"))
    return Step(t, (), f"SELECT CAST({t} AS BIGINT) AS _t, {columns} FROM ({union}) AS q(input, what, rows, cells)",
                numbered(number))


def _of_any(group: Group, i: int, cells: str, choices: str) -> str:
    """Only cells of any query, where that is not all of them."""
    marks = group.marks[i]
    if i not in group.told_apart or not marks.names or marks.direction in ("below", "above"):
        return ""
    own = ", ".join(marks.names)
    listed = f"(SELECT DISTINCT * EXCLUDE ({CLASS}) FROM {choices}) AS k"
    return (f" JOIN (SELECT {own} FROM (SELECT DISTINCT {own} FROM {cells}) AS d SEMI JOIN {listed} ON "
            f"{inside(marks)}) AS a USING ({own})")


def _met(by: Mapping[int, str]) -> str:
    product = " * ".join(f"CAST(b{i}.n AS DOUBLE)" for i in by)
    tables = " JOIN ".join(f"{sql} AS b{i}" + (f" ON b{i}.k = b0.k" if i else "") for i, sql in by.items())
    return f"SELECT {JOINED}, {MET}, sum({product}), max({product}) FROM {tables}"


def _of(group: Group, ctx: Lowering, i: int, cells: str, by: str, choices: str) -> list[str]:
    names = ", ".join(a.name for a in ctx.shape.attributes[i])
    found = [
        f"SELECT {i}, {KEYS}, count(*), (SELECT count(*) FROM (SELECT DISTINCT {names} FROM {cells})) FROM {by} AS b",
        f"SELECT {i}, {HEAVY}, max(c), max(n) FROM {by} AS b"
    ]
    if i not in group.told_apart or not group.marks[i].names:
        return [
            *found,
            f"SELECT {i}, n, (SELECT sum(c) FROM {cells}), (SELECT count(*) FROM {cells}) FROM (VALUES (0), ({UNION})) "
            "AS v(n)",
            f"SELECT {i}, {MARKS}, 1, 0"
        ]
    own, listed = ", ".join(group.marks[i].names), f"(SELECT DISTINCT * EXCLUDE ({CLASS}) FROM {choices}) AS k"
    merged, condition = f"(SELECT {own}, sum(c) AS c, count(*) AS n FROM {cells} GROUP BY {own}) AS d", inside(
        group.marks[i]) or "TRUE"
    return [
        *found,
        f"SELECT {i}, k.{CHOICE}, sum(c), sum(n) FROM {merged} JOIN {listed} ON {condition} GROUP BY k.{CHOICE}",
        f"SELECT {i}, {UNION}, sum(c), sum(n) FROM {merged} SEMI JOIN {listed} ON {condition}",
        f"SELECT {i}, {MARKS}, count(*), 0 FROM {merged}"
    ]


def tallied(ctx: Lowering, found: Iterable[Iterable[tuple[int, int, float, float]]]) -> Tally:
    """Of all tasks: each has other keys, or other rows of one input; the heaviest key is in one of them, or in each."""
    sums: dict[tuple[int, int], tuple[float, float]] = {}
    for rows in found:
        for i, what, a, b in rows:
            x, y = sums.get((i, what), (0.0, 0.0))
            alone = by_key(ctx) and what in (HEAVY, MET)
            sums[i, what] = (max(x, a) if what == MARKS or alone and what == HEAVY else x + a,
                             max(y, b) if alone else y + b)
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

    def of(a: int, b: int) -> float:
        left, right = ((tally.get((i, what), (0.0, 0.0))[0], tally.get((i, KEYS), (0.0, 0.0))[0])
                       for i, what in enumerate((a, b)))
        return cost(Side(left[0], min(left)), Side(right[0], min(right)))

    classes = [group.classes[number] for t in group.templates for _, number in t.members]
    return Paper(of(UNION, UNION), sum(of(x, y) for x, y in classes))
