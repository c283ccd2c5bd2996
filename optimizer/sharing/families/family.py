"""Query groups that read the same streams as one work: a stream is scanned, and its selections noted, once for all
windows, groupings and joins (paper E, Fig. 8).

Cells are rows with all attributes that any group needs, their marks, and the window bounds between which they lie; each
group merges its own sets from them.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from optimizer.expression import dialect as d
from optimizer.expression.expr import Expr, columns
from optimizer.expression.scalar import safe
from optimizer.expression.types import Type
from optimizer.plan.division import share
from optimizer.plan.lowering import Lowering, merged, stored_name
from optimizer.plan.membership import Range, inside, within
from optimizer.plan.operators.join import failing
from optimizer.plan.operators.scan import read_columns
from optimizer.plan.operators.sets import grouped, row_value
from optimizer.plan.program import Definition, Program, Source, Step
from optimizer.query.normal import placed
from optimizer.query.shape import Measure, raw_columns, shape
from optimizer.query.windows import ALWAYS, Window
from optimizer.sharing.counted import countable, counting, numbered
from optimizer.sharing.families import joined
from optimizer.sharing.families.division import FamilyDivision, division_of, of_all, reading
from optimizer.sharing.families.steering import countable as countable_sub_joins
from optimizer.sharing.families.subjoin import Reader, SubJoin, chosen
from optimizer.sharing.group import Group
from optimizer.sharing.marks import WORD, Choice, Conjuncts, Marks, choice_of, marks
from optimizer.sharing.program import answered, classes, lowering
from optimizer.sharing.scan import dictionary, marked, noted

SEGMENT = "_segment"        # how many of the bounds of all windows a row's event time has passed
Use = tuple[int, int]       # a group's number, its input's


def apart(group: Group) -> str | None:
    """Why no other group can read this one's scans."""
    if group.common.returns_rows:
        return "it returns rows, which others' cells do not have"
    if failing(lowering(group)):
        return "an expression of it can fail on a row, which must not fail others"
    return None


def related(groups: Iterable[Group]) -> bool:
    """Whether these can be one family: by way of streams in common each reaches each other."""
    return connected([{declared.source for declared in group.common.inputs if declared.is_stream} for group in groups])


def connected(parts: list[set[str]]) -> bool:
    """Whether each reaches each other by way of what they have in common."""
    reached, left = set(parts[0]), parts[1:]
    while near := [p for p in left if p & reached]:
        reached.update(*near)
        left = [p for p in left if not p & reached]
    return not left


@dataclass(frozen=True)
class Family:
    """Query groups with common streams, such as `Family((clicks_by_page, clicks_by_user))`; `related` holds of them.

    Each is numbered by its place. Their plans divide the work among tasks in one way.
    """

    groups: tuple[Group, ...]

    def __post_init__(self) -> None:
        if len(self.groups) < 2:
            return
        if not related(self.groups) or any(map(apart, self.groups)):
            raise ValueError("these groups are no family")
        if self.division not in of_all(map(reading, self.groups)).divisions:
            raise ValueError(f"tasks cannot divide these groups by {self.division}")

    @cached_property
    def division(self) -> FamilyDivision:
        """How tasks divide the work of all groups."""
        return division_of(self.groups)

    @cached_property
    def sub_joins(self) -> tuple[SubJoin, ...]:
        """The joins that the groups' plans read, each made once."""
        return chosen(self.groups)

    @cached_property
    def countable(self) -> tuple[SubJoin, ...]:
        """The joins that could be made once, of which cells are counted now and then."""
        return countable_sub_joins(self.groups, self.division)

    @cached_property
    def scans(self) -> tuple[SharedScan, ...]:
        names = dict.fromkeys(i.source for g in self.groups for i in g.common.inputs)
        return tuple(_scan(self.groups, k, name) for k, name in enumerate(names))


@dataclass(frozen=True)
class SharedScan:
    """Source number `number` as all its readers need it. `marks` tell the selections of all groups apart."""

    number: int
    source: str
    uses: tuple[Use, ...]
    windows: tuple[Window, ...]
    marks: Marks

    def bounds(self, t: int) -> tuple[int, ...]:
        """The event times at which any of its windows begins or ends at t, where they differ."""
        if len(self.windows) < 2:
            return ()
        ends = chain.from_iterable(span(window, t) for window in self.windows)
        return tuple(sorted({end for end in ends if abs(end) < ALWAYS}))


def span(window: Window, t: int) -> tuple[int, int]:
    """since ≤ event time < until of the rows in the window at t."""
    whole = inside(window, t)
    return whole.since, whole.until


