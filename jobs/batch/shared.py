"""Many queries' answers from one work in one batch: its orders for tasks, then each query's rows from what they hand
over; it decides nothing, commits nothing.

A query that has no rows (see jobs.batch.members) is named and left out: it is run apart, where it fails (or not) as if
there were no others.
"""
from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import pyarrow as pa

from expectations import derived
from jobs.batch import quiet
from jobs.batch.figures import Figures
from jobs.batch.large import LargeAnswer, Number, WrittenRows
from jobs.batch.members import MembersMerge, finished
from jobs.batch.orders import complete, located, points, run_of
from jobs.batch.works import Context, QueryWork, parsed, published_upto, wide
from jobs.engine.partials import PartialsGrouping
from jobs.engine.work import TaskOrder, TaskResult
from jobs.ledger.addresses import PRIVATE
from jobs.ledger.entries import Batch, QueryGroupPrices
from jobs.ledger.queries import QueryState
from jobs.storage import places
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import Plan
from optimizer.plan.operators.join import group_columns
from optimizer.plan.program import Program
from optimizer.query.model import Catalog
from optimizer.query.shape import shape
from optimizer.sharing.counted import Tally, numbered, paper, tallied
from optimizer.sharing.expand import CLASS
from optimizer.sharing.families import joined
from optimizer.sharing.families.family import Family, counted_as, family_program
from optimizer.sharing.families.steering import as_seconds, priced
from optimizer.sharing.group import OWNER, Group, Template, forms, group
from optimizer.sharing.price import SharingCosts, copying
from optimizer.sharing.program import lowering, shared_program
from optimizer.sharing.rows import rows_program
from optimizer.sharing.ways import seconds as seconds_by_way

COUNTED = 5              # batches from one in which cells are counted to the next
LEAST_FACTOR = 0.01


@dataclass(frozen=True)
class QueryFamily:
    """Query groups that scan their streams together, in one batch.

    `works` has one work a group, as if the group were one query: its first member's name stands for it. Row queries of
    one group are several families where they have published up to different boundaries: newcomers get all combinations
    of the history at their first.
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

    def of_member(self, name: str) -> QueryWork:
        """The work as the member's own."""
        return replace(self.work_of[name], query_state=self.query_states[name])

    @property
    def returns_rows(self) -> bool:
        """Whether its members are row queries, which are then of one group."""
        return self.works[0].query.returns_rows

    @property
    def streams(self) -> frozenset[str]:
        return frozenset(i.source for w in self.works for i in w.query.inputs if i.is_stream)

    def table_of(self, template: Template) -> str:
        first_member, _ = template.members[0]
        return table_of(self.query_states[first_member].columns)


@dataclass(frozen=True)
class TemplateAnswers:
    """Answers of one template's members at the boundaries `due`; `partials`, `repeats` and `large` as of an Answer."""

    template: Template
    rows: pa.Table | None
    partials: pa.Table | None
    repeats: tuple[tuple[int, int], ...]
    due: tuple[int, ...]
    large: LargeAnswer | None = None


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
    def published(self) -> tuple[tuple[str, TemplateAnswers], ...]:
        """(path of the shared table, answers that have their rows in it)."""
        return tuple((self.family.table_of(answer.template), answer) for answer in self.answers)

    @cached_property
    def answered(self) -> tuple[str, ...]:
        """Names of the members that have their answers here."""
        return tuple(name for name in self.family.names if name not in self.apart)


def digest(text: str) -> str:
    """A short name of a text that no other one has."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def table_of(columns: str) -> str:
    """The private table in which batches commit answers of queries that share and have these columns (as the ledger
    writes them), until they are at the queries' addresses."""
    return f"{PRIVATE}/{digest(columns)}"


@lru_cache(maxsize=4096)
def grouped(texts: tuple[tuple[str, str], ...], catalog: Catalog) -> Group:
    """The group of these queries (name, text): made once for as long as its members stay."""
    return group({name: parsed(sql, catalog) for name, sql in texts})


