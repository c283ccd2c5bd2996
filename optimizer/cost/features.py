"""How much work a plan's batch is, by node and kind, read off the statements of optimizer.steps and optimizer.views as one task runs them; no seconds here.

A batch is one boundary after the state was brought to the one before (`steady`), or from nothing (`building`). Amounts are one task's: what is divided
counts 1/parts, what every task does counts whole.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from types import MappingProxyType

from optimizer.cardinality import MERGED, Flow, Operand, Sizes, sizes
from optimizer.division import ahead, by_key, dealt, divided, pivot
from optimizer.lowering import Lowering, extremes
from optimizer.observed import Observed
from optimizer.plan import Plan
from optimizer.program import state_sets
from optimizer.query import Query

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
INTERVAL = 3          # columns of a row in a temporary table beside its own: _in, _out, _known
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
    """A plan being counted. `new` says that its state starts from nothing, `age` how many boundaries ago it did."""

    low: Lowering
    sizes: Sizes
    new: bool
    age: float
    counted: dict[str, dict[str, float]] = field(default_factory=dict)

    def add(self, node: str, **amounts: float) -> None:
        own = self.counted.setdefault(node, {})
        for kind, amount in amounts.items():
            if amount > 0:
                own[kind] = own.get(kind, 0.0) + amount

    def part(self, i: int) -> float:
        """How much of input i's partials one task holds."""
        return 1 / self.low.parts if divided(self.low, i) else 1.0

    def files(self, most: float) -> float:
        """Files of a state set to which each boundary adds one, until they are merged."""
        return max(min(most, self.age, MERGED), 1.0)

    def keys(self, i: int) -> int:
        return len(self.low.shape.attributes[i])

    def width(self, i: int) -> int:
        """Columns of a partial of input i: attributes, count, measures."""
        return self.keys(i) + 1 + len(self.low.shape.own(i))

    @property
    def answer(self) -> int:
        """Columns of an answer's partial."""
        return len(self.low.shape.query.groups) + 1 + len(self.low.shape.measures)

    def scan(self, i: int) -> str:
        return f"Scan {self.low.shape.query.inputs[i].alias}"

    def set(self, i: int) -> str:
        return f"AS {self.low.shape.query.inputs[i].alias}"


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
    tally = _Tally(low, found, new or not state_sets(low), age)
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
    return found.answer(inf) if low.plan.keeping != "expire" else _fresh(low, found) * (_ends(found) + 1) / 2


def _ends(found: Sizes) -> float:
    """Boundaries at which combinations of now can end: the fewest of any input, as the member that leaves first ends it."""
    return min((f.ends for f in found.flows if f.left > 0), default=1.0)


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
        _relation(tally, i, f)
    elif not low.early(i) or low.plan.keeping == "recompute" and low.plan.layout == "raw":
        _late(tally, i, f)
    elif low.plan.keeping == "running":
        _totals(tally, i, f)
    else:
        _panes(tally, i, f)


def _relation(tally: _Tally, i: int, f: Flow) -> None:
    part, width = tally.part(i), tally.width(i)
    tally.add(tally.scan(i), scan=f.read * max(f.columns, 1), files=1, statements=1)
    if tally.low.early(i):
        tally.add(tally.set(i), group=f.window * part * width, made=f.set * part * width, keep=f.set * part * width)
    else:
        tally.add(tally.scan(i), keep=f.window * part * width)


def _read(tally: _Tally, i: int, rows: float, files: float, columns: int, passing: float) -> float:
    """Rows of stream i read from files, and sent where they cross an exchange; gives how many reach the view."""
    low, f = tally.low, tally.sizes.flows[i]
    share = 1 / low.parts if ahead(low, i) or dealt(low, i) else 1.0
    tally.add(tally.scan(i), scan=rows * max(columns, 1) * share, files=max(files * share, 1.0), statements=1)
    if not ahead(low, i):
        return passing * tally.part(i)
    sent = passing
    if low.early(i):
        sent = min(max(passing / f.came * f.pane, f.set) if f.came else f.set, passing)
        tally.add(tally.set(i), group=passing * share * tally.width(i), made=sent * share * tally.width(i))
    tally.add(tally.scan(i), exchange=sent * tally.part(i), statements=1)
    return sent * tally.part(i)


def _late(tally: _Tally, i: int, f: Flow) -> None:
    """The window's rows each time: a view for recompute, which needs no times where bounds prove them; else a table of rows with their intervals."""
    exact = tally.low.plan.keeping == "recompute" and not tally.low.shape.query.returns_rows
    reached = _read(tally, i, f.read, f.panes, f.columns + (int(f.timed) if exact else TIMES), f.window)
    if not exact:
        tally.add(tally.scan(i), times=reached, keep=reached * (tally.width(i) + INTERVAL), statements=1)


