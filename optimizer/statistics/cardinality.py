"""How many rows stand where in a plan: rows that come and leave, sets, partials in state, joins and their groups.

From statistics; no cost here.

Distinct combinations in n rows are D(n) = M·(1 − e^(−n/M)) (Cardenas, as in optimizer.statistics.model). A join's
size is Π sizes × Π over its equality classes of θ_C = Σ_k Π_i share_i(k) / share, k over its sample and its heavy keys:
the chance that one row of each operand agree. Of merged partials of n rows, key k with share r of the rows and q of the
M combinations has qM·(1 − e^(−rn/qM)): between r for few rows and q for many.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, expm1, prod
from typing import cast

from optimizer.errors import ForebayError
from optimizer.query.model import Query
from optimizer.query.shape import Shape, raw_columns, shape
from optimizer.query.windows import SECOND
from optimizer.statistics.emptying import FALLEN
from optimizer.statistics.model import KeyStatistics, QueryStatistics

UNBOUNDED = 1e12       # combinations of which none was seen twice, at most
SATURATED = 0.04       # D/n below which all of M was seen: e^(−25) of it was not
MERGED = 24            # files of a state set before maintenance merges them; partials that end together become one
PRUNED = 8             # the same of a set whose merged file leaves out most rows, so that it is soon worth its price


@dataclass(frozen=True)
class Operand:
    """What stands for an input in a join: `Operand(0, 600)` is 600 raw rows, `Operand(0, 90, 100, 600)` 90 partials of
    them.

    Partials are those of runs of `run` raw rows each, `raw_rows` in all.
    """

    input: int
    rows: float
    run: float | None = None
    raw_rows: float | None = None


@dataclass(frozen=True)
class Flow:
    """One input at an average boundary.

    `window`, `came` and `left` are rows that pass its selections, `read` and `arriving` those before them.
    """

    read: float
    window: float
    arriving: float
    came: float
    left: float           # as many as came; more of a window that is emptying
    panes: float          # boundaries of which a window holds rows; the last boundary's files are one of them
    pane: float           # partials of what came at one boundary
    stored: float         # partials by pane in state that count, all boundaries
    by_pane: float        # the same before files are merged
    set: float            # the same merged by attributes
    columns: int          # that the query reads, times not counted
    timed: bool           # whether the query reads the event time itself
    mixed: bool           # whether rows that came together leave at different boundaries: it does, or some were late

    @property
    def run(self) -> float:
        """Rows that the window holds of one boundary."""
        return self.left or self.came or self.window

    @property
    def leaving(self) -> float:
        """Rows that leave, before the selections."""
        return self.arriving * self.left / self.came if self.came else 0.0

    @property
    def ends(self) -> float:
        """Distinct boundaries at which rows of the window leave it."""
        return self.panes if self.left else 1.0


@dataclass(frozen=True)
class Sizes:
    """All sizes of one query; what was worked out once for a plan serves the others."""

    shape: Shape
    statistics: QueryStatistics
    flows: tuple[Flow, ...]
    members: tuple[frozenset[int], ...]      # inputs of each equality class
    _known: dict[object, float | tuple[float, ...]] = field(default_factory=dict, compare=False, repr=False)
    _orders: dict[object, tuple[Operand, ...]] = field(default_factory=dict, compare=False, repr=False)

    def join(self, operands: Sequence[Operand]) -> float:
        """Joined rows of the operands.

        All inputs together are scaled to the fan-out where a plan has counted it (residuals, dependent classes).
        """
        expected = self._independent(operands)
        return expected * self.correction() if len(operands) == len(self.flows) else expected

    def raw_join(self, operands: Sequence[Operand]) -> float:
        """Joined rows of the raw rows that the operands stand for."""
        return self.join([Operand(o.input, o.rows if o.raw_rows is None else o.raw_rows) for o in operands])

    def linked(self, a: int, b: int) -> bool:
        """Whether an equality class joins the two inputs."""
        return any(a in members and b in members for members in self.members)

    def prefixes(self, operands: Sequence[Operand]) -> tuple[float, ...]:
        """Rows after each join along an order of operands; the first is the first operand's."""
        return tuple(self.join(operands[:n]) for n in range(1, len(operands) + 1))

    def ordered(self, operands: Sequence[Operand]) -> tuple[Operand, ...]:
        """Left-deep, from the pair with the fewest joined rows, then whatever leaves the fewest.

        Only along equalities.
        """
        if len(operands) < 3:
            return tuple(operands)
        key = tuple(operands)
        if key not in self._orders:
            self._orders[key] = self._order(operands)
        return self._orders[key]

    def _order(self, operands: Sequence[Operand]) -> tuple[Operand, ...]:
        pairs = [(a, b) for n, a in enumerate(operands) for b in operands[:n] if self.linked(a.input, b.input)]
        chosen: tuple[Operand, ...] = min(pairs, key=self.join)

        def can_be_next(operand: Operand) -> bool:
            return operand not in chosen and any(self.linked(operand.input, other.input) for other in chosen)

        while len(chosen) < len(operands):
            linked = filter(can_be_next, operands)
            chosen = (*chosen, min(linked, key=lambda operand: self.join((*chosen, operand))))
        return chosen

    @property
    def groups(self) -> float:
        """Groups of the answer at a boundary."""
        return max(self.statistics.groups, 1.0)

    def answer(self, joined: float, times: float = 1.0) -> float:
        """Groups of so many of the query's joined rows, each group once for every one of `times` ends.

        Rows of whole windows have the groups of the statistics; of fewer rows the law of D(n) says how many.
        """
        if "groups" not in self._known:      # M of D(n), so that all joined rows of the windows have these groups
            whole = self.join([self.raw(i) for i in range(len(self.flows))])
            self._known["groups"] = population(whole, self.groups)
        return distinct(cast(float, self._known["groups"]) * max(times, 1.0), joined)

    def raw(self, i: int) -> Operand:
        return Operand(i, self.flows[i].window)

    def merged(self, i: int) -> Operand:
        flow = self.flows[i]
        return Operand(i, flow.set, flow.window, flow.window)

    def by_pane(self, i: int) -> Operand:
        flow = self.flows[i]
        return Operand(i, flow.stored, flow.run, flow.window)

    def _independent(self, operands: Sequence[Operand]) -> float:
        key = tuple(operands)
        if key not in self._known:
            combinations = prod(operand.rows for operand in operands)
            chances = [self._agree(c, operands) for c in range(len(self.shape.keys))]
            self._known[key] = combinations * prod(chances)
        return cast(float, self._known[key])

    def correction(self) -> float:
        """Counted joined rows over those that independence expects."""
        if self.statistics.fanout is None:
            return 1.0
        if "correction" not in self._known:
            expected = self._independent([self.raw(i) for i in range(len(self.flows))])
            self._known["correction"] = self.statistics.fanout / expected if expected > 0 else 1.0
        return cast(float, self._known["correction"])

    def _agree(self, c: int, operands: Sequence[Operand]) -> float:
        """θ_C of those operands that the class joins."""
        inside = [(o.input, o.run) for o in operands if o.input in self.members[c]]
        if len(inside) < 2:
            return 1.0
        key = (c, *inside)
        if key not in self._known:
            statistics = self.statistics.classes[c]
            if statistics.rows or statistics.combinations:
                chance = 0.0
                for part in (statistics, statistics.heavy) if statistics.heavy else (statistics,):
                    shares_by_input = [self._shares(c, part, i, run) for i, run in inside]
                    chance += sum(map(prod, zip(*shares_by_input))) / part.share
                self._known[key] = min(chance, 1.0)
            else:      # nobody sampled it: all keys alike
                self._known[key] = statistics.keys ** (1 - len(inside))
        return cast(float, self._known[key])

    def _shares(self, c: int, part: KeyStatistics, i: int, run: float | None) -> tuple[float, ...]:
        key = ("shares", c, part is self.statistics.classes[c], i, run)
        if key not in self._known:
            self._known[key] = shares(part, i, self.statistics.inputs[i].combinations, run)
        return cast(tuple[float, ...], self._known[key])


