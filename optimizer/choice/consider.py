"""One query, what is known of it and what work costs: every plan priced, and the decision.

The same function serves a batch, `explain` and the benchmarks.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from optimizer.choice.decide import DEFAULT as RULES
from optimizer.choice.decide import Decision, Hysteresis, Past, Priced, decide, priced
from optimizer.choice.search import Forms, cheapest
from optimizer.cost.features import building, state_rows, steady
from optimizer.cost.measured import Coefficients, deviation, seconds
from optimizer.papers.document import read
from optimizer.papers.many_way import price as paper_price
from optimizer.papers.statistics import Setting
from optimizer.papers.symbols import symbols
from optimizer.plan.model import Candidate, Plan, refusal
from optimizer.query.model import Query
from optimizer.query.shape import shape
from optimizer.statistics.cardinality import Operand, Sizes, sizes
from optimizer.statistics.observed import Observed

PINNED = "pinned"
WHOLE = 4            # candidates, the cheapest, of which more than the seconds is worked out for a batch


@dataclass(frozen=True)
class Costs:
    """What a price is made of: unit costs, tasks that run at once, the form that may be chosen, and the paper's
    constants as a file of statistics says them.
    """

    coefficients: Coefficients
    width: int = 1
    forms: Forms = Forms()
    statistics: Mapping[str, object] | None = None
    model: str = "measured"


def consider(query: Query, observed: Observed, costs: Costs, past: Past = Past(), rules: Hysteresis = RULES,
             only: str | None = None, everything: bool = False) -> Decision:
    """`only`: the pinned name, of which the cheapest form is taken, and another one when it has become better.

    `everything`: all that can be said of each candidate, not only of the cheapest ones.
    """
    pricing = _Pricing(query, observed, costs)
    found = cheapest(query, pricing.rank, pricing.joined, costs.forms)
    near = {c.plan for c in sorted((c for c in found if c.refused is None), key=lambda c: pricing.rank(c.plan))[:WHOLE]}
    far = not everything and costs.model == "measured"
    candidates = priced(
        found, lambda plan: pricing.whole(plan)
        if plan in near or plan.name == only or not far else Priced(plan, pricing.rank(plan)), past)
    if only is not None:
        return _pinned(candidates, only, pricing.present(past), past, rules)
    if costs.model == "paper":
        return _by_paper(candidates, past)
    return decide(candidates, pricing.present(past), past, rules)


class _Pricing:
    """Prices of one query's plans by one set of statistics; the sizes are worked out once."""

    def __init__(self, query: Query, observed: Observed, costs: Costs) -> None:
        self.query, self.observed, self.costs = query, observed, costs
        self.sizes: Sizes = sizes(query, observed)
        self.setting: Setting = read(costs.statistics or {}, query, symbols(query, observed))
        self._amounts: dict[Plan, dict[str, float]] = {}

    def parts(self, plan: Plan) -> int:
        return plan.parts or self.costs.width

    def rank(self, plan: Plan) -> float:
        """Seconds of a steady batch."""
        return seconds(self.steady(plan), self.costs.coefficients)

    def steady(self, plan: Plan) -> dict[str, float]:
        """Its work, counted once a plan: the search asks for some plans many times."""
        if plan not in self._amounts:
            self._amounts[plan] = steady(self.query, plan, self.observed, self.parts(plan), self.sizes).total
        return self._amounts[plan]

    def whole(self, plan: Plan) -> Priced:
        first = building(self.query, plan, self.observed, self.parts(plan), self.sizes).total
        amounts = self.steady(plan)
        kept = state_rows(self.query, plan, self.observed, self.sizes)
        extra = max(seconds(first, self.costs.coefficients) - self.rank(plan), 0.0)
        return Priced(plan, self.rank(plan), deviation(amounts, self.costs.coefficients), extra, kept,
                      paper_price(plan, self.setting, self.query).total)

    def present(self, past: Past) -> Priced | None:
        """The plan in force, in the form that it is in."""
        if past.plan is None or refusal(shape(self.query), past.plan) is not None:
            return None
        return priced((Candidate(past.plan),), self.whole, past)[0]

    def joined(self, plan: Plan, members: frozenset[int]) -> float:
        """Rows of the join of some inputs, as the plan holds them."""
        operands: list[Operand] = [
            self.sizes.merged(i) if plan.digits[i] else self.sizes.raw(i) for i in sorted(members)
        ]
        return self.sizes.join(operands)


def _pinned(candidates: tuple[Priced, ...], only: str, current: Priced | None, past: Past,
            rules: Hysteresis) -> Decision:
    """The name is given; its form follows rates like any plan's."""
    forms = tuple(c for c in candidates if c.plan.name == only)
    if current is None or current.plan.name != only:
        return Decision(forms[0].plan, past.plan, PINNED, forms[0].seconds, candidates, past.corrections)
    return replace(decide(forms, current, past, rules), reason=PINNED, candidates=candidates)


def _by_paper(candidates: tuple[Priced, ...], past: Past) -> Decision:
    """The cheapest by paper A, whose sets are running: of one price for all ways of keeping, running is the paper's
    own.
    """
    sound = [c for c in candidates if c.refused is None]
    usual = ("running", "retract", "recompute", "expire")
    best = min(sound, key=lambda c: (c.paper if c.paper is not None else float("inf"), usual.index(c.plan.keeping)))
    return Decision(best.plan, None, f"the least cost by the paper's model, {best.paper:,.4g}", best.seconds,
                    candidates, past.corrections)


def with_width(costs: Costs, width: int) -> Costs:
    """The same on a session that runs `width` tasks at once; one task alone is then a form of its own."""
    return replace(costs, width=width, forms=replace(costs.forms, parts=(0, 1) if width > 1 else (1,)))
