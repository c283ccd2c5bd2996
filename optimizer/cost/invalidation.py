"""When expired partials leave state: with the commit that adds (`insert`), or with the next merge (`sweep`), by what
each takes (paper B's strategies, as micro-batches have them); reads filter in any case, so no answer depends on it.

Per boundary, of sets of which every boundary adds a file and that hold n boundaries, fewer than the m files that a
merge waits for:

    insert   n files are opened, and one that has ended is removed after the commit
    sweep    (1 + m)/2 files are opened, and every m − 1 boundaries a job merges what still counts

Longer windows have their files merged before any has ended, by either, so there is nothing to choose.
"""
from __future__ import annotations

from collections.abc import Mapping

from optimizer.cost.measured import UnitCosts, seconds
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import Plan
from optimizer.plan.operators.operator import Expected
from optimizer.plan.tree import kept_sets
from optimizer.statistics.cardinality import Sizes

REMOVAL = 0.5      # of a commit's seconds: a file is deleted once the ledger's entry is on the disk
Amounts = Mapping[str, float]


def upkeep(plan: Plan, query_sizes: Sizes) -> dict[str, dict[str, float]]:
    """Work of an average boundary by strategy; empty where there is nothing to choose."""
    expected = Expected(Lowering(query_sizes.shape, plan), query_sizes)
    insert, sweep, jobs = dict.fromkeys(("files", "commits"), 0.0), dict[str, float](), 0.0
    for part in kept_sets(expected.ctx):
        state = part.state(expected.ctx)
        boundaries = expected.ends if state.input is None else expected.flow(state.input).panes
        if state.ends is None or boundaries >= state.most_files:
            continue
        often = 1 / (state.most_files - 1)
        insert["files"] += boundaries
        insert["commits"] = REMOVAL      # for all sets at once
        values = part.stored_rows(expected) * len(state.columns)
        opened = (1 + state.most_files) / 2 + often * state.most_files
        merge = {"files": opened, "statements": often, "writes": often, "commits": often,
                 "state_read": often * values, "group": often * values, "state_write": often * values}
        sweep = {kind: sweep.get(kind, 0.0) + amount for kind, amount in merge.items()}
        jobs = max(jobs, often)      # one job merges the sets of all
    sweep |= {"jobs": jobs} if sweep else {}
    return {"insert": insert, "sweep": sweep} if sweep else {}


def invalidation(plan: Plan, query_sizes: Sizes, unit_costs: UnitCosts) -> str:
    """The cheaper strategy; the plan's own where there is nothing to choose."""
    amounts = upkeep(plan, query_sizes)
    return min(amounts, key=lambda strategy: seconds(amounts[strategy], unit_costs), default=plan.invalidation)