def distinct(of: float, rows: float) -> float:
    """D(n) = M·(1 − e^(−n/M)): of M combinations, how many stand in n rows."""
    return -of * expm1(-rows / of) if of > 0 else 0.0


def population(rows: float, distinct: float) -> float:
    """M of D = M·(1 − e^(−n/M)) (Cardenas 1975), with at least half a row repeated.

    By Newton on x = n/M, of which (1 − e^(−x))/x = D/n. That function is convex and falls, and is above 1 − x/2, so
    Newton's steps from 2(1 − D/n) go up to the root and never past it.
    """
    ratio = min(distinct, rows - 0.5) / rows if rows > 0.5 else 0.0
    if ratio <= SATURATED:
        return min(max(distinct, 1.0), UNBOUNDED)
    x = 2 * (1 - ratio)
    for _ in range(60):
        y = -expm1(-x) / x
        step = x * (y - ratio) / (y - exp(-x))
        x += step
        if step < 1e-9 * x:
            break
    return min(max(rows / x, distinct, 1.0), UNBOUNDED)


def shares(key: KeyStatistics, i: int, combinations: float, run: float | None) -> tuple[float, ...]:
    """Each sampled key's share of input i's rows, or of the partials that runs of `run` rows are merged to.

    Alike for all keys where nothing is known.
    """
    rows = key.rows.get(i)
    if rows is None:
        size = max((len(sample) for sample in (*key.rows.values(), *key.combinations.values())), default=0)
        return (key.share / size,) * size if size else ()
    if run is None:
        return rows
    of_combinations = key.combinations.get(i, rows)
    whole = distinct(combinations, run)
    return tuple(distinct(q * combinations, r * run) / whole if q > 0 and whole > 0 else r
                 for r, q in zip(rows, of_combinations))


