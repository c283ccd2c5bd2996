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
from optimizer.plan.model import Plan
from optimizer.query.model import Query
from optimizer.query.shape import shape
from optimizer.statistics.cardinality import sizes
from optimizer.statistics.model import QueryStatistics

LATENCY = 10.0         # seconds that a batch may take where forebay.yml says nothing
AIMED = 0.5            # share of them that a batch of several boundaries is made for
UNMEASURED = 0.25      # the same before any batch was measured: a price by rows knows nothing of their joins
WORTH = 0.05           # share of a batch below which what its boundaries have in common no longer weighs
RECENT = 3             # newest measured batches that count
LEAST_FACTOR = 1e-3    # of measured seconds to stated ones
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
