"""The statements of a sub-join: its rows by class, made once at a boundary from the cells of both inputs, and each
reader's answer from them and the cells of its other inputs.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from optimizer.expression import dialect as d
from optimizer.expression.expr import Column
from optimizer.expression.scalar import safe
from optimizer.expression.types import BIGINT
from optimizer.plan.lowering import Lowering, stored_name
from optimizer.plan.operators.join import joined, out_columns
from optimizer.plan.program import Definition, Step
from optimizer.query.shape import Attribute, Measure, shape
from optimizer.sharing.after import split_after
from optimizer.sharing.expand import CLASS, by_class, choices_table
from optimizer.sharing.families.division import FamilyDivision
from optimizer.sharing.families.subjoin import Reader, SubJoin, arguments
from optimizer.sharing.program import classes, split_before

BELOW = "_below"        # the class of a sub-join's row, beside those of its reader that read it


def prefix(number: int) -> str:
    """What the names of a sub-join's own tables begin with."""
    return f"join_{number}_"


def reader_prefix(reader: Reader) -> str:
    return f"group_{reader.number}_"


def lowered(sub: SubJoin, ctx: Lowering, division: FamilyDivision) -> Lowering:
    """What the sub-join is written for, as its readers are (`ctx` is one's)."""
    plan = sub.group.plan
    if division.stream is not None:
        divided = [side.source for side in sub.key.sides].index(division.stream)
        plan = replace(plan, exchange="slice", divided=divided)
    return replace(ctx, shape=shape(sub.group.common), plan=plan, complete=frozenset())


def lowered_above(reader: Reader, ctx: Lowering) -> Lowering:
    """What a reader is written for, with the sub-join as an input."""
    return replace(ctx, shape=shape(reader.group.common), plan=reader.group.plan, complete=frozenset())


def setup(sub: SubJoin, number: int) -> tuple[Definition, ...]:
    """The selections of a sub-join and its readers as tables, and which class of each reader reads which of its own."""
    define = [*classes(sub.group, prefix(number))]
    for reader in sub.readers:
        listed = ", ".join(f"({c}, {below})" for c, below in enumerate(reader.classes))
        define += classes(reader.group, reader_prefix(reader))
        reading = f"SELECT * FROM (VALUES {listed}) AS listed({CLASS}, {BELOW})"
        define.append(Definition(_reading(reader), reading, True))
    return tuple(define)


def _reading(reader: Reader) -> str:
    return f"{reader_prefix(reader)}reading"


def _rows(number: int, n: int) -> str:
    """The sub-join's rows at the n-th boundary, by class."""
    return f"{prefix(number)}at_{n}"


def made(sub: SubJoin, number: int, ctx: Lowering, n: int, cells: Mapping[int, str]) -> tuple[Definition, ...]:
    """The sub-join's rows from both inputs' cells, merged by what readers need: pairs meet with their query-sets, as in
    a group that splits after its join, where any selection differs.
    """
    split = split_after if sub.group.splits_after else split_before
    define, rows = split(sub.group, ctx, cells, f"_at_{n}", prefix(number), ())
    return (*define, Definition(_rows(number, n), rows, True))


def answer(sub: SubJoin, number: int, reader: Reader, ctx: Lowering, n: int, t: int, cells: Mapping[int, str],
           define: tuple[Definition, ...]) -> Step:
    """A reader's answer, after `define`: the sub-join's rows by its own classes, joined with its other inputs."""
    group, sources, told_apart = reader.group, dict[int, str](), [reader.joined]
    expanded = []
    for i, name in cells.items():
        sources[i] = f"(SELECT * FROM {name})"
        if len(group.choices[i]) > 1:
            told_apart.append(i)
            by_its_class = f"{reader_prefix(reader)}by_class_{i}_at_{n}"
            sql = by_class(ctx, i, group.marks[i], name, choices_table(i, reader_prefix(reader)))
            expanded.append(Definition(by_its_class, sql, True))
            sources[i] = f"(SELECT * FROM {by_its_class})"
    sources[reader.joined] = f"({_read(sub, number, reader, ctx, n)})"
    same_class = tuple((i, Attribute(CLASS, Column(i, CLASS, BIGINT))) for i in told_apart)
    if len(same_class) > 1:      # the join has to agree on the class as well
        ctx = replace(ctx, shape=replace(ctx.shape, keys=(*ctx.shape.keys, same_class)))
    sql = joined(ctx, sources, extra=((CLASS, f"v{reader.joined}.{CLASS}"),))
    columns = ", ".join(f"CAST({name} AS {d.name(kind, ctx.dialect)}) AS {name}"
                        for name, kind in ((CLASS, BIGINT), *out_columns(ctx)))
    answered = f"SELECT CAST({t} AS BIGINT) AS _t, {columns} FROM ({sql}) AS q"
    return Step(t, (*define, *expanded), answered, reader.number)


def _read(sub: SubJoin, number: int, reader: Reader, ctx: Lowering, n: int) -> str:
    """The sub-join's rows as the cells of an input: by the reader's names, and by its classes."""
    i = reader.joined
    values = [f"{safe(a.expr, ctx.dialect, stored_name(ctx))} AS {a.name}" for a in ctx.shape.attributes[i]]
    values += [f"j.{_measure_below(sub, m).name} AS {m.name}" for m in ctx.shape.measures_of(i)]
    return (f"SELECT {', '.join([*values, 'j.c', f'k.{CLASS}'])} FROM {_rows(number, n)} AS j "
            f"JOIN {_reading(reader)} AS k ON k.{BELOW} = j.{CLASS}")


def _measure_below(sub: SubJoin, measure: Measure) -> Measure:
    """The sub-join's measure that a reader's measure of its rows is."""
    assert isinstance(measure.expr, Column)
    argument = arguments(sub.group.common)[int(measure.expr.name[1:])]
    measures = shape(sub.group.common).measures
    return next(m for m in measures if m.kind == measure.kind and m.expr == argument)
