"""Which sets of queries one work answers, by the prices of the rows there are; and why each other query runs apart.

Streams' files are counted, no row is read and nothing is remembered.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import log

from jobs.adapt.statistics import rows_in
from jobs.batch.shared import digest, grouped
from jobs.ledger.entries import QueryGroupPrices
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.storage import tables
from jobs.storage.tables import File
from optimizer.plan.membership import Range
from optimizer.plan.model import Plan
from optimizer.query.model import Catalog
from optimizer.query.windows import ALWAYS, Window
from optimizer.sharing.families.division import FamilyDivision, cheapest, divided_by
from optimizer.sharing.families.division import planned as division_plans
from optimizer.sharing.families.pool import FEWEST, MOST, Form, Pricing, Set, families
from optimizer.sharing.families.pool import form as form_of
from optimizer.sharing.families.pool import losers, one, united
from optimizer.sharing.families.steering import steered, with_joins_of
from optimizer.sharing.families.subjoin import pairs_read
from optimizer.sharing.group import Group, parts_of
from optimizer.sharing.price import each_alone, pays, rule, together

MOVED = 1.2             # by this factor a stream's rows change before families are weighed again
# What a decision says of queries that run apart by price: seconds are those of a boundary.
DEAR = ("one work for the {count} queries of its form would take {together:.3g} s a boundary, each for itself "
        "{apart:.3g} s{other}")
QUARTER = ": sharing pays where it is cheaper by a quarter"
LONE = "no other query in force joins the same windows in the same way by the same groups{other}"
OTHERS = "; with {count} queries of other forms on its streams {together:.3g} s together, {apart:.3g} s apart"
CANNOT = "; with others it cannot: {reason}"
FEW = "only {count} queries of its form are in force, and groups are made from {least} on"


@dataclass(frozen=True)
class Sharing:
    """The query groups of a boundary by name, and for every other query the reason why it runs apart.

    `weighed`: of groups that were priced, seconds of a boundary together and apart; `weighed_apart`: the same of groups
    that do not pay, by the name that they would have.
    """

    groups: Mapping[str, tuple[str, ...]]
    apart: Mapping[str, str]
    weighed: Mapping[str, QueryGroupPrices] = field(default_factory=dict)
    weighed_apart: Mapping[str, QueryGroupPrices] = field(default_factory=dict)

    @cached_property
    def group_of(self) -> Mapping[str, str]:
        """Each member's group."""
        return {n: group for group, names in self.groups.items() for n in names}


@dataclass(frozen=True, eq=False)
class Formed:
    """The names of queries by join shape, and for those that can share with none the reason.

    It stays the same object until a query comes or goes.
    """

    forms: Mapping[str, tuple[str, ...]]
    apart: Mapping[str, str]


def unpriced(formed: Formed, least: int) -> Sharing:
    """A group of every form that has so many queries."""
    groups: dict[str, tuple[str, ...]] = {}
    apart = dict(formed.apart)
    for form_name, names in formed.forms.items():
        if len(names) >= least:
            groups |= groups_of_form(form_name, names)
        else:
            reason = FEW.format(count=len(names), least=least) if len(names) > 1 else LONE.format(other="")
            apart |= dict.fromkeys(names, reason)
    return Sharing(groups, apart)


