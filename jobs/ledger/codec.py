"""How the ledger's values are written as JSON, and read again; the only place that knows it.

`ledger/batches` has one row a phase of a batch. The newest row also carries, in the commit's metadata, the whole batch:
enough to run it again and get the same rows. Names in the JSON are older than those in the code and stay as they are:
a warehouse of yesterday must open.
"""
from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from functools import lru_cache
from typing import Any

from jobs.ledger.entries import (
    Batch,
    CommittedBatch,
    KeptState,
    LedgerEntry,
    PlanDecision,
    PricedPlan,
    QueryGroupPrices,
    Runner,
    TimeSpent,
    TriedPlan,
)
from optimizer.choice.decide import Tried
from optimizer.errors import ForebayError
from optimizer.plan.model import Plan
from optimizer.sharing.price import Ratios, SharingPast

COMMITTED = """SELECT batch, epoch_us("at"), epoch_us("first"), boundaries, plans, seconds, measured, runner
               FROM batches WHERE phase = 'commit' ORDER BY batch DESC"""
CHOICES = tuple(choice.name for choice in fields(Plan))
LISTED = ("digits", "order", "levels", "hops", "read_joined")      # choices that JSON has as lists
PRICES = tuple(price.name for price in fields(QueryGroupPrices) if price.name != "seconds_by_way")


def encode_entry(entry: LedgerEntry) -> str:
    batch = entry.batch
    prices = {group: encode_prices(prices) for group, prices in batch.query_group_prices.items()}
    return json.dumps({
        "phase": entry.phase,
        "batch": {
            "number": batch.number,
            "boundaries": batch.boundaries,
            "plans": {query: encode_plan(plan) for query, plan in batch.plans.items()},
            "relations": dict(batch.relation_versions),
            "states": encode_states(batch.states),
            "versions": dict(batch.state_versions),
            "shared": dict(batch.query_groups),
            "weighed": prices,
            "parts": batch.parts,
            "tried": _encode_tried(batch.tried),
            "sharing": _encode_past(batch.sharing_past),
            **({"passed": batch.passed_over} if batch.passed_over else {}),
        },
        "states": encode_states(entry.states),
        "tables": dict(entry.table_versions),
        "tried": _encode_tried(entry.tried),
        "spent": asdict(entry.time_spent),
    })


def decode_entry(text: str) -> LedgerEntry:
    """`shared`, `weighed`, `parts`, `tables`, `tried`, `spent`, `sharing` and `passed` came later.

    In older entries no queries share, tasks are as many as run at once, no table is vouched for, no plan is tried, no
    batch was held against prices of sharing, and every boundary was run.
    """
    entry = json.loads(text)
    batch = entry["batch"]
    return LedgerEntry(
        entry["phase"],
        Batch(
            number=batch["number"],
            boundaries=tuple(batch["boundaries"]),
            plans={query: decode_plan(plan) for query, plan in batch["plans"].items()},
            relation_versions=batch["relations"],
            states=decode_states(batch["states"]),
            state_versions=batch["versions"],
            query_groups={group: tuple(members) for group, members in batch.get("shared", {}).items()},
            query_group_prices={group: decode_prices(prices) for group, prices in batch.get("weighed", {}).items()},
            parts=batch.get("parts", 0),
            tried=_decode_tried(batch.get("tried", {})),
            sharing_past=_decode_past(batch.get("sharing", {})),
            passed_over=tuple((first, last) for first, last in batch.get("passed", ())),
        ),
        decode_states(entry["states"]),
        entry.get("tables", {}),
        _decode_tried(entry.get("tried", {})),
        TimeSpent(**entry.get("spent", {})),
    )


def encode_plan(plan: Plan) -> dict[str, Any]:
    """The name goes along for people who query the table; `decode_plan` does not need it."""
    return {"name": plan.name, **{choice: getattr(plan, choice) for choice in CHOICES}}


def decode_plan(plan: Mapping[str, Any]) -> Plan:
    """What a plan of before does not say has the value that it had then: the default."""
    choices = {choice: plan[choice] for choice in CHOICES if choice in plan}
    return Plan(**{**choices, **{choice: tuple(plan.get(choice, ())) for choice in LISTED}})


def encode_form(plan: Plan) -> str:
    """The column `form` of `ledger/decisions`."""
    return json.dumps(encode_plan(plan))


def decode_form(text: str) -> Plan:
    return decode_plan(json.loads(text))


def encode_decision(decision: PlanDecision) -> str:
    """The column `columns` of a request of the action `decide`; older programs know no such action and pass over it."""
    return json.dumps({
        "creation": decision.creation,
        "plan": encode_plan(decision.plan),
        "reason": decision.reason,
        "seconds": decision.seconds,
        "candidates": [asdict(candidate) for candidate in decision.candidates],
        "rows_seen": decision.rows_seen,
        "group": decision.group,
        "weighed": encode_prices(decision.group_prices),
        "tried": None if decision.tried is None else encode_plan(decision.tried),
    })


