"""Which plan each query has in the next batch: what ran so far is remembered, optimizer.choice.consider decides, the
ledger keeps the decision; no price is made here.

A decision is made anew when there are new statistics, and is part of the batch's intent, so a batch that is run again
runs the same plan. Everything remembered here can be read again from the ledger: the plan in force, what its boundaries
took, the last decision.
"""
from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median_high
from typing import Any

import pyarrow as pa

from jobs.adapt.statistics import Statistics
from jobs.batch.batch import Answer, Exhausted
from jobs.batch.works import parsed
from jobs.calibrate import machine as calibrate
from jobs.ledger.codec import encode_form
from jobs.ledger.entries import Batch, KeptState
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import BEFORE_ALL, QueryState, text_since
from jobs.storage import tables
from optimizer.choice.consider import PINNED, Costs, consider, with_width
from optimizer.choice.decide import DEFAULT as RULES
from optimizer.choice.decide import Decision, Past
from optimizer.choice.parallelism import Parallelism
from optimizer.cost.features import building, steady
from optimizer.cost.fitting import fit
from optimizer.cost.measured import Measurement, UnitCosts
from optimizer.cost.measured import read as cost_document
from optimizer.cost.measured import seconds
from optimizer.papers.document import read, written
from optimizer.papers.symbols import from_symbols, symbols
from optimizer.plan.model import Plan, default, leanest, named
from optimizer.query.model import Query
from optimizer.sharing.ways import in_words as way_in_words
from optimizer.statistics.model import QueryStatistics

PATH = "ledger/decisions"
STAMP = pa.timestamp("us", "UTC")
DECISIONS = pa.schema([("boundary", STAMP), ("query", pa.string()), ("plan", pa.string()), ("form", pa.string()),
                       ("switched_from", pa.string()), ("predicted_s", pa.float64()), ("best_s", pa.float64()),
                       ("reason", pa.string()), ("rows_seen", pa.float64()), ("candidates", pa.string()),
                       ("corrections", pa.string()), ("at", STAMP)])
COSTS_PATH = "ledger/costs"
COSTS = pa.schema([("at", STAMP), ("measurements", pa.int64()), ("machine", pa.string()), ("document", pa.string())])
MANY = 64               # files of decisions before they are merged
FITTED = 40             # measurements between two writings of fitted unit costs
KEPT = 30               # boundaries whose seconds are remembered of a plan
REMEMBERED = 100        # batches that a start looks back
# Times its price beyond which a process's first batch tells what starting Spark costs, not what work costs.
COLD = 2.0
BEYOND_MEASURE = 1e6    # times its price: what a plan counts as that does not fit into memory
NEWS = 1.25             # a prediction that moved by this factor is written down again


@dataclass
class QueryChoice:
    """What is remembered of the plan of one query's text: its past, the last decision, and what of it the ledger has.

    `QueryChoice(sql, Past())` is a text that never ran: its first decision is made without a plan to stay with.
    """

    sql: str
    past: Past
    decision: Decision | None = None
    basis: tuple[Any, ...] | None = None      # the state of knowledge that the decision rests on
    observed: QueryStatistics | None = None
    written_s: float | None = None            # the prediction that the ledger has
    unwritten: bool = False                   # whether the ledger lacks the decision

    def decide(self, decision: Decision) -> None:
        """A switch begins a new count.

        What the plan before it cost, measured against predicted, is kept for judging it.
        """
        past = self.past
        if decision.plan != past.plan:
            predicted = self.decision.predicted if self.decision else None
            ratio = median_high(past.measured) / predicted if past.measured and predicted else None
            past = Past(decision.plan, 0, past.plan.name if past.plan else None, (), ratio, decision.corrections)
            self.unwritten = True
        self.past = replace(past, corrections=decision.corrections)
        unpinned = self.decision is not None and (self.decision.reason == PINNED) != (decision.reason == PINNED)
        self.unwritten |= self._is_news(decision.predicted) or unpinned
        self.decision = decision

    def _is_news(self, predicted: float | None) -> bool:
        """Whether a prediction differs from the one that the ledger has."""
        if self.written_s is None or predicted is None:
            return True
        return not 1 / NEWS < predicted / max(self.written_s, 1e-9) < NEWS

    def give_reason(self, reason: str) -> None:
        """Adds to the decision why its work is divided among as many tasks as it is."""
        assert self.decision is not None
        self.decision = replace(self.decision, reason=f"{self.decision.reason}; {reason}")
        self.unwritten = True

    def leave(self, plan: Plan, query: Query, error: Exhausted, reason: str) -> None:
        """Takes another plan than the one that did not fit into memory.

        The plan that is left counts as dear beyond measure for as long as corrections are remembered, also where it is
        pinned.
        """
        corrections = {**self.past.corrections, error.plan: (BEYOND_MEASURE, 0)}
        self.past = Past(plan, 0, error.plan, (), None, corrections)
        self.decision = Decision(plan, named(query, error.plan), reason, None, (), corrections)
        self.unwritten = True

    def is_too_large(self, plan: str) -> bool:
        return self.past.corrections.get(plan, (1.0, 0))[0] >= BEYOND_MEASURE

    def measure(self, answer: Answer) -> None:
        """Its plan has answered so many boundaries more."""
        past, boundaries = self.past, len(answer.work.due)
        if answer.work.plan == past.plan:
            remembered = {name: (factor, since + boundaries) for name, (factor, since) in past.corrections.items()
                          if since < RULES.memory}
            self.past = replace(past, since=past.since + boundaries, corrections=remembered)

    def write(self) -> None:
        """The ledger has the decision."""
        if self.unwritten and self.decision is not None:
            self.written_s, self.unwritten = self.decision.predicted, False


