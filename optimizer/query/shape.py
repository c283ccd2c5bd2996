"""What a query asks of each input: attributes a partial is keyed by, measures it carries, and what stays for the join;
independent of any plan.

Rule 1 of paper A: an early aggregation groups on its own grouping and join attributes (here also whatever an expression
over several inputs reads). Rule 2: it carries its own aggregates' states, and COUNT(*) for the others (always: what is
subtracted from needs it).
"""
from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from optimizer.expression.expr import Column, Expr, columns, inputs
from optimizer.expression.types import BIGINT, Type
from optimizer.query.blocks import Rowset, RowsOfInput, columns_within, items_within
from optimizer.query.model import HOLISTIC, Aggregate, Query

SQUARABLE = 15      # digits: squares of longer decimals do not fit 38 digits with any margin


@dataclass(frozen=True)
class Attribute:
    """A value of one input that the join, the grouping or an expression across inputs reads."""

    name: str
    expr: Expr


@dataclass(frozen=True)
class Measure:
    """One mergeable column of a partial. Coalescing (paper A, Def. 5) multiplies additive ones by the other inputs'
    counts; extremes pass through.

    rows: COUNT(*) · count: non-NULL values · sum: Σ expr · square: Σ expr² · min, max · whole: an aggregate of the
    joined rows that nothing merges
    """

    name: str
    kind: str
    expr: Expr | None
    home: int | None              # the input that owns it; None: of the joined row
    type: Type
    aggregate: Aggregate | None = None

    @property
    def additive(self) -> bool:
        return self.kind in ("count", "sum", "square")


@dataclass(frozen=True)
class Shape:
    """`keys` are the classes of attributes that equalities make equal, as (input, attribute) members."""

    query: Query
    attributes: tuple[tuple[Attribute, ...], ...]
    selections: tuple[tuple[Expr, ...], ...]
    keys: tuple[tuple[tuple[int, Attribute], ...], ...]
    measures: tuple[Measure, ...]

    @property
    def whole(self) -> bool:
        """Whether the aggregates are computed of the joined rows at once, since one of them has no partial states."""
        return self.query.blocks is not None or any(m.kind == "whole" for m in self.measures)

    def attribute(self, expr: Expr) -> tuple[int, Attribute] | None:
        """The attribute that holds this value, with its input."""
        of_inputs = enumerate(self.attributes)
        return next(((i, a) for i, attributes in of_inputs for a in attributes if a.expr == expr), None)

    def measures_of(self, i: int) -> tuple[Measure, ...]:
        return tuple(m for m in self.measures if m.home == i)

    def joined_inputs(self) -> tuple[frozenset[int], ...]:
        """The inputs that each key joins, in the order of `keys`."""
        return tuple(frozenset(i for i, _ in members) for members in self.keys)

    def key_attributes(self, i: int) -> tuple[Attribute, ...]:
        return tuple(dict.fromkeys(a for members in self.keys for j, a in members if j == i))

    def common_key(self) -> tuple[Attribute, ...] | None:
        """One attribute an input, all equal in every joined row; None where the join has no such class."""
        for members in self.keys:
            first = {j: a for j, a in reversed(members)}
            if len(first) == len(self.query.inputs):
                return tuple(first[i] for i in range(len(first)))
        return None


def home(expr: Expr) -> int | None:
    """The one input an expression belongs to; constants belong to the first, None where it reads several."""
    read = inputs(expr)
    return None if len(read) > 1 else next(iter(read), 0)


def mergeable(aggregate: Aggregate) -> bool:
    """Whether partial states of it exist.

    Variances of floating values and long decimals would lose digits; they are computed whole.
    """
    if aggregate.function in HOLISTIC:
        return False
    spread = aggregate.function.startswith(("stddev", "var"))
    return not (spread and aggregate.argument and
                (aggregate.argument.type.floating or aggregate.argument.type.precision > SQUARABLE))


