"""One query, its statistics and what work costs: every plan priced, and the decision.

The same function serves a batch, `explain` and the benchmarks.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from optimizer.choice.decide import DEFAULT as RULES
from optimizer.choice.decide import (
    Decision, Hysteresis, Past, Priced, comparable, decide, over_price, priced, undone_switch,
)
from optimizer.choice.search import Forms, cheapest
from optimizer.choice.tried import has_told, judged_try, may_try, with_try
from optimizer.cost.features import building, state_rows, steady
from optimizer.cost.invalidation import invalidation
from optimizer.cost.measured import UnitCosts, deviation, seconds
from optimizer.papers.document import read
from optimizer.papers.many_way import price as paper_price
from optimizer.papers.statistics import Constants, Setting
from optimizer.papers.symbols import symbols
from optimizer.plan.model import Candidate, Plan, refusal
from optimizer.query.model import Query
from optimizer.query.shape import shape
from optimizer.query.windows import SECOND
from optimizer.statistics.cardinality import Operand, Sizes, sizes
from optimizer.statistics.emptying import are_emptying, over_horizon, windows_at
from optimizer.statistics.model import QueryStatistics

PINNED = "pinned"
DETAILED = 4         # candidates, the cheapest, of which more than the seconds is worked out for a batch


@dataclass(frozen=True)
class Costs:
    """What a price is made of: unit costs, tasks that run at once, the form that may be chosen.

    `Costs(prior(), width=4)` prices work that four tasks share. The paper's constants are those of a file of
    `statistics`, else `constants`, else 1 each. `model` is which of both prices chooses: `measured` or `paper`.
    """

    unit_costs: UnitCosts
    width: int = 1
    forms: Forms = Forms()
    statistics: Mapping[str, object] | None = None
    model: str = "measured"
    constants: Constants | None = None


def consider(query: Query, statistics: QueryStatistics, costs: Costs, past: Past = Past(), rules: Hysteresis = RULES,
             only: str | None = None, everything: bool = False) -> Decision:
    """Prices every plan of the query and decides which one answers from the next boundary on.

    `only` is the pinned name, of which the cheapest form is taken, and another one when it has become better.
    `everything`: all that can be said of each candidate, not only of the cheapest ones.
    """
    pricing = _Pricing(query, statistics, costs, past.plan, rules)
    past = pricing.comparable(past)
    candidates = pricing.candidates()
    allowed = [candidate.plan for candidate in candidates if candidate.refused is None]
    detailed = set(sorted(allowed, key=pricing.seconds)[:DETAILED])
    all_detailed = everything or costs.model != "measured"
    is_open_to_tries = only is None and costs.model == "measured" and may_try(past, rules)

    def price(plan: Plan) -> Priced:
        if all_detailed or plan in detailed or plan.name == only:
            return pricing.detailed(plan)
        return Priced(plan, pricing.seconds(plan), doubt=pricing.doubt(plan) if is_open_to_tries else None)

    priced_candidates = priced(candidates, price, past)
    if only is not None:
        return _pinned(priced_candidates, only, pricing.current(past), past, rules)
    if costs.model == "paper":
        return _by_paper(priced_candidates, pricing.current(past), past, rules)
    decision = decide(priced_candidates, pricing.current(past), past, rules)
    stays = decision.switched_from is None and past.plan is not None
    return with_try(decision, pricing.detailed, past, rules) if stays else decision


class _Pricing:
    """Prices of one query's plans by one set of statistics; the sizes are worked out once.

    Where windows still hold rows of a higher rate, a boundary is one on average over the rules' horizon.
    """

    def __init__(self, query: Query, statistics: QueryStatistics, costs: Costs, in_force: Plan | None,
                 rules: Hysteresis) -> None:
        self.query, self.costs = query, costs
        self.is_emptying = are_emptying(statistics)
        self.statistics = over_horizon(query, statistics, rules.horizon)
        # as windows are at the boundary sampled, and at the next one
        step = query.every or round(statistics.batch * SECOND)
        moments = (statistics.at, (statistics.at or 0) + step)
        self.moments = tuple(windows_at(query, statistics, at) for at in moments) if self.is_emptying else ()
        can_go_on = in_force is not None and refusal(shape(query), in_force) is None
        self.in_force = in_force if can_go_on else None
        self.sizes: Sizes = sizes(query, self.statistics)
        setting = read(costs.statistics or {}, query, symbols(query, self.statistics))
        constants = None if "constants" in (costs.statistics or {}) else costs.constants
        self.setting: Setting = setting if constants is None else replace(setting, constants=constants)
        self._amounts: dict[Plan, dict[str, float]] = {}

    def candidates(self) -> tuple[Candidate, ...]:
        """Every name in its cheapest form, with the cheaper way for what has expired to leave state."""
        found = cheapest(self.query, self.seconds, self.joined, self.costs.forms)
        return tuple(c if c.refused else replace(c, plan=self._invalidated(c.plan)) for c in found)

    def _invalidated(self, plan: Plan) -> Plan:
        """The plan in force stays as it is: a plan with another way is another plan, and its state is made anew."""
        if self.in_force is not None and replace(plan, invalidation=self.in_force.invalidation) == self.in_force:
            return self.in_force
        return replace(plan, invalidation=invalidation(plan, self.sizes, self.costs.unit_costs))

    def parts(self, plan: Plan) -> int:
        return plan.parts or self.costs.width

    def seconds(self, plan: Plan) -> float:
        """Seconds of a steady batch."""
        return seconds(self.steady_work(plan), self.costs.unit_costs)

    def steady_work(self, plan: Plan) -> dict[str, float]:
        """Work of a steady batch, counted once a plan: the search asks for some plans many times."""
        if plan not in self._amounts:
            self._amounts[plan] = steady(self.query, plan, self.statistics, self.parts(plan), self.sizes).total
        return self._amounts[plan]

    def detailed(self, plan: Plan) -> Priced:
        """With how sure the seconds are, the state to build and to keep, and the paper's cost."""
        haste = 0.0
        if self.is_emptying:
            first, answer = self._at(plan, 0)
            if self.in_force is not None and plan != self.in_force:
                later, answer_later = self._at(plan, 1)
                haste = first + answer_later - self._at(self.in_force, 0)[1] - later
        else:
            first, answer = self._first_batch(plan, self.statistics, self.sizes), self.seconds(plan)
        return Priced(
            plan,
            self.seconds(plan),
            deviation=deviation(self.steady_work(plan), self.costs.unit_costs),
            doubt=self.doubt(plan),
            building=max(first - answer, 0.0),
            state_rows=state_rows(self.query, plan, self.statistics, self.sizes),
            paper=paper_price(plan, self.setting, self.query).total,
            haste=haste,
        )

    def _first_batch(self, plan: Plan, statistics: QueryStatistics, query_sizes: Sizes | None = None) -> float:
        first = building(self.query, plan, statistics, self.parts(plan), query_sizes)
        return seconds(first.total, self.costs.unit_costs)

    def _at(self, plan: Plan, moment: int) -> tuple[float, float]:
        """Seconds of the plan's first batch, and of a later one, over windows as they are at that moment."""
        statistics = self.moments[moment]
        answer = steady(self.query, plan, statistics, self.parts(plan)).total
        return self._first_batch(plan, statistics), seconds(answer, self.costs.unit_costs)

    def comparable(self, past: Past) -> Past:
        """What was measured of the plan in force, as it would be by the statistics of now."""
        if self.in_force is None:
            return past
        return comparable(past, self.seconds(self.in_force), lambda work: seconds(work, self.costs.unit_costs))

    def doubt(self, plan: Plan) -> float | None:
        """Standard deviation of what the plan takes more or less than the one in force."""
        if self.in_force is None:
            return None
        return deviation(self.steady_work(plan), self.costs.unit_costs, than=self.steady_work(self.in_force))

    def outside(self, plan: Plan) -> float:
        """Seconds of a steady batch that no task measures."""
        work = steady(self.query, plan, self.statistics, self.parts(plan), self.sizes)
        return seconds(work.outside, self.costs.unit_costs)

    def current(self, past: Past) -> Priced | None:
        """The plan in force, in the form that it is in; None if there is none, or it can no longer hold the query."""
        if self.in_force is None:
            return None
        return priced((Candidate(self.in_force),), self.detailed, past)[0]

    def joined(self, plan: Plan, members: frozenset[int]) -> float:
        """Rows of the join of some inputs, as the plan holds them."""
        operands: list[Operand] = []
        for i in sorted(members):
            operands.append(self.sizes.merged(i) if plan.digits[i] else self.sizes.raw(i))
        return self.sizes.join(operands)


