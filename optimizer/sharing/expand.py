"""From cells, partials of one input by marks, to partials by choice: rows are unnested after they were merged, and by
running sums where choices are ranges.

A choice that is all below a cut is a prefix sum over the intervals: each cell is added once, not once a query. DuckDB's
SQL only.
"""
from __future__ import annotations

from optimizer.plan.lowering import Lowering, fallible, merged, working_type
from optimizer.plan.operators.sets import grouped
from optimizer.sharing.marks import Marks

CHOICE, CLASS = "_choice", "_class"


def choice_rows(marks: Marks) -> str:
    """The choices as a relation: number, spans, masks."""
    columns = [
        CHOICE, *(f"{side}{k}" for k in range(len(marks.scales)) for side in ("since", "until")),
        *(f"mask{k}" for k in range(marks.words))
    ]
    rows = ", ".join(f"({', '.join(map(str, [n, *(v for span in c.spans for v in span), *c.masks]))})"
                     for n, c in enumerate(marks.choices))
    return f"(SELECT * FROM (VALUES {rows}) AS listed({', '.join(columns)}))"


def by_class(ctx: Lowering, i: int, marks: Marks, cells: str, choices: str) -> str:
    """Partials of input i by its attributes and class, from cells.

    `choices` names a relation of choice_rows with the classes (CLASS) that make each.
    """
    if marks.direction in ("below", "above"):
        return _one_sided(ctx, i, marks, cells, choices)
    chosen = _by_choice(ctx, i, marks, cells, f"(SELECT DISTINCT * EXCLUDE ({CLASS}) FROM {choices})")
    return f"SELECT p.* EXCLUDE ({CHOICE}), k.{CLASS} FROM ({chosen}) AS p JOIN {choices} AS k USING ({CHOICE})"


def _by_choice(ctx: Lowering, i: int, marks: Marks, cells: str, choices: str) -> str:
    if not marks.names:
        return f"SELECT *, 0 AS {CHOICE} FROM {cells}"
    if marks.direction == "between" and _subtracted(ctx, i):
        return _two_sided(ctx, i, marks, cells, choices)
    return _unnested(ctx, i, marks, cells, choices)


def _unnested(ctx: Lowering, i: int, marks: Marks, cells: str, choices: str) -> str:
    """Each distinct combination of marks is compared with each choice once."""
    own = ", ".join(marks.names)
    sets = (f"SELECT d.*, k.{CHOICE} FROM (SELECT DISTINCT {own} FROM {cells}) AS d JOIN {choices} AS k ON "
            f"{inside(marks)}")
    return grouped(ctx, i, f"(SELECT * FROM {cells} JOIN ({sets}) AS m USING ({own})) AS q", (CHOICE,))


def inside(marks: Marks) -> str:
    """Whether marks `d` are among those of a choice `k`."""
    spans = [f"d._r{k} >= k.since{k} AND d._r{k} < k.until{k}" for k in range(len(marks.scales))]
    return " AND ".join([*spans, *(f"(d._w{k} & k.mask{k}) = k.mask{k}" for k in range(marks.words))])


def _running(ctx: Lowering, i: int, position: str, until: int, cells: str) -> str:
    """For every cut from a cell to the next one, as `_cut`: all cells of the same attributes so far."""
    keys = [a.name for a in ctx.shape.attributes[i]]
    values = ["CAST(sum(c) OVER w AS BIGINT) AS c"]
    for m in ctx.shape.measures_of(i):
        total = f"{m.kind}({m.name}) OVER w" if m.kind in (
            "min", "max") else f"CAST(sum({m.name}) OVER w AS {working_type(m, ctx)})"
        values.append(f"{total} AS {m.name}")
    values += ["CAST(sum(e) OVER w AS BIGINT) AS e"] if fallible(ctx, i) else []
    by = f"PARTITION BY {', '.join(keys)} " if keys else ""
    summed = (f"SELECT {', '.join([*keys, *values])}, {position} AS _at, lead({position}) OVER w AS _next FROM {cells} "
              f"WINDOW w AS ({by}ORDER BY {position} ROWS UNBOUNDED PRECEDING)")
    return (f"SELECT * EXCLUDE (_at, _next), unnest(range(_at + 1, coalesce(_next, {until}) + 1)) AS _cut FROM "
            f"({summed}) AS summed")


def _one_sided(ctx: Lowering, i: int, marks: Marks, cells: str, choices: str) -> str:
    last = marks.reach[0][1]
    position, bound = ("_r0", "k.until0") if marks.direction == "below" else (f"({last - 1} - _r0)",
                                                                              f"({last} - k.since0)")
    running = _running(ctx, i, position, last, cells)
    return f"SELECT s.* EXCLUDE (_cut), k.{CLASS} FROM ({running}) AS s JOIN {choices} AS k ON s._cut = {bound}"


def _two_sided(ctx: Lowering, i: int, marks: Marks, cells: str, choices: str) -> str:
    """What lies below the upper cut, without what lies below the lower one."""
    running = _running(ctx, i, "_r0", marks.reach[0][1], cells)
    keys, own = [a.name for a in ctx.shape.attributes[i]], ctx.shape.measures_of(i)
    values = ["c", *(m.name for m in own), *(["e"] if fallible(ctx, i) else [])]
    sides = [
        f"SELECT {', '.join([*keys, *(f'{sign}s.{v} AS {v}' for v in values)])}, k.{CHOICE} FROM running AS s JOIN "
        f"{choices} AS k "
        f"ON s._cut = k.{end}0 WHERE k.since0 < k.until0" for sign, end in (("", "until"), ("-", "since"))
    ]
    kinds = {m.name: m for m in own}
    sums = [f"{merged(kinds[v], v, ctx) if v in kinds else f'CAST(sum({v}) AS BIGINT)'} AS {v}" for v in values]
    by = ", ".join([*keys, CHOICE])
    return (f"WITH running AS ({running}) SELECT {by}, {', '.join(sums)} FROM ({' UNION ALL '.join(sides)}) AS q GROUP "
            f"BY {by} HAVING sum(c) <> 0")


def _subtracted(ctx: Lowering, i: int) -> bool:
    """Whether every measure can be taken from a larger sum without loss."""
    return all(m.additive and not (m.kind != "count" and m.type.floating) for m in ctx.shape.measures_of(i))
