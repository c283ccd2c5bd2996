"""What all ways of keeping an answer have in common: the late aggregation, the program and the fixed work of a batch.

Each way is a file: recompute.py, running.py (its sets; the answer from them is recomputed), retract.py, expire.py, and
rows.py for joined rows. At boundary t, after p: came = members at t that were not at p, left = members at p that are
not at t (DESIGN, M(t)). A change of a join of sets is the telescoped sum Σ_i M_<i(one) ⋈ Δ_i ⋈ M_>i(other), so that
each joined combination is made exactly once.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from optimizer.expression import dialect as d
from optimizer.expression.types import BIGINT
from optimizer.plan import table
from optimizer.plan.division import by_key, dealt, is_exchanged
from optimizer.plan.lowering import Lowering
from optimizer.plan.merging import step
from optimizer.plan.operators.join import Join, JoinTerm, merged_answer, out_columns, out_working
from optimizer.plan.operators.operator import (
    Boundary,
    Expected,
    Operator,
    Run,
    Work,
    answers_several,
    blocks,
    in_stored_types,
    live_rows,
    merged_file,
    never_merged,
    scan_node,
    set_node,
)
from optimizer.plan.program import Columns, Definition, Program, Source, StateSet, Step, Write
from optimizer.plan.wording import aggregate_as_written, as_written, list_as_written, state_in_words
from optimizer.statistics.cardinality import MERGED, Operand
from optimizer.time import span

NODE = "Late aggregation"
FIXED = "fixed"               # what belongs to no node: commits, Spark jobs, the driver's merge


@dataclass(frozen=True)
class LateAggregate(Operator):
    """Joined rows aggregated by the query's groups, each measure times the counts of the other inputs' partials."""

    join: Join

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.join,) if len(self.join.inputs) > 1 else self.join.inputs

    def term(self, expected: Expected, operands: Sequence[Operand], more: int = 0) -> JoinTerm:
        """The join of the operands, with the work of aggregating its rows.

        `more` columns are asked of them than the answer's: a sign, or when they end.
        """
        term = self.join.term(expected, operands)
        kind = "pairs" if len(operands) > 1 else "group"
        aggregated = {kind: term.rows * (expected.answer_width + more), "operands": len(operands),
                      "products": term.rows * _products(expected.ctx)}
        return replace(term, charges=(*term.charges, (NODE, aggregated)))

    def words(self, ctx: Lowering) -> str:
        query = ctx.shape.query
        by = f" by {list_as_written(query, query.groups)}" if query.groups else ""
        aggregates = ", ".join(aggregate_as_written(query, aggregate) for aggregate in query.aggregates)
        early = ", ".join(query.inputs[i].alias for i in ctx.inputs if ctx.early(i) and i not in query.semi)
        coalesced = ""
        if early and len(ctx.inputs) > 1:
            coalesced = f"; counts and sums × COUNT(*) of {early} where they are another's (coalescing)"
        return f"Late aggregation{by}: {aggregates or 'groups only'}{coalesced}"


@dataclass(frozen=True)
class AnswerOperator(Operator):
    """The rows that a plan publishes: the root of its tree. A subclass is a way of keeping."""

    late: LateAggregate

    formula = ""      # the way of keeping in a line, for `explain`

    @property
    def join(self) -> Join:
        return self.late.join

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.late,)

    def program(self, ctx: Lowering, run: Run) -> Program:
        """All statements for the run's boundaries."""
        inputs = self.join.inputs
        sets = [part for operator in (*inputs, self) for part in operator.kept(ctx)]
        return Program(
            sources=(*(source for each in inputs for source in each.sources(ctx, run)), *self.sources(ctx, run)),
            setup=(*(definition for each in inputs for definition in each.setup(ctx, run)), *self.setup(ctx, run)),
            steps=self.steps(ctx, run),
            writes=tuple(part.write(ctx, run) for part in sets),
            before=tuple(fragment for each in inputs for fragment in each.fragments(ctx, run)),
        )

    def sources(self, ctx: Lowering, run: Run) -> tuple[Source, ...]:
        """Its own state."""
        return ()

    def setup(self, ctx: Lowering, run: Run) -> tuple[Definition, ...]:
        """What it defines once a run, over what the inputs define."""
        return ()

    def steps(self, ctx: Lowering, run: Run) -> tuple[Step, ...]:
        """The boundaries one after another, or several in a step."""
        if answers_several(ctx, run):
            return tuple(self.step_of_several(ctx, boundaries) for boundaries in blocks(ctx, run))
        return tuple(self.step(ctx, run, boundary) for boundary in run.steps)

    def step(self, ctx: Lowering, run: Run, boundary: Boundary) -> Step:
        """The answer's partials at a boundary, and what has to be defined for them."""
        raise NotImplementedError

    def step_of_several(self, ctx: Lowering, boundaries: Sequence[Boundary]) -> Step:
        """The same of several boundaries, by one statement."""
        raise NotImplementedError

    def work(self, expected: Expected) -> Work:
        """Of a whole batch: the inputs', the answer's, and what belongs to no node."""
        for each in self.join.inputs:
            yield from each.work(expected)
        yield from self.own_work(expected)
        yield FIXED, self._fixed(expected)

    def own_work(self, expected: Expected) -> Work:
        """Of the joins, the late aggregation and the kept answer."""
        raise NotImplementedError

    def words(self, ctx: Lowering) -> str:
        query = ctx.shape.query
        columns = ", ".join(name if query.above is None else as_written(query, expr) for name, expr in query.outputs)
        having = f", having {as_written(query, query.having)}" if query.having is not None else ""
        state = state_in_words([part.state(ctx).name for part in self.kept(ctx)])
        return f"Answer ({columns}) every {span(query.every)}{having}: {self.formula}{state}"

    def state_count(self, ctx: Lowering) -> int:
        return sum(len(operator.kept(ctx)) for operator in self.walk())

    def _fixed(self, expected: Expected) -> dict[str, float]:
        """The merge of the tasks' partials, commits of state and result, Spark jobs."""
        ctx, sets = expected.ctx, self.state_count(expected.ctx)
        is_sent = any(is_exchanged(ctx, i) for i in ctx.inputs)
        broadcast, shuffled = is_sent and ctx.plan.exchange == "broadcast", is_sent and ctx.plan.exchange == "shuffle"
        published = 0.0 if ctx.shape.query.returns_rows else expected.sizes.groups * expected.answer_width
        not_written = sum(1 - step(ctx.shape.query) / level.slide for level in ctx.plan.kept_windows)
        return {"commits": sets + 1, "writes": sets - not_written, "batches": 1,
                "jobs": 1 + broadcast, "shuffles": shuffled,
                "merge": handed_over(expected) * expected.answer_width, "published": published}


