"""Which sets of queries one work answers, by the prices of the rows there are; and why each other query runs apart.

Streams' files are counted, no row is read and nothing is remembered.
"""
from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import log

from jobs.adapt.statistics import rows_in
from jobs.batch.shared import digest, grouped
from jobs.ledger.entries import QueryGroupPrices
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.storage import tables
from jobs.storage.tables import File
from optimizer.plan.membership import Range
from optimizer.query.model import Catalog
from optimizer.query.windows import ALWAYS, Window
from optimizer.sharing.group import parts_of
from optimizer.sharing.pool import MOST, Form, Set, families
from optimizer.sharing.pool import form as form_of
from optimizer.sharing.pool import one
from optimizer.sharing.price import FAMILY, SharingCosts, each_alone, pays, rule, together

MOVED = 1.2             # by this factor a stream's rows change before families are weighed again
DEAR = ("{count} queries of its form are in force, but their windows hold so many rows that each for itself, from "
        "state, costs less")
LONE = "no other query in force joins the same windows in the same way by the same groups{other}"
FEW = "only {count} queries of its form are in force, and sharing pays from {least} on{other}"
OTHER = {
    True: "; with other forms on its streams they are fewer than {family}, or one scan for all would cost more",
    False: ""
}


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
            apart |= dict.fromkeys(names, _few(len(names), least))
    return Sharing(groups, apart)


def groups_of_form(form_name: str, names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """One form with very many members is several groups."""
    return {f"shared:{form_name}-{k}": part for k, part in enumerate(parts_of(names, MOST))}


def weighed_sets(formed: Formed, forms: Collection[Form], rows: Rows, now: Mapping[str, set[str]], least: int,
                 times: Mapping[str, float], costs: SharingCosts) -> Sharing:
    """Sets that pay; of one that does not, the forms that do by themselves.

    `times`: seconds by what a group counted, over those by the rule.
    """
    groups: dict[str, tuple[str, ...]] = {}
    weighed: dict[str, QueryGroupPrices] = {}
    weighed_apart: dict[str, QueryGroupPrices] = {}
    apart = dict(formed.apart)

    def price(candidate: Set) -> float:
        factors = [times.get(group, 1.0) for group in _named_groups(formed, candidate)]
        return together(candidate.load, costs) * max(factors, default=1.0)

    def does_pay(candidate: Set) -> bool:
        form_names = {f.name for f in candidate.forms}
        shares_already = any(form_names & names for names in now.values())
        return candidate.load.members >= least and pays(price(candidate), candidate.load, shares_already, costs)

    def prices_of(candidate: Set) -> QueryGroupPrices:
        return QueryGroupPrices(together_s=price(candidate), rule_s=rule(candidate.load, costs),
                                apart_s=each_alone(candidate.load, costs), forms=float(candidate.load.forms),
                                together_off=costs.together_off, apart_off=costs.apart_off)

    for whole in families(forms, rows, [frozenset(names) for names in now.values()], least, FAMILY, costs):
        for candidate in [whole] if does_pay(whole) else [one(f, rows, least, costs) for f in whole.forms]:
            if does_pay(candidate):
                named_groups = _named_groups(formed, candidate)
                groups |= named_groups
                weighed |= dict.fromkeys(named_groups, prices_of(candidate))
            else:
                names = formed.forms[candidate.forms[0].name]
                reason = DEAR.format(count=len(names))
                if len(names) < least:
                    cannot = candidate.forms[0].apart
                    with_others = OTHER[len(forms) > 1].format(family=FAMILY)
                    reason = _few(len(names), least, f"; with others it cannot: {cannot}" if cannot else with_others)
                elif len(names) <= MOST:
                    weighed_apart |= dict.fromkeys(_named_groups(formed, candidate), prices_of(candidate))
                apart |= dict.fromkeys(names, reason)
    return Sharing(groups, apart, weighed, weighed_apart)


def _named_groups(formed: Formed, candidate: Set) -> dict[str, tuple[str, ...]]:
    """The members of a set of forms, under the name of the group that they are."""
    form_names = sorted(f.name for f in candidate.forms)
    if len(form_names) == 1:
        return groups_of_form(form_names[0], formed.forms[form_names[0]])
    members = tuple(name for form_name in form_names for name in formed.forms[form_name])
    return {f"shared:{digest(' '.join(form_names))}-0": members}


def _few(count: int, least: int, other: str = "") -> str:
    return LONE.format(other=other) if count == 1 else FEW.format(count=count, least=least, other=other)


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
