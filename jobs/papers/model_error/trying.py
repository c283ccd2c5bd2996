"""What trying plans finds in the measured settings: the rule of the product, played with what was measured.

Nothing is measured here: a plan that is tried takes what it took when it was run alone.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from jobs.papers.model_error.pricing import PricedPoint, PricedSetting
from optimizer.choice.decide import DEFAULT as RULES
from optimizer.choice.decide import Decision, Past, Priced, Tried
from optimizer.choice.tried import judged_try, with_try
from optimizer.cost.fitting import fit
from optimizer.cost.measured import UnitCosts, deviation, prior
from optimizer.plan.model import Plan

BEFORE = 10              # boundaries that the plan in force has taught before one is tried
MOST = 3                 # tries one after another in a setting


@dataclass(frozen=True)
class Tries:
    """What came of trying in one setting: `Tries(1.7, 1.1, count=2, kept=1)` went from 1.7 times the best to 1.1 times.
    """

    before: float
    after: float
    count: int
    kept: int


@dataclass(frozen=True)
class Surprise:
    """What a plan took more or less than the one in force, against the price of that, in its standard deviations.

    `Surprise(0.1, 0.2)` is half a deviation.
    """

    off: float
    deviation: float

    @property
    def deviations(self) -> float:
        return abs(self.off) / max(self.deviation, 1e-9)


def tries(setting: PricedSetting, costs: UnitCosts) -> Tries:
    """Time is no limit here: the share that trying may take decides when, not what is found."""
    by_plan = {one.point.plan: one for one in setting.points}
    current = by_plan[setting.chosen(costs).plan]
    costs = _taught(costs, current, BEFORE)
    past = Past(current.point.plan, since=RULES.rest, measured=(current.point.seconds,) * RULES.enough, allowance=inf)
    before, count, kept = setting.regret(current.point), 0, 0
    for _ in range(MOST):
        candidates = _candidates(setting, current, costs, past)
        stays = Decision(current.point.plan, None, "", current.seconds(costs), candidates)
        decision = with_try(stays, lambda plan: Priced(plan, 0.0), past, RULES)
        if decision.tried is None:
            break
        count, other = count + 1, by_plan[decision.tried]
        costs = _taught(costs, other, RULES.enough)
        tried = Tried(decision.tried, (other.point.seconds,) * RULES.enough, (current.point.seconds,) * RULES.enough)
        judged = judged_try(candidates, Priced(current.point.plan, current.seconds(costs)), replace(past, tried=tried),
                            RULES, lambda plan: 0.0)
        kept += judged.plan != current.point.plan
        current = by_plan[judged.plan]
        past = replace(past, plan=judged.plan, measured=(current.point.seconds,) * RULES.enough,
                       corrections={**judged.corrections, past.plan.name: (1.0, 0)} if past.plan else {})
    return Tries(before, setting.regret(current.point), count, kept)


def surprises(setting: PricedSetting, costs: UnitCosts) -> list[Surprise]:
    """Of each plan beside the chosen one, once that one has taught what it takes."""
    current = next(one for one in setting.points if one.point == setting.chosen(costs))
    costs = _taught(costs, current, BEFORE)
    return [Surprise(other.point.seconds - current.point.seconds - other.seconds(costs) + current.seconds(costs),
                     deviation(other.features.total, costs, than=current.features.total))
            for other in setting.points if other is not current]


def as_known(costs: UnitCosts) -> UnitCosts:
    """These unit costs, as sure as they are in a new pipeline."""
    return replace(prior(), mean=costs.mean)


def _candidates(setting: PricedSetting, current: PricedPoint, costs: UnitCosts, past: Past) -> tuple[Priced, ...]:
    def one(other: PricedPoint) -> Priced:
        plan: Plan = other.point.plan
        factor = past.corrections.get(plan.name, (1.0, 0))[0]
        doubt = deviation(other.features.total, costs, than=current.features.total)
        return Priced(plan, other.seconds(costs) * factor, doubt=None if plan.name in past.corrections else doubt)

    return tuple(map(one, setting.points))


def _taught(costs: UnitCosts, one: PricedPoint, boundaries: int) -> UnitCosts:
    """The unit costs after so many boundaries of a plan, as batches teach them."""
    return fit(costs, one.measurements() * boundaries)


def share_within(found: Sequence[Surprise], deviations: float) -> float:
    return sum(one.deviations <= deviations for one in found) / len(found)
