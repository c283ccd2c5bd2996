"""`recompute`: at each boundary the answer is made from what its inputs hold then, A(t) = γ( S₁(t) ⋈ … ⋈ Sₘ(t) ).

Over scans that is the query as written; over panes it reads partials; over running totals it is paper A's AS join
(Definition 6). Nothing of the answer is kept.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from optimizer.coverage.algebra import Window
from optimizer.expression.types import STRING
from optimizer.plan import table
from optimizer.plan.division import pivot
from optimizer.plan.lowering import Lowering
from optimizer.plan.merging import longest, source, step
from optimizer.plan.operators.answer import NODE, AnswerOperator, looking_work, merging_work
from optimizer.plan.operators.join import joined, on_joined_rows
from optimizer.plan.operators.operator import Boundary, Expected, Run, Work, counts, of_all
from optimizer.plan.operators.panes import (
    Panes,
    instance_rows,
    level_of,
    reading_instances,
    spanning,
    spanning_rows,
    windows_read_panes,
)
from optimizer.plan.operators.running import RunningSet
from optimizer.plan.operators.scan import Scan
from optimizer.plan.operators.sets import rows_where
from optimizer.plan.operators.windows import (
    answer,
    chance_to_be_longest,
    frequency,
    number,
    scaled,
    step_at_moments,
    step_of,
    suffix_work,
    times,
)
from optimizer.plan.program import Codes, Definition, Program, Step
from optimizer.query.model import NamedWindow
from optimizer.statistics.cardinality import Operand


@dataclass(frozen=True)
class RecomputedAnswer(AnswerOperator):
    """The answer from rows and from partials, of one window or of several."""

    formula = "A(t) = γ( S₁(t) ⋈ … ⋈ Sₘ(t) )"

    def program(self, ctx: Lowering, run: Run) -> Program:
        """Where several boundaries join rows, these have numbers in the place of strings."""
        made, types = super().program(ctx, run), coded_types(ctx) if len(run.boundaries) > 1 else {}
        if not types:
            return made
        inputs = {table.of_input(i): i for i in ctx.inputs if any(a.name in types for a in ctx.shape.attributes[i])}
        setup = tuple(_uncoded(ctx, inputs[definition.name], definition) if definition.name in inputs else definition
                      for definition in made.setup)
        tables = tuple(_coded(ctx, i, types) for i in inputs.values())
        names = {table.uncoded(i) for i in inputs.values()}
        drop = tuple(definition.name for definition in setup if definition.is_table and definition.name in names)
        values = {name: _values(ctx, types, name) for name in types.values()}
        return replace(made, setup=setup, codes=Codes(tuple(values.items()), tables, drop))

    def step_of_several(self, ctx: Lowering, boundaries: Sequence[Boundary]) -> Step:
        """A statement for each view that windows are merged from, each partial joined as in `step`."""
        first = pivot(ctx)

        def members(i: int, rows: str, extra: tuple[str, ...]) -> str:
            return rows_where(ctx, i, rows, "TRUE", i != first, extra)

        return step_at_moments(ctx, boundaries, members)

    def step(self, ctx: Lowering, run: Run, boundary: Boundary) -> Step:
        """The divided input is joined partial by partial.

        Merging it first costs more than it saves, and the late aggregation merges it anyway.
        """
        t, first = boundary.at, pivot(ctx)

        def rows(i: int, view: str) -> str:
            return view if ctx.plan.levels else table.of_input(i)

        def spans(longer: int, view: str) -> str:
            level = level_of(ctx, view)
            return spanning(level, f"_out - {t + longer}", longest(ctx.shape.query) - longer) if level else ""

        def one(longer: int, view: str) -> str:
            sources = {}
            for i in ctx.inputs:
                is_exact = ctx.window(i) is not None and Scan(i).is_exact(ctx, run)
                where = "TRUE" if is_exact else counts(t, longer) + spans(longer, view)
                sources[i] = rows_where(ctx, i, rows(i, view), where, i != first)
            return joined(ctx, sources)

        def several(lengths: Sequence[int], view: str) -> str:
            sources = {}
            for i in ctx.inputs:
                numbered = (f"SELECT *, {number('_out', t, lengths)} AS _b FROM {rows(i, view)} WHERE "
                            f"{counts(t, lengths[-1])}")
                sources[i] = rows_where(ctx, i, f"({numbered}) AS numbered", "TRUE", i != first, ("_b",))
            return joined(ctx, sources, extra=(("_b", of_all(ctx, "greatest", "_b")),))

        return step_of(ctx, boundary, (), one, several)

    def own_work(self, expected: Expected) -> Work:
        ctx, query = expected.ctx, expected.ctx.shape.query
        if not query.windows:
            yield from self._window_work(expected)
        elif windows_read_panes(ctx) and isinstance(self.join.inputs[0], Panes):
            levels = ctx.plan.kept_windows
            for level in (None, *levels):
                windows = [window for window in query.windows if source(levels, window) == level]
                yield from self._panes_work(expected, windows, level)
        elif ctx.plan.sharing == "each":
            for window in query.windows:
                yield from times(frequency(query, window), self._window_work(scaled(expected, window.range)))
        else:
            for window, chance in chance_to_be_longest(query, query.windows):
                yield from times(chance, self._window_work(scaled(expected, window.range)))
            yield from suffix_work(expected, query.windows)

    def _window_work(self, expected: Expected) -> Work:
        """Early sets are merged from their panes, but for the divided input: its panes are joined as they are."""
        ctx, sizes, operands = expected.ctx, expected.sizes, list[Operand]()
        for i in ctx.plan.order:
            flow, from_rows = expected.flow(i), ctx.window(i) is not None and ctx.plan.layout == "raw"
            if i == pivot(ctx):
                operands.append(sizes.raw(i) if from_rows else expected.by_pane(i))
                continue
            if ctx.early(i):
                yield from merging_work(expected, i, flow.window if from_rows else flow.stored)
            operands.append(expected.merged(i))
        term = self.late.term(expected, operands)
        yield from term.charges
        yield NODE, {"made": term.groups(expected) * expected.answer_width, "statements": 1}

    def _panes_work(self, expected: Expected, windows: Sequence[NamedWindow], level: Window | None) -> Work:
        """The windows of one stream that are merged from this level, or from panes: each reads its own of state."""
        ctx, query, width = expected.ctx, expected.ctx.shape.query, expected.answer_width
        together = ctx.plan.sharing == "together" and len(windows) > 1
        if together:
            often_by_window = list(chance_to_be_longest(query, windows))
        else:
            often_by_window = [(window, frequency(query, window)) for window in windows]
        for window, often in often_by_window:
            rows = (instance_rows if together else spanning_rows)(expected, level, window.range)
            groups = min(expected.sizes.answer(expected.flow(0).came * window.range / step(query)), rows)
            yield from reading_instances(expected, level, often, instance_rows(expected, level, window.range))
            merged = 0.0 if together else often * groups * width
            yield NODE, {"statements": often, "group": often * rows * expected.shares[0] * width, "made": merged}
        if together:
            yield from suffix_work(expected, windows)


def coded_types(ctx: Lowering) -> Mapping[str, str]:
    """By attribute the name of its enumeration, where strings are coded: those that are joined share one.

    Only of attributes that are compared for equality and shown: an enumeration has an order of its own.
    """
    if not ctx.coded or ctx.dialect != "duckdb" or ctx.shape.whole or on_joined_rows(ctx) or ctx.shape.query.windows:
        return {}
    types: dict[str, str] = {}
    for attributes in ctx.shape.attributes:
        types |= {a.name: table.codes(a.name) for a in attributes if a.expr.type == STRING}
    for members in ctx.shape.keys:
        names = [a.name for _, a in members]
        if any(name not in types or types[name] != table.codes(name) for name in names):
            types = {name: code for name, code in types.items() if name not in names}
        else:
            types |= {name: table.codes(names[0]) for name in names}
    return types


def _uncoded(ctx: Lowering, i: int, definition: Definition) -> Definition:
    """The input as it is without codes. Rows are read twice, once for their strings: cheaper than to copy them."""
    return Definition(table.uncoded(i), definition.sql, definition.is_table and ctx.early(i))


def _coded(ctx: Lowering, i: int, types: Mapping[str, str]) -> Definition:
    """An input with numbers in the place of strings."""
    names = [a.name for a in ctx.shape.attributes[i] if a.name in types]
    columns = ", ".join(f"CAST({name} AS {types[name]}) AS {name}" for name in names)
    return Definition(table.of_input(i), f"SELECT * REPLACE ({columns}) FROM {table.uncoded(i)}", is_table=True)


def _values(ctx: Lowering, types: Mapping[str, str], code: str) -> str:
    """All values of the attributes of an enumeration, which has to have one."""
    columns = [(i, a.name) for i in ctx.inputs for a in ctx.shape.attributes[i] if types.get(a.name) == code]
    selects = [f"SELECT {name} AS value FROM {table.uncoded(i)} WHERE {name} IS NOT NULL" for i, name in columns]
    return " UNION ".join([*selects, "SELECT ''"])


@dataclass(frozen=True)
class AnswerFromRunningSets(AnswerOperator):
    """The answer from running totals (running.py), each time; what does not aggregate early is read as it is."""

    formula = "ASᵢ(t) = ASᵢ(t′) + came − left; A(t) = γ( AS₁(t) ⋈ … ⋈ ASₘ(t) )"

    def step(self, ctx: Lowering, run: Run, boundary: Boundary) -> Step:
        inputs = self.join.inputs
        define = tuple(definition for each in inputs for definition in each.define_at(ctx, boundary))
        members = {each.input: each.members(ctx, run, boundary) for each in inputs}
        read: tuple[str, ...] = ()      # totals as of the boundary before, of which these were made
        if boundary.number:
            read = tuple(table.totals_before(each.input, boundary.number) for each in inputs
                         if isinstance(each, RunningSet))
        return Step(boundary.at, define, answer(ctx, boundary.at, joined(ctx, members)), drop=read)

    def step_of_several(self, ctx: Lowering, boundaries: Sequence[Boundary]) -> Step:
        """Totals say from which boundary to which they hold, as rows and extremes do."""
        inputs = {each.input: each for each in self.join.inputs}

        def members(i: int, rows: str, extra: tuple[str, ...]) -> str:
            each = inputs[i]
            return each.merged_at(ctx, rows, extra) if isinstance(each, RunningSet) else rows_where(
                ctx, i, rows, "TRUE", extra=extra)

        return step_at_moments(ctx, boundaries, members)

    def own_work(self, expected: Expected) -> Work:
        ctx = expected.ctx
        for i in ctx.inputs:
            if ctx.early(i) and ctx.window(i) is None:
                yield from merging_work(expected, i, expected.flow(i).set)
            elif not ctx.early(i):
                yield from looking_work(expected, i)
        term = self.late.term(expected, [expected.merged(i) for i in ctx.plan.order])
        yield from term.charges
        yield NODE, {"made": term.groups(expected) * expected.answer_width, "statements": 1}
