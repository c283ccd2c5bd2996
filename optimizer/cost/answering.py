"""Work of an answer's step (optimizer.plan.operators.steps) in each way of keeping: sets merged, joins, the late
aggregation, the answer's own state; no reading here."""
from __future__ import annotations

from dataclasses import replace
from math import inf

from optimizer.cost import many_windows
from optimizer.cost.tally import Tally, arrivals, by_pane, change, ends_of, fresh, merged
from optimizer.plan.division import divided, pivot
from optimizer.plan.lowering import Lowering
from optimizer.statistics.cardinality import Operand, Sizes


def _joins(tally: Tally, operands: list[Operand], more: int = 0) -> float:
    """Joins one after another, the smaller side built; gives this task's joined rows. `more` columns are asked of them than the answer's.

    The kernel orders joins itself, whatever order the plan writes: taken as fewest rows first. Spark keeps the plan's."""
    if tally.low.plan.place == "tasks":
        operands = list(tally.sizes.ordered(operands))
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


def _products(low: Lowering, signs: int = 0) -> int:
    """Multiplications a joined row: each additive measure by the counts of the other inputs that aggregate early (optimizer.plan.operators.join)."""
    early = sum(low.plan.digits)
    weighed = [early - (m.home is not None and low.early(m.home)) for m in low.shape.measures if m.additive]
    return max(early - 1, 0) + sum(weighed)


def _merging(tally: Tally, i: int, rows: float) -> None:
    """Partials of input i merged by attributes as the members of one boundary."""
    width = tally.width(i)
    tally.add(tally.set(i), group=rows * tally.part(i) * width, made=tally.sizes.flows[i].set * tally.part(i) * width)


def _recompute(tally: Tally) -> None:
    if tally.low.shape.query.windows:
        many_windows.recompute(tally, _window)
    else:
        _window(tally)


def _window(tally: Tally) -> None:
    """Early sets are merged from their panes, but for the divided input: its panes are joined as they are."""
    low, found, operands = tally.low, tally.sizes, []
    for i in low.plan.order:
        f, first = found.flows[i], i == pivot(low)
        raw = low.window(i) is not None and low.plan.layout == "raw"
        if low.early(i) and not first:
            _merging(tally, i, f.window if raw else f.stored)
        operands.append(merged(low, found, i) if not first else found.raw(i) if raw or not low.early(i) else found.by_pane(i))
    pairs = _joins(tally, operands)
    tally.add("Late aggregation", made=found.answer(pairs) * tally.answer, statements=1)


def _running(tally: Tally) -> None:
    low, found = tally.low, tally.sizes
    for i in low.inputs:
        if low.early(i) and low.window(i) is None:
            _merging(tally, i, found.flows[i].set)
        elif not low.early(i):
            tally.add(tally.scan(i), look=found.flows[i].window * tally.part(i))
    pairs = _joins(tally, [merged(low, found, i) for i in low.plan.order])
    tally.add("Late aggregation", made=found.answer(pairs) * tally.answer, statements=1)


def _retract(tally: Tally) -> None:
    """A term for each stream: what came and left, among the merged members of the others, which each term makes anew."""
    low, found = tally.low, tally.sizes
    for i in [low.inputs[-1]] if tally.new else [i for i in low.inputs if low.window(i)]:
        for j in low.inputs:
            f = found.flows[j]
            if j != i and low.early(j):
                _merging(tally, j, f.stored)
            tally.add(tally.scan(j), look=(2 if j == i else 1) * (f.stored if low.early(j) else f.window) * tally.part(j))
        _joins(tally, [_signed(tally, j) if j == i else merged(low, found, j) for j in low.plan.order], 1)
    groups = found.answer(inf)
    _kept_answer(tally, 0.0 if tally.new else groups, groups, 1.0, 0)


def _signed(tally: Tally, i: int) -> Operand:
    """What came and what left; from nothing, all."""
    f = tally.sizes.flows[i]
    if tally.new:
        return by_pane(tally.low, tally.sizes, i)
    changed = change(tally.low, f, i)
    return replace(changed, rows=changed.rows * (2 if f.left else 1))


def _expire(tally: Tally) -> None:
    """A term for each stream: what came, among the panes of the others; answer partials by end are added, those of before read."""
    low, found, ends = tally.low, tally.sizes, ends_of(tally.sizes)
    terms = [[by_pane(low, found, j) for j in low.plan.order]] if tally.new else [arrivals(low, found, i) for i in low.inputs if low.window(i)]
    for j in low.inputs:
        f = found.flows[j]
        tally.add(tally.scan(j), look=len(terms) * (f.stored if low.early(j) else f.window) * tally.part(j))
    added = sum(found.answer(_joins(tally, term, 1), ends) for term in terms)
    before = 0.0 if tally.new else _before(low, found, tally.age)
    _kept_answer(tally, before, added, tally.files(ends), 1)
    if low.shape.query.windows:
        many_windows.expire(tally, before + added, tally.answer + 1)


def _before(low: Lowering, found: Sizes, age: float) -> float:
    """Rows in the files of an expiring answer, those that have ended but stand in a file with others included."""
    ends, added = ends_of(found), fresh(low, found)
    if age >= ends:
        return added * ends
    return found.answer(found.join([by_pane(low, found, j) for j in low.plan.order]), ends) + added * max(age - 1, 0)


def _kept_answer(tally: Tally, before: float, made: float, files: float, more: int) -> None:
    """The answer's own state: read, merged with what is new, written."""
    share, width = 1 / tally.low.parts, tally.answer + more
    groups = tally.sizes.answer(inf)
    tally.add("Late aggregation", state_read=before * share * width, files=files * share if before else 0, group=(before * share + 2 * made) * width)
    tally.add("Late aggregation", made=(made + groups) * width, keep=made * width, state_write=made * width, statements=3)


def joined_rows(tally: Tally) -> None:
    """Combinations that are known now and were not: a term for each stream, each row written."""
    low, found = tally.low, tally.sizes
    pairs = sum(_joins(tally, arrivals(low, found, i)) for i in low.inputs if low.window(i))
    tally.add("Late aggregation", state_write=pairs * len(low.shape.query.outputs), statements=1)


KEEPING = {"recompute": _recompute, "running": _running, "retract": _retract, "expire": _expire}