@dataclass(frozen=True)
class KeptAnswer:
    """State of an answer that is kept: its partials by group, each task's share for itself, which need not be whole
    groups.

    `by_end`: also by when they end (`_e`), so each batch adds a file; else each batch replaces the set.
    """

    by_end: bool

    def state(self, ctx: Lowering) -> StateSet:
        return StateSet("answer", None, out_columns(ctx) + self._end)

    def source(self, ctx: Lowering, run: Run) -> tuple[Source, ...]:
        if run.from_nothing:
            return ()
        return (Source(table.kept("answer"), "state", "answer", columns=self.state(ctx).columns, dealt=True),)

    def as_of_previous(self, ctx: Lowering, run: Run) -> Definition:
        """The answer as of the boundary before, in the types that are computed with."""
        types = out_working(ctx) | {name: d.name(kind, ctx.dialect) for name, kind in self._end}
        if run.from_nothing:
            columns = [f"CAST(NULL AS {kind}) AS {name}" for name, kind in types.items()]
            return Definition(table.answer_before(0), f"SELECT {', '.join(columns)} WHERE FALSE", is_table=False)
        columns = [f"CAST({name} AS {kind}) AS {name}" for name, kind in types.items()]
        sql = f"SELECT {', '.join(columns)} FROM {table.kept('answer')}"
        return Definition(table.answer_before(0), sql, is_table=False)

    def write(self, ctx: Lowering, run: Run) -> Write:
        state, numbers = self.state(ctx), [block[-1].number for block in blocks(ctx, run)]
        rows = table.answer_after(numbers[-1])
        if self.by_end:
            added = " UNION ALL ".join(f"SELECT * FROM {table.added(number)}" for number in numbers)
            rows = f"({merged_answer(ctx, added, where=f'_e >= {run.last}', extra=('_e',))}) AS q"
        sql = f"SELECT {in_stored_types(ctx, state.columns, run.last)} FROM {rows}"
        return Write(state.name, sql, state.columns, append=self.by_end, every_part=True)

    def merge_files(self, ctx: Lowering, files: str, boundary: int, since: int) -> str:
        state = self.state(ctx)
        if not self.by_end:
            raise never_merged(state)
        live = live_rows(state, files, boundary)
        return merged_file(ctx, state, merged_answer(ctx, f"SELECT * FROM {live}", extra=("_e",)))

    def stored_rows(self, expected: Expected) -> float:
        if not self.by_end:
            return expected.sizes.groups
        return Ends.of(expected).live

    @property
    def _end(self) -> Columns:
        return (("_e", BIGINT),) if self.by_end else ()


