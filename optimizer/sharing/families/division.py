"""By what tasks divide a family's work: one key of each source, the files of one stream, or nothing, in one task. Pure.

Where all groups join each source on one key, tasks divide all sources by it. Else each combination is still made by one
task where they divide the files of a stream that every group reads once, and have the others whole.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from optimizer.expression.expr import Expr
from optimizer.plan.model import Plan
from optimizer.query.normal import placed
from optimizer.query.shape import shape
from optimizer.sharing.group import Group
from optimizer.sharing.price import HYSTERESIS, SharingCosts

DIVISIONS = {
    "key": "each task reads all sources and keeps the keys of its hash",
    "files": "the files of one stream are divided among the tasks, the other sources are whole in each",
    "one": "one task does all",
}


@dataclass(frozen=True)
class FamilyDivision:
    """How tasks divide a family: `FamilyDivision("files", "views")` divides the files of the stream views."""

    by: str
    stream: str | None = None

    def __post_init__(self) -> None:
        if self.by not in DIVISIONS or (self.by == "files") != (self.stream is not None):
            raise ValueError(f"division by {self.by} of {self.stream}: known are {', '.join(DIVISIONS)}, and files are "
                             "those of a stream")

    def spread(self, rows: Mapping[str, float], parts: int) -> float:
        """By how many times one of so many tasks reads more rows than if all sources were divided."""
        total = sum(rows.values())
        if self.by == "key" or not total:
            return 1.0
        divided = rows.get(self.stream, 0.0) if self.stream is not None else 0.0
        return (divided + parts * (total - divided)) / total


BY_KEY, ONE_TASK = FamilyDivision("key"), FamilyDivision("one")


@dataclass(frozen=True)
class Reading:
    """How queries read their sources, as far as tasks can divide by it: by source what joins divide it by, whether each
    join has such a key, and the streams that each query reads in one input.

    `Reading({"views": frozenset({"user"})}, True, frozenset({"views"}))`.
    """

    keys: Mapping[str, frozenset[str]]
    is_keyed: bool
    once: frozenset[str]

    @property
    def divisions(self) -> tuple[FamilyDivision, ...]:
        """The ways to divide the work: by key wherever that is possible."""
        if self.is_keyed and all(len(of_source) == 1 for of_source in self.keys.values()):
            return (BY_KEY,)
        return (*(FamilyDivision("files", stream) for stream in sorted(self.once)), ONE_TASK)


def reading(group: Group) -> Reading:
    """How one query group reads its sources; a single input is divided by whatever others divide it by."""
    inputs = group.common.inputs
    times = Counter(declared.source for declared in inputs if declared.is_stream)
    once = frozenset(source for source, count in times.items() if count == 1)
    if len(inputs) == 1:
        return Reading({}, True, once)
    exprs_by_source: dict[str, set[Expr]] = {}
    common = shape(group.common).common_key()
    for i, attribute in enumerate(common or ()):
        exprs_by_source.setdefault(inputs[i].source, set()).add(placed(attribute.expr, {i: 0}))
    keys = {source: frozenset(map(repr, exprs)) for source, exprs in exprs_by_source.items()}
    return Reading(keys, common is not None, once)


def of_all(readings: Iterable[Reading]) -> Reading:
    """How these read their sources as one work."""
    listed = tuple(readings)
    keys: dict[str, frozenset[str]] = {}
    for one in listed:
        for source, exprs in one.keys.items():
            keys[source] = keys.get(source, frozenset()) | exprs
    once = frozenset.intersection(*(one.once for one in listed))
    return Reading(keys, all(one.is_keyed for one in listed), once)


def cheapest(reading: Reading, rows: Mapping[str, float], parts: int, costs: SharingCosts,
             standing: FamilyDivision | None = None) -> FamilyDivision:
    """The division by which the slowest of so many tasks takes least, for so many rows in the windows of each stream.

    One that stands stays until another is cheaper by the hysteresis.
    """
    seconds = {division: divided_seconds(division, rows, parts, costs) for division in reading.divisions}
    best = min(seconds, key=lambda division: seconds[division])
    return standing if standing in seconds and seconds[standing] <= seconds[best] * HYSTERESIS else best


def divided_seconds(division: FamilyDivision, rows: Mapping[str, float], parts: int, costs: SharingCosts) -> float:
    """Seconds of reading the windows that depend on how tasks divide them."""
    tasks = 1 if division == ONE_TASK else parts
    return sum(rows.values()) * division.spread(rows, parts) * costs.shared_row + (tasks - 1) * costs.task


def planned(groups: Sequence[Group], division: FamilyDivision) -> tuple[Plan, ...]:
    """The plan of each group of a family that is divided so."""
    plans = []
    for group in groups:
        plan = group.plan
        if division.stream is not None:
            sources = [declared.source for declared in group.common.inputs]
            plan = replace(plan, exchange="slice", divided=sources.index(division.stream))
        elif division == ONE_TASK:
            plan = replace(plan, parts=1)
        plans.append(plan)
    return tuple(plans)


def division_of(groups: Sequence[Group]) -> FamilyDivision:
    """How these groups' plans divide their work; a family's plans agree."""
    divisions = {divided_by(group) for group in groups}
    divisions.discard(None)      # a single input goes with the others
    if len(divisions) > 1:
        raise ValueError(f"plans of one family divide it in several ways: {divisions}")
    return next(iter(divisions), None) or BY_KEY


def divided_by(group: Group) -> FamilyDivision | None:
    """How a group's plan divides its work; None for a single input, which is divided as others divide it."""
    if group.plan.divided is not None:
        return FamilyDivision("files", group.common.inputs[group.plan.divided].source)
    if group.plan.parts == 1:
        return ONE_TASK
    return None if len(group.common.inputs) == 1 else BY_KEY
