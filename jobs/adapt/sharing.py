"""Which queries share one work at a boundary, and why the others do not.

Groups are formed by price: in batches where forebay.yml says `decide: batch`, else by `forebay adapt` alone, whose
groups stand until it says others. The decision is part of the batch's intent, nothing is computed here.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from math import log
from typing import Any

from jobs.adapt.shared_seconds import learnt
from jobs.adapt.unit_costs import last_coefficients
from jobs.adapt.weighing import (
    MOVED,
    Formed,
    Rows,
    Sharing,
    family_plans,
    groups_of_form,
    priced_form,
    unpriced,
    weighed_sets,
)
from jobs.batch.batch import Answered
from jobs.batch.shared import digest, groups_of
from jobs.batch.works import parsed
from jobs.ledger.codec import encode_prices
from jobs.ledger.entries import Batch, LedgerEntry, QueryGroupPrices
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import QueryState, queries_at
from jobs.pipeline.declared import DeclaredExpectations
from jobs.storage import tables
from optimizer.cost.measured import UnitCosts
from optimizer.plan.model import Plan, placed
from optimizer.query.model import Catalog
from optimizer.query.normal import normal
from optimizer.sharing.families.division import division_of
from optimizer.sharing.families.pool import MOST, Form, Pricing
from optimizer.sharing.families.steering import by_tuples
from optimizer.sharing.group import alone, form
from optimizer.sharing.price import SharingCosts, machine_costs
from optimizer.sharing.ways import chosen
from optimizer.sharing.ways import in_words as way_in_words
from optimizer.sharing.ways import planned, way_of

# Queries that `query show` parses to say what the next boundary does; of more it says what the last one did: each
# takes 3 ms.
PARSED = 200
SHOWN = 20              # members that `query show` names
SHARING = 2             # members below which a group that stands has nothing to share
TASKS = "tasks"
UNDECIDED = "`forebay adapt` has decided no group for it"


class Sharer:
    """What is remembered of groups: how queries were formed into them and priced, and what their work last counted.

    `Sharer(pipe).decide(active)` gives the groups of the next boundary. `share_from=2`: a group from two queries of one
    form on, whatever that costs, as benchmarks of both ways need it. `unit_costs`: where they are known already.
    """

    def __init__(self, pipe: OpenPipeline, declared: DeclaredExpectations | None = None,
                 share_from: int | None = None, unit_costs: Callable[[], UnitCosts] | None = None) -> None:
        self.pipe = pipe
        self._unit_costs = unit_costs or (lambda: last_coefficients(pipe))
        self.declared = declared or DeclaredExpectations(pipe.pipeline)
        self.share_from = share_from
        self._formed: tuple[Any, Formed] | None = None
        self._weighed: tuple[Any, Sharing] | None = None
        self._counted: dict[str, QueryGroupPrices] = {}

    @cached_property
    def machine(self) -> SharingCosts:
        """What sharing costs on this machine, as it was known when the process started: so it does not move with each
        batch, whose seconds correct prices by themselves.
        """
        return machine_costs(self._unit_costs())

    @property
    def costs(self) -> SharingCosts:
        """The same, corrected by what batches took so far."""
        last = self.pipe.ledger.last()
        return last.batch.sharing_past.correct(self.machine, last.batch.number) if last is not None else self.machine

    @property
    def parts(self) -> int:
        """Tasks that share a work, as at the last boundary; no session is begun to know it."""
        last = self.pipe.ledger.last()
        return (last.batch.parts if last is not None else 0) or max(self.pipe.tasks.expected, 1)

    def decide(self, active: Mapping[str, QueryState], boundary: int | None = None) -> Sharing:
        """The families of these queries at a boundary (None: the one after the last).

        Forms, and forms of common streams, if the price says so for the rows there are.
        """
        formed, last, pipe = self._form(active), self.pipe.ledger.last(), self.pipe
        at = boundary if boundary is not None else last.last_boundary + pipe.pipeline.batch if last else None
        if self.share_from is not None:
            return unpriced(formed, self.share_from)
        forms = []
        for form_name, names in formed.forms.items():
            texts = tuple((name, active[name].sql) for name in names)
            forms.append(priced_form(form_name, texts, pipe.catalog))
        groups_before = last.batch.query_groups if last else {}
        group_before = {name: group for group, names in groups_before.items() for name in names}
        return self._price(formed, forms, Rows(pipe, at or 0), group_before)

    def of_batch(self, active: Mapping[str, QueryState], boundary: int) -> Sharing:
        """The families at the last boundary of a batch that begins: as decided before, where batches do not decide."""
        if self.pipe.pipeline.decide == "task" and self.share_from is None:
            return self.standing(active)
        return self.decide(active, boundary)

    def standing(self, active: Mapping[str, QueryState]) -> Sharing:
        """The families as they were decided, of those members that can still share.

        A query for which nothing was decided yet joins the group of its form, where one stands and has room.
        """
        formed, last = self._form(active), self.pipe.ledger.last()
        form_of = {name: form_name for form_name, names in formed.forms.items() for name in names}
        members: dict[str, list[str]] = {}
        for name in form_of:
            group = _decided_group(active[name], last)
            if group is not None:
                members.setdefault(group, []).append(name)
        group_of_form = {form_of[name]: group for group, names in members.items() for name in names}
        for name, form_name in form_of.items():
            group = group_of_form.get(form_name)
            is_new = active[name].decided is None and _decided_group(active[name], last) is None
            if is_new and group is not None and len(members[group]) < MOST:
                members[group].append(name)
        position = {name: (form_name, n) for form_name, names in formed.forms.items() for n, name in enumerate(names)}
        groups = {group: tuple(sorted(names, key=lambda name: position[name]))
                  for group, names in members.items() if len(names) >= SHARING}
        apart = {name: UNDECIDED for name in form_of.keys() - {n for names in groups.values() for n in names}}
        return Sharing(groups, {**apart, **formed.apart}, self._prices_of(groups, active, last))

    def _prices_of(self, groups: Mapping[str, tuple[str, ...]], active: Mapping[str, QueryState],
                   last: LedgerEntry | None) -> dict[str, QueryGroupPrices]:
        """What groups were priced at when they were decided; what they counted since is kept by itself."""
        prices = {}
        for group, names in groups.items():
            decisions = [decided for name in names if (decided := active[name].decided) is not None]
            stated = next((d.group_prices for d in reversed(decisions) if d.group == group), None)
            before = last.batch.query_group_prices.get(group) if last is not None else None
            known = stated or before or QueryGroupPrices()
            prices[group] = QueryGroupPrices(together_s=known.together_s, rule_s=known.rule_s, apart_s=known.apart_s,
                                             forms=known.forms, together_off=known.together_off,
                                             apart_off=known.apart_off)
        return prices

    def _form(self, active: Mapping[str, QueryState]) -> Formed:
        judged = self.declared.queries.keys()
        foreign = _foreign(self.pipe)
        listed = tuple(sorted((s.name, s.sql, _bound(s, judged)) for s in active.values()))
        if self._formed is None or self._formed[0] != (foreign, listed):
            self._formed = ((foreign, listed), _formed_of(self.pipe.catalog, listed, foreign))
        return self._formed[1]

    def _price(self, formed: Formed, forms: Collection[Form], rows: Rows, group_before: Mapping[str, str]) -> Sharing:
        """As before, as long as neither queries, groups, rows nor counts have changed by much."""
        forms_by_group: dict[str, set[str]] = {}
        for form_name, names in formed.forms.items():
            for group_name in {group_before[n] for n in names if n in group_before}:
                forms_by_group.setdefault(group_name, set()).add(form_name)
        all_factors = {name: counts.counted_times_rule for name, counts in self.counts().items()}
        factors = {name: factor for name, factor in all_factors.items() if factor is not None}
        rounded = frozenset((name, round(log(factor, MOVED))) for name, factor in factors.items())
        costs = self.costs
        off = tuple(round(log(factor, MOVED)) for factor in (costs.together_off, costs.apart_off))
        standing = frozenset(map(frozenset, forms_by_group.values()))
        key = (formed, standing, rows.scale(forms), rounded, off, self.parts)
        if self._weighed is None or self._weighed[0] != key:
            pricing = Pricing(rows, self.parts, costs)
            self._weighed = (key, weighed_sets(formed, forms, pricing, forms_by_group, factors))
        return self._weighed[1]

    def counts(self) -> dict[str, QueryGroupPrices]:
        """What the works of groups last counted, here or in a process before."""
        last = self.pipe.ledger.last()
        prices_before = last.batch.query_group_prices if last else {}
        before = {name: prices.counts() for name, prices in prices_before.items()}
        return {name: counts for name, counts in {**before, **self._counted}.items() if not counts.says_nothing}

    def counts_to_keep(self, sharing: Sharing) -> dict[str, QueryGroupPrices]:
        """The counts of groups that were weighed, and of groups that queries in force could form again.

        Without these counts a group that was dissolved because of them would be formed once more.
        """
        forms = self._formed[1].forms if self._formed is not None else {}
        counts = self.counts()
        form_of_group = {name: name.split(":")[-1].rsplit("-", 1)[0] for name in counts}
        absent = {name for name, form_name in form_of_group.items()
                  if name not in sharing.groups and form_name in forms}
        return {name: values for name, values in counts.items() if name in sharing.weighed or name in absent}

    def learn(self, batch: Batch, answered: Answered, seconds: float | None, unit_costs: UnitCosts) -> Batch:
        """The batch with what the works of its groups counted, and with what it took over its prices, for the next
        batch, whichever process runs that. `seconds`: None where they also tell what starting Spark takes.
        """
        self._counted.update({s.family.name: s.counted for s in answered.shared if not s.counted.says_nothing})
        prices = {name: prices.updated(self._counted.get(name, QueryGroupPrices()))
                  for name, prices in batch.query_group_prices.items()}
        past = batch.sharing_past
        if seconds is not None:
            past = learnt(batch, self._priced_apart(batch), answered, seconds, unit_costs)
        return replace(batch, query_group_prices=prices, sharing_past=past)

    def _priced_apart(self, batch: Batch) -> dict[str, tuple[str, ...]]:
        """The queries of forms that the batch's intent prices and makes no group of, by the name of that group."""
        names_by_group = dict[str, tuple[str, ...]]()
        for form_name, names in (self._formed[1].forms if self._formed is not None else {}).items():
            if all(batch.group_of(name) is None for name in names):
                names_by_group |= groups_of_form(form_name, names)
        prices = batch.query_group_prices
        return {group: names for group, names in names_by_group.items()
                if group in prices and prices[group].apart_s is not None}

    def plans_of_batch(self, sharing: Sharing, active: Mapping[str, QueryState],
                       counts: Mapping[str, QueryGroupPrices]) -> dict[str, Plan]:
        """The plan of each member at a boundary that begins: in the way that was decided, where batches decide none."""
        is_standing = self.pipe.pipeline.decide == "task" and self.share_from is None
        return self.plans(sharing, active, {} if is_standing else counts)

    def plans(self, sharing: Sharing, active: Mapping[str, QueryState],
              counts: Mapping[str, QueryGroupPrices]) -> dict[str, Plan]:
        """The plan of each member is its group's: by the way that costs least where costs were counted, else as now."""
        plans: dict[str, Plan] = {}
        for name, names in sharing.groups.items():
            groups = groups_of(tuple((n, active[n].sql) for n in names), self.pipe.catalog)
            plans_before = self._plans_before(name, names, active)
            if len(groups) == 1:
                plan_before = next(iter(plans_before.values()), None)
                way = way_of(plan_before) if plan_before is not None else None
                seconds = counts.get(name, QueryGroupPrices()).seconds_by_way
                plans_of_groups: tuple[Plan, ...] = (planned(groups[0], chosen(groups[0], seconds, way)),)
            else:
                last = self.pipe.ledger.last()
                pricing = Pricing(Rows(self.pipe, last.last_boundary if last else 0), self.parts, self.costs)
                seconds = counts.get(name, QueryGroupPrices()).seconds_by_way
                plans_of_groups = family_plans(groups, pricing, plans_before, seconds)
            for group, plan in zip(groups, plans_of_groups):
                plans.update(dict.fromkeys(group.names, placed(plan, TASKS)))
        return plans

    def _plans_before(self, name: str, names: Iterable[str], active: Mapping[str, QueryState]) -> dict[str, Plan]:
        """The plans that the group's members had in it, that of the newest decision first."""
        newest_first = sorted((active[n] for n in names), key=lambda state: state.decided_from, reverse=True)
        plans = {state.name: state.decided.plan for state in newest_first
                 if state.decided is not None and state.decided.group == name}
        last = self.pipe.ledger.last()
        members_before = last.batch.query_groups.get(name, ()) if last else ()
        return plans | {n: last.batch.plans[n] for n in members_before
                        if last and n in last.batch.plans and n not in plans}

    def document(self, query_state: QueryState) -> dict[str, Any]:
        """With whom a query in force shares; or why it runs alone."""
        if not query_state.is_active:
            return {}
        last = self.pipe.ledger.last()
        active = {n: s for n, s in queries_at(self.pipe.ledger.all_changes()).items() if s.is_active}
        if len(active) > PARSED:
            now = Sharing(last.batch.query_groups if last else {}, {})
        else:
            now = self.standing(active) if self.pipe.pipeline.decide == "task" else self.decide(active)
        group = now.group_of.get(query_state.name)
        if group is None:
            reason: str | None = now.apart.get(query_state.name) or _bound(query_state, ())
            form_name, cannot = _formed(query_state.sql, self.pipe.catalog)
            priced = now.weighed_apart.get(f"shared:{form_name}-0")
            weighed = {"weighed": encode_prices(priced)} if priced is not None else {}
            return {"shares_with": [], "alone": reason or cannot or "it shared with none at the last boundary",
                    **weighed}
        prices = now.weighed.get(group, QueryGroupPrices())
        if last is not None:
            prices = prices.updated(last.batch.query_group_prices.get(group, QueryGroupPrices()))
        others = [n for n in now.groups[group][:SHOWN + 1] if n != query_state.name][:SHOWN]
        document = {"group": group, "members": len(now.groups[group]),
                    "shares_with": others, "weighed": encode_prices(prices)}
        shared_before = last is not None and query_state.name in last.batch.query_groups.get(group, ())
        plan = last.batch.plans.get(query_state.name) if last is not None and shared_before else None
        members = [n for n in now.groups[group] if last is not None and n in last.batch.plans]
        joins = self._joins_by_tuples(members, active, prices) if shared_before else {}
        return {**document, **joins, **_way(self.pipe, query_state, plan)}

    def _joins_by_tuples(self, names: Iterable[str], active: Mapping[str, QueryState],
                         prices: QueryGroupPrices) -> dict[str, list[str]]:
        """The joins of a family that would be made once by equation (2), where they were counted."""
        last, texts = self.pipe.ledger.last(), tuple((n, active[n].sql) for n in names)
        groups = groups_of(texts, self.pipe.catalog)
        if last is None or len(groups) < 2 or not prices.seconds_by_way:
            return {}
        as_planned = [replace(group, chosen=last.batch.plans[group.names[0]]) for group in groups]
        return {"joins_by_tuples": list(by_tuples(groups, division_of(as_planned), prices.seconds_by_way))}