@dataclass(frozen=True)
class SharedWork:
    """With whom a query shares, and by which way its group's work is done, in words."""

    group: str
    way: str


class Chooser:
    """What one process remembers of each query's plan, and the unit costs that it fits to the batches it runs.

    `Chooser(pipe, Statistics(pipe)).plan(query_state, kept_state, Parallelism())` is the plan for a query's next batch.
    """

    def __init__(self, pipe: OpenPipeline, statistics: Statistics) -> None:
        self.pipe = pipe
        self.statistics = statistics
        self.queries: dict[str, QueryChoice] = {}
        self.warm = False      # whether this process has run a batch
        self._coefficients: UnitCosts | None = None      # None: not looked up yet
        self._written = 0      # measurements behind the unit costs that were last written down
        # Of queries that shared in the last batch; None: not looked up yet.
        self._shared: Mapping[str, SharedWork] | None = None

    @property
    def coefficients(self) -> UnitCosts:
        """As the last process left them, if it ran on a machine like this one, and fitted since."""
        if self._coefficients is None:
            self._coefficients = last_coefficients(self.pipe)
        return self._coefficients

    def plan(self, query_state: QueryState, state: KeptState | None, parallel: Parallelism) -> Plan:
        """The plan for the next batch; decided anew if there is news."""
        query = parsed(query_state.sql, self.pipe.catalog)
        choice = self._choice_of(query_state, state)
        observed = self.statistics.observed(query_state.name, query) or self.statistics.first_look(query)
        pin = None if query_state.pin is None or choice.is_too_large(query_state.pin) else query_state.pin
        if observed.weight <= 0 and choice.decision is None:
            return named(query, pin) if pin else default(query)
        basis = (query_state.sql, pin, query_state.since, observed.at, parallel.parts)
        if choice.decision is None or choice.basis != basis and observed.weight > 0:
            choice.observed, choice.basis = observed, basis
            choice.decide(consider(query, observed, self.costs(parallel.parts), choice.past, only=pin))
        if parallel.reason is not None:
            choice.give_reason(parallel.reason)
        assert choice.decision is not None
        return choice.decision.plan

    def _choice_of(self, query_state: QueryState, state: KeptState | None) -> QueryChoice:
        choice = self.queries.get(query_state.name)
        if choice is None or choice.sql != query_state.sql:
            choice = self.queries[query_state.name] = remembered(self.pipe, query_state, state)
        return choice

    def too_large(self, query_state: QueryState, state: KeptState | None, error: Exhausted) -> Plan | None:
        """The plan to take instead of one that did not fit into its tasks' memory; None if that was it already."""
        query = parsed(query_state.sql, self.pipe.catalog)
        choice, plan = self._choice_of(query_state, state), leanest(query)
        if error.plan == plan.name and (choice.is_too_large(plan.name) or plan == default(query)):
            return None
        memory = self.pipe.tasks.memory
        reason = (f"{error.plan} does not fit into a task's memory ({memory}), in however many parts: "
                  "this plan needs the least")
        choice.leave(plan, query, error, reason)
        return plan

    def costs(self, parts: int = 0, model: str = "measured", statistics: Any = None) -> Costs:
        """Prices for work that so many tasks share; 0: as many as at the last boundary."""
        last = self.pipe.ledger.last()
        width = parts or (last.batch.parts if last else 0) or self.pipe.tasks.expected
        return with_width(Costs(self.coefficients, model=model, statistics=statistics), width)

    def learn(self, answers: list[Answer], took: float) -> dict[str, float]:
        """What a batch took, per query: unit costs are fitted to it, and its plan is judged by it.

        Gives what the ledger keeps.
        """
        cold, self.warm = not self.warm, True
        answered = [answer for answer in answers if answer.failed is None and answer.seconds > 0]
        for answer in answered:
            choice = self.queries.get(answer.work.name)
            if choice is not None:
                choice.measure(answer)
                if choice.observed is not None and len(answer.work.due) == 1:
                    self._fit(choice, choice.observed, answer, took, cold, len(answers))
        return {answer.work.name: answer.seconds for answer in answered}

    def _fit(self, choice: QueryChoice, observed: QueryStatistics, answer: Answer, took: float, cold: bool,
             count: int) -> None:
        """`count` queries were answered in `took` seconds.

        The first batch of a process may tell what starting Spark costs, and not what work costs.
        """
        work, before = answer.work, self.coefficients
        amounts = (building if answer.anew else steady)(work.query, work.plan, observed, work.parts)
        if cold and took > COLD * count * seconds(amounts.total, before):
            return
        lasting = [Measurement(amounts.in_task, answer.seconds)]
        if count == 1:
            outside_tasks = {kind: amount for kind, amount in amounts.total.items() if kind not in amounts.in_task}
            lasting.append(Measurement(outside_tasks, max(took - answer.seconds, 0.0)))
        self._coefficients = fit(before, lasting)
        outside = seconds(amounts.total, before) - seconds(amounts.in_task, before)
        if answer.work.plan == choice.past.plan and not answer.anew:
            choice.past = replace(choice.past, measured=(*choice.past.measured, answer.seconds + outside)[-KEPT:])

    def begin(self, last: Batch | None) -> None:
        """Before the first batch of a process: who shared in the last one, and how, was written down then."""
        if self._shared is None:
            self._shared = _shared_works(last) if last is not None else {}

    def write(self, batch: Batch) -> None:
        """Decisions that say something new become rows; losing one in a crash loses no answer."""
        self._write_costs()
        rows = self._shared_rows(batch)
        rows += [_row(self.pipe, name, choice, batch.boundaries[0]) for name, choice in self.queries.items()
                 if choice.unwritten and name in batch.plans]
        if rows:
            table = self.pipe.table(PATH, DECISIONS)
            table.append(pa.Table.from_pylist(rows, schema=DECISIONS), most=MANY)
            for choice in self.queries.values():
                choice.write()

    def _shared_rows(self, batch: Batch) -> list[dict[str, Any]]:
        """Of queries that share since this batch, with others than before, or in another way.

        The decision on a query that leaves its group is written once more.
        """
        before, now = self._shared or {}, _shared_works(batch)
        for name in before.keys() - now.keys():
            if name in self.queries:
                self.queries[name].unwritten = self.queries[name].decision is not None
        self._shared = now
        return [_shared_row(self.pipe, n, batch, work) for n, work in now.items() if before.get(n) != work]

    def _write_costs(self) -> None:
        """The fitted unit costs now and then, in the place of those before: a file, not a history."""
        fitted = self.coefficients
        if fitted.measurements < self._written + FITTED:
            return
        table = self.pipe.table(COSTS_PATH, COSTS)
        row = {"at": self.pipe.clock(), "measurements": fitted.measurements, "machine": _here(),
               "document": json.dumps(fitted.document())}
        rows = pa.Table.from_pylist([row], schema=COSTS)
        files_before = [file.path for file in table.files()]
        table.commit([tables.write(table.path, rows, tables.unique("costs"))], files_before)
        self._written = fitted.measurements

    def considered(self, query: Query, query_state: QueryState | None, statistics: Mapping[str, object] | None,
                   model: str) -> tuple[Decision, QueryStatistics]:
        """What the next boundary would decide, by what is known or by what a file says; nothing is remembered of it."""
        past, last = Past(), self.pipe.ledger.last()
        if query_state and not statistics:
            past = remembered(self.pipe, query_state, last.states.get(query_state.name) if last else None).past
        sampled = self.statistics.observed(query_state.name, query) if query_state else None
        observed = sampled or self.statistics.first_look(query)
        if statistics:
            document = read(statistics, query, symbols(query, observed) if observed.weight else None)
            observed = from_symbols(query, document, observed)
        pin = query_state.pin if query_state else None
        return consider(query, observed, self.costs(0, model, statistics), past, only=pin, everything=True), observed

    def shown(self, query: Query, observed: QueryStatistics,
              statistics: Mapping[str, object] | None) -> dict[str, object]:
        """The statistics that prices rest on, in the papers' symbols as a file may give them, and their origin."""
        document = written(read(statistics or {}, query, symbols(query, observed)))
        return {**document, "answer_groups": observed.groups, "rows_seen": observed.weight, "seen_at": observed.at,
                "unit_costs": self.coefficients.source}


