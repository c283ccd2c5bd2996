"""One batch: from a batch's fixed description to orders for tasks, answers, and the commits of state and results;
deterministic, so that it can be run again.

The description (jobs.ledger.ledger.Batch) names boundaries, plans, relation versions, and state versions as they were
before. Whatever a crash left, running it again gives the same rows, and a table that has the batch's number already is
left alone.
"""
from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from jobs.batch import quiet
from jobs.batch.orders import jvm_order, points, task_orders
from jobs.batch.shared import Shared, Together
from jobs.batch.shared import orders as shared_orders
from jobs.batch.shared import shared
from jobs.batch.works import Context, QueryWork, state_folder, works
from jobs.engine import jvm, kernel, memory
from jobs.engine.sample import Either, SampleOrder, SampleResult
from jobs.engine.work import Joining, Receiving, TaskOrder, TaskResult, prepare, sending
from jobs.ledger.entries import Batch
from jobs.pipeline.schema import arrow
from jobs.storage import delta_log, failpoints, tables
from jobs.storage.tables import File
from optimizer.errors import ForebayError, first_line
from optimizer.plan.final import final, result_columns
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import Plan
from optimizer.plan.program import BEGINNING, StateSet
from optimizer.plan.tree import state_sets
from optimizer.query.shape import shape

SPREAD, MOST_SPREAD = 4, 64      # times as many parts at each try, and in all, where a task's memory is too small
# By a query's text and its plan: another query of that name needs something else.
Spread = Mapping[tuple[str, Plan], int]
log = logging.getLogger("forebay")
COMMITTERS = 4       # threads that commit tables at the same time: each waits for the disk, not for the processor


class Exhausted(ForebayError):
    """A query's work does not fit into a task's memory under its plan, in however many parts."""

    def __init__(self, query: str, plan: str, what: str) -> None:
        super().__init__("out-of-memory", f"{query} does not fit into the memory of a task under {plan}: {what}",
                         hint=memory.MORE, exit_code=1)
        self.query, self.plan = query, plan


@dataclass
class Answer:
    """What a query's tasks made of it. `failed` is (boundary, message): nothing from that boundary on; `partials` are
    what `rows` was merged from, those of the second for each pair of `repeats`."""

    work: QueryWork
    rows: pa.Table | None = None
    partials: pa.Table | None = None
    repeats: tuple[tuple[int, int], ...] = ()
    files: tuple[File, ...] = ()
    state: dict[str, list[File]] = field(default_factory=dict)
    failed: tuple[int, str] | None = None
    seconds: float = 0.0

    @property
    def anew(self) -> bool:
        """Whether its state was made from nothing."""
        return self.work.previous == BEGINNING


@dataclass(frozen=True)
class Answered:
    """What a batch computed: each query's answer that has one of its own, and each group's.

    `spread` says how many times as many parts as planned some texts needed, under a plan, to fit into their tasks'
    memory.
    """

    made: list[Answer]
    shared: list[Shared]
    taken: list[SampleResult]
    spread: Spread = field(default_factory=dict)


def answers(context: Context, batch: Batch, todo: list[QueryWork], asked: Sequence[SampleOrder] = (),
            groups: Sequence[Together] = (), spread: Spread | None = None) -> Answered:
    """All queries in one Spark job, and the samples with them; a query that fails is tried again boundary by boundary
    to find from where.

    Members that a group has to leave out run apart, in a job after it. `spread`: of texts that did not fit before, how
    they are divided at once.
    """
    spread = dict(spread or {})
    outcomes, taken = _perform(context, batch, [_divided(w, spread.get(w.text_and_plan, 1)) for w in todo], asked,
                               groups)
    outcomes = _in_more_parts(context, batch, todo, outcomes, spread)
    by_query: dict[str, list[TaskResult]] = {}
    for outcome in outcomes:
        by_query.setdefault(outcome.query, []).append(outcome)
    made = [_answer(context, batch, w, by_query[w.name]) for w in todo]
    together = [shared(context, batch, g, by_query[g.name]) for g in groups]
    for left in (s for s in together if s.apart):
        made += answers(context, batch, works(context, batch, left.together.query_states, left.apart)).made
    return Answered(made, together, taken, spread)


