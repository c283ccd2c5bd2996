"""Joins of two inputs that several query groups of a family have in common: each as a query group of its own, and what
its readers are once they read its rows in the place of both inputs (paper E, section 4: subqueries that are shared).

No SQL and no prices.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

from optimizer.expression.expr import Call, Column, Expr, columns, inputs
from optimizer.expression.types import BIGINT
from optimizer.plan.model import Plan, connected_order
from optimizer.query.model import Aggregate, Input, Query
from optimizer.query.normal import placed
from optimizer.query.shape import home, shape
from optimizer.query.windows import SECOND, Window
from optimizer.sharing.group import Group
from optimizer.sharing.marks import Conjuncts

Pair = tuple[int, int]
Equalities = frozenset[tuple[Expr, Expr]]


@dataclass(frozen=True)
class SubJoinKey:
    """What a join of two inputs is known by, whichever queries ask for it: both inputs, and what is equal in them."""

    sides: tuple[Input, Input]
    equalities: Equalities

    @property
    def name(self) -> str:
        """`v 20 s ⋈ w 20 s on vid = vid`: no other sub-join of a family has it."""
        sides = [f"{side.source}{_length(side.window)}" for side in self.sides]
        equal = sorted(" = ".join(_as_text(expr) for expr in pair) for pair in self.equalities)
        return f"{' ⋈ '.join(sides)} on {' and '.join(equal)}"


def _length(window: Window | None) -> str:
    """A window in a sub-join's name; a relation has none."""
    if window is None:
        return ""
    if window.kind == "landmark":
        return " until now"
    slide = f" by {window.slide / SECOND:g} s" if window.slide else ""
    return f" {window.range / SECOND:g} s{' tumbling' if window.kind == 'tumbling' else slide}"


def _as_text(expr: Expr) -> str:
    if isinstance(expr, Call):
        return f"{expr.function}({', '.join(map(_as_text, expr.args))})"
    return expr.name if isinstance(expr, Column) else str(getattr(expr, "value", expr))


PairsInCommon = Mapping[SubJoinKey, Mapping[int, Pair]]      # by sub-join and the number of a group that has it


@dataclass(frozen=True)
class Reader:
    """A query group that reads a sub-join: its number in the family, which of its inputs are joined there, and the
    group with the sub-join's rows as its last input. `classes[c]`: the sub-join's class behind the group's class c.
    """

    number: int
    pair: Pair
    group: Group
    classes: tuple[int, ...]

    @property
    def joined(self) -> int:
        """The number of the input that the sub-join is."""
        return len(self.group.common.inputs) - 1


@dataclass(frozen=True)
class SubJoin:
    """A join of two inputs with its readers; `group` answers it: grouped by all that readers need above it, by the
    classes of selections that they have on both inputs.
    """

    key: SubJoinKey
    group: Group
    readers: tuple[Reader, ...]

    @cached_property
    def numbers(self) -> frozenset[int]:
        """The numbers of its readers."""
        return frozenset(reader.number for reader in self.readers)

    def of_reader(self, number: int) -> Group:
        """The sub-join as one of its readers alone would need it."""
        (classes,) = (reader.classes for reader in self.readers if reader.number == number)
        return replace(self.group, classes=tuple(self.group.classes[c] for c in dict.fromkeys(classes)))


def pairs(group: Group) -> dict[SubJoinKey, Pair]:
    """The pairs of a group's inputs that equalities join, each by its key; a join of an input with itself is none."""
    found: dict[SubJoinKey, Pair] = {}
    if group.common.returns_rows:
        return found
    for pair in combinations(range(len(group.common.inputs)), 2):
        equalities = _equalities(group, pair)
        declared = [replace(group.common.inputs[i], alias="") for i in pair]
        if equalities and declared[0] != declared[1]:
            found.setdefault(SubJoinKey((declared[0], declared[1]), equalities), pair)
    return found


def _equalities(group: Group, pair: Pair) -> Equalities:
    """What the equalities of a group make equal in two of its inputs, also by way of others; nothing where one of them
    has two values that have to be equal.
    """
    place = {i: number for number, i in enumerate(pair)}
    equal = set()
    for members in shape(group.common).keys:
        sides = [[placed(a.expr, place) for j, a in members if j == i] for i in pair]
        if any(len(side) > 1 for side in sides):
            return frozenset()
        if all(sides):
            equal.add((sides[0][0], sides[1][0]))
    return frozenset(equal)


