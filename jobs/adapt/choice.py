"""Which plan each query has in the next batch: what ran so far is remembered, optimizer.choice.consider decides, the
ledger keeps the decision; no price is made here.

A decision is made anew when there are new statistics, and is part of the batch's intent, so a batch that is run again runs the same plan. Everything
remembered here can be read again from the ledger: the plan in force, what its boundaries took, the last decision.
"""
from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from statistics import median_high
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from jobs.adapt import statistics
from jobs.batch.batch import Answer, Exhausted
from jobs.batch.works import parsed, plan_from, plan_value
from jobs.calibrate import machine as calibrate
from jobs.ledger.ledger import Batch, State
from jobs.ledger.queries import BEFORE_ALL, Standing, text_since
from jobs.storage import tables
from optimizer.choice.consider import PINNED, Costs, consider, with_width
from optimizer.choice.decide import DEFAULT as RULES
from optimizer.choice.decide import Decision, Past
from optimizer.choice.parallelism import Parallelism
from optimizer.cost.features import Features, building, steady
from optimizer.cost.fitting import fit
from optimizer.cost.measured import Coefficients, Measurement
from optimizer.cost.measured import read as cost_document
from optimizer.cost.measured import seconds
from optimizer.papers.document import read, written
from optimizer.papers.symbols import symbols
from optimizer.papers.symbols import told as by_file
from optimizer.plan.model import Plan, default, leanest, named
from optimizer.query.model import Query
from optimizer.sharing.ways import said
from optimizer.statistics.observed import Observed

if TYPE_CHECKING:
    from jobs.ledger.open_pipeline import OpenPipeline

PATH = "ledger/decisions"
STAMP = pa.timestamp("us", "UTC")
DECISIONS = pa.schema([("boundary", STAMP), ("query", pa.string()), ("plan", pa.string()), ("form", pa.string()), ("switched_from", pa.string()),
                       ("predicted_s", pa.float64()), ("best_s", pa.float64()), ("reason", pa.string()), ("rows_seen", pa.float64()),
                       ("candidates", pa.string()), ("corrections", pa.string()), ("at", STAMP)])
COSTS_PATH = "ledger/costs"
COSTS = pa.schema([("at", STAMP), ("measurements", pa.int64()), ("machine", pa.string()), ("document", pa.string())])
MANY = 64               # files of decisions before they are merged
FITTED = 40             # measurements between two writings of fitted unit costs
KEPT = 30               # boundaries whose seconds are remembered of a plan
REMEMBERED = 100        # batches that a start looks back
COLD = 2.0              # times its price beyond which a process's first batch tells what starting Spark costs, not what work costs
BEYOND_MEASURE = 1e6    # times its price: what a plan counts as that does not fit into memory
NEWS = 1.25             # a prediction that moved by this factor is written down again


@dataclass
class Memory:
    """One query's text: `seen` is the state of knowledge that the decision rests on, `said` the prediction that was last written down."""

    sql: str
    past: Past
    decision: Decision | None = None
    seen: tuple[Any, ...] | None = None
    observed: Observed | None = None
    said: float | None = None
    unwritten: bool = False


@dataclass(frozen=True)
class _Together:
    """With whom a query shares, and by which way its group's work is done, in words."""

    group: str
    way: str


@dataclass
class Choices:
    """What one process remembers; unit costs are fitted to the batches it runs."""

    coefficients: Coefficients
    written: int = 0
    warm: bool = False      # whether this process has run a batch
    queries: dict[str, Memory] = field(default_factory=dict)
    shared: Mapping[str, _Together] | None = None      # of each query that shared in the last batch; None: not looked up yet


@dataclass
class Load:
    """How many tasks the present boundary has, and why if that changed."""

    parallel: Parallelism = Parallelism()


def of(rt: OpenPipeline) -> Choices:
    """What is remembered of this pipeline's choices; after a start as the last process left it."""
    if Choices not in rt.memories:
        rt.memories[Choices] = made(rt)
    choices: Choices = rt.memories[Choices]
    return choices


def made(rt: OpenPipeline) -> Choices:
    """As the last process left it, if it ran on a machine like this one."""
    place, here = rt.path(COSTS_PATH), _here()
    kept = [row for row in tables.open_table(place).rows().to_pylist() if row["machine"] == here] if tables.exists(place) else []
    newest = max(kept, key=lambda row: row["measurements"], default=None)
    return Choices(calibrate.coefficients() if newest is None else cost_document(json.loads(newest["document"])))


