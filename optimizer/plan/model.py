"""Plans as values: which inputs aggregate early, how sets and answers are kept, order, exchange, layout, invalidation,
place.

No SQL and no prices here.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product

from optimizer.coverage.algebra import Window
from optimizer.errors import ForebayError
from optimizer.expression.expr import inputs
from optimizer.plan.merging import SHARING, Levels, unfit
from optimizer.query.model import Query
from optimizer.query.shape import Shape, mergeable, shape

PLAIN = "LAP recompute"      # the plan that has every row as it came, and keeps nothing
KEEPING = {
    "recompute": "the answer from the windows' rows and sets by pane, each time",
    "running": "sets as running totals, the answer from them",
    "retract": "a running answer, changed by signed deltas",
    "expire": "answer partials keyed by when they end",
}
EXCHANGES = {
    "slice": "one input divided among the tasks, the others whole in each",
    "broadcast": "one input divided among the tasks, the others read by all tasks together in a job before, and sent "
                 "whole to each",
    "partition": "each task reads all inputs and keeps the keys of its hash",
    "shuffle": "each task reads its files of all inputs, and Spark's shuffle brings together the keys of a hash",
}
# early aggregated sets of `recompute` kept by pane, or made from the window's rows each time
LAYOUTS = ("panes", "raw")
# files of expired partials leave in the commit that adds, or with the next merge (paper B); reads filter
INVALIDATIONS = ("insert", "sweep")
PLACES = ("tasks", "jvm")
SPLITS = {
    "before": "each input's cells are split into the sets of its queries' classes, which are joined on class and key",
    "after": "cells are joined on the key with their query-sets, and what meets is merged by query-set, then split",
}


@dataclass(frozen=True)
class Plan:
    """How a query is answered: `Plan((True, False), "expire", (0, 1))` is `EAP10 expire`, joined in FROM order.

    `digits[i]` is True where input i aggregates early (EAP b1…bm of paper A, LAP when none does), `keeping` is a key of
    KEEPING, `order` the order in which inputs are joined.
    """

    digits: tuple[bool, ...]
    keeping: str
    order: tuple[int, ...]
    exchange: str = "slice"
    layout: str = "panes"
    invalidation: str = "insert"
    place: str = "tasks"
    parts: int = 0          # tasks that share the work; 0: as many as run at once
    sharing: str = "each"   # of several windows: how those that end together are read
    levels: tuple[int, ...] = ()      # of several windows: lengths (µs) of the coarser panes that are kept
    hops: tuple[int, ...] = ()        # how often (µs) an instance of each level begins; (): they lie end to end
    split: str = "before"             # of queries that share: when what they read becomes each one's own
    divided: int | None = None        # the stream that `slice` divides; None: as optimizer.plan.division says
    # of queries that share: two inputs whose join is made once for several query groups
    read_joined: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        choices: tuple[tuple[str, Iterable[str]], ...] = (
            (self.keeping, KEEPING),
            (self.exchange, EXCHANGES),
            (self.layout, LAYOUTS),
            (self.invalidation, INVALIDATIONS),
            (self.place, PLACES),
            (self.sharing, SHARING),
            (self.split, SPLITS),
        )
        for value, values in choices:
            if value not in values:
                raise ForebayError("unknown-plan", f"{value!r} is not a part of a plan",
                                   hint=f"known are {', '.join(values)}")
        if self.parts < 0:
            raise ValueError(f"{self.parts} parts")
        if list(self.levels) != sorted(set(self.levels)) or min(self.levels, default=1) <= 0:
            raise ValueError(f"levels {self.levels}: they are positive, and each is longer than the one before")
        if self.hops and (len(self.hops) != len(self.levels) or self.hops == self.levels):
            raise ValueError(f"hops {self.hops} of levels {self.levels}: one for each, or none where none overlap")
        if sorted(self.order) != list(range(len(self.digits))):
            raise ValueError(f"order {self.order} of {len(self.digits)} inputs")

    @property
    def name(self) -> str:
        early = "EAP" + "".join("01"[d] for d in self.digits) if any(self.digits) else "LAP"
        return f"{early} {self.keeping}"

    @property
    def kept_windows(self) -> Levels:
        """The levels, each as the window of which instances are kept."""
        return tuple(map(Window, self.levels, self.hops or self.levels))

    @property
    def keeps_answer(self) -> bool:
        return self.keeping in ("retract", "expire")


@dataclass(frozen=True)
class Candidate:
    """A plan, or the reason why it cannot hold the query's semantics."""

    plan: Plan
    refused: str | None = None


def candidates(query: Query) -> tuple[Candidate, ...]:
    """Every name once: ≤ 2^m · 4 (INTERFACE, "A plan's name")."""
    query_shape = shape(query)
    m = len(query.inputs)
    if query.returns_rows or query.blocks is not None:
        return (Candidate(_plan(query_shape, (False,) * m, "recompute")),)
    plans = [
        _plan(query_shape, digits, keeping)
        for digits in product((False, True), repeat=m)
        for keeping in KEEPING
        if keeping != "running" or any(digits)
    ]
    return tuple(Candidate(plan, refusal(query_shape, plan)) for plan in plans)