def _in_more_parts(context: Context, batch: Batch, todo: list[QueryWork], outcomes: list[TaskResult],
                   spread: dict[tuple[str, Plan], int]) -> list[TaskResult]:
    """Queries that did not fit into their tasks' memory are computed again, divided by key into more and more parts,
    one after another in a task: each part holds less, though it reads all. The rows are the same; only how they were
    divided is not as the batch says."""
    def further(work: QueryWork) -> bool:
        return _exhausted(work, outcomes) and can_divide(work) and spread.get(work.text_and_plan, 1) < MOST_SPREAD

    while again := [w for w in todo if further(w)]:
        spread.update({w.text_and_plan: spread.get(w.text_and_plan, 1) * SPREAD for w in again})
        for w in again:
            log.warning("%s does not fit into a task's %s under %s: its work is divided into %d times as many parts",
                        w.name, context.tasks.memory, w.plan.name, spread[w.text_and_plan])
        repeated = {w.name for w in again}
        divided = [_divided(w, spread[w.text_and_plan]) for w in again]
        outcomes = [o for o in outcomes if o.query not in repeated] + _perform(context, batch, divided)[0]
    return outcomes


def _exhausted(work: QueryWork, outcomes: list[TaskResult]) -> bool:
    return any(o.exhausted for o in outcomes if o.query == work.name)


def can_divide(work: QueryWork) -> bool:
    return work.plan.place == "tasks" and not shape(work.query).whole


def _divided(work: QueryWork, times: int) -> QueryWork:
    """By the key that all inputs share, where there is one, so that every part holds less of each input."""
    if times == 1:
        return work
    by_key = len(work.query.inputs) == 1 or shape(work.query).common_key() is not None
    return replace(work, parts=work.parts * times,
                   plan=replace(work.plan, exchange="partition") if by_key else work.plan)


def _perform(context: Context, batch: Batch, todo: list[QueryWork], asked: Sequence[SampleOrder] = (),
             groups: Sequence[Together] = ()) -> tuple[list[TaskResult], list[SampleResult]]:
    """Each query where its plan places it, and its samples there too."""
    orders = [o for g in groups for o in shared_orders(context, batch, g)]
    orders += [o for w in todo if w.plan.place == "tasks" for o in task_orders(context, batch, w)]
    outcomes, taken = _in_tasks(context, batch.parts or None, orders,
                                [a for a in asked if a.sampling.dialect == "duckdb"])
    outcomes += [
        jvm.perform(context.tasks.session, jvm_order(context, batch, w)) for w in todo if w.plan.place == "jvm"
    ]
    return outcomes, taken + [jvm.take(context.tasks.session, a) for a in asked if a.sampling.dialect == "spark"]


def _in_tasks(context: Context, width: int | None, orders: list[TaskOrder],
              asked: Sequence[SampleOrder]) -> tuple[list[TaskResult], list[SampleResult]]:
    """One Spark job; one more before it where anything is broadcast, and one beside it where Spark shuffles."""
    shuffled, direct = ([o for o in orders if o.shuffled == wanted] for wanted in (True, False))
    sent = [s for found in context.tasks.map(prepare, [o for o in direct if o.narrow.before], width) for s in found]
    items: list[TaskOrder | SampleOrder] = [*direct, *asked]
    found = context.tasks.map(Either(Joining(tuple(sent))), items, width)
    done, taken = [f for f in found if isinstance(f, TaskResult)], [f for f in found if isinstance(f, SampleResult)]
    done += context.tasks.exchange(sending, list(enumerate(shuffled)), Receiving(tuple(shuffled)), len(shuffled))
    return done, taken


def _answer(context: Context, batch: Batch, work: QueryWork, outcomes: list[TaskResult]) -> Answer:
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


def _tried(context: Context, work: QueryWork, outcomes: list[TaskResult]) -> Answer:
    """The answer, or from which boundary there is none: an error of the query's own, in a task or in the merge."""
    too_much = next((o.exhausted for o in outcomes if o.exhausted), None)
    if too_much is not None:
        raise Exhausted(work.name, work.plan.name, too_much)
    message = next((o.failed for o in outcomes if o.failed), None)
    if message is None:
        try:
            return _made(context, work, outcomes)
        except kernel.Error as error:
            if not kernel.about_data(error):
                raise
            message = first_line(error)
    return Answer(work, failed=(work.due[-1], message))


def _made(context: Context, work: QueryWork, outcomes: list[TaskResult]) -> Answer:
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
    made.repeats = tuple(same)
    con.register(
        "same",
        pa.table({
            "_t": pa.array([t for t, _ in same], pa.int64()),
            "_of": pa.array([c for _, c in same], pa.int64())
        }))
    con.execute(
        "CREATE TEMP VIEW partials AS SELECT same._t, computed.* EXCLUDE (_t) FROM computed JOIN same ON computed._t = "
        "same._of"
    )
    con.register("due", pa.table({"_t": pa.array(work.due, pa.int64())}))
    try:
        made.rows = kernel.table(con, final(Lowering(shape(work.query), work.plan, narrow=False)))
    finally:
        con.close()
    return made