@lru_cache(maxsize=64)
def groups_of(texts: tuple[tuple[str, str], ...], catalog: Catalog) -> tuple[Group, ...]:
    """These queries (name, text), those of one join shape in a group."""
    text_of = dict(texts)
    names_by_group, _ = forms({name: parsed(sql, catalog) for name, sql in texts})
    return tuple(grouped(tuple((name, text_of[name]) for name in names), catalog) for names in names_by_group)


@lru_cache(maxsize=64)
def planned(texts: tuple[tuple[str, str], ...], catalog: Catalog, plans: tuple[Plan, ...]) -> Family:
    """The same groups as a family, each by its plan."""
    groups = groups_of(texts, catalog)
    return Family(tuple(replace(group, chosen=plan) for group, plan in zip(groups, plans)))


def families_due(context: Context, batch: Batch, query_states: Mapping[str, QueryState]) -> list[QueryFamily]:
    """Every family of the batch that has a boundary to answer in it."""
    families = []
    for group_name, all_names in batch.query_groups.items():
        for name, previous, names in _cohorts(context, batch, query_states, group_name, all_names):
            texts = tuple((n, query_states[n].sql) for n in names)
            plans = tuple(batch.plans[g.names[0]] for g in groups_of(texts, context.catalog))
            with_plans = planned(texts, context.catalog, plans)
            works = []
            for members in with_plans.groups:
                due = tuple(t for t in batch.boundaries if t % members.common.every == 0)
                parts = members.plan.parts or wide(context, batch)
                works.append(QueryWork(query_states[members.names[0]], members.common, members.plan, due, previous,
                                       batch.boundaries[0], parts))
            if any(work.due for work in works):
                families.append(QueryFamily(name, with_plans, tuple(works), {n: query_states[n] for n in names}))
    return families


def _cohorts(context: Context, batch: Batch, query_states: Mapping[str, QueryState], group_name: str,
             names: Sequence[str]) -> list[tuple[str, int, tuple[str, ...]]]:
    """(name, boundary, members) of the members that have published up to the same boundary.

    Those that have come furthest go by the group's name.
    """
    members: dict[int, list[str]] = {}
    for name in names:
        members.setdefault(published_upto(context, batch, query_states[name]), []).append(name)
    furthest = max(members)
    return [(group_name if boundary == furthest else f"{group_name} from {boundary}", boundary, tuple(of_boundary))
            for boundary, of_boundary in members.items()]


def works_to_sample(context: Context, query_family: QueryFamily) -> list[QueryWork]:
    """The members of which samples are taken, one a join for all that have it: as if each ran alone."""
    work_by_join = {(w.query.inputs, w.query.equalities): w for w in reversed(query_family.works) if w.due}
    return [replace(w, query=parsed(w.query_state.sql, context.catalog)) for w in reversed(work_by_join.values())]


