"""Sessions: rows of one key that follow one another by no more than a gap, as window functions over all rows counted
can say it; published when they have ended.

    SELECT user, COUNT(*) AS n FROM views [WINDOW SESSION 30 MINUTES BY user] GROUP BY user

is COUNT(*) of rows grouped by user and by the number of gaps before them, of the groups whose last row is 30 minutes
old since the boundary before.
"""
from __future__ import annotations

from dataclasses import replace

from optimizer.expression.expr import Column, Expr, Literal, OverRef
from optimizer.expression.functions.table import OPERATORS
from optimizer.expression.functions.times import plus_interval
from optimizer.expression.types import BIGINT, TIMESTAMP
from optimizer.query.aggregate import Aggregate
from optimizer.query.blocks import BOUNDARY, Block, Item, JoinedItem, Ordering, Over
from optimizer.query.simplify import substituted

# Columns that no text can name; `session_window.start` and `.end` are read as the first two.
START, END, PREVIOUS, NUMBER = "~start", "~end", "~previous", "~number"
BETWEEN = (Column(BOUNDARY, "previous", TIMESTAMP), Column(BOUNDARY, "t", TIMESTAMP))


def of_sessions(block: Block, event_time: str, gap: int, numbers: tuple[int, int, int]) -> Block:
    """The block, which groups rows of one item by keys and by START and END of the session, over rows that have these.

    `numbers` are free ones for entries of FROM. Spark's sessions: a row that follows exactly a gap later belongs.
    """
    (joined,), number = block.items, block.items[0].item.number
    keys = tuple(expr for expr in block.groups if not _is_of_session(expr))
    names = tuple(f"~key{n}" for n in range(len(keys)))
    columns = tuple(joined.item.columns)
    rows = Block(block.items, block.where, (
        *((name, Column(number, name, kind)) for name, kind in columns), *zip(names, keys),
        (PREVIOUS, OverRef(0, TIMESTAMP))), overs=(
            Over("lag", (_time(number, event_time),), keys, _order(number, event_time), "", TIMESTAMP),),
        subqueries=block.subqueries)
    first, second, third = numbers
    kept = (*columns, *((name, expr.type) for name, expr in zip(names, keys)))

    def shown(of: int) -> tuple[tuple[str, Expr], ...]:
        return tuple((name, Column(of, name, kind)) for name, kind in kept)

    def keys_of(of: int) -> tuple[Expr, ...]:
        return tuple(Column(of, name, expr.type) for name, expr in zip(names, keys))

    previous, time = Column(first, PREVIOUS, TIMESTAMP), _time(first, event_time)
    follows = OPERATORS["<="]((time, plus_interval(previous, gap)))
    count = Aggregate("sum", OPERATORS["CASE"]((follows, Literal(0, BIGINT), Literal(1, BIGINT))), BIGINT)
    numbered = Block((JoinedItem(Item(first, rows, "")),), (), (*shown(first), (NUMBER, OverRef(0, BIGINT))), overs=(
        Over("sum", (), keys_of(first), _order(first, event_time),
             "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", BIGINT, count),))
    of_session = (*keys_of(second), Column(second, NUMBER, BIGINT))
    ends = [Over(name, (), of_session, (), "", TIMESTAMP, Aggregate(name, _time(second, event_time), TIMESTAMP))
            for name in ("min", "max")]
    bounded = Block((JoinedItem(Item(second, numbered, "")),), (), (
        *shown(second), (START, OverRef(0, TIMESTAMP)),
        (END, plus_interval(OverRef(1, TIMESTAMP), gap))), overs=tuple(ends))
    end = Column(third, END, TIMESTAMP)
    ended = (OPERATORS[">"]((end, BETWEEN[0])), OPERATORS["<="]((end, BETWEEN[1])))
    values = {Column(number, name, kind): Column(third, name, kind) for name, kind in (
        *columns, (START, TIMESTAMP), (END, TIMESTAMP))}
    key_values = dict(zip(keys, keys_of(third)))
    aggregates = tuple(a.of(lambda expr: substituted(expr, values)) for a in block.aggregates)
    groups = tuple(key_values.get(expr) or substituted(expr, values) for expr in block.groups)
    return replace(block, items=(JoinedItem(Item(third, bounded, joined.item.alias)),), where=ended, groups=groups,
                   aggregates=aggregates, pause=gap)


def _is_of_session(expr: Expr) -> bool:
    return isinstance(expr, Column) and expr.name in (START, END)


def _time(number: int, event_time: str) -> Column:
    return Column(number, event_time, TIMESTAMP)


def _order(number: int, event_time: str) -> tuple[Ordering, ...]:
    """By time alone: rows of one instant are in one session, in whatever order."""
    return (Ordering(_time(number, event_time)),)
