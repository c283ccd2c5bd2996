"""Groups that read the same streams as one work: a stream is scanned, and its selections noted, once for all windows,
groupings and joins (paper E, Fig. 8).

Cells are rows with all attributes that any group needs, their marks, and the window bounds between which they lie; each
group merges its own sets from them.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

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
from optimizer.sharing.counted import countable, counting
from optimizer.sharing.group import Group
from optimizer.sharing.marks import WORD, Choice, Conjuncts, Marks, choice_of, marks
from optimizer.sharing.program import answered, classes, lowering
from optimizer.sharing.scan import dictionary, marked, noted

SEGMENT = "_segment"        # how many of the bounds of all windows a row's event time has passed
Use = tuple[int, int]       # a group's number, its input's


def keys(group: Group) -> Mapping[str, frozenset[Expr]] | None:
    """By source what the join's tasks are divided by.

    Nothing for a single input, None where no key is common to all inputs.
    """
    if len(group.common.inputs) == 1:
        return {}
    common = shape(group.common).common_key()
    if common is None:
        return None
    found: dict[str, set[Expr]] = {}
    for i, attribute in enumerate(common):
        found.setdefault(group.common.inputs[i].source, set()).add(placed(attribute.expr, {i: 0}))
    return {source: frozenset(exprs) for source, exprs in found.items()}


def apart(group: Group) -> str | None:
    """Why no other group can read this one's scans."""
    divided = keys(group)
    if divided is None or any(len(exprs) > 1 for exprs in divided.values()):
        return "its inputs have no key in common by which tasks could divide the scan"
    if failing(lowering(group)):
        return "an expression of it can fail on a row, which must not fail others"
    return None


def related(groups: Iterable[Group]) -> bool:
    """Whether these can be one family: by way of streams in common each reaches each other, and tasks divide every
    source by one key.
    """
    listed = tuple(groups)
    divided: dict[str, set[Expr]] = {}
    for group in listed:
        for source, exprs in (keys(group) or {}).items():
            divided.setdefault(source, set()).update(exprs)
    return all(len(exprs) == 1 for exprs in divided.values()) and connected(
        [{i.source for i in g.common.inputs if i.is_stream} for g in listed])


def connected(parts: list[set[str]]) -> bool:
    """Whether each reaches each other by way of what they have in common."""
    reached, left = set(parts[0]), parts[1:]
    while near := [p for p in left if p & reached]:
        reached.update(*near)
        left = [p for p in left if not p & reached]
    return not left


@dataclass(frozen=True)
class Family:
    """Groups with common streams. Each is numbered by its place; `related` holds of them."""

    groups: tuple[Group, ...]

    def __post_init__(self) -> None:
        if len(self.groups) > 1 and (not related(self.groups) or any(map(apart, self.groups))):
            raise ValueError("these groups are no family")

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
        return tuple(sorted({b for w in self.windows for b in span(w, t)
                             if abs(b) < ALWAYS})) if len(self.windows) > 1 else ()


def span(window: Window, t: int) -> tuple[int, int]:
    """since ≤ event time < until of the rows in the window at t."""
    whole = inside(window, t)
    return whole.since, whole.until


def _scan(groups: tuple[Group, ...], number: int, source: str) -> SharedScan:
    uses = tuple((g, i)
                 for g, group in enumerate(groups)
                 for i, declared in enumerate(group.common.inputs)
                 if declared.source == source)
    windows = dict.fromkeys(w for g, i in uses for w in (groups[g].common.inputs[i].window,) if w is not None)
    return SharedScan(number, source, uses, tuple(windows),
                      marks(dict.fromkeys(c for g, i in uses for c in wanted(groups[g], i))))


def wanted(group: Group, i: int) -> tuple[Conjuncts, ...]:
    """The whole selections of input i, one a choice, said of input 0."""
    return tuple((*common(group, i), *(placed(e, {i: 0}) for e in choice)) for choice in group.choices[i])