def _scan(groups: tuple[Group, ...], number: int, source: str) -> SharedScan:
    uses = tuple((g, i)
                 for g, group in enumerate(groups)
                 for i, declared in enumerate(group.common.inputs)
                 if declared.source == source)
    windows = dict.fromkeys(groups[g].common.inputs[i].window for g, i in uses)
    selections = dict.fromkeys(chain.from_iterable(all_selections(groups[g], i) for g, i in uses))
    return SharedScan(number, source, uses, tuple(window for window in windows if window is not None),
                      marks(selections))


def all_selections(group: Group, i: int) -> tuple[Conjuncts, ...]:
    """The whole selections of input i, one a choice, with its columns as those of input 0."""
    selections = []
    for choice in group.choices[i]:
        selections.append((*common(group, i), *(placed(expr, {i: 0}) for expr in choice)))
    return tuple(selections)


def common(group: Group, i: int) -> Conjuncts:
    """What all members of the group select of input i."""
    return tuple(placed(e, {i: 0}) for e in shape(group.common).selections[i])


@dataclass(frozen=True)
class _Cells:
    """What the statements name in a scan's cells: attributes and measures by the SQL that computes them.

    Rows are `merged` where all readers need the same attributes; merged by those of several they would hardly be fewer,
    at the price of merging.
    """

    scan: SharedScan
    attributes: Mapping[str, str]
    measures: Mapping[tuple[str, str], tuple[str, Measure]]
    merged: bool

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.attributes.values(), *self.scan.marks.names, *((SEGMENT,) if len(self.scan.windows) > 1 else ()))


def family_program(family: Family, contexts: tuple[Lowering, ...], boundaries: tuple[int, ...],
                   count: bool = False) -> Program:
    """All statements for these boundaries: at each one cells of every source that is due, then group by group. Nothing
    is kept.

    `count`: with what is counted of each group's cells at the last boundary at which it is due.
    """
    cells = tuple(_cells(scan, contexts) for scan in family.scans)
    sources = tuple(_source(family, scan, contexts, boundaries) for scan in family.scans)
    setup: list[Definition] = []
    last_due: dict[int, int | None] = {}
    read_joined = frozenset().union(*(sub_join.numbers for sub_join in family.sub_joins))
    for number, sub_join in enumerate(family.sub_joins):
        setup += joined.setup(sub_join, number)
    for g, group in enumerate(family.groups):
        setup += classes(group, _prefix(g)) if g not in read_joined else ()
        if count and countable(group):
            last_due[g] = max((t for t in boundaries if t % group.common.every == 0), default=None)
    for scan, source in zip(family.scans, sources):
        setup += _dictionaries(scan, contexts, source)
    counted = family.countable if count else ()
    for number, sub_join in enumerate(counted):
        setup += classes(sub_join.group, _counted_prefix(number))
    steps = chain.from_iterable(_steps(family, contexts, cells, n, t, last_due) for n, t in enumerate(boundaries))
    return Program(sources, tuple(setup), (*steps, *_sub_join_counts(family, contexts, cells, boundaries, counted)))


def _files(scan: SharedScan) -> str:
    return f"scan_{scan.number}_files"


def _dictionary(scan: SharedScan, k: int) -> str:
    return f"scan_{scan.number}_dictionary_{k}"


def _cells_at(scan: SharedScan, n: int) -> str:
    return f"scan_{scan.number}_cells_at_{n}"


def _prefix(g: int) -> str:
    """What the names of a group's own tables begin with."""
    return f"group_{g}_"


def _cells(scan: SharedScan, contexts: tuple[Lowering, ...]) -> _Cells:
    attributes: dict[str, str] = {}
    measures: dict[tuple[str, str], tuple[str, Measure]] = {}
    for g, i in scan.uses:
        ctx = contexts[g]
        for attribute in ctx.shape.attributes[i]:
            attributes.setdefault(_text(ctx, attribute.expr), f"a{len(attributes)}")
        for measure in ctx.shape.measures_of(i):
            measures.setdefault((measure.kind, row_value(ctx, measure)), (f"m{len(measures)}", measure))
    same_attributes = all(len(contexts[g].shape.attributes[i]) == len(attributes) for g, i in scan.uses)
    return _Cells(scan, attributes, measures, merged=same_attributes)


def _text(ctx: Lowering, expr: Expr) -> str:
    return safe(expr, ctx.dialect, stored_name(ctx))


