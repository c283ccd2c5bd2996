"""What a batch does for each query: its plan, the boundaries at which it is due, where its state stands; nothing is read or run here."""
from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jobs.engine.tasks import Tasks
from jobs.ingest import relations
from jobs.ledger.ledger import Batch, State
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import Standing
from jobs.storage.tables import File, Table
from optimizer.plan.model import Plan
from optimizer.plan.program import BEGINNING
from optimizer.query.model import Catalog, Query
from optimizer.query.shape import shape
from optimizer.sql.parse import parse


@dataclass(frozen=True)
class Context:
    """What a batch may touch. `table` opens a Delta table by its path under the warehouse and follows it; with a schema it is made if there is none."""

    warehouse: str
    catalog: Catalog
    tasks: Tasks
    table: Callable[..., Table]
    relation_file: Callable[[str, int], File]


def context_of(rt: OpenPipeline) -> Context:
    return Context(rt.pipeline.warehouse, rt.catalog, rt.tasks, rt.table, lambda name, version: relations.version_file(rt.warehouse, name, version))


@dataclass(frozen=True)
class Work:
    """One query in one batch: the boundaries at which it is due, and where its state stands."""

    standing: Standing
    query: Query
    plan: Plan
    due: tuple[int, ...]
    previous: int
    epoch: int
    parts: int

    @property
    def name(self) -> str:
        return self.standing.name

    @property
    def text_and_plan(self) -> tuple[str, Plan]:
        return self.standing.sql, self.plan


@lru_cache(maxsize=4096)
def parsed(sql: str, catalog: Catalog) -> Query:
    return parse(sql, catalog)


def plan_value(plan: Plan) -> dict[str, Any]:
    return {"name": plan.name, "digits": list(plan.digits), "keeping": plan.keeping, "order": list(plan.order), "exchange": plan.exchange,
            "layout": plan.layout, "invalidation": plan.invalidation, "place": plan.place, "parts": plan.parts,
            "sharing": plan.sharing, "levels": list(plan.levels), "split": plan.split, "divided": plan.divided}


def plan_from(value: Mapping[str, Any]) -> Plan:
    return Plan(tuple(value["digits"]), value["keeping"], tuple(value["order"]), value["exchange"], value["layout"], value["invalidation"], value["place"],
                value["parts"], value.get("sharing", "each"), tuple(value.get("levels", ())),      # what was written before there were several windows
                value.get("split", "before"), value.get("divided"))


def works(context: Context, batch: Batch, standings: Mapping[str, Standing], only: Collection[str] | None = None) -> list[Work]:
    """Every query of the batch that has a boundary to answer in it, but those that share; or `only` these."""
    found = []
    sharing = {n for names in batch.shared.values() for n in names}
    wanted = {n: v for n, v in batch.plans.items() if (n not in sharing if only is None else n in only)}
    width = wide(context, batch)
    many = len(wanted) >= 2 * width
    for name, value in wanted.items():
        query = parsed(standings[name].sql, context.catalog)
        due = tuple(t for t in batch.boundaries if t % query.every == 0)
        if not due:
            continue
        plan, state = plan_from(value), batch.states.get(name)
        state = state if state and _continues(state, plan, standings[name], batch.relations, query) else None
        parts = 1 if many or shape(query).whole or plan.place == "jvm" else plan.parts or width
        found.append(Work(standings[name], query, plan, due, state.at if state else BEGINNING, state.epoch if state else due[0], parts))
    return found


def wide(context: Context, batch: Batch) -> int:
    """Tasks that share one query's work where its plan names no number."""
    return batch.parts or max(context.tasks.width, 1)


def _continues(state: State, plan: Plan, standing: Standing, relations: Mapping[str, int], query: Query) -> bool:
    """Whether kept state serves on: same plan since, not created again, and no new relation version behind a kept answer."""
    same = plan_from(state.plan) == plan and not (standing.since is not None and state.at < standing.since)
    used = [i.source for i in query.inputs if not i.is_stream]
    return same and not (plan.keeps_answer and any(state.relations.get(r) != relations.get(r) for r in used))


def state_folder(work: Work, name: str) -> str:
    return f"state/{work.name}/{work.epoch}/{name}"
