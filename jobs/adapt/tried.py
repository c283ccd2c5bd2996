"""Plans that are tried, from batch to batch: what they and the plans in force took beside each other, and how far their
state has come; nothing is decided here (optimizer.choice.tried does).

All of it is in the ledger's entries, so a batch that is run again, and a process that starts, go on with it.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from jobs.batch.batch import Answer
from jobs.ledger.entries import Batch, KeptState, LedgerEntry, TriedPlan
from optimizer.choice.decide import Tried
from optimizer.plan.model import Plan


def before(last: LedgerEntry | None, wanted: Mapping[str, Tried]) -> dict[str, TriedPlan]:
    """The plans to try in the next batch, by query, each with its state where the last batch has left it."""
    so_far = last.tried if last is not None else {}
    tried_plans = {}
    for name, tried in wanted.items():
        known = so_far.get(name)
        goes_on = known is not None and known.tried.plan == tried.plan
        tried_plans[name] = known if known is not None and goes_on else TriedPlan(tried)
    return tried_plans


def state_for(last: LedgerEntry | None, name: str, plan: Plan) -> KeptState | None:
    """The state that the query goes on from under this plan: its own, unless the plan was tried and has one already."""
    if last is None:
        return None
    state, one = last.states.get(name), last.tried.get(name)
    was_tried = one is not None and one.state is not None and one.state.plan == plan
    return one.state if one is not None and was_tried and (state is None or state.plan != plan) else state


def after(batch: Batch, answers: Iterable[Answer], tried: Iterable[Answer]) -> dict[str, TriedPlan]:
    """The plans that were tried, as they stand after the batch; one that failed keeps no state.

    Seconds are compared where both plans went on from a state that they had.
    """
    in_force = {answer.work.name: answer for answer in answers}
    tried_plans = dict(batch.tried)
    for answer in tried:
        work, one = answer.work, batch.tried[answer.work.name].tried
        if answer.failed is not None:
            tried_plans[work.name] = TriedPlan(replace(one, failed=answer.failed[1]))
            continue
        other = in_force.get(work.name)
        if other is not None and other.failed is None and not other.anew and not answer.anew:
            count = len(work.due)
            one = replace(one, measured=(*one.measured, answer.seconds / count),
                          beside=(*one.beside, other.seconds / count))
        state = KeptState(work.plan, work.epoch, work.due[-1], dict(batch.relation_versions), batch.number)
        tried_plans[work.name] = TriedPlan(one, state)
    return {name: one for name, one in tried_plans.items() if name in batch.plans}
