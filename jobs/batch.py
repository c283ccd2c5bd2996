"""One batch: from a batch's fixed description to orders for tasks, answers, and the commits of state and results; deterministic, so that it can be run again.

The description (jobs.ledger.Batch) names boundaries, plans, relation versions, and state versions as they were before. Whatever a crash left,
running it again gives the same rows, and a table that has the batch's number already is left alone.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import pyarrow as pa

from jobs import failpoints, jvm, kernel, places, quiet, tables
from jobs.ledger import Batch, State
from jobs.queries import Standing
from jobs.reach import dealt, inside, meets
from jobs.sample import Asked, Either, Taken
from jobs.schema import arrow
from jobs.tables import File, Table
from jobs.tasks import Tasks
from jobs.work import Joining, Order, Outcome, Receiving, prepare, sending
from optimizer.final import final, result_columns
from optimizer.plan import Plan
from optimizer.program import BEGINNING, Source, StateSet, sets, state_sets
from optimizer.query import Catalog, Query
from optimizer.sets import Lowering
from optimizer.shape import mergeable, shape
from optimizer.sql import parse
from optimizer.steps import program

COMMITTERS = 4       # threads that commit tables at the same time: each waits for the disk, not for the processor


@dataclass(frozen=True)
class Context:
    """What a batch may touch. `table` opens a Delta table by its path under the warehouse and follows it; with a schema it is made if there is none."""

    warehouse: str
    catalog: Catalog
    tasks: Tasks
    table: Callable[..., Table]
    relation_file: Callable[[str, int], File]


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


@dataclass
class Answer:
    """What a query's tasks made of it. `failed` is (boundary, message): nothing from that boundary on; `partials` are what `rows` was merged from."""

    work: Work
    rows: pa.Table | None = None
    partials: pa.Table | None = None
    files: tuple[File, ...] = ()
    state: dict[str, list[File]] = field(default_factory=dict)
    failed: tuple[int, str] | None = None
    seconds: float = 0.0

    @property
    def anew(self) -> bool:
        """Whether its state was made from nothing."""
        return self.work.previous == BEGINNING


@lru_cache(maxsize=4096)
def parsed(sql: str, catalog: Catalog) -> Query:
    return parse(sql, catalog)


def plan_value(plan: Plan) -> dict[str, Any]:
    return {"name": plan.name, "digits": list(plan.digits), "keeping": plan.keeping, "order": list(plan.order), "exchange": plan.exchange,
            "layout": plan.layout, "invalidation": plan.invalidation, "place": plan.place, "parts": plan.parts}


def plan_from(value: Mapping[str, Any]) -> Plan:
    return Plan(tuple(value["digits"]), value["keeping"], tuple(value["order"]), value["exchange"], value["layout"], value["invalidation"], value["place"],
                value["parts"])


def works(context: Context, batch: Batch, standings: Mapping[str, Standing]) -> list[Work]:
    """Every query of the batch that has a boundary to answer in it."""
    found = []
    many = len(batch.plans) >= 2 * context.tasks.width
    for name, value in batch.plans.items():
        query = parsed(standings[name].sql, context.catalog)
        due = tuple(t for t in batch.boundaries if t % query.every == 0)
        if not due:
            continue
        plan, state = plan_from(value), batch.states.get(name)
        state = state if state and _continues(state, plan, standings[name], batch.relations, query) else None
        whole = any(not mergeable(a) for a in query.aggregates)
        parts = 1 if many or whole or plan.place == "jvm" else plan.parts or max(context.tasks.width, 1)
        found.append(Work(standings[name], query, plan, due, state.at if state else BEGINNING, state.epoch if state else due[0], parts))
    return found


def _continues(state: State, plan: Plan, standing: Standing, relations: Mapping[str, int], query: Query) -> bool:
    """Whether kept state serves on: same plan since, not created again, and no new relation version behind a kept answer."""
    same = plan_from(state.plan) == plan and not (standing.since is not None and state.at < standing.since)
    used = [i.source for i in query.inputs if not i.is_stream]
    return same and not (plan.keeps_answer and any(state.relations.get(r) != relations.get(r) for r in used))


def state_folder(work: Work, name: str) -> str:
    return f"state/{work.name}/{work.epoch}/{name}"


def answers(context: Context, batch: Batch, todo: list[Work], asked: Sequence[Asked] = ()) -> tuple[list[Answer], list[Taken]]:
    """All queries in one Spark job, and the samples with them; a query that fails is tried again boundary by boundary to find from where."""
    outcomes, taken = _perform(context, batch, todo, asked)
    by_query: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_query.setdefault(outcome.query, []).append(outcome)
    return [_answer(context, batch, w, by_query[w.name]) for w in todo], taken


def _perform(context: Context, batch: Batch, todo: list[Work], asked: Sequence[Asked] = ()) -> tuple[list[Outcome], list[Taken]]:
    """Each query where its plan places it, and its samples there too."""
    orders = [order(context, batch, w, part) for w in todo if w.plan.place == "tasks" for part in range(w.parts)]
    outcomes, taken = _in_tasks(context, orders, [a for a in asked if a.sampling.dialect == "duckdb"])
    outcomes += [jvm.perform(context.tasks.session, jvm_order(context, batch, w)) for w in todo if w.plan.place == "jvm"]
    return outcomes, taken + [jvm.take(context.tasks.session, a) for a in asked if a.sampling.dialect == "spark"]


