"""The micro-batch loop: which boundaries are complete, what is in force at them, then intent, work, commits; recovery
is the last intent once more.

It holds the pipeline's lock while it runs. Order of truth: the mark in `changes` (these boundaries have begun), the
intent in `batches` (what they are), tables tagged with the batch, the commit in `batches`. A crash between any two is
repaired by running the intent again.
"""
from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from jobs.adapt import adaptations, tried
from jobs.adapt.choice import Chooser
from jobs.adapt.sharing import Sharer
from jobs.adapt.statistics import Statistics
from jobs.addresses.addresses import Addresses
from jobs.addresses.move import move
from jobs.batch import batch as batches
from jobs.batch.batch import Answer, Answered, Spread
from jobs.batch.shared import families_due, works_to_sample
from jobs.batch.time_limit import TimeLimit
from jobs.batch.works import context_of, parsed, tried_works, works
from jobs.engine import row_counts
from jobs.expectations.findings import Finding
from jobs.expectations.gate import STOPPED, Gate, StoppedLater
from jobs.ingest import agreed, behind, ingest, relations
from jobs.ingest.silences import LONG
from jobs.ledger import published
from jobs.ledger.addresses import latest_path
from jobs.ledger.entries import Batch, KeptState, LedgerEntry, QueryGroupPrices, TriedPlan
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import QueryChange, QueryState, address_of, queries_at
from jobs.maintenance import compact, integrity, repair, retention
from jobs.pipeline.declared import DeclaredExpectations
from jobs.pipeline.schema import stream_schema
from jobs.requests import requests
from jobs.requests.boundaries import Arrivals, active, next_boundary, read_streams
from jobs.requests.pace import Pace
from jobs.storage import failpoints, places, tables
from jobs.storage.lock import held
from optimizer.choice.backlog import LATENCY
from optimizer.choice.parallelism import RESTED, Parallelism, parallelism
from optimizer.errors import ForebayError, failed
from optimizer.plan.model import Plan, placed
from optimizer.query.windows import SECOND
from optimizer.sharing.price import SharingPast
from optimizer.time import iso

TASKS = "tasks"
# Tables whose versions the ledger names, since nothing else says that a commit is gone.
RELIED = ("streams/", "results/", "relations/", "shared/")

Progress = Callable[[Mapping[str, Any]], None]
Ahead = Callable[[int], None]          # how many boundaries are complete and have not run


def _already_durable() -> None:
    """There is nothing to wait for: the batch's intent is on the disk."""


class Laps:
    """How long each stage of the batches took, in seconds.

    `laps.lap("answer", since)` notes one, and gives the time now.
    """

    def __init__(self) -> None:
        self.by_stage: dict[str, list[float]] = {}

    def lap(self, stage: str, since: float) -> float:
        now = time.perf_counter()
        self.by_stage.setdefault(stage, []).append(now - since)
        return now

    def medians(self) -> dict[str, float]:
        return {stage: statistics.median(seconds) for stage, seconds in self.by_stage.items()}