def plan(rt: OpenPipeline, standing: Standing, state: State | None) -> Plan:
    """The plan for the next batch; decided anew if there is news."""
    query = parsed(standing.sql, rt.catalog)
    memory = of(rt).queries.get(standing.name)
    if memory is None or memory.sql != standing.sql:
        memory = of(rt).queries[standing.name] = _remembered(rt, standing, state)
    observed = statistics.observed(rt, standing.name, query) or statistics.sampled(rt, query)
    pin = None if standing.pin is None or _too_large(memory.past, standing.pin) else standing.pin
    if observed.weight <= 0 and memory.decision is None:
        return named(query, pin) if pin else default(query)
    news = (standing.sql, pin, standing.since, observed.at, rt.memory(Load).parallel.parts)
    if memory.decision is None or memory.seen != news and observed.weight > 0:
        memory.observed, memory.seen = observed, news
        _decided(memory, consider(query, observed, costs(rt), memory.past, only=pin))
    assert memory.decision is not None
    if rt.memory(Load).parallel.reason is not None:
        memory.decision, memory.unwritten = replace(memory.decision, reason=f"{memory.decision.reason}; {rt.memory(Load).parallel.reason}"), True
    return memory.decision.plan


def too_large(rt: OpenPipeline, standing: Standing, state: State | None, error: Exhausted) -> Plan | None:
    """The plan to take instead of one that did not fit into its tasks' memory, entered as a decision; None if that was it already.

    The plan that was left counts as dear beyond measure for as long as corrections are remembered, also where it is pinned."""
    query = parsed(standing.sql, rt.catalog)
    memory = of(rt).queries.get(standing.name)
    if memory is None or memory.sql != standing.sql:
        memory = of(rt).queries[standing.name] = _remembered(rt, standing, state)
    plan = leanest(query)
    if error.plan == plan.name and (_too_large(memory.past, plan.name) or plan == default(query)):
        return None
    corrections = {**memory.past.corrections, error.plan: (BEYOND_MEASURE, 0)}
    reason = f"{error.plan} does not fit into a task's memory ({rt.tasks.memory}), in however many parts: this plan needs the least"
    memory.past = Past(plan, 0, error.plan, (), None, corrections)
    memory.decision = Decision(plan, named(query, error.plan), reason, None, (), corrections)
    memory.unwritten = True
    return plan


def _too_large(past: Past, name: str) -> bool:
    return past.corrections.get(name, (1.0, 0))[0] >= BEYOND_MEASURE


def costs(rt: OpenPipeline, model: str = "measured", told: Any = None) -> Costs:
    return with_width(Costs(of(rt).coefficients, model=model, statistics=told), rt.memory(Load).parallel.parts or _last_parts(rt) or rt.tasks.expected)


def _last_parts(rt: OpenPipeline) -> int:
    last = rt.ledger.last()
    return last[1].parts if last else 0


def _decided(memory: Memory, decision: Decision) -> None:
    """A switch begins a new count; what the plan before it cost, measured against predicted, is kept for judging it."""
    past = memory.past
    if decision.plan != past.plan:
        predicted = memory.decision.predicted if memory.decision else None
        ratio = median_high(past.measured) / predicted if past.measured and predicted else None
        past = Past(decision.plan, 0, past.plan.name if past.plan else None, (), ratio, decision.corrections)
        memory.unwritten = True
    memory.past = replace(past, corrections=decision.corrections)
    moved = memory.said is None or decision.predicted is None or not 1 / NEWS < decision.predicted / max(memory.said, 1e-9) < NEWS
    unpinned = memory.decision is not None and (memory.decision.reason == PINNED) != (decision.reason == PINNED)
    memory.unwritten |= moved or unpinned
    memory.decision = decision


def _remembered(rt: OpenPipeline, standing: Standing, state: State | None) -> Memory:
    """After a start, or for a text that replaced another: the plan in force is the state's, its boundaries' seconds are in the ledger,
    corrections in the last decision. What was there before the text was is another question's."""
    began = text_since(rt.ledger.all_changes(), standing.name)
    if state is None or state.at < began:
        return Memory(standing.sql, Past())
    current, last = plan_from(state.plan), _last(rt, standing.name, began)
    since, measured = 0, list[float]()
    for entry in reversed(rt.ledger.told(REMEMBERED)):
        if entry.plans.get(standing.name) != current.name or entry.first < began:
            break
        since += entry.boundaries
        if entry.boundaries == 1 and standing.name in entry.measured and len(measured) < KEPT:
            measured.append(entry.measured[standing.name])
    corrections = {name: (factor, since) for name, (factor, since) in json.loads(last["corrections"]).items()} if last else {}
    before = last["switched_from"] if last and last["plan"] == current.name else None
    return Memory(standing.sql, Past(current, since, before, tuple(reversed(measured)), None, corrections), said=last["predicted_s"] if last else None)


