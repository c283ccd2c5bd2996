"""How many complete boundaries go into one batch, by what a batch takes: alone when fresh, many when behind; pure.

What a batch takes whatever its boundaries (Spark's job, commits, the ledger) is paid once for all of them. More of them
are worth it until that no longer weighs: a longer batch would save nothing, and hold up requests, decisions and stops.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from optimizer.cost.features import of_batch, of_run
from optimizer.cost.measured import UnitCosts, seconds
from optimizer.plan.division import may_divide_boundaries
from optimizer.plan.lowering import Lowering
from optimizer.plan.merging import longest
from optimizer.plan.model import Plan
from optimizer.plan.operators.answer import Ends
from optimizer.plan.operators.operator import Expected
from optimizer.plan.operators.windows import frequency
from optimizer.query.model import Query
from optimizer.query.shape import shape
from optimizer.sharing.group import Group
from optimizer.statistics.cardinality import Sizes, sizes
from optimizer.statistics.model import QueryStatistics

LATENCY = 10.0         # seconds that a batch may take where forebay.yml says nothing
AIMED = 0.6            # share of them that a batch of several boundaries is made for
UNMEASURED = 0.25      # the same before any batch was measured: a price by rows knows nothing of their joins
WORTH = 0.05           # share of a batch below which what its boundaries have in common no longer weighs
RECENT = 3             # newest measured batches that count
LEAST_FACTOR = 1e-3    # of measured seconds to stated ones
# Partials of a window up to which several boundaries are answered by one statement. It saves a statement's 2 ms a
# boundary; its hash table holds the groups of all of them, which costs 35 ns a partial more than small tables do.
FEW_PARTIALS = 50_000
# Rows of the windows, and of their join, up to which the same is done where rows are joined. 64 boundaries took 0.2 s
# instead of 0.48 with 14,000 joined rows at each, 0.8 s either way with 360,000, and 5.3 s instead of 3.2 with more.
FEW_ROWS = 50_000
# Running totals that a boundary changes or reads up to which the same is done with them. 32 boundaries took 0.29 s
# instead of 0.58 with 4,000 such totals at each, 0.44 instead of 0.50 with 18,000, and 1.6 instead of 0.9 with 40,000.
FEW_TOTALS = 20_000
# Rows that the changes of a boundary are joined to, and partials of the kept answer that it reads, up to which the same
# is done with kept answers. 32 boundaries took 0.7 s instead of 1.0 with 120,000, 1.7 instead of 1.9 with 240,000, and
# 3.2 instead of 2.8 with 400,000.
FEW_JOINED = 250_000
# Groups of an answer that is changed (`retract`) whose sums a boundary changes: 0.32 s instead of 0.40 with 2,000, 0.40
# instead of 0.53 with 3,800, and 0.66 instead of 0.54 with 5,000.
FEW_CHANGED = 4_000
# Cells of a query group and its sets by class, of one boundary's windows, up to which the same is done. 32 boundaries
# took 0.6 s instead of 1.0 with 27,000 of them, 2.0 instead of 2.4 with 75,000, and 4.9 instead of 4.3 with 200,000.
FEW_SETS = 100_000
MOST_TOGETHER = 64     # boundaries of one statement
# Boundaries at which a row counts from which its strings are made numbers: that takes 110 ns a row, and saves 55 ns
# each time a row is joined and grouped.
CODED_FROM = 3
MOST_VALUES = 100_000  # of a key or a group up to which numbers are made of them


@dataclass(frozen=True)
class BatchLoad:
    """What the boundaries of a batch bring: `BatchLoad(24, 4_800_000, held=3.8e8, handed=4e5)` computes 24 boundaries.

    `held`: bytes that come into a task's tables; `handed`: bytes of answers that tasks hand to the driver.
    """

    points: int
    rows: float
    held: float = 0.0
    handed: float = 0.0


@dataclass(frozen=True)
class BatchRoom:
    """Bytes that a batch may hold in a task, and hand to the driver."""

    held: float = float("inf")
    handed: float = float("inf")

    def has(self, load: BatchLoad) -> bool:
        return load.held <= self.held and load.handed <= self.handed


@dataclass(frozen=True)
class BatchCosts:
    """Seconds as unit costs state them: `fixed` of a batch, and what a boundary that is computed and a row add."""

    fixed: float
    point: float
    row: float

    def added(self, load: BatchLoad) -> float:
        return self.point * load.points + self.row * load.rows


@dataclass(frozen=True)
class MeasuredBatch:
    """A batch and its seconds; those of a process's first one, `cold`, also say what it takes to start Spark."""

    load: BatchLoad
    seconds: float
    cold: bool = False


def boundaries_together(loads: Sequence[BatchLoad], costs: BatchCosts, measured: Sequence[MeasuredBatch],
                        room: BatchRoom, latency: float = LATENCY) -> int:
    """How many of the complete boundaries go into the next batch; `loads[k]` is that of the first k + 1.

    `measured` are the batches so far, newest last.
    """
    factor = measured_factor(costs, measured)
    longest = latency * (UNMEASURED if factor is None else AIMED)
    for count, load in enumerate(loads, 1):
        added = costs.added(load) * (1.0 if factor is None else factor)
        if costs.fixed + added > longest or not room.has(load):
            return max(count - 1, 1)
        if costs.fixed <= WORTH * added:
            return count
    return len(loads)


