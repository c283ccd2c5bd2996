"""How much work a plan's batch is, by node and kind, read off the statements of optimizer.steps and optimizer.views as one task runs them; no seconds here.

A batch is one boundary after the state was brought to the one before (`steady`), or from nothing (`building`). Amounts are one task's: what is divided
counts 1/parts, what every task does counts whole.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from optimizer.cardinality import Flow, Operand, Sizes, sizes
from optimizer.division import ahead, by_key, dealt, divided, pivot
from optimizer.lowering import Lowering, extremes
from optimizer.observed import Observed
from optimizer.plan import Plan
from optimizer.program import state_sets
from optimizer.query import Query

KINDS = {
    "scan": "values read from stream and relation files: rows times columns",
    "files": "files opened",
    "keep": "rows put into a temporary table",
    "group": "rows into a hash aggregation",
    "build": "rows into a join's hash table",
    "probe": "rows that probe one",
    "pairs": "joined rows into the late aggregation",
    "state_read": "rows read from state",
    "state_write": "rows written to state",
    "exchange": "rows sent between tasks, counted where they arrive",
    "statements": "statements run by the engine",
    "commits": "tables committed",
    "jobs": "Spark jobs",
    "batches": "one for each batch: its ledger rows, and what runs between tasks",
}
OUTSIDE = ("commits", "jobs", "batches")      # not the task's own work
FIXED = "fixed"
TIMES = 2             # columns more to read where a file's bounds do not prove its rows' times: event time and _boundary


@dataclass(frozen=True)
class Features:
    """Amounts by node and kind; nodes as in optimizer.cost.many_way, and what belongs to none as `fixed`. Kinds of a plan in the JVM begin with `jvm_`."""

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


@dataclass
class _Tally:
    """A plan being counted. `new` says that its state starts from nothing."""

    low: Lowering
    sizes: Sizes
    new: bool
    counted: dict[str, dict[str, float]] = field(default_factory=dict)

    def add(self, node: str, **amounts: float) -> None:
        own = self.counted.setdefault(node, {})
        for kind, amount in amounts.items():
            if amount > 0:
                own[kind] = own.get(kind, 0.0) + amount

    def part(self, i: int) -> float:
        """How much of input i's partials one task holds."""
        return 1 / self.low.parts if divided(self.low, i) else 1.0

    def scan(self, i: int) -> str:
        return f"Scan {self.low.shape.query.inputs[i].alias}"

    def set(self, i: int) -> str:
        return f"AS {self.low.shape.query.inputs[i].alias}"


def steady(query: Query, plan: Plan, observed: Observed, parts: int = 1, known: Sizes | None = None) -> Features:
    """An average batch after the one before it. `known` are the query's sizes, if they have been worked out."""
    return _features(query, plan, observed, parts, known, False)


def building(query: Query, plan: Plan, observed: Observed, parts: int = 1, known: Sizes | None = None) -> Features:
    """The first batch of a plan: its state is made from the stream tables."""
    return _features(query, plan, observed, parts, known, True)


def state_rows(query: Query, plan: Plan, observed: Observed, known: Sizes | None = None) -> float:
    """Rows of all state sets at an average boundary."""
    low, found = _lowered(query, plan, observed, 1, known)
    return sum(_stored(low, found, kept.kind, kept.input) for kept in state_sets(low))


def _lowered(query: Query, plan: Plan, observed: Observed, parts: int, known: Sizes | None) -> tuple[Lowering, Sizes]:
    found = known or sizes(query, observed)
    alone = found.shape.whole or plan.place == "jvm"
    return Lowering(found.shape, plan, parts=1 if alone else parts), found


def _features(query: Query, plan: Plan, observed: Observed, parts: int, known: Sizes | None, new: bool) -> Features:
    low, found = _lowered(query, plan, observed, parts, known)
    tally = _Tally(low, found, new or not state_sets(low))
    for i in low.inputs:
        _input(tally, i)
    if query.returns_rows:
        _rows(tally)
    else:
        KEEPING[plan.keeping](tally)
    _fixed(tally)
    prefix = "jvm_" if plan.place == "jvm" else ""
    return Features(MappingProxyType({n: MappingProxyType({prefix + k: a for k, a in own.items()}) for n, own in tally.counted.items()}))


def _stored(low: Lowering, found: Sizes, kind: str, i: int | None) -> float:
    """Rows of one state set. An expiring answer holds, of every boundary, the groups of each end that has not come yet."""
    if i is not None:
        return found.flows[i].set if kind == "totals" else found.flows[i].stored
    ends = _ends(found)
    return found.answer(float("inf")) if low.plan.keeping != "expire" else _fresh(low, found) * ends / 2


def _ends(found: Sizes) -> float:
    """Boundaries at which combinations of now can end: the fewest of any input, as the member that leaves first ends it."""
    leaving = [f.ends for f in found.flows if f.left > 0]
    return min(leaving, default=1.0)


def _fresh(low: Lowering, found: Sizes) -> float:
    """Answer partials, by group and end, that one boundary adds to an expiring answer."""
    pairs = sum(found.join(_came(low, found, i)) for i in low.inputs if low.window(i))
    return found.answer(pairs, _ends(found))


