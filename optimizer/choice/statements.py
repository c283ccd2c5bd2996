"""How many boundaries of a batch one statement answers: many where each takes little, one where it takes much; pure.

It saves statements, of some 2 ms each, at every boundary; its hash tables hold what all its boundaries have. So it pays
where a boundary takes little, and sizes say beforehand where. Seconds below are processor seconds (docs/backlog.md).
"""
from __future__ import annotations

from collections.abc import Sequence

from optimizer.plan.lowering import Lowering, extremes
from optimizer.plan.merging import longest
from optimizer.plan.model import Plan
from optimizer.plan.operators.answer import Ends
from optimizer.plan.operators.operator import Expected
from optimizer.plan.operators.windows import frequency
from optimizer.query.model import Query
from optimizer.query.shape import shape
from optimizer.sharing.group import Group
from optimizer.statistics.cardinality import sizes
from optimizer.statistics.model import QueryStatistics

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
# Rows that one statement works on, of all its boundaries: a few tenths of a second. A batch that is out of time is left
# between statements only, and 32 boundaries of 100,000 rows took 0.73 s by 4 a statement, 0.70 by 8 or 16, 0.97 by all.
STATEMENT_ROWS = 1_000_000


def boundaries_a_statement(query: Query, plan: Plan, statistics: QueryStatistics) -> int:
    """How many boundaries one statement answers: several where they take few partials, few rows or few totals."""
    if query.returns_rows or shape(query).whole:
        return 1
    expected = Expected(Lowering(shape(query), plan), sizes(query, statistics))
    windowed = [i for i, declared in enumerate(query.inputs) if declared.window is not None]
    if plan.keeping == "expire":
        return _of_expiring(expected, windowed)
    if plan.keeping == "retract":
        return _of_retracted(expected, windowed)
    if plan.keeping == "running":
        return _of_totals(expected, windowed)
    if all(plan.digits[i] for i in windowed):
        return _together(sum(expected.flow(i).by_pane for i in windowed), FEW_PARTIALS)
    return _together(_joined_rows(expected, windowed), FEW_ROWS)


def _together(rows: float, few: float, others: float = 0.0) -> int:
    """How many boundaries of so many rows each one statement answers, where these are few; `others` it reads beside."""
    if rows > few:
        return 1
    return max(min(int(STATEMENT_ROWS / max(rows + others, 1.0)), MOST_TOGETHER), 1)


def _of_expiring(expected: Expected, windowed: Sequence[int]) -> int:
    """Each window that ends reads its share of the kept answer."""
    joined, query = sum(expected.sizes.join(expected.arrivals(i)) for i in windowed), expected.ctx.shape.query
    reads = sum(frequency(query, window) * window.range / longest(query) for window in query.windows) or 1.0
    return _together(joined + reads * Ends.of(expected).live, FEW_JOINED)


def _of_retracted(expected: Expected, windowed: Sequence[int]) -> int:
    """Changes are joined with the merged partials of the other inputs, which are merged for each of them."""
    query_sizes, order, changes, merged = expected.sizes, expected.ctx.plan.order, 0.0, 0.0
    for i in windowed:
        operands = [expected.came(j) if j == i else expected.merged(j) for j in order]
        changes += (2 if expected.flow(i).left else 1) * query_sizes.join(operands)
        merged += sum(expected.flow(j).stored for j in order if j != i and expected.ctx.early(j))
    if min(changes, query_sizes.groups) > FEW_CHANGED or merged > FEW_PARTIALS:
        return 1
    return _together(changes, FEW_JOINED, merged)


def _of_totals(expected: Expected, windowed: Sequence[int]) -> int:
    """Totals, extremes beside them, and what is joined with them."""
    ctx, totals, beside = expected.ctx, 0.0, 0.0
    for i in windowed:
        flow = expected.flow(i)
        if ctx.early(i):
            totals += min((2 if flow.left else 1) * flow.pane, flow.set) + flow.set
            beside += flow.by_pane if extremes(ctx, i) else 0.0
    joined = _joined_rows(expected, [i for i in windowed if not ctx.early(i)])
    return _together(totals, FEW_TOTALS, beside + joined) if joined <= FEW_ROWS else 1


def _joined_rows(expected: Expected, read: Sequence[int]) -> float:
    """A boundary's rows of the inputs that are read, and what all inputs are joined to."""
    operands = [expected.merged(i) for i in expected.ctx.inputs]
    return sum(expected.flow(i).window for i in read) + expected.sizes.join(operands)


def boundaries_a_shared_statement(group: Group, statistics: QueryStatistics) -> int:
    """The same of a query group; `statistics` are of what its members have in common."""
    if group.common.returns_rows:
        return 1
    cells, sets = 0.0, 0.0
    for i, flow in enumerate(sizes(group.common, statistics).flows):
        is_told_apart = i in group.told_apart
        cells += min(flow.window, flow.set * (group.marks[i].combinations if is_told_apart else 1))
        sets += flow.set * (len(group.classes) if is_told_apart else 1)
    return _together(cells + (0.0 if group.splits_after else sets), FEW_SETS)
