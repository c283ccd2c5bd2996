"""Deciding plans and query groups outside of batches: every plan of every query priced by what is known, decisions
entered as requests.

It holds no lock and waits for nobody: a runner follows a decision at the first boundary not yet begun.
"""
from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from jobs.adapt import adaptations
from jobs.adapt.adaptations import Adaptation
from jobs.adapt.choice import Chooser
from jobs.adapt.past import history
from jobs.adapt.sharing import Sharer, shared_reason
from jobs.adapt.weighing import Sharing
from jobs.batch.works import parsed
from jobs.ledger.entries import PlanDecision, PricedPlan, QueryGroupPrices
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import QueryState, queries_at
from jobs.requests import decided
from jobs.requests.boundaries import first_possible
from jobs.requests.decided import Entered
from optimizer.choice.consider import PINNED
from optimizer.choice.decide import Decision, Past, Priced
from optimizer.plan.model import Plan
from optimizer.sharing.ways import way_of

UNKNOWN = "nothing is known of its streams yet: its plan stays as it is"


@dataclass(frozen=True)
class Considered:
    """What was considered for one query, and the decision to enter, if its plan or group is to be another.

    `Considered("top", plan, None, "the cheapest", 0.2)` stays as it is.
    """

    query: str
    plan: Plan
    before: Plan | None                 # in force, or requested and not followed yet
    reason: str
    seconds: float | None
    candidates: tuple[Priced, ...] = ()
    tried: Plan | None = None           # runs beside `plan`, so that it is measured
    group: str | None = None
    decision: PlanDecision | None = None

    def document(self, entered: Entered | None) -> dict[str, Any]:
        """One entry of `forebay adapt`."""
        plan, reason, before = self.plan, self.reason, self.before
        refused = entered.refused if entered is not None else None
        is_switch = entered is not None and refused is None and before is not None and before != plan
        if refused is not None:
            reason = f"{plan.name} is refused: {refused}"
            plan = before or plan
        return {
            "query": self.query,
            "plan": plan.name,
            "switched_from": before.name if is_switch and before is not None else None,
            "effective": entered.effective if entered is not None else None,
            "predicted_s": self.seconds,
            "candidates": [_candidate(candidate) for candidate in self.candidates],
            "reason": reason,
            "tried": self.tried.name if self.tried is not None and refused is None else None,
            "group": self.group,
            "refused": refused
        }


def optimize(chooser: Chooser, sharer: Sharer) -> list[dict[str, Any]]:
    """Decides on every active query, and which of them share where batches do not decide it; INTERFACE's `decisions`.

    Nothing is decided of a query that is pinned, or of whose streams nothing is known.
    """
    pipe, started = chooser.pipe, time.process_time()
    changes = pipe.ledger.all_changes()
    active = {name: state for name, state in queries_at(changes).items() if state.is_active}
    at = first_possible(pipe)
    sharing = sharer.decide(active, at) if at is not None else Sharing({}, {})
    group_plans = sharer.plans(sharing, active, sharer.counts())
    considered = list[Considered]()
    told = history(pipe)
    pasts = {name: chooser.past_of(parsed(state.sql, pipe.catalog), state, told) for name, state in active.items()
             if name not in sharing.group_of}
    for name, query_state in active.items():
        group = sharing.group_of.get(name)
        if group is not None:
            considered.append(_in_group(pipe, query_state, group, sharing, group_plans[name]))
        else:
            may_try = not any(past.tried for past in pasts.values()) and not any(one.tried for one in considered)
            considered.append(_alone(chooser, query_state, pasts[name], may_try))
    decisions = {c.query: c.decision for c in considered if c.decision is not None}
    entered = decided.enter(pipe, decisions, decided.count(changes)) if decisions else {}
    last = pipe.ledger.last()
    count = sum(outcome.refused is None for outcome in entered.values())
    adaptations.append(pipe, Adaptation("decisions", pipe.clock(), pipe.ledger.committed(),
                                        last.batch.number if last else -1, time.process_time() - started,
                                        decisions=count))
    return [one.document(entered.get(one.query)) for one in considered]


