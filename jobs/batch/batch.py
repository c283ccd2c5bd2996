"""One batch: from a batch's fixed description to orders for tasks, answers, and the commits of state and results;
deterministic, so that it can be run again.

The description (jobs.ledger.ledger.Batch) names boundaries, plans, relation versions, and state versions as they were
before. Whatever a crash left, running it again gives the same rows, and a table that has the batch's number already is
left alone.
"""
from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from jobs.batch import alone, failure, large
from jobs.batch.large import LargeAnswer, Number
from jobs.batch.orders import jvm_order, task_orders
from jobs.batch.shared import QueryFamily, Shared, groupings, merges
from jobs.batch.shared import orders as shared_orders
from jobs.batch.shared import shared
from jobs.batch.works import Context, QueryWork, state_folder, wide, works
from jobs.engine import jvm, kernel, memory
from jobs.engine.partials import Handover
from jobs.engine.sample import SampleOrder, SampleResult, TaskItem
from jobs.engine.work import Joining, Receiving, TaskOrder, TaskResult, prepare, sending
from jobs.ledger.entries import Batch
from jobs.pipeline.schema import arrow
from jobs.storage import delta_log, failpoints, tables
from jobs.storage.tables import File
from optimizer.errors import ForebayError, first_line
from optimizer.expression.types import TIMESTAMP
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import Plan
from optimizer.plan.program import BEGINNING, StateSet
from optimizer.plan.tree import state_sets
from optimizer.query.shape import shape
from optimizer.sharing.group import OWNER

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


class OutOfTime(Exception):
    """The time of a batch was up before its tasks had computed all of its boundaries, when this share of their work was
    `done`. Nothing of the batch is in any table.
    """

    def __init__(self, done: float) -> None:
        super().__init__(f"there was time for {done:.2f} of the work")
        self.done = done


@dataclass
class Answer:
    """One query's rows at the boundaries of a batch, as its tasks computed them.

    `failed` is (boundary, message): the query has no answer from that boundary on. `partials` are what `rows` was
    merged from; of each pair (boundary, computed boundary) of `repeats` they hold the second. A `large` answer has
    neither: tasks have merged it and written its rows to `files`.
    """

    work: QueryWork
    rows: pa.Table | None = None
    partials: pa.Table | None = None
    repeats: tuple[tuple[int, int], ...] = ()
    files: tuple[File, ...] = ()
    large: LargeAnswer | None = None
    state: dict[str, list[File]] = field(default_factory=dict)
    failed: tuple[int, str] | None = None
    seconds: float = 0.0

    @property
    def computed(self) -> int:
        """At how many boundaries it was computed: the others repeat one of them."""
        return len({point for _, point in self.repeats}) or len(self.work.due)

    @property
    def anew(self) -> bool:
        """Whether its state was made from nothing."""
        return self.work.previous == BEGINNING


@dataclass(frozen=True)
class Answered:
    """What a batch computed: each query's answer that has one of its own, and each group's.

    `spread` says how many times as many parts as planned some texts needed, under a plan, to fit into their tasks'
    memory. Of plans that are tried (`tried`) there is the state, and what it took; one that failed says why.
    """

    answers: list[Answer]
    shared: list[Shared]
    samples: list[SampleResult]
    spread: Spread = field(default_factory=dict)
    tried: list[Answer] = field(default_factory=list)


