"""From cells, partials of one input by marks, to partials by choice: rows are unnested after they were merged, and by
running sums where choices are ranges.

A choice that is all below a cut is a prefix sum over the intervals: each cell is added once, not once a query. DuckDB's
SQL only.
"""
from __future__ import annotations

from itertools import chain

from optimizer.plan.lowering import Lowering, fallible, merged, working_type
from optimizer.plan.operators.sets import grouped
from optimizer.sharing.marks import Marks

CHOICE, CLASS = "_choice", "_class"


def choices_table(i: int, prefix: str) -> str:
    """The name of the table of input i's choices."""
    return f"{prefix}choices_{i}"


def choice_rows(marks: Marks) -> str:
    """The choices as a relation: number, spans, masks."""
    columns = [CHOICE, *(f"{side}{k}" for k in range(len(marks.scales)) for side in ("since", "until"))]
    columns += [f"mask{k}" for k in range(marks.words)]
    rows = []
    for n, choice in enumerate(marks.choices):
        values = [n, *chain.from_iterable(choice.spans), *choice.masks]
        rows.append(f"({', '.join(map(str, values))})")
    return f"(SELECT * FROM (VALUES {', '.join(rows)}) AS listed({', '.join(columns)}))"


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
    # Floating sums cannot be taken from a larger one without loss, nor can extremes.
    exact = all(m.additive and not (m.kind != "count" and m.type.floating) for m in ctx.shape.measures_of(i))
    if marks.direction == "between" and exact:
        return _two_sided(ctx, i, marks, cells, choices)
    # Each distinct combination of marks is compared with each choice once.
    names = ", ".join(marks.names)
    sets = (f"SELECT d.*, k.{CHOICE} FROM (SELECT DISTINCT {names} FROM {cells}) AS d JOIN {choices} AS k ON "
            f"{inside(marks)}")
    return grouped(ctx, i, f"(SELECT * FROM {cells} JOIN ({sets}) AS m USING ({names})) AS q", (CHOICE,))


def inside(marks: Marks) -> str:
    """Whether marks `d` are among those of a choice `k`."""
    spans = [f"d._r{k} >= k.since{k} AND d._r{k} < k.until{k}" for k in range(len(marks.scales))]
    return " AND ".join([*spans, *(f"(d._w{k} & k.mask{k}) = k.mask{k}" for k in range(marks.words))])


def _running(ctx: Lowering, i: int, position: str, until: int, cells: str) -> str:
    """For every cut from a cell to the next one, as `_cut`: all cells of the same attributes so far."""
    keys = [a.name for a in ctx.shape.attributes[i]]
    values = ["CAST(sum(c) OVER w AS BIGINT) AS c"]
    for m in ctx.shape.measures_of(i):
        if m.kind in ("min", "max"):
            values.append(f"{m.kind}({m.name}) OVER w AS {m.name}")
        else:
            values.append(f"CAST(sum({m.name}) OVER w AS {working_type(m, ctx)}) AS {m.name}")
    values += ["CAST(sum(e) OVER w AS BIGINT) AS e"] if fallible(ctx, i) else []
    by = f"PARTITION BY {', '.join(keys)} " if keys else ""
    summed = (f"SELECT {', '.join([*keys, *values])}, {position} AS _at, lead({position}) OVER w AS _next FROM {cells} "
              f"WINDOW w AS ({by}ORDER BY {position} ROWS UNBOUNDED PRECEDING)")
    return (f"SELECT * EXCLUDE (_at, _next), unnest(range(_at + 1, coalesce(_next, {until}) + 1)) AS _cut FROM "
            f"({summed}) AS summed")


def _one_sided(ctx: Lowering, i: int, marks: Marks, cells: str, choices: str) -> str:
    last = marks.reach[0][1]
    position, bound = "_r0", "k.until0"
    if marks.direction == "above":
        position, bound = f"({last - 1} - _r0)", f"({last} - k.since0)"
    running = _running(ctx, i, position, last, cells)
    return f"SELECT s.* EXCLUDE (_cut), k.{CLASS} FROM ({running}) AS s JOIN {choices} AS k ON s._cut = {bound}"


def _two_sided(ctx: Lowering, i: int, marks: Marks, cells: str, choices: str) -> str:
    """What lies below the upper cut, without what lies below the lower one."""
    running = _running(ctx, i, "_r0", marks.reach[0][1], cells)
    keys = [attribute.name for attribute in ctx.shape.attributes[i]]
    measures = {measure.name: measure for measure in ctx.shape.measures_of(i)}
    values = ["c", *measures, *(["e"] if fallible(ctx, i) else [])]
    sides = []
    for sign, end in (("", "until"), ("-", "since")):
        columns = ", ".join([*keys, *(f"{sign}s.{value} AS {value}" for value in values)])
        sides.append(f"SELECT {columns}, k.{CHOICE} FROM running AS s JOIN {choices} AS k ON s._cut = k.{end}0 "
                     "WHERE k.since0 < k.until0")
    sums = []
    for value in values:
        total = merged(measures[value], value, ctx) if value in measures else f"CAST(sum({value}) AS BIGINT)"
        sums.append(f"{total} AS {value}")
    by = ", ".join([*keys, CHOICE])
    return (f"WITH running AS ({running}) SELECT {by}, {', '.join(sums)} FROM ({' UNION ALL '.join(sides)}) AS q GROUP "
            f"BY {by} HAVING sum(c) <> 0")