def _alone(chooser: Chooser, query_state: QueryState, past: Past, may_try: bool) -> Considered:
    """A query that answers alone: by the prices of its plans, beside the plan in force.

    `may_try`: also a plan to try, since none is tried so far.
    """
    query, name = parsed(query_state.sql, chooser.pipe.catalog), query_state.name
    before, tried_before = past.plan, past.tried.plan if past.tried else None
    if chooser.pipe.pipeline.decide == "task" and may_try:
        past = replace(past, allowance=chooser.allowance(name))
    decision, observed = chooser.considered(query, query_state, None, None, past)
    if query_state.pin is not None:
        plan = before or decision.plan
        return Considered(name, plan, before, PINNED, _seconds_of(decision, plan), decision.candidates)
    if observed.weight <= 0:
        plan = before or decision.plan
        return Considered(name, plan, before, UNKNOWN, None, decision.candidates)
    plan = decision.plan if before is None else replace(decision.plan, place=before.place)
    one = Considered(name, plan, before, decision.reason, decision.predicted, decision.candidates, decision.tried)
    is_task = chooser.pipe.pipeline.decide == "task"
    leaves_group = query_state.decided is not None and query_state.decided.group is not None
    begins_try = decision.tried is not None and decision.tried != tried_before
    is_news = plan != before or begins_try or leaves_group
    if not is_news and not (is_task and query_state.decided is None):
        return one
    if before is None and not is_task:      # its first boundary decides by the same prices
        return one
    return replace(one, decision=PlanDecision(query_state.creation, plan, decision.reason, decision.predicted,
                                              _priced_plans(decision), observed.weight,
                                              tried=_placed_as(decision.tried, before)))


def _in_group(pipe: OpenPipeline, query_state: QueryState, group: str, sharing: Sharing, plan: Plan) -> Considered:
    """A member of a query group has the group's plan."""
    last, name = pipe.ledger.last(), query_state.name
    prices = sharing.weighed.get(group, QueryGroupPrices())
    names = sharing.groups[group]
    reason = shared_reason(plan, len(names), prices)
    seconds = prices.together_s / len(names) if prices.together_s is not None else None
    before = last.batch.plans.get(name) if last is not None else None
    known = query_state.decided
    if known is not None and known.group == group:
        before = known.plan
    one = Considered(name, plan, before, reason, seconds, group=group)
    is_decided = known is not None and known.group == group and _does_alike(known.plan, plan)
    if is_decided and known is not None:
        return replace(one, plan=known.plan, before=known.plan)
    if pipe.pipeline.decide != "task":
        return one
    return replace(one, decision=PlanDecision(query_state.creation, plan, reason, seconds, group=group,
                                              group_prices=prices))


def _does_alike(plan: Plan, other: Plan) -> bool:
    """Whether a query group's work is split and divided alike by both plans."""
    alike = [(way_of(one), one.exchange, one.parts, one.read_joined) for one in (plan, other)]
    return alike[0] == alike[1]


def _placed_as(plan: Plan | None, other: Plan | None) -> Plan | None:
    return plan if plan is None or other is None else replace(plan, place=other.place)


def _seconds_of(decision: Decision, plan: Plan) -> float | None:
    return next((c.seconds for c in decision.candidates if c.refused is None and c.plan.name == plan.name), None)


def _priced_plans(decision: Decision) -> tuple[PricedPlan, ...]:
    sound = [c for c in decision.candidates if c.refused is None]
    return tuple(PricedPlan(c.plan.name, c.seconds, c.state_rows, c.paper) for c in sound)


def _candidate(candidate: Priced) -> Mapping[str, Any]:
    """As `forebay explain` shows one."""
    priced = {"predicted_s": candidate.seconds, "deviation_s": candidate.deviation, "paper_cost": candidate.paper,
              "state_rows": candidate.state_rows}
    figures = priced if candidate.refused is None else dict.fromkeys(priced)
    return {"plan": candidate.plan.name, **figures, "refused": candidate.refused}