def answers(context: Context, batch: Batch, todo: list[QueryWork], sample_orders: Sequence[SampleOrder] = (),
            families: Sequence[QueryFamily] = (), spread: Spread | None = None,
            tried: Sequence[QueryWork] = (), until: float | None = None) -> Answered:
    """Computes all queries in one Spark job, and with them the samples and the plans that are `tried`.

    Tasks that are not done at `until`, seconds since 1970, are stopped: OutOfTime says how far they have got.

    A query that fails is computed again over fewer boundaries, to see from which one on it fails. Members that a group
    has to leave out run apart, in a job after it. `spread`: of texts that did not fit before, into how many times as
    many parts they are divided at once.
    """
    spread = dict(spread or {})
    divided = [_divided(work, spread.get(work.text_and_plan, 1)) for work in todo]
    task_results, samples = _perform(context, batch, [*divided, *tried], sample_orders, families, until)
    _stop_if_out_of_time(task_results)
    task_results = _in_more_parts(context, batch, todo, task_results, spread)
    results_by_query: dict[str, list[TaskResult]] = {}
    for task_result in task_results:
        results_by_query.setdefault(task_result.query, []).append(task_result)
    by_tasks = _merged_by_tasks(context, batch, todo, results_by_query, families)
    query_answers = [_answer(context, batch, work, results_by_query[work.name], by_tasks.get((work.name, 0)))
                     for work in todo]
    family_answers = [shared(context, batch, family, results_by_query[family.name], by_tasks) for family in families]
    for family_answer in family_answers:
        if family_answer.apart:
            works_apart = works(context, batch, family_answer.family.query_states, family_answer.apart)
            query_answers += answers(context, batch, works_apart).answers
    tried_answers = [_tried_answer(work, results_by_query[work.label]) for work in tried]
    return Answered(query_answers, family_answers, samples, spread, tried_answers)


def _stop_if_out_of_time(task_results: Sequence[TaskResult]) -> None:
    """What was not done is not begun again: all boundaries that there is time for are computed once more, together."""
    if all(result.done == 1.0 for result in task_results):
        return
    large.abandon(task_results)
    raise OutOfTime(sum(result.done for result in task_results) / len(task_results))


def _in_more_parts(context: Context, batch: Batch, todo: list[QueryWork], task_results: list[TaskResult],
                   spread: dict[tuple[str, Plan], int]) -> list[TaskResult]:
    """Queries that did not fit into their tasks' memory are computed again, divided by key into more and more parts,
    one after another in a task: each part holds less, though it reads all. The rows are the same; only how they were
    divided is not as the batch says.
    """
    def should_divide_further(work: QueryWork) -> bool:
        is_exhausted = any(result.exhausted for result in task_results if result.query == work.name)
        return is_exhausted and can_divide(work) and spread.get(work.text_and_plan, 1) < MOST_SPREAD

    while again := [work for work in todo if should_divide_further(work)]:
        spread.update({work.text_and_plan: spread.get(work.text_and_plan, 1) * SPREAD for work in again})
        for work in again:
            log.warning("%s does not fit into a task's %s under %s: its work is divided into %d times as many parts",
                        work.name, context.tasks.memory, work.plan.name, spread[work.text_and_plan])
        repeated = {work.name for work in again}
        divided = [_divided(work, spread[work.text_and_plan]) for work in again]
        large.abandon(result for result in task_results if result.query in repeated)
        other_results = [result for result in task_results if result.query not in repeated]
        task_results = other_results + _perform(context, batch, divided)[0]
    return task_results


def can_divide(work: QueryWork) -> bool:
    return work.plan.place == "tasks" and not shape(work.query).whole


def _divided(work: QueryWork, times: int) -> QueryWork:
    """By the key that all inputs share, where there is one, so that every part holds less of each input."""
    if times == 1:
        return work
    by_key = len(work.query.inputs) == 1 or shape(work.query).common_key() is not None
    return replace(work, parts=work.width * times, runs=1,
                   plan=replace(work.plan, exchange="partition") if by_key else work.plan)


