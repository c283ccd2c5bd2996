"""What of a question of several SELECTs can be kept from boundary to boundary: the one join that is grouped below all
the rest, a query with all its plans; the rest is computed of its answer, which is small.

    SELECT page, n FROM (SELECT page, COUNT(*) AS n FROM views [WINDOW 1 HOUR] GROUP BY page) AS p ORDER BY n LIMIT 3

is the query `SELECT page, COUNT(*) … GROUP BY page`, and above it `SELECT … FROM answer ORDER BY … LIMIT 3`.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

from optimizer.expression.expr import AggregateRef, Call, Column, Expr, GroupRef, SubqueryRef, walk
from optimizer.query.aggregate import Aggregate
from optimizer.query.blocks import (
    ANSWER,
    Block,
    Columns,
    Item,
    JoinedItem,
    NamedRows,
    Rowset,
    RowsOfInput,
    SetOperation,
)
from optimizer.query.semi_joins import in_order, is_semi_join
from optimizer.query.simplify import substituted


@dataclass(frozen=True)
class Leaf:
    """The grouped join, its entries of FROM numbered by their places, and the rows that are wanted of its answer.

    The answer's columns are its groups, g0, g1, …, and its aggregates, a0, a1, …
    """

    block: Block
    above: Rowset


def leaf(rows: Rowset) -> Leaf | None:
    """None where rows of streams are read elsewhere, or by joins that are grouped in more ways than one."""
    blocks = _grouped_joins(rows)
    if not blocks:
        return None
    first, *others = map(_by_place, blocks)
    if any((other.items, other.where, other.groups) != (first.items, first.where, first.groups) for other in others):
        return None
    aggregates = tuple(dict.fromkeys(a for block in (first, *others) for a in block.aggregates))
    columns: Columns = (*((f"g{n}", expr.type) for n, expr in enumerate(first.groups)),
                        *((f"a{n}", a.type) for n, a in enumerate(aggregates)))
    refs = [GroupRef(n, expr.type) for n, expr in enumerate(first.groups)]
    values: list[Expr] = [*refs, *(AggregateRef(n, a.type) for n, a in enumerate(aggregates))]
    outputs = tuple((name, value) for (name, _), value in zip(columns, values))
    below = replace(first, aggregates=aggregates, outputs=outputs, having=None, overs=(), qualify=None, order=(),
                    limit=None, offset=0, subqueries=())
    return Leaf(below, _above(rows, aggregates, columns))


def _grouped_joins(rows: Rowset) -> list[Block] | None:
    """The blocks that group rows of streams, of which all else is made; None where there is something else."""
    if isinstance(rows, SetOperation):
        left, right = _grouped_joins(rows.left), _grouped_joins(rows.right)
        return None if left is None or right is None else left + right
    if _is_grouped_join(rows):
        return _with_subqueries(rows, [rows])
    found: list[Block] = []
    for joined in rows.items:
        of = joined.item.of
        below = None if isinstance(of, RowsOfInput) else _grouped_joins(of.of if isinstance(of, NamedRows) else of)
        if below is None:
            return None
        found += below
    return _with_subqueries(rows, found)


def _with_subqueries(block: Block, found: list[Block]) -> list[Block] | None:
    for subquery in block.subqueries:
        below = _grouped_joins(subquery.of)
        if below is None or subquery.correlated:
            return None
        found = found + below
    return found


def _is_grouped_join(block: Block) -> bool:
    if not block.is_aggregate or not all(joined.kind == "inner" or is_semi_join(joined) for joined in block.items):
        return False
    below = [*block.where, *block.groups, *(a.argument for a in block.aggregates if a.argument is not None)]
    reads_subquery = any(isinstance(part, SubqueryRef) for expr in below for part in walk(expr))
    return not reads_subquery and all(isinstance(joined.item.of, RowsOfInput) for joined in block.items)


def _by_place(block: Block) -> Block:
    """Its entries of FROM numbered by their places, so that equal joins are equal."""
    values, items = dict[Column, Expr](), list[JoinedItem]()
    for place, joined in enumerate(in_order(block)):
        of = joined.item.of
        values |= {Column(joined.item.number, name, kind): Column(place, name, kind) for name, kind in of.columns}
        items.append(replace(joined, item=Item(place, of, "")))

    def own(expr: Expr) -> Expr:
        return substituted(expr, values)

    return replace(block, items=tuple(replace(joined, on=tuple(map(own, joined.on))) for joined in items),
                   where=tuple(map(own, block.where)), groups=tuple(map(own, block.groups)),
                   aggregates=tuple(a.of(own) for a in block.aggregates))


def _above(rows: Rowset, aggregates: tuple[Aggregate, ...], columns: Columns) -> Rowset:
    """The rows with each grouped join replaced by the leaf's answer."""
    if isinstance(rows, SetOperation):
        return replace(rows, left=_above(rows.left, aggregates, columns), right=_above(rows.right, aggregates, columns))
    subqueries = tuple(replace(s, of=_above(s.of, aggregates, columns)) for s in rows.subqueries)
    if _is_grouped_join(rows):
        return _over_answer(replace(rows, subqueries=subqueries), aggregates, columns)
    items = []
    for joined in rows.items:
        of = joined.item.of
        assert not isinstance(of, RowsOfInput)
        below = replace(of, of=_above(of.of, aggregates, columns)) if isinstance(of, NamedRows) else _above(
            of, aggregates, columns)
        items.append(replace(joined, item=replace(joined.item, of=below)))
    return replace(rows, items=tuple(items), subqueries=subqueries)


def _over_answer(block: Block, aggregates: tuple[Aggregate, ...], columns: Columns) -> Block:
    """What the block shows of its groups, as what one shows of the answer's rows."""
    number, own = block.items[0].item.number, _by_place(block).aggregates

    def of_answer(expr: Expr) -> Expr:
        if isinstance(expr, GroupRef):
            return Column(number, f"g{expr.index}", expr.type)
        if isinstance(expr, AggregateRef):
            return Column(number, f"a{aggregates.index(own[expr.index])}", expr.type)
        return replace(expr, args=tuple(map(of_answer, expr.args))) if isinstance(expr, Call) else expr

    return Block(
        items=(JoinedItem(Item(number, RowsOfInput(ANSWER, columns), "answer")),),
        where=() if block.having is None else (of_answer(block.having),),
        outputs=tuple((name, of_answer(expr)) for name, expr in block.outputs),
        overs=tuple(over.of(of_answer) for over in block.overs),
        qualify=of_answer(block.qualify) if block.qualify is not None else None,
        order=tuple(ordering.of(of_answer) for ordering in block.order),
        limit=block.limit,
        offset=block.offset,
        subqueries=block.subqueries,
    )