def last_coefficients(pipe: OpenPipeline) -> UnitCosts:
    """As the last process left them, if it ran on a machine like this one; else this machine's."""
    place, here = pipe.path(COSTS_PATH), _here()
    rows = tables.open_table(place).rows().to_pylist() if tables.exists(place) else []
    newest = max((row for row in rows if row["machine"] == here), key=lambda row: row["measurements"], default=None)
    return calibrate.coefficients() if newest is None else cost_document(json.loads(newest["document"]))


def remembered(pipe: OpenPipeline, query_state: QueryState, state: KeptState | None) -> QueryChoice:
    """What is remembered after a start, or for a text that replaced another.

    The plan in force is the state's, its boundaries' seconds are in the ledger, corrections in the last decision.
    Whatever is older than the text belongs to another query of that name.
    """
    began = text_since(pipe.ledger.all_changes(), query_state.name)
    if state is None or state.as_of < began:
        return QueryChoice(query_state.sql, Past())
    current = state.plan
    last = next((row for row in reversed(rows(pipe, query_state.name)) if row["boundary"] >= began), None)
    since, measured = 0, list[float]()
    for entry in reversed(pipe.ledger.committed_batches(REMEMBERED)):
        if entry.plan_names.get(query_state.name) != current.name or entry.first_boundary < began:
            break
        since += entry.boundary_count
        if entry.boundary_count == 1 and query_state.name in entry.task_seconds and len(measured) < KEPT:
            measured.append(entry.task_seconds[query_state.name])
    corrections = json.loads(last["corrections"]) if last else {}
    plan_before = last["switched_from"] if last and last["plan"] == current.name else None
    past = Past(current, since, plan_before, tuple(reversed(measured)), None,
                {name: (factor, age) for name, (factor, age) in corrections.items()})
    return QueryChoice(query_state.sql, past, written_s=last["predicted_s"] if last else None)