def _perform(context: Context, batch: Batch, todo: list[QueryWork], sample_orders: Sequence[SampleOrder] = (),
             families: Sequence[QueryFamily] = (),
             until: float | None = None) -> tuple[list[TaskResult], list[SampleResult]]:
    """Each query where its plan places it, and its samples there too."""
    orders: list[TaskOrder] = []
    places_of = _handovers(context, batch, todo, families)
    for family in families:
        orders += [replace(order, handover=places_of[family.name]) for order in shared_orders(context, batch, family)]
    for work in todo:
        if work.plan.place == "tasks":
            orders += [replace(order, handover=places_of[work.label]) for order in task_orders(context, batch, work)]
    samples_in_tasks = [sample for sample in sample_orders if sample.sampling.dialect == "duckdb"]
    orders = [replace(order, until=until) for order in orders]
    task_results, samples = _in_tasks(context, batch.parts or None, orders, samples_in_tasks)
    in_jvm = [replace(jvm_order(context, batch, work), handover=places_of[work.label])
              for work in todo if work.plan.place == "jvm"]
    task_results += [jvm.perform(context.tasks.session, order) for order in in_jvm]
    in_spark = [sample for sample in sample_orders if sample.sampling.dialect == "spark"]
    samples += [jvm.take(context.tasks.session, sample) for sample in in_spark]
    return task_results, samples


def _in_tasks(context: Context, width: int | None, orders: list[TaskOrder],
              sample_orders: Sequence[SampleOrder]) -> tuple[list[TaskResult], list[SampleResult]]:
    """One Spark job; one more before it where anything is broadcast, and one beside it where Spark shuffles."""
    shuffled = [order for order in orders if order.shuffled]
    direct = [order for order in orders if not order.shuffled]
    broadcasts = context.tasks.map(prepare, [order for order in direct if order.narrow.before], width)
    sent = tuple(fragment for fragments in broadcasts for fragment in fragments)
    items: list[TaskOrder | SampleOrder] = [*direct, *sample_orders]
    results = context.tasks.map(TaskItem(Joining(sent)), items, width)
    task_results = [result for result in results if isinstance(result, TaskResult)]
    samples = [result for result in results if isinstance(result, SampleResult)]
    task_results += context.tasks.exchange(sending, list(enumerate(shuffled)), Receiving(tuple(shuffled)),
                                           len(shuffled))
    return task_results, samples


def _handovers(context: Context, batch: Batch, todo: Sequence[QueryWork],
               families: Sequence[QueryFamily]) -> dict[str, Handover]:
    """Where the tasks of each query and family leave partials that are too many for the driver."""
    answer_count = sum(work.parts * work.runs for work in todo) + sum(len(f.works) * f.works[0].parts for f in families)
    place = large.handover(context, answer_count)
    few_queries = len(todo) < 2 * wide(context, batch)      # else a query is a task's anyway, and its order is small
    places_of = {family.name: replace(place, groupings=groupings(family.family)) for family in families}
    for work in todo:
        merges_here = work.plan.place == "tasks" and few_queries and alone.has_whole_groups(work)
        merge_here = alone.merge(context, batch, work) if merges_here and not work.is_tried else None
        places_of[work.label] = replace(place, groupings=alone.groupings(work.query), merge_here=merge_here,
                                        is_wanted=not work.is_tried)
    return places_of


def _merged_by_tasks(context: Context, batch: Batch, todo: Sequence[QueryWork],
                     results: Mapping[str, Sequence[TaskResult]],
                     families: Sequence[QueryFamily] = ()) -> dict[Number, LargeAnswer]:
    """The answers that have too many groups to be merged here."""
    names = {name for name, of_query in results.items() if any(r.divided or r.merged for r in of_query)}
    if not names:
        return {}
    hows: list[large.Merge] = [alone.merge(context, batch, work) for work in todo if work.name in names]
    for family in families:
        hows += merges(context, batch, family) if family.name in names else []
    return large.merged(context, batch.parts, _handovers(context, batch, todo, families), hows, results)


