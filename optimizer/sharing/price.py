"""Seconds of one boundary by one work for all members, and by one work each: a rule of a few unit costs, from counts of
rows; no file is looked at.

The shared work reads its windows anew each time; a query alone keeps state and reads what came. So sharing wins by the
number of queries, and loses where a window is very many batches long and few share it. Unit costs are of `forebay bench
sharing` (docs/sharing.md): only time hangs on them.
"""
from __future__ import annotations

from dataclasses import dataclass

LEAST = 3               # queries: two alone cost no more than their scan together, and each is free to choose its plan
# queries of several forms: fewer are left to plans of their own, which keep state, are chosen by statistics, and can be
# looked at
FAMILY = 10
SHARED = 0.05           # seconds of a group at each boundary, whatever it reads
SHARED_ROW = 8e-8       # seconds to read a row of a window and to merge it by marks
SHARED_CLASS = 1.2e-3   # seconds of each further class: unnesting, joining
ALONE = 0.05            # seconds of each query at each boundary: its commits, its share of the driver's work
ALONE_ROW = 3e-8        # seconds to read a row that came
FORM = 0.012            # seconds of each form in a family of several: its statements, whatever they read
MERGED_ROW = 6e-8       # seconds to merge a form's sets from the cells of so many rows
# Of row queries, by `forebay bench sharing-rows`:
JOINED_ROW = 2.5e-7     # seconds to read a row of a window with its query-set, and to keep it by key
JOINED_CLASS = 1.2e-3   # seconds of each further class, of whose bit every combination is asked
ALONE_JOINED_ROW = 6e-8     # seconds to read a row of a window for one query alone, and to keep it by key
COPIED_ROW = 6e-7       # seconds to write a row of an answer once more: to the private table, then to its address
HYSTERESIS = 1.25       # by this factor the other way must be cheaper for a group to be left, or made


@dataclass(frozen=True)
class Load:
    """Rows in the windows of a work's inputs, rows that came with the last batch to those of one query, classes,
    members; of several forms, how many they are, and rows in the windows of each. Of queries that return rows, how many
    SELECT lists they have (0: of others): each of them reads its windows anew alone as well, and each list the join.
    """

    window_rows: float
    came_rows: float
    classes: int
    members: int
    forms: int = 1
    merged_rows: float = 0.0
    lists: int = 0


def together(load: Load) -> float:
    if load.lists:
        rejoined = (load.lists - 1) * load.window_rows * ALONE_JOINED_ROW
        return SHARED + load.window_rows * JOINED_ROW + load.classes * JOINED_CLASS + rejoined
    several = load.forms * FORM + load.merged_rows * MERGED_ROW if load.forms > 1 else 0.0
    return SHARED + load.window_rows * SHARED_ROW + load.classes * SHARED_CLASS + several


def copying(rule_s: float, answer_rows: float) -> float:
    """What sharing takes, as a multiple of the rule's seconds, where answers together have so many rows a boundary."""
    return 1.0 + answer_rows * COPIED_ROW / rule_s


def each_alone(load: Load) -> float:
    if load.lists:
        return load.members * (ALONE + load.window_rows * ALONE_JOINED_ROW)
    return load.members * (ALONE + load.came_rows * ALONE_ROW)


def pays(seconds: float, load: Load, standing: bool) -> bool:
    """Whether a group that takes so long together should be formed.

    One that stands stays until the other way is cheaper by the hysteresis.
    """
    return seconds <= each_alone(load) * (HYSTERESIS if standing else 1 / HYSTERESIS)