def common(group: Group, i: int) -> Conjuncts:
    """What all members of the group select of input i."""
    return tuple(placed(e, {i: 0}) for e in shape(group.common).selections[i])


@dataclass(frozen=True)
class _Cells:
    """What the statements name in a scan's cells: attributes and measures by the SQL that computes them.

    Rows are `merged` where all readers need the same attributes; merged by those of several they would hardly be fewer,
    at the price of merging."""

    scan: SharedScan
    attributes: Mapping[str, str]
    measures: Mapping[tuple[str, str], tuple[str, Measure]]
    merged: bool

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.attributes.values(), *self.scan.marks.names, *((SEGMENT,) if len(self.scan.windows) > 1 else ()))


def family_program(family: Family, lows: tuple[Lowering, ...], boundaries: tuple[int, ...],
                   count: bool = False) -> Program:
    """All statements for these boundaries: at each one cells of every source that is due, then group by group. Nothing
    is kept.

    `count`: with what is counted of each group's cells at the last boundary at which it is due."""
    made = tuple(_cells(scan, lows) for scan in family.scans)
    sources = tuple(_source(family, c.scan, lows, boundaries) for c in made)
    setup = [definition for g, group in enumerate(family.groups) for definition in classes(group, f"b{g}")]
    setup += [found for c, source in zip(made, sources) for found in _dictionaries(c.scan, lows, source)]
    last = {
        g: max((t for t in boundaries if t % group.common.every == 0),
               default=None) for g, group in enumerate(family.groups) if count and countable(group)
    }
    return Program(sources, tuple(setup),
                   tuple(step for n, t in enumerate(boundaries) for step in _steps(family, lows, made, n, t, last)))


def _cells(scan: SharedScan, lows: tuple[Lowering, ...]) -> _Cells:
    attributes: dict[str, str] = {}
    measures: dict[tuple[str, str], tuple[str, Measure]] = {}
    for ctx, i in ((lows[g], i) for g, i in scan.uses):
        for a in ctx.shape.attributes[i]:
            attributes.setdefault(_text(ctx, a.expr), f"a{len(attributes)}")
        for m in ctx.shape.measures_of(i):
            measures.setdefault((m.kind, row_value(ctx, m)), (f"m{len(measures)}", m))
    return _Cells(scan, attributes, measures,
                  all(len(lows[g].shape.attributes[i]) == len(attributes) for g, i in scan.uses))


def _text(ctx: Lowering, expr: Expr) -> str:
    return safe(expr, ctx.dialect, stored_name(ctx))


def _source(family: Family, scan: SharedScan, lows: tuple[Lowering, ...], boundaries: tuple[int, ...]) -> Source:
    read: dict[str, Type] = {}
    computed: set[str] = set()
    for g, i in scan.uses:
        chosen = {c.name: c.type for conjuncts in wanted(family.groups[g], i) for e in conjuncts for c in columns(e)}
        read |= chosen | dict(read_columns(lows[g], i))
        computed |= chosen.keys() | {c.name for c in raw_columns(lows[g].shape, i)}
    name, (g, i) = f"s{scan.number}", scan.uses[0]
    if not scan.windows:
        return Source(name, "relation", scan.source, columns=tuple(read.items()))
    stamp = family.groups[g].common.inputs[i].event_time
    known = stamp if len(boundaries) == len(scan.windows) == 1 and stamp not in computed else None
    dealt = all(len(group.common.inputs) == 1 for group in family.groups)
    return Source(name, "stream", scan.source, (_range(scan, boundaries),), tuple(read.items()), dealt, known)


def _range(scan: SharedScan, boundaries: tuple[int, ...]) -> Range:
    """Of all windows at all boundaries."""
    spans = [span(w, t) for w in scan.windows for t in (boundaries[0], boundaries[-1])]
    return Range(-ALWAYS, boundaries[-1], min(since for since, _ in spans), max(until for _, until in spans))


