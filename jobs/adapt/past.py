"""What is remembered of the plan of one query's text, and how a process that starts reads it again from the ledger:
the plan in force, what its boundaries took, the last decision; nothing is priced here.
"""
from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median_high
from typing import Any

from jobs.adapt import decisions_table
from jobs.adapt.statistics import EVERY
from jobs.batch.batch import Answer, Exhausted
from jobs.ledger.entries import CommittedBatch, KeptState
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import QueryState, text_since
from optimizer.choice.consider import PINNED
from optimizer.choice.decide import BEYOND_MEASURE
from optimizer.choice.decide import DEFAULT as RULES
from optimizer.choice.decide import Decision, Past, Tried, over_price
from optimizer.plan.model import Plan, named, refusal
from optimizer.query.model import Query
from optimizer.query.shape import shape
from optimizer.statistics.model import QueryStatistics

KEPT = 30               # boundaries whose seconds are remembered of a plan
REMEMBERED = 100        # batches that a start looks back
NEWS = 1.25             # a prediction that moved by this factor is written down again
STAYS = "as it was when the process started"
Outside = Callable[[str], float]      # seconds that a plan, by name, takes outside of tasks


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
    followed: int | None = None               # from which boundary on the request was that it last followed or refused

    def decide(self, decision: Decision) -> None:
        """A switch begins a new count.

        What the plan before it cost, measured against predicted, is kept for judging it.
        """
        past = self.past
        if decision.plan != past.plan:
            predicted = self.decision.predicted if self.decision else self.written_s
            ratio = decision.ratio_before or over_price(past, predicted or 0.0)
            past = _after_switch(past, decision, ratio)
            self.unwritten = True
        elif decision.tried != (past.tried.plan if past.tried else None):
            past = replace(past, tried=Tried(decision.tried) if decision.tried else None)
            self.unwritten = True
        self.past = replace(past, corrections=decision.corrections, judged=past.judged or past.can_be_judged(RULES))
        unpinned = self.decision is not None and (self.decision.reason == PINNED) != (decision.reason == PINNED)
        self.unwritten |= self._is_news(decision.predicted) or unpinned
        self.decision = decision

    @property
    def wants_tried(self) -> Tried | None:
        """The plan to try in the next batch, beside the one in force."""
        return self.past.tried if self.past.tried and not self.past.tried.failed else None

    def try_nothing(self) -> None:
        """Whatever was tried is left without a word: its query is pinned."""
        self.past = replace(self.past, tried=None)

    def stay(self) -> None:
        """The plan in force goes on, as the ledger has it: nobody has decided anything since the process started."""
        assert self.past.plan is not None
        self.decision = Decision(self.past.plan, None, STAYS, self.written_s, (), self.past.corrections,
                                 self.past.tried.plan if self.past.tried else None)

    def refuse(self, plan: Plan, reason: str) -> None:
        """A plan that was decided elsewhere cannot be followed; the one in force stays."""
        if self.decision is None and self.past.plan is not None:
            self.stay()
        if self.decision is not None:
            self.give_reason(f"{plan.name}, as decided, is refused: {reason}")

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
        if answer.work.plan == past.plan and not answer.work.is_tried:
            remembered = {name: (factor, since + boundaries) for name, (factor, since) in past.corrections.items()
                          if since < RULES.memory}
            self.past = replace(past, since=past.since + boundaries, corrections=remembered)

    def write(self) -> None:
        """The ledger has the decision."""
        if self.unwritten and self.decision is not None:
            self.written_s, self.unwritten = self.decision.predicted, False


def _after_switch(past: Past, decision: Decision, ratio: float | None) -> Past:
    """A plan that was tried has been judged."""
    was_tried = past.tried is not None and past.tried.plan == decision.plan
    return Past(decision.plan, 0, past.plan.name if past.plan else None, (), ratio, decision.corrections, was_tried)


def unfit(query: Query, plan: Plan) -> str | None:
    """Why the plan, which was made at another time, cannot answer the query; None if it can."""
    if len(plan.digits) != len(query.inputs):
        return f"it is a plan of {len(plan.digits)} inputs, and the query has {len(query.inputs)}"
    return refusal(shape(query), plan)


@dataclass(frozen=True)
class History:
    """What the ledger tells of all queries: decisions by query, and the last batches; `history(pipe)` reads it."""

    decisions: Mapping[str, list[dict[str, Any]]]
    batches: Sequence[CommittedBatch]


