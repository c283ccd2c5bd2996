"""What every operator of a plan is: a node of the plan's tree that says its SQL, its state, its work and its words.

Under `EAP01 recompute` the tree of `SELECT v.page, SUM(c.amount) … FROM views AS v …, clicks AS c … GROUP BY v.page` is

    RecomputedAnswer       the rows that are published
    └─ LateAggregate       COUNT(*) and SUM by page
       └─ Join             v ⋈ c
          ├─ Scan v        rows of v's window
          └─ Panes c       γ by user and interval, kept in state
             └─ Scan c     rows of c that came

Each operator asks those below it: an answer asks its join's inputs for their definitions, an input asks its scan for
rows. What the plan decides is in the operator; dialect, task and narrowing come as `ctx`. Names in the SQL (table.py),
of input 0 and boundary 2 of the run:

    files_0           its stored rows                         received_0     what an exchange brought
    input_0           its rows or partials, by interval       changes_0      its rows that came or left
    kept_panes0       its state set `panes0`                  new_panes0     what the run adds to it
    totals_0_after_2  its running totals then                 extremes_0     its extremes, kept and new
    kept_answer       the answer in state                     added_at_2     what is added to it then
    answer_after_2    the kept answer then                    slices_0_at_2  its partials by window
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from optimizer.expression import dialect as d
from optimizer.plan.division import by_key, divided, pivot
from optimizer.plan.lowering import Lowering
from optimizer.plan.program import BEGINNING, BoundaryShare, Columns, Definition, Fragment, Source, StateSet, Write
from optimizer.query.windows import ALWAYS
from optimizer.statistics.cardinality import MERGED, Flow, Operand, Sizes

Amounts = Mapping[str, float]       # by kind of work, as unit costs price them: {"group": values into a hash table, …}
Charge = tuple[str, Amounts]        # the node of the explained plan that does the work, and how much of it
Work = Iterator[Charge]


@dataclass(frozen=True)
class Boundary:
    """One boundary of a run: `Boundary(number=1, at=70, previous=60)` is the second of `Run((60, 70), 50)`."""

    number: int
    at: int
    previous: int


@dataclass(frozen=True)
class Run:
    """The boundaries that one task answers one after another, and the boundary to which state was brought before.

    `floor`, for row queries: an instant before which no row that comes now can meet an older one. `share`: tasks divide
    the boundaries of the batch, and these are one task's.
    """

    boundaries: tuple[int, ...]
    previous: int           # BEGINNING: there is no state yet
    floor: int = -ALWAYS
    share: BoundaryShare | None = None

    @property
    def from_nothing(self) -> bool:
        return self.previous == BEGINNING

    @property
    def last(self) -> int:
        return self.boundaries[-1]

    @property
    def state_as_of(self) -> int:
        """The boundary to which state is brought: the batch's last."""
        return self.share.last if self.share else self.last

    @property
    def counted_before(self) -> int:
        """Up to this boundary rows need not be told apart by when they entered: no other run is to write them."""
        return self.share.after if self.share and self.share.after != BEGINNING else self.boundaries[0]

    @property
    def own_arrivals(self) -> str:
        """A condition more where tasks divide the boundaries: each writes to state what enters at its own.

        What enters later than at all of them is the last one's.
        """
        if self.share is None:
            return ""
        later = f" AND _in > {self.share.after}" if self.share.after != BEGINNING else ""
        return later + (f" AND _in <= {self.last}" if self.last < self.share.last else "")

    @property
    def steps(self) -> Iterator[Boundary]:
        before = (self.previous, *self.boundaries[:-1])
        for number, (previous, at) in enumerate(zip(before, self.boundaries)):
            yield Boundary(number, at, previous)


