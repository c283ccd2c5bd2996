"""A question after parsing: inputs with their windows, what joins them, what is asked of them.

Valid by construction, no syntax and no plan here.
"""
from __future__ import annotations

from dataclasses import dataclass

from optimizer.expression.expr import AggregateRef, Call, Column, Expr, GroupRef, Literal, inputs
from optimizer.expression.types import BIGINT, STRING, Type
from optimizer.query.aggregate import HOLISTIC as HOLISTIC
from optimizer.query.aggregate import Aggregate as Aggregate
from optimizer.query.blocks import ANSWER, Block, Rowset, within
from optimizer.query.windows import Window

Printed = tuple[str, bool, bool]      # a column, whether it descends, whether NULLs come first


@dataclass(frozen=True)
class Input:
    """One entry of FROM: a stream with its window, or a relation (window None). The same source may stand twice."""

    alias: str
    source: str
    window: Window | None
    event_time: str | None
    columns: tuple[tuple[str, Type], ...]

    @property
    def is_stream(self) -> bool:
        return self.window is not None


@dataclass(frozen=True)
class NamedWindow:
    """One of a query's several windows: ends at multiples of the slide and is answered there, under its name."""

    name: str
    range: int
    slide: int


# The grouping expression that stands for the window's name; no text can say it, since texts have no control characters.
WINDOW_NAME = Literal("\x1fSystem.Window().Id", STRING)


@dataclass(frozen=True)
class Query:
    """SELECT outputs FROM inputs WHERE equalities AND selections AND residuals GROUP BY groups HAVING having [EVERY
    every].

    `equalities` are pairs of expressions of one input each, of different inputs and of one common type; `selections`
    are conjuncts of one input (or none); `residuals` the conjuncts of several that are not equalities. Aggregate
    queries name their outputs over GroupRef and AggregateRef, row queries (no aggregates, no groups) over Columns.
    """

    inputs: tuple[Input, ...]
    equalities: tuple[tuple[Expr, Expr], ...]
    selections: tuple[Expr, ...]
    residuals: tuple[Expr, ...]
    groups: tuple[Expr, ...]
    aggregates: tuple[Aggregate, ...]
    having: Expr | None
    outputs: tuple[tuple[str, Expr], ...]
    every: int                     # microseconds: published at its multiples
    text: str
    # several windows: each input's is their envelope, and WINDOW_NAME is among the groups
    windows: tuple[NamedWindow, ...] = ()
    # what one SELECT does not say: the answer is these rows, which are its groups, each with a number as the last
    blocks: Rowset | None = None
    # what is published are these rows, made of the answer to all the rest (its entry of FROM is Rows of input ANSWER)
    above: Rowset | None = None
    order: tuple[Printed, ...] = ()      # of what is printed; a table has none
    # inputs that are asked only whether they have a row that joins (EXISTS, IN); they come last
    semi: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if bool(self.windows) != (WINDOW_NAME in self.groups):
            raise ValueError("several windows, and only they, are told apart by their name")
        whole = [i for i in range(len(self.inputs)) if i not in self.semi]
        if whole != list(range(len(whole))) or self.semi and not any(self.inputs[i].is_stream for i in whole):
            raise ValueError("inputs that are only asked whether they have a row come last, after a stream")
        for left, right in self.equalities:
            if len(inputs(left)) != 1 or len(inputs(right)) != 1 or inputs(left) == inputs(right):
                raise ValueError("an equality joins one input with another")

    @property
    def returns_rows(self) -> bool:
        """SELECT of joined rows, each published once."""
        return not self.aggregates and not self.groups

    def due(self, t: int) -> bool:
        """Whether an answer is published at t. With several windows at the multiples of any one's slide, which need not
        be all multiples of their common divisor: of slides of 20 and 30 minutes none ends at 10."""
        return t % self.every == 0 and (not self.windows or any(t % w.slide == 0 for w in self.windows))

    def shown(self, t: int) -> tuple[tuple[NamedWindow, int], ...]:
        """The windows that end at t, each with how much longer than it the envelope is."""
        longest = max((w.range for w in self.windows), default=0)
        return tuple((w, longest - w.range) for w in self.windows if t % w.slide == 0)

    @property
    def holistic(self) -> bool:
        return any(a.function in HOLISTIC for a in self.aggregates)

    @property
    def pause(self) -> int:
        """How long after a row, in microseconds, it can change the answer though none comes or leaves: a session ends.

        0 where there are no sessions.
        """
        if self.blocks is None:
            return 0
        return max((block.pause for block in within(self.blocks) if isinstance(block, Block)), default=0)

    @property
    def columns(self) -> tuple[tuple[str, Type], ...]:
        """Of what is published."""
        if self.above is not None:
            return self.above.columns
        return tuple((name, expr.type) for name, expr in self.outputs)


ROW_NUMBER = "\x1frow"      # their last column: rows that are equal stay several


def of_blocks(rows: Rowset, declared: tuple[Input, ...], every: int, text: str) -> Query:
    """The query whose answer at t is these rows, of what the inputs' windows hold then."""
    groups = (*(Column(ANSWER, name, kind) for name, kind in rows.columns), Column(ANSWER, ROW_NUMBER, BIGINT))
    outputs = tuple((name, GroupRef(place, kind)) for place, (name, kind) in enumerate(rows.columns))
    return Query(declared, (), (), (), groups, (), None, outputs, every, text, blocks=rows)


@dataclass(frozen=True)
class Catalog:
    """What names mean to a query: streams with their event time, relations, and the pipeline's batch."""

    batch: int
    streams: tuple[tuple[str, str, tuple[tuple[str, Type], ...]], ...]      # name, event time, columns
    relations: tuple[tuple[str, tuple[tuple[str, Type], ...]], ...]


def references(expr: Expr) -> tuple[Expr, ...]:
    """GroupRefs and AggregateRefs an output or HAVING reads."""
    if isinstance(expr, (GroupRef, AggregateRef)):
        return (expr,)
    return tuple(r for a in expr.args for r in references(a)) if isinstance(expr, Call) else ()