def history(pipe: OpenPipeline) -> History:
    """Read once by who asks about many queries."""
    return History(decisions_table.rows_by_query(pipe), pipe.ledger.committed_batches(REMEMBERED))


def remembered(pipe: OpenPipeline, query_state: QueryState, state: KeptState | None,
               outside: Outside = lambda _: 0.0, told: History | None = None) -> QueryChoice:
    """What is remembered after a start, or for a text that replaced another.

    The plan in force is the state's, its boundaries' seconds are in the ledger, corrections in the last decision.
    Whatever is older than the text belongs to another query of that name. `outside` are the seconds that a plan, by
    name, takes outside of tasks, of which the ledger tells nothing.
    """
    began = text_since(pipe.ledger.all_changes(), query_state.name)
    if state is None or state.as_of < began:
        return QueryChoice(query_state.sql, Past())
    current, told = state.plan, told or history(pipe)
    written = [row for row in told.decisions.get(query_state.name, []) if row["boundary"] >= began]
    last = written[-1] if written else None
    between_decisions = 1 if pipe.pipeline.decide == "task" else EVERY
    stretch, before = _stretches(told.batches, query_state.name, current.name, began, between_decisions)
    corrections = json.loads(last["corrections"]) if last else {}
    plan_before = before.plan or (last["switched_from"] if last and last["plan"] == current.name else None)
    ratio = None
    if plan_before is not None and before.measured:
        predicted = _predicted_when_left(written, current.name, plan_before)
        ratio = (median_high(before.measured) + outside(plan_before)) / predicted if predicted else None
    with_outside = outside(current.name) if stretch.measured else 0.0
    past = Past(current, stretch.boundaries, plan_before, tuple(s + with_outside for s in stretch.measured), ratio,
                {name: (factor, age) for name, (factor, age) in corrections.items()}, stretch.judged,
                _tried(pipe, query_state.name))
    return QueryChoice(query_state.sql, past, written_s=last["predicted_s"] if last else None)


def _tried(pipe: OpenPipeline, name: str) -> Tried | None:
    last = pipe.ledger.last()
    one = last.tried.get(name) if last is not None else None
    return one.tried if one is not None else None


def _predicted_when_left(written: list[dict[str, Any]], plan: str, before: str) -> float | None:
    """Seconds of the plan before, as they were predicted when it was left for this one; else as they last were."""
    newest_first = written[::-1]
    switch = next((row for row in newest_first if row["plan"] == plan and row["switched_from"] == before), None)
    candidates = json.loads(switch["candidates"]) if switch is not None else []
    seconds = [candidate["predicted_s"] for candidate in candidates if candidate["plan"] == before]
    seconds += [row["predicted_s"] for row in newest_first if row["plan"] == before]
    return next(iter(seconds), None)


@dataclass
class Stretch:
    """Batches in a row under one plan: `Stretch("LAP recompute", 12, [0.2, 0.3])`, the newest measured last.

    `judged`: it was measured so often that a decision came after the third time, and said what there was to say.
    """

    plan: str
    boundaries: int = 0
    measured: list[float] = field(default_factory=list)
    judged: bool = False


def _stretches(batches: Sequence[CommittedBatch], name: str, plan: str, began: int,
               between_decisions: int) -> tuple[Stretch, Stretch]:
    """The last batches that answered the query under this plan, and those before under another one.

    Of a plan that another one preceded, the first batch made its state and says nothing.
    """
    stretches = [Stretch(plan)]
    for entry in reversed(batches):
        ran = entry.plan_names.get(name)
        if ran is None or entry.first_boundary < began:
            break
        if ran != stretches[-1].plan:
            if len(stretches) == 2:
                break
            del stretches[-1].measured[-1:]
            stretches.append(Stretch(ran))
        stretches[-1].boundaries += entry.boundary_count
        if entry.boundary_count == 1 and name in entry.task_seconds:
            stretches[-1].measured.append(entry.task_seconds[name])
    for stretch in stretches:
        stretch.judged = len(stretch.measured) >= RULES.enough + between_decisions
        stretch.measured = stretch.measured[:KEPT][::-1]
    return stretches[0], stretches[1] if len(stretches) > 1 else Stretch("")