def shape(query: Query) -> Shape:
    """What the query asks of each input; see the head of this module."""
    if query.blocks is not None:
        return _of_blocks(query, query.blocks)
    wanted: list[Expr] = [e for e in query.groups if home(e) is not None]
    wanted += [side for pair in query.equalities for side in pair]
    measures = _measures(query)
    across: list[Expr] = [
        *(e for e in query.groups if home(e) is None), *query.residuals,
        *(m.expr for m in measures if m.home is None and m.expr)
    ]
    across += [expr for _, expr in query.outputs] if query.returns_rows else []
    wanted += [c for e in across for c in columns(e)]
    attributes: list[dict[Expr, Attribute]] = [{} for _ in query.inputs]
    for expr in wanted:
        i = home(expr)
        assert i is not None
        attributes[i].setdefault(expr, Attribute(f"a{i}_{len(attributes[i])}", expr))
    selections: list[list[Expr]] = [[] for _ in query.inputs]
    for selection in query.selections:
        if (i := home(selection)) is not None:
            selections[i].append(selection)
    return Shape(query, tuple(tuple(of_input.values()) for of_input in attributes), tuple(map(tuple, selections)),
                 _keys(query, attributes), measures)


def _of_blocks(query: Query, rows: Rowset) -> Shape:
    """The columns that blocks read: each is an attribute, and nothing is joined or measured below them."""
    input_by_number = {item.number: item.of.input for item in items_within(rows) if isinstance(item.of, RowsOfInput)}
    wanted: list[dict[Column, None]] = [{} for _ in query.inputs]
    for column in columns_within(rows):
        if column.input in input_by_number:
            i = input_by_number[column.input]
            wanted[i][Column(i, column.name, column.type)] = None
    attributes = tuple(tuple(Attribute(f"a{i}_{place}", column) for place, column in enumerate(of_input))
                       for i, of_input in enumerate(wanted))
    return Shape(query, attributes, tuple(() for _ in query.inputs), (), ())


def _keys(query: Query, attributes: list[dict[Expr, Attribute]]) -> tuple[tuple[tuple[int, Attribute], ...], ...]:
    """Equality classes: `a.x = b.x AND b.x = c.y` is one, with three members."""
    classes: list[list[tuple[int, Attribute]]] = []
    for pair in query.equalities:
        members = []
        for side in pair:
            i = home(side)
            assert i is not None
            members.append((i, attributes[i][side]))
        touched = [members_before for members_before in classes if not set(members).isdisjoint(members_before)]
        untouched = [members_before for members_before in classes if members_before not in touched]
        classes = [*untouched, list(dict.fromkeys([*chain.from_iterable(touched), *members]))]
    return tuple(map(tuple, classes))


def _measures(query: Query) -> tuple[Measure, ...]:
    """The states all aggregates need, each once.

    One holistic aggregate makes them all whole: nothing of the query is merged then.
    """
    measures: dict[tuple[str, Expr | None, Aggregate | None], Measure] = {}
    whole = not all(mergeable(a) for a in query.aggregates)
    for aggregate in query.aggregates:
        for kind, type_ in states(aggregate) if not whole else (("whole", aggregate.type),):
            owner = home(aggregate.argument) if aggregate.argument is not None and kind != "whole" else None
            key = (kind, aggregate.argument, aggregate if kind == "whole" else None)
            if kind != "rows":
                measures.setdefault(key, Measure(f"m{len(measures)}", kind, aggregate.argument, owner, type_, key[2]))
    return tuple(measures.values())


def states(aggregate: Aggregate) -> tuple[tuple[str, Type], ...]:
    """Kinds of measure a function is computed from (DESIGN, "What a partial holds")."""
    if aggregate.argument is None:
        return (("rows", BIGINT),)
    argument, function = aggregate.argument.type, aggregate.function
    if function in ("min", "max"):
        return ((function, argument),)
    if function == "count":
        return (("count", BIGINT),)
    kinds = ("count", "sum") if function in ("sum", "avg") else ("count", "sum", "square")
    return tuple((k, BIGINT if k == "count" else argument) for k in kinds)


def measure_of(shape_: Shape, aggregate: Aggregate, kind: str) -> Measure:
    return next(m for m in shape_.measures
                if m.kind == kind and m.expr == aggregate.argument and m.aggregate in (None, aggregate))


def raw_columns(shape_: Shape, i: int) -> tuple[Column, ...]:
    """The stored columns of input i that the query reads at all."""
    used = [a.expr for a in shape_.attributes[i]]
    used += shape_.selections[i]
    used += [m.expr for m in shape_.measures if m.expr is not None]
    return tuple(dict.fromkeys(c for e in used for c in columns(e) if c.input == i))