def _in_tasks(context: Context, orders: list[Order], asked: Sequence[Asked]) -> tuple[list[Outcome], list[Taken]]:
    """One Spark job; one more before it where anything is broadcast, and one beside it where Spark shuffles."""
    shuffled = [o for o in orders if any(f.parted for f in o.narrow.before)]
    direct = [o for o in orders if o not in shuffled]
    sent = [s for found in context.tasks.map(prepare, [o for o in direct if o.narrow.before]) for s in found]
    items: list[Order | Asked] = [*direct, *asked]
    found = context.tasks.map(Either(Joining(tuple(sent))), items)
    done, taken = [f for f in found if isinstance(f, Outcome)], [f for f in found if isinstance(f, Taken)]
    done += context.tasks.exchange(sending, list(enumerate(shuffled)), Receiving(tuple(shuffled)), len(shuffled))
    return done, taken


def jvm_order(context: Context, batch: Batch, work: Work) -> jvm.Order:
    floor = _floor(context, work) if work.query.returns_rows else 0
    made = program(Lowering(shape(work.query), work.plan, "spark", narrow=False), work.due, work.previous, floor)
    streams = {s.name: (context.table(f"streams/{s.of}").path, context.table(f"streams/{s.of}").version) for s in made.sources if s.kind == "stream"}
    files = {s.name: located(context, batch, work, s, 0)[0] for s in made.sources if s.kind != "stream"}
    return jvm.Order(work.name, made, streams, files, _folders(context, work), f"b{batch.number}", _rows_to(context, work))


def _folders(context: Context, work: Work) -> dict[str, str]:
    return {name: places.join(context.warehouse, state_folder(work, name)) for name in sets(Lowering(shape(work.query), work.plan))}


def _rows_to(context: Context, work: Work) -> str | None:
    return places.join(context.warehouse, work.standing.table) if work.query.returns_rows else None


def _answer(context: Context, batch: Batch, work: Work, outcomes: list[Outcome]) -> Answer:
    found = _tried(context, work, outcomes)
    if found.failed is None or len(work.due) == 1:
        return found
    message = found.failed[1]
    for count in range(len(work.due) - 1, 0, -1):
        shorter = replace(work, due=work.due[:count])
        found = _tried(context, shorter, _perform(context, batch, [shorter])[0])
        if found.failed is None:
            return replace(found, work=work, state={}, failed=(work.due[count], message))
        message = found.failed[1]
    return Answer(work, failed=(work.due[0], message))


def _tried(context: Context, work: Work, outcomes: list[Outcome]) -> Answer:
    """The answer, or from which boundary there is none: an error of the query's own, in a task or in the merge."""
    message = next((o.failed for o in outcomes if o.failed), None)
    if message is None:
        try:
            return _made(context, work, outcomes)
        except kernel.Error as error:
            if not kernel.about_data(error):
                raise
            message = str(error).splitlines()[0]
    return Answer(work, failed=(work.due[-1], message))


def _made(context: Context, work: Work, outcomes: list[Outcome]) -> Answer:
    made = Answer(work, seconds=max((o.seconds for o in outcomes), default=0.0))
    for outcome in outcomes:
        for name, file in outcome.written:
            if name:
                made.state.setdefault(name, []).append(file)
    if work.query.returns_rows:
        made.files = tuple(f for o in outcomes for name, f in o.written if not name)
        return made
    con = kernel.shared()
    made.partials = pa.concat_tables([o.partials for o in outcomes if o.partials is not None])
    con.register("computed", made.partials)
    same = quiet.repeated(work.due, points(context, work))
    con.register("same", pa.table({"_t": pa.array([t for t, _ in same], pa.int64()), "_of": pa.array([c for _, c in same], pa.int64())}))
    con.execute("CREATE TEMP VIEW partials AS SELECT same._t, computed.* EXCLUDE (_t) FROM computed JOIN same ON computed._t = same._of")
    con.register("due", pa.table({"_t": pa.array(work.due, pa.int64())}))
    try:
        made.rows = kernel.table(con, final(Lowering(shape(work.query), work.plan, narrow=False)))
    finally:
        con.close()
    return made


def _complete(context: Context, work: Work) -> frozenset[tuple[int, str]]:
    """Columns without NULL in all rows that there are, so in all that any set holds."""
    return frozenset((i, name) for i, x in enumerate(work.query.inputs) if x.is_stream for name in context.table(f"streams/{x.source}").complete())


def points(context: Context, work: Work) -> tuple[int, ...]:
    """The boundaries that are computed; the others repeat one of them."""
    streams = {i.source for i in work.query.inputs if i.is_stream}
    return quiet.points(work.query, work.due, {s: context.table(f"streams/{s}").files() for s in streams}) if len(work.due) > 2 else work.due


