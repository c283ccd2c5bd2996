"""Many queries' answers from one work in one batch: its orders for tasks, then each query's rows from what they hand
over; it decides nothing, commits nothing.

A query that fails, or whose class holds a row that fails, is named and left out: it is run apart, where it fails (or
not) as if there were no others.
"""
from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import pyarrow as pa

from jobs.batch import quiet
from jobs.batch.orders import complete, located, points
from jobs.batch.works import Context, QueryWork, parsed, wide
from jobs.engine import kernel
from jobs.engine.work import TaskOrder, TaskResult
from jobs.ledger.entries import Batch, QueryGroupPrices
from jobs.ledger.queries import QueryState
from optimizer.plan.final import final
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import Plan
from optimizer.plan.operators.join import failing
from optimizer.plan.program import BEGINNING, Program
from optimizer.query.model import Catalog
from optimizer.query.shape import shape
from optimizer.sharing.counted import Tally, numbered, paper, tallied
from optimizer.sharing.expand import CLASS
from optimizer.sharing.family import Family, family_program
from optimizer.sharing.group import OWNER, Group, Template, forms, group
from optimizer.sharing.program import lowering, shared_program
from optimizer.sharing.ways import seconds as seconds_by_way

COUNTED = 5              # batches from one in which cells are counted to the next
LEAST_FACTOR = 0.01


@dataclass(frozen=True)
class Together:
    """A family of groups in one batch.

    Each of `works` is as if a group were one query: its first member's name stands for it.
    """

    name: str
    family: Family
    works: tuple[QueryWork, ...]
    query_states: Mapping[str, QueryState]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(n for g in self.family.groups for n in g.names)

    @cached_property
    def work_of(self) -> Mapping[str, QueryWork]:
        """Each member's group's."""
        return {n: work for g, work in zip(self.family.groups, self.works) for n in g.names}

    @property
    def streams(self) -> frozenset[str]:
        return frozenset(i.source for w in self.works for i in w.query.inputs if i.is_stream)


@dataclass(frozen=True)
class TemplateAnswers:
    """Answers of one template's members at the boundaries `due`, and what the join made of them: `partials` and
    `repeats` as of an Answer.
    """

    template: Template
    rows: pa.Table
    partials: pa.Table
    repeats: tuple[tuple[int, int], ...]
    due: tuple[int, ...]


@dataclass(frozen=True)
class Shared:
    """What came of it: rows of the members of each template, who has to run apart, the longest task's seconds; where
    cells were counted, what they say of equation (2) and of seconds by way."""

    together: Together
    made: tuple[TemplateAnswers, ...]
    apart: frozenset[str]
    seconds: float
    counted: QueryGroupPrices = QueryGroupPrices()

    @cached_property
    def rows(self) -> tuple[tuple[str, pa.Table], ...]:
        """By shared table."""
        return tuple(
            (table_of(self.together.query_states[m.template.members[0][0]].columns), m.rows) for m in self.made)

    @cached_property
    def answered(self) -> tuple[str, ...]:
        return tuple(n for n in self.together.names if n not in self.apart)