def changing(ctx: Lowering, run_begins: bool, first: int) -> list[int]:
    """The inputs that can have changed, a term each; from nothing, the one term of input `first` makes all."""
    return [first] if run_begins else [i for i in ctx.inputs if ctx.window(i)]


@dataclass(frozen=True)
class Ends:
    """Partials of an answer kept by end, at an average boundary: `Ends(added=60, live=150, in_files=240)`.

    `added` are those of one boundary, by group and end; `live` those of all boundaries that have not ended; `in_files`
    what is read to find the live ones of before.
    """

    added: float
    live: float
    in_files: float

    @staticmethod
    def of(expected: Expected) -> Ends:
        """What comes with one input ends with that input's window, or with the first of those that it is joined with.
        """
        ctx, sizes, ends = expected.ctx, expected.sizes, expected.ends
        joined, lasting = 0.0, 0.0
        for i in ctx.inputs:
            if ctx.window(i):
                rows = sizes.raw_join(expected.arrivals(i))
                joined += rows
                lasting += rows * (ends if ends_of_arrivals(expected, i) == 1 else (ends + 1) / 2)
        added = min(sizes.answer(joined, new_ends(expected)), joined)
        if not any(flow.left for flow in sizes.flows):      # nothing ends: one merged file, and those after it
            rows = sizes.groups + min(MERGED / 2, expected.age) * added
            return Ends(added, rows, rows)
        live = added * (lasting / joined if joined else 1.0)
        ended = MERGED / 2 * added if ends > MERGED else max(added * ends - live, 0.0)
        return Ends(added, live, live + ended)


def handed_over(expected: Expected) -> float:
    """Partials of an answer that tasks hand to the driver: a group once for each task that has rows of it."""
    ctx, sizes = expected.ctx, expected.sizes
    if ctx.shape.query.returns_rows:
        return 0.0
    if ctx.parts == 1 or _has_one_task_a_group(ctx):
        return sizes.groups
    joined = sizes.join([sizes.raw(i) for i in ctx.inputs])
    return min(sizes.answer(joined / ctx.parts), sizes.groups) * ctx.parts


def _has_one_task_a_group(ctx: Lowering) -> bool:
    """Whether all rows of a group are in one task: they are divided by what they are grouped by, or by a part of it."""
    if len(ctx.inputs) == 1:
        return not dealt(ctx, 0)
    common = ctx.shape.common_key() if by_key(ctx) else None
    return common is not None and any(attribute.expr in ctx.shape.query.groups for attribute in common)


def new_ends(expected: Expected) -> float:
    """Different ends of what comes at one boundary."""
    return max((ends_of_arrivals(expected, i) for i in expected.ctx.inputs if expected.ctx.window(i)), default=1.0)


def ends_of_arrivals(expected: Expected, i: int) -> float:
    """Different ends of what comes with input i at one boundary: one, unless others that it is joined with end before.
    """
    others = [flow.ends for j, flow in enumerate(expected.sizes.flows) if j != i and flow.left > 0]
    if not others:
        return 1.0
    flow = expected.flow(i)
    return min([*others, flow.ends] if flow.left > 0 else others)


def merging_work(expected: Expected, i: int, rows: float) -> Work:
    """Partials of input i merged by attributes as the members of one boundary."""
    share_width = expected.shares[i] * expected.width(i)
    yield set_node(expected.ctx, i), {"group": rows * share_width, "made": expected.flow(i).set * share_width}


def looking_work(expected: Expected, i: int, times: float = 1) -> Work:
    """The table input_{i} looked through for those that count."""
    flow, share = expected.flow(i), expected.shares[i]
    rows = flow.stored if expected.ctx.early(i) else flow.window
    yield scan_node(expected.ctx, i), {"look": times * rows * share}


def _products(ctx: Lowering) -> int:
    """Multiplications a joined row: each additive measure by the counts of the other inputs that aggregate early."""
    early = sum(ctx.plan.digits)
    weighed = [early - (m.home is not None and ctx.early(m.home)) for m in ctx.shape.measures if m.additive]
    return max(early - 1, 0) + sum(weighed)