def _answer(context: Context, batch: Batch, work: QueryWork, task_results: list[TaskResult],
            by_tasks: LargeAnswer | None) -> Answer:
    """The query's answer; if it fails, up to the boundary before the first one at which it fails."""
    answer = _answer_or_failure(context, work, task_results, by_tasks)
    if answer.failed is None:
        return answer
    message, sound, most, failing = answer.failed[1], Answer(work), 0, len(work.due)
    while failing - most > 1:      # `most` boundaries have an answer, `failing` have none
        count = (most + failing) // 2
        shorter = replace(work, due=work.due[:count])
        results = _perform(context, batch, [shorter])[0]
        merged_again = _merged_by_tasks(context, batch, [shorter], {work.name: results})
        answer = _answer_or_failure(context, shorter, results, merged_again.get((work.name, 0)))
        if answer.failed is None:
            sound, most = answer, count
        else:
            message, failing = answer.failed[1], count
    failing_work = replace(work, due=work.due[most:most + 1])
    previous = work.due[most - 1] if most else work.previous
    message = failure.explained(context, batch, failing_work, message, previous)
    return replace(sound, work=work, state={}, failed=(work.due[most], message))


def _answer_or_failure(context: Context, work: QueryWork, task_results: list[TaskResult],
                       by_tasks: LargeAnswer | None) -> Answer:
    """The answer; failed where the query's data raise an error, in a task or in the merge."""
    parts: list[TaskResult | LargeAnswer] = [*task_results, *([by_tasks] if by_tasks else [])]
    what_exhausted = next((part.exhausted for part in parts if part.exhausted), None)
    if what_exhausted is not None:
        raise Exhausted(work.name, work.plan.name, what_exhausted)
    message = next((part.failed for part in parts if part.failed), None)
    if message is None:
        try:
            return _merged(context, work, task_results, by_tasks)
        except kernel.Error as error:
            if not kernel.about_data(error):
                raise
            message = first_line(error)
    return Answer(work, failed=(work.due[-1], message))


def _merged(context: Context, work: QueryWork, task_results: list[TaskResult], by_tasks: LargeAnswer | None) -> Answer:
    """The answer from what all of the query's tasks handed back."""
    answer = Answer(work, seconds=max((result.seconds for result in task_results), default=0.0), large=by_tasks)
    answer.state = _state_files(task_results)
    if work.query.returns_rows:
        answer.files = tuple(file for result in task_results for file in result.rows.get(0, ()))
        return answer
    answer.repeats = alone.repeats(context, work)
    if by_tasks is not None:
        answer.files = by_tasks.files
        return answer
    answer.partials = pa.concat_tables([result.partials for result in task_results if result.partials is not None])
    con = kernel.shared()
    try:
        con.register("computed", answer.partials)
        answer.rows = kernel.table(con, alone.last_statement(con, work.query, work.plan, work.due, answer.repeats))
    finally:
        con.close()
    return answer


def _tried_answer(work: QueryWork, task_results: list[TaskResult]) -> Answer:
    """What a plan that is tried took, and the state that it made; its rows are nobody's answer.

    Whatever stops it stops nothing else.
    """
    what_stopped = next((why for result in task_results if (why := result.exhausted or result.failed)), None)
    if what_stopped is not None:
        return Answer(work, failed=(work.due[0], what_stopped))
    answer = Answer(work, seconds=max((result.seconds for result in task_results), default=0.0))
    answer.state = _state_files(task_results)
    return answer


def _state_files(task_results: list[TaskResult]) -> dict[str, list[File]]:
    """By state set."""
    files: dict[str, list[File]] = {}
    for result in task_results:
        for state_set, file in result.written:
            files.setdefault(state_set, []).append(file)
    return files


def store(context: Context, batch: Batch, query_answers: list[Answer],
          families: Sequence[Shared] = (), tried: Sequence[Answer] = ()) -> list[tuple[str, list[str]]]:
    """Commits state, then results, each table once however often that is done; of plans that are tried only state.

    Gives the files that left state: (path of the table, names of files).
    """
    state_commits: list[tuple[str, Any, list[File], list[str]]] = []
    for answer in (*query_answers, *tried):
        if answer.failed is None:
            sets = state_sets(Lowering(shape(answer.work.query), answer.work.plan))
            state_commits += [_state_commit(context, batch, answer, state_set) for state_set in sets]
    failpoints.at("batch.before-state")
    _commit_all(context, batch, state_commits)
    failpoints.at("batch.after-state")
    result_commits = [_result_commit(context, batch, answer) for answer in query_answers]
    shared_commits = _shared_commits(context, batch, families)
    _commit_all(context, batch, [commit for commit in result_commits if commit] + shared_commits)
    failpoints.at("batch.after-results")
    return [(path, removed) for path, _, _, removed in state_commits if removed]