@lru_cache(maxsize=16384)
def decode_decision(text: str) -> PlanDecision | None:
    """None where this program does not know what was decided: a later version has plans of other kinds.

    The requests of a pipeline are gone through for each boundary, so each text is read once.
    """
    try:
        decision = json.loads(text)
        candidates = tuple(PricedPlan(**candidate) for candidate in decision["candidates"])
        tried = decision.get("tried")
        return PlanDecision(decision["creation"], decode_plan(decision["plan"]), decision["reason"],
                            decision["seconds"], candidates, decision["rows_seen"], decision["group"],
                            decode_prices(decision["weighed"]), None if tried is None else decode_plan(tried))
    except (ForebayError, ValueError, LookupError, TypeError):
        return None


def encode_states(states: Mapping[str, KeptState]) -> dict[str, Any]:
    return {
        query: {"plan": encode_plan(state.plan), "epoch": state.epoch, "at": state.as_of,
                "relations": dict(state.relation_versions), "batch": state.batch}
        for query, state in states.items()
    }


def decode_states(states: Mapping[str, Mapping[str, Any]]) -> dict[str, KeptState]:
    return {
        query: KeptState(decode_plan(state["plan"]), state["epoch"], state["at"], state.get("relations", {}),
                         state.get("batch", -1))
        for query, state in states.items()
    }


def _encode_tried(tried_plans: Mapping[str, TriedPlan]) -> dict[str, Any]:
    encoded = {}
    for query, tried_plan in tried_plans.items():
        tried, state = tried_plan.tried, tried_plan.state
        encoded[query] = {"plan": encode_plan(tried.plan), "measured": tried.measured, "beside": tried.beside,
                          "failed": tried.failed, "state": encode_states({query: state} if state else {})}
    return encoded


def _decode_tried(encoded: Mapping[str, Mapping[str, Any]]) -> dict[str, TriedPlan]:
    tried_plans = {}
    for query, one in encoded.items():
        tried = Tried(decode_plan(one["plan"]), tuple(one["measured"]), tuple(one["beside"]), one["failed"])
        tried_plans[query] = TriedPlan(tried, decode_states(one["state"]).get(query))
    return tried_plans


def _encode_past(past: SharingPast) -> dict[str, Any]:
    return {way: ratios for way, ratios in asdict(past).items() if ratios["values"]}


def _decode_past(encoded: Mapping[str, Mapping[str, Any]]) -> SharingPast:
    return SharingPast(**{way: Ratios(tuple(ratios["values"]), ratios["batch"]) for way, ratios in encoded.items()})


def encode_prices(prices: QueryGroupPrices) -> dict[str, float]:
    of_the_group = {name: value for name in PRICES if (value := getattr(prices, name)) is not None}
    return {**of_the_group, **prices.seconds_by_way}


def decode_prices(prices: Mapping[str, float]) -> QueryGroupPrices:
    """Whatever is no price of the group itself is the seconds of a way to do its work, by name: `before by key`."""
    of_the_group: dict[str, Any] = {name: prices[name] for name in PRICES if name in prices}
    seconds_by_way = {way: seconds for way, seconds in prices.items() if way not in of_the_group}
    return QueryGroupPrices(**of_the_group, seconds_by_way=seconds_by_way)


def encode_row(entry: LedgerEntry, failures: Mapping[str, str], seconds: float, task_seconds: Mapping[str, float],
               runner: str, at: int) -> dict[str, Any]:
    """A row of `ledger/batches`, times in microseconds. `failures` are messages by query."""
    batch = entry.batch
    return {
        "batch": batch.number,
        "phase": entry.phase,
        "first": batch.boundaries[0],
        "boundary": batch.boundaries[-1],
        "boundaries": len(batch.boundaries),
        "plans": json.dumps({query: plan.name for query, plan in batch.plans.items()}),
        "relations": json.dumps(dict(batch.relation_versions)),
        "failed": json.dumps(dict(failures)),
        "seconds": seconds,
        "measured": json.dumps(dict(task_seconds)),
        "runner": runner,
        "at": at,
    }


def decode_committed(row: tuple[Any, ...]) -> CommittedBatch:
    """A row of what COMMITTED asks for."""
    number, at, first, boundaries, plans, seconds, measured, runner = row
    return CommittedBatch(number, at, first, boundaries, decode_plan_names(plans), seconds, json.loads(measured),
                          decode_runner(runner))


def decode_plan_names(text: str) -> dict[str, str]:
    """Names of plans by query, as a row of `batches` has them."""
    names: dict[str, str] = json.loads(text)
    return names


def decode_runner(text: str) -> Runner:
    """`node1:4711`, or `node1:4711 scheduled run 2025-01-01`: host and process, a kind of trigger, a DAG run."""
    process, _, occasion = text.partition(" ")
    trigger, _, dag_run = occasion.partition(" ")
    return Runner(process, trigger or "cli", dag_run)