def orders(context: Context, batch: Batch, query_family: QueryFamily) -> list[TaskOrder]:
    """One for each task."""
    works = query_family.works
    lows = [lowering(group, parts=work.parts, complete=complete(context, work), together=work.together)
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

    if query_family.returns_rows:      # nothing is added up: its sums need no width
        narrow = wide = rows_program(groups.groups[0], lows[0], run_of(context, query_family.works[0], todo))
    else:
        narrow, wide = statements(narrow=True), statements(narrow=False)
    work_by_source = {i.source: work for work in query_family.works for i in work.query.inputs}
    splits = {source.name: located(context, batch, work_by_source[source.of], source, first.part)
              for source in narrow.sources}
    files = {name: to_read for name, (to_read, _) in splits.items()}
    certain = {name: unread_times for name, (_, unread_times) in splits.items()}
    rows_to: dict[int, str] = {}
    if query_family.returns_rows:
        templates = enumerate(groups.groups[0].templates)
        rows_to = {n: places.join(context.warehouse, query_family.table_of(template)) for n, template in templates}
    return TaskOrder(query_family.name, first.part, first.parts, narrow, wide, files, {}, f"b{batch.number}",
                     rows_to, OWNER if rows_to else None, certain)


def groupings(family: Family) -> dict[int, PartialsGrouping]:
    """By what the partials of each query group can be divided; one without GROUP BY has few."""
    by_number = {}
    for number, members in enumerate(family.groups):
        keys = group_columns(shape(members.common))
        if keys:
            by_number[number] = PartialsGrouping((CLASS, *keys), (CLASS, "_t"), summed(members))
    return by_number


def summed(members: Group) -> tuple[str, ...]:
    """Columns of the partials that outputs of any member are held against, and the count of joined rows."""
    of_outputs = [column for template in members.templates for column in derived.conserved_columns(template.query)]
    return (*dict.fromkeys(of_outputs), "c")


def merges(context: Context, batch: Batch, query_family: QueryFamily) -> list[MembersMerge]:
    """How the answers of each query group are merged where there are many groups."""
    todo, hows = _points(context, query_family), []
    for number, (members, work) in enumerate(zip(query_family.family.groups, query_family.works)):
        folders = tuple(places.join(context.warehouse, query_family.table_of(template))
                        for template in members.templates)
        hows.append(MembersMerge((query_family.name, number), folders, f"b{batch.number}", work.due,
                                 _repeats(work, todo), summed(members), members))
    return hows


def _repeats(work: QueryWork, todo: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    return tuple(quiet.repeated(work.due, tuple(t for t in todo if t % work.query.every == 0)))


def shared(context: Context, batch: Batch, query_family: QueryFamily, task_results: Sequence[TaskResult],
           large: Mapping[Number, LargeAnswer]) -> Shared:
    """All members' answers.

    Where a task failed, for whatever member's sake, or had too little memory for all of them, all run apart.
    """
    seconds = max((result.seconds for result in task_results), default=0.0)
    of_family = [answer for (name, _), answer in large.items() if name == query_family.name]
    parts: list[TaskResult | LargeAnswer] = [*task_results, *of_family]
    if any(part.failed or part.exhausted for part in parts):
        return Shared(query_family, (), frozenset(query_family.names), seconds)
    answers, apart = list[TemplateAnswers](), set[str]()
    todo = _points(context, query_family)
    for number, (members, work) in enumerate(zip(query_family.family.groups, query_family.works)):
        merged_by_tasks = large.get((query_family.name, number))
        if not work.due:
            continue
        if query_family.returns_rows:
            answers += _rows_in_files(members, task_results, work.due)
            continue
        repeats = _repeats(work, todo)
        if merged_by_tasks is not None:
            answers += _in_files(members, merged_by_tasks, repeats, work.due)
            apart |= merged_by_tasks.apart
        else:
            partials = pa.concat_tables(_answers_of(task_results, number))
            rows_by_template, failed = finished(members, partials, repeats)
            answers += [TemplateAnswers(template, rows, partials, repeats, work.due)
                        for template, rows in rows_by_template]
            apart |= failed
    if query_family.returns_rows:
        counted = _counted_rows(batch, query_family, answers, len(todo), context.sharing_costs)
    else:
        counted = _counted(batch, query_family, task_results, len(todo), context.sharing_costs)
    return Shared(query_family, tuple(answers), frozenset(apart), seconds, counted)


def _in_files(members: Group, answer: LargeAnswer, repeats: tuple[tuple[int, int], ...],
              due: tuple[int, ...]) -> list[TemplateAnswers]:
    """Answers whose rows tasks have written; members that must run apart have none."""
    answers = []
    for number, template in enumerate(members.templates):
        sound = tuple((name, of_class) for name, of_class in template.members if name not in answer.apart)
        if sound:
            answers.append(TemplateAnswers(replace(template, members=sound), None, None, repeats, due,
                                           answer.of_template(number)))
    return answers


def _rows_in_files(members: Group, task_results: Sequence[TaskResult], due: tuple[int, ...]) -> list[TemplateAnswers]:
    """Of row queries the tasks have written what is published."""
    answers = []
    for number, template in enumerate(members.templates):
        files = tuple(file for result in task_results for file in result.rows.get(number, ()))
        written = LargeAnswer((WrittenRows(number, files, Figures()),), {}, (), 0)
        answers.append(TemplateAnswers(template, None, None, (), due, written))
    return answers


def _answers_of(task_results: Sequence[TaskResult], number: int) -> list[pa.Table]:
    """What all tasks handed back under this number."""
    tables = [result.answer(number) for result in task_results]
    return [table for table in tables if table is not None]


def _counted(batch: Batch, query_family: QueryFamily, task_results: Sequence[TaskResult],
             point_count: int, costs: SharingCosts) -> QueryGroupPrices:
    """By what the tasks counted: equation (2) of all groups, and seconds of each way to do the work of one that has no
    other beside it.
    """
    groups, family = query_family.family.groups, query_family.family
    tallies = [_tally(members, task_results, number) for number, members in enumerate(groups)]
    papers = [p for members, tally in zip(groups, tallies) if tally and (p := paper(members, tally))]
    if not any(tallies) and len(groups) == 1:
        return QueryGroupPrices()
    by_paper = QueryGroupPrices(paper_together=sum(p.together for p in papers),
                                paper_apart=sum(p.apart for p in papers))
    prices = by_paper if papers and not family.sub_joins else QueryGroupPrices()      # readers count nothing then
    if len(groups) > 1:
        return replace(prices, counted_times_rule=1.0, seconds_by_way=_of_sub_joins(query_family, task_results, costs))
    members, parts = groups[0], query_family.works[0].parts
    row_count = sum(result.row_count(0) for result in task_results)
    rows = row_count / (point_count * parts * len(members.classes))
    seconds = seconds_by_way(members, tallies[0], rows, parts, costs)
    rule = _prices(batch, query_family).rule_s
    factor = max(min(seconds.values()) / rule, LEAST_FACTOR) if rule else 1.0
    return replace(prices, counted_times_rule=factor, seconds_by_way=seconds)


def _of_sub_joins(query_family: QueryFamily, task_results: Sequence[TaskResult],
                  costs: SharingCosts) -> dict[str, float]:
    """What each join that groups of the family have in common takes, made once and by each group for itself."""
    family, seconds = query_family.family, dict[str, float]()
    for number, sub_join in enumerate(family.countable):
        first = sub_join.readers[0].number
        low = lowering(family.groups[first], parts=query_family.works[first].parts)
        rows = _tally_rows(task_results, counted_as(family, number))
        if rows:
            tally = tallied(joined.lowered(sub_join, low, family.division), rows)
            seconds |= as_seconds(sub_join.key.name, priced(sub_join, tally, low.parts, family.division, costs))
    return seconds


def _counted_rows(batch: Batch, query_family: QueryFamily, answers: Sequence[TemplateAnswers],
                  point_count: int, costs: SharingCosts) -> QueryGroupPrices:
    """By the rows of all answers, which sharing copies once more, what it takes beside what the rule says."""
    prices = _prices(batch, query_family)
    is_known = prices.counted_times_rule is not None and batch.number % COUNTED
    if is_known or not prices.rule_s or query_family.name not in batch.query_groups:
        return QueryGroupPrices()
    rows = sum(file.rows for answer in answers if answer.large is not None for file in answer.large.files)
    return QueryGroupPrices(counted_times_rule=copying(prices.rule_s, rows / point_count, costs))


def _prices(batch: Batch, query_family: QueryFamily) -> QueryGroupPrices:
    """What the batch's intent says of the family."""
    return batch.query_group_prices.get(query_family.name, QueryGroupPrices())


def _tally(members: Group, task_results: Sequence[TaskResult], number: int) -> Tally:
    """What the tasks counted of the group with this number."""
    return tallied(lowering(members), _tally_rows(task_results, numbered(number)))


def _tally_rows(task_results: Sequence[TaskResult], number: int) -> list[list[tuple[int, int, float, float]]]:
    """The counts of each task under this number."""
    rows_by_table = []
    for table in _answers_of(task_results, number):
        columns = [table[name].to_pylist() for name in ("input", "what", "rows", "cells")]
        rows_by_table.append(list(zip(*columns)))
    return rows_by_table