def _source(family: Family, scan: SharedScan, contexts: tuple[Lowering, ...], boundaries: tuple[int, ...]) -> Source:
    read: dict[str, Type] = {}
    computed: set[str] = set()
    for g, i in scan.uses:
        compared: dict[str, Type] = {}
        for expr in chain.from_iterable(all_selections(family.groups[g], i)):
            compared |= {column.name: column.type for column in columns(expr)}
        read |= compared | dict(read_columns(contexts[g], i))
        computed |= compared.keys() | {column.name for column in raw_columns(contexts[g].shape, i)}
    name, (g, i) = _files(scan), scan.uses[0]
    if not scan.windows:
        return Source(name, "relation", scan.source, columns=tuple(read.items()))
    stamp = family.groups[g].common.inputs[i].event_time
    only_compared = len(boundaries) == len(scan.windows) == 1 and stamp not in computed
    dealt = all(len(group.common.inputs) == 1 for group in family.groups) or family.division.stream == scan.source
    return Source(name, "stream", scan.source, (_range(scan, boundaries),), tuple(read.items()), dealt,
                  stamp if only_compared else None)


def _range(scan: SharedScan, boundaries: tuple[int, ...]) -> Range:
    """Of all windows at all boundaries."""
    spans = [span(w, t) for w in scan.windows for t in (boundaries[0], boundaries[-1])]
    return Range(-ALWAYS, boundaries[-1], min(since for since, _ in spans), max(until for _, until in spans))


def _dictionaries(scan: SharedScan, contexts: tuple[Lowering, ...], source: Source) -> tuple[Definition, ...]:
    g, i = scan.uses[0]
    where = within(contexts[g], i, source.ranges) if source.ranges else "TRUE"
    define = []
    for k, scale in enumerate(scan.marks.scales):
        sql = dictionary(scale, *scan.marks.reach[k], f"{source.name} WHERE {where}", contexts[g].dialect)
        define.append(Definition(_dictionary(scan, k), sql, True))
    return tuple(define)


def _steps(family: Family, contexts: tuple[Lowering, ...], all_cells: tuple[_Cells, ...], n: int, t: int,
           counted_at: Mapping[int, int | None]) -> list[Step]:
    """Of one boundary; what they define is dropped after the last."""
    due = [g for g, group in enumerate(family.groups) if t % group.common.every == 0]
    define: list[Definition] = []      # before the first group: the cells that its group and others read
    cells_of: dict[Use, _Cells] = {}
    for cells in all_cells:
        cells_of |= dict.fromkeys(cells.scan.uses, cells)
        if not {g for g, _ in cells.scan.uses}.isdisjoint(due):
            define.append(Definition(_cells_at(cells.scan, n), _cell_rows(cells, contexts, t), True))
    define += _sub_joins(family, contexts, cells_of, n, t, due)
    steps: list[Step] = []
    by_sub_join: dict[int, tuple[int, SubJoin, Reader]] = {}
    for number, sub_join in enumerate(family.sub_joins):
        by_sub_join |= {reader.number: (number, sub_join, reader) for reader in sub_join.readers}
    for g in due:
        if g in by_sub_join:
            number, sub_join, reader = by_sub_join[g]
            names, own = _other_cells(reader, contexts[g], cells_of, n, t)
            above = joined.lowered_above(reader, contexts[g])
            steps.append(joined.answer(sub_join, number, reader, above, n, t, names, (*define, *own)))
            define = []
            continue
        group, ctx = family.groups[g], contexts[g]
        names = {i: f"{_prefix(g)}cells_{i}_at_{n}" for i in ctx.inputs}
        for i, name in names.items():
            cells = cells_of[g, i]
            define.append(Definition(name, _members(group, ctx, i, cells, _cells_at(cells.scan, n), t), True))
        steps.append(answered(group, ctx, t, names, tuple(define), f"_at_{n}", _prefix(g), g))
        if counted_at.get(g) == t:
            steps.append(counting(group, ctx, t, names, _prefix(g), g))
        define = []
    if steps:
        defined = chain.from_iterable(step.define for step in steps)
        steps[-1] = replace(steps[-1], drop=tuple(definition.name for definition in defined))
    return steps


def counted_as(family: Family, number: int) -> int:
    """The answer's number of what is counted of a sub-join, after those of the groups."""
    return numbered(len(family.groups) + number)


def _counted_prefix(number: int) -> str:
    return f"counted_{number}_"