def _panes(tally: _Tally, i: int, f: Flow) -> None:
    """What came, early aggregated by interval, is added to state; older panes are read from it."""
    low, part, width = tally.low, tally.part(i), tally.width(i) + 2
    rows, panes, made = (f.window, f.panes, f.by_pane) if tally.new else (f.came, 1.0, f.pane)
    reached = _read(tally, i, f.read if tally.new else f.arriving, panes, f.columns + TIMES, rows)
    tally.add(tally.set(i), times=reached, group=reached * width, made=made * part * width, keep=made * part * width, statements=2)
    tally.add(tally.set(i), state_write=made * part * width)
    if not tally.new:
        share = part if dealt(low, i) else 1.0
        tally.add(tally.set(i), state_read=f.stored * share * width, files=tally.files(f.panes * share))
    if low.plan.keeps_answer:
        tally.add(tally.set(i), keep=f.stored * part * width)


def _totals(tally: _Tally, i: int, f: Flow) -> None:
    """Rows that came and left change the totals; extremes are kept by interval beside them."""
    low, part, width = tally.low, tally.part(i), tally.width(i) - len(extremes(tally.low, i))
    rows, files = (f.read, f.panes) if tally.new else (f.arriving * (2 if f.left else 1), 2 if f.left else 1)
    passing = f.window if tally.new else f.came + f.left
    reached = _read(tally, i, rows, files, f.columns + TIMES, passing)
    before = 0.0 if tally.new else f.set
    tally.add(tally.scan(i), times=reached, keep=reached * (tally.width(i) + INTERVAL), statements=1)
    tally.add(tally.set(i), look=2 * reached, group=(reached + before * part) * width, made=f.set * part * width, keep=f.set * part * width, statements=2)
    tally.add(tally.set(i), state_write=f.set * part * width, state_read=before * width, files=0 if tally.new else low.parts if by_key(low) else 1)
    if extremes(low, i):
        _extremes(tally, i, f, reached * f.came / passing if passing and not tally.new else reached)


def _extremes(tally: _Tally, i: int, f: Flow, came: float) -> None:
    own, part = len(extremes(tally.low, i)), tally.part(i)
    width, made = tally.keys(i) + own + 2, f.by_pane if tally.new else f.pane
    tally.add(tally.set(i), look=came, group=came * width, made=made * part * width, keep=made * part * width, state_write=made * part * width, statements=2)
    tally.add(tally.set(i), group=(f.set + f.stored) * part * tally.width(i), made=f.set * part * tally.width(i))
    if not tally.new:
        tally.add(tally.set(i), state_read=f.stored * width, files=tally.files(f.panes))


def _joins(tally: _Tally, operands: list[Operand], more: int = 0) -> float:
    """Joins one after another, the smaller side built; gives this task's joined rows. `more` columns are asked of them than the answer's.

    The kernel orders joins itself, whatever order the plan writes: taken as fewest rows first. Spark keeps the plan's."""
    if tally.low.plan.place == "tasks":
        operands = _ordered(tally.sizes, [_pushed(tally, o) for o in operands] if not more else operands)
    prefix = tally.sizes.prefixes(operands)
    left, first = operands[0].rows * tally.part(operands[0].input), operands[0].input
    wide, shared, large = tally.width(first), divided(tally.low, first), left
    for n, operand in enumerate(operands[1:], 1):
        right, own = operand.rows * tally.part(operand.input), tally.width(operand.input)
        small, large = (right, own) if right <= left else (left, wide), max(left, right)
        tally.add("Join", build=small[0] * small[1], probe=large)
        shared = shared or divided(tally.low, operand.input)
        left, wide = prefix[n] * (1 / tally.low.parts if shared else 1.0), wide + own
        tally.add("Join", between=left if n + 1 < len(operands) else 0, fanned=max(left - large, 0))
    kind = "pairs" if len(operands) > 1 else "group"
    tally.add("Late aggregation", **{kind: left * (tally.answer + more)}, products=left * _products(tally.low, more), operands=len(operands))
    return left


def _pushed(tally: _Tally, operand: Operand) -> Operand:
    """DuckDB 2.0 aggregates both sides of a two-way join early by itself if the measures of the joined rows read one side only."""
    low, i = tally.low, operand.input
    read = {m.home for m in low.shape.measures} | {i for i in low.inputs if low.early(i)}
    if len(low.inputs) != 2 or None in read or len(read) > 1 or low.shape.query.residuals or not low.shape.query.groups or low.shape.whole:
        return operand
    merged = replace(tally.sizes.merged(i), rows=min(tally.sizes.flows[i].set, operand.rows))
    width = tally.keys(i) + 1 + (len(low.shape.own(i)) if i in read else 0)
    tally.add("Late aggregation", group=operand.rows * tally.part(i) * width, made=merged.rows * tally.part(i) * width)
    return merged


def _ordered(found: Sizes, operands: list[Operand]) -> list[Operand]:
    """Left-deep, from the pair with the fewest joined rows, then whatever leaves the fewest; only along equalities."""
    if len(operands) < 3:
        return operands
    pairs = [[a, b] for n, a in enumerate(operands) for b in operands[:n] if found.linked(a.input, b.input)]
    chosen = min(pairs, key=found.join)
    while len(chosen) < len(operands):
        rest = [o for o in operands if o not in chosen and any(found.linked(o.input, c.input) for c in chosen)]
        chosen = [*chosen, min(rest, key=lambda o: found.join([*chosen, o]))]
    return chosen


