"""The micro-batch loop: which boundaries are complete, what is in force at them, then intent, work, commits; recovery is the last intent once more.

It holds the pipeline's lock while it runs. Order of truth: the mark in `changes` (these boundaries have begun), the intent in `batches`
(what they are), tables tagged with the batch, the commit in `batches`. A crash between any two is repaired by running the intent again.
"""
from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from jobs.adapt import choice, sharing
from jobs.adapt import statistics as observing
from jobs.adapt.choice import Load
from jobs.adapt.sharing import Groups
from jobs.batch import batch as batches
from jobs.batch.batch import Answer, Answered
from jobs.batch.shared import together, watched
from jobs.batch.works import context_of, parsed, plan_value, works
from jobs.engine import row_counts
from jobs.expectations import gate as expect
from jobs.expectations.findings import Finding
from jobs.ingest import agreed, ingest
from jobs.ingest import register as intake
from jobs.ingest import relations
from jobs.ledger.ledger import Batch, Change, State
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import Standing, standings
from jobs.maintenance import compact, integrity, repair, retention
from jobs.pipeline.schema import stream_schema
from jobs.requests import requests
from jobs.requests.boundaries import Arrivals, active, missing, next_boundary, next_group, read_streams, waiting_for
from jobs.storage import failpoints, places, tables
from jobs.storage.lock import held
from jobs.storage.tables import Conflict
from optimizer.choice.parallelism import RESTED, Parallelism, parallelism
from optimizer.errors import failed
from optimizer.plan.model import Plan, placed
from optimizer.query.windows import SECOND

TASKS = "tasks"
RELIED = ("streams/", "results/", "relations/")      # tables whose versions the ledger names, since nothing else says that a commit is gone

Progress = Callable[[Mapping[str, Any]], None]


@dataclass
class Loop:
    """What the loop remembers between batches of one process."""

    laps: dict[str, list[float]] = field(default_factory=dict)      # by stage of a batch: how long each took
    position: int = -1                                              # of the ledger of batches, when this process last read it
    mended: bool = False                                            # whether torn ends of logs were looked for since the process started
    spread: Mapping[str, int] = field(default_factory=dict)         # by query: times as many parts as planned, for a task's memory
    took: list[float] = field(default_factory=list)                 # seconds of boundaries on as many tasks as now

    def lap(self, stage: str, since: float) -> float:
        """Notes how long a stage of a batch took; gives the time now."""
        now = time.perf_counter()
        self.laps.setdefault(stage, []).append(now - since)
        return now


def stages(rt: OpenPipeline) -> dict[str, float]:
    """Median seconds of each stage of the batches so far."""
    return {stage: statistics.median(took) for stage, took in rt.memory(Loop).laps.items()}


def run(rt: OpenPipeline, to: int | None = None, flush: bool = False, limit: int | None = None, progress: Progress = lambda _: None) -> dict[str, Any]:
    """Every complete boundary, in INTERFACE's `run` shape."""
    with held(rt.pipeline.warehouse), repair.told(rt):
        return _run(rt, to, flush, limit, progress)


def _run(rt: OpenPipeline, to: int | None, flush: bool, limit: int | None, progress: Progress) -> dict[str, Any]:
    agreed.streams(rt)
    _check_tables(rt)
    ran = recover(rt)
    rt.memory(Arrivals).marks = intake.watermarks(rt.warehouse, rt.pipeline.streams)      # only an ingest moves them, and none can run meanwhile
    requests.synchronise(rt)
    expect.check(rt)
    while limit is None or len(ran) < limit:
        with rt.ledger.steady() as asked:
            group = next_group(rt, to, flush, None if limit is None else limit - len(ran))
            if not group:
                break
            group = expect.admitted(rt, group)
            failpoints.at("batch.before-mark")
            if not rt.ledger.begin(group[-1], asked):
                continue
            failpoints.at("batch.after-mark")
            done = execute(rt, group)
        rt.memory(Loop).position = rt.ledger.position
        for entry in done:
            progress(entry)
        ran += done
    upcoming = next_boundary(rt)
    return {"ran": ran, "next": upcoming, "waiting_for": waiting_for(rt, upcoming), "without_version": missing(rt, upcoming) if upcoming is not None else []}


