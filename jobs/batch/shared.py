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
class QueryFamily:
    """Query groups that scan their streams together, in one batch.

    `works` has one work a group, as if the group were one query: its first member's name stands for it.
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
        """The work of its group, by a member's name."""
        return {n: work for g, work in zip(self.family.groups, self.works) for n in g.names}

    @property
    def streams(self) -> frozenset[str]:
        return frozenset(i.source for w in self.works for i in w.query.inputs if i.is_stream)


@dataclass(frozen=True)
class TemplateAnswers:
    """Answers of one template's members at the boundaries `due`; `partials` and `repeats` as of an Answer."""

    template: Template
    rows: pa.Table
    partials: pa.Table
    repeats: tuple[tuple[int, int], ...]
    due: tuple[int, ...]


@dataclass(frozen=True)
class Shared:
    """What the work of a family computed: the answers of its members, and the names of those that must run apart.

    `seconds` is what the longest task took; `counted`, where cells were counted, what they say of equation (2) and of
    seconds by way.
    """

    family: QueryFamily
    answers: tuple[TemplateAnswers, ...]
    apart: frozenset[str]
    seconds: float
    counted: QueryGroupPrices = QueryGroupPrices()

    @cached_property
    def rows(self) -> tuple[tuple[str, pa.Table], ...]:
        """(path of the shared table, rows for it)."""
        pairs = []
        for answer in self.answers:
            first_member, _ = answer.template.members[0]
            pairs.append((table_of(self.family.query_states[first_member].columns), answer.rows))
        return tuple(pairs)

    @cached_property
    def answered(self) -> tuple[str, ...]:
        """Names of the members that have their answers here."""
        return tuple(name for name in self.family.names if name not in self.apart)


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
    """These queries (name, text), those of one join shape in a group."""
    text_of = dict(texts)
    names_by_group, _ = forms({name: parsed(sql, catalog) for name, sql in texts})
    groups = []
    for names in names_by_group:
        groups.append(grouped(tuple((name, text_of[name]) for name in names), catalog))
    return Family(tuple(groups))


@lru_cache(maxsize=64)
def planned(texts: tuple[tuple[str, str], ...], catalog: Catalog, plans: tuple[Plan, ...]) -> Family:
    """The same families, each group by its plan."""
    groups = family(texts, catalog).groups
    return Family(tuple(replace(group, chosen=plan) for group, plan in zip(groups, plans)))


def families_due(context: Context, batch: Batch, query_states: Mapping[str, QueryState]) -> list[QueryFamily]:
    """Every family of the batch that has a boundary to answer in it."""
    families = []
    for name, names in batch.query_groups.items():
        texts = tuple((n, query_states[n].sql) for n in names)
        plans = tuple(batch.plans[g.names[0]] for g in family(texts, context.catalog).groups)
        with_plans = planned(texts, context.catalog, plans)
        works = []
        for members in with_plans.groups:
            due = tuple(t for t in batch.boundaries if t % members.common.every == 0)
            parts = members.plan.parts or wide(context, batch)
            works.append(QueryWork(query_states[members.names[0]], members.common, members.plan, due, BEGINNING,
                                   batch.boundaries[0], parts))
        if any(work.due for work in works):
            families.append(QueryFamily(name, with_plans, tuple(works), {n: query_states[n] for n in names}))
    return families


def works_to_sample(context: Context, query_family: QueryFamily) -> list[QueryWork]:
    """The members of which samples are taken, one a join for all that have it: as if each ran alone."""
    work_by_join = {(w.query.inputs, w.query.equalities): w for w in reversed(query_family.works) if w.due}
    return [replace(w, query=parsed(w.query_state.sql, context.catalog)) for w in reversed(work_by_join.values())]


