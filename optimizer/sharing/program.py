"""The statements by which one task answers all queries of a group: shared scan, shared selection, sets by class, one
join; built by the same functions as those of single queries.

Rows are merged by (marks, group, key) first. Then, as the group's plan says, cells are unnested to sets by class, which
is one more attribute that the join has to agree on; or joined with their query-sets and split at the end, as paper E
joins tuples (optimizer.sharing.after). Where one statement answers several boundaries, these are one attribute more.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

from optimizer.expression import dialect as d
from optimizer.expression.expr import Column, columns
from optimizer.expression.types import BIGINT, Type
from optimizer.plan import table
from optimizer.plan.division import dealt
from optimizer.plan.lowering import Lowering
from optimizer.plan.membership import Range, inside, within
from optimizer.plan.operators.join import AT, by_boundary, joined, out_columns
from optimizer.plan.operators.scan import read_columns
from optimizer.plan.operators.sets import grouped, raw
from optimizer.plan.program import Definition, Program, Source, Step
from optimizer.query.shape import Attribute, raw_columns, shape
from optimizer.query.windows import ALWAYS
from optimizer.sharing.after import split_after
from optimizer.sharing.counted import countable, counting
from optimizer.sharing.expand import CHOICE, CLASS, by_class, choice_rows, choices_table
from optimizer.sharing.group import Group
from optimizer.sharing.scan import dictionary, marked, noted


def lowering(group: Group, **settings: object) -> Lowering:
    """Of what the members have in common; `settings` are Lowering's others."""
    return Lowering(shape(group.common), group.plan, **settings)      # type: ignore[arg-type]


def shared_program(group: Group, ctx: Lowering, boundaries: tuple[int, ...], count: bool = False) -> Program:
    """All statements for these boundaries.

    Nothing is kept between two programs. `count`: with what is counted of the cells at the last.
    """
    exact = len(boundaries) == 1
    sources = tuple(_source(group, ctx, i, boundaries, exact) for i in ctx.inputs)
    setup = [definition for i in ctx.inputs for definition in _cells(group, ctx, i, sources[i], exact)]
    if exact or ctx.together == 1:
        steps = [_step(group, ctx, n, t, exact) for n, t in enumerate(boundaries)]
    else:
        starts = range(0, len(boundaries), ctx.together)
        steps = [_step_of_several(group, ctx, k, boundaries[k:k + ctx.together]) for k in starts]
    if count and countable(group):
        last, t = len(boundaries) - 1, boundaries[-1]
        cells = {i: _cells_table(i, last, exact) for i in ctx.inputs}
        counted = counting(group, ctx, t, cells)
        if ctx.together > 1 and not exact:
            counted = replace(counted, define=_cells_at(group, ctx, last, t))
        steps.append(counted)
    return Program(sources, (*classes(group), *setup), tuple(steps))


def classes(group: Group, prefix: str = "") -> tuple[Definition, ...]:
    """The members' selections as relations: the group's classes, and the choices of each input with the classes that
    make each.
    """
    name = f"{prefix}classes"
    rows = ", ".join(f"({', '.join(map(str, (n, *numbers)))})" for n, numbers in enumerate(group.classes))
    columns = ", ".join([CLASS, *(f"i{i}" for i in range(len(group.choices)))])
    define = [Definition(name, f"SELECT * FROM (VALUES {rows}) AS listed({columns})", True)]
    for i in group.told_apart:
        choices = choice_rows(group.marks[i])
        chosen = f"SELECT k.*, c.{CLASS} FROM {name} AS c JOIN {choices} AS k ON k.{CHOICE} = c.i{i}"
        define.append(Definition(choices_table(i, prefix), chosen, True))
    return tuple(define)


def _source(group: Group, ctx: Lowering, i: int, boundaries: tuple[int, ...], exact: bool) -> Source:
    declared = ctx.shape.query.inputs[i]
    compared: dict[str, Type] = {}
    for expr in chain.from_iterable(group.choices[i]):
        compared |= {column.name: column.type for column in columns(expr)}
    read = tuple((compared | dict(read_columns(ctx, i))).items())
    window = declared.window
    if window is None:
        return Source(table.files(i), "relation", declared.source, columns=read)
    whole = Range(-ALWAYS, boundaries[-1], window.oldest(boundaries[0]))
    rows = inside(window, boundaries[0]) if exact else whole
    computed = compared.keys() | {column.name for column in raw_columns(ctx.shape, i)}
    stamp = declared.event_time if exact and declared.event_time not in computed else None
    return Source(table.files(i), "stream", declared.source, (rows,), read, dealt(ctx, i), stamp)


def _cells(group: Group, ctx: Lowering, i: int, source: Source, exact: bool) -> tuple[Definition, ...]:
    """Partials of input i by its attributes and marks, and by when they count where that differs between boundaries."""
    where = within(ctx, i, source.ranges) if source.ranges else "TRUE"
    times = () if exact else ("_in", "_out")
    if i not in group.told_apart:
        rows = f"({raw(ctx, i, source.name, interval=not exact, where=where)}) AS q"
        return (Definition(f"cells_{i}", grouped(ctx, i, rows, times), True),)
    marks = group.marks[i]
    rows = raw(ctx, i, source.name, interval=not exact, where=where, also=noted(marks, ctx.dialect))
    dictionaries = []
    for k, scale in enumerate(marks.scales):
        sql = dictionary(scale, *marks.reach[k], f"{source.name} WHERE {where}", ctx.dialect)
        dictionaries.append(Definition(f"dictionary_{i}_{k}", sql, True))
    names = tuple(definition.name for definition in dictionaries)
    cells = grouped(ctx, i, marked(marks, rows, names), (*marks.names, *times))
    return (*dictionaries, Definition(f"cells_{i}", cells, True))


