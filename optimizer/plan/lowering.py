"""A plan on its way to one engine's SQL, and how each measure is typed and merged there.

No relation is named here and nothing is run.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from optimizer.expression import dialect as d
from optimizer.expression.expr import Column, Expr
from optimizer.expression.scalar import fails
from optimizer.expression.types import BIGINT, Type, decimal
from optimizer.plan.model import Plan
from optimizer.query.shape import Measure, Shape
from optimizer.query.windows import Window

Name = Callable[[Expr], str]        # how an expression's leaves are written


@dataclass(frozen=True)
class Lowering:
    """What a statement is written for: `Lowering(shape, plan, parts=2, part=1)` is the second of two tasks, in DuckDB.

    `narrow` is for 64-bit sums (see dialect.wide), `complete` names columns of inputs in which no row is NULL. One
    statement may answer `together` boundaries; where rows are joined at several, strings may be `coded`. A query whose
    aggregates have no partial states is never divided: its parts could not be put together.
    """

    shape: Shape
    plan: Plan
    dialect: str = "duckdb"
    narrow: bool = True
    parts: int = 1
    part: int = 0
    complete: frozenset[tuple[int, str]] = frozenset()
    together: int = 1
    coded: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.part < self.parts:
            raise ValueError(f"part {self.part} of {self.parts}")
        if self.shape.whole and self.parts > 1:
            raise ValueError("a query with an aggregate that has no partial states is one task's work")

    def early(self, i: int) -> bool:
        return self.plan.digits[i]

    def window(self, i: int) -> Window | None:
        return self.shape.query.inputs[i].window

    def never_null(self, i: int | None, expr: Expr | None) -> bool:
        """Whether a value of input i is known to be there in each of its rows."""
        return isinstance(expr, Column) and (i, expr.name) in self.complete

    @property
    def inputs(self) -> range:
        return range(len(self.plan.digits))


def stored_name(ctx: Lowering) -> Name:
    """Leaves where raw rows are read are stored columns."""
    def name(leaf: Expr) -> str:
        assert isinstance(leaf, Column)
        return d.identifier(leaf.name, ctx.dialect)
    return name


def extremes(ctx: Lowering, i: int) -> tuple[Measure, ...]:
    """Measures that running totals cannot hold: kept by interval beside them."""
    return tuple(m for m in ctx.shape.measures_of(i) if m.kind in ("min", "max"))


def evaluated(ctx: Lowering, i: int) -> list[Expr]:
    """All that is computed of a raw row of input i."""
    measured = [measure.expr for measure in ctx.shape.measures_of(i) if measure.expr is not None]
    return [*ctx.shape.selections[i], *(attribute.expr for attribute in ctx.shape.attributes[i]), *measured]


def fallible(ctx: Lowering, i: int) -> bool:
    return any(fails(e, ctx.dialect, stored_name(ctx)) is not None for e in evaluated(ctx, i))


def merged(measure: Measure, sql: str, ctx: Lowering) -> str:
    """The aggregate that merges a measure over partials."""
    if measure.kind in ("min", "max"):
        return f"{measure.kind}({sql})"
    return f"CAST(sum({sql}) AS {working_type(measure, ctx)})"


def counted(sql: str) -> str:
    return f"CAST(sum({sql}) AS BIGINT)"


def squared(type_: Type) -> Type:
    """The type whose wide form holds squares."""
    return decimal(38, 2 * type_.scale) if type_.name == "decimal" else type_


def stored_type(m: Measure) -> Type:
    """In files: additive states in 128 bits."""
    if m.kind == "count":
        return BIGINT
    if m.kind == "square":
        return d.stored(squared(m.type))
    return d.stored(m.type) if m.kind == "sum" else m.type


def working_type(m: Measure, ctx: Lowering) -> str:
    """In statements."""
    if m.kind == "count":
        return "BIGINT"
    if m.kind == "square":
        return d.wide(squared(m.type), ctx.dialect, ctx.narrow)
    return d.wide(m.type, ctx.dialect, ctx.narrow) if m.kind == "sum" else d.name(m.type, ctx.dialect)
