"""EXISTS (SELECT …) and x IN (SELECT …) that rows have to fulfil, as joins that take each row once."""
from __future__ import annotations

from dataclasses import replace

from optimizer.expression.expr import Call, Expr, SubqueryRef, inputs, walk
from optimizer.expression.scalar import can_fail
from optimizer.expression.types import BOOLEAN
from optimizer.query.blocks import Block, JoinedItem, RowsOfInput, Subquery, expressions


def with_semi_joins(block: Block) -> Block:
    """The block with a semi join for each such condition of WHERE, where the SELECT within has one entry of FROM that
    hangs together with the rows by equalities.
    """
    where, items = list[Expr](), list(block.items)
    for term in block.where:
        joined = _semi_join(block, term)
        if joined is None:
            where.append(term)
        else:
            items.append(joined)
    if len(items) == len(block.items):
        return block
    return _without_unused(replace(block, where=tuple(where), items=tuple(items)))


def is_semi_join(joined: JoinedItem) -> bool:
    """Whether only equalities with one entry of FROM each, and conditions of its own, say which rows it joins."""
    number = joined.item.number
    if joined.kind != "semi" or not isinstance(joined.item.of, RowsOfInput):
        return False
    own = [term for term in joined.on if inputs(term) <= {number}]
    others = [term for term in joined.on if term not in own]
    return bool(others) and all(_equates(term, number) for term in others) and not any(map(can_fail, joined.on))


def in_order(block: Block) -> tuple[JoinedItem, ...]:
    """The block's entries of FROM, those of semi joins last: what they leave out they leave out wherever they stand."""
    return tuple(sorted(block.items, key=lambda joined: joined.kind == "semi"))


def _semi_join(block: Block, term: Expr) -> JoinedItem | None:
    left, reference = None, term
    if isinstance(term, Call) and term.function == "in_subquery":
        left, reference = term.args
    if not isinstance(reference, SubqueryRef):
        return None
    subquery = block.subqueries[reference.index]
    if subquery.kind != ("exists" if left is None else "list"):
        return None
    return _joined(subquery, left)


def _joined(subquery: Subquery, left: Expr | None) -> JoinedItem | None:
    inner = subquery.of
    if not isinstance(inner, Block) or not inner.is_plain or len(inner.items) != 1:
        return None
    on = inner.where if left is None else (*inner.where, Call("eq", (left, inner.outputs[0][1]), BOOLEAN))
    joined = JoinedItem(inner.items[0].item, "semi", on)
    return joined if is_semi_join(joined) else None


def _equates(term: Expr, number: int) -> bool:
    if not isinstance(term, Call) or term.function != "eq":
        return False
    sides = [inputs(side) for side in term.args]
    return {number} in sides and all(len(side) == 1 for side in sides) and sides[0] != sides[1]


def _without_unused(block: Block) -> Block:
    """If nothing refers to a subquery any more they all leave; else they keep their places."""
    used = {leaf.index for expr in expressions(block) for leaf in walk(expr) if isinstance(leaf, SubqueryRef)}
    return block if used else replace(block, subqueries=())
