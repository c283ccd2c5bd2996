"""Which query groups become one family: the paper's growing, thinning and merging of groups (Fig. 7a), steered by the
price of what is really run.

Equation (2) counts tuples between operators; here there are none of them but merged cells, so that seconds by rows,
classes and forms judge better. Pure.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from optimizer.papers.sharing import Groups, groups
from optimizer.query.windows import Window
from optimizer.sharing.family import apart, connected, keys
from optimizer.sharing.group import Group
from optimizer.sharing.price import FAMILY, LEAST, STATED, Load, SharingCosts, each_alone, together

MOST = 2_000            # queries that one work answers: its statements grow with them
UNITS = 16              # that are weighed pair by pair; of more, those of nearest windows are put together first
NEVER = float("inf")
T = TypeVar("T")
Windows = Mapping[str, frozenset[Window]]                            # by stream
# of a stream: rows in any of the windows, rows that came with the last batch
Rows = Callable[[str, frozenset[Window]], tuple[float, float]]


@dataclass(frozen=True)
class Form:
    """The queries of one form (join shape): what its family has to scan and to divide its tasks by, and why it cannot
    be in a family (`apart`). `lists`: SELECT lists of row queries.
    """

    name: str
    windows: Windows
    keys: Mapping[str, frozenset[str]]
    classes: int
    members: int
    apart: str | None = None
    lists: int = 0


@dataclass(frozen=True)
class Set:
    """Forms as one work, by what sharing costs.

    `apart_s` are seconds of each for itself in the best way.
    """

    forms: tuple[Form, ...]
    windows: Windows
    keys: Mapping[str, frozenset[str]]
    load: Load
    apart_s: float
    costs: SharingCosts = STATED

    @property
    def related(self) -> bool:
        """Whether one work can answer them: the streams hang together, and one key divides each source."""
        return all(len(k) == 1 for k in self.keys.values()) and connected([set(f.windows) for f in self.forms])

    @property
    def together_s(self) -> float:
        if len(self.forms) > 1:
            if self.load.members > MOST or any(form.apart for form in self.forms) or not self.related:
                return NEVER
        return together(self.load, self.costs)


def form(name: str, group: Group) -> Form:
    windows: dict[str, set[Window]] = {}
    for declared in group.common.inputs:
        if declared.window is not None:
            windows.setdefault(declared.source, set()).add(declared.window)
    windows_by_stream = {stream: frozenset(of_stream) for stream, of_stream in windows.items()}
    divided = {source: frozenset(map(repr, exprs)) for source, exprs in (keys(group) or {}).items()}
    return Form(name, windows_by_stream, divided, len(group.classes), len(group.names), apart(group),
                len(group.templates) if group.common.returns_rows else 0)


def one(form: Form, rows: Rows, least: int = LEAST, costs: SharingCosts = STATED) -> Set:
    """A form as a set by itself."""
    counts = [rows(stream, windows) for stream, windows in form.windows.items()]
    load = Load(sum(in_windows for in_windows, _ in counts), sum(came for _, came in counts), form.classes,
                form.members, lists=form.lists)
    seconds = each_alone(load, costs)
    if form.members >= least:
        seconds = min(seconds, together(load, costs))
    return Set((form,), form.windows, form.keys, load, seconds, costs)


def united(sets: Iterable[Set], rows: Rows) -> Set:
    """What they read and make as one work."""
    listed = tuple(sets)
    if len(listed) == 1:
        return listed[0]
    windows, divided = _merged(s.windows for s in listed), _merged(s.keys for s in listed)
    loads = [s.load for s in listed]
    members = sum(load.members for load in loads)
    load = Load(
        window_rows=sum(rows(stream, of_stream)[0] for stream, of_stream in windows.items()),
        came_rows=sum(load.came_rows * load.members for load in loads) / members,
        classes=sum(load.classes for load in loads),
        members=members,
        forms=sum(load.forms for load in loads),
        merged_rows=sum(load.merged_rows if load.forms > 1 else load.window_rows for load in loads),
    )
    forms = tuple(chain.from_iterable(s.forms for s in listed))
    return Set(forms, windows, divided, load, sum(s.apart_s for s in listed), listed[0].costs)


def _merged(mappings: Iterable[Mapping[str, frozenset[T]]]) -> dict[str, frozenset[T]]:
    union: dict[str, frozenset[T]] = {}
    for mapping in mappings:
        for name, values in mapping.items():
            union[name] = union.get(name, frozenset()) | values
    return union


def families(forms: Iterable[Form], rows: Rows, standing: Iterable[frozenset[str]] = (), least: int = LEAST,
             fewest: int = FAMILY, costs: SharingCosts = STATED) -> tuple[Set, ...]:
    """The sets that one work answers each; a form that shares with no other is a set of its own. `standing`: the names
    of the forms that share now.

    Sets of several forms have `fewest` queries at least.
    """
    sets: list[Set] = []
    for family in _families(forms, rows, standing, least, costs):
        if len(family.forms) > 1 and family.load.members < fewest:
            sets += [one(form, rows, least, costs) for form in family.forms]
        else:
            sets.append(family)
    return tuple(sets)


def _families(forms: Iterable[Form], rows: Rows, standing: Iterable[frozenset[str]], least: int,
              costs: SharingCosts) -> tuple[Set, ...]:
    listed = tuple(forms)
    units = _units([one(f, rows, least, costs) for f in listed if not f.apart], rows)
    set_by_units: dict[frozenset[str], Set] = {}

    def set_of(names: frozenset[str]) -> Set:
        if names not in set_by_units:
            set_by_units[names] = united([units[name] for name in sorted(names)], rows)
        return set_by_units[names]

    def cost(names: frozenset[str]) -> float:
        whole = set_of(names)
        return min(whole.together_s, whole.apart_s) if len(names) == 1 else whole.together_s

    families: list[Set] = []
    lone: list[Form] = []
    for names in groups(units, cost, _with_large_runs(_standing(standing, units), units, cost)):
        whole = set_of(names)
        if len(names) == 1 and whole.together_s >= whole.apart_s:
            lone += whole.forms
        else:
            families.append(whole)
    lone += [form for form in listed if form.apart]
    return (*families, *(one(form, rows, least, costs) for form in lone))


def _standing(groups_: Iterable[frozenset[str]], units: Mapping[str, Set]) -> Groups:
    """The groups that stand, as names of units; each unit is in the first that has one of its forms."""
    standing, left = [], dict(units)
    for group in groups_:
        members = frozenset(unit for unit, s in left.items() if any(form.name in group for form in s.forms))
        left = {unit: s for unit, s in left.items() if unit not in members}
        standing += [members] if len(members) > 1 else []
    return tuple(standing)


def _units(sets: list[Set], rows: Rows) -> dict[str, Set]:
    """Forms of the same windows are one from the start: another of them adds no row to the scan."""
    sets_by_scan: dict[str, list[Set]] = {}
    for s in sets:
        scan = []
        for stream, windows in s.windows.items():
            scan.append((stream, sorted(map(repr, windows)), sorted(s.keys.get(stream, ""))))
        sets_by_scan.setdefault(repr(sorted(scan)), []).append(s)
    units: list[Set] = []
    for same_scan in sets_by_scan.values():
        whole = united(same_scan, rows)
        units += [whole] if whole.together_s < NEVER else same_scan
    units.sort(key=lambda u: (repr(sorted(u.windows)), u.load.window_rows))

    def extra_seconds(pair: tuple[Set, int]) -> float:
        whole, k = pair
        return whole.together_s - sum(together(unit.load, unit.costs) for unit in units[k:k + 2])

    while len(units) > UNITS:
        pairs = [(united(pair, rows), k) for k, pair in enumerate(zip(units, units[1:]))]
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