def order(context: Context, batch: Batch, work: Work, part: int) -> Order:
    low = Lowering(shape(work.query), work.plan, parts=work.parts, part=part, complete=_complete(context, work))
    floor = _floor(context, work) if work.query.returns_rows else 0
    todo = points(context, work)
    narrow, wide = (program(replace(low, narrow=n), todo, work.previous, floor) for n in (True, False))
    sources = [*(s for s in narrow.sources if s.kind != "exchange"), *(f.source for f in narrow.before)]
    found = {s.name: located(context, batch, work, s, part) for s in sources}
    files, certain = ({name: pair[k] for name, pair in found.items()} for k in (0, 1))
    return Order(work.name, part, work.parts, narrow, wide, files, _folders(context, work), f"b{batch.number}", _rows_to(context, work), certain)


def located(context: Context, batch: Batch, work: Work, source: Source, part: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The files behind a source, by the tables' statistics, and those of which every row is in its range; a dealt source gives each task its share."""
    if source.kind == "relation":
        file = context.relation_file(source.of, batch.relations[source.of])
        return (places.join(context.warehouse, "relations", source.of, file.path),), ()
    if source.kind == "state":
        path = state_folder(work, source.of)
        table = context.table(path).at(batch.versions[path])
        found = list(table.files())
    else:
        path = f"streams/{source.of}"
        stamp = next(i.event_time for i in work.query.inputs if i.source == source.of) or ""
        found = [f for f in context.table(path).files() if any(meets(f, stamp, r) for r in source.ranges)]
    mine = dealt(found, work.parts)[part] if source.dealt else found
    sure = {f.path for f in mine if source.stamp and inside(f, source.stamp, source.ranges[0])}

    def paths(certain: bool) -> tuple[str, ...]:
        return tuple(places.join(context.warehouse, path, f.path) for f in sorted(mine, key=lambda f: f.path) if (f.path in sure) == certain)

    return paths(False), paths(True)


def _floor(context: Context, work: Work) -> int:
    """No row that comes with this batch has an earlier event time."""
    times = [f.low.get(i.event_time, 0) for i in work.query.inputs if i.event_time for f in context.table(f"streams/{i.source}").files()
             if f.high.get("_boundary", work.due[-1]) > work.previous]
    return min(times, default=0)


def store(context: Context, batch: Batch, made: list[Answer]) -> list[tuple[str, list[str]]]:
    """Commits state, then results, each table once, whoever tries; gives the files that left (path of table, names)."""
    jobs: list[tuple[str, Any, list[File], list[str]]] = []
    for answer in made:
        if answer.failed is None:
            jobs += [_state_commit(context, batch, answer, kept) for kept in state_sets(Lowering(shape(answer.work.query), answer.work.plan))]
    failpoints.at("batch.before-state")
    _commit_all(context, batch, jobs)
    failpoints.at("batch.after-state")
    _commit_all(context, batch, [c for c in (_result_commit(context, batch, a) for a in made) if c])
    failpoints.at("batch.after-results")
    return [(path, gone) for path, _, _, gone in jobs if gone]


def _state_commit(context: Context, batch: Batch, answer: Answer, kept: StateSet) -> tuple[str, Any, list[File], list[str]]:
    """What a set gains and loses: an appended one sheds files in which everything has ended, another is replaced."""
    path, last = state_folder(answer.work, kept.name), answer.work.due[-1]
    version = batch.versions.get(path)
    old = context.table(path).at(version).files() if version is not None and answer.work.previous != BEGINNING else ()
    shed = answer.work.plan.invalidation == "insert"
    gone = [f.path for f in old if kept.ends is None or (shed and f.high.get(kept.ends, last) < last)]
    return path, kept.columns, answer.state.get(kept.name, []), gone


def _result_commit(context: Context, batch: Batch, answer: Answer) -> tuple[str, Any, list[File], list[str]] | None:
    work = answer.work
    columns = result_columns(Lowering(shape(work.query), work.plan))
    path = work.standing.table
    table = context.table(path, _schema(columns))
    rows, files = answer.rows, list(answer.files)
    if rows is not None and rows.num_rows:
        if table.transaction("batch") < batch.number:
            files = [tables.write(table.path, rows.cast(table.schema), tables.unique(f"b{batch.number}"))]
    return (path, columns, files, []) if files else None


def _commit_all(context: Context, batch: Batch, jobs: list[tuple[str, Any, list[File], list[str]]]) -> None:
    def one(job: tuple[str, Any, list[File], list[str]]) -> None:
        path, columns, add, remove = job
        table = context.table(path, _schema(columns))
        if table.transaction("batch") < batch.number:
            failpoints.at("batch.before-table")
            table.commit(add, remove, ("batch", batch.number))
            failpoints.at("batch.after-table")

    if len(jobs) == 1:
        return one(jobs[0])
    with ThreadPoolExecutor(COMMITTERS) as pool:
        list(pool.map(one, jobs))


def _schema(columns: Any) -> pa.Schema:
    return pa.schema([(name, arrow(kind)) for name, kind in columns])
