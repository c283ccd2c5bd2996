"""A question that one SELECT over streams does not say, as a tree of SELECTs: derived tables, subqueries, outer and
semi joins, set operations, window functions, ORDER BY with LIMIT.

    SELECT page, n FROM (SELECT page, COUNT(*) AS n FROM views [WINDOW 1 HOUR] GROUP BY page) AS p ORDER BY n LIMIT 3

is a Block that reads one Item, another Block, that reads one Item, the rows of `views`. Every entry of a FROM has a
number of its own, by which columns name it at any depth: `Column(3, "n", BIGINT)`. No syntax and no SQL here.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Union

from optimizer.expression.expr import Column, Expr, walk
from optimizer.expression.types import Type
from optimizer.query.aggregate import Aggregate

BOUNDARY = 98    # the boundary itself, as an item of one row: `t`, and `previous`, the one before at which it is due
ANSWER = 99      # the number of an answer's rows among entries of FROM, and among inputs
JOINS = ("inner", "left", "right", "full", "semi", "anti")
SET_OPERATIONS = ("union", "intersect", "except")
Columns = tuple[tuple[str, Type], ...]


@dataclass(frozen=True)
class RowsOfInput:
    """What the window of input `input` of the query holds, or a relation's rows."""

    input: int
    columns: Columns


@dataclass(frozen=True)
class NamedRows:
    """What WITH calls by a name: made once, however often it is read."""

    name: int
    of: Rowset

    @property
    def columns(self) -> Columns:
        return self.of.columns


@dataclass(frozen=True)
class Item:
    """An entry of FROM: `Item(3, RowsOfInput(0, …), "v")` is called v in the text, 3 in expressions."""

    number: int
    of: Union[Rowset, RowsOfInput, NamedRows]
    alias: str

    @property
    def columns(self) -> Columns:
        return self.of.columns


@dataclass(frozen=True)
class JoinedItem:
    """An item more: by which kind of join, and on what; `on` is empty where WHERE says it."""

    item: Item
    kind: str = "inner"
    on: tuple[Expr, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in JOINS:
            raise ValueError(f"{self.kind!r} join: known are {', '.join(JOINS)}")

    @property
    def is_shown(self) -> bool:
        """Whether what is above the join sees its columns."""
        return self.kind not in ("semi", "anti")


@dataclass(frozen=True)
class Ordering:
    """An entry of ORDER BY. Spark's order: strings by bytes, NaN after all numbers, NULLs as `nulls_first` says."""

    expr: Expr
    descending: bool = False
    nulls_first: bool = True

    def of(self, change: Callable[[Expr], Expr]) -> Ordering:
        """The same of a changed expression."""
        return replace(self, expr=change(self.expr))


@dataclass(frozen=True)
class Over:
    """A window function: `function(args) OVER (PARTITION BY partition ORDER BY order frame)`.

    `aggregate` where it is one, else `function` is of a row's place among the others. `frame` is as SQL has it, empty
    for the default.
    """

    function: str
    args: tuple[Expr, ...]
    partition: tuple[Expr, ...]
    order: tuple[Ordering, ...]
    frame: str
    type: Type
    aggregate: Aggregate | None = None

    def of(self, change: Callable[[Expr], Expr]) -> Over:
        """The same of changed expressions."""
        return replace(self, args=tuple(map(change, self.args)), partition=tuple(map(change, self.partition)),
                       order=tuple(ordering.of(change) for ordering in self.order),
                       aggregate=self.aggregate.of(change) if self.aggregate is not None else None)


@dataclass(frozen=True)
class Subquery:
    """What a SELECT inside an expression is asked: for its one value (`scalar`), whether it has rows (`exists`), or for
    the values of its one column (`list`, to the right of IN). `correlated`: it reads columns of the SELECT around it.
    """

    kind: str
    of: Rowset
    correlated: bool


@dataclass(frozen=True)
class Block:
    """One SELECT. Of an `aggregates` block (grouped, or with aggregates alone) `having`, `overs`, `outputs` and `order`
    are over GroupRef and AggregateRef, of another over Columns; an OverRef or SubqueryRef is a place in `overs` or
    `subqueries`.

    `order` matters where there is a `limit`; it has the columns of the block's input at its end, which break ties.
    """

    items: tuple[JoinedItem, ...]
    where: tuple[Expr, ...]
    outputs: tuple[tuple[str, Expr], ...]
    is_aggregate: bool = False
    groups: tuple[Expr, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    having: Expr | None = None
    overs: tuple[Over, ...] = ()
    qualify: Expr | None = None
    order: tuple[Ordering, ...] = ()
    limit: int | None = None
    offset: int = 0
    subqueries: tuple[Subquery, ...] = ()
    pause: int = 0      # of sessions: microseconds after its last row at which one ends, and is shown

    @property
    def columns(self) -> Columns:
        return tuple((name, expr.type) for name, expr in self.outputs)

    @property
    def is_plain(self) -> bool:
        """Whether it selects, joins and computes, and no more: each row comes of one combination of its items' rows."""
        return not (self.is_aggregate or self.overs or self.qualify or self.limit is not None or self.offset
                    or self.subqueries)

    @property
    def has_inner_joins_only(self) -> bool:
        return all(joined.kind == "inner" for joined in self.items)


@dataclass(frozen=True)
class SetOperation:
    """UNION, INTERSECT or EXCEPT of two; without `all` each row once. Columns go by their place, by the names of the
    first.
    """

    kind: str
    all: bool
    left: Rowset
    right: Rowset

    def __post_init__(self) -> None:
        if self.kind not in SET_OPERATIONS:
            raise ValueError(f"{self.kind!r}: known are {', '.join(SET_OPERATIONS)}")

    @property
    def columns(self) -> Columns:
        return self.left.columns


Rowset = Union[Block, SetOperation]


def expressions(block: Block) -> Iterator[Expr]:
    """All expressions of one block, not those of the blocks that it reads."""
    for joined in block.items:
        yield from joined.on
    yield from block.where
    yield from block.groups
    yield from (aggregate.argument for aggregate in block.aggregates if aggregate.argument is not None)
    for over in block.overs:
        yield from (*over.args, *over.partition, *(ordering.expr for ordering in over.order))
        if over.aggregate is not None and over.aggregate.argument is not None:
            yield over.aggregate.argument
    yield from (condition for condition in (block.having, block.qualify) if condition is not None)
    yield from (expr for _, expr in block.outputs)
    yield from (ordering.expr for ordering in block.order)


def within(rowset: Rowset) -> Iterator[Rowset]:
    """The rowset and all that it reads, at any depth, subqueries too; what WITH names once for each reading."""
    yield rowset
    if isinstance(rowset, SetOperation):
        yield from within(rowset.left)
        yield from within(rowset.right)
        return
    for joined in rowset.items:
        of = joined.item.of
        if not isinstance(of, RowsOfInput):
            yield from within(of.of if isinstance(of, NamedRows) else of)
    for subquery in rowset.subqueries:
        yield from within(subquery.of)


def items_within(rowset: Rowset) -> Iterator[Item]:
    for each in within(rowset):
        if isinstance(each, Block):
            yield from (joined.item for joined in each.items)


def columns_within(rowset: Rowset) -> Iterator[Column]:
    """All columns that its expressions name, at any depth."""
    for each in within(rowset):
        if isinstance(each, Block):
            for expr in expressions(each):
                yield from (leaf for leaf in walk(expr) if isinstance(leaf, Column))
