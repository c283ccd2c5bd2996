"""How much work a plan's batch is, by node and kind: the sum of what its operators say of themselves; no seconds here.

A batch is one boundary after the state was brought to the one before (`steady`), or from nothing (`building`). Amounts
are one task's: what is divided counts 1/parts, what every task does counts whole.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil, inf
from types import MappingProxyType

from optimizer.cost.measured import NODES, STATED
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import Plan
from optimizer.plan.operators.answer import FIXED
from optimizer.plan.operators.operator import Expected, scan_node, set_node
from optimizer.plan.operators.scan import is_read_anew
from optimizer.plan.tree import kept_sets, operators
from optimizer.query.model import Query
from optimizer.statistics.cardinality import Sizes, sizes
from optimizer.statistics.emptying import windows_at
from optimizer.statistics.model import QueryStatistics

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
    "merge": "values that tasks hand to the driver, which merges them",
    "published": "values of the answer's rows, which the driver judges and writes",
    "commits": "tables committed",
    "jobs": "Spark jobs",
    "shuffles": "exchanges by Spark's own shuffle: a stage more in a job",
    "batches": "one for each batch: its ledger rows, and what runs between tasks",
}
# Of a batch of many boundaries, what is done once for all of them; what comes from reading rows grows by the rows that
# come with each, everything else is done for each.
ONCE = ("state_read", "writes", "commits", "jobs", "shuffles", "batches")
BY_ROWS = ("scan", "times", "keep", "files", "exchange")
BY_STATEMENTS = ("statements", "operands")
OUTSIDE = ("merge", "published", "commits", "jobs", "shuffles", "batches")      # not the task's own work


@dataclass(frozen=True)
class Features:
    """Amounts by node and kind: `Features({"Scan v": {"scan": 600}, "Join": {"probe": 200}, "fixed": {"commits": 1}})`.

    Nodes as in optimizer.papers.many_way, and what belongs to none as `fixed`. Kinds of a plan in the JVM begin with
    `jvm_`. With the way of keeping `total` also says what each kind of operator is stated to take (`measured.OFF`).
    """

    nodes: Mapping[str, Mapping[str, float]]
    keeping: str = ""

    @property
    def total(self) -> dict[str, float]:
        return _sums(self.nodes.values()) | self._stated_seconds()

    @property
    def in_task(self) -> dict[str, float]:
        """What a task's own seconds measure: no commits, no Spark jobs."""
        return {kind: amount for kind, amount in self.total.items() if kind.removeprefix("jvm_") not in OUTSIDE}

    @property
    def outside(self) -> dict[str, float]:
        """The rest: what no task measures."""
        return {kind: amount for kind, amount in self.total.items() if kind.removeprefix("jvm_") in OUTSIDE}

    def _stated_seconds(self) -> dict[str, float]:
        """By kind of operator and way of keeping, of which prices learn by what share they are off."""
        if not self.keeping:
            return {}
        stated: dict[str, float] = {}
        for node, amounts in self.nodes.items():
            kind = next((kind for kind in NODES if node.startswith(kind)), None)
            if kind is not None:
                name = f"{kind} {self.keeping}"
                inside = sum(STATED[k] * amount for k, amount in amounts.items() if k not in OUTSIDE)
                stated[name] = stated.get(name, 0.0) + inside
        return stated


def steady(query: Query, plan: Plan, statistics: QueryStatistics, parts: int = 1, query_sizes: Sizes | None = None,
           age: float = inf, together: int = 1) -> Features:
    """An average batch after the one before it, `age` boundaries after the plan began.

    `query_sizes`, if they have been worked out, save doing it again. `together`: an average boundary of a batch whose
    statements answer so many.
    """
    return _features(_expected(query, plan, statistics, parts, query_sizes, age=age, together=together))


def building(query: Query, plan: Plan, statistics: QueryStatistics, parts: int = 1,
             query_sizes: Sizes | None = None, together: int = 1) -> Features:
    """The first batch of a plan: its state is made from the stream tables, which may hold more than rates of now bring.
    """
    present = windows_at(query, statistics)
    query_sizes = query_sizes if present is statistics else None
    return _features(_expected(query, plan, present, parts, query_sizes, True, age=0.0, together=together))


