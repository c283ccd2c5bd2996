"""How much work a plan's batch is, by node and kind, read off the statements of optimizer.plan.operators.steps and
optimizer.plan.operators.views as one task runs them; no seconds here.

A batch is one boundary after the state was brought to the one before (`steady`), or from nothing (`building`). Amounts are one task's: what is divided
counts 1/parts, what every task does counts whole.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from types import MappingProxyType

from optimizer.cost import many_windows
from optimizer.cost.answering import KEEPING, joined_rows
from optimizer.cost.reading import read_input
from optimizer.cost.tally import Tally, ends_of, fresh
from optimizer.plan.division import ahead
from optimizer.plan.lowering import Lowering
from optimizer.plan.merging import step
from optimizer.plan.model import Plan
from optimizer.plan.operators.state import state_sets
from optimizer.query.model import Query
from optimizer.statistics.cardinality import Sizes, sizes
from optimizer.statistics.observed import Observed

KINDS = {
    "scan": "values read from stream and relation files: rows times columns",
    "files": "files opened",
    "times": "rows of which it is worked out when they enter and leave",
    "keep": "values put into a temporary table",
    "group": "values into a hash aggregation",
    "made": "values out of one: its groups",
    "look": "rows of temporary tables looked through",
    "build": "values into a join's hash table",
    "probe": "rows that probe one",
    "between": "joined rows that are joined on",
    "pairs": "values of joined rows into the late aggregation",
    "fanned": "of their rows, those beyond one for each row that probes",
    "products": "of their measures with the counts of other inputs",
    "state_read": "values read from state",
    "state_write": "values written to state",
    "writes": "state files written",
    "exchange": "rows sent between tasks, counted where they arrive",
    "statements": "statements run by the engine",
    "operands": "relations in the joins of those statements: what planning them costs",
    "merge": "values that the driver makes rows of",
    "commits": "tables committed",
    "jobs": "Spark jobs",
    "batches": "one for each batch: its ledger rows, and what runs between tasks",
}
OUTSIDE = ("merge", "commits", "jobs", "batches")      # not the task's own work
FIXED = "fixed"


@dataclass(frozen=True)
class Features:
    """Amounts by node and kind; nodes as in optimizer.papers.many_way, and what belongs to none as `fixed`. Kinds of a plan in the JVM begin with `jvm_`."""

    nodes: Mapping[str, Mapping[str, float]]

    @property
    def total(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for amounts in self.nodes.values():
            for kind, amount in amounts.items():
                found[kind] = found.get(kind, 0.0) + amount
        return found

    @property
    def in_task(self) -> dict[str, float]:
        """What a task's own seconds measure: no commits, no Spark jobs."""
        return {kind: amount for kind, amount in self.total.items() if kind.removeprefix("jvm_") not in OUTSIDE}


def steady(query: Query, plan: Plan, observed: Observed, parts: int = 1, known: Sizes | None = None, age: float = inf) -> Features:
    """An average batch after the one before it, `age` boundaries after the plan began. `known` are the query's sizes, if they have been worked out."""
    return _features(query, plan, observed, parts, known, False, age)


def building(query: Query, plan: Plan, observed: Observed, parts: int = 1, known: Sizes | None = None) -> Features:
    """The first batch of a plan: its state is made from the stream tables."""
    return _features(query, plan, observed, parts, known, True, 0.0)


def state_rows(query: Query, plan: Plan, observed: Observed, known: Sizes | None = None) -> float:
    """Rows of all state sets at an average boundary that still count."""
    low, found = _lowered(query, plan, observed, 1, known)
    return sum(_stored(low, found, kept.kind, kept.input) for kept in state_sets(low))


def _lowered(query: Query, plan: Plan, observed: Observed, parts: int, known: Sizes | None) -> tuple[Lowering, Sizes]:
    found = known or sizes(query, observed)
    alone = found.shape.whole or plan.place == "jvm"
    return Lowering(found.shape, plan, parts=1 if alone else parts), found


def _features(query: Query, plan: Plan, observed: Observed, parts: int, known: Sizes | None, new: bool, age: float) -> Features:
    low, found = _lowered(query, plan, observed, parts, known)
    kept = len(state_sets(low))
    tally = Tally(low, found, new or not kept, age, kept)
    for i in low.inputs:
        read_input(tally, i)
    if query.returns_rows:
        joined_rows(tally)
    else:
        KEEPING[plan.keeping](tally)
    _fixed(tally)
    prefix = "jvm_" if plan.place == "jvm" else ""
    return Features(MappingProxyType({n: MappingProxyType({prefix + k: a for k, a in own.items()}) for n, own in tally.counted.items()}))


def _stored(low: Lowering, found: Sizes, kind: str, i: int | None) -> float:
    """Rows of one state set. An expiring answer holds, of every boundary, the groups of each end that has not come yet."""
    if i is not None and low.plan.levels:
        return many_windows.stored(low, found, kind)
    if i is not None:
        return found.flows[i].set if kind == "totals" else found.flows[i].stored
    return found.answer(inf) if low.plan.keeping != "expire" else fresh(low, found) * (ends_of(found) + 1) / 2


def _fixed(tally: Tally) -> None:
    """The merge of the tasks' partials, commits of state and result, Spark jobs."""
    low, kept = tally.low, tally.kept
    sent = any(ahead(low, i) for i in low.inputs) and low.plan.exchange == "broadcast"
    groups = 0.0 if low.shape.query.returns_rows else tally.sizes.answer(inf) * low.parts
    seldom = sum((1 - step(low.shape.query) / level for level in low.plan.levels), 0.0)
    tally.add(FIXED, commits=kept + 1, writes=kept - seldom, jobs=1 + sent, batches=1, merge=groups * tally.answer)