def _step(group: Group, ctx: Lowering, n: int, t: int, exact: bool) -> Step:
    define = () if exact else _cells_at(group, ctx, n, t)
    return answered(group, ctx, t, {i: _cells_table(i, n, exact) for i in ctx.inputs}, define, f"_at_{n}")


def _cells_at(group: Group, ctx: Lowering, n: int, t: int) -> tuple[Definition, ...]:
    """Each input's cells that count at t, the n-th boundary."""
    return tuple(Definition(_cells_table(i, n, exact=False),
                            grouped(ctx, i, f"cells_{i}", _mark_names(group, i), f"_in <= {t} AND _out >= {t}"), True)
                 for i in ctx.inputs)


def _step_of_several(group: Group, ctx: Lowering, n: int, boundaries: tuple[int, ...]) -> Step:
    """One statement for these boundaries, the first of which is the n-th: cells meet those at which they count."""
    of_boundaries = _by_boundary(ctx)
    due = f"(VALUES {', '.join(f'({t})' for t in boundaries)}) AS due({AT})"
    define, cells = list[Definition](), {}
    for i in ctx.inputs:
        rows, cells[i] = f"cells_{i}", f"cells_{i}_from_{n}"
        if ctx.window(i) is not None:
            rows = (f"(SELECT q.*, due.{AT} FROM {rows} AS q JOIN {due} ON q._in <= due.{AT} AND q._out >= due.{AT}) "
                    "AS counted")
        define.append(Definition(cells[i], grouped(of_boundaries, i, rows, _mark_names(group, i)), True))
    return answered(group, of_boundaries, boundaries[-1], cells, tuple(define), f"_from_{n}", several=True)


def _by_boundary(ctx: Lowering) -> Lowering:
    """Every stream's partials by boundary as well, on which the join has to agree."""
    attributes = []
    for i, of_input in enumerate(ctx.shape.attributes):
        boundary = (Attribute(AT, Column(i, AT, BIGINT)),) if ctx.window(i) is not None else ()
        attributes.append((*of_input, *boundary))
    return replace(ctx, shape=replace(by_boundary(ctx).shape, attributes=tuple(attributes)))


def _mark_names(group: Group, i: int) -> tuple[str, ...]:
    return group.marks[i].names if i in group.told_apart else ()


def _cells_table(i: int, n: int, exact: bool) -> str:
    """Input i's cells at the n-th boundary, which are all where there is only one."""
    return f"cells_{i}" if exact else f"cells_{i}_at_{n}"


def answered(group: Group, ctx: Lowering, t: int, cells: Mapping[int, str], define: tuple[Definition, ...] = (),
             suffix: str = "", prefix: str = "", number: int = 0, several: bool = False) -> Step:
    """From each input's cells at t to the group's answer, after `define`; of `several` boundaries, up to t, from cells
    by boundary.
    """
    split = split_after if group.splits_after else split_before
    streams = [i for i in ctx.inputs if ctx.window(i) is not None]
    sets, answer = split(group, ctx, cells, suffix, prefix, ((AT, f"v{streams[0]}.{AT}"),) if several else ())
    columns = ", ".join(
        f"CAST({name} AS {d.name(kind, ctx.dialect)}) AS {name}" for name, kind in ((CLASS, BIGINT), *out_columns(ctx)))
    sql = f"SELECT CAST({AT if several else t} AS BIGINT) AS _t, {columns} FROM ({answer}) AS q"
    return Step(t, (*define, *sets), sql, number)


def split_before(group: Group, ctx: Lowering, cells: Mapping[int, str], suffix: str, prefix: str,
                 more: tuple[tuple[str, str], ...]) -> tuple[tuple[Definition, ...], str]:
    """Sets by class of each input, joined on class and key; the answer has `more` columns than class and groups."""
    expanded = tuple(
        Definition(_by_class_table(i, suffix, prefix),
                   by_class(ctx, i, group.marks[i], cells[i], choices_table(i, prefix)), True)
        for i in group.told_apart)
    sources = {}
    for i in ctx.inputs:
        name = _by_class_table(i, suffix, prefix) if i in group.told_apart else cells[i]
        sources[i] = f"(SELECT * FROM {name})"
    same_class = tuple((i, Attribute(CLASS, Column(i, CLASS, BIGINT))) for i in group.told_apart)
    if len(same_class) > 1:      # the join has to agree on the class as well
        ctx = replace(ctx, shape=replace(ctx.shape, keys=(*ctx.shape.keys, same_class)))
    return expanded, joined(ctx, sources, extra=((CLASS, f"v{group.told_apart[0]}.{CLASS}"), *more))


def _by_class_table(i: int, suffix: str, prefix: str) -> str:
    return f"{prefix}by_class_{i}{suffix}"
