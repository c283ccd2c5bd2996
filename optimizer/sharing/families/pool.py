"""Which query groups become one family: the paper's growing, thinning and merging of groups (Fig. 7a), steered by the
price of what is really run.

Equation (2) counts tuples between operators; here there are none of them but merged cells, so that seconds by rows,
classes and forms judge better. Pure.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TypeVar

from optimizer.papers.sharing import Groups, groups
from optimizer.query.windows import Window
from optimizer.sharing.families.division import FamilyDivision, Reading, cheapest, of_all, reading
from optimizer.sharing.families.family import apart, connected
from optimizer.sharing.group import Group
from optimizer.sharing.price import HYSTERESIS, STATED, Load, SharingCosts, each_alone, together

FEWEST = 2              # queries of which a group is made: one alone has nothing to share
MOST = 2_000            # queries that one work answers: its statements grow with them
UNITS = 16              # that are weighed pair by pair; of more, those of nearest windows are put together first
NEVER = float("inf")
T = TypeVar("T")
Windows = Mapping[str, frozenset[Window]]                            # by stream
# of a stream: rows in any of the windows, rows that came with the last batch
Rows = Callable[[str, frozenset[Window]], tuple[float, float]]


@dataclass(frozen=True)
class Form:
    """The queries of one form (join shape): what its family has to scan, how it is read, and why it cannot be in a
    family (`apart`). `lists`: SELECT lists of row queries.
    """

    name: str
    windows: Windows
    reading: Reading
    classes: int
    members: int
    apart: str | None = None
    lists: int = 0


@dataclass(frozen=True)
class Pricing:
    """What sets of forms are priced with: rows in the windows, tasks that share a work, what sharing costs."""

    rows: Rows
    parts: int = 1
    costs: SharingCosts = STATED


@dataclass(frozen=True)
class Set:
    """Forms as one work, by what sharing costs.

    `rows` are those in the windows of each stream, `apart_s` seconds of each form for itself in the best way.
    """

    forms: tuple[Form, ...]
    windows: Windows
    rows: Mapping[str, float]
    load: Load
    apart_s: float
    pricing: Pricing = field(repr=False)

    @cached_property
    def reading(self) -> Reading:
        return of_all(form.reading for form in self.forms)

    @cached_property
    def division(self) -> FamilyDivision:
        """How tasks divide the work of all."""
        return cheapest(self.reading, self.rows, self.pricing.parts, self.pricing.costs)

    @cached_property
    def related(self) -> bool:
        """Whether one work can answer them: the streams hang together."""
        return connected([set(f.windows) for f in self.forms])

    @property
    def together_s(self) -> float:
        if self.load.members < FEWEST:
            return NEVER
        if len(self.forms) > 1:
            if self.load.members > MOST or any(form.apart for form in self.forms) or not self.related:
                return NEVER
        return together(self.load, self.pricing.costs)


def form(name: str, group: Group) -> Form:
    windows: dict[str, set[Window]] = {}
    for declared in group.common.inputs:
        if declared.window is not None:
            windows.setdefault(declared.source, set()).add(declared.window)
    windows_by_stream = {stream: frozenset(of_stream) for stream, of_stream in windows.items()}
    return Form(name, windows_by_stream, reading(group), len(group.classes), len(group.names), apart(group),
                len(group.templates) if group.common.returns_rows else 0)


def one(form: Form, pricing: Pricing) -> Set:
    """A form as a set by itself; without a common key its tasks divide the files of its first stream."""
    counts = {stream: pricing.rows(stream, windows) for stream, windows in form.windows.items()}
    rows = {stream: in_windows for stream, (in_windows, _) in counts.items()}
    spread = 1.0 if form.reading.is_keyed else FamilyDivision("files", next(iter(rows))).spread(rows, pricing.parts)
    load = Load(sum(rows.values()), sum(came for _, came in counts.values()), form.classes, form.members,
                lists=form.lists, spread=spread)
    seconds = each_alone(load, pricing.costs)
    if form.members >= FEWEST:
        seconds = min(seconds, together(load, pricing.costs))
    return Set((form,), form.windows, rows, load, seconds, pricing)


def united(sets: Iterable[Set], pricing: Pricing) -> Set:
    """What they read and make as one work."""
    listed = tuple(sets)
    if len(listed) == 1:
        return listed[0]
    windows = _merged(s.windows for s in listed)
    rows = {stream: pricing.rows(stream, of_stream)[0] for stream, of_stream in windows.items()}
    forms = tuple(chain.from_iterable(s.forms for s in listed))
    division = cheapest(of_all(form.reading for form in forms), rows, pricing.parts, pricing.costs)
    loads = [s.load for s in listed]
    members = sum(load.members for load in loads)
    load = Load(
        window_rows=sum(rows.values()),
        came_rows=sum(load.came_rows * load.members for load in loads) / members,
        classes=sum(load.classes for load in loads),
        members=members,
        forms=sum(load.forms for load in loads),
        merged_rows=sum(load.merged_rows if load.forms > 1 else load.window_rows for load in loads),
        spread=division.spread(rows, pricing.parts),
    )
    return Set(forms, windows, rows, load, sum(s.apart_s for s in listed), pricing)


def _merged(mappings: Iterable[Mapping[str, frozenset[T]]]) -> dict[str, frozenset[T]]:
    union: dict[str, frozenset[T]] = {}
    for mapping in mappings:
        for name, values in mapping.items():
            union[name] = union.get(name, frozenset()) | values
    return union


def families(forms: Iterable[Form], pricing: Pricing, standing: Iterable[frozenset[str]] = ()) -> tuple[Set, ...]:
    """The sets that one work answers each; a form that shares with no other is a set of its own. `standing`: the names
    of the forms that share now.
    """
    listed = tuple(forms)
    units = _units([one(f, pricing) for f in listed if not f.apart], pricing)
    set_by_units: dict[frozenset[str], Set] = {}

    def set_of(names: frozenset[str]) -> Set:
        if names not in set_by_units:
            set_by_units[names] = united([units[name] for name in sorted(names)], pricing)
        return set_by_units[names]

    def cost(names: frozenset[str]) -> float:
        whole = set_of(names)
        return min(whole.together_s, whole.apart_s) if len(names) == 1 else whole.together_s

    def shares(names: frozenset[str]) -> bool:
        whole = set_of(names)
        return len(names) > 1 or whole.together_s < whole.apart_s

    formed = groups(units, cost, _with_large_runs(_standing(standing, units), units, cost))
    formed = _joined(formed, shares, cost)
    lone = list(chain.from_iterable(set_of(names).forms for names in formed if not shares(names)))
    lone += [form for form in listed if form.apart]
    return (*(set_of(names) for names in formed if shares(names)), *(one(form, pricing) for form in lone))


def _joined(formed: Groups, shares: Callable[[frozenset[str]], bool],
            cost: Callable[[frozenset[str]], float]) -> Groups:
    """With each unit that is alone in the family that it adds least to, where that is less than it costs alone by the
    hysteresis.

    Growing asks how much cheaper the whole gets, which one more of many hardly moves.
    """
    families, left = [names for names in formed if shares(names)], []
    for unit in (names for names in formed if not shares(names)):
        added = [(cost(family | unit) - cost(family), number) for number, family in enumerate(families)]
        least, number = min(added, default=(NEVER, 0))
        if least * HYSTERESIS <= cost(unit):
            families[number] |= unit
        else:
            left.append(unit)
    return (*families, *left)


def losers(lone: Iterable[Form], pricing: Pricing) -> dict[str, Set]:
    """Of forms that share with no other although they could: the work of all that hang together, by each form's name.
    """
    left = [form for form in lone if not form.apart]
    sets: dict[str, Set] = {}
    while left:
        reached = [left.pop(0)]
        while near := [f for f in left if any(f.windows.keys() & other.windows.keys() for other in reached)]:
            reached += near
            left = [form for form in left if form not in near]
        if len(reached) > 1:
            whole = united([one(form, pricing) for form in reached], pricing)
            sets |= dict.fromkeys((form.name for form in reached), whole)
    return sets


def _standing(groups_: Iterable[frozenset[str]], units: Mapping[str, Set]) -> Groups:
    """The groups that stand, as names of units; each unit is in the first that has one of its forms."""
    standing, left = [], dict(units)
    for group in groups_:
        members = frozenset(unit for unit, s in left.items() if any(form.name in group for form in s.forms))
        left = {unit: s for unit, s in left.items() if unit not in members}
        standing += [members] if len(members) > 1 else []
    return tuple(standing)


def _units(sets: list[Set], pricing: Pricing) -> dict[str, Set]:
    """Forms of the same windows are one from the start: another of them adds no row to the scan."""
    sets_by_scan: dict[str, list[Set]] = {}
    for s in sets:
        scan = []
        for stream, windows in s.windows.items():
            scan.append((stream, sorted(map(repr, windows)), sorted(s.reading.keys.get(stream, ""))))
        sets_by_scan.setdefault(repr(sorted(scan)), []).append(s)
    units: list[Set] = []
    for same_scan in sets_by_scan.values():
        whole = united(same_scan, pricing)
        units += [whole] if whole.together_s < NEVER else same_scan
    units.sort(key=lambda u: (repr(sorted(u.windows)), u.load.window_rows))

    def extra_seconds(pair: tuple[Set, int]) -> float:
        whole, k = pair
        return whole.together_s - sum(together(unit.load, pricing.costs) for unit in units[k:k + 2])

    while len(units) > UNITS:
        pairs = [(united(pair, pricing), k) for k, pair in enumerate(zip(units, units[1:]))]
        best, k = min(pairs, key=extra_seconds)
        if best.together_s == NEVER:
            break
        units[k:k + 2] = [best]
    return {u.forms[0].name: u for u in units}


def _with_large_runs(standing: Groups, units: Mapping[str, Set], cost: Callable[[frozenset[str]], float]) -> Groups:
    """What stands, and of the others those that save most: many make up for a scan's cost, which no pair of them shows.
    """
    def saved(group: frozenset[str]) -> float:
        return sum(cost(frozenset({unit})) for unit in group) - cost(group)

    groups_ = list(standing)
    free = sorted(set(units).difference(*standing), key=lambda unit: (units[unit].load.window_rows, unit))
    while runs := _runs(free, cost):
        best = max(runs, key=saved)
        if saved(best) <= 0:
            break
        groups_.append(best)
        free = [unit for unit in free if unit not in best]
    return tuple(groups_)


def _runs(free: list[str], cost: Callable[[frozenset[str]], float]) -> list[frozenset[str]]:
    """Of each unit with those that can join it, the smallest windows first: every run of them."""
    runs = []
    for seed in free:
        reached = frozenset({seed})
        for other in free:
            if other != seed and cost(reached | {other}) < NEVER:
                reached |= {other}
                runs.append(reached)
    return list(dict.fromkeys(runs))