def digest(text: str) -> str:
    """A short name of a text that no other one has."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def table_of(columns: str) -> str:
    """The table in which queries with these columns (as the ledger writes them) have their answers while they share."""
    return f"results/shared-{digest(columns)}"


@lru_cache(maxsize=4096)
def grouped(texts: tuple[tuple[str, str], ...], catalog: Catalog) -> Group:
    """The group of these queries (name, text): made once for as long as its members stay."""
    return group({name: parsed(sql, catalog) for name, sql in texts})


@lru_cache(maxsize=64)
def family(texts: tuple[tuple[str, str], ...], catalog: Catalog) -> Family:
    """These queries, a group a form."""
    text, (found, _) = dict(texts), forms({name: parsed(sql, catalog) for name, sql in texts})
    return Family(tuple(grouped(tuple((n, text[n]) for n in names), catalog) for names in found))


@lru_cache(maxsize=64)
def planned(texts: tuple[tuple[str, str], ...], catalog: Catalog, plans: tuple[Plan, ...]) -> Family:
    """The same, each group by its plan."""
    return Family(tuple(replace(g, chosen=p) for g, p in zip(family(texts, catalog).groups, plans)))


def together(context: Context, batch: Batch, query_states: Mapping[str, QueryState]) -> list[Together]:
    """Every family of the batch that has a boundary to answer in it."""
    found = []
    for name, names in batch.query_groups.items():
        texts = tuple((n, query_states[n].sql) for n in names)
        plans = tuple(batch.plans[g.names[0]] for g in family(texts, context.catalog).groups)
        made = planned(texts, context.catalog, plans)
        works = tuple(_work(context, batch, g, query_states) for g in made.groups)
        if any(w.due for w in works):
            found.append(Together(name, made, works, {n: query_states[n] for n in names}))
    return found


def _work(context: Context, batch: Batch, made: Group, query_states: Mapping[str, QueryState]) -> QueryWork:
    due = tuple(t for t in batch.boundaries if t % made.common.every == 0)
    return QueryWork(query_states[made.names[0]], made.common, made.plan, due, BEGINNING, batch.boundaries[0],
                     made.plan.parts or wide(context, batch))


def watched(context: Context, asked: Together) -> list[QueryWork]:
    """The members of which samples are taken, one a join for all that have it: as if each ran alone."""
    found = {(w.query.inputs, w.query.equalities): w for w in reversed(asked.works) if w.due}
    return [replace(w, query=parsed(w.query_state.sql, context.catalog)) for w in reversed(found.values())]


def orders(context: Context, batch: Batch, asked: Together) -> list[TaskOrder]:
    """One for each task."""
    lows = tuple(
        lowering(g, parts=w.parts, complete=complete(context, w)) for g, w in zip(asked.family.groups, asked.works))
    todo, count = _points(context,
                          asked), batch.number % COUNTED == 0 or _prices(batch, asked).counted_times_rule is None
    return [
        _order(context, batch, asked, tuple(replace(low, part=part)
                                            for low in lows), todo, count)
        for part in range(asked.works[0].parts)
    ]


def _points(context: Context, asked: Together) -> tuple[int, ...]:
    """The boundaries that are computed for any group."""
    return tuple(sorted({t for w in asked.works for t in points(context, w)}))


def _order(context: Context, batch: Batch, asked: Together, lows: tuple[Lowering, ...], todo: tuple[int, ...],
           count: bool) -> TaskOrder:
    narrow, wide = (_program(asked.family, tuple(replace(low, narrow=n)
                                                 for low in lows), todo, count)
                    for n in (True, False))
    work = {i.source: w for w in asked.works for i in w.query.inputs}
    found = {s.name: located(context, batch, work[s.of], s, lows[0].part) for s in narrow.sources}
    files, certain = {n: p[0] for n, p in found.items()}, {n: p[1] for n, p in found.items()}
    return TaskOrder(asked.name, lows[0].part, lows[0].parts, narrow, wide, files, {}, f"b{batch.number}",
                     certain=certain)


def _program(asked: Family, lows: tuple[Lowering, ...], todo: tuple[int, ...], count: bool) -> Program:
    return family_program(asked, lows, todo, count) if len(lows) > 1 else shared_program(
        asked.groups[0], lows[0], todo, count)


def shared(context: Context, batch: Batch, asked: Together, outcomes: Sequence[TaskResult]) -> Shared:
    """All members' answers.

    Where a task failed, for whatever member's sake, or had too little memory for all of them, all run apart.
    """
    seconds = max((o.seconds for o in outcomes), default=0.0)
    if any(o.failed or o.exhausted for o in outcomes):
        return Shared(asked, (), frozenset(asked.names), seconds)
    answers, apart = list[TemplateAnswers](), set[str]()
    todo = _points(context, asked)
    for number, (made, work) in enumerate(zip(asked.family.groups, asked.works)):
        if work.due:
            same = tuple(quiet.repeated(work.due, tuple(t for t in todo if t % made.common.every == 0)))
            partials = pa.concat_tables([t for o in outcomes if (t := o.answer(number)) is not None])
            found, left = finished(made, partials, same)
            answers += [TemplateAnswers(template, rows, partials, same, work.due) for template, rows in found]
            apart |= left
    return Shared(asked, tuple(answers), frozenset(apart), seconds, _counted(batch, asked, outcomes, len(todo)))


def _counted(batch: Batch, asked: Together, outcomes: Sequence[TaskResult], points_: int) -> QueryGroupPrices:
    """By what the tasks counted: equation (2) of all groups, and seconds of each way to do the work of one that has no
    other beside it.
    """
    tallies = [_tally(made, outcomes, number) for number, made in enumerate(asked.family.groups)]
    papers = [p for made, tally in zip(asked.family.groups, tallies) if tally and (p := paper(made, tally))]
    if not any(tallies):
        return QueryGroupPrices()
    by_paper = QueryGroupPrices(paper_together=sum(p.together for p in papers),
                                paper_apart=sum(p.apart for p in papers))
    prices = by_paper if papers else QueryGroupPrices()
    if len(tallies) > 1:
        return replace(prices, counted_times_rule=1.0)
    (made,), parts = asked.family.groups, asked.works[0].parts
    rows = sum(t.num_rows for o in outcomes if (t := o.answer(0)) is not None) / (points_ * parts * len(made.classes))
    priced = seconds_by_way(made, tallies[0], rows, parts)
    rule = _prices(batch, asked).rule_s
    factor = max(min(priced.values()) / rule, LEAST_FACTOR) if rule else 1.0
    return replace(prices, counted_times_rule=factor, seconds_by_way=priced)


def _prices(batch: Batch, asked: Together) -> QueryGroupPrices:
    """What the batch's intent says of the group."""
    return batch.query_group_prices.get(asked.name, QueryGroupPrices())