def learn(rt: OpenPipeline, answers: list[Answer], took: float) -> dict[str, float]:
    """What a batch took, per query: unit costs are fitted to it, and its plan is judged by it. Gives what the ledger keeps."""
    found = {}
    cold, of(rt).warm = not of(rt).warm, True
    for answer in (a for a in answers if a.failed is None and a.seconds > 0):
        memory = of(rt).queries.get(answer.work.name)
        found[answer.work.name] = answer.seconds
        if memory is None:
            continue
        if answer.work.plan == memory.past.plan:
            memory.past = _passed(memory.past, len(answer.work.due))
        if memory.observed is None or len(answer.work.due) != 1:
            continue
        amounts = _amounts(answer, memory.observed)
        known = of(rt).coefficients
        if cold and took > COLD * len(answers) * seconds(amounts.total, known):
            continue
        lasting = [Measurement(amounts.in_task, answer.seconds)]
        if len(answers) == 1:
            lasting.append(Measurement({k: v for k, v in amounts.total.items() if k not in amounts.in_task}, max(took - answer.seconds, 0.0)))
        of(rt).coefficients = fit(known, lasting)
        outside = seconds(amounts.total, known) - seconds(amounts.in_task, known)
        if answer.work.plan == memory.past.plan and not answer.anew:
            memory.past = replace(memory.past, measured=(*memory.past.measured, answer.seconds + outside)[-KEPT:])
    return found


def _passed(past: Past, boundaries: int) -> Past:
    corrections = {name: (factor, since + boundaries) for name, (factor, since) in past.corrections.items() if since < RULES.memory}
    return replace(past, since=past.since + boundaries, corrections=corrections)


def _amounts(answer: Answer, observed: Observed) -> Features:
    work = answer.work
    make = building if answer.anew else steady
    return make(work.query, work.plan, observed, work.parts)


def write(rt: OpenPipeline, batch: Batch) -> None:
    """Decisions that say something new become rows; losing one in a crash loses no answer."""
    _write_costs(rt)
    rows = _shared_rows(rt, batch)
    rows += [_row(rt, name, memory, batch.boundaries[0]) for name, memory in of(rt).queries.items() if memory.unwritten and name in batch.plans]
    if not rows:
        return
    rt.table(PATH, DECISIONS).append(pa.Table.from_pylist(rows, schema=DECISIONS), most=MANY)
    for memory in of(rt).queries.values():
        if memory.unwritten and memory.decision is not None:
            memory.said, memory.unwritten = memory.decision.predicted, False


def begin(rt: OpenPipeline, last: Batch | None) -> None:
    """Before the first batch of a process: who shared in the last one, and how, was written down then."""
    if of(rt).shared is None:
        of(rt).shared = _together(last) if last is not None else {}


def _together(batch: Batch) -> dict[str, _Together]:
    return {n: _Together(group, said(plan_from(batch.plans[n]))) for group, names in batch.shared.items() for n in names}


def _shared_rows(rt: OpenPipeline, batch: Batch) -> list[dict[str, Any]]:
    """Of queries that share since this batch, with others than before, or in another way; who leaves has its own decision written down again."""
    before, now = of(rt).shared or {}, _together(batch)
    for name in before.keys() - now.keys():
        if name in of(rt).queries:
            of(rt).queries[name].unwritten = of(rt).queries[name].decision is not None
    of(rt).shared = now
    return [_shared_row(rt, n, batch, entry) for n, entry in now.items() if before.get(n) != entry]


