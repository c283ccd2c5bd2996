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
from optimizer.plan.model import KEEPING, Candidate, Plan, candidates, connected_order, exchanges, refusal
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
    asked = shape(query)
    named = candidates(query) if len(query.inputs) <= ALL_NAMES else tuple(_near(asked, price))
    sound = sorted((c for c in named if c.refused is None), key=lambda c: price(c.plan))
    few = refined if len(query.inputs) <= ALL_NAMES else min(refined, REFINED_OF_MANY)
    best = {c.plan.name: min(_forms(asked, _ordered(asked, c.plan, joined), forms), key=price) for c in sound[:few]}
    return tuple(replace(c, plan=best.get(c.plan.name, c.plan)) for c in named)


def every_form(query: Query, plan: Plan, forms: Forms = Forms()) -> Iterator[Plan]:
    """All forms of a name but for the order."""
    return _forms(shape(query), plan, forms)


def _forms(asked: Shape, plan: Plan, forms: Forms) -> Iterator[Plan]:
    layouts = ("panes", "raw") if plan.keeping == "recompute" and any(plan.digits) else (plan.layout,)
    shared = [found for layout in layouts for found in _shared(asked, replace(plan, layout=layout))]
    for place in forms.places:
        if place == "jvm":      # Spark divides and exchanges as it likes
            yield from (replace(one, place=place) for one in shared)
            continue
        for exchange, one, parts in product(exchanges(asked), shared, forms.parts):
            if parts != 1 or exchange == "slice":
                yield replace(one, exchange=exchange, parts=parts, place=place)


def _shared(asked: Shape, plan: Plan) -> list[Plan]:
    """Of several windows: as written, those that end together at once, and by each choice of levels.

    Of one, the plan as it is.
    """
    if not asked.query.windows:
        return [plan]
    made = [replace(plan, sharing=sharing, levels=levels) for sharing in SHARING for levels in choices(asked.query)]
    return [p for p in made if refusal(asked, p) is None]


def _ordered(asked: Shape, plan: Plan, joined: Joined) -> Plan:
    count = len(plan.digits)
    find = best_order if count <= ALL_NAMES else next_fewest
    return replace(plan, order=find(asked, lambda members: joined(plan, members))) if count > 2 else plan


def best_order(asked: Shape, rows: Callable[[frozenset[int]], float]) -> tuple[int, ...]:
    """The order with the fewest rows in all its prefixes together; each next input is linked to one before it."""
    count, classes = len(asked.query.inputs), _classes(asked)
    best: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {frozenset((i,)): (0.0, (i,)) for i in range(count)}
    layer = list(best)
    for _ in range(count - 1):
        grown: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {}
        for members in layer:
            cost, order = best[members]
            for i in _next(classes, members, count):
                reached = members | {i}
                through = (cost + rows(reached), (*order, i))
                if reached not in grown or through < grown[reached]:
                    grown[reached] = through
        best.update(grown)
        layer = list(grown)
    return best[frozenset(range(count))][1] if count > 1 else connected_order(asked)


def next_fewest(asked: Shape, rows: Callable[[frozenset[int]], float]) -> tuple[int, ...]:
    """From the first input on, always the linked one that leaves the fewest rows."""
    count, classes, order = len(asked.query.inputs), _classes(asked), [0]
    while len(order) < count:
        members = frozenset(order)
        order.append(min(_next(classes, members, count), key=lambda i: (rows(members | {i}), i)))
    return tuple(order)


def _next(classes: tuple[frozenset[int], ...], members: frozenset[int], count: int) -> list[int]:
    return [i for i in range(count) if i not in members and any(i in c and c & members for c in classes)]


def _classes(asked: Shape) -> tuple[frozenset[int], ...]:
    return tuple(frozenset(i for i, _ in members) for members in asked.keys)


def _near(asked: Shape, price: Price) -> Iterator[Candidate]:
    """Many inputs: from LAP and from full early aggregation, one digit after another turned as long as that is cheaper,
    everything recomputed.

    Then the other ways of keeping with the digits that were found, with none and with all.
    """
    count, order = len(asked.query.inputs), connected_order(asked)
    seen: dict[str, Candidate] = {}

    def known(plan: Plan) -> bool:
        return seen.setdefault(plan.name, Candidate(plan, refusal(asked, plan))).refused is None

    ends = [Plan((early,) * count, "recompute", order) for early in (False, True)]
    tops = [_climbed(plan, price, known) for plan in ends]
    for plan in dict.fromkeys((*ends, *tops)):
        for keeping in KEEPING:
            if keeping != "running" or any(plan.digits):
                known(replace(plan, keeping=keeping))
    yield from seen.values()


def _climbed(plan: Plan, price: Price, known: Callable[[Plan], bool]) -> Plan:
    while known(plan):
        turned = [
            replace(plan, digits=tuple(d != (i == k)
                                       for k, d in enumerate(plan.digits)))
            for i in range(len(plan.digits))
        ]
        best = min((p for p in turned if known(p)), key=price, default=plan)
        if price(best) >= price(plan):
            break
        plan = best
    return plan
