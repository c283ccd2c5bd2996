"""What a batch does for each query: its plan, the boundaries at which it is due, where its state stands.

Nothing is read or run here.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from jobs.engine.tasks import Tasks
from jobs.ingest import relations
from jobs.ledger.entries import TRIED, Batch, KeptState
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import QueryState
from jobs.storage.tables import File, Table
from optimizer.plan.model import Plan
from optimizer.plan.program import BEGINNING
from optimizer.query.model import Catalog, Query
from optimizer.query.shape import shape
from optimizer.sharing.price import STATED, SharingCosts
from optimizer.sql.parse import parse


@dataclass(frozen=True)
class Context:
    """What a batch may touch.

    `table` opens a Delta table by its path under the warehouse and follows it; with a schema it is made if there is
    none. Values of `sensitive` columns, by source, stand in no message.
    """

    warehouse: str
    catalog: Catalog
    tasks: Tasks
    table: Callable[..., Table]
    relation_file: Callable[[str, int], File]
    sharing_costs: SharingCosts = STATED
    sensitive: Mapping[str, frozenset[str]] = field(default_factory=dict)


def context_of(pipe: OpenPipeline, sharing_costs: SharingCosts = STATED) -> Context:
    def relation_file(name: str, version: int) -> File:
        return relations.version_file(pipe.warehouse, name, version)

    return Context(pipe.pipeline.warehouse, pipe.catalog, pipe.tasks, pipe.table, relation_file, sharing_costs,
                   pipe.pipeline.sensitive)


@dataclass(frozen=True)
class QueryWork:
    """One query in one batch: the boundaries at which it is due, and where its kept state stands.

    `QueryWork(query_state, query, plan, due=(120,), previous=60, epoch=60, parts=2)` brings state that was built at
    boundary 60 from there to 120, in two tasks; `previous` BEGINNING builds it from nothing. One statement may answer
    `together` boundaries; strings may be `coded`, where several boundaries join the same rows. `is_tried`: the plan
    runs beside the one in force, and nothing of its answer is published.

    Tasks divide its rows, into `parts`, or its boundaries, into `runs`; one of the two is 1. At most `width` tasks have
    a share of it.
    """

    query_state: QueryState
    query: Query
    plan: Plan
    due: tuple[int, ...]
    previous: int
    epoch: int
    parts: int
    together: int = 1
    coded: bool = False
    is_tried: bool = False
    runs: int = 1
    width: int = 1

    @property
    def name(self) -> str:
        return self.query_state.name

    @property
    def label(self) -> str:
        """Whose orders, results and seconds are whose in a batch; no query's name has a space."""
        return f"{self.name} {TRIED} {self.plan.name}" if self.is_tried else self.name

    @property
    def text_and_plan(self) -> tuple[str, Plan]:
        return self.query_state.sql, self.plan


@lru_cache(maxsize=4096)
def parsed(sql: str, catalog: Catalog) -> Query:
    return parse(sql, catalog)


def works(context: Context, batch: Batch, query_states: Mapping[str, QueryState],
          only: Collection[str] | None = None) -> list[QueryWork]:
    """Every query of the batch that has a boundary to answer in it, but those that share; or `only` these."""
    names = _alone(batch) if only is None else [name for name in batch.plans if name in only]
    many = len(names) >= 2 * wide(context, batch)
    query_works = [_work(context, batch, query_states[name], batch.plans[name], batch.states.get(name), many)
                   for name in names]
    return [work for work in query_works if work.due]


def _alone(batch: Batch) -> list[str]:
    """The queries that share with nobody."""
    sharing = {name for names in batch.query_groups.values() for name in names}
    return [name for name in batch.plans if name not in sharing]


def tried_works(context: Context, batch: Batch, query_states: Mapping[str, QueryState]) -> list[QueryWork]:
    """The plans that are tried in the batch, each beside its query's plan in force.

    A state that is made now is an instant older than the boundary, so that it stands beside what the plan in force may
    make at the same one.
    """
    query_works, many = [], len(_alone(batch)) >= 2 * wide(context, batch)
    going_on = {name: one for name, one in batch.tried.items() if not one.tried.failed}
    for name, one in going_on.items():
        work = _work(context, batch, query_states[name], one.tried.plan, one.state, many)
        epoch = work.epoch - 1 if work.previous == BEGINNING else work.epoch
        query_works.append(replace(work, epoch=epoch, is_tried=True))
    return [work for work in query_works if work.due]


def _work(context: Context, batch: Batch, query_state: QueryState, plan: Plan, state: KeptState | None,
          many: bool) -> QueryWork:
    """`many`: there are so many queries that a task each is enough."""
    query = parsed(query_state.sql, context.catalog)
    due = tuple(t for t in batch.boundaries if t % query.every == 0)
    width = 1 if many or plan.place == "jvm" else plan.parts or wide(context, batch)
    parts = 1 if shape(query).whole else width
    if state is None or not _continues(state, plan, query_state, batch.relation_versions, query):
        return QueryWork(query_state, query, plan, due, BEGINNING, due[0] if due else 0, parts, width=width)
    return QueryWork(query_state, query, plan, due, state.as_of, state.epoch, parts, width=width)


def published_upto(context: Context, batch: Batch, query_state: QueryState) -> int:
    """The boundary up to which a query's combinations are published, BEGINNING for none: each comes once. Of a query
    with aggregates nothing is kept where it shares.
    """
    query, state = parsed(query_state.sql, context.catalog), batch.states.get(query_state.name)
    if state is None or not query.returns_rows:
        return BEGINNING
    plan = batch.plans[query_state.name]
    return state.as_of if _continues(state, plan, query_state, batch.relation_versions, query) else BEGINNING


def wide(context: Context, batch: Batch) -> int:
    """Tasks that share one query's work where its plan names no number."""
    return batch.parts or max(context.tasks.width, 1)


def _continues(state: KeptState, plan: Plan, query_state: QueryState, relations: Mapping[str, int],
               query: Query) -> bool:
    """Whether kept state serves on: same plan since, not created again, and no new relation version behind a kept
    answer. A row query keeps nothing but the boundary up to which its combinations are published, by whatever plan.
    """
    if query_state.since is not None and state.as_of < query_state.since:
        return False
    if query.returns_rows or state.plan != plan:
        return query.returns_rows
    used = [i.source for i in query.inputs if not i.is_stream]
    has_new_version = any(state.relation_versions.get(name) != relations.get(name) for name in used)
    return not (plan.keeps_answer and has_new_version)


def state_folder(work: QueryWork, name: str) -> str:
    return f"state/{work.name}/{work.epoch}/{name}"