def _came(low: Lowering, found: Sizes, i: int) -> list[Operand]:
    """What came on input i among the members of the others, by pane."""
    return [_change(low, found.flows[j], j) if j == i else _by_pane(low, found, j) for j in low.plan.order]


def _change(low: Lowering, f: Flow, i: int) -> Operand:
    return Operand(i, f.pane, f.came) if low.early(i) else Operand(i, f.came)


def _by_pane(low: Lowering, found: Sizes, i: int) -> Operand:
    return found.by_pane(i) if low.early(i) else found.raw(i)


def _merged(low: Lowering, found: Sizes, i: int) -> Operand:
    return found.merged(i) if low.early(i) else found.raw(i)


def _input(tally: _Tally, i: int) -> None:
    """The view w{i} (optimizer.views.view)."""
    low, f = tally.low, tally.sizes.flows[i]
    if low.window(i) is None:
        tally.add(tally.scan(i), scan=f.read * max(f.columns, 1), files=1, keep=(f.set if low.early(i) else f.window) * tally.part(i), statements=2)
        if low.early(i):
            tally.add(tally.set(i), group=f.window * tally.part(i))
    elif not low.early(i) or low.plan.keeping == "recompute" and low.plan.layout == "raw":
        _late(tally, i, f)
    elif low.plan.keeping == "running":
        _totals(tally, i, f)
    else:
        _panes(tally, i, f)


def _read(tally: _Tally, i: int, rows: float, files: float, columns: int, passing: float) -> float:
    """Rows of stream i read from files, and sent where they cross an exchange; gives how many reach the view."""
    low, f = tally.low, tally.sizes.flows[i]
    share = 1 / low.parts if ahead(low, i) or dealt(low, i) else 1.0
    tally.add(tally.scan(i), scan=rows * max(columns, 1) * share, files=max(files * share, 1.0), statements=1)
    if not ahead(low, i):
        return passing * tally.part(i)
    sent = passing
    if low.early(i):
        tally.add(tally.set(i), group=passing * share)
        sent = max(passing / f.came * f.pane, f.set) if f.came else f.set
    sent = min(sent, passing) * tally.part(i)
    tally.add(tally.scan(i), exchange=sent, statements=1)
    return sent


def _late(tally: _Tally, i: int, f: Flow) -> None:
    """The window's rows each time: a view for recompute, which needs no times where bounds prove them; else a table of rows with their intervals."""
    exact = tally.low.plan.keeping == "recompute" and not tally.low.shape.query.returns_rows
    more = int(f.timed) if exact else TIMES
    reached = _read(tally, i, f.read, f.panes, f.columns + more, f.window)
    if not exact:
        tally.add(tally.scan(i), keep=reached, statements=1)


def _panes(tally: _Tally, i: int, f: Flow) -> None:
    """What came, early aggregated by interval, is added to state; older panes are read from it."""
    low, part = tally.low, tally.part(i)
    rows, panes, made = (f.window, f.panes, f.stored) if tally.new else (f.came, 1.0, f.pane)
    reached = _read(tally, i, f.read if tally.new else f.arriving, panes, f.columns + TIMES, rows)
    tally.add(tally.set(i), group=reached, keep=made * part, state_write=made * part, statements=3)
    if not tally.new:
        share = part if dealt(low, i) else 1.0
        tally.add(tally.set(i), state_read=f.stored * share, files=max(f.panes * share, 1.0))
    if low.plan.keeps_answer:
        tally.add(tally.set(i), keep=f.stored * part)


def _totals(tally: _Tally, i: int, f: Flow) -> None:
    """Rows that came and left change the totals; extremes are kept by interval beside them."""
    low, part, own = tally.low, tally.part(i), extremes(tally.low, i)
    rows, files = (f.read, f.panes) if tally.new else (f.arriving * (2 if f.left else 1), 2 if f.left else 1)
    passing = f.window if tally.new else f.came + f.left
    reached = _read(tally, i, rows, files, f.columns + TIMES, passing)
    before = 0.0 if tally.new else f.set
    tally.add(tally.scan(i), keep=reached, statements=1)
    tally.add(tally.set(i), group=reached + before * part, keep=f.set * part, state_write=f.set * part, statements=3)
    tally.add(tally.set(i), state_read=before, files=0 if tally.new else low.parts if by_key(low) else 1)
    if own:
        made = f.stored if tally.new else f.pane
        came = reached if tally.new else reached * f.came / passing if passing else 0.0
        tally.add(tally.set(i), group=came + (f.set + f.stored) * part, keep=made * part, state_write=made * part, statements=3)
        tally.add(tally.set(i), state_read=0 if tally.new else f.stored, files=0 if tally.new else f.panes)


