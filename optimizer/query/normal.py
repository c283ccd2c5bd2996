"""A query in normal form: equal for two texts that ask the same of the same join.

Aliases, and the order of FROM, WHERE and GROUP BY, leave no trace.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from optimizer.expression.expr import Call, Column, Expr, GroupRef
from optimizer.query.model import Query


@lru_cache(maxsize=16384)
def normal(query: Query) -> Query:
    """The query with the same answers, column by column, and without its text: inputs are called i0, i1, …

    Worked out once a query: a query group is formed anew whenever one of its members comes or goes.
    """
    order = sorted(range(len(query.inputs)), key=lambda i: (query.inputs[i].source, repr(query.inputs[i].window), i))
    place = {old: new for new, old in enumerate(order)}
    groups = tuple(placed(expr, place) for expr in query.groups)
    sorted_groups = tuple(sorted(dict.fromkeys(groups), key=repr))
    group_place = {old: sorted_groups.index(expr) for old, expr in enumerate(groups)}

    equalities = set()
    for one, other in query.equalities:
        first, second = sorted((placed(one, place), placed(other, place)), key=repr)
        equalities.add((first, second))
    aggregates = []
    for aggregate in query.aggregates:
        argument = placed(aggregate.argument, place) if aggregate.argument is not None else None
        aggregates.append(replace(aggregate, argument=argument))
    outputs = []
    for name, expr in query.outputs:
        outputs.append((name, placed(expr, place) if query.returns_rows else _regrouped(expr, group_place)))
    return replace(
        query,
        text="",
        order=(),
        inputs=tuple(replace(query.inputs[old], alias=f"i{new}") for new, old in enumerate(order)),
        groups=sorted_groups,
        equalities=tuple(sorted(equalities, key=repr)),
        selections=_set(query.selections, place),
        residuals=_set(query.residuals, place),
        aggregates=tuple(aggregates),
        having=_regrouped(query.having, group_place) if query.having is not None else None,
        outputs=tuple(outputs),
    )


def _set(exprs: tuple[Expr, ...], place: Mapping[int, int]) -> tuple[Expr, ...]:
    return tuple(sorted({placed(e, place) for e in exprs}, key=repr))


def placed(expr: Expr, place: Mapping[int, int]) -> Expr:
    """The expression with the inputs' new numbers."""
    if isinstance(expr, Column):
        return replace(expr, input=place[expr.input])
    return replace(expr, args=tuple(placed(a, place) for a in expr.args)) if isinstance(expr, Call) else expr


def _regrouped(expr: Expr, group_place: Mapping[int, int]) -> Expr:
    """The expression with the groups' new numbers."""
    if isinstance(expr, GroupRef):
        return replace(expr, index=group_place[expr.index])
    return replace(expr, args=tuple(_regrouped(a, group_place) for a in expr.args)) if isinstance(expr, Call) else expr