def _decided_group(query_state: QueryState, last: LedgerEntry | None) -> str | None:
    """The group that was decided for the query; without a decision that of the last batch."""
    if query_state.decided is not None:
        return query_state.decided.group
    return last.batch.group_of(query_state.name) if last is not None else None


def shared_reason(plan: Plan, count: int, prices: QueryGroupPrices | None) -> str:
    """Why so many queries have this plan."""
    priced = ""
    if prices is not None and prices.together_s is not None and prices.apart_s is not None:
        priced = f": {prices.together_s:.2f} s a boundary together, {prices.apart_s:.2f} s apart"
    return f"one work answers {count} queries, {way_in_words(plan)}{priced}"


def _bound(query_state: QueryState, judged: Collection[str]) -> str:
    """Why a group cannot answer the query as a person wants it: it is pinned, or its answer is judged alone; or ""."""
    if query_state.pin:
        return f"it is pinned to {query_state.pin}"
    return "expectations of its answer are declared, which are judged of it alone" if query_state.name in judged else ""


def _foreign(pipe: OpenPipeline) -> str | None:
    """Why nothing here can run in tasks, where groups run."""
    if pipe.engine == "jvm":
        return "groups run in tasks, and Spark SQL is asked for"
    for name in pipe.pipeline.streams:
        if tables.exists(pipe.path("streams", name)) and pipe.table(f"streams/{name}").features:
            return f"groups run in tasks, which cannot read all of the table of stream {name}"
    return None