def _sub_join_counts(family: Family, contexts: tuple[Lowering, ...], all_cells: tuple[_Cells, ...],
                     boundaries: tuple[int, ...], counted: tuple[SubJoin, ...]) -> list[Step]:
    """What is counted of each sub-join's cells at the last boundary: it has cells of its own, also where a reader is
    not due.
    """
    steps, t, scanned = list[Step](), boundaries[-1], set[int]()
    cells_of = {use: cells for cells in all_cells for use in cells.scan.uses}
    for number, sub_join in enumerate(counted):
        first, define, names = sub_join.readers[0], list[Definition](), dict[int, str]()
        ctx = joined.lowered(sub_join, contexts[first.number], family.division)
        for side in (0, 1):
            cells = cells_of[first.number, first.pair[side]]
            names[side] = f"{_counted_prefix(number)}cells_{side}"
            scan = f"counted_cells_of_{cells.scan.number}"
            if cells.scan.number not in scanned:
                define.append(Definition(scan, _cell_rows(cells, contexts, t), True))
            scanned.add(cells.scan.number)
            define.append(Definition(names[side], _members(sub_join.group, ctx, side, cells, scan, t), True))
        counts = counting(sub_join.group, ctx, t, names, _counted_prefix(number))
        steps.append(replace(counts, define=tuple(define), number=counted_as(family, number)))
    return steps


def _sub_joins(family: Family, contexts: tuple[Lowering, ...], cells_of: Mapping[Use, _Cells], n: int, t: int,
               due: list[int]) -> list[Definition]:
    """The rows of each sub-join that a group reads at this boundary."""
    define: list[Definition] = []
    for number, sub_join in enumerate(family.sub_joins):
        if sub_join.numbers.isdisjoint(due):
            continue
        first = sub_join.readers[0]
        ctx = joined.lowered(sub_join, contexts[first.number], family.division)
        names = {side: f"{joined.prefix(number)}cells_{side}_at_{n}" for side in (0, 1)}
        for side, name in names.items():
            cells = cells_of[first.number, first.pair[side]]
            define.append(Definition(name, _members(sub_join.group, ctx, side, cells, _cells_at(cells.scan, n), t),
                                     True))
        define += joined.made(sub_join, number, ctx, n, names)
    return define


def _other_cells(reader: Reader, ctx: Lowering, cells_of: Mapping[Use, _Cells], n: int,
                 t: int) -> tuple[dict[int, str], list[Definition]]:
    """The cells of the inputs that a reader of a sub-join has beside it: their names by input, and their definitions.
    """
    above, names, define = joined.lowered_above(reader, ctx), dict[int, str](), list[Definition]()
    for place, i in enumerate(i for i in ctx.inputs if i not in reader.pair):
        cells = cells_of[reader.number, i]
        names[place] = f"{_prefix(reader.number)}cells_{place}_at_{n}"
        sql = _members(reader.group, above, place, cells, _cells_at(cells.scan, n), t)
        define.append(Definition(names[place], sql, True))
    return names, define


def _cell_rows(cells: _Cells, contexts: tuple[Lowering, ...], t: int) -> str:
    """Rows that count at t, noted and merged."""
    scan, (g, i) = cells.scan, cells.scan.uses[0]
    ctx = contexts[g]
    values = [f"{sql} AS {name}" for sql, name in cells.attributes.items()]
    values += [f"{sql} AS {name}" for (_, sql), (name, _) in cells.measures.items()] + ["CAST(1 AS BIGINT) AS c"]
    values += [*noted(scan.marks, ctx.dialect), *_segment(scan, ctx, i, t)]
    conditions = [within(ctx, i, (_range(scan, (t,)),)) if scan.windows else "TRUE"]
    conditions += _shared_conditions(scan, contexts)
    rows = f"SELECT {', '.join(values)} FROM {_files(scan)} WHERE {' AND '.join(conditions)}"
    names = tuple(_dictionary(scan, k) for k in range(len(scan.marks.scales)))
    if not cells.merged:
        columns = [*cells.columns, *(name for name, _ in cells.measures.values()), "c"]
        return f"SELECT {', '.join(columns)} FROM {marked(scan.marks, rows, names)}"
    sums = ["CAST(sum(c) AS BIGINT) AS c"]
    sums += [f"{merged(measure, name, ctx)} AS {name}" for name, measure in cells.measures.values()]
    by = f" GROUP BY {', '.join(cells.columns)}" if cells.columns else " HAVING count(*) > 0"
    return f"SELECT {', '.join([*cells.columns, *sums])} FROM {marked(scan.marks, rows, names)}{by}"


def _segment(scan: SharedScan, ctx: Lowering, i: int, t: int) -> list[str]:
    if len(scan.windows) < 2:
        return []
    stamp = d.identifier(ctx.shape.query.inputs[i].event_time or "", ctx.dialect)
    passed = [f"CAST({stamp} >= {d.instant(bound, ctx.dialect)} AS INTEGER)" for bound in scan.bounds(t)]
    return [f"{' + '.join(passed or ['0'])} AS {SEGMENT}"]