def _pinned(candidates: tuple[Priced, ...], only: str, current: Priced | None, past: Past,
            rules: Hysteresis) -> Decision:
    """The name is given; its form follows rates like any plan's."""
    forms = tuple(c for c in candidates if c.plan.name == only)
    if current is None or current.plan.name != only:
        return Decision(forms[0].plan, past.plan, PINNED, forms[0].seconds, candidates, past.corrections)
    return replace(decide(forms, current, past, rules), reason=PINNED, candidates=candidates)


def _by_paper(candidates: tuple[Priced, ...], current: Priced | None, past: Past, rules: Hysteresis) -> Decision:
    """The cheapest by paper A, whose price is the same for all ways of keeping; the paper itself keeps running sets.

    The plan in force stays while it is not dearer by the hysteresis; a switch that was wrong is undone as any is.
    """
    preferred = ("running", "retract", "recompute", "expire")

    def cost(candidate: Priced) -> float:
        assert candidate.paper is not None
        return candidate.paper * past.corrections.get(candidate.plan.name, (1.0, 0))[0]

    allowed = [c for c in candidates if c.refused is None]
    best = min(allowed, key=lambda c: (cost(c), preferred.index(c.plan.keeping)))
    least = f"the least cost by the paper's model, {cost(best):,.4g}"
    if past.plan is None or current is None:
        return Decision(best.plan, past.plan, least, best.seconds, candidates, past.corrections)
    undoing = undone_switch(candidates, current, past, rules)
    if undoing is not None:
        return undoing
    is_resting = past.before is not None and past.since < rules.rest
    if cost(current) < rules.ratio * cost(best) or is_resting:
        reason = f"{cost(current):,.4g} by the paper's model, {best.plan.name} {cost(best):,.4g}"
        return Decision(current.plan, None, f"{reason}: it stays", current.seconds, candidates, past.corrections)
    return Decision(best.plan, past.plan, f"{least}, {current.plan.name} {cost(current):,.4g}", best.seconds,
                    candidates, past.corrections, ratio_before=over_price(past, current.seconds))