@dataclass(frozen=True)
class Expected:
    """What one task is expected to handle at an average boundary: `Expected(ctx, sizes(query, statistics))`.

    `from_nothing`: the plan's state is made from the stream tables; else it was brought to the boundary before, and
    began `age` boundaries ago. What is divided among tasks counts 1/parts, what every task does counts whole.
    """

    ctx: Lowering
    sizes: Sizes
    from_nothing: bool = False
    age: float = float("inf")

    def flow(self, i: int) -> Flow:
        return self.sizes.flows[i]

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """Of each input's partials, the share that one task holds."""
        whole, pivoted = by_key(self.ctx), pivot(self.ctx)
        return tuple(1 / self.ctx.parts if whole or i == pivoted else 1.0 for i in self.ctx.inputs)

    def files(self, most: float, merged: int = MERGED) -> float:
        """Files of a state set to which each boundary adds one, until there are `merged` of them."""
        return max(min(most, self.age, merged), 1.0)

    def width(self, i: int) -> int:
        """Columns of a partial of input i: attributes, count, measures."""
        return len(self.ctx.shape.attributes[i]) + 1 + len(self.ctx.shape.measures_of(i))

    @cached_property
    def answer_width(self) -> int:
        """Columns of an answer's partial."""
        return len(self.ctx.shape.query.groups) + 1 + len(self.ctx.shape.measures)

    @cached_property
    def ends(self) -> float:
        """Boundaries at which combinations of now can end: the fewest of any input, since the first to leave ends it.
        """
        return min((flow.ends for flow in self.sizes.flows if flow.left > 0), default=1.0)

    def merged(self, i: int) -> Operand:
        """Input i as a join reads it where its partials are merged by attributes."""
        return self.sizes.merged(i) if self.ctx.early(i) else self.sizes.raw(i)

    def by_pane(self, i: int) -> Operand:
        """Input i as a join reads it where its partials stand as they came."""
        return self.sizes.by_pane(i) if self.ctx.early(i) else self.sizes.raw(i)

    def came(self, i: int) -> Operand:
        """What came on input i since the boundary before."""
        flow = self.flow(i)
        return Operand(i, flow.pane, flow.came, flow.came) if self.ctx.early(i) else Operand(i, flow.came)

    def arrivals(self, i: int) -> list[Operand]:
        """What came on input i, among the others' partials as they came."""
        return [self.came(j) if j == i else self.by_pane(j) for j in self.ctx.plan.order]

    def of_window(self, sizes: Sizes) -> Expected:
        """The same of a window that has other sizes."""
        return replace(self, sizes=sizes)


class KeptSet(Protocol):
    """An operator's state, or a part of it: one set, how it is written and how its files merge."""

    def state(self, ctx: Lowering) -> StateSet:
        """Its name and columns."""

    def write(self, ctx: Lowering, run: Run) -> Write:
        """What it is, or what is added to it, after the run's last boundary; in types that lose nothing."""

    def merge_files(self, ctx: Lowering, files: str, boundary: int, since: int) -> str:
        """The rows of the one file that replaces many. `files` is a table of them; state was brought to `boundary`.

        `since`: of the oldest of them the newest end. What was merged before has been held against all up to it.
        """

    def stored_rows(self, expected: Expected) -> float:
        """Its rows that still count, at an average boundary."""


class Operator:
    """A node of a plan's tree."""

    @property
    def children(self) -> tuple[Operator, ...]:
        return ()

    def kept(self, ctx: Lowering) -> tuple[KeptSet, ...]:
        """Its own state."""
        return ()

    def words(self, ctx: Lowering) -> str:
        """Its line in `explain`."""
        raise NotImplementedError

    def walk(self) -> Iterator[Operator]:
        """The tree, each operator before those below it."""
        yield self
        for child in self.children:
            yield from child.walk()


class InputOperator(Operator):
    """One input of the query, as the join reads it."""

    input: int

    def sources(self, ctx: Lowering, run: Run) -> tuple[Source, ...]:
        """The files that it reads."""
        raise NotImplementedError

    def fragments(self, ctx: Lowering, run: Run) -> tuple[Fragment, ...]:
        """What tasks send one another before its statements run."""
        return ()

    def setup(self, ctx: Lowering, run: Run) -> tuple[Definition, ...]:
        """What it defines once a run; the last is input_{i}, or what leads there."""
        raise NotImplementedError

    def define_at(self, ctx: Lowering, boundary: Boundary) -> tuple[Definition, ...]:
        """What it defines at each boundary."""
        return ()

    def members(self, ctx: Lowering, run: Run, boundary: Boundary) -> str:
        """S_i(t), the rows or merged partials that count at the boundary, as an item of FROM."""
        raise NotImplementedError

    def work(self, expected: Expected) -> Work:
        """What it takes to have input_{i} and to keep its state; the merging for one answer is the answer's."""
        raise NotImplementedError


