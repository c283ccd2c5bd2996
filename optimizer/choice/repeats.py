"""Which aggregates of a join count a row of one input more than once, and the statement that counts how often.

`SUM(b.amount)` over a join of purchases b with views counts a purchase once for each view that it meets: exact SQL, and
seldom what was meant. Nothing is run here.
"""
from __future__ import annotations

from dataclasses import dataclass

from optimizer.expression import dialect as d
from optimizer.expression.expr import Call, Column, Expr, Literal, inputs
from optimizer.expression.scalar import safe
from optimizer.plan import table
from optimizer.plan.lowering import Lowering
from optimizer.plan.membership import inside, within
from optimizer.plan.operators.scan import read_columns
from optimizer.plan.operators.sets import conditions
from optimizer.plan.program import Source
from optimizer.plan.wording import aggregate_as_written
from optimizer.query.model import Aggregate, Query

ONCE = ("min", "max", "count_distinct")      # what a row that is repeated does not change
# What to do where each row is to count once.
WAY_OUT = "ask whether there is one (`WHERE EXISTS (SELECT …)`, or LEFT SEMI JOIN), which joins each row once"


@dataclass(frozen=True)
class Repeatable:
    """An input, and the aggregates of it that change when the join repeats its rows: `Repeatable(1, ("SUM(b.x)",))`."""

    input: int
    aggregates: tuple[str, ...]


@dataclass(frozen=True)
class RepeatCount:
    """Statements over what `sources` stand for: `rows` counts the input's rows; `joined` the joined rows of every
    so-manieth of them, and how many of these there are, each once in each group of the answer.
    """

    sources: tuple[Source, ...]
    rows: str
    joined: str


def repeatable(query: Query) -> tuple[Repeatable, ...]:
    """The inputs that the join may repeat, with what it would change; none of a query of one input."""
    if len(query.inputs) - len(query.semi) < 2 or query.windows:
        return ()
    by_input: dict[int, list[str]] = {}
    for aggregate in query.aggregates:
        read = _counted_input(aggregate)
        if read is not None:
            by_input.setdefault(read, []).append(aggregate_as_written(query, aggregate))
    return tuple(Repeatable(i, tuple(dict.fromkeys(aggregates))) for i, aggregates in sorted(by_input.items()))


def _counted_input(aggregate: Aggregate) -> int | None:
    """The one input whose values it takes; None where it takes joined rows as they are, or a repeated value is none
    more.
    """
    value = aggregate.argument
    if value is None or aggregate.function in ONCE or _counts_rows(value):
        return None
    read = inputs(value)
    return next(iter(read)) if len(read) == 1 else None


def _counts_rows(value: Expr) -> bool:
    """Whether it is a constant, also one under FILTER: such an aggregate counts joined rows."""
    if isinstance(value, Call) and value.function == "case":
        otherwise = value.args[len(value.args) // 2 * 2:]
        return all(isinstance(result, Literal) for result in (*value.args[1::2], *otherwise))
    return isinstance(value, Literal)


def count_of_repeats(ctx: Lowering, i: int, t: int, step: int = 1) -> RepeatCount:
    """How often the join repeats rows of input i at boundary t; every `step`-th of them is looked at."""
    query = ctx.shape.query
    sources = []
    multiplying = query.inputs[:len(query.inputs) - len(query.semi)]      # what is asked for a partner repeats nothing
    for j, declared in enumerate(multiplying):
        ranges = () if declared.window is None else (inside(declared.window, t),)
        sources.append(Source(table.files(j), "stream" if declared.is_stream else "relation", declared.source, ranges,
                              read_columns(ctx, j)))
    rows = [_rows(ctx, j, source) for j, source in enumerate(sources)]
    numbered = f"(SELECT *, row_number() OVER () AS _number FROM {rows[i]})"
    joined = ", ".join(f"(SELECT * FROM {numbered} WHERE _number % {step} = 0) AS input_{j}" if j == i
                       else f"{rows[j]} AS input_{j}" for j in range(len(rows)))
    terms = [f"{_of(left)} = {_of(right)}" for left, right in query.equalities
             if not (inputs(left) | inputs(right)) & query.semi]
    terms += [f"coalesce({_of(condition)}, FALSE)" for condition in query.residuals]
    groups = [_of(group) for group in query.groups]
    each = ", ".join([f"input_{i}._number", *groups])
    counted = f"SELECT count(*) AS n FROM {joined} WHERE {' AND '.join(terms) or 'TRUE'} GROUP BY {each}"
    return RepeatCount(tuple(sources), f"SELECT count(*) FROM {rows[i]} AS q",
                       f"SELECT CAST(coalesce(sum(n), 0) AS BIGINT), count(*) FROM ({counted}) AS q")


def _rows(ctx: Lowering, j: int, source: Source) -> str:
    """An input's rows in the window that pass its selections."""
    times = [within(ctx, j, source.ranges)] if source.ranges else []
    return f"(SELECT * FROM {source.name} WHERE {' AND '.join([*times, *conditions(ctx, j)]) or 'TRUE'})"


def _of(expr: Expr) -> str:
    """An expression over joined rows; what cannot be computed is NULL."""
    def leaf(part: Expr) -> str:
        assert isinstance(part, Column)
        return f"input_{part.input}.{d.identifier(part.name)}"

    return safe(expr, "duckdb", leaf)