def sizes(query: Query, statistics: QueryStatistics) -> Sizes:
    """The flows of all inputs, after checking that the statistics are the query's."""
    query_shape = shape(query)
    if len(statistics.inputs) != len(query.inputs) or len(statistics.classes) != len(query_shape.keys):
        raise ForebayError(
            "bad-statistics",
            f"statistics of {len(statistics.inputs)} inputs and {len(statistics.classes)} join keys for a query of "
            f"{len(query.inputs)} and {len(query_shape.keys)}",
            hint="expected one entry an input in FROM order, and one an equality class")
    flows = tuple(flow(query_shape, statistics, i) for i in range(len(query.inputs)))
    return Sizes(query_shape, statistics, flows, query_shape.joined_inputs())


def flow(query_shape: Shape, statistics: QueryStatistics, i: int) -> Flow:
    """Input i between two boundaries of the query (EVERY).

    Windows differ in their rows and in what leaves, on average what came: all but `UNTIL NOW`.
    """
    input_statistics, declared = statistics.inputs[i], query_shape.query.inputs[i]
    rows, window = input_statistics.rows, declared.window
    passing = rows * input_statistics.selectivity
    columns = raw_columns(query_shape, i)
    timed = any(c.name == declared.event_time for c in columns)
    merged = distinct(input_statistics.combinations, passing) if query_shape.attributes[i] else min(passing, 1.0)
    if window is None:
        return Flow(rows, passing, 0.0, 0.0, 0.0, 1.0, merged, merged, merged, merged, len(columns), False, False)
    arriving = input_statistics.rate * max(statistics.batch, query_shape.query.every / SECOND)
    came = arriving * input_statistics.selectivity
    panes = max(passing / came, 1.0) if came > 0 else 1.0
    run = came if came > 0 else passing
    most = max(window.range / SECOND / max(statistics.batch, query_shape.query.every / SECOND), 1.0)
    if window.kind != "landmark" and panes > FALLEN * most:      # of rates before
        panes, run = most, passing / most
    pane = _partials(query_shape, statistics, i, came)
    by_pane = max(panes * (pane if run == came else _partials(query_shape, statistics, i, run)), merged)
    stored = min(by_pane, merged + MERGED / 2 * pane) if window.kind in ("landmark", "tumbling") else by_pane
    left = 0.0 if window.kind == "landmark" else run if came > 0 else 0.0
    mixed = timed or input_statistics.late > 0 or _odd(query_shape, i) > 0
    return Flow(rows, passing, arriving, came, left, panes, pane, stored, by_pane, merged,
                len(columns) - timed, timed, mixed)


def _odd(query_shape: Shape, i: int) -> float:
    """The share of rows that came together and leave a boundary earlier, for a length that EVERY does not divide."""
    window, every = query_shape.query.inputs[i].window, query_shape.query.every
    return window.range % every / every if window and window.kind != "landmark" else 0.0


def _partials(query_shape: Shape, statistics: QueryStatistics, i: int, rows: float) -> float:
    """Of one boundary's rows, by attributes and interval: late rows leave earlier, and a length that EVERY does not
    divide has two ends a boundary.
    """
    combinations = statistics.inputs[i].combinations if query_shape.attributes[i] else 1.0
    odd, late = _odd(query_shape, i), statistics.inputs[i].late
    timely = rows * (1 - late)
    partials = distinct(combinations, timely * (1 - odd))
    partials += distinct(combinations, timely * odd) if odd else 0.0
    return partials + (distinct(combinations, rows * late) if late else 0.0)