def refusal(query_shape: Shape, plan: Plan) -> str | None:
    """Why this plan would not give the query's answer, None if it does."""
    query = query_shape.query
    if query.semi and plan.keeps_answer:
        return (f"{plan.keeping} adds up what each change brings: that a row has a partner (EXISTS, IN) is no sum "
                "(recompute and running ask it of the sets)")
    whole = next((a.function for a in query.aggregates if not mergeable(a)), None)
    if whole and plan.name != PLAIN:
        return f"{whole} has no exact partial states: it is computed from the window's joined rows each time ({PLAIN})"
    if query.windows and plan.keeping not in ("recompute", "expire"):
        return (f"{plan.keeping} keeps one window's totals: several windows are read from partials that say when they "
                "end (recompute and expire)")
    if plan.sharing != "each" or plan.levels:
        return _why_not_merged(query_shape, plan, whole)
    windows = [i.window for i in query.inputs if i.window]
    subtracts = any(w.kind != "landmark" for w in windows)
    if plan.keeping == "retract" and subtracts:
        extreme = next((m for m in query_shape.measures if m.kind in ("min", "max")), None)
        if extreme:
            return (f"{extreme.kind.upper()} cannot be retracted: the removed row may have been the extreme "
                    "(expire keeps it exactly)")
    floating_sums = [m for m in query_shape.measures if m.kind == "sum" and m.type.floating]
    if subtracts and any(_subtracted(plan, m.home, query) for m in floating_sums):
        return "sums of floating values drift when values are subtracted (expire and recompute only add)"
    return None


def _why_not_merged(query_shape: Shape, plan: Plan, whole: str | None) -> str | None:
    """Why this query's windows cannot be merged from one another as the plan says; None if they can."""
    if not query_shape.query.windows:
        return "a query with one window shares nothing between windows"
    if whole:
        return f"{whole} has no exact partial states: each window is computed from its own rows"
    if plan.levels and (len(plan.digits) > 1 or not all(plan.digits) or plan.keeping != "recompute"
                        or plan.layout != "panes"):
        return ("levels are merged from the panes of one stream (EAP1 recompute): two joined rows can be together in a "
                "window and in none of its parts")
    return unfit(query_shape.query, plan.kept_windows) if plan.levels else None


def _subtracted(plan: Plan, home: int | None, query: Query) -> bool:
    if plan.keeping == "retract":
        return True
    if plan.keeping != "running" or home is None or not plan.digits[home]:
        return False
    window = query.inputs[home].window
    return window is not None and window.kind != "landmark"


def _plan(query_shape: Shape, digits: tuple[bool, ...], keeping: str) -> Plan:
    by_key = query_shape.common_key() is not None and keeping != "recompute" and all(digits)
    exchange = "partition" if by_key else "slice"
    sharing = "together" if query_shape.query.windows and not query_shape.whole else "each"
    return Plan(digits, keeping, connected_order(query_shape), exchange, sharing=sharing)


def exchanges(query_shape: Shape) -> tuple[str, ...]:
    """Those that can divide this query's work; a hash divides all inputs only by a key that each of them has."""
    if query_shape.query.returns_rows or query_shape.whole:
        return ("slice",)
    if query_shape.common_key() is None:
        return ("slice", "broadcast")
    return ("slice", "broadcast", "partition", "shuffle")


def connected_order(query_shape: Shape) -> tuple[int, ...]:
    """FROM order as far as each next input is joined to an earlier one."""
    joined_inputs, order = query_shape.joined_inputs(), [0]
    left = list(range(1, len(query_shape.query.inputs)))
    while left:
        linked = frozenset().union(*(joined for joined in joined_inputs if not joined.isdisjoint(order)))
        following = next((i for i in left if i in linked), left[0])
        order.append(following)
        left.remove(following)
    return tuple(order)


def default(query: Query) -> Plan:
    """The rule until plans are priced: inputs aggregate early that bring no grouping attribute (they shrink to their
    join keys), everything recomputed from sets by pane; always right, never far off."""
    query_shape = shape(query)
    if query.returns_rows or query_shape.whole:
        return candidates(query)[0].plan
    across = [m.expr for m in query_shape.measures if m.home is None and m.expr is not None]
    grouped = frozenset().union(*map(inputs, (*query.groups, *across)))
    digits = tuple(i not in grouped for i in range(len(query.inputs)))
    if len(digits) == 1:
        digits = (True,)
    return _plan(query_shape, digits, "recompute")


def leanest(query: Query) -> Plan:
    """What needs the least memory at once, for where another plan did not fit: no state, and every task holds its keys
    only.
    """
    plan = default(query)
    by_key = shape(query).common_key() is not None
    return replace(plan, layout="raw" if plan.keeping == "recompute" else plan.layout,
                   exchange="partition" if by_key else plan.exchange)


def named(query: Query, name: str) -> Plan:
    """The plan a person names, refused with the reason or with the names there are."""
    candidate_by_name = {candidate.plan.name: candidate for candidate in candidates(query)}
    name_in_words = " ".join(name.split())
    candidate = candidate_by_name.get(name_in_words)
    if candidate is None:
        raise ForebayError("unknown-plan", f"{name!r} is not a plan of this query",
                           hint=f"known are {', '.join(candidate_by_name)}")
    if candidate.refused:
        raise ForebayError("refused-plan", f"{name_in_words} cannot hold this query: {candidate.refused}",
                           hint="forebay explain lists the plans that can")
    return candidate.plan


def with_levels(plan: Plan, levels: Levels) -> Plan:
    """The plan with these windows kept beside its panes."""
    lengths, hops = tuple(level.range for level in levels), tuple(level.slide for level in levels)
    return replace(plan, levels=lengths, hops=() if hops == lengths else hops)


def placed(plan: Plan, place: str) -> Plan:
    return replace(plan, place=place)