def _shared_row(rt: OpenPipeline, name: str, batch: Batch, entry: _Together) -> dict[str, Any]:
    group, told, plan = entry.group, batch.weighed.get(entry.group, {}), batch.plans[name]
    prices = f": {told['together_s']:.2f} s a boundary together, {told['apart_s']:.2f} s apart" if told else ""
    reason = f"one work answers {len(batch.shared[group])} queries, {entry.way}{prices}"
    predicted = told["together_s"] / len(batch.shared[group]) if told else None
    return {"boundary": batch.boundaries[0], "query": name, "plan": plan["name"], "form": json.dumps(plan), "switched_from": None, "predicted_s": predicted,
            "best_s": None, "reason": reason, "rows_seen": 0.0, "candidates": "[]", "corrections": "{}", "at": rt.clock()}


def _here() -> str:
    return json.dumps(calibrate.machine(), sort_keys=True)


def _write_costs(rt: OpenPipeline) -> None:
    """The fitted unit costs now and then, in the place of those before: a file, not a history."""
    known = of(rt).coefficients
    if known.measurements < of(rt).written + FITTED:
        return
    table = rt.table(COSTS_PATH, COSTS)
    row = {"at": rt.clock(), "measurements": known.measurements, "machine": _here(), "document": json.dumps(known.document())}
    old = [f.path for f in table.files()]
    table.commit([tables.write(table.path, pa.Table.from_pylist([row], schema=COSTS), tables.unique("costs"))], old)
    of(rt).written = known.measurements


def _row(rt: OpenPipeline, name: str, memory: Memory, boundary: int) -> dict[str, Any]:
    decision = memory.decision
    assert decision is not None
    sound = [c for c in decision.candidates if c.refused is None]
    listed = [{"plan": c.plan.name, "predicted_s": c.seconds, "state_rows": c.state_rows, "paper_cost": c.paper} for c in sound]
    return {"boundary": boundary, "query": name, "plan": decision.plan.name, "form": json.dumps(plan_value(decision.plan)),
            "switched_from": decision.switched_from.name if decision.switched_from else None, "predicted_s": decision.predicted, "best_s": decision.best,
            "reason": decision.reason, "rows_seen": memory.observed.weight if memory.observed else 0.0, "candidates": json.dumps(listed),
            "corrections": json.dumps(decision.corrections), "at": rt.clock()}


def rows(rt: OpenPipeline, name: str) -> list[dict[str, Any]]:
    """The decisions about a query that were written down, oldest first; `boundary` in microseconds."""
    place = rt.path(PATH)
    if not tables.exists(place):
        return []
    found = tables.open_table(place).rows()      # filtered as Python values: Arrow's own filters, and instants, make it import pandas
    times = found.column("boundary").cast(pa.int64()).to_pylist()
    said = found.drop_columns(["boundary", "at"]).to_pylist()
    return sorted(({**row, "boundary": t} for row, t in zip(said, times) if row["query"] == name), key=lambda row: row["boundary"])


def in_force(rows: list[dict[str, Any]], boundary: int, plan: str, since: int = BEFORE_ALL) -> dict[str, Any] | None:
    """The decision that held at a boundary, if it is the one for the plan that ran there; plans of a text before `since` have the same names."""
    row = next((r for r in reversed(rows) if r["boundary"] <= boundary), None)
    return row if row is not None and row["plan"] == plan and row["boundary"] >= since else None


def _last(rt: OpenPipeline, name: str, since: int) -> dict[str, Any] | None:
    return next((row for row in reversed(rows(rt, name)) if row["boundary"] >= since), None)


def considered(rt: OpenPipeline, query: Query, standing: Standing | None, told: Mapping[str, object] | None, model: str) -> tuple[Decision, Observed]:
    """What the next boundary would decide, by what is known or by what a file says; nothing is remembered of it."""
    state = (rt.ledger.last() or ("", None, {}))[2].get(standing.name) if standing else None
    past = _remembered(rt, standing, state).past if standing and not told else Past()
    known = (statistics.observed(rt, standing.name, query) if standing else None) or statistics.sampled(rt, query)
    observed = by_file(query, read(told, query, symbols(query, known) if known.weight else None), known) if told else known
    pin = standing.pin if standing else None
    return consider(query, observed, costs(rt, model, told), past, only=pin, everything=True), observed


def shown(query: Query, observed: Observed, rt: OpenPipeline, told: Mapping[str, object] | None) -> dict[str, object]:
    """The statistics that prices rest on: in the papers' symbols, as a file may give them, and how much they rest on."""
    document = written(read(told or {}, query, symbols(query, observed)))
    return {**document, "answer_groups": observed.groups, "rows_seen": observed.weight, "seen_at": observed.at, "unit_costs": of(rt).coefficients.source}
