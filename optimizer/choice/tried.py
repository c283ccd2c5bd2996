"""Trying a plan that may be cheaper than its price says: it runs beside the one in force for some boundaries, then one
of both goes on; nothing is run here.

Only what runs is measured, so a plan whose price is too high would never be met. How sure a price is has been learnt
with it (optimizer.cost.fitting): where its lower end is well below what the plan in force is measured to take, a few
boundaries tell, if that costs no more than a small share of the pipeline's time.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import median

from optimizer.choice.decide import BEYOND_MEASURE, Decision, Hysteresis, Past, Priced, Tried, in_ms
from optimizer.plan.model import Plan


def may_try(past: Past, rules: Hysteresis) -> bool:
    """Whether there is time for trying a plan at all, and enough is known of the one in force."""
    is_resting = past.before is not None and past.since < rules.rest
    return past.tried is None and past.allowance > 0 and len(past.measured) >= rules.enough and not is_resting


def with_try(decision: Decision, detail: Callable[[Plan], Priced], past: Past, rules: Hysteresis) -> Decision:
    """The decision, to stay with the plan in force, with the plan that is tried beside it, if one is worth it.

    `detail` prices the state to build too. Where the plan in force takes more than its price, other plans are expected
    to take as many times theirs.
    """
    if past.tried is not None:
        return replace(decision, tried=past.tried.plan)
    if not may_try(past, rules):
        return decision
    price, candidate = _most_promising(decision, rules)
    measured = median(past.measured)
    factor = measured / max(decision.predicted or measured, 1e-9)
    least = price * factor
    if candidate is None or measured < max(rules.promise * least, least + rules.floor):
        return decision
    cost = _most(candidate, detail(candidate.plan).building, rules) * factor
    if cost > past.allowance or cost >= (measured - least) * rules.horizon:
        return decision
    reason = (f"{decision.reason}; {candidate.plan.name} is tried beside it: it may take as little as {in_ms(least)} a "
              f"boundary where {in_ms(measured)} are measured, and {rules.enough} boundaries tell, for {cost:.2f} s at "
              "most")
    return replace(decision, reason=reason, tried=candidate.plan)


def _most_promising(decision: Decision, rules: Hysteresis) -> tuple[float, Priced | None]:
    """The candidate with the lowest lower end of its price, and that lower end."""
    lower_ends = [(max(c.seconds - rules.doubt * c.doubt, 0.0), c) for c in decision.candidates
                  if c.refused is None and c.doubt is not None and c.plan.name != decision.plan.name]
    return min(lower_ends, key=lambda pair: pair[0], default=(0.0, None))


def _most(candidate: Priced, building: float, rules: Hysteresis) -> float:
    """Seconds that trying it takes at most, by the upper end of its price: its state, and its boundaries."""
    upper = 1.0 + rules.doubt * (candidate.doubt or 0.0) / max(candidate.seconds, 1e-9)
    return (building + (rules.enough + 1) * candidate.seconds) * upper


def has_told(tried: Tried, allowance: float, rules: Hysteresis) -> bool:
    """Whether a plan that is tried need not go on: it is measured, cannot go on, or has taken more than was allowed."""
    return len(tried.measured) >= rules.enough or bool(tried.failed) or allowance < 0


def judged_try(candidates: tuple[Priced, ...], current: Priced, past: Past, rules: Hysteresis,
               outside: Callable[[Plan], float]) -> Decision:
    """What was tried is kept if it is cheaper by as much as a switch has to be, else left; its state is there already.

    Both were measured at the same boundaries, so from here on its price is to the other's as its seconds are.
    `outside` are the seconds that a plan takes outside of tasks, which none of the measurements has.
    """
    tried = past.tried
    assert tried is not None and past.plan is not None
    name, in_force = tried.plan.name, past.plan
    candidate = next((c for c in candidates if c.refused is None and c.plan.name == name), None)
    if candidate is None or not tried.measured or tried.failed:
        why = tried.failed or (f"making its state took more than {rules.budget:.0%} of the pipeline's time allows"
                               if candidate is not None else "it cannot hold the query any more")
        corrections = {**past.corrections, name: (BEYOND_MEASURE if tried.failed else 1.0, 0)}
        return Decision(in_force, None, f"{name}, tried beside it, is left: {why}", current.seconds, candidates,
                        corrections)
    measured = median(tried.measured) + outside(tried.plan)
    beside = median(tried.beside) + outside(in_force)
    seconds = current.seconds * measured / max(beside, 1e-9)
    uncorrected = candidate.seconds / past.corrections.get(name, (1.0, 0))[0]
    corrections = {**past.corrections, name: (seconds / max(uncorrected, 1e-9), 0)}
    known = tuple(replace(c, seconds=seconds, doubt=None) if c is candidate else c for c in candidates)
    compared = (f"at {len(tried.measured)} boundaries beside each other {name} took {in_ms(measured)}, "
                f"{in_force.name} {in_ms(beside)}")
    if beside < rules.ratio * measured or beside - measured < rules.floor:
        return Decision(in_force, None, f"{name} is left: {compared}", current.seconds, known, corrections)
    return Decision(tried.plan, in_force, f"kept: {compared}", seconds, known, corrections)
