"""The statements by which one task answers all row queries of a group: shared scan, selection and join, and a fan-out
as the last step (paper E, section 3).

    rows of input i ── one scan ──▶ rows with marks ──▶ rows with query-sets (input_0), those of no query left out
    new rows ⋈ rows they can meet, on key, where q0 & q1 ≠ 0 ──▶ combination, q0 & q1 ──▶ one row a query, into the file

What meets is never written down: the engine has the rows of one side by key, and crosses them on the way into the file.
Each combination comes once, at the first boundary that knows all its rows, as in optimizer.plan.operators.rows.
"""
from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from optimizer.expression import dialect as d
from optimizer.expression.expr import columns
from optimizer.expression.types import Type
from optimizer.plan import table
from optimizer.plan.lowering import Lowering
from optimizer.plan.membership import within
from optimizer.plan.operators.operator import Boundary, Run
from optimizer.plan.operators.rows import new_combinations, output_values, rows, source
from optimizer.plan.operators.scan import read_columns
from optimizer.plan.program import Definition, Program, Source, Step
from optimizer.sharing.after import passing, set_words, words_of
from optimizer.sharing.expand import choices_table
from optimizer.sharing.group import OWNER, Group, Template
from optimizer.sharing.marks import WORD
from optimizer.sharing.program import classes
from optimizer.sharing.scan import dictionary, marked, noted

WORD_PLACE, WORD_BITS = "_word", "_bits"      # one word of a combination's query-set: which, and its bits


def rows_program(group: Group, ctx: Lowering, run: Run) -> Program:
    """All statements for a run; the answers of each template are numbered by its place in the group."""
    sources = tuple(_source(group, ctx, i, run) for i in ctx.inputs)
    setup = [*classes(group)]
    for i in ctx.inputs:
        setup += _input(group, ctx, i, run, sources[i])
    setup += [_owners(group, number, template) for number, template in enumerate(group.templates)]
    steps = chain.from_iterable(_steps(group, ctx, boundary) for boundary in run.steps)
    return Program(sources, tuple(setup), tuple(steps))


def _source(group: Group, ctx: Lowering, i: int, run: Run) -> Source:
    compared: dict[str, Type] = {}
    for expr in chain.from_iterable(group.choices[i]):
        compared |= {column.name: column.type for column in columns(expr)}
    return source(ctx, i, run, tuple((compared | dict(read_columns(ctx, i))).items()))


def _input(group: Group, ctx: Lowering, i: int, run: Run, stored: Source) -> list[Definition]:
    """Rows of input i with their query-sets; where all members select alike, its rows."""
    marks = group.marks[i]
    if i not in _told_apart(group):
        return [Definition(table.of_input(i), rows(ctx, i, run), True)]
    where = within(ctx, i, stored.ranges) if stored.ranges else "TRUE"
    define = []
    for k, scale in enumerate(marks.scales):
        sql = dictionary(scale, *marks.reach[k], f"{stored.name} WHERE {where}", ctx.dialect)
        define.append(Definition(f"dictionary_{i}_{k}", sql, True))
    names = tuple(definition.name for definition in define)
    values = "".join(f", _v{k}" for k in range(len(marks.scales)))
    with_marks = marked(marks, rows(ctx, i, run, noted(marks, ctx.dialect)), names)
    exclude = f" EXCLUDE ({values[2:]})" if values else ""
    mark_names, noted_rows = ", ".join(marks.names), f"noted_{i}"
    listed, passed = f"listed_{i}", f"passed_{i}"
    sets = f"SELECT {mark_names}, {words_of(group)} FROM {passed} GROUP BY {mark_names}"
    with_sets = (f"SELECT n.* EXCLUDE ({mark_names}), s.* EXCLUDE ({mark_names}) FROM {noted_rows} AS n "
                 f"JOIN ({sets}) AS s USING ({mark_names})")
    return [
        *define, Definition(noted_rows, f"SELECT *{exclude} FROM {with_marks}", True),
        *passing(marks, noted_rows, choices_table(i, ""), listed, passed),
        Definition(table.of_input(i), with_sets, True)
    ]


def _told_apart(group: Group) -> tuple[int, ...]:
    """The inputs whose rows have query-sets: none where all members select alike."""
    return tuple(i for i in group.told_apart if group.marks[i].names)


def _owners_table(number: int) -> str:
    return f"owners_{number}"


def _owners(group: Group, number: int, template: Template) -> Definition:
    """A template's members, each by the bit of its class."""
    listed = []
    for name, of_class in template.members:
        listed.append(f"({d.string(name)}, {of_class // WORD}, CAST({1 << of_class % WORD} AS BIGINT))")
    sql = f"SELECT * FROM (VALUES {', '.join(listed)}) AS listed({OWNER}, {WORD_PLACE}, {WORD_BITS})"
    return Definition(_owners_table(number), sql, True)


def _steps(group: Group, ctx: Lowering, boundary: Boundary) -> Iterator[Step]:
    """An answer for each template: (query, _t, outputs)."""
    for number, template in enumerate(group.templates):
        values = [f"_o{n}" for n in range(len(template.query.outputs))]
        computed = output_values(ctx, tuple(zip(values, (expr for _, expr in template.query.outputs))))
        words = _intersections(group, template)
        where, of_query = "", "TRUE"
        if words:
            where = f" AND ({' OR '.join(f'({bits}) <> 0' for bits in words.values())})"
            listed = ", ".join(f"{{'place': {w}, 'bits': {bits}}}" for w, bits in words.items())
            computed.append(f"unnest([{listed}]) AS _set")
            of_query = f"p._set.place = o.{WORD_PLACE} AND (p._set.bits & o.{WORD_BITS}) <> 0"
        met = new_combinations(ctx, boundary, ", ".join(computed), where)
        named = ", ".join(f"p.{value} AS {d.identifier(name)}"
                          for value, (name, _) in zip(values, template.query.outputs))
        yield Step(boundary.at, (), f"SELECT o.{OWNER}, p._t, {named} FROM ({met}) AS p "
                   f"JOIN {_owners_table(number)} AS o ON {of_query}", number)


def _intersections(group: Group, template: Template) -> dict[int, str]:
    """The words of a combination's query-set, as far as the template's members have bits in them; none where all rows
    are all members'.
    """
    apart = _told_apart(group)
    if not apart:
        return {}
    masks = dict.fromkeys(set_words(group), 0)
    for _, of_class in template.members:
        masks[of_class // WORD] |= 1 << of_class % WORD
    return {w: " & ".join([*(f"v{i}._q{w}" for i in apart), str(mask)]) for w, mask in masks.items() if mask}
