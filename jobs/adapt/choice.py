"""Which plan each query has in the next batch: what ran so far is remembered, optimizer.choice.consider decides, the
ledger keeps the decision; no price is made here.

Where forebay.yml says `decide: batch` a decision is made anew when there are new statistics; with `decide: task` a
query's plan stays until a request of `forebay adapt` says another, but for its first one and for a switch that is
undone. It is part of the batch's intent, so a batch that is run again runs the same plan. Everything remembered here
can be read again from the ledger: the plan in force, what its boundaries took, the last decision.
"""
from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from jobs.adapt import decisions_table, unit_costs
from jobs.adapt.decisions_table import RULE, SharedWork, decision_row, shared_row, shared_works
from jobs.adapt.past import KEPT, History, Outside, QueryChoice, remembered, unfit
from jobs.adapt.statistics import Statistics
from jobs.adapt.unit_costs import last_coefficients
from jobs.batch.batch import Answer, Exhausted
from jobs.batch.works import parsed
from jobs.ledger.entries import Batch, KeptState, TriedPlan
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import QueryState
from optimizer.choice.consider import PINNED, Costs, consider, ended_try, judged_switch, with_width
from optimizer.choice.decide import DEFAULT as RULES
from optimizer.choice.decide import Decision, Past, Priced, Tried, comparable, over_price
from optimizer.choice.parallelism import Parallelism
from optimizer.cost.features import of_batch, of_run, steady
from optimizer.cost.fitting import NOISE, NOISE_OF_MANY, fit
from optimizer.cost.measured import Measurement, UnitCosts, seconds
from optimizer.cost.paper_constants import engine_constants
from optimizer.papers.document import read, written
from optimizer.papers.symbols import from_symbols, symbols
from optimizer.plan.model import Plan
from optimizer.plan.model import candidates as possible
from optimizer.plan.model import default, leanest, named
from optimizer.query.model import Query
from optimizer.statistics.emptying import windows_at
from optimizer.statistics.model import QueryStatistics