def _joins(tally: _Tally, operands: list[Operand]) -> float:
    """Joins along the plan's order, the smaller side built; gives this task's joined rows."""
    prefix = tally.sizes.prefixes(operands)
    share = max((1 / tally.low.parts) if divided(tally.low, o.input) else 0.0 for o in operands)
    left = operands[0].rows * tally.part(operands[0].input)
    shared = divided(tally.low, operands[0].input)
    for operand, rows in zip(operands[1:], prefix[1:]):
        right = operand.rows * tally.part(operand.input)
        tally.add("Join", build=min(left, right), probe=max(left, right))
        shared = shared or divided(tally.low, operand.input)
        left = rows * (share if shared else 1.0)
        if operand is not operands[-1]:
            tally.add("Join", probe=left)
    tally.add("Late aggregation", pairs=left)
    return left


def _recompute(tally: _Tally) -> None:
    """Early sets are merged from their panes, but for the divided input: its panes are joined as they are."""
    low, found = tally.low, tally.sizes
    operands = []
    for i in low.plan.order:
        f, first = found.flows[i], i == pivot(low)
        raw = low.window(i) is not None and low.plan.layout == "raw"
        if low.early(i) and not first:
            tally.add(tally.set(i), group=(f.window if raw else f.stored) * tally.part(i))
        operands.append(_merged(low, found, i) if not first else found.raw(i) if raw or not low.early(i) else found.by_pane(i))
    _joins(tally, operands)
    tally.add("Late aggregation", statements=1)


def _running(tally: _Tally) -> None:
    low, found = tally.low, tally.sizes
    for i in low.inputs:
        if low.early(i) and low.window(i) is None:
            tally.add(tally.set(i), group=found.flows[i].set * tally.part(i))
    _joins(tally, [_merged(low, found, i) for i in low.plan.order])
    tally.add("Late aggregation", statements=1)


def _retract(tally: _Tally) -> None:
    """A term for each stream: what came and left, among the merged members of the others, which each term makes anew."""
    low, found = tally.low, tally.sizes
    for i in [low.inputs[-1]] if tally.new else [i for i in low.inputs if low.window(i)]:
        for j in low.inputs:
            f = found.flows[j]
            if j != i and low.early(j):
                tally.add(tally.set(j), group=f.stored * tally.part(j))
            elif j == i and not tally.new:
                tally.add(tally.scan(j), probe=2 * (f.stored if low.early(j) else f.window) * tally.part(j))
        _joins(tally, [_signed(tally, j) if j == i else _merged(low, found, j) for j in low.plan.order])
    groups = found.answer(float("inf"))
    tally.add("Late aggregation", statements=2)
    _kept_answer(tally, 0.0 if tally.new else groups, groups, 1.0)


def _signed(tally: _Tally, i: int) -> Operand:
    """What came and what left; from nothing, all."""
    f = tally.sizes.flows[i]
    if tally.new:
        return _by_pane(tally.low, tally.sizes, i)
    change = _change(tally.low, f, i)
    return replace(change, rows=change.rows * (2 if f.left else 1))


def _expire(tally: _Tally) -> None:
    """A term for each stream: what came, among the panes of the others; answer partials by end are added, those of before read."""
    low, found, ends = tally.low, tally.sizes, _ends(tally.sizes)
    if tally.new:
        pairs = _joins(tally, [_by_pane(low, found, j) for j in low.plan.order])
    else:
        terms = [i for i in low.inputs if low.window(i)]
        for i in terms:
            looked = sum((found.flows[j].stored if low.early(j) else found.flows[j].window) * tally.part(j) for j in low.inputs if j == i)
            tally.add("Join", probe=looked)
        pairs = sum(_joins(tally, _came(low, found, i)) for i in terms)
    fresh = found.answer(pairs, ends)
    before = 0.0 if tally.new else _fresh(low, found) * ends
    tally.add("Late aggregation", statements=2)
    _kept_answer(tally, before, fresh, ends)


def _kept_answer(tally: _Tally, before: float, made: float, files: float) -> None:
    """The answer's own state: read, merged with what is new, written."""
    share = 1 / tally.low.parts
    tally.add("Late aggregation", state_read=before * share, files=files * share if before else 0, group=before * share + made, keep=made, state_write=made, statements=1)


def _rows(tally: _Tally) -> None:
    """Combinations that are known now and were not: a term for each stream, each row written."""
    low, found = tally.low, tally.sizes
    terms = [[found.raw(j) for j in low.plan.order]] if tally.new and False else [_came(low, found, i) for i in low.inputs if low.window(i)]
    pairs = sum(_joins(tally, operands) for operands in terms)
    tally.add("Late aggregation", state_write=pairs, statements=1)


def _fixed(tally: _Tally) -> None:
    """The merge of the tasks' partials, commits of state and result, Spark jobs."""
    low = tally.low
    kept = len(state_sets(low))
    sent = any(ahead(low, i) for i in low.inputs) and low.plan.exchange == "broadcast"
    groups = 0.0 if low.shape.query.returns_rows else tally.sizes.answer(float("inf")) * low.parts
    tally.add(FIXED, commits=kept + 1, jobs=1 + sent, batches=1, statements=1, group=groups)


KEEPING = {"recompute": _recompute, "running": _running, "retract": _retract, "expire": _expire}