def _dictionaries(scan: SharedScan, lows: tuple[Lowering, ...], source: Source) -> tuple[Definition, ...]:
    g, i = scan.uses[0]
    where = within(lows[g], i, source.ranges) if source.ranges else "TRUE"
    return tuple(
        Definition(f"d{scan.number}_{k}",
                   dictionary(scale, *scan.marks.reach[k], f"s{scan.number} WHERE {where}", lows[g].dialect), True)
        for k, scale in enumerate(scan.marks.scales))


def _steps(family: Family, lows: tuple[Lowering, ...], made: tuple[_Cells, ...], n: int, t: int,
           counted_at: Mapping[int, int | None]) -> list[Step]:
    """Of one boundary; what they define is gone after the last."""
    due = [g for g, group in enumerate(family.groups) if t % group.common.every == 0]
    shared = [
        Definition(f"f{c.scan.number}_{n}", _cell_rows(c, lows, t), True) for c in made if any(g in due
                                                                                               for g, _ in c.scan.uses)
    ]
    place = {use: c for c in made for use in c.scan.uses}
    steps: list[Step] = []
    for g in due:
        names = {i: f"b{g}w{i}_{n}" for i in lows[g].inputs}
        own = [
            Definition(name, _members(family.groups[g], lows[g], i, place[g, i], f"f{place[g, i].scan.number}_{n}", t),
                       True) for i, name in names.items()
        ]
        steps.append(answered(family.groups[g], lows[g], t, names, (*shared, *own), f"_{n}", f"b{g}", g))
        steps += [counting(family.groups[g], lows[g], t, names, f"b{g}", g)] if counted_at.get(g) == t else []
        shared = []
    return [
        *steps[:-1], *(replace(step, drop=tuple(name for s in steps for name, _, _ in s.define)) for step in steps[-1:])
    ]


def _cell_rows(made: _Cells, lows: tuple[Lowering, ...], t: int) -> str:
    """Rows that count at t, noted and merged."""
    scan, (g, i) = made.scan, made.scan.uses[0]
    ctx = lows[g]
    values = [f"{sql} AS {name}" for sql, name in made.attributes.items()]
    values += [f"{sql} AS {name}" for (_, sql), (name, _) in made.measures.items()] + ["CAST(1 AS BIGINT) AS c"]
    values += [*noted(scan.marks, ctx.dialect), *_segment(scan, ctx, i, t)]
    conditions = [within(ctx, i, (_range(scan, (t,)),)) if scan.windows else "TRUE", *_shared_conditions(scan, lows)]
    rows = f"SELECT {', '.join(values)} FROM s{scan.number} WHERE {' AND '.join(conditions)}"
    names = tuple(f"d{scan.number}_{k}" for k in range(len(scan.marks.scales)))
    if not made.merged:
        return (f"SELECT {', '.join([*made.columns, *(name for name, _ in made.measures.values()), 'c'])} FROM "
                f"{marked(scan.marks, rows, names)}")
    sums = ["CAST(sum(c) AS BIGINT) AS c", *(f"{merged(m, name, ctx)} AS {name}" for name, m in made.measures.values())]
    by = f" GROUP BY {', '.join(made.columns)}" if made.columns else " HAVING count(*) > 0"
    return f"SELECT {', '.join([*made.columns, *sums])} FROM {marked(scan.marks, rows, names)}{by}"


def _segment(scan: SharedScan, ctx: Lowering, i: int, t: int) -> list[str]:
    if len(scan.windows) < 2:
        return []
    stamp = d.identifier(ctx.shape.query.inputs[i].event_time or "", ctx.dialect)
    return [
        " + ".join([f"CAST({stamp} >= {d.instant(b, ctx.dialect)} AS INTEGER)" for b in scan.bounds(t)] or ["0"])
        + f" AS {SEGMENT}"
    ]


