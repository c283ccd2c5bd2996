"""Expressions, aggregates and windows as a user would write them: what `explain` and messages show."""
from __future__ import annotations

import re
from collections.abc import Sequence

from optimizer.expression.expr import AggregateRef, Call, Column, Expr, GroupRef
from optimizer.expression.scalar import render
from optimizer.query.aggregate import PAIRED
from optimizer.query.blocks import ANSWER
from optimizer.query.model import WINDOW_NAME, Aggregate, Query
from optimizer.query.windows import Window
from optimizer.time import span

NUMBER = re.compile(r"CAST\(('?)(-?[\d.]+)\1 AS [A-Z]+(?:\(\d+, ?\d+\))?\)")      # a constant with its type spelled out


def as_written(query: Query, expr: Expr) -> str:
    """`v.ms * 2`."""
    def leaf(part: Expr) -> str:
        if isinstance(part, Column):
            return part.name if part.input == ANSWER else f"{query.inputs[part.input].alias}.{part.name}"
        if isinstance(part, GroupRef):
            return as_written(query, query.groups[part.index])
        assert isinstance(part, AggregateRef)
        return aggregate_as_written(query, query.aggregates[part.index])

    return "System.Window().Id" if expr == WINDOW_NAME else NUMBER.sub(r"\2", render(expr, "spark", leaf))


def list_as_written(query: Query, exprs: Sequence[Expr], separator: str = ", ") -> str:
    return separator.join(as_written(query, expr) for expr in exprs)


def aggregate_as_written(query: Query, aggregate: Aggregate) -> str:
    """`SUM(v.ms * 2)`."""
    if aggregate.function == "count_distinct" and aggregate.argument is not None:
        return f"COUNT(DISTINCT {as_written(query, aggregate.argument)})"
    several = isinstance(aggregate.argument, Call) and aggregate.function in (*PAIRED, "listagg")
    arguments = aggregate.argument.args if several and isinstance(aggregate.argument, Call) else (aggregate.argument,)
    argument = ", ".join("*" if a is None else as_written(query, a) for a in arguments)
    parameter = "" if aggregate.parameter is None else f", {aggregate.parameter}"
    return f"{aggregate.function.upper()}({argument}{parameter})"


def window_in_words(window: Window) -> str:
    """`t − 1 HOUR ≤ ts < t`."""
    if window.kind == "sliding":
        return f"t − {span(window.range)} ≤ ts < t"
    if window.kind == "tumbling":
        return f"from the last multiple of {span(window.range)} before t, up to t"
    if window.kind == "hopping":
        return f"u − {span(window.range)} ≤ ts < u, u the last multiple of {span(window.slide)} not after t"
    return "ts < t"


def state_in_words(names: Sequence[str]) -> str:
    """` [keeps panes0]`, or nothing."""
    return f" [keeps {', '.join(names)}]" if names else ""