def orders(context: Context, batch: Batch, query_family: QueryFamily) -> list[TaskOrder]:
    """One for each task."""
    works = query_family.works
    lows = [lowering(group, parts=work.parts, complete=complete(context, work))
            for group, work in zip(query_family.family.groups, works)]
    todo = _points(context, query_family)
    count = batch.number % COUNTED == 0 or _prices(batch, query_family).counted_times_rule is None
    task_orders = []
    for part in range(works[0].parts):
        lows_of_part = tuple(replace(low, part=part) for low in lows)
        task_orders.append(_order(context, batch, query_family, lows_of_part, todo, count))
    return task_orders


def _points(context: Context, query_family: QueryFamily) -> tuple[int, ...]:
    """The boundaries that are computed for any group."""
    return tuple(sorted({t for work in query_family.works for t in points(context, work)}))


def _order(context: Context, batch: Batch, query_family: QueryFamily, lows: tuple[Lowering, ...], todo: tuple[int, ...],
           count: bool) -> TaskOrder:
    first, groups = lows[0], query_family.family

    def statements(narrow: bool) -> Program:
        lows_so = tuple(replace(low, narrow=narrow) for low in lows)
        if len(lows) > 1:
            return family_program(groups, lows_so, todo, count)
        return shared_program(groups.groups[0], lows_so[0], todo, count)

    narrow, wide = statements(narrow=True), statements(narrow=False)
    work_by_source = {i.source: work for work in query_family.works for i in work.query.inputs}
    splits = {source.name: located(context, batch, work_by_source[source.of], source, first.part)
              for source in narrow.sources}
    files = {name: to_read for name, (to_read, _) in splits.items()}
    certain = {name: unread_times for name, (_, unread_times) in splits.items()}
    return TaskOrder(query_family.name, first.part, first.parts, narrow, wide, files, {}, f"b{batch.number}",
                     certain=certain)


def shared(context: Context, batch: Batch, query_family: QueryFamily, task_results: Sequence[TaskResult]) -> Shared:
    """All members' answers.

    Where a task failed, for whatever member's sake, or had too little memory for all of them, all run apart.
    """
    seconds = max((result.seconds for result in task_results), default=0.0)
    if any(result.failed or result.exhausted for result in task_results):
        return Shared(query_family, (), frozenset(query_family.names), seconds)
    answers, apart = list[TemplateAnswers](), set[str]()
    todo = _points(context, query_family)
    for number, (members, work) in enumerate(zip(query_family.family.groups, query_family.works)):
        if work.due:
            repeats = tuple(quiet.repeated(work.due, tuple(t for t in todo if t % members.common.every == 0)))
            partials = pa.concat_tables(_answers_of(task_results, number))
            rows_by_template, failed = finished(members, partials, repeats)
            answers += [TemplateAnswers(template, rows, partials, repeats, work.due)
                        for template, rows in rows_by_template]
            apart |= failed
    counted = _counted(batch, query_family, task_results, len(todo))
    return Shared(query_family, tuple(answers), frozenset(apart), seconds, counted)


def _answers_of(task_results: Sequence[TaskResult], number: int) -> list[pa.Table]:
    """What all tasks handed back under this number."""
    tables = [result.answer(number) for result in task_results]
    return [table for table in tables if table is not None]


def _counted(batch: Batch, query_family: QueryFamily, task_results: Sequence[TaskResult],
             point_count: int) -> QueryGroupPrices:
    """By what the tasks counted: equation (2) of all groups, and seconds of each way to do the work of one that has no
    other beside it.
    """
    groups = query_family.family.groups
    tallies = [_tally(members, task_results, number) for number, members in enumerate(groups)]
    papers = [p for members, tally in zip(groups, tallies) if tally and (p := paper(members, tally))]
    if not any(tallies):
        return QueryGroupPrices()
    by_paper = QueryGroupPrices(paper_together=sum(p.together for p in papers),
                                paper_apart=sum(p.apart for p in papers))
    prices = by_paper if papers else QueryGroupPrices()
    if len(tallies) > 1:
        return replace(prices, counted_times_rule=1.0)
    members, parts = groups[0], query_family.works[0].parts
    row_count = sum(table.num_rows for table in _answers_of(task_results, 0))
    rows = row_count / (point_count * parts * len(members.classes))
    priced = seconds_by_way(members, tallies[0], rows, parts)
    rule = _prices(batch, query_family).rule_s
    factor = max(min(priced.values()) / rule, LEAST_FACTOR) if rule else 1.0
    return replace(prices, counted_times_rule=factor, seconds_by_way=priced)