def store(context: Context, batch: Batch, made: list[Answer],
          groups: Sequence[Shared] = ()) -> list[tuple[str, list[str]]]:
    """Commits state, then results, each table once, whoever tries; gives the files that left (path of table, names)."""
    jobs: list[tuple[str, Any, list[File], list[str]]] = []
    for answer in made:
        if answer.failed is None:
            jobs += [
                _state_commit(context, batch, answer, kept)
                for kept in state_sets(Lowering(shape(answer.work.query), answer.work.plan))
            ]
    failpoints.at("batch.before-state")
    _commit_all(context, batch, jobs)
    failpoints.at("batch.after-state")
    _commit_all(
        context, batch,
        [c for c in (_result_commit(context, batch, a) for a in made) if c] + _shared_commits(context, batch, groups))
    failpoints.at("batch.after-results")
    return [(path, gone) for path, _, _, gone in jobs if gone]


def _state_commit(context: Context, batch: Batch, answer: Answer,
                  kept: StateSet) -> tuple[str, Any, list[File], list[str]]:
    """What a set gains and loses: an appended one sheds files in which everything has ended, another is replaced."""
    path, last = state_folder(answer.work, kept.name), answer.work.due[-1]
    version = batch.state_versions.get(path)
    old = context.table(path).at(version).files() if version is not None and answer.work.previous != BEGINNING else ()
    shed = answer.work.plan.invalidation == "insert"
    gone = [f.path for f in old if kept.ends is None or (shed and f.high.get(kept.ends, last) < last)]
    return path, kept.columns, answer.state.get(kept.name, []), gone


def _result_commit(context: Context, batch: Batch, answer: Answer) -> tuple[str, Any, list[File], list[str]] | None:
    work = answer.work
    columns = result_columns(Lowering(shape(work.query), work.plan))
    path = work.query_state.table
    table = context.table(path, _schema(columns))
    rows, files = answer.rows, list(answer.files)
    if rows is not None and rows.num_rows:
        if _lacks(table, batch):
            files = [tables.write(table.path, rows.cast(table.schema), tables.unique(f"b{batch.number}"))]
    return (path, columns, files, []) if files else None


def _shared_commits(context: Context, batch: Batch,
                    groups: Sequence[Shared]) -> list[tuple[str, Any, list[File], list[str]]]:
    """One commit a shared table, however many queries and groups have rows for it."""
    rows: dict[str, list[pa.Table]] = {}
    for path, found in (pair for s in groups for pair in s.rows):
        rows.setdefault(path, []).append(found)
    jobs: list[tuple[str, Any, list[File], list[str]]] = []
    for path, listed in rows.items():
        table = context.table(path, listed[0].schema)
        found = pa.concat_tables([t.cast(table.schema) for t in listed])
        if found.num_rows and _lacks(table, batch):
            jobs.append((path, None, [tables.write(table.path, found, tables.unique(f"b{batch.number}"))], []))
    return jobs


def _commit_all(context: Context, batch: Batch, jobs: list[tuple[str, Any, list[File], list[str]]]) -> None:
    def one(job: tuple[str, Any, list[File], list[str]]) -> None:
        path, columns, add, remove = job
        table = context.table(path, _schema(columns) if columns is not None else None)
        if _lacks(table, batch):
            failpoints.at("batch.before-table")
            table.commit(add, _torn_files(table, batch) or remove, ("batch", batch.number))
            failpoints.at("batch.after-table")

    if len(jobs) == 1:
        return one(jobs[0])
    with ThreadPoolExecutor(COMMITTERS) as pool:
        list(pool.map(one, jobs))


def _lacks(table: tables.Table, batch: Batch) -> bool:
    """Whether the table still has to get what the batch made.

    It has no commit of it, or one whose files a power cut has torn.
    """
    return table.transaction("batch") < batch.number or bool(_torn_files(table, batch))


def _torn_files(table: tables.Table, batch: Batch) -> list[str]:
    """All files that the batch's commit added, if one of them is not on the disk as it was written.

    Before the ledger's commit nothing vouches for them.
    """
    if table.transaction("batch") < batch.number:
        return []
    added = delta_log.read(table.path, table.version).added
    return sorted(added) if table.broken(added) else []


def _schema(columns: Any) -> pa.Schema:
    return pa.schema([(name, arrow(kind)) for name, kind in columns])
