"""Scalar expressions as typed frozen trees: what a row of the joined inputs, or a group of them, is asked for.

No syntax and no engine here.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Union

from optimizer.expression.types import Type


@dataclass(frozen=True)
class Column:
    """Attribute `name` of input number `input` in FROM order."""

    input: int
    name: str
    type: Type


@dataclass(frozen=True)
class Literal:
    """A constant; timestamps are integer microseconds since 1970 UTC, dates integer days, NULL is None."""

    value: int | float | str | bool | Decimal | None
    type: Type


@dataclass(frozen=True)
class Call:
    """A function of `optimizer.expression.functions.table` applied to arguments.

    Its type was decided when it was built.
    """

    function: str
    args: tuple[Expr, ...]
    type: Type


@dataclass(frozen=True)
class GroupRef:
    """The value of the query's grouping expression number `index`: only above the aggregation."""

    index: int
    type: Type


@dataclass(frozen=True)
class AggregateRef:
    """The value of the query's aggregate number `index`: only above the aggregation."""

    index: int
    type: Type


@dataclass(frozen=True)
class SubqueryRef:
    """What the SELECT around it is told by its subquery number `index`."""

    index: int
    type: Type


@dataclass(frozen=True)
class OverRef:
    """The value of the SELECT's window function (OVER) number `index`."""

    index: int
    type: Type


Expr = Union[Column, Literal, Call, GroupRef, AggregateRef, SubqueryRef, OverRef]


def walk(expr: Expr) -> Iterator[Expr]:
    yield expr
    if isinstance(expr, Call):
        for arg in expr.args:
            yield from walk(arg)


def columns(expr: Expr) -> tuple[Column, ...]:
    """The distinct columns an expression reads, in order of appearance."""
    return tuple(dict.fromkeys(e for e in walk(expr) if isinstance(e, Column)))


def inputs(expr: Expr) -> frozenset[int]:
    return frozenset(c.input for c in columns(expr))