def _prices(batch: Batch, query_family: QueryFamily) -> QueryGroupPrices:
    """What the batch's intent says of the family."""
    return batch.query_group_prices.get(query_family.name, QueryGroupPrices())


def _tally(members: Group, task_results: Sequence[TaskResult], number: int) -> Tally:
    """What the tasks counted of the group with this number."""
    rows_by_table = []
    for table in _answers_of(task_results, numbered(number)):
        columns = [table[name].to_pylist() for name in ("input", "what", "rows", "cells")]
        rows_by_table.append(zip(*columns))
    return tallied(lowering(members), rows_by_table)


def finished(members: Group, partials: pa.Table,
             repeats: Sequence[tuple[int, int]]) -> tuple[list[tuple[Template, pa.Table]], frozenset[str]]:
    """Rows (query, boundary, outputs) of each template, and the members that have none.

    `repeats` are pairs of a boundary and the computed one that it repeats.
    """
    con = kernel.shared()
    try:
        con.register("computed", partials)
        con.register("same", quiet.repeats_table(repeats))
        bad_classes: set[int] = set()
        if failing(lowering(members, narrow=False)):
            rows_with_errors = con.execute(f"SELECT DISTINCT {CLASS} FROM computed WHERE e > 0").fetchall()
            bad_classes = {number for number, in rows_with_errors}
        apart: set[str] = set()
        rows_by_template = []
        for template in members.templates:
            apart |= {name for name, number in template.members if number in bad_classes}
            sound = tuple((name, number) for name, number in template.members if number not in bad_classes)
            of_template, failed = _finished(con, members, replace(template, members=sound))
            rows_by_template += of_template
            apart |= failed
        return rows_by_template, frozenset(apart)
    finally:
        con.close()


def _finished(con: kernel.Connection, query_group: Group,
              template: Template) -> tuple[list[tuple[Template, pa.Table]], set[str]]:
    """By halves where the last statement fails, until those that fail stand alone."""
    members = template.members
    if not members:
        return [], set()
    try:
        return [(template, _rows(con, query_group, template))], set()
    except kernel.Error as error:
        if not kernel.about_data(error):
            raise
    if len(members) == 1:
        return [], {members[0][0]}
    middle = len(members) // 2
    rows_of_first, failed_of_first = _finished(con, query_group, replace(template, members=members[:middle]))
    rows_of_second, failed_of_second = _finished(con, query_group, replace(template, members=members[middle:]))
    return rows_of_first + rows_of_second, failed_of_first | failed_of_second


def _rows(con: kernel.Connection, query_group: Group, template: Template) -> pa.Table:
    names, numbers = zip(*template.members)
    con.register("members", pa.table({OWNER: pa.array(names, pa.string()), CLASS: pa.array(numbers, pa.int64())}))
    con.execute(
        f"CREATE OR REPLACE TEMP VIEW partials AS SELECT members.{OWNER}, same._t, computed.* EXCLUDE (_t, {CLASS}) "
        f"FROM computed JOIN same ON computed._t = same._of JOIN members ON members.{CLASS} = computed.{CLASS}")
    con.execute(f"CREATE OR REPLACE TEMP VIEW due AS SELECT members.{OWNER}, same._t FROM members, same")
    return kernel.table(con, final(Lowering(shape(template.query), query_group.plan, narrow=False), owner=(OWNER,)))
