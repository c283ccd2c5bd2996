"""What a SELECT within another may be, so that its answer is one at t: checks, on blocks that are read already."""
from __future__ import annotations

from optimizer.errors import ForebayError
from optimizer.expression.expr import Call, Expr, inputs
from optimizer.expression.scalar import can_fail
from optimizer.query.blocks import (
    Block,
    JoinedItem,
    NamedRows,
    Rowset,
    RowsOfInput,
    expressions,
    items_within,
    within,
)


def numbers_within(rows: Rowset) -> set[int]:
    """The numbers of all entries of FROM in the rowset, at any depth."""
    return {item.number for item in items_within(rows)}


def check_scalar(rows: Rowset, correlated: bool) -> None:
    if len(rows.columns) != 1:
        raise ForebayError("wrong-arguments", f"a subquery that stands for a value has one column, this one has "
                                              f"{len(rows.columns)}")
    if not is_one_row(rows) or correlated and not (isinstance(rows, Block) and rows.is_aggregate):
        raise ForebayError("several-rows", "a subquery that stands for a value could give several rows",
                           hint="write an aggregate, (SELECT MAX(x) FROM …), or IN or EXISTS")


def check_correlated(rows: Rowset, own: set[int], kind: str) -> None:
    """A subquery that reads columns of the SELECT around it hangs together with it by an equality in WHERE."""
    if not isinstance(rows, Block) or rows.limit is not None or rows.overs or rows.subqueries and any(
            subquery.correlated for subquery in rows.subqueries):
        raise ForebayError("not-supported", "a subquery that reads columns of the SELECT around it is one SELECT "
                                            "without LIMIT, OVER and set operations",
                           hint="write the condition in the outer WHERE, or join a derived table")
    if rows.is_aggregate and (rows.groups or kind != "scalar"):
        raise ForebayError("not-supported", "a subquery that reads columns of the SELECT around it has no GROUP BY",
                           hint="join a derived table that is grouped")
    elsewhere = [expr for block in within(rows) if isinstance(block, Block)
                 for expr in expressions(block) if block is not rows or expr not in rows.where]
    if any(inputs(expr) - own for expr in elsewhere):
        raise ForebayError("not-supported", "a subquery reads columns of the SELECT around it in its WHERE only",
                           hint="move the condition to its WHERE")
    if not any(equates(term, own) for term in rows.where):
        raise ForebayError("cross-product", "a subquery hangs together with the SELECT around it by no equality",
                           hint="add one to its WHERE: inner.x = outer.y")
    if any(can_fail(expr) for block in within(rows) if isinstance(block, Block) for expr in expressions(block)):
        raise ForebayError("not-supported", "a subquery that reads columns of the SELECT around it has an "
                                            "expression that can fail (division, overflow, a cast)",
                           hint="compute it in the outer SELECT, or write try_divide, try_add, TRY_CAST")


def is_one_row(rows: Rowset) -> bool:
    """Whether it never has more than one row."""
    if isinstance(rows, Block):
        return rows.limit in (0, 1) or rows.is_aggregate and not rows.groups
    return False


def equates(term: Expr, own: set[int]) -> bool:
    """Whether a condition is an equality of a value of these items with one of others."""
    if not isinstance(term, Call) or term.function != "eq":
        return False
    sides = [inputs(side) for side in term.args]
    return all(sides) and any(sides[one] <= own and not sides[1 - one] & own for one in (0, 1))


def check_products(block: Block) -> None:
    """Every item hangs together with those before it by equalities, or is one row."""
    numbers = frozenset(joined.item.number for joined in block.items)
    edges = [inputs(term) & numbers for terms in (block.where, *(joined.on for joined in block.items))
             for term in terms if _is_equality(term)]
    many = [joined.item for joined in block.items if not _is_single(joined)]
    reached = {many[0].number} if many else set[int]()
    while touching := [edge for edge in edges if edge & reached and not edge <= reached]:
        reached.update(*touching)
    loose = [item for item in many if item.number not in reached]
    if loose:
        raise ForebayError("cross-product", f"{loose[0].alias or 'an entry of FROM'} is not joined with the others: "
                                            "there are no cross products",
                           hint="add an equality that cannot raise: a.x = b.y")
    for joined in block.items:
        if joined.kind != "inner" and not _is_single(joined) and not any(
                equates(term, {joined.item.number}) for term in joined.on):
            raise ForebayError("cross-product",
                               f"{joined.kind.upper()} JOIN of {joined.item.alias} has no equality in ON",
                               hint="add one: a.x = b.y")


def _is_single(joined: JoinedItem) -> bool:
    of = joined.item.of
    return not isinstance(of, RowsOfInput) and is_one_row(of.of if isinstance(of, NamedRows) else of)


def _is_equality(term: Expr) -> bool:
    return isinstance(term, Call) and term.function == "eq" and not can_fail(term) and all(
        len(inputs(side)) >= 1 for side in term.args) and inputs(term.args[0]) != inputs(term.args[1])
