"""Blocks made one where a SELECT only selects and computes of what another shows: what a person wrote in steps is then
the query that one SELECT would have been, with all its plans.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count

from optimizer.expression.expr import Call, Column, Expr
from optimizer.expression.scalar import can_fail
from optimizer.expression.types import BOOLEAN
from optimizer.query.blocks import (
    Block,
    Item,
    JoinedItem,
    NamedRows,
    Rowset,
    RowsOfInput,
    SetOperation,
    items_within,
)
from optimizer.query.semi_joins import is_semi_join, with_semi_joins

Values = Mapping[Column, Expr]


def simplified(rows: Rowset) -> Rowset:
    """The same rows from as few blocks as possible."""
    numbers = count(1 + max(item.number for item in items_within(rows)))
    return _simplified(rows, numbers)


def is_row_query(rows: Rowset) -> bool:
    """INTERFACE, "Language": whether each row that it shows is one combination of rows of streams."""
    if isinstance(rows, SetOperation):
        return rows.kind == "union" and rows.all and is_row_query(rows.left) and is_row_query(rows.right)
    if rows.is_aggregate or rows.overs or rows.limit is not None or rows.offset:
        return False
    if any(subquery.kind == "scalar" or not is_row_query(subquery.of) for subquery in rows.subqueries):
        return False
    return all(isinstance(of := _behind(joined.item), RowsOfInput) or is_row_query(of) for joined in rows.items)


def is_one_block(rows: Rowset) -> bool:
    """Whether a Query says it without blocks: one SELECT of streams and relations that are all joined."""
    if not isinstance(rows, Block) or not all(joined.kind == "inner" or is_semi_join(joined) for joined in rows.items):
        return False
    if not rows.has_inner_joins_only and not rows.is_aggregate:
        return False
    if rows.overs or rows.qualify or rows.subqueries or rows.limit is not None or rows.offset:
        return False
    return all(isinstance(joined.item.of, RowsOfInput) for joined in rows.items)


def conjunctive_terms(condition: Expr) -> tuple[Expr, ...]:
    """The terms that must all hold, also those that every branch of an OR repeats: of `k = j AND x OR k = j AND y`
    they are `k = j` and `x OR y`.
    """
    if isinstance(condition, Call) and condition.function == "and":
        return tuple(term for part in condition.args for term in conjunctive_terms(part))
    if not isinstance(condition, Call) or condition.function != "or":
        return (condition,)
    branches = [tuple(dict.fromkeys(conjunctive_terms(branch))) for branch in condition.args]
    # What can fail stays where it is: a branch before it may have decided.
    common = tuple(term for term in branches[0] if all(term in branch for branch in branches[1:])
                   and not can_fail(term))
    if not common:
        return (condition,)
    rest = [tuple(term for term in branch if term not in common) for branch in branches]
    if not all(rest):
        return common
    return (*common, Call("or", tuple(_all(branch) for branch in rest), BOOLEAN))


def _all(terms: tuple[Expr, ...]) -> Expr:
    return terms[0] if len(terms) == 1 else Call("and", terms, BOOLEAN)


def substituted(expr: Expr, values: Values) -> Expr:
    if isinstance(expr, Column):
        return values.get(expr, expr)
    if isinstance(expr, Call):
        return replace(expr, args=tuple(substituted(arg, values) for arg in expr.args))
    return expr


def _behind(item: Item) -> Rowset | RowsOfInput:
    return item.of.of if isinstance(item.of, NamedRows) else item.of


def _simplified(rows: Rowset, numbers: Iterator[int]) -> Rowset:
    if isinstance(rows, SetOperation):
        return replace(rows, left=_simplified(rows.left, numbers), right=_simplified(rows.right, numbers))
    subqueries = tuple(replace(subquery, of=_simplified(subquery.of, numbers)) for subquery in rows.subqueries)
    block = replace(rows, items=tuple(_item(joined, numbers) for joined in rows.items), subqueries=subqueries)
    block = with_semi_joins(block)
    for joined in block.items:
        of = joined.item.of
        if isinstance(of, Block) and _can_be_merged(block, joined, of):
            block = _merged(block, joined, of)
    return block


def _item(joined: JoinedItem, numbers: Iterator[int]) -> JoinedItem:
    """What WITH names is a copy where it is cheap to make it twice: plain, so it becomes a part of this block."""
    of = joined.item.of
    if isinstance(of, RowsOfInput):
        return joined
    if isinstance(of, NamedRows):
        rows = _simplified(of.of, numbers)
        is_cheap = isinstance(rows, Block) and rows.is_plain and rows.has_inner_joins_only
        return replace(joined, item=replace(joined.item, of=_renumbered(rows, numbers) if is_cheap
                                            and isinstance(rows, Block) else replace(of, of=rows)))
    return replace(joined, item=replace(joined.item, of=_simplified(of, numbers)))


def _renumbered(block: Block, numbers: Iterator[int]) -> Block:
    """A copy whose entries of FROM have numbers of their own."""
    values, items = dict[Column, Expr](), list[JoinedItem]()
    for joined in block.items:
        number, of = next(numbers), joined.item.of
        values |= {Column(joined.item.number, name, kind): Column(number, name, kind) for name, kind in of.columns}
        items.append(replace(joined, item=replace(joined.item, number=number)))
    return _with_values(replace(block, items=tuple(items)), values)


def _can_be_merged(block: Block, joined: JoinedItem, of: Block) -> bool:
    if joined.kind != "inner" or any(each.kind in ("right", "full") for each in block.items):
        return False
    if not of.is_plain or not of.has_inner_joins_only:
        return False
    is_correlated = any(subquery.correlated for subquery in block.subqueries)
    if is_correlated and any(can_fail(expr) for _, expr in of.outputs):
        return False
    return True


def _merged(block: Block, joined: JoinedItem, of: Block) -> Block:
    values = {Column(joined.item.number, name, expr.type): expr for name, expr in of.outputs}
    items = tuple(part for each in block.items for part in (of.items if each is joined else (each,)))
    merged = _with_values(replace(block, items=items), values)
    return replace(merged, where=(*of.where, *merged.where))


def _with_values(block: Block, values: Values) -> Block:
    """All expressions of the block, and those of its subqueries, with these columns replaced."""
    def own(expr: Expr) -> Expr:
        return substituted(expr, values)

    return replace(
        block,
        items=tuple(replace(joined, on=tuple(map(own, joined.on))) for joined in block.items),
        where=tuple(map(own, block.where)),
        outputs=tuple((name, own(expr)) for name, expr in block.outputs),
        groups=tuple(map(own, block.groups)),
        aggregates=tuple(a.of(own) for a in block.aggregates),
        overs=tuple(over.of(own) for over in block.overs),
        qualify=own(block.qualify) if block.qualify is not None else None,
        order=tuple(ordering.of(own) for ordering in block.order),
        subqueries=tuple(replace(subquery, of=_with_values(subquery.of, values))
                         if subquery.correlated and isinstance(subquery.of, Block) else subquery
                         for subquery in block.subqueries),
    )
