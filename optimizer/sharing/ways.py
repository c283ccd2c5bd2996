"""The ways to do one group's work, each priced by what it counts of its own cells: what divides it among tasks, and
when it is split by query. Pure.

Seconds of the slowest task at one boundary. Unit costs are of `forebay bench sharing-ways` (docs/sharing.md): only time
hangs on them.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from optimizer.plan.model import Plan
from optimizer.sharing.counted import HEAVY, JOINED, KEYS, MARKS, MET, UNION, Tally
from optimizer.sharing.group import Group
from optimizer.sharing.marks import WORD
from optimizer.sharing.price import HYSTERESIS, SHARED

READ = 6e-8             # seconds to read a row, to class its values, and to see whose it is
MERGE = 5e-8            # to note a row's marks and to merge it
CLASS = 7e-4            # of each class whose sets are made
UNNEST = 1.5e-7         # to make a row of a class's set
PROBE = 8e-8            # of each pair of sets that meet in a class
MEET = 7e-8             # of each pair of cells that meet on the key, and for each word of their query-sets
WORDS = 2e-8
SPLIT = 1.3e-7          # to give a merged pair of query-sets to one of its classes
Seconds = Mapping[str, float]       # by a way's name


@dataclass(frozen=True)
class Way:
    """`divided`: the input whose files are dealt; None: tasks divide all inputs by key."""

    split: str
    divided: int | None = None

    @property
    def name(self) -> str:
        return f"{self.split} by key" if self.divided is None else f"{self.split} by files of {self.divided}"


def ways(group: Group) -> tuple[Way, ...]:
    """Those that can do it; one that splits after the join is of no use where no input is told apart."""
    usual = group.keyed
    splits = ("before", "after") if usual and any(group.marks[i].names for i in group.told_apart) else ("before",)
    streams = [i for i, declared in enumerate(group.common.inputs) if declared.is_stream] if usual else []
    return tuple(Way(split, i) for i in (None, *streams) for split in splits)


def said(plan: Plan) -> str:
    """The way of a group's plan in words, for decisions."""
    by = "key" if plan.exchange == "partition" else "files"
    by = f"the files of input {plan.divided + 1}" if plan.divided is not None else by
    return f"split {plan.split} the join, divided by {by}"


def way_of(plan: Plan) -> Way:
    return Way(plan.split, plan.divided)


def planned(group: Group, way: Way) -> Plan:
    """The group's plan by this way."""
    exchange = "partition" if way.divided is None and group.keyed else "slice"
    return replace(group.plan, split=way.split, divided=way.divided, exchange=exchange)


def seconds(group: Group, tally: Tally, answer_rows: float, parts: int) -> Seconds:
    """Of every way, for so many tasks; `answer_rows` are those of one class's answer."""
    return {way.name: SHARED + _seconds(group, tally, answer_rows, parts, way) for way in ways(group)}


def chosen(group: Group, priced: Seconds, standing: Way | None = None) -> Way:
    """The cheapest.

    One that stands stays until another is cheaper by the hysteresis, and keys divide until files do by as much.
    """
    kept = standing if standing in ways(group) else Way("before")
    best = min((w for w in ways(group) if w.name in priced), key=lambda w: priced[w.name] *
               (1 if w.divided is None else HYSTERESIS), default=kept)
    return kept if kept.name in priced and priced[kept.name] <= priced[best.name] * HYSTERESIS else best


def _seconds(group: Group, tally: Tally, answer_rows: float, parts: int, way: Way) -> float:
    inputs = range(len(group.common.inputs))
    work = 0.0
    for i in inputs:
        rows, share = _of(tally, i, UNION)[0], _share(i, parts, way)
        work += rows * (READ / (parts if way.divided == i else 1) + MERGE * share)
    return work + (_before if way.split == "before" else _after)(group, tally, answer_rows, parts, way)


def _share(i: int, parts: int, way: Way) -> float:
    """Of the cost to merge input i's rows, in the task that has most: by key alike, since the rows of one key are
    merged to few cells, which is cheap.
    """
    return 1.0 if way.divided not in (None, i) else 1 / parts


def _most(heaviest: float, parts: int) -> float:
    """What the task with the heaviest key has, where the other keys divide evenly."""
    return min(heaviest, 1.0) + (1 - min(heaviest, 1.0)) / parts


def _before(group: Group, tally: Tally, answer_rows: float, parts: int, way: Way) -> float:
    """Sets by class are made of cells, then joined: of each class every set row meets those of its key."""
    made, met = 0.0, 1.0
    count, keys = len(group.classes), max(max(_of(tally, i, KEYS)[0] for i in range(len(group.common.inputs))), 1.0)
    for i in range(len(group.common.inputs)):
        sets = _set_rows(group, tally, i)
        if way.divided == i:
            sets = min(sets, count * _of(tally, i, UNION)[0] / parts)
        if i in group.told_apart:
            made += max(sets, _running_rows(group, tally,
                                            i)) * (_cell_share(tally, i, parts, way) if way.divided != i else 1.0)
        met *= sets / count
    met = count * met / keys ** (len(group.common.inputs) - 1)
    return CLASS * count + UNNEST * made + PROBE * met * _meeting(tally, parts, way)


def _after(group: Group, tally: Tally, answer_rows: float, parts: int, way: Way) -> float:
    """Cells meet, then their query-sets' pairs are given to each class that both hold."""
    apart = [i for i in group.told_apart if group.marks[i].names]
    met = _of(tally, JOINED, MET)[0]
    words = -(-len(group.classes) // WORD) if len(apart) > 1 else 0
    pairs, classes = max(answer_rows, 1.0), float(len(group.classes))
    for i in apart:
        pairs *= max(_of(tally, i, MARKS)[0], 1.0)
        classes *= _passing(group, tally, i)
    return met * (MEET + words * WORDS) * _meeting(tally, parts, way) + SPLIT * min(met, pairs) * classes


def _meeting(tally: Tally, parts: int, way: Way) -> float:
    met, most = _of(tally, JOINED, MET)
    return _most(most / met if met else 0.0, parts) if way.divided is None else 1 / parts


def _cell_share(tally: Tally, i: int, parts: int, way: Way) -> float:
    cells, heavy = _of(tally, i, UNION)[1], _of(tally, i, HEAVY)[1]
    return 1.0 if way.divided is not None else _most(heavy / cells if cells else 0.0, parts)


def _set_rows(group: Group, tally: Tally, i: int) -> float:
    """Rows of all classes' sets.

    A set of n cells stands where any of them passes: 1 − (1 − p)ⁿ, if p of all cells do.
    """
    cells, sets = _of(tally, i, UNION)[1], _of(tally, i, KEYS)[1]
    if not cells or not sets:
        return 0.0
    share: list[float] = [
        1 - (1 - min(_of(tally, i, vector[i])[1] / cells, 1.0)) ** (cells / sets) for vector in group.classes
    ]
    return sets * sum(share)


def _running_rows(group: Group, tally: Tally, i: int) -> float:
    """Where choices have two ends: each set has two sums at every cut."""
    return 2 * _of(tally, i, KEYS)[1] * _of(tally, i, MARKS)[0] if group.marks[i].direction == "between" else 0.0


def _passing(group: Group, tally: Tally, i: int) -> float:
    """The mean share of the cells that a class takes."""
    cells = _of(tally, i, UNION)[1]
    return sum(min(_of(tally, i, vector[i])[1] / cells, 1.0)
               for vector in group.classes) / len(group.classes) if cells else 0.0


def _of(tally: Tally, i: int, what: int) -> tuple[float, float]:
    return tally.get((i, what), (0.0, 0.0))