def answers_several(ctx: Lowering, run: Run) -> bool:
    """Whether a statement answers several boundaries, as many as `ctx.together` says."""
    return ctx.together > 1 and len(run.boundaries) > 1 and not ctx.shape.whole


def blocks(ctx: Lowering, run: Run) -> tuple[tuple[Boundary, ...], ...]:
    """The run's boundaries as statements answer them together."""
    boundaries, size = tuple(run.steps), ctx.together if answers_several(ctx, run) else 1
    return tuple(boundaries[first:first + size] for first in range(0, len(boundaries), size))


def at_each(rows: str, boundaries: Sequence[Boundary], condition: str) -> str:
    """Rows by the boundaries `_t` at which a condition over them, `_after` and `_t` holds, as an item of FROM; `_after`
    is the boundary before.
    """
    listed = ", ".join(f"({boundary.previous}, {boundary.at})" for boundary in boundaries)
    return f"(SELECT q.*, due._t FROM {rows} AS q JOIN (VALUES {listed}) AS due(_after, _t) ON {condition}) AS at_each"


def counts(t: int | str, longer: int = 0) -> str:
    """The condition that a row is in the window at boundary t, in one that is shorter than the longest by `longer`."""
    return f"_in <= {t} AND _out >= {t + longer if isinstance(t, int) else t}"


def came(previous: int | str, t: int | str) -> str:
    """The condition that a row is in the window at boundary t and was not at the one before."""
    return f"_in > {previous} AND {counts(t)}"


def left(previous: int | str, t: int | str) -> str:
    """The condition that a row was in the window at the boundary before and is not any more."""
    return f"{counts(previous)} AND _out < {t}"


def of_all(ctx: Lowering, function: str, column: str) -> str:
    """`greatest(v0._in, v1._in)`: of a joined row."""
    columns = [f"v{i}.{column}" for i in ctx.inputs]
    return f"{function}({', '.join(columns)})" if len(columns) > 1 else columns[0]


def in_stored_types(ctx: Lowering, columns: Columns, boundary: int, earlier: int = 0) -> str:
    """Columns as files hold them: in types that lose nothing, with one `_in` for all that count by the boundary.

    `earlier`: by how much a row leaves state before it leaves the longest window.
    """
    selected = []
    for name, kind in columns:
        if name == "_out" and earlier:
            selected.append(f"_out - {earlier} AS _out")
        else:
            selected.append(
                long_since(boundary) if name == "_in" else f"CAST({name} AS {d.name(kind, ctx.dialect)}) AS {name}")
    return ", ".join(selected)


def long_since(boundary: int) -> str:
    """Rows that count already need not be told apart by when they entered, so they can be merged."""
    return f"CASE WHEN _in <= {boundary} THEN CAST(0 AS BIGINT) ELSE _in END AS _in"


def append(ctx: Lowering, state: StateSet, rows: str, last: int, earlier: int = 0) -> Write:
    """A file more of a set by interval, from `rows` (what follows FROM)."""
    every_part = state.input is None or divided(ctx, state.input)
    sql = f"SELECT {in_stored_types(ctx, state.columns, last, earlier)} FROM {rows}"
    return Write(state.name, sql, state.columns, append=True, every_part=every_part)


def live_rows(state: StateSet, files: str, boundary: int) -> str:
    """Those of a set's files that still count, as an item of FROM."""
    columns = [long_since(boundary) if name == "_in" else name for name, _ in state.columns]
    return f"(SELECT {', '.join(columns)} FROM {files} WHERE {state.ends} >= {boundary}) AS live"


def merged_file(ctx: Lowering, state: StateSet, merged: str) -> str:
    """The rows of the one file that replaces a set's many, in stored types."""
    columns = [f"CAST({name} AS {d.name(kind, ctx.dialect)}) AS {name}" for name, kind in state.columns]
    return f"SELECT {', '.join(columns)} FROM ({merged}) AS merged"


def never_merged(state: StateSet) -> ValueError:
    return ValueError(f"{state.name} is replaced by each batch: there is nothing to merge")


def scan_node(ctx: Lowering, i: int) -> str:
    return f"Scan {ctx.shape.query.inputs[i].alias}"


def set_node(ctx: Lowering, i: int) -> str:
    return f"AS {ctx.shape.query.inputs[i].alias}"