def judged_switch(query: Query, statistics: QueryStatistics, costs: Costs, past: Past,
                  rules: Hysteresis = RULES) -> Decision | None:
    """The last switch undone, where the plan in force is measured to be dearer than the one before it would be now."""
    if not past.can_be_judged(rules):
        return None
    pricing = _Pricing(query, statistics, costs, past.plan, rules)
    past, current = pricing.comparable(past), pricing.current(past)
    candidates = priced(pricing.candidates(), pricing.detailed, past)
    return None if current is None else undone_switch(candidates, current, past, rules)


def ended_try(query: Query, statistics: QueryStatistics, costs: Costs, past: Past,
              rules: Hysteresis = RULES) -> Decision | None:
    """What comes of the plan that is tried, if it has told enough; None while it has not."""
    if past.tried is None or not has_told(past.tried, past.allowance, rules):
        return None
    pricing = _Pricing(query, statistics, costs, past.plan, rules)
    current = pricing.current(past)
    candidates = priced(pricing.candidates(), pricing.detailed, past)
    return None if current is None else judged_try(candidates, current, past, rules, pricing.outside)


def with_width(costs: Costs, width: int) -> Costs:
    """The same on a session that runs `width` tasks at once; one task alone is then a form of its own."""
    return replace(costs, width=width, forms=replace(costs.forms, parts=(0, 1) if width > 1 else (1,)))
