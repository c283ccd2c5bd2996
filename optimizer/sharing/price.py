"""Seconds of one boundary by one work for all members, and by one work each: a rule of a few unit costs, from counts of
rows; no file is looked at.

The shared work reads its windows anew each time; a query alone keeps state and reads what came. So sharing wins by the
number of queries, and loses where a window is very many batches long and few share it. Unit costs are those of the
benches that `forebay bench` calls `sharing…` (docs/sharing.md), scaled to the machine by what is calibrated there, and
corrected by what batches took: only time hangs on them.
"""
from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import sqrt
from statistics import median

from optimizer.cost.measured import SECONDS, UnitCosts

HYSTERESIS = 1.25       # by this factor the other way must be cheaper for a group to be left, or made
# Kinds of work by whose unit costs a machine is held against the one on which sharing was measured, of rows and of what
# each boundary takes. The median of each: batches that teach one kind of work do not move all.
ROW_WORK = ("scan", "keep", "group", "made", "look", "build", "probe", "between", "pairs")
BOUNDARY_WORK = ("statements", "operands", "writes", "commits", "jobs", "batches")
FURTHEST = 8.0          # times as dear or as cheap as on that machine: what lies beyond is no machine
MEASURED = 5            # batches of one kind from which on what they took corrects prices
KEPT = 9                # that are remembered: the median of so many is not moved by four on a busy machine
MOST_OFF = 4.0          # times as dear or as cheap as priced: what lies beyond is another batch than was priced
FORGOTTEN = 500         # batches after which what was measured of one kind counts no more, so that it is tried again


@dataclass(frozen=True)
class SharingCosts:
    """What it costs to share and not to, in seconds: `STATED.alone` is 0.05, of each query at each boundary.

    `together_off` and `apart_off`: by how many times measured batches were dearer than the rest says.
    """

    shared: float = 0.05            # a work at each boundary, whatever it reads
    shared_row: float = 8e-8        # to read a row of a window and to merge it by marks
    shared_class: float = 1.2e-3    # each further class: unnesting, joining
    alone: float = 0.05             # each query at each boundary: its commits, its share of the driver's work
    alone_row: float = 3e-8         # to read a row that came
    form: float = 0.03              # each form of a work: its statements, whatever they read
    task: float = 0.004             # each further task of a work: its start; stated, nobody has measured it
    merged_row: float = 6e-8        # to merge a form's sets from the cells of so many rows
    # Of row queries:
    joined_row: float = 2.5e-7      # to read a row of a window with its query-set, and to keep it by key
    joined_class: float = 1.2e-3    # each further class, of whose bit every combination is asked
    alone_joined_row: float = 6e-8  # to read a row of a window for one query alone, and to keep it by key
    copied_row: float = 6e-7        # to write a row of an answer once more: to the private table, then to its address
    # Of the ways to do one group's work (optimizer.sharing.ways):
    read: float = 6e-8              # to read a row, to class its values, and to see whose it is
    merge: float = 5e-8             # to note a row's marks and to merge it
    class_sets: float = 7e-4        # each class whose sets are made
    unnest: float = 1.5e-7          # to make a row of a class's set
    probe: float = 8e-8             # each pair of sets that meet in a class
    meet: float = 7e-8              # each pair of cells that meet on the key, and for each word of their query-sets
    words: float = 2e-8
    split: float = 1.3e-7           # to give a merged pair of query-sets to one of its classes
    # Of a join that is made once for several groups (optimizer.sharing.families.steering):
    joined_once: float = 0.11       # its statements, whatever it reads
    joined_each: float = 0.03       # those of a group that makes it for itself
    joined_cells: float = 5.6e-7    # to merge a row of either input to cells, once or for each group
    joined_pairs: float = 1.6e-7    # to read a pair that met for one group
    together_off: float = 1.0
    apart_off: float = 1.0


STATED = SharingCosts()
# The others are of rows.
OF_BOUNDARIES = ("shared", "shared_class", "alone", "form", "task", "joined_class", "class_sets",
                 "joined_once", "joined_each")
FACTORS = ("together_off", "apart_off")