def measured_factor(costs: BatchCosts, measured: Sequence[MeasuredBatch]) -> float | None:
    """By what the seconds that boundaries add have differed from those stated, lately; None before any batch.

    Boundaries of one batch share reading their windows, so that of a few of them says at most what many will take.
    """
    factors = []
    for batch in measured[-RECENT:]:
        stated = costs.added(batch.load)
        if stated > 0:
            factor = max((batch.seconds - costs.fixed) / stated, LEAST_FACTOR)
            factors.append(min(factor, 1.0) if batch.cold else factor)
    return median(factors) if factors else None


def boundaries_a_statement(query: Query, plan: Plan, statistics: QueryStatistics) -> int:
    """How many boundaries one statement answers: many where they take few partials, few rows or few totals."""
    if query.returns_rows or shape(query).whole:
        return 1
    return MOST_TOGETHER if _is_little(query, plan, sizes(query, statistics)) else 1


def _is_little(query: Query, plan: Plan, query_sizes: Sizes) -> bool:
    """Whether statements cost a boundary more than tables of many boundaries would."""
    windowed = [i for i, declared in enumerate(query.inputs) if declared.window is not None]
    if plan.keeps_answer:
        changes_little = _expires_little if plan.keeping == "expire" else _retracts_little
        return changes_little(Expected(Lowering(query_sizes.shape, plan), query_sizes), windowed)
    early = [query_sizes.flows[i] for i in windowed if plan.digits[i]]
    if plan.keeping == "running":
        totals = sum(min((2 if flow.left else 1) * flow.pane, flow.set) + flow.set for flow in early)
        return totals <= FEW_TOTALS and _joins_few(query_sizes, plan, windowed)
    if len(early) == len(windowed):
        return sum(flow.by_pane for flow in early) <= FEW_PARTIALS
    return _joins_few(query_sizes, plan, windowed)


def _expires_little(expected: Expected, windowed: Sequence[int]) -> bool:
    """Each window that ends reads its share of the kept answer."""
    joined, query = sum(expected.sizes.join(expected.arrivals(i)) for i in windowed), expected.ctx.shape.query
    reads = sum(frequency(query, window) * window.range / longest(query) for window in query.windows) or 1.0
    return joined + reads * Ends.of(expected).live <= FEW_JOINED


def _retracts_little(expected: Expected, windowed: Sequence[int]) -> bool:
    """Changes are joined with the merged partials of the other inputs, which are merged for each of them."""
    query_sizes, order, changes, merged = expected.sizes, expected.ctx.plan.order, 0.0, 0.0
    for i in windowed:
        operands = [expected.came(j) if j == i else expected.merged(j) for j in order]
        changes += (2 if expected.flow(i).left else 1) * query_sizes.join(operands)
        merged += sum(expected.flow(j).stored for j in order if j != i and expected.ctx.early(j))
    few_changes = changes <= FEW_JOINED and min(changes, query_sizes.groups) <= FEW_CHANGED
    return few_changes and merged <= FEW_PARTIALS


def _joins_few(query_sizes: Sizes, plan: Plan, windowed: Sequence[int]) -> bool:
    """Whether a boundary's rows, and what they are joined to, are few. Running totals are not rows."""
    is_row = [not (plan.digits[i] and plan.keeping == "running") for i in windowed]
    rows = sum(query_sizes.flows[i].window for i, counted in zip(windowed, is_row) if counted)
    inputs = [query_sizes.merged(i) if early else query_sizes.raw(i) for i, early in enumerate(plan.digits)]
    return rows + query_sizes.join(inputs) <= FEW_ROWS


def boundaries_a_shared_statement(group: Group, statistics: QueryStatistics) -> int:
    """The same of a query group; `statistics` are of what its members have in common."""
    if group.common.returns_rows:
        return 1
    cells, sets = 0.0, 0.0
    for i, flow in enumerate(sizes(group.common, statistics).flows):
        is_told_apart = i in group.told_apart
        cells += min(flow.window, flow.set * (group.marks[i].combinations if is_told_apart else 1))
        sets += flow.set * (len(group.classes) if is_told_apart else 1)
    return MOST_TOGETHER if cells + (0.0 if group.splits_after else sets) <= FEW_SETS else 1


def boundary_runs_worth(query: Query, plan: Plan, statistics: QueryStatistics, unit_costs: UnitCosts, tasks: int,
                        boundaries: int, from_nothing: bool, together: int = 1) -> int:
    """Into how many runs tasks divide a batch's boundaries; 1 where they had better divide its rows, or its keys.

    A run reads again what windows have in common with the run before it, and a task that has a share of the rows does
    all boundaries, and hands over partials of all groups: it depends on how many windows long a batch is.
    """
    query_shape, runs = shape(query), min(tasks, boundaries)
    if runs < 2 or not may_divide_boundaries(query_shape, plan):
        return 1
    parts = 1 if query_shape.whole else tasks
    by_rows = of_batch(query, plan, statistics, parts, boundaries, from_nothing, together)
    by_boundaries = of_run(query, plan, statistics, runs, boundaries, together)
    return runs if seconds(by_boundaries.total, unit_costs) < seconds(by_rows.total, unit_costs) else 1


def is_worth_coding(query: Query, plan: Plan, statistics: QueryStatistics, boundaries: int) -> bool:
    """Whether strings become numbers before rows are joined at these boundaries: each row at several of them.

    Not where there are so many values that making the numbers would take longer.
    """
    if plan.keeping != "recompute" or statistics.groups > MOST_VALUES:
        return False
    if any(key.keys > MOST_VALUES for key in statistics.classes):
        return False
    flows = sizes(query, statistics).flows
    rows = [flow.panes for i, flow in enumerate(flows) if query.inputs[i].window is not None and not plan.digits[i]]
    return min(boundaries, max(rows, default=0)) >= CODED_FROM