def _products(low: Lowering, signs: int = 0) -> int:
    """Multiplications a joined row: each additive measure by the counts of the other inputs that aggregate early (optimizer.join)."""
    early = sum(low.plan.digits)
    weighed = [early - (m.home is not None and low.early(m.home)) for m in low.shape.measures if m.additive]
    return max(early - 1, 0) + sum(weighed)


def _merging(tally: _Tally, i: int, rows: float) -> None:
    """Partials of input i merged by attributes as the members of one boundary."""
    width = tally.width(i)
    tally.add(tally.set(i), group=rows * tally.part(i) * width, made=tally.sizes.flows[i].set * tally.part(i) * width)


def _recompute(tally: _Tally) -> None:
    """Early sets are merged from their panes, but for the divided input: its panes are joined as they are."""
    low, found, operands = tally.low, tally.sizes, []
    for i in low.plan.order:
        f, first = found.flows[i], i == pivot(low)
        raw = low.window(i) is not None and low.plan.layout == "raw"
        if low.early(i) and not first:
            _merging(tally, i, f.window if raw else f.stored)
        operands.append(_merged(low, found, i) if not first else found.raw(i) if raw or not low.early(i) else found.by_pane(i))
    pairs = _joins(tally, operands)
    tally.add("Late aggregation", made=found.answer(pairs) * tally.answer, statements=1)


def _running(tally: _Tally) -> None:
    low, found = tally.low, tally.sizes
    for i in low.inputs:
        if low.early(i) and low.window(i) is None:
            _merging(tally, i, found.flows[i].set)
        elif not low.early(i):
            tally.add(tally.scan(i), look=found.flows[i].window * tally.part(i))
    pairs = _joins(tally, [_merged(low, found, i) for i in low.plan.order])
    tally.add("Late aggregation", made=found.answer(pairs) * tally.answer, statements=1)


def _retract(tally: _Tally) -> None:
    """A term for each stream: what came and left, among the merged members of the others, which each term makes anew."""
    low, found = tally.low, tally.sizes
    for i in [low.inputs[-1]] if tally.new else [i for i in low.inputs if low.window(i)]:
        for j in low.inputs:
            f = found.flows[j]
            if j != i and low.early(j):
                _merging(tally, j, f.stored)
            tally.add(tally.scan(j), look=(2 if j == i else 1) * (f.stored if low.early(j) else f.window) * tally.part(j))
        _joins(tally, [_signed(tally, j) if j == i else _merged(low, found, j) for j in low.plan.order], 1)
    groups = found.answer(inf)
    _kept_answer(tally, 0.0 if tally.new else groups, groups, 1.0, 0)


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
    terms = [[_by_pane(low, found, j) for j in low.plan.order]] if tally.new else [_came(low, found, i) for i in low.inputs if low.window(i)]
    for j in low.inputs:
        f = found.flows[j]
        tally.add(tally.scan(j), look=len(terms) * (f.stored if low.early(j) else f.window) * tally.part(j))
    fresh = sum(found.answer(_joins(tally, term, 1), ends) for term in terms)
    before = 0.0 if tally.new else _before(low, found, tally.age)
    _kept_answer(tally, before, fresh, tally.files(ends), 1)


def _before(low: Lowering, found: Sizes, age: float) -> float:
    """Rows in the files of an expiring answer, those that have ended but stand in a file with others included."""
    ends, fresh = _ends(found), _fresh(low, found)
    if age >= ends:
        return fresh * ends
    return found.answer(found.join([_by_pane(low, found, j) for j in low.plan.order]), ends) + fresh * max(age - 1, 0)


def _kept_answer(tally: _Tally, before: float, made: float, files: float, more: int) -> None:
    """The answer's own state: read, merged with what is new, written."""
    share, width = 1 / tally.low.parts, tally.answer + more
    groups = tally.sizes.answer(inf)
    tally.add("Late aggregation", state_read=before * share * width, files=files * share if before else 0, group=(before * share + 2 * made) * width)
    tally.add("Late aggregation", made=(made + groups) * width, keep=made * width, state_write=made * width, statements=3)


def _rows(tally: _Tally) -> None:
    """Combinations that are known now and were not: a term for each stream, each row written."""
    low, found = tally.low, tally.sizes
    pairs = sum(_joins(tally, _came(low, found, i)) for i in low.inputs if low.window(i))
    tally.add("Late aggregation", state_write=pairs * len(low.shape.query.outputs), statements=1)


def _fixed(tally: _Tally) -> None:
    """The merge of the tasks' partials, commits of state and result, Spark jobs."""
    low, kept = tally.low, len(state_sets(tally.low))
    sent = any(ahead(low, i) for i in low.inputs) and low.plan.exchange == "broadcast"
    groups = 0.0 if low.shape.query.returns_rows else tally.sizes.answer(inf) * low.parts
    tally.add(FIXED, commits=kept + 1, writes=kept, jobs=1 + sent, batches=1, merge=groups * tally.answer)


KEEPING = {"recompute": _recompute, "running": _running, "retract": _retract, "expire": _expire}