def of_batch(query: Query, plan: Plan, statistics: QueryStatistics, parts: int, boundaries: int,
             from_nothing: bool = False, together: int = 1) -> Features:
    """A batch that answers so many boundaries, `together` of them in a statement; of one it is `steady`, or `building`.
    """
    query_sizes, together = sizes(query, statistics), min(together, boundaries)
    first = (building if from_nothing else steady)(query, plan, statistics, parts, query_sizes, together=together)
    if boundaries == 1:
        return first
    one = steady(query, plan, statistics, parts, query_sizes, together=together) if from_nothing else first
    expected = _expected(query, plan, statistics, parts, query_sizes)
    nodes = {}
    for node in dict.fromkeys((*first.nodes, *one.nodes)):
        further, sums = _further(node, expected), dict(first.nodes.get(node, {}))
        for kind, amount in one.nodes.get(node, {}).items():
            plain = kind.removeprefix("jvm_")
            times = 0.0 if plain in ONCE else further if plain in BY_ROWS else 1.0
            more = ceil(boundaries / together) - 1 if plain in BY_STATEMENTS else boundaries - 1
            sums[kind] = sums.get(kind, 0.0) + more * times * amount
        nodes[node] = MappingProxyType(sums)
    return Features(MappingProxyType(nodes), one.keeping)


def of_run(query: Query, plan: Plan, statistics: QueryStatistics, runs: int, boundaries: int,
           together: int = 1) -> Features:
    """A batch whose boundaries tasks divide: amounts of one task's run, and what no task measures of the whole batch.

    A run is priced as if state held nothing for it: what came since the batch before, it reads as rows.
    """
    of_task = of_batch(query, plan, statistics, 1, ceil(boundaries / runs), True, together)
    whole = of_batch(query, plan, statistics, 1, boundaries, True, together)
    outside = {kind: amount for kind, amount in whole.nodes[FIXED].items() if kind.removeprefix("jvm_") in OUTSIDE}
    return Features({**of_task.nodes, FIXED: {**of_task.nodes[FIXED], **outside}}, of_task.keeping)


def _further(node: str, expected: Expected) -> float:
    """Rows that a further boundary brings to what a node reads, over those that one boundary alone reads."""
    for i, flow in enumerate(expected.sizes.flows):
        if node in (scan_node(expected.ctx, i), set_node(expected.ctx, i)):
            is_whole = expected.ctx.window(i) is None or is_read_anew(expected.ctx, i)
            arriving = flow.arriving if expected.ctx.window(i) is not None else 0.0
            return min(arriving / max(flow.read, 1.0), 1.0) if is_whole else 1.0
    return 1.0


def state_rows(query: Query, plan: Plan, statistics: QueryStatistics, query_sizes: Sizes | None = None) -> float:
    """Rows of all state sets at an average boundary that still count."""
    expected = _expected(query, plan, statistics, 1, query_sizes)
    return sum(part.stored_rows(expected) for part in kept_sets(expected.ctx))


def _expected(query: Query, plan: Plan, statistics: QueryStatistics, parts: int, query_sizes: Sizes | None,
              from_nothing: bool = False, age: float = inf, together: int = 1) -> Expected:
    query_sizes = query_sizes or sizes(query, statistics)
    one_task = query_sizes.shape.whole or plan.place == "jvm"
    ctx = Lowering(query_sizes.shape, plan, parts=1 if one_task else parts, together=together)
    return Expected(ctx, query_sizes, from_nothing or not kept_sets(ctx), age)


def _features(expected: Expected) -> Features:
    plan = expected.ctx.plan
    prefix = "jvm_" if plan.place == "jvm" else ""
    nodes: dict[str, dict[str, float]] = {}
    for node, amounts in operators(expected.ctx.shape, plan).work(expected):
        sums = nodes.setdefault(node, {})
        for kind, amount in amounts.items():
            if amount > 0:
                sums[prefix + kind] = sums.get(prefix + kind, 0.0) + amount
    by_node = MappingProxyType({node: MappingProxyType(sums) for node, sums in nodes.items()})
    return Features(by_node, "" if prefix else plan.keeping)


def _sums(works: Iterable[Mapping[str, float]]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for amounts in works:
        for kind, amount in amounts.items():
            sums[kind] = sums.get(kind, 0.0) + amount
    return sums
