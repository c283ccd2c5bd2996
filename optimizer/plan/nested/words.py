"""Expressions of blocks as a user would write them, for messages."""
from __future__ import annotations

from optimizer.expression.expr import AggregateRef, Column, Expr, GroupRef, OverRef
from optimizer.expression.scalar import can_fail, render
from optimizer.plan.wording import NUMBER
from optimizer.query.blocks import Block, Rowset, expressions, items_within, within


def fallible(rows: Rowset) -> tuple[str, ...]:
    """What can fail on a row of any of the SELECTs: `10 / p.n`."""
    blocks = [block for block in within(rows) if isinstance(block, Block)]
    return tuple(dict.fromkeys(in_words(rows, block, expr) for block in blocks for expr in expressions(block)
                               if can_fail(expr)))


def in_words(rows: Rowset, block: Block, expr: Expr) -> str:
    aliases = {item.number: item.alias for item in items_within(rows)}

    def leaf(part: Expr) -> str:
        if isinstance(part, Column):
            alias = aliases.get(part.input)
            return f"{alias}.{part.name}" if alias else part.name
        if isinstance(part, GroupRef):
            return render(block.groups[part.index], "spark", leaf)
        if isinstance(part, AggregateRef):
            a = block.aggregates[part.index]
            return f"{a.function.upper()}({'*' if a.argument is None else render(a.argument, 'spark', leaf)})"
        return f"{block.overs[part.index].function.upper()}() OVER (…)" if isinstance(part, OverRef) else "(SELECT …)"

    return NUMBER.sub(r"\2", render(expr, "spark", leaf))