def _shared_works(batch: Batch) -> dict[str, SharedWork]:
    """By name, of each query that shares in the batch."""
    works = {}
    for group, names in batch.query_groups.items():
        for name in names:
            works[name] = SharedWork(group, way_in_words(batch.plans[name]))
    return works


def _shared_row(pipe: OpenPipeline, name: str, batch: Batch, work: SharedWork) -> dict[str, Any]:
    plan, count = batch.plans[name], len(batch.query_groups[work.group])
    prices, priced, predicted = batch.query_group_prices.get(work.group), "", None
    if prices is not None and prices.together_s is not None and prices.apart_s is not None:
        priced = f": {prices.together_s:.2f} s a boundary together, {prices.apart_s:.2f} s apart"
        predicted = prices.together_s / count
    return {"boundary": batch.boundaries[0], "query": name, "plan": plan.name, "form": encode_form(plan),
            "switched_from": None, "predicted_s": predicted, "best_s": None,
            "reason": f"one work answers {count} queries, {work.way}{priced}", "rows_seen": 0.0, "candidates": "[]",
            "corrections": "{}", "at": pipe.clock()}


def _here() -> str:
    return json.dumps(calibrate.machine(), sort_keys=True)


def _row(pipe: OpenPipeline, name: str, choice: QueryChoice, boundary: int) -> dict[str, Any]:
    decision = choice.decision
    assert decision is not None
    sound = [c for c in decision.candidates if c.refused is None]
    candidates = [{"plan": c.plan.name, "predicted_s": c.seconds, "state_rows": c.state_rows, "paper_cost": c.paper}
                  for c in sound]
    return {"boundary": boundary, "query": name, "plan": decision.plan.name, "form": encode_form(decision.plan),
            "switched_from": decision.switched_from.name if decision.switched_from else None,
            "predicted_s": decision.predicted, "best_s": decision.best, "reason": decision.reason,
            "rows_seen": choice.observed.weight if choice.observed else 0.0,
            "candidates": json.dumps(candidates), "corrections": json.dumps(decision.corrections), "at": pipe.clock()}


def rows(pipe: OpenPipeline, name: str) -> list[dict[str, Any]]:
    """The decisions about a query that were written down, oldest first; `boundary` in microseconds."""
    place = pipe.path(PATH)
    if not tables.exists(place):
        return []
    # Filtered as Python values: Arrow's own filters, and instants, make it import pandas.
    all_rows = tables.open_table(place).rows()
    boundaries = all_rows.column("boundary").cast(pa.int64()).to_pylist()
    decisions = all_rows.drop_columns(["boundary", "at"]).to_pylist()
    of_query = [{**row, "boundary": t} for row, t in zip(decisions, boundaries) if row["query"] == name]
    return sorted(of_query, key=lambda row: row["boundary"])


def in_force(rows: list[dict[str, Any]], boundary: int, plan: str, since: int = BEFORE_ALL) -> dict[str, Any] | None:
    """The decision that held at a boundary, if it is the one for the plan that ran there.

    Plans of a text before `since` have the same names.
    """
    row = next((r for r in reversed(rows) if r["boundary"] <= boundary), None)
    return row if row is not None and row["plan"] == plan and row["boundary"] >= since else None
