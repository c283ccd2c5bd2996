"""The statements by which one task answers all queries of a group: shared scan, shared selection, sets by class, one
join; the builders are single queries'.

Rows are merged by (marks, group, key) first. Then, as the group's plan says, cells are unnested to sets by class, which
is one more attribute that the join has to agree on; or joined with their query-sets and split at the end, as paper E
joins tuples (optimizer.sharing.after).
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from optimizer.expression import dialect as d
from optimizer.expression.expr import Column, columns
from optimizer.expression.types import BIGINT
from optimizer.plan.division import dealt
from optimizer.plan.lowering import Lowering
from optimizer.plan.membership import Range, inside, within
from optimizer.plan.operators.join import joined, out_columns
from optimizer.plan.operators.scan import read_columns
from optimizer.plan.operators.sets import grouped, raw
from optimizer.plan.program import Definition, Program, Source, Step
from optimizer.query.shape import Attribute, raw_columns, shape
from optimizer.query.windows import ALWAYS
from optimizer.sharing.after import split_after
from optimizer.sharing.counted import countable, counting
from optimizer.sharing.expand import CHOICE, CLASS, by_class, choice_rows
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
    setup = [made for i in ctx.inputs for made in _cells(group, ctx, i, sources[i], exact)]
    steps = [_step(group, ctx, n, t, exact) for n, t in enumerate(boundaries)]
    if count and countable(group):
        cells = {i: f"w{i}" if exact else f"x{i}_{len(boundaries) - 1}" for i in ctx.inputs}
        steps.append(counting(group, ctx, boundaries[-1], cells))
    return Program(sources, (*classes(group), *setup), tuple(steps))


def classes(group: Group, prefix: str = "") -> tuple[Definition, ...]:
    """What the group's statements know of its members: its classes, and k{i}, the choices of input i with the classes
    that make each.
    """
    name = f"{prefix}classes"
    rows = ", ".join(f"({', '.join(map(str, (n, *vector)))})" for n, vector in enumerate(group.classes))
    listed = (f"SELECT * FROM (VALUES {rows}) AS "
              f"listed({', '.join([CLASS, *(f'i{i}' for i in range(len(group.choices)))])})")
    chosen = [
        f"SELECT k.*, c.{CLASS} FROM {name} AS c JOIN {choice_rows(group.marks[i])} AS k ON k.{CHOICE} = c.i{i}"
        for i in group.told_apart
    ]
    return (Definition(name, listed,
                       True), *(Definition(f"{prefix}k{i}", sql, True) for i, sql in zip(group.told_apart, chosen)))


def _source(group: Group, ctx: Lowering, i: int, boundaries: tuple[int, ...], exact: bool) -> Source:
    declared = ctx.shape.query.inputs[i]
    chosen = {c.name: c.type for choice in group.choices[i] for e in choice for c in columns(e)}
    read = tuple((chosen | dict(read_columns(ctx, i))).items())
    if declared.window is None:
        return Source(f"s{i}", "relation", declared.source, columns=read)
    ranges = (inside(declared.window, boundaries[0]),) if exact else (Range(-ALWAYS, boundaries[-1],
                                                                            declared.window.oldest(boundaries[0])),)
    computed = chosen.keys() | {c.name for c in raw_columns(ctx.shape, i)}
    stamp = declared.event_time if exact and declared.event_time not in computed else None
    return Source(f"s{i}", "stream", declared.source, ranges, read, dealt(ctx, i), stamp)


def _cells(group: Group, ctx: Lowering, i: int, source: Source, exact: bool) -> tuple[Definition, ...]:
    """w{i}: partials of input i by its attributes and marks, and by when they count where that differs between
    boundaries.
    """
    where = within(ctx, i, source.ranges) if source.ranges else "TRUE"
    times = () if exact else ("_in", "_out")
    if i not in group.told_apart:
        return (Definition(f"w{i}",
                           grouped(ctx, i, f"({raw(ctx, i, f's{i}', interval=not exact, where=where)}) AS q", times),
                           True),)
    marks = group.marks[i]
    rows = raw(ctx, i, f"s{i}", interval=not exact, where=where, also=noted(marks, ctx.dialect))
    looked = tuple(Definition(f"d{i}_{k}", dictionary(scale, *marks.reach[k], f"s{i} WHERE {where}", ctx.dialect), True)
                   for k, scale in enumerate(marks.scales))
    cells = grouped(ctx, i, marked(marks, rows, tuple(name for name, _, _ in looked)), (*marks.names, *times))
    return (*looked, Definition(f"w{i}", cells, True))


def _step(group: Group, ctx: Lowering, n: int, t: int, exact: bool) -> Step:
    define: list[Definition] = []
    cells = {}
    for i in ctx.inputs:
        cells[i] = f"w{i}" if exact else f"x{i}_{n}"
        extra = group.marks[i].names if i in group.told_apart else ()
        define += [] if exact else [
            Definition(cells[i], grouped(ctx, i, f"w{i}", extra, where=f"_in <= {t} AND _out >= {t}"), True)
        ]
    return answered(group, ctx, t, cells, tuple(define), f"_{n}")


def answered(group: Group, ctx: Lowering, t: int, cells: Mapping[int, str], define: tuple[Definition, ...] = (),
             suffix: str = "", prefix: str = "", number: int = 0) -> Step:
    """From each input's cells at t to the group's answer, after `define`."""
    made, answer = (split_after if group.splits_after else split_before)(group, ctx, cells, suffix, prefix)
    columns = ", ".join(
        f"CAST({name} AS {d.name(kind, ctx.dialect)}) AS {name}" for name, kind in ((CLASS, BIGINT), *out_columns(ctx)))
    return Step(t, (*define, *made), f"SELECT CAST({t} AS BIGINT) AS _t, {columns} FROM ({answer}) AS q", number)


def split_before(group: Group, ctx: Lowering, cells: Mapping[int, str], suffix: str,
                 prefix: str) -> tuple[tuple[Definition, ...], str]:
    """Sets by class of each input, joined on class and key."""
    expanded = tuple(
        Definition(f"{prefix}u{i}{suffix}", by_class(ctx, i, group.marks[i], cells[i], f"{prefix}k{i}"), True)
        for i in group.told_apart)
    sets = {i: f"{prefix}u{i}{suffix}" if i in group.told_apart else cells[i] for i in ctx.inputs}
    first = group.told_apart[0]
    answer = joined(_with_class(group, ctx), {
        i: f"(SELECT * FROM {name})" for i, name in sets.items()
    }, extra=((CLASS, f"v{first}.{CLASS}"),))
    return expanded, answer


def _with_class(group: Group, ctx: Lowering) -> Lowering:
    """The join that has to agree on the class as well."""
    agreed = tuple((i, Attribute(CLASS, Column(i, CLASS, BIGINT))) for i in group.told_apart)
    return replace(ctx, shape=replace(ctx.shape, keys=(*ctx.shape.keys, agreed))) if len(agreed) > 1 else ctx