FITTED = 40             # measurements between two writings of fitted unit costs within a run
SETTLED = 60.0          # seconds between two at the ends of runs
# Times its price beyond which a process's first batch tells what starting Spark costs, not what work costs.
COLD = 2.0


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
        self._tries: set[str] = set()      # queries of which a plan is to be tried since the last batch
        self._written = 0      # measurements behind the unit costs that were last written down
        self._written_at: float | None = None      # by this process's clock
        # Of queries that shared in the last batch; None: not looked up yet.
        self._shared: Mapping[str, SharedWork] | None = None

    @property
    def coefficients(self) -> UnitCosts:
        """As the last process left them, if it ran on a machine like this one, and fitted since."""
        if self._coefficients is None:
            self._coefficients = last_coefficients(self.pipe)
            self._written = self._coefficients.measurements
        return self._coefficients

    def plan(self, query_state: QueryState, state: KeptState | None, parallel: Parallelism) -> Plan:
        """The plan for the next batch: as was requested, else decided anew if there is news and batches decide."""
        query = parsed(query_state.sql, self.pipe.catalog)
        observed = self.statistics.observed(query_state.name, query) or self.statistics.first_look(query)
        choice = self._choice_of(query_state, state, lambda plan: self._outside_tasks(query, plan, observed))
        pin = None if query_state.pin is None or choice.is_too_large(query_state.pin) else query_state.pin
        self._follow(query, query_state, state, choice)
        if pin is not None:
            choice.try_nothing()
        choice.past = replace(choice.past, allowance=self.allowance(query_state.name))
        basis = (pin, query_state.since, observed.at, parallel.parts)
        if self._end_try(query, choice, observed, parallel.parts):
            choice.observed, choice.basis = observed, basis
        elif self.pipe.pipeline.decide == "task":
            self._stay_unless_wrong(query, choice, observed, pin, parallel.parts)
        elif observed.weight <= 0 and choice.decision is None:
            return named(query, pin) if pin else default(query)
        else:
            if choice.decision is None or choice.basis != basis and observed.weight > 0:
                choice.observed, choice.basis = observed, basis
                choice.decide(consider(query, observed, self.costs(parallel.parts), choice.past, only=pin))
                self._tries |= {query_state.name} if choice.past.tried is not None else set()
        if parallel.reason is not None:
            choice.give_reason(parallel.reason)
        assert choice.decision is not None
        return choice.decision.plan

    def _follow(self, query: Query, query_state: QueryState, state: KeptState | None, choice: QueryChoice) -> None:
        """Takes the plan that was requested, once: what is decided later, as undoing it, is later than the request.

        A plan of a query group is none for a query that answers alone.
        """
        decided, since = query_state.decided, query_state.decided_from
        has_been_taken = choice.followed == since or _is_taken(query_state, state)
        if decided is None or decided.group is not None or query_state.pin is not None or has_been_taken:
            return
        choice.followed = since
        reason = unfit(query, decided.plan)
        if reason is None and choice.is_too_large(decided.plan.name):
            reason = f"it did not fit into a task's memory ({self.pipe.tasks.memory})"
        if reason is not None:
            choice.refuse(decided.plan, reason)
            return
        before = choice.past.plan
        switched_from = before if before is not None and before != decided.plan else None
        ratio = None
        if switched_from is not None:
            price = next((c.seconds for c in decided.candidates if c.name == switched_from.name), 0.0)
            ratio = over_price(comparable(choice.past, price, lambda work: seconds(work, self.coefficients)), price)
        plans = {candidate.plan.name: candidate.plan for candidate in possible(query)}
        candidates = tuple(Priced(plans[c.name], c.seconds, state_rows=c.state_rows, paper=c.paper)
                           for c in decided.candidates if c.name in plans)
        tried = decided.tried if decided.tried is not None and unfit(query, decided.tried) is None else None
        choice.decide(Decision(decided.plan, switched_from, decided.reason, decided.seconds, candidates,
                               choice.past.corrections, tried, ratio))
        choice.unwritten = True

    def _stay_unless_wrong(self, query: Query, choice: QueryChoice, observed: QueryStatistics, pin: str | None,
                           parts: int) -> None:
        """The plan in force stays, unless a switch to it was wrong; a query that has none gets its first."""
        choice.observed, current = observed, choice.past.plan
        if current is None or unfit(query, current) is not None or pin is not None and pin != current.name:
            if observed.weight > 0 or current is not None:
                choice.decide(consider(query, observed, self.costs(parts), choice.past, only=pin))
            else:
                plan = named(query, pin) if pin else default(query)
                choice.decide(Decision(plan, None, PINNED if pin else RULE, None))
        elif choice.decision is None:
            choice.stay()
        if pin is None and choice.past.can_be_judged(RULES):
            undone = judged_switch(query, observed, self.costs(parts), choice.past)
            choice.past = replace(choice.past, judged=True)
            if undone is not None:
                choice.decide(undone)

    def tried(self, names: Iterable[str]) -> dict[str, Tried]:
        """The plans to try in the next batch, by query: beside plans in force that run in tasks."""
        wanted = {}
        for name in names:
            choice = self.queries.get(name)
            if choice is not None and choice.wants_tried is not None and self.pipe.engine != "jvm":
                wanted[name] = choice.wants_tried
        return wanted

    def allowance(self, name: str) -> float:
        """Seconds that trying plans may take by now, for this query; one plan is tried at a time.

        Below 0 it is what was spent beyond the allowed share.
        """
        known, spent = self.pipe.ledger.known, self.pipe.ledger.time_spent()
        under_way = self._tries | (known.tried.keys() if known is not None else set())
        left = RULES.budget * spent.seconds - spent.trying
        return min(left, 0.0) if under_way - {name} else left

    def _end_try(self, query: Query, choice: QueryChoice, observed: QueryStatistics, parts: int) -> bool:
        """A plan that is tried goes on, or is left, once enough boundaries were measured; whether it has ended."""
        ended = ended_try(query, observed, self.costs(parts), choice.past) if choice.past.tried is not None else None
        if ended is not None:
            choice.decide(ended)
        return ended is not None

    def _outside_tasks(self, query: Query, plan: str, observed: QueryStatistics) -> float:
        """Seconds of a plan's batch that no task measures, as predicted; 0 of a plan that the query has no more."""
        candidate = next((c for c in possible(query) if c.plan.name == plan and c.refused is None), None)
        if candidate is None:
            return 0.0
        return seconds(steady(query, candidate.plan, observed).outside, self.coefficients)

    def _choice_of(self, query_state: QueryState, state: KeptState | None,
                   outside: Outside = lambda _: 0.0) -> QueryChoice:
        choice = self.queries.get(query_state.name)
        if choice is None or choice.sql != query_state.sql:
            choice = self.queries[query_state.name] = remembered(self.pipe, query_state, state, outside)
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

    def costs(self, parts: int = 0, model: str | None = None, statistics: Any = None) -> Costs:
        """Prices for work that so many tasks share; 0: as many as at the last boundary.

        The paper's constants are this engine's where the pipeline runs by the paper's model.
        """
        last, model_here = self.pipe.ledger.last(), self.pipe.pipeline.cost_model
        width = parts or (last.batch.parts if last else 0) or self.pipe.tasks.expected
        constants = engine_constants(self.coefficients) if model_here == "paper" else None
        costs = Costs(self.coefficients, statistics=statistics, model=model or model_here, constants=constants)
        return with_width(costs, width)

    def learn(self, answers: list[Answer], tried_answers: list[Answer], tried_plans: Mapping[str, TriedPlan],
              took: float) -> dict[str, float]:
        """What a batch took, per query: unit costs are fitted to it, and its plan is judged by it.

        Gives what the ledger keeps. `tried_plans` are as they stand after the batch, of which `tried_answers` tell what
        they took.
        """
        cold, self.warm = not self.warm, True
        answered = [answer for answer in (*answers, *tried_answers) if answer.failed is None and answer.seconds > 0]
        for answer in answered:
            choice = self.queries.get(answer.work.name)
            if choice is not None:
                choice.measure(answer)
                if choice.observed is not None:
                    self._fit(choice, choice.observed, answer, took, cold, len(answers) + len(tried_answers))
        for name, one in tried_plans.items():
            if name in self.queries:
                self.queries[name].past = replace(self.queries[name].past, tried=one.tried)
        self._tries = set()      # the ledger knows of them
        return {answer.work.label: answer.seconds for answer in answered}

    def _fit(self, choice: QueryChoice, observed: QueryStatistics, answer: Answer, took: float, cold: bool,
             count: int) -> None:
        """`count` queries were answered in `took` seconds, at one boundary or many.

        The first batch of a process may tell what starting Spark costs, and not what work costs.
        """
        work, before, boundaries = answer.work, self.coefficients, answer.computed
        observed = windows_at(work.query, observed, work.due[-1])
        amounts = of_batch(work.query, work.plan, observed, work.parts, boundaries, answer.anew, work.together)
        if work.runs > 1:
            amounts = of_run(work.query, work.plan, observed, work.runs, boundaries, work.together)
        if cold and took > COLD * count * seconds(amounts.total, before):
            return
        lasting = [Measurement(amounts.in_task, answer.seconds)]
        if count == 1:
            lasting.append(Measurement(amounts.outside, max(took - answer.seconds, 0.0)))
        self._coefficients = fit(before, lasting, NOISE if boundaries == 1 else NOISE_OF_MANY)
        if len(work.due) > 1:
            return
        if answer.work.plan == choice.past.plan and not answer.anew and not answer.work.is_tried:
            past, lasted = choice.past, answer.seconds + seconds(amounts.outside, before)
            choice.past = replace(past, measured=(*past.measured, lasted)[-KEPT:],
                                  works=(*past.works, amounts.total)[-KEPT:])

    def begin(self, last: Batch | None) -> None:
        """Before the first batch of a process: who shared in the last one, and how, was written down then."""
        if self._shared is None:
            self._shared = shared_works(last) if last is not None else {}

    def write(self, batch: Batch) -> None:
        """Decisions that say something new become rows; losing one in a crash loses no answer."""
        self._write_costs(FITTED)
        rows = self._shared_rows(batch)
        for name, choice in self.queries.items():
            if choice.unwritten and name in batch.plans and choice.decision is not None:
                rows_seen = choice.observed.weight if choice.observed else 0.0
                rows.append(decision_row(self.pipe, name, choice.decision, batch.boundaries[0], rows_seen))
        if rows:
            decisions_table.append(self.pipe, rows)
            for choice in self.queries.values():
                choice.write()

    def _shared_rows(self, batch: Batch) -> list[dict[str, Any]]:
        """Of queries that share since this batch, with others than before, or in another way.

        The decision on a query that leaves its group is written once more.
        """
        before, now = self._shared or {}, shared_works(batch)
        for name in before.keys() - now.keys():
            if name in self.queries:
                self.queries[name].unwritten = self.queries[name].decision is not None
        self._shared = now
        return [shared_row(self.pipe, n, batch, work) for n, work in now.items() if before.get(n) != work]

    def end(self) -> None:
        """After a run: what it has taught serves the next process, however few batches each one runs."""
        if self._written_at is None or time.monotonic() - self._written_at > SETTLED:
            self._write_costs(1)

    def _write_costs(self, least: int) -> None:
        """The fitted unit costs, if so many measurements are new."""
        fitted = self.coefficients
        if fitted.measurements < self._written + least:
            return
        unit_costs.write(self.pipe, fitted)
        self._written, self._written_at = fitted.measurements, time.monotonic()

    def considered(self, query: Query, query_state: QueryState | None, statistics: Mapping[str, object] | None,
                   model: str | None, past: Past | None = None) -> tuple[Decision, QueryStatistics]:
        """What would be decided now, by what is known or by what a file says; nothing is remembered of it.

        By another `model` than the pipeline's it is decided as if no plan were in force. `past`: as `past_of` gives it,
        if that has been asked.
        """
        if not query_state or statistics or model not in (None, self.pipe.pipeline.cost_model):
            past = Past()
        elif past is None:
            past = self.past_of(query, query_state)
        sampled = self.statistics.observed(query_state.name, query) if query_state else None
        observed = sampled or self.statistics.first_look(query)
        if statistics:
            document = read(statistics, query, symbols(query, observed) if observed.weight else None)
            observed = from_symbols(query, document, observed)
        pin = query_state.pin if query_state else None
        return consider(query, observed, self.costs(0, model, statistics), past, only=pin, everything=True), observed

    def past_of(self, query: Query, query_state: QueryState, told: History | None = None) -> Past:
        """The plan in force and what came of it, as the ledger tells; a requested one counts before it is followed."""
        last = self.pipe.ledger.last()
        state = last.states.get(query_state.name) if last else None
        observed = self.statistics.observed(query_state.name, query)
        outside = (lambda plan: self._outside_tasks(query, plan, observed)) if observed else (lambda _: 0.0)
        past = remembered(self.pipe, query_state, state, outside, told).past
        decided = query_state.decided
        if decided is None or query_state.pin is not None or _is_taken(query_state, state):
            return past
        if decided.plan == past.plan:
            return past if decided.tried is None else replace(past, tried=Tried(decided.tried))
        if decided.group is not None or unfit(query, decided.plan) is not None:
            return past
        return Past(decided.plan, before=past.plan.name if past.plan else None, corrections=past.corrections)

    def shown(self, query: Query, observed: QueryStatistics,
              statistics: Mapping[str, object] | None) -> dict[str, object]:
        """The statistics that prices rest on, in the papers' symbols as a file may give them, and their origin."""
        document = written(read(statistics or {}, query, symbols(query, observed)))
        return {**document, "answer_groups": observed.groups, "rows_seen": observed.weight, "seen_at": observed.at,
                "unit_costs": self.coefficients.source}


def _is_taken(query_state: QueryState, state: KeptState | None) -> bool:
    """Whether a boundary has come since the last decision on the query, which followed it or refused it."""
    return state is not None and state.as_of >= max(query_state.decided_from, 0)