def pairs_in_common(groups: Sequence[Group]) -> PairsInCommon:
    """The joins that two groups at least have in common, each with the inputs of every group that has it."""
    pair_by_group: dict[SubJoinKey, dict[int, Pair]] = {}
    for number, group in enumerate(groups):
        for key, pair in pairs(group).items():
            pair_by_group.setdefault(key, {})[number] = pair
    return {key: of_key for key, of_key in pair_by_group.items() if len(of_key) > 1}


def pairs_read(groups: Sequence[Group]) -> PairsInCommon:
    """The same of the joins that the plans of these groups read."""
    pair_by_group: dict[SubJoinKey, dict[int, Pair]] = {}
    for number, group in enumerate(groups):
        for key, pair in pairs(group).items() if group.plan.read_joined else ():
            if pair == group.plan.read_joined:
                pair_by_group.setdefault(key, {})[number] = pair
    return pair_by_group


def candidates(groups: Sequence[Group]) -> tuple[SubJoin, ...]:
    """The sub-joins that two groups at least have in common."""
    return tuple(sub_join(groups, key, of_key) for key, of_key in pairs_in_common(groups).items())


def chosen(groups: Sequence[Group]) -> tuple[SubJoin, ...]:
    """The sub-joins that the plans of these groups read."""
    return tuple(sub_join(groups, key, of_key) for key, of_key in pairs_read(groups).items())


def sub_join(groups: Sequence[Group], key: SubJoinKey, pair_by_group: Mapping[int, Pair]) -> SubJoin:
    """One sub-join with these readers."""
    needed: dict[Expr, None] = {}
    aggregates = {Aggregate("count", None, BIGINT): None}
    selections: dict[tuple[Conjuncts, Conjuncts], int] = {}
    classes_by_group: dict[int, tuple[int, ...]] = {}
    for number, pair in pair_by_group.items():
        group, place = groups[number], {i: side for side, i in enumerate(pair)}
        needed |= dict.fromkeys(placed(expr, place) for expr in _needed_above(group, pair))
        for aggregate in _made_below(group, pair):
            argument = placed(aggregate.argument, place) if aggregate.argument is not None else None
            aggregates[replace(aggregate, argument=argument)] = None
        of_group = []
        for numbers in group.classes:
            both = (_selected(group, pair[0], numbers, place), _selected(group, pair[1], numbers, place))
            of_group.append(selections.setdefault(both, len(selections)))
        classes_by_group[number] = tuple(of_group)
    query = Query(inputs=(replace(key.sides[0], alias="i0"), replace(key.sides[1], alias="i1")),
                  equalities=tuple(sorted(key.equalities, key=repr)), selections=(), residuals=(),
                  groups=tuple(sorted(needed, key=repr)), aggregates=tuple(aggregates), having=None, outputs=(),
                  every=1, text="")
    joined = _by_selections(query, tuple(selections))
    readers = []
    for number, pair in pair_by_group.items():
        classes = classes_by_group[number]
        readers.append(Reader(number, pair, _above(groups[number], pair, query, classes), classes))
    return SubJoin(key, joined, tuple(readers))


def _by_selections(query: Query, selections: Sequence[tuple[Conjuncts, Conjuncts]]) -> Group:
    """The sub-join as a group: what all select is common, the rest are choices and classes, in the order given."""
    common: list[Expr] = []
    choices: list[dict[Conjuncts, int]] = [{}, {}]
    classes: list[list[int]] = [[] for _ in selections]
    for side in (0, 1):
        of_all = frozenset(selections[0][side]).intersection(*(both[side] for both in selections))
        common += sorted(of_all, key=repr)
        for number, both in enumerate(selections):
            choice = tuple(expr for expr in both[side] if expr not in of_all)
            classes[number].append(choices[side].setdefault(choice, len(choices[side])))
    group = Group(replace(query, selections=tuple(common)), tuple(map(tuple, choices)), tuple(map(tuple, classes)), ())
    return replace(group, chosen=replace(group.plan, split="after"))


def _selected(group: Group, i: int, numbers: Sequence[int], place: Mapping[int, int]) -> Conjuncts:
    """All that a class of the group selects of input i."""
    conjuncts = (*shape(group.common).selections[i], *group.choices[i][numbers[i]])
    return tuple(sorted({placed(expr, place) for expr in conjuncts}, key=repr))


