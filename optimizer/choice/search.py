"""For each plan name its cheapest form: order by dynamic programming, then exchange, layout, parts, place and what
windows share; prices come from outside.

The cost of an order is a sum over its prefixes, so the best order of a set of inputs ends in the best order of the set
without its last (Bellman); beyond `ALL_NAMES` inputs each next one is that with the fewest rows. What else a name
leaves open is enumerated for the names that are cheapest in usual form.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from optimizer.plan.merging import SHARING, choices
from optimizer.plan.model import (
    KEEPING,
    Candidate,
    Plan,
    candidates,
    connected_order,
    exchanges,
    refusal,
    with_levels,
)
from optimizer.query.model import Query
from optimizer.query.shape import Shape, shape

ALL_NAMES = 6            # inputs up to which every name is priced; beyond, those near the best ones
REFINED = 6              # names whose every form is priced: the cheapest ones in their usual form
REFINED_OF_MANY = 2      # the same beyond ALL_NAMES inputs, where a price takes several times longer
Price = Callable[[Plan], float]                                 # seconds a boundary
# rows of the join of these inputs, as the plan holds them
Joined = Callable[[Plan, frozenset[int]], float]


@dataclass(frozen=True)
class Forms:
    """What may be chosen besides the name."""

    parts: tuple[int, ...] = (0,)
    places: tuple[str, ...] = ("tasks",)


def cheapest(query: Query, price: Price, joined: Joined, forms: Forms = Forms(),
             refined: int = REFINED) -> tuple[Candidate, ...]:
    """Every name once, refused or in the cheapest form that was found."""
    query_shape = shape(query)
    has_few = len(query.inputs) <= ALL_NAMES or query.blocks is not None
    every_name = candidates(query) if has_few else tuple(_near_best(query_shape, price))
    allowed = sorted((c.plan for c in every_name if c.refused is None), key=price)
    limit = refined if len(query.inputs) <= ALL_NAMES else min(refined, REFINED_OF_MANY)
    best: dict[str, Plan] = {}
    for plan in allowed[:limit]:
        best[plan.name] = min(every_form(query_shape, _with_best_order(query_shape, plan, joined), forms), key=price)
    return tuple(replace(c, plan=best.get(c.plan.name, c.plan)) for c in every_name)


def every_form(query_shape: Shape, plan: Plan, forms: Forms = Forms()) -> Iterator[Plan]:
    """All forms of a name but for the order."""
    layouts = ("panes", "raw") if plan.keeping == "recompute" and any(plan.digits) else (plan.layout,)
    plans = [replace(plan, layout=layout) for layout in layouts]
    if query_shape.query.windows:      # as written, those that end together at once, and by each choice of levels
        ways = list(product(plans, SHARING, choices(query_shape.query)))
        sharing_plans = [replace(with_levels(base, levels), sharing=sharing) for base, sharing, levels in ways]
        plans = [one for one in sharing_plans if refusal(query_shape, one) is None]
    for place in forms.places:
        if place == "jvm":      # Spark divides and exchanges as it likes
            yield from (replace(one, place=place) for one in plans)
            continue
        for exchange, one, parts in product(exchanges(query_shape), plans, forms.parts):
            if parts != 1 or exchange == "slice":
                yield replace(one, exchange=exchange, parts=parts, place=place)


def _with_best_order(query_shape: Shape, plan: Plan, joined: Joined) -> Plan:
    count = len(plan.digits)
    if count <= 2:
        return plan
    find = best_order if count <= ALL_NAMES else next_fewest
    return replace(plan, order=find(query_shape, lambda members: joined(plan, members)))


def best_order(query_shape: Shape, rows: Callable[[frozenset[int]], float]) -> tuple[int, ...]:
    """The order with the fewest rows in all its prefixes together; each next input is linked to one before it."""
    count, joined_inputs = len(query_shape.query.inputs), query_shape.joined_inputs()
    best: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {frozenset((i,)): (0.0, (i,)) for i in range(count)}
    layer = list(best)
    for _ in range(count - 1):
        grown: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {}
        for members in layer:
            cost, order = best[members]
            for i in _linked_to(joined_inputs, members, count):
                reached = members | {i}
                through = (cost + rows(reached), (*order, i))
                if reached not in grown or through < grown[reached]:
                    grown[reached] = through
        best.update(grown)
        layer = list(grown)
    return best[frozenset(range(count))][1] if count > 1 else connected_order(query_shape)


def next_fewest(query_shape: Shape, rows: Callable[[frozenset[int]], float]) -> tuple[int, ...]:
    """From the first input on, always the linked one that leaves the fewest rows."""
    count, joined_inputs, order = len(query_shape.query.inputs), query_shape.joined_inputs(), [0]
    while len(order) < count:
        members = frozenset(order)
        order.append(min(_linked_to(joined_inputs, members, count), key=lambda i: (rows(members | {i}), i)))
    return tuple(order)


def _linked_to(joined_inputs: tuple[frozenset[int], ...], members: frozenset[int], count: int) -> list[int]:
    """Inputs that an equality links to one of `members`."""
    linked = frozenset().union(*(joined for joined in joined_inputs if joined & members))
    return [i for i in range(count) if i in linked - members]


def _near_best(query_shape: Shape, price: Price) -> Iterator[Candidate]:
    """Many inputs: from LAP and from full early aggregation, one digit after another turned as long as that is cheaper,
    everything recomputed.

    Then the other ways of keeping with the digits of the cheapest plans, with none and with all.
    """
    count, order = len(query_shape.query.inputs), connected_order(query_shape)
    by_name: dict[str, Candidate] = {}

    def is_allowed(plan: Plan) -> bool:
        return by_name.setdefault(plan.name, Candidate(plan, refusal(query_shape, plan))).refused is None

    ends = [Plan((early,) * count, "recompute", order) for early in (False, True)]
    tops = [_turn_while_cheaper(plan, price, is_allowed) for plan in ends]
    for plan in dict.fromkeys((*ends, *tops)):
        for keeping in KEEPING:
            if keeping != "running" or any(plan.digits):
                is_allowed(replace(plan, keeping=keeping))
    yield from by_name.values()


def _turn_while_cheaper(plan: Plan, price: Price, is_allowed: Callable[[Plan], bool]) -> Plan:
    while is_allowed(plan):
        turned = []
        for i, digit in enumerate(plan.digits):
            turned.append(replace(plan, digits=(*plan.digits[:i], not digit, *plan.digits[i + 1:])))
        best = min(filter(is_allowed, turned), key=price, default=plan)
        if price(best) >= price(plan):
            break
        plan = best
    return plan
