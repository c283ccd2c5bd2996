"""The ways to do one group's work, each priced by what it counts of its own cells: what divides it among tasks, and
when it is split by query. Pure.

Seconds of the slowest task at one boundary, by the unit costs of sharing (optimizer.sharing.price): only time hangs on
them.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from optimizer.plan.model import Plan
from optimizer.sharing.counted import HEAVY, JOINED, KEYS, MARKS, MET, UNION, Tally
from optimizer.sharing.group import Group
from optimizer.sharing.marks import WORD
from optimizer.sharing.price import HYSTERESIS, STATED, SharingCosts

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
    """Those that can do it; one that splits after the join is of no use where no input is told apart. Rows have
    query-sets until they are in a file.
    """
    if group.common.returns_rows:
        return (Way("after"),)
    usual = group.keyed
    splits = ("before", "after") if usual and any(group.marks[i].names for i in group.told_apart) else ("before",)
    streams = [i for i, declared in enumerate(group.common.inputs) if declared.is_stream] if usual else []
    return tuple(Way(split, i) for i in (None, *streams) for split in splits)


def in_words(plan: Plan) -> str:
    """The way of a group's plan in words, for decisions."""
    by = "key" if plan.exchange == "partition" else "files"
    by = f"the files of input {plan.divided + 1}" if plan.divided is not None else by
    once = ""
    if plan.read_joined:
        once = f", inputs {' and '.join(str(i + 1) for i in plan.read_joined)} joined once for several forms"
    return f"split {plan.split} the join, {'in one task' if plan.parts == 1 else f'divided by {by}'}{once}"


def way_of(plan: Plan) -> Way:
    return Way(plan.split, plan.divided)


def planned(group: Group, way: Way) -> Plan:
    """The group's plan by this way."""
    exchange = "partition" if way.divided is None and group.keyed else "slice"
    return replace(group.plan, split=way.split, divided=way.divided, exchange=exchange)


def seconds(group: Group, tally: Tally, answer_rows: float, parts: int, costs: SharingCosts = STATED) -> Seconds:
    """Of every way, for so many tasks; `answer_rows` are those of one class's answer."""
    statements = costs.shared + costs.form
    return {way.name: statements + _seconds(group, tally, answer_rows, parts, way, costs) for way in ways(group)}


def chosen(group: Group, priced: Seconds, standing: Way | None = None) -> Way:
    """The cheapest.

    One that stands stays until another is cheaper by the hysteresis, and keys divide until files do by as much.
    """
    usual = standing if standing is not None and standing in ways(group) else ways(group)[0]
    with_prices = [way for way in ways(group) if way.name in priced]
    best = min(with_prices, key=lambda way: priced[way.name] * (1 if way.divided is None else HYSTERESIS),
               default=usual)
    stays = usual.name in priced and priced[usual.name] <= priced[best.name] * HYSTERESIS
    return usual if stays else best


def _seconds(group: Group, tally: Tally, answer_rows: float, parts: int, way: Way, costs: SharingCosts) -> float:
    inputs = range(len(group.common.inputs))
    work = 0.0
    for i in inputs:
        rows = _of(tally, i, UNION)[0]
        # By key all tasks have alike, since the rows of one key are merged to few cells, which is cheap.
        share = 1.0 if way.divided not in (None, i) else 1 / parts
        work += rows * (costs.read / (parts if way.divided == i else 1) + costs.merge * share)
    if way.split == "before":
        return work + splitting_before(group, tally, parts, way, costs)
    return work + splitting_after(group, tally, answer_rows, parts, way, costs)


def _most(heaviest: float, parts: int) -> float:
    """What the task with the heaviest key has, where the other keys divide evenly."""
    return min(heaviest, 1.0) + (1 - min(heaviest, 1.0)) / parts


def splitting_before(group: Group, tally: Tally, parts: int, way: Way, costs: SharingCosts) -> float:
    """Sets by class are made of cells, then joined: of each class every set row meets those of its key."""
    unnested, met = 0.0, 1.0
    inputs, count = range(len(group.common.inputs)), len(group.classes)
    keys = max(*(_of(tally, i, KEYS)[0] for i in inputs), 1.0)
    for i in inputs:
        sets = _set_rows(group, tally, i)
        if way.divided == i:
            sets = min(sets, count * _of(tally, i, UNION)[0] / parts)
        if i in group.told_apart:
            running = 0.0
            if group.marks[i].direction == "between":      # choices have two ends: each set has two sums at every cut
                running = 2 * _of(tally, i, KEYS)[1] * _of(tally, i, MARKS)[0]
            share = 1.0
            if way.divided is None:
                cells, heaviest = _of(tally, i, UNION)[1], _of(tally, i, HEAVY)[1]
                share = _most(heaviest / cells if cells else 0.0, parts)
            unnested += max(sets, running) * share
        met *= sets / count
    met = count * met / keys ** (len(inputs) - 1)
    pairs = met * _share_of_pairs(tally, parts, way)
    return costs.class_sets * count + costs.unnest * unnested + costs.probe * pairs


def splitting_after(group: Group, tally: Tally, answer_rows: float, parts: int, way: Way,
                    costs: SharingCosts) -> float:
    """Cells meet, then their query-sets' pairs are given to each class that both hold."""
    apart = [i for i in group.told_apart if group.marks[i].names]
    met = _of(tally, JOINED, MET)[0]
    words = -(-len(group.classes) // WORD) if len(apart) > 1 else 0
    pairs, classes = max(answer_rows, 1.0), float(len(group.classes))
    for i in apart:
        pairs *= max(_of(tally, i, MARKS)[0], 1.0)
        classes *= _mean_share_of_cells(group, tally, i)
    meeting = met * (costs.meet + words * costs.words) * _share_of_pairs(tally, parts, way)
    return meeting + costs.split * min(met, pairs) * classes


def _share_of_pairs(tally: Tally, parts: int, way: Way) -> float:
    """Of the pairs that meet, the share of the task that has most."""
    if way.divided is not None:
        return 1 / parts
    met, of_heaviest = _of(tally, JOINED, MET)
    return _most(of_heaviest / met if met else 0.0, parts)


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


def share_of_classes(group: Group, tally: Tally) -> float:
    """The mean share of all that meets that a class takes."""
    return prod(_mean_share_of_cells(group, tally, i) for i in group.told_apart)


def _mean_share_of_cells(group: Group, tally: Tally, i: int) -> float:
    """The mean share of the cells that a class takes."""
    cells = _of(tally, i, UNION)[1]
    if not cells:
        return 0.0
    shares = [min(_of(tally, i, numbers[i])[1] / cells, 1.0) for numbers in group.classes]
    return sum(shares) / len(shares)


def _of(tally: Tally, i: int, what: int) -> tuple[float, float]:
    return tally.get((i, what), (0.0, 0.0))