def _needed_above(group: Group, pair: Pair) -> list[Expr]:
    """Values of both inputs that are read of their joined rows: what is grouped by, joined on with other inputs, or
    read by an expression over several inputs.
    """
    query, group_shape = group.common, shape(group.common)
    needed: list[Expr] = [expr for expr in query.groups if home(expr) in pair and inputs(expr)]
    for members in group_shape.keys:
        if any(j not in pair for j, _ in members):
            needed += [attribute.expr for j, attribute in members if j in pair]
    across: list[Expr] = [*(expr for expr in query.groups if home(expr) is None), *query.residuals]
    below = _made_below(group, pair)
    across += [a.argument for a in query.aggregates if a.argument is not None and a not in below
               and home(a.argument) is None]
    for expr in across:
        needed += [column for column in columns(expr) if column.input in pair]
    return needed


def _made_below(group: Group, pair: Pair) -> tuple[Aggregate, ...]:
    """The aggregates of values that both inputs have between them."""
    made = []
    for aggregate in group.common.aggregates:
        if aggregate.argument is not None:
            read = inputs(aggregate.argument) or {0}      # constants belong to the first input
            made += [aggregate] if read <= set(pair) else []
    return tuple(made)


def made_column(made: Iterable[Expr], argument: Expr, joined: int) -> Column:
    """The value that stands for an aggregate's argument above the sub-join: its measures are made below."""
    return Column(joined, f"x{list(made).index(argument)}", argument.type)


def arguments(query: Query) -> tuple[Expr, ...]:
    """The arguments of a sub-join's aggregates, each once."""
    return tuple(dict.fromkeys(a.argument for a in query.aggregates if a.argument is not None))


def _above(group: Group, pair: Pair, below: Query, classes: Sequence[int]) -> Group:
    """The group with the rows of the sub-join as its last input, in the place of both."""
    query = group.common
    others = [i for i in range(len(query.inputs)) if i not in pair]
    joined = len(others)
    place_below = {i: side for side, i in enumerate(pair)}
    place = {i: number for number, i in enumerate(others)}
    groups_below = {expr: Column(joined, f"g{k}", expr.type) for k, expr in enumerate(below.groups)}
    made, made_here = arguments(below), _made_below(group, pair)

    def above(expr: Expr) -> Expr:
        read = inputs(expr)
        if read and read <= set(pair):
            known = groups_below.get(placed(expr, place_below))
            if known is not None:
                return known
        if isinstance(expr, Column):
            return replace(expr, input=place[expr.input])
        return replace(expr, args=tuple(above(a) for a in expr.args)) if isinstance(expr, Call) else expr

    def aggregate_above(aggregate: Aggregate) -> Aggregate:
        if aggregate.argument is None:
            return aggregate
        if aggregate in made_here:
            return replace(aggregate, argument=made_column(made, placed(aggregate.argument, place_below), joined))
        return replace(aggregate, argument=above(aggregate.argument))

    of_both = Input(f"i{joined}", "joined", query.inputs[pair[0]].window or query.inputs[pair[1]].window, None, ())
    equalities = tuple((above(a), above(b)) for a, b in query.equalities if not inputs(a) | inputs(b) <= set(pair))
    remaining = [i for i in range(len(query.inputs)) if i in others]
    common = replace(
        query,
        inputs=(*(replace(query.inputs[i], alias=f"i{place[i]}") for i in others), of_both),
        equalities=equalities,
        selections=tuple(placed(e, place) for i in remaining for e in shape(query).selections[i]),
        residuals=tuple(map(above, query.residuals)),
        groups=tuple(map(above, query.groups)),
        aggregates=tuple(map(aggregate_above, query.aggregates)),
    )
    numbers = {below_class: number for number, below_class in enumerate(dict.fromkeys(classes))}
    choices = (*(tuple(tuple(placed(e, place) for e in choice) for choice in group.choices[i]) for i in others),
               tuple(() for _ in numbers))
    of_classes = tuple((*(of_class[i] for i in others), numbers[classes[c]])
                       for c, of_class in enumerate(group.classes))
    plan = Plan((True,) * (joined + 1), "recompute", connected_order(shape(common)), layout="raw")
    return Group(common, choices, of_classes, group.templates, plan)