class Loop:
    """Runs a pipeline's boundaries, and owns all that is remembered between the batches of one process.

    `Loop(open_pipeline(load("shop"))).run()` runs what is complete. Plans are remembered by `chooser`, groups by
    `sharer`, samples by `statistics`, findings by `gate`, how far rows have come by `arrivals`, how long batches took
    by `pace`, which answers are to be made public by `addresses`. A crash loses nothing with them. `share_from` is the
    sharer's rule, for benchmarks.
    """

    def __init__(self, pipe: OpenPipeline, share_from: int | None = None) -> None:
        declared = DeclaredExpectations(pipe.pipeline)
        self.pipe = pipe
        self.statistics = Statistics(pipe)
        self.chooser = Chooser(pipe, self.statistics)
        self.sharer = Sharer(pipe, declared, share_from, lambda: self.chooser.coefficients)
        self.arrivals = Arrivals(pipe)
        self.gate = Gate(pipe, declared, self.arrivals)
        self.pace = Pace(pipe, self.statistics)
        self.addresses = Addresses(pipe)
        self.laps = Laps()
        self._mended = False                # whether torn ends of logs were looked for since the process started
        self._spread: Spread = {}           # times as many parts as planned, for a task's memory
        self._seconds: list[float] = []     # of boundaries on as many tasks as now
        self._is_behind = False             # whether more boundaries are complete than the batch at hand takes

    def run(self, to: int | None = None, flush: bool = False, limit: int | None = None,
            progress: Progress = lambda _: None, ahead: Ahead = lambda _: None) -> dict[str, Any]:
        """Every complete boundary, in INTERFACE's `run` shape.

        `progress` is told each boundary that has run, `ahead` before each batch how many are to.
        """
        with held(self.pipe.pipeline.warehouse), repair.explaining(self.pipe):
            return self._run(to, flush, limit, progress, ahead)

    def _run(self, to: int | None, flush: bool, limit: int | None, progress: Progress, ahead: Ahead) -> dict[str, Any]:
        pipe = self.pipe
        agreed.streams(pipe)
        self._check_tables()
        ran = self.recover()
        if pipe.ledger.begun() is None:
            behind.settle(pipe.pipeline, pipe.warehouse, pipe.clock())      # unless the last ingest came to it
        self.arrivals.look()
        self.statistics.begin()
        requests.synchronise(pipe)
        self.gate.check()
        try:
            self._run_complete(ran, to, flush, limit, progress, ahead)
        except ForebayError as error:      # whatever stops it, what was committed becomes public
            self._publish()
            raise _with_published(error, ran) from error
        self._publish()
        self.chooser.end()
        upcoming = next_boundary(pipe)
        without_version = self.arrivals.missing(upcoming) if upcoming is not None else []
        failures = [{"query": name, "boundary": entry["boundary"], "message": message}
                    for entry in ran for name, message in entry["failed"].items()]
        return {"ran": ran, "failed": failures, "next": upcoming, "waiting_for": self.arrivals.waiting_for(upcoming),
                "without_version": without_version, "decided": adaptations.age(pipe)}

    def _run_complete(self, ran: list[dict[str, Any]], to: int | None, flush: bool, limit: int | None,
                      progress: Progress, ahead: Ahead) -> None:
        """Batch after batch, until no boundary is complete; `ran` gets an entry for each."""
        pipe = self.pipe
        while limit is None or len(ran) < limit:
            with pipe.ledger.steady() as changes_version:
                group = self.arrivals.next_group(to, flush, None if limit is None else limit - len(ran))
                if not group:
                    break
                ahead(self.arrivals.ahead if limit is None else min(self.arrivals.ahead, limit - len(ran)))
                together = self.pace.together(group, self.chooser.coefficients)
                self._is_behind = len(together) < len(group)
                group = self.gate.admitted(together)
                failpoints.at("batch.before-mark")
                if not pipe.ledger.begin(group[-1], changes_version):
                    continue
                failpoints.at("batch.after-mark")
                entries = self._execute(group)
            for entry in entries:
                progress(entry)
            ran += entries
            if self._is_behind and self.addresses.is_due():
                self._publish()

    def _publish(self) -> None:
        """What is committed becomes public; tables of answers are tidied, and old answers leave them."""
        names = self.addresses.bring_up(self.pipe.ledger.last())
        if names:
            paths = [address_of(name) for name in names]
            for path in (*paths, *map(latest_path, names)):
                self.pipe.warehouse.latest(path)
            horizons = {path: horizon for path, horizon in retention.horizons(self.pipe).items() if path in paths}
            compact.compact_addresses(self.pipe, paths, horizons)
            retention.leave(self.pipe, horizons)
            published.tidy(self.pipe.warehouse)
            compact.trim_logs(self.pipe)

    def take(self, only: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """New input into the stream tables and relations, once, in INTERFACE's `ingest` shape; holds the pipeline."""
        pipe = self.pipe
        with held(pipe.pipeline.warehouse), repair.explaining(pipe):
            pipe.warehouse.refresh()
            self._check_tables(streams_only=True)
            report = ingest.ingest(pipe.pipeline, pipe.warehouse, pipe.ledger.begun(), pipe.tasks, only, pipe.clock)
            refreshed = relations.refresh(pipe.pipeline, pipe.warehouse, pipe.tasks)
            compact.trim_logs(pipe)
        return {**report, "refused": report["refused"] + refreshed.refused, "relations": refreshed.relations,
                "notes": report["notes"] + refreshed.notes}

    def _check_tables(self, streams_only: bool = False) -> None:
        """Refuses to run on tables that a power cut or somebody else has damaged.

        After a start, torn ends that nothing relies on are taken off first.
        """
        if not self._mended:
            integrity.mend_ends(self.pipe)
            self._mended = True
        paths = integrity.checked_paths(self.pipe)
        if streams_only:
            paths = [path for path in paths if path.startswith("streams/")]
        integrity.check(self.pipe, paths)
        compact.take_over(self.pipe, self.pipe.pipeline.streams)

    def recover(self) -> list[dict[str, Any]]:
        """Finishes what a crash left: a half-recorded ingest, then the last intent without commit."""
        pipe = self.pipe
        self.gate.begin()
        self._is_behind = False
        ingest.recover(pipe.warehouse, pipe.pipeline.streams)
        move(pipe)
        self.addresses.bring_up(pipe.ledger.last())
        last = pipe.ledger.last()
        pipe.ledger.build_on(pipe.ledger.position)
        pipe.warehouse.refresh()
        entries = []
        if last is not None and last.is_open:
            failpoints.at("recover.before")
            self.pace.place(last.batch.boundaries, self.chooser.coefficients)
            entries = self._carry_out_what_can_be(last.batch, time.perf_counter(),
                                                  as_a_whole=integrity.is_in_a_table(pipe, last.batch))
            failpoints.at("recover.after")
        # Not before: an intent that is run again reads files that its tables no longer name.
        compact.sweep_seldom(pipe)
        return entries

    def _describe(self, boundaries: tuple[int, ...]) -> Batch:
        """Fixes all that the batch depends on.

        The boundaries have begun: requests and late rows belong to later ones.
        """
        pipe, last = self.pipe, self.pipe.ledger.last()
        pipe.ledger.refuse_if_overtaken()
        self.chooser.begin(last.batch if last else None)
        states = dict(last.states) if last else {}
        queries = active(pipe, boundaries[0])
        parallel = self._parallel(last.batch if last else None)
        sharing = self.sharer.of_batch(queries, boundaries[-1])      # where works count
        counts = self.sharer.counts_to_keep(sharing)
        shared = self.sharer.plans_of_batch(sharing, queries, counts)
        plans = {}
        for name, query_state in queries.items():
            plans[name] = shared.get(name) or self._plan(query_state, states.get(name), parallel)
            state = tried.state_for(last, name, plans[name])
            if state is not None:
                states[name] = state
        state_versions = dict[str, int]()
        for name, state in states.items():
            if name not in shared:
                state_versions |= integrity.sound_state(pipe, name, state)
        tried_plans, their_versions = self._tried(last, [name for name in queries if name not in shared])
        prices = dict(counts)
        for group, weighed in {**sharing.weighed, **sharing.weighed_apart}.items():
            prices[group] = counts.get(group, QueryGroupPrices()).updated(replace(weighed, parts=parallel.parts))
        relation_versions = relations.versions(pipe.warehouse, pipe.pipeline.relations)
        number = last.batch.number + 1 if last else 0
        return Batch(number, boundaries, plans, relation_versions, states, {**state_versions, **their_versions},
                     sharing.groups, prices, parallel.parts, tried_plans,
                     last.batch.sharing_past if last else SharingPast(), self._passed_over(last, boundaries[0]))

    def _passed_over(self, last: LedgerEntry | None, boundary: int) -> tuple[tuple[int, int], ...]:
        """The spans of boundaries that never run, with the one before this boundary if there is one."""
        if last is None:
            return ()
        first, before = last.last_boundary + self.pipe.pipeline.batch, boundary - self.pipe.pipeline.batch
        is_long = (before - first) // self.pipe.pipeline.batch + 1 >= LONG
        return (*last.batch.passed_over, (first, before)) if is_long else last.batch.passed_over

    def _tried(self, last: LedgerEntry | None, names: Iterable[str]) -> tuple[dict[str, TriedPlan], dict[str, int]]:
        """The plans to try beside those in force, and the versions of their state; one whose state is damaged is none.
        """
        tried_plans, versions = {}, dict[str, int]()
        for name, one in tried.before(last, self.chooser.tried(names)).items():
            try:
                versions |= integrity.sound_state(self.pipe, name, one.state) if one.state is not None else {}
                tried_plans[name] = one
            except ForebayError as error:
                tried_plans[name] = TriedPlan(replace(one.tried, failed=error.message))
        return tried_plans, versions

    def _parallel(self, last: Batch | None) -> Parallelism:
        """Tasks for the next boundary; a change begins a new count."""
        latency = None if self.pipe.pipeline.latency is None else self.pipe.pipeline.latency / SECOND
        most = 1 if latency is None else self.pipe.tasks.width
        parallel = parallelism(latency, last.parts if last else 0, self._seconds, most)
        if parallel.reason is not None:
            self._seconds = []
        return parallel

    def _plan(self, query_state: QueryState, state: KeptState | None, parallel: Parallelism) -> Plan:
        """The query's plan, and where it runs: Spark itself reads what the kernel may not."""
        pipe, plan = self.pipe, self.chooser.plan(query_state, state, parallel)
        streams = [name for name in _streams(pipe, query_state) if tables.exists(pipe.path("streams", name))]
        needs_spark = pipe.engine == "jvm" or any(pipe.table(f"streams/{name}").features for name in streams)
        return placed(plan, "jvm" if needs_spark else TASKS)

    def _execute(self, boundaries: tuple[int, ...]) -> list[dict[str, Any]]:
        started = time.perf_counter()
        batch = self._describe(boundaries)
        self.laps.lap("describe", started)
        with ThreadPoolExecutor(1) as beside:
            return self._carry_out_what_can_be(batch, started, beside.submit(_intend, self.pipe, batch).result)

    def _carry_out_what_can_be(self, batch: Batch, started: float,
                               await_intent: Callable[[], object] = _already_durable,
                               as_a_whole: bool = False) -> list[dict[str, Any]]:
        """The batch; of one that is stopped at a later boundary those before it; of one whose time is up those that
        there is time for; of one that does not fit into its tasks' memory, in however many parts, half of its
        boundaries, or its only one under the leanest plan.

        That takes an intent of its own. Nothing of the batch is in any table by then: memory and time run out while
        tasks compute, and answers are judged before they are written. What is computed once more is not stopped again.
        Of a batch that is recovered something may be in a table: then it is committed `as_a_whole`, or not at all. One
        boundary takes what it takes; several are within `latency` together, with what is computed once more.
        """
        if len(batch.boundaries) > 1:
            self.pipe.tasks.start()
        latency = self.pipe.pipeline.latency
        limit = TimeLimit(time.time(), LATENCY if latency is None else latency / SECOND)
        until = limit.stopped
        while True:
            is_limited = len(batch.boundaries) > 1 and not as_a_whole
            try:
                return self._carry_out(batch, started, await_intent, until if is_limited else None, as_a_whole)
            except batches.OutOfTime as late:
                await_intent()
                self._is_behind = True
                count = limit.boundaries_left(len(batch.boundaries), late.done, time.time())
                batch = replace(batch, boundaries=batch.boundaries[:count])
            except StoppedLater as stop:
                await_intent()
                before = tuple(t for t in batch.boundaries if t < stop.boundary)
                count = limit.boundaries_left(len(batch.boundaries), 1.0, time.time())
                batch = replace(batch, boundaries=before[:count])
            except batches.Exhausted as error:
                if as_a_whole:
                    raise
                await_intent()
                batch = self._smaller(batch, error)
            _intend(self.pipe, batch)
            await_intent, until = _already_durable, limit.computed

    def _smaller(self, batch: Batch, error: batches.Exhausted) -> Batch:
        """Fewer boundaries, from here on as well; of one boundary the leanest plan for the query that did not fit."""
        half = len(batch.boundaries) // 2
        if half:
            self.pace.most = half
            return replace(batch, boundaries=batch.boundaries[:half])
        query_state = queries_at(self.pipe.ledger.all_changes(), batch.boundaries[0])[error.query]
        plan = self.chooser.too_large(query_state, batch.states.get(error.query), error)
        if plan is None:
            raise error
        query_groups = {}
        for group, names in batch.query_groups.items():
            query_groups[group] = tuple(name for name in names if name != error.query)
        tried_plans = {name: one for name, one in batch.tried.items() if name != error.query}
        return replace(batch, plans={**batch.plans, error.query: plan}, query_groups=query_groups, tried=tried_plans)

    def _carry_out(self, batch: Batch, started: float, await_intent: Callable[[], object],
                   until: float | None, as_a_whole: bool = False) -> list[dict[str, Any]]:
        """Everything between intent and commit, and the commit; all of it can be done twice.

        `await_intent` returns once the intent is on the disk; before that, nothing may go into any table.
        """
        lap = time.perf_counter()
        pipe, context = self.pipe, context_of(self.pipe, self.sharer.machine)
        queries = queries_at(pipe.ledger.all_changes(), batch.boundaries[0])
        streams = {stream for name in batch.plans for stream in _streams(pipe, queries[name])}
        for stream in streams:      # one to which no row has come yet has no table
            declared = pipe.pipeline.streams[stream]
            properties = agreed.properties(pipe.pipeline, declared)
            pipe.table(f"streams/{stream}", stream_schema(declared.columns), properties)
        unit_costs = self.chooser.coefficients
        todo = [self.pace.by_statements(work, unit_costs) for work in works(context, batch, queries)]
        families = [self.pace.by_shared_statements(family) for family in families_due(context, batch, queries)]
        members = [work for family in families for work in works_to_sample(context, family)]
        sample_orders = self.statistics.wanted(batch, [*todo, *members])
        beside = [self.pace.by_statements(work, unit_costs) for work in tried_works(context, batch, queries)]
        answered = batches.answers(context, batch, todo, sample_orders, families, self._spread, beside, until)
        self._spread = answered.spread
        failpoints.at("batch.after-tasks")
        await_intent()
        self.gate.answered(batch, answered.answers, answered.shared, as_a_whole)
        lap = self.laps.lap("answer", lap)
        self.addresses.make_ready(batch, answered)
        removed = batches.store(context, batch, answered.answers, answered.shared, answered.tried)
        seconds, warm = time.perf_counter() - started, self.chooser.warm
        learnt = self.sharer.learn(batch, answered, seconds if warm else None, unit_costs)
        self.pace.learn(batch, answered, seconds, cold=not warm)
        if warm:      # the first batch of a process also starts Spark
            self._seconds = [*self._seconds, seconds / len(batch.boundaries)][-RESTED:]
        self._conclude(learnt, queries, answered, time.perf_counter() - started)
        lap = self.laps.lap("commit", lap)
        failing = self.gate.enter()
        self.statistics.keep(batch, [*answered.answers, *map(Answer, members)], answered.samples)
        lap = self.laps.lap("statistics", lap)
        _tidy(pipe, answered, removed, self._is_behind)
        self.laps.lap("compact", lap)
        return report(pipe, batch, answered, failing, time.perf_counter() - started)

    def _conclude(self, batch: Batch, queries: Mapping[str, QueryState], answered: Answered, seconds: float) -> None:
        """Failures become changes, then the batch is committed: from here on its answers are published."""
        pipe, answers = self.pipe, answered.answers
        failures = {answer.work.name: answer.failed for answer in answers if answer.failed}
        for name, (boundary, message) in failures.items():
            failure = QueryChange(name, "fail", boundary, reason=message)
            is_recorded = any(change.query == name and change.action == "fail" and change.effective == boundary
                              for change in pipe.ledger.all_changes())
            if not is_recorded:      # it is, where the batch is run once more
                pipe.ledger.request(lambda begun, changes: failure)
        states = self._states(batch, queries, answered, failures)
        tried_plans = tried.after(batch, answers, answered.tried)
        measured = self.chooser.learn(answers, answered.tried, tried_plans, seconds)
        for family in answered.shared:
            measured |= {name: family.seconds / len(family.answered) for name in family.answered}
        failpoints.at("batch.before-commit")
        synced = time.perf_counter()
        # Tables and mark are on the disk before the ledger says that they are there.
        places.sync(pipe.pipeline.warehouse)
        self.laps.lap("sync", synced)
        messages = {name: message for name, (_, message) in failures.items()}
        pipe.ledger.commit(batch, states, messages, seconds, measured, pipe.warehouse.versions(RELIED), tried_plans,
                           sum(answer.seconds for answer in answered.tried))
        failpoints.at("batch.after-commit")
        self.addresses.committed(batch, answered)
        self.chooser.write(batch)

    def _states(self, batch: Batch, queries: Mapping[str, QueryState], answered: Answered,
                failures: Collection[str]) -> dict[str, KeptState]:
        """Where the state of each query stands after the batch.

        One that shares leaves the state that it had alone; but a row query goes on from where it has published.
        """
        aggregating = {name for names in batch.query_groups.values() for name in names
                       if not parsed(queries[name].sql, self.pipe.catalog).returns_rows}
        states = {name: state for name, state in batch.states.items()
                  if name in batch.plans and name not in failures and name not in aggregating}
        works = [answer.work for answer in answered.answers if not answer.failed]
        for family in answered.shared:
            if family.family.returns_rows:
                works += [family.family.of_member(name) for name in family.answered]
        for work in works:
            if work.due and work.name not in aggregating:
                states[work.name] = KeptState(work.plan, work.epoch, work.due[-1], dict(batch.relation_versions),
                                              batch.number)
        return states


def _intend(pipe: OpenPipeline, batch: Batch) -> None:
    """Made durable while the tasks compute: until it is on the disk, nothing that they make is in any table."""
    failpoints.at("batch.before-intent")
    pipe.ledger.intent(batch)
    places.sync(pipe.pipeline.warehouse)
    failpoints.at("batch.after-intent")


def _tidy(pipe: OpenPipeline, answered: Answered, removed: list[tuple[str, list[str]]], is_behind: bool) -> None:
    """After the commit: files that left state leave the disk, small ones are merged, old ones go.

    Answers that wait go before merging what people read, while that has few enough files.
    """
    if removed:
        # The entry that no longer needs them is on the disk before they leave it.
        places.sync(pipe.pipeline.warehouse)
    compact.discard(pipe, removed)
    failpoints.at("batch.after-discard")
    horizons = retention.horizons(pipe)
    compact.compact(pipe, answered.answers, horizons, answered.shared, is_behind)
    # Of answers they leave when those are public, table by table as it is opened then.
    retention.leave(pipe, {path: horizon for path, horizon in horizons.items() if not path.startswith("results/")})
    pipe.ledger.tidy()
    compact.trim_logs(pipe)


def _streams(pipe: OpenPipeline, query_state: QueryState) -> list[str]:
    return [i.source for i in parsed(query_state.sql, pipe.catalog).inputs if i.is_stream]


def report(pipe: OpenPipeline, batch: Batch, answered: Answered, failing: list[Finding],
           seconds: float) -> list[dict[str, Any]]:
    """One entry a boundary; the time of a batch is shared among its boundaries."""
    work_of = {answer.work.name: answer.work for answer in answered.answers}
    for family in answered.shared:
        work_of |= {name: family.family.work_of[name] for name in family.answered}
    failures = {answer.work.name: answer.failed for answer in answered.answers if answer.failed}
    rows = _arrived_rows(pipe, batch)

    def plans(t: int) -> dict[str, str]:
        due = {name: work for name, work in work_of.items() if t in work.due and work.query.due(t)}
        return {name: work.plan.name for name, work in due.items() if name not in failures or t < failures[name][0]}

    def messages_of_failures(t: int) -> dict[str, str]:
        return {name: message for name, (since, message) in failures.items() if since == t}

    def unexpected(t: int) -> list[str]:
        return [f"{f.subject} expects {f.expectation}, observed: {f.observed}" for f in failing if f.boundary == t]

    entries = [{"boundary": t, "seconds": seconds / len(batch.boundaries), "rows": rows.get(t, {}), "plans": plans(t),
                "failed": messages_of_failures(t), "unexpected": unexpected(t)}
               for t in batch.boundaries]
    passed_over = batch.passed_over_before(pipe.pipeline.batch)
    return [{**entries[0], "passed_over": passed_over}, *entries[1:]] if passed_over else entries


def _with_published(error: ForebayError, ran: Sequence[Mapping[str, Any]]) -> ForebayError:
    """The error of a run that an expectation has stopped, with what it published before."""
    if error.code != STOPPED or not ran:
        return error
    first, last = iso(ran[0]["boundary"]), iso(ran[-1]["boundary"])
    before = f"boundary {last}" if len(ran) == 1 else f"{len(ran)} boundaries, {first} to {last}"
    return failed(STOPPED, f"{error.message}; published before it in this run: {before}", error.hint)


def _arrived_rows(pipe: OpenPipeline, batch: Batch) -> dict[int, dict[str, int]]:
    """Rows that each boundary counts first, from the files' own counts where a file belongs to one boundary."""
    rows: dict[int, dict[str, int]] = {}
    after, upto = batch.boundaries[0] - pipe.pipeline.batch, batch.boundaries[-1]
    for stream in sorted(read_streams(pipe, batch.boundaries[0])):
        for boundary, count in row_counts.by_boundary(pipe.table(f"streams/{stream}"), after, upto):
            rows.setdefault(boundary, {})[stream] = rows.get(boundary, {}).get(stream, 0) + count
    return rows