def _formed_of(catalog: Catalog, listed: Iterable[tuple[str, str, str]], foreign: str | None) -> Formed:
    apart: dict[str, str] = {}
    names_by_form: dict[str, list[str]] = {}
    for name, sql, bound in listed:
        form_name, reason = _formed(sql, catalog)
        reason = foreign or bound or reason
        if reason:
            apart[name] = reason
        else:
            names_by_form.setdefault(form_name, []).append(name)
    return Formed({form_name: tuple(names) for form_name, names in names_by_form.items()}, apart)


@lru_cache(maxsize=16384)
def _formed(sql: str, catalog: Catalog) -> tuple[str, str | None]:
    """A short name of a query's join shape, or why it stays alone."""
    query = parsed(sql, catalog)
    reason = alone(query)
    return ("", reason) if reason else (digest(repr(form(query))), None)


def _way(pipe: OpenPipeline, query_state: QueryState, plan: Plan | None) -> dict[str, Any]:
    """How the last boundary's work was done."""
    if plan is None:
        return {}
    divided = None
    if plan.divided is not None:
        divided = normal(parsed(query_state.sql, pipe.catalog)).inputs[plan.divided].source
    way: dict[str, Any] = {"split": plan.split, "exchange": plan.exchange, "divided": divided}
    if plan.read_joined:
        inputs = normal(parsed(query_state.sql, pipe.catalog)).inputs
        way |= {"joined_once": [inputs[i].source for i in plan.read_joined]}
    return {"way": {**way, "tasks": plan.parts} if plan.parts else way}
