"""Which forms of queries become one family: the paper's growing, thinning and merging of groups (Fig. 7a), steered by
the price of what is really run.

Equation (2) counts tuples between operators; here there are none of them but merged cells, so that seconds by rows,
classes and forms judge better. Pure.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from optimizer.query.windows import Window
from optimizer.sharing.family import apart, connected, keys
from optimizer.sharing.group import Group
from optimizer.sharing.grouping import Groups, groups
from optimizer.sharing.price import FAMILY, LEAST, Load, each_alone, together

MOST = 2_000            # queries that one work answers: its statements grow with them
UNITS = 16              # that are weighed pair by pair; of more, those of nearest windows are put together first
NEVER = float("inf")
T = TypeVar("T")
Windows = Mapping[str, frozenset[Window]]                            # by stream
# of a stream: rows in any of the windows, rows that came with the last batch
Rows = Callable[[str, frozenset[Window]], tuple[float, float]]


@dataclass(frozen=True)
class Form:
    """The queries of one form: what its family has to scan and to divide its tasks by, and why there can be none
    (`apart`).
    """

    name: str
    windows: Windows
    keys: Mapping[str, frozenset[str]]
    classes: int
    members: int
    apart: str | None = None


@dataclass(frozen=True)
class Set:
    """Forms as one work.

    `apart_s` are seconds of each for itself in the best way, `merged` rows from whose cells they merge their own sets.
    """

    forms: tuple[Form, ...]
    windows: Windows
    keys: Mapping[str, frozenset[str]]
    load: Load
    apart_s: float

    @property
    def related(self) -> bool:
        """Whether one work can answer them: the streams hang together, and one key divides each source."""
        return all(len(k) == 1 for k in self.keys.values()) and connected([set(f.windows) for f in self.forms])

    @property
    def together_s(self) -> float:
        many = len(self.forms) > 1
        return NEVER if many and (self.load.members > MOST or any(f.apart for f in self.forms)
                                  or not self.related) else together(self.load)


def form(name: str, group: Group) -> Form:
    windows: dict[str, set[Window]] = {}
    for declared in group.common.inputs:
        if declared.window is not None:
            windows.setdefault(declared.source, set()).add(declared.window)
    divided = {source: frozenset(map(repr, exprs)) for source, exprs in (keys(group) or {}).items()}
    return Form(name, {
        s: frozenset(w) for s, w in windows.items()
    }, divided, len(group.classes), len(group.names), apart(group))


def one(own: Form, rows: Rows, least: int = LEAST) -> Set:
    found = [rows(stream, windows) for stream, windows in own.windows.items()]
    load = Load(sum(r for r, _ in found), sum(c for _, c in found), own.classes, own.members)
    return Set((own,), own.windows, own.keys, load,
               min(each_alone(load), together(load)) if own.members >= least else each_alone(load))


def united(sets: Iterable[Set], rows: Rows) -> Set:
    """What they read and make as one work."""
    listed = tuple(sets)
    if len(listed) == 1:
        return listed[0]
    windows, divided = _merged(s.windows for s in listed), _merged(s.keys for s in listed)
    loads = [s.load for s in listed]
    members = sum(x.members for x in loads)
    load = Load(sum(rows(stream, own)[0] for stream, own in windows.items()),
                sum(x.came_rows * x.members for x in loads) / members, sum(x.classes for x in loads), members,
                sum(x.forms for x in loads), sum(x.merged_rows if x.forms > 1 else x.window_rows for x in loads))
    return Set(tuple(f for s in listed for f in s.forms), windows, divided, load, sum(s.apart_s for s in listed))


def _merged(each: Iterable[Mapping[str, frozenset[T]]]) -> dict[str, frozenset[T]]:
    found: dict[str, frozenset[T]] = {}
    for mapping in each:
        for name, values in mapping.items():
            found[name] = found.get(name, frozenset()) | values
    return found


def families(forms: Iterable[Form], rows: Rows, standing: Iterable[frozenset[str]] = (), least: int = LEAST,
             fewest: int = FAMILY) -> tuple[Set, ...]:
    """The sets that one work answers each; a form that shares with no other is a set of its own. `standing`: the names
    of the forms that share now.

    Sets of several forms have `fewest` queries at least."""
    found = _families(forms, rows, standing, least)
    small = [len(s.forms) > 1 and s.load.members < fewest for s in found]
    return tuple(
        part for s, few in zip(found, small) for part in ([one(f, rows, least) for f in s.forms] if few else [s]))


def _families(forms: Iterable[Form], rows: Rows, standing: Iterable[frozenset[str]], least: int) -> tuple[Set, ...]:
    listed = tuple(forms)
    units = _units([one(f, rows, least) for f in listed if not f.apart], rows)
    known: dict[frozenset[str], Set] = {}

    def of(names: frozenset[str]) -> Set:
        if names not in known:
            known[names] = united([units[n] for n in sorted(names)], rows)
        return known[names]

    def cost(names: frozenset[str]) -> float:
        whole = of(names)
        return min(whole.together_s, whole.apart_s) if len(names) == 1 else whole.together_s

    found = groups(units, cost, _begun(_standing(standing, units), units, cost))
    parted = [names for names in found if len(names) == 1 and of(names).together_s >= of(names).apart_s]
    lone = [*(f for names in parted for f in of(names).forms), *(f for f in listed if f.apart)]
    return (*(of(names) for names in found if names not in parted), *(one(f, rows, least) for f in lone))


def _standing(groups_: Iterable[frozenset[str]], units: Mapping[str, Set]) -> Groups:
    """Those that stand, said in units; each unit is in the first that has one of its forms."""
    found, left = [], dict(units)
    for group in groups_:
        own = frozenset(u for u, s in left.items() if any(f.name in group for f in s.forms))
        left = {u: s for u, s in left.items() if u not in own}
        found += [own] if len(own) > 1 else []
    return tuple(found)


def _units(sets: list[Set], rows: Rows) -> dict[str, Set]:
    """Forms of the same windows are one from the start: another of them adds no row to the scan."""
    found: dict[str, list[Set]] = {}
    for s in sets:
        found.setdefault(
            repr(sorted(
                (name, sorted(map(repr, own)), sorted(s.keys.get(name, ""))) for name, own in s.windows.items())),
            []).append(s)
    units = [u for same in found.values() for u in _fitting(same, rows)]
    units.sort(key=lambda u: (repr(sorted(u.windows)), u.load.window_rows))
    while len(units) > UNITS:
        pairs = [(united(pair, rows), k) for k, pair in enumerate(zip(units, units[1:]))]
        best, k = min(pairs,
                      key=lambda p: p[0].together_s - together(units[p[1]].load) - together(units[p[1] + 1].load))
        if best.together_s == NEVER:
            break
        units[k:k + 2] = [best]
    return {u.forms[0].name: u for u in units}


def _fitting(same: list[Set], rows: Rows) -> list[Set]:
    whole = united(same, rows)
    return [whole] if whole.together_s < NEVER else same


def _begun(standing: Groups, units: Mapping[str, Set], cost: Callable[[frozenset[str]], float]) -> Groups:
    """What stands, and of the others those that save most: many make up for a scan's cost, which no pair of them shows.
    """
    found = list(standing)
    free = sorted((u for u in units if not any(u in g for g in found)), key=lambda u: (units[u].load.window_rows, u))
    while tried := _nested(free, cost):
        best, saved = max(((g, sum(cost(frozenset({u})) for u in g) - cost(g)) for g in tried),
                          key=lambda pair: pair[1])
        if saved <= 0:
            break
        found.append(best)
        free = [u for u in free if u not in best]
    return tuple(found)


def _nested(free: list[str], cost: Callable[[frozenset[str]], float]) -> list[frozenset[str]]:
    """Of each unit with those that can join it, the smallest windows first: every run of them."""
    found = []
    for seed in free:
        reached = frozenset({seed})
        for other in free:
            if other != seed and cost(reached | {other}) < NEVER:
                reached |= {other}
                found.append(reached)
    return list(dict.fromkeys(found))