def _state_commit(context: Context, batch: Batch, answer: Answer,
                  state_set: StateSet) -> tuple[str, Any, list[File], list[str]]:
    """What a set gains and loses: an appended one sheds files in which everything has ended, another is replaced."""
    path, last = state_folder(answer.work, state_set.name), answer.work.due[-1]
    version = batch.state_versions.get(path)
    files_before: Iterable[File] = ()
    if version is not None and answer.work.previous != BEGINNING:
        # Not the newest version: a batch that is repeated may have committed this table already.
        files_before = context.table(path).at(version).files()
    if state_set.ends is None:
        removed = [file.path for file in files_before]
    elif answer.work.plan.invalidation == "insert":
        removed = [file.path for file in files_before if file.high.get(state_set.ends, last) < last]
    else:
        removed = []
    return path, state_set.columns, answer.state.get(state_set.name, []), removed


def _result_commit(context: Context, batch: Batch, answer: Answer) -> tuple[str, Any, list[File], list[str]] | None:
    """The rows go to the query's address, which may have more columns than its present text, and wider ones."""
    path = answer.work.query_state.address
    table = context.table(path)
    rows, files = answer.rows, list(answer.files)
    if rows is not None and rows.num_rows and _lacks(table, batch):
        columns = pa.schema([table.schema.field(name) for name in rows.schema.names])
        files = [tables.write(table.path, rows.cast(columns), tables.unique(f"b{batch.number}"))]
    return (path, None, files, []) if files else None


def _shared_commits(context: Context, batch: Batch,
                    families: Sequence[Shared]) -> list[tuple[str, Any, list[File], list[str]]]:
    """One commit a shared table, however many queries and groups have rows for it."""
    rows_by_table: dict[str, list[pa.Table]] = {}
    files_by_table: dict[str, list[File]] = {}
    schema_by_table: dict[str, pa.Schema] = {}
    for family in families:
        for path, answer in family.published:
            if answer.rows is not None:
                rows_by_table.setdefault(path, []).append(answer.rows)
                schema_by_table.setdefault(path, answer.rows.schema)
            elif answer.large is not None:
                columns = (("boundary", TIMESTAMP), *answer.template.query.columns)
                files_by_table.setdefault(path, []).extend(answer.large.files)
                schema_by_table.setdefault(path, pa.schema([(OWNER, pa.string()), *_schema(columns)]))
    commits: list[tuple[str, Any, list[File], list[str]]] = []
    for path, schema in schema_by_table.items():
        table, files = context.table(path, schema), files_by_table.get(path, [])
        parts = [part.cast(table.schema) for part in rows_by_table.get(path, [])]
        if any(part.num_rows for part in parts) and _lacks(table, batch):
            files.append(tables.write(table.path, pa.concat_tables(parts), tables.unique(f"b{batch.number}")))
        if files:
            commits.append((path, None, files, []))
    return commits


def _commit_all(context: Context, batch: Batch, commits: list[tuple[str, Any, list[File], list[str]]]) -> None:
    def commit_one(commit: tuple[str, Any, list[File], list[str]]) -> None:
        path, columns, add, remove = commit
        table = context.table(path, _schema(columns) if columns is not None else None)
        if _lacks(table, batch):
            failpoints.at("batch.before-table")
            table.commit(add, _torn_files(table, batch) or remove, ("batch", batch.number))
            failpoints.at("batch.after-table")

    if len(commits) == 1:
        return commit_one(commits[0])
    with ThreadPoolExecutor(COMMITTERS) as pool:
        list(pool.map(commit_one, commits))


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