def _shared_conditions(scan: SharedScan, contexts: tuple[Lowering, ...]) -> list[str]:
    """No NULL in a key of all readers, and this task's share."""
    keys_by_use = []
    for g, i in scan.uses:
        ctx = contexts[g]
        keys = [key.expr for key in ctx.shape.key_attributes(i) if not ctx.never_null(i, key.expr)]
        keys_by_use.append([_text(ctx, expr) for expr in keys])
    of_all_readers = set(keys_by_use[0]).intersection(*keys_by_use)
    conditions = [f"{key} IS NOT NULL" for key in keys_by_use[0] if key in of_all_readers]
    for g, i in scan.uses:
        ctx = contexts[g]
        if len(ctx.inputs) > 1:      # all that join divide the source by the same key, if by any
            of_this_task = share(ctx, i, [_text(ctx, attribute.expr) for attribute in ctx.shape.attributes[i]])
            return conditions + ([of_this_task] if of_this_task else [])
    return conditions


def _members(group: Group, ctx: Lowering, i: int, cells: _Cells, relation: str, t: int) -> str:
    """Input i's cells as a group by itself would have made them from the rows."""
    group_marks = group.marks[i] if i in group.told_apart else marks(((),))
    family_marks = cells.scan.marks
    values = [f"{cells.attributes[_text(ctx, a.expr)]} AS {a.name}" for a in ctx.shape.attributes[i]]
    values += [f"{cells.measures[m.kind, row_value(ctx, m)][0]} AS {m.name}" for m in ctx.shape.measures_of(i)]
    values += ["c", *_translated(group_marks, family_marks, i)]
    conditions = _in_window(cells.scan, ctx.window(i), t)
    conditions += _chosen(family_marks, choice_of(family_marks, common(group, i)))
    conditions += [f"{cells.attributes[_text(ctx, a.expr)]} IS NOT NULL" for a in ctx.shape.key_attributes(i)]
    rows = f"(SELECT {', '.join(values)} FROM {relation} WHERE {' AND '.join(conditions) or 'TRUE'}) AS q"
    reached = [f"_r{k} >= {since} AND _r{k} < {until}" for k, (since, until) in enumerate(group_marks.reach)]
    return grouped(ctx, i, rows, group_marks.names, where=" AND ".join(reached) or "TRUE")


def _in_window(scan: SharedScan, window: Window | None, t: int) -> list[str]:
    bounds = scan.bounds(t)
    if window is None or not bounds:
        return []
    place = {b: n for n, b in enumerate(bounds, 1)}
    since, until = span(window, t)
    return [f"{SEGMENT} {sign} {place[b]}" for sign, b in ((">=", since), ("<", until)) if b in place]


def _chosen(family_marks: Marks, choice: Choice) -> list[str]:
    """The conditions that a cell is of the choice."""
    spans = [
        f"_r{k} >= {since} AND _r{k} < {until}" for k, (since, until) in enumerate(choice.spans)
        if (since, until) != (0, family_marks.scales[k].top)
    ]
    return spans + [f"(_w{k} & {mask}) = {mask}" for k, mask in enumerate(choice.masks) if mask]


def _translated(group_marks: Marks, family_marks: Marks, i: int) -> list[str]:
    """A group's marks from the family's, which have more cuts and bits."""
    place: Callable[[Expr], Expr] = lambda e: placed(e, {i: 0})
    columns = []
    for k, scale in enumerate(group_marks.scales):
        at = next(n for n, s in enumerate(family_marks.scales) if s.expr == place(scale.expr))
        cuts, all_cuts = {place(c) for c in scale.cuts}, family_marks.scales[at].cuts
        passed = [0]
        for cut in all_cuts:
            passed.append(passed[-1] + (cut in cuts))
        numbers = ", ".join(map(str, [*passed, len(cuts) + 1]))
        same_cuts = len(cuts) == len(all_cuts)
        columns.append(f"{f'_r{at}' if same_cuts else f'([{numbers}])[_r{at} + 1]'} AS _r{k}")
    bit_place = {bit: n for n, bit in enumerate(family_marks.bits)}
    for k in range(group_marks.words):
        terms = []
        for n, bit in enumerate(group_marks.bits[k * WORD:(k + 1) * WORD]):
            at = bit_place[place(bit)]
            terms.append(f"((_w{at // WORD} >> {at % WORD}) & 1) * {1 << n}")
        columns.append(f"{' + '.join(terms)} AS _w{k}")
    return columns
