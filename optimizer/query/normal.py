"""A query in normal form: what two texts that ask the same of the same join agree on.

Aliases, and the order of FROM, WHERE and GROUP BY, leave no trace.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from optimizer.expression.expr import Call, Column, Expr, GroupRef
from optimizer.query.model import Input, Query


@lru_cache(maxsize=16384)
def normal(query: Query) -> Query:
    """The same answers, column by column.

    Only the text is gone. Made once: a group is formed anew whenever one of its members comes or goes.
    """
    order = sorted(range(len(query.inputs)), key=lambda i: (query.inputs[i].source, repr(query.inputs[i].window), i))
    place = {old: new for new, old in enumerate(order)}
    groups = tuple(placed(g, place) for g in query.groups)
    sorted_groups = tuple(sorted(dict.fromkeys(groups), key=repr))
    group = {old: sorted_groups.index(g) for old, g in enumerate(groups)}
    return replace(
        query, text="", inputs=tuple(_plain(query.inputs[old], new) for new, old in enumerate(order)),
        groups=sorted_groups, equalities=_pairs(query, place), selections=_set(query.selections, place),
        residuals=_set(query.residuals, place), aggregates=tuple(
            replace(a, argument=placed(a.argument, place) if a.argument is not None else None)
            for a in query.aggregates), having=_regrouped(query.having, group) if query.having is not None else None,
        outputs=tuple((n, placed(e, place) if query.returns_rows else _regrouped(e, group)) for n, e in query.outputs))


def _plain(declared: Input, number: int) -> Input:
    return replace(declared, alias=f"i{number}")


def _pairs(query: Query, place: Mapping[int, int]) -> tuple[tuple[Expr, Expr], ...]:
    found = {tuple(sorted((placed(a, place), placed(b, place)), key=repr)) for a, b in query.equalities}
    return tuple((pair[0], pair[1]) for pair in sorted(found, key=repr))


def _set(exprs: tuple[Expr, ...], place: Mapping[int, int]) -> tuple[Expr, ...]:
    return tuple(sorted({placed(e, place) for e in exprs}, key=repr))


def placed(expr: Expr, place: Mapping[int, int]) -> Expr:
    """With the inputs' new numbers."""
    if isinstance(expr, Column):
        return replace(expr, input=place[expr.input])
    return replace(expr, args=tuple(placed(a, place) for a in expr.args)) if isinstance(expr, Call) else expr


def _regrouped(expr: Expr, group: Mapping[int, int]) -> Expr:
    if isinstance(expr, GroupRef):
        return replace(expr, index=group[expr.index])
    return replace(expr, args=tuple(_regrouped(a, group) for a in expr.args)) if isinstance(expr, Call) else expr