def groups_of_form(form_name: str, names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """One form with very many members is several groups."""
    return {f"shared:{form_name}-{k}": part for k, part in enumerate(parts_of(names, MOST))}


def weighed_sets(formed: Formed, forms: Collection[Form], pricing: Pricing, now: Mapping[str, set[str]],
                 times: Mapping[str, float]) -> Sharing:
    """Sets that pay; of one that does not, the forms that do by themselves.

    `now`: the forms of each group that stands. `times`: seconds by what a group counted, over those by the rule.
    """
    groups: dict[str, tuple[str, ...]] = {}
    weighed: dict[str, QueryGroupPrices] = {}
    costs = pricing.costs

    def price(candidate: Set) -> float:
        factors = [times.get(group, 1.0) for group in _named_groups(formed, candidate)]
        return together(candidate.load, costs) * max(factors, default=1.0)

    def does_pay(candidate: Set) -> bool:
        form_names = {f.name for f in candidate.forms}
        shares_already = any(form_names & names for names in now.values())
        return candidate.load.members >= FEWEST and pays(price(candidate), candidate.load, shares_already, costs)

    def prices_of(candidate: Set) -> QueryGroupPrices:
        return QueryGroupPrices(together_s=price(candidate), rule_s=rule(candidate.load, costs),
                                apart_s=each_alone(candidate.load, costs), forms=float(candidate.load.forms),
                                together_off=costs.together_off, apart_off=costs.apart_off)

    lone: list[Set] = []
    for whole in families(forms, pricing, [frozenset(names) for names in now.values()]):
        for candidate in [whole] if does_pay(whole) else [one(f, pricing) for f in whole.forms]:
            if does_pay(candidate):
                named_groups = _named_groups(formed, candidate)
                groups |= named_groups
                weighed |= dict.fromkeys(named_groups, prices_of(candidate))
            else:
                lone.append(candidate)
    weighed_apart: dict[str, QueryGroupPrices] = {}
    for candidate in lone:
        if FEWEST <= candidate.load.members <= MOST:
            weighed_apart |= dict.fromkeys(_named_groups(formed, candidate), prices_of(candidate))
    return Sharing(groups, {**formed.apart, **_reasons(formed, lone, pricing, prices_of)}, weighed, weighed_apart)


def _reasons(formed: Formed, lone: Collection[Set], pricing: Pricing,
             prices_of: Callable[[Set], QueryGroupPrices]) -> dict[str, str]:
    """Why queries of these forms run apart, by their names: what sharing would cost, with their own form and with
    others.
    """
    reasons: dict[str, str] = {}
    wider = losers([candidate.forms[0] for candidate in lone], pricing)
    for candidate in lone:
        (of_form,) = candidate.forms
        names, other = formed.forms[of_form.name], ""
        if of_form.apart:
            other = CANNOT.format(reason=of_form.apart)
        elif of_form.name in wider:
            whole = wider[of_form.name]
            prices = prices_of(whole)
            other = OTHERS.format(count=whole.load.members - len(names), together=prices.together_s,
                                  apart=prices.apart_s)
        reason = LONE.format(other=other) + (QUARTER if of_form.name in wider else "")
        if len(names) >= FEWEST:
            prices = prices_of(candidate)
            reason = DEAR.format(count=len(names), together=prices.together_s, apart=prices.apart_s, other=other)
            reason += QUARTER
        reasons |= dict.fromkeys(names, reason)
    return reasons


def family_plans(groups: tuple[Group, ...], pricing: Pricing, plans_before: Mapping[str, Plan],
                 seconds: Mapping[str, float]) -> tuple[Plan, ...]:
    """The plans of a family's groups: divided among tasks in the way that costs least for the rows there are, with the
    joins that are made once by what was counted of them (`seconds`); without counts, those that are made once now.
    """
    whole = united([one(form_of(str(number), group), pricing) for number, group in enumerate(groups)], pricing)
    standing = _division_before(groups, plans_before)
    division = cheapest(whole.reading, whole.rows, pricing.parts, pricing.costs, standing)
    divided = tuple(replace(group, chosen=plan) for group, plan in zip(groups, division_plans(groups, division)))
    as_before = with_joins_of(divided, division, plans_before)
    if not seconds:
        return tuple(group.plan for group in as_before)
    return steered(divided, division, seconds, {key.name for key in pairs_read(as_before)})


def _division_before(groups: Iterable[Group], plans_before: Mapping[str, Plan]) -> FamilyDivision | None:
    """How tasks divided a family by the plans that its members had."""
    for group in groups:
        for plan in (plans_before[name] for name in group.names if name in plans_before):
            division = divided_by(replace(group, chosen=plan))
            if division is not None:
                return division
    return None


def _named_groups(formed: Formed, candidate: Set) -> dict[str, tuple[str, ...]]:
    """The members of a set of forms, under the name of the group that they are."""
    form_names = sorted(f.name for f in candidate.forms)
    if len(form_names) == 1:
        return groups_of_form(form_names[0], formed.forms[form_names[0]])
    members = tuple(name for form_name in form_names for name in formed.forms[form_name])
    return {f"shared:{digest(' '.join(form_names))}-0": members}


@lru_cache(maxsize=4096)
def priced_form(name: str, texts: tuple[tuple[str, str], ...], catalog: Catalog) -> Form:
    """What the price of these queries' group depends on; all of them have one join shape."""
    return form_of(name, grouped(texts, catalog))


class Rows:
    """Rows of streams at a boundary, by the bounds of their files; counted once for each set of windows."""

    def __init__(self, pipe: OpenPipeline, boundary: int) -> None:
        self.pipe, self.boundary = pipe, boundary
        self.counts: dict[tuple[str, frozenset[Window]], tuple[float, float]] = {}

    def __call__(self, stream: str, windows: frozenset[Window]) -> tuple[float, float]:
        """Rows in the longest of these windows, and rows that came since the boundary before."""
        if (stream, windows) not in self.counts:
            self.counts[stream, windows] = self._count(stream, windows)
        return self.counts[stream, windows]

    def scale(self, forms: Iterable[Form]) -> tuple[tuple[str, str, int, int], ...]:
        """The orders of magnitude of all that forms read: while they stay, what was decided stands."""
        counts = {}
        for f in forms:
            for stream, windows in f.windows.items():
                counts[stream, windows] = self(stream, windows)
        return tuple((stream, repr(windows), round(log(1 + read, MOVED)), round(log(1 + came, MOVED)))
                     for (stream, windows), (read, came) in counts.items())

    def _count(self, stream: str, windows: frozenset[Window]) -> tuple[float, float]:
        if not tables.exists(self.pipe.path("streams", stream)):
            return 0.0, 0.0
        files, stamp = self.pipe.table(f"streams/{stream}").files(), self.pipe.pipeline.streams[stream].event_time
        oldest = min(window.oldest(self.boundary) for window in windows)
        at, batch = self.boundary, self.pipe.pipeline.batch
        read = rows_in(files, stamp, Range(-ALWAYS, at, oldest, at))
        return read, sum(_came(file, at, batch) for file in files)


def _came(file: File, at: int, batch: int) -> float:
    """Rows of a file that came for this boundary: of one that holds several, as many as for each."""
    low, high = file.low.get("_boundary", at), file.high.get("_boundary", at)
    return file.rows * batch / (high - low + batch) if low <= at <= high else 0.0