def _tally(made: Group, outcomes: Sequence[TaskResult], number: int) -> Tally:
    tables = [t for o in outcomes if (t := o.answer(numbered(number))) is not None]
    return tallied(lowering(made),
                   (zip(*(t[name].to_pylist() for name in ("input", "what", "rows", "cells"))) for t in tables))


def finished(asked: Group, partials: pa.Table,
             same: Sequence[tuple[int, int]]) -> tuple[list[tuple[Template, pa.Table]], frozenset[str]]:
    """Rows (query, boundary, outputs) of each template, and the members that have none.

    `same` is (boundary, the computed one that it repeats).
    """
    con = kernel.shared()
    try:
        con.register("computed", partials)
        con.register(
            "same",
            pa.table({
                "_t": pa.array([t for t, _ in same], pa.int64()),
                "_of": pa.array([c for _, c in same], pa.int64())
            }))
        doubtful = failing(lowering(asked, narrow=False))
        bad = {row[0] for row in con.execute(f"SELECT DISTINCT {CLASS} FROM computed WHERE e > 0").fetchall()
               } if doubtful else set()
        apart = {n for t in asked.templates for n, number in t.members if number in bad}
        found = []
        for template in asked.templates:
            members = tuple(m for m in template.members if m[1] not in bad)
            made, failed = _finished(con, asked, replace(template, members=members))
            found += made
            apart |= failed
        return found, frozenset(apart)
    finally:
        con.close()


def _finished(con: kernel.Connection, asked: Group,
              template: Template) -> tuple[list[tuple[Template, pa.Table]], set[str]]:
    """By halves where the last statement fails, until those that fail stand alone."""
    members = template.members
    if not members:
        return [], set()
    try:
        return [(template, _rows(con, asked, template))], set()
    except kernel.Error as error:
        if not kernel.about_data(error):
            raise
    if len(members) == 1:
        return [], {members[0][0]}
    halves = [
        _finished(con, asked, replace(template, members=half))
        for half in (members[:len(members) // 2], members[len(members) // 2:])
    ]
    return [f for found, _ in halves for f in found], halves[0][1] | halves[1][1]


def _rows(con: kernel.Connection, asked: Group, template: Template) -> pa.Table:
    names, numbers = zip(*template.members)
    con.register("members", pa.table({OWNER: pa.array(names, pa.string()), CLASS: pa.array(numbers, pa.int64())}))
    con.execute(
        f"CREATE OR REPLACE TEMP VIEW partials AS SELECT members.{OWNER}, same._t, computed.* EXCLUDE (_t, {CLASS}) "
        f"FROM computed JOIN same ON computed._t = same._of JOIN members ON members.{CLASS} = computed.{CLASS}")
    con.execute(f"CREATE OR REPLACE TEMP VIEW due AS SELECT members.{OWNER}, same._t FROM members, same")
    return kernel.table(con, final(Lowering(shape(template.query), asked.plan, narrow=False), owner=(OWNER,)))