def _shared_conditions(scan: SharedScan, lows: tuple[Lowering, ...]) -> list[str]:
    """No NULL in a key of all readers, and this task's share."""
    each = [[_text(lows[g], a.expr)
             for a in lows[g].shape.key_attributes(i)
             if not lows[g].never_null(i, a.expr)]
            for g, i in scan.uses]
    found = [f"{key} IS NOT NULL" for key in each[0] if all(key in other for other in each)]
    keyed = next(((lows[g], i) for g, i in scan.uses if len(lows[g].inputs) > 1), None)
    mine = share(keyed[0], keyed[1], [_text(keyed[0], a.expr)
                                      for a in keyed[0].shape.attributes[keyed[1]]]) if keyed else None
    return found + ([mine] if mine else [])


def _members(group: Group, ctx: Lowering, i: int, made: _Cells, cells: str, t: int) -> str:
    """Input i's cells as a group of its own would have made them from the rows."""
    own = group.marks[i] if i in group.told_apart else marks(((),))
    values = [f"{made.attributes[_text(ctx, a.expr)]} AS {a.name}" for a in ctx.shape.attributes[i]]
    values += [f"{made.measures[m.kind, row_value(ctx, m)][0]} AS {m.name}" for m in ctx.shape.measures_of(i)]
    values += ["c", *_translated(own, made.scan.marks, i)]
    conditions = [
        *_in_window(made.scan, ctx.window(i), t),
        *_chosen(made.scan.marks, choice_of(made.scan.marks, common(group, i)))
    ]
    conditions += [f"{made.attributes[_text(ctx, a.expr)]} IS NOT NULL" for a in ctx.shape.key_attributes(i)]
    rows = f"(SELECT {', '.join(values)} FROM {cells} WHERE {' AND '.join(conditions) or 'TRUE'}) AS q"
    reached = [f"_r{k} >= {since} AND _r{k} < {until}" for k, (since, until) in enumerate(own.reach)]
    return grouped(ctx, i, rows, own.names, where=" AND ".join(reached) or "TRUE")


def _in_window(scan: SharedScan, window: Window | None, t: int) -> list[str]:
    bounds = scan.bounds(t)
    if window is None or not bounds:
        return []
    place = {b: n for n, b in enumerate(bounds, 1)}
    since, until = span(window, t)
    return [f"{SEGMENT} {sign} {place[b]}" for sign, b in ((">=", since), ("<", until)) if b in place]


def _chosen(known: Marks, choice: Choice) -> list[str]:
    spans = [
        f"_r{k} >= {since} AND _r{k} < {until}" for k, (since, until) in enumerate(choice.spans)
        if (since, until) != (0, known.scales[k].top)
    ]
    return spans + [f"(_w{k} & {mask}) = {mask}" for k, mask in enumerate(choice.masks) if mask]


def _translated(own: Marks, known: Marks, i: int) -> list[str]:
    """A group's marks from the family's, which have more cuts and bits."""
    place: Callable[[Expr], Expr] = lambda e: placed(e, {i: 0})
    found = []
    for k, scale in enumerate(own.scales):
        at = next(n for n, s in enumerate(known.scales) if s.expr == place(scale.expr))
        cuts = {place(c) for c in scale.cuts}
        passed = [0]
        for cut in known.scales[at].cuts:
            passed.append(passed[-1] + (cut in cuts))
        numbers = ", ".join(map(str, [*passed, len(cuts) + 1]))
        found.append((f"_r{at}" if len(cuts) == len(known.scales[at].cuts) else f"([{numbers}])[_r{at} + 1]")
                     + f" AS _r{k}")
    bit = {b: n for n, b in enumerate(known.bits)}
    for k in range(own.words):
        bits = [(n, bit[place(b)]) for n, b in enumerate(own.bits[k * WORD:(k + 1) * WORD])]
        found.append(" + ".join(f"((_w{at // WORD} >> {at % WORD}) & 1) * {1 << n}" for n, at in bits) + f" AS _w{k}")
    return found