def machine_costs(unit_costs: UnitCosts) -> SharingCosts:
    """What sharing costs on the machine of these unit costs: as many times as dear as where it was measured."""
    rows, boundaries = _times(unit_costs, ROW_WORK), _times(unit_costs, BOUNDARY_WORK)
    names = [cost.name for cost in fields(SharingCosts) if cost.name not in FACTORS]
    return replace(STATED, **{name: getattr(STATED, name) * (boundaries if name in OF_BOUNDARIES else rows)
                              for name in names})


def _times(unit_costs: UnitCosts, kinds: tuple[str, ...]) -> float:
    return _within(median(unit_costs[kind] / SECONDS[kind] for kind in kinds), FURTHEST)


def _within(times: float, furthest: float) -> float:
    return min(max(times, 1 / furthest), furthest)


@dataclass(frozen=True)
class Ratios:
    """What the last batches took, over their prices: `Ratios((1.4, 1.6), 7)`, of which batch 7 was the last."""

    values: tuple[float, ...] = ()
    batch: int = -1

    def with_batch(self, batch: int, ratio: float) -> Ratios:
        before = self.values if self._counts_at(batch) else ()
        return Ratios((*before, ratio)[-KEPT:], batch)

    def factor(self, batch: int) -> float | None:
        """By how many times batches are dearer than priced; None while too few say so, or none has for long."""
        if len(self.values) < MEASURED or not self._counts_at(batch):
            return None
        return _within(median(self.values), MOST_OFF)

    def _counts_at(self, batch: int) -> bool:
        return batch - self.batch <= FORGOTTEN


@dataclass(frozen=True)
class SharingPast:
    """What batches took whose queries shared, and those whose queries ran apart although they could share."""

    together: Ratios = Ratios()
    apart: Ratios = Ratios()

    def correct(self, costs: SharingCosts, batch: int) -> SharingCosts:
        """The costs after this batch.

        Of a way that was not measured half of the other's factor is assumed, by its logarithm: that part is what the
        machine and its load are off by, whatever the way.
        """
        together, apart = self.together.factor(batch), self.apart.factor(batch)
        return replace(costs, together_off=together or sqrt(apart or 1.0), apart_off=apart or sqrt(together or 1.0))


@dataclass(frozen=True)
class Load:
    """Rows in the windows of a work's inputs, rows that came with the last batch to those of one query, classes,
    members; of several forms, how many they are, and rows in the windows of each. Of queries that return rows, how many
    SELECT lists they have (0: of others): each of them reads its windows anew alone as well, and each list the join.
    `spread`: how many times the rows that a task reads are those it would read if all inputs were divided.
    """

    window_rows: float
    came_rows: float
    classes: int
    members: int
    forms: int = 1
    merged_rows: float = 0.0
    lists: int = 0
    spread: float = 1.0


def together(load: Load, costs: SharingCosts = STATED) -> float:
    return rule(load, costs) * costs.together_off


def rule(load: Load, costs: SharingCosts = STATED) -> float:
    """Together, before batches corrected it."""
    statements = costs.shared + load.forms * costs.form
    window_rows, merged_rows = load.window_rows * load.spread, load.merged_rows * load.spread
    if load.lists:
        rejoined = (load.lists - 1) * window_rows * costs.alone_joined_row
        return statements + window_rows * costs.joined_row + load.classes * costs.joined_class + rejoined
    several = merged_rows * costs.merged_row if load.forms > 1 else 0.0
    return statements + window_rows * costs.shared_row + load.classes * costs.shared_class + several


def copying(rule_s: float, answer_rows: float, costs: SharingCosts = STATED) -> float:
    """What sharing takes, as a multiple of the rule's seconds, where answers together have so many rows a boundary."""
    return 1.0 + answer_rows * costs.copied_row / rule_s


def each_alone(load: Load, costs: SharingCosts = STATED) -> float:
    row_seconds = load.window_rows * costs.alone_joined_row if load.lists else load.came_rows * costs.alone_row
    return load.members * (costs.alone + row_seconds) * costs.apart_off


def pays(seconds: float, load: Load, standing: bool, costs: SharingCosts = STATED) -> bool:
    """Whether a group that takes so long together should be formed.

    One that stands stays until the other way is cheaper by the hysteresis.
    """
    return seconds <= each_alone(load, costs) * (HYSTERESIS if standing else 1 / HYSTERESIS)