def take(rt: OpenPipeline, only: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """New input into the stream tables and relations, once, in INTERFACE's `ingest` shape; holds the pipeline."""
    with held(rt.pipeline.warehouse), repair.told(rt):
        rt.warehouse.refresh()
        _check_tables(rt, streams_only=True)
        done = ingest.ingest(rt.pipeline, rt.warehouse, rt.ledger.begun(), rt.tasks, only, rt.clock)
        refreshed = relations.refresh(rt.pipeline, rt.warehouse, rt.tasks)
        compact.trim_logs(rt)
    return {**done, "refused": done["refused"] + refreshed.refused}


def _check_tables(rt: OpenPipeline, streams_only: bool = False) -> None:
    """What a power cut or somebody else did to them; after a start, torn ends that nothing relies on are taken off first."""
    if not rt.memory(Loop).mended:
        integrity.mend_ends(rt)
        rt.memory(Loop).mended = True
    integrity.check(rt, (path for path in integrity.checked_paths(rt) if not streams_only or path.startswith("streams/")))
    compact.take_over(rt, rt.pipeline.streams)


def recover(rt: OpenPipeline) -> list[dict[str, Any]]:
    """Finishes what a crash left: a half-recorded ingest, then the last intent without commit."""
    expect.begin(rt)
    ingest.recover(rt.warehouse, rt.pipeline.streams)
    last = rt.ledger.last()
    rt.memory(Loop).position = rt.ledger.position
    rt.warehouse.refresh()
    done = []
    if last is not None and last[0] == "intent":
        failpoints.at("recover.before")
        done = _carry_out_within_memory(rt, last[1], time.perf_counter())
        failpoints.at("recover.after")
    rt.memory(Loop).position = rt.ledger.position
    compact.sweep_seldom(rt)      # not before: an intent that is run again reads files that its tables no longer name
    return done


def _describe(rt: OpenPipeline, boundaries: tuple[int, ...]) -> Batch:
    """Fixes all that the batch depends on. The boundaries have begun: requests and late rows belong to later ones."""
    last = rt.ledger.last()
    if rt.ledger.position != rt.memory(Loop).position:
        raise Conflict(f"another process has written to the ledger of batches in {rt.pipeline.warehouse} since this one read it")
    choice.begin(rt, last[1] if last else None)
    states = dict(last[2]) if last else {}
    standing = active(rt, boundaries[0])
    rt.memory(Load).parallel = _parallel(rt, last[1] if last else None)
    together = sharing.decide(rt, standing, boundaries[0])
    counted = sharing.counted(rt, together)
    shared = sharing.plan_values(rt, together, standing, counted)
    plans = {name: shared.get(name) or plan_value(choose(rt, s, states.get(name))) for name, s in standing.items()}
    kept = {path: _sound(rt, path, name, s) for name, s in states.items() if name not in shared for path in state_paths(rt, name, s)}
    return Batch(last[1].number + 1 if last else 0, boundaries, plans, relations.versions(rt.warehouse, rt.pipeline.relations), states, kept, together.groups,
                 {**counted, **{name: {**counted.get(name, {}), **told, "parts": rt.memory(Load).parallel.parts} for name, told in together.weighed.items()}},
                 rt.memory(Load).parallel.parts)


def _parallel(rt: OpenPipeline, last: Batch | None) -> Parallelism:
    """Tasks for the next boundary; a change begins a new count."""
    latency = None if rt.pipeline.latency is None else rt.pipeline.latency / SECOND
    found = parallelism(latency, last.parts if last else 0, rt.memory(Loop).took, 1 if latency is None else rt.tasks.width)
    if found.reason is not None:
        rt.memory(Loop).took = []
    return found


def choose(rt: OpenPipeline, standing: Standing, state: State | None) -> Plan:
    query, plan = parsed(standing.sql, rt.catalog), choice.plan(rt, standing, state)
    foreign = any(rt.table(f"streams/{i.source}").features for i in query.inputs
                  if i.is_stream and tables.exists(places.join(rt.pipeline.warehouse, "streams", i.source)))
    return placed(plan, "jvm" if rt.engine == "jvm" or foreign else TASKS)


def state_paths(rt: OpenPipeline, name: str, state: State) -> list[str]:
    folder = places.join(rt.pipeline.warehouse, "state", name, str(state.epoch))
    return [f"state/{name}/{state.epoch}/{s}" for s in places.listed(folder)]


def _sound(rt: OpenPipeline, path: str, name: str, state: State) -> int:
    """The version of a state table, if it is as the last batch left it."""
    table = rt.table(path)
    if table.foreign or table.transaction("batch") != state.batch:
        what = "has a commit that is not Forebay's" if table.foreign else f"is not as batch {state.batch} left it"
        raise failed("damaged-state", f"the state of query {name!r} is damaged: {table.path} {what}",
                     f"`forebay doctor --rebuild {name}` makes it anew from the stream tables")
    return table.version


def execute(rt: OpenPipeline, boundaries: tuple[int, ...]) -> list[dict[str, Any]]:
    started = time.perf_counter()
    batch = _describe(rt, boundaries)
    rt.memory(Loop).lap("describe", started)
    with ThreadPoolExecutor(1) as beside:
        return _carry_out_within_memory(rt, batch, started, beside.submit(_intend, rt, batch).result)


def _intend(rt: OpenPipeline, batch: Batch) -> None:
    """Made durable while the tasks compute: until it is on the disk, nothing that they make is in any table."""
    failpoints.at("batch.before-intent")
    rt.ledger.intent(batch)
    places.sync(rt.pipeline.warehouse)
    failpoints.at("batch.after-intent")


def _nothing() -> None:
    """What is left to wait for where the intent is durable."""


def _carry_out_within_memory(rt: OpenPipeline, batch: Batch, started: float, intended: Callable[[], object] = _nothing) -> list[dict[str, Any]]:
    """The batch; a query that does not fit into its tasks' memory, in however many parts, gets the plan that needs least, by an intent of its own.

    Nothing of the batch is in any table by then: memory runs out while tasks compute."""
    while True:
        try:
            return _carry_out(rt, batch, started, intended)
        except batches.Exhausted as error:
            intended()
            batch = _under_another_plan(rt, batch, error)
            _intend(rt, batch)
            intended = _nothing


def _under_another_plan(rt: OpenPipeline, batch: Batch, error: batches.Exhausted) -> Batch:
    standing = standings(rt.ledger.all_changes(), batch.boundaries[0])[error.query]
    plan = choice.too_large(rt, standing, batch.states.get(error.query), error)
    if plan is None:
        raise error
    apart = {name: tuple(n for n in names if n != error.query) for name, names in batch.shared.items()}
    return replace(batch, plans={**batch.plans, error.query: plan_value(plan)}, shared=apart)


def _carry_out(rt: OpenPipeline, batch: Batch, started: float, intended: Callable[[], object]) -> list[dict[str, Any]]:
    """Everything between intent and commit, and the commit; all of it can be done twice."""
    lap = time.perf_counter()
    context, known = context_of(rt), standings(rt.ledger.all_changes(), batch.boundaries[0])
    for stream in {s for n in batch.plans for s in _streams(rt, known[n])}:
        declared = rt.pipeline.streams[stream]
        rt.table(f"streams/{stream}", stream_schema(declared.columns), agreed.properties(rt.pipeline, declared))
    todo = works(context, batch, known)
    groups = together(context, batch, known)
    seen = [w for g in groups for w in watched(context, g)]
    found = batches.answers(context, batch, todo, observing.asked(rt, batch, [*todo, *seen]), groups, rt.memory(Loop).spread)
    made, rt.memory(Loop).spread = found.made, found.spread
    failpoints.at("batch.after-tasks")
    intended()
    expect.answered(rt, batch, made, found.shared)
    lap = rt.memory(Loop).lap("answer", lap)
    gone = batches.store(context, batch, made, found.shared)
    rt.memory(Groups).counted.update({s.together.name: s.counted for s in found.shared if s.counted})
    if choice.of(rt).warm:      # the first batch of a process also starts Spark
        rt.memory(Loop).took = [*rt.memory(Loop).took, (time.perf_counter() - started) / len(batch.boundaries)][-RESTED:]
    _conclude(rt, batch, found, time.perf_counter() - started)
    lap = rt.memory(Loop).lap("commit", lap)
    failing = expect.keep(rt)
    observing.keep(rt, batch, [*made, *map(Answer, seen)], found.taken)
    lap = rt.memory(Loop).lap("statistics", lap)
    if gone:
        places.sync(rt.pipeline.warehouse)      # the entry that no longer needs them is on the disk before they leave it
    compact.discard(rt, gone)
    failpoints.at("batch.after-discard")
    horizons = retention.horizons(rt)
    compact.compact(rt, made, horizons, found.shared)
    retention.leave(rt, horizons)
    rt.ledger.tidy()
    compact.trim_logs(rt)
    rt.memory(Loop).lap("compact", lap)
    return report(rt, batch, found, failing, time.perf_counter() - started)


def _conclude(rt: OpenPipeline, batch: Batch, found: Answered, seconds: float) -> None:
    """Failures become changes, then the batch is committed: from here on its answers are published. Who shares leaves the state it had alone."""
    made, together = found.made, {n for names in batch.shared.values() for n in names}
    failed = {a.work.name: a.failed for a in made if a.failed}
    for name, (boundary, message) in failed.items():
        _record_failure(rt, name, boundary, message)
    states = {**{n: s for n, s in batch.states.items() if n in batch.plans and n not in failed and n not in together},
              **{a.work.name: _state(a, batch) for a in made if not a.failed and a.work.name not in together}}
    measured = choice.learn(rt, made, seconds) | {n: s.seconds / len(s.answered) for s in found.shared for n in s.answered}
    failpoints.at("batch.before-commit")
    synced = time.perf_counter()
    places.sync(rt.pipeline.warehouse)      # tables and mark are on the disk before the ledger says that they are there
    rt.memory(Loop).lap("sync", synced)
    versions = rt.warehouse.versions(RELIED)
    rt.ledger.commit(sharing.learnt(batch, rt.memory(Groups).counted), states, {n: m for n, (_, m) in failed.items()}, seconds, measured, versions)
    failpoints.at("batch.after-commit")
    choice.write(rt, batch)


def _streams(rt: OpenPipeline, standing: Standing) -> list[str]:
    return [i.source for i in parsed(standing.sql, rt.catalog).inputs if i.is_stream]


def _state(answer: Answer, batch: Batch) -> State:
    return State(plan_value(answer.work.plan), answer.work.epoch, answer.work.due[-1], dict(batch.relations), batch.number)


def _record_failure(rt: OpenPipeline, name: str, boundary: int, message: str) -> None:
    if any(c.query == name and c.action == "fail" and c.effective == boundary for c in rt.ledger.all_changes()):
        return
    rt.ledger.request(lambda begun, known: Change(name, "fail", boundary, reason=message))


def report(rt: OpenPipeline, batch: Batch, found: Answered, failing: list[Finding], seconds: float) -> list[dict[str, Any]]:
    """One entry a boundary; the time of a batch is shared among its boundaries."""
    made = found.made
    plans = {a.work.name: a.work for a in made} | {n: s.together.work_of[n] for s in found.shared for n in s.answered}
    arrived, failing_from = _arrived(rt, batch), {a.work.name: a.failed[0] for a in made if a.failed}
    return [{"boundary": t, "seconds": seconds / len(batch.boundaries), "rows": arrived.get(t, {}),
             "plans": {n: w.plan.name for n, w in plans.items() if t in w.due and w.query.due(t) and t < failing_from.get(n, t + 1)},
             "failed": {a.work.name: a.failed[1] for a in made if a.failed and a.failed[0] == t},
             "unexpected": [f"{f.subject} expects {f.expectation}, observed: {f.observed}" for f in failing if f.boundary == t]} for t in batch.boundaries]


def _arrived(rt: OpenPipeline, batch: Batch) -> dict[int, dict[str, int]]:
    """Rows that each boundary counts first, from the files' own counts where a file belongs to one boundary."""
    found: dict[int, dict[str, int]] = {}
    after, upto = batch.boundaries[0] - rt.pipeline.batch, batch.boundaries[-1]
    for stream in sorted(read_streams(rt, batch.boundaries[0])):
        for boundary, count in row_counts.by_boundary(rt.table(f"streams/{stream}"), after, upto):
            found.setdefault(boundary, {})[stream] = found.get(boundary, {}).get(stream, 0) + count
    return found
