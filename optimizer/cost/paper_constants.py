"""Paper A's tuning constants as this engine has them, so that its equations give seconds; no price is made here.

The paper measures its constants on operators that take tuples one by one. Here the same steps are done by a vectorised
engine in batches; its unit costs, which every batch corrects, say what a step takes for one tuple.
"""
from __future__ import annotations

from optimizer.cost.measured import UnitCosts
from optimizer.papers.statistics import Constants

GROUP_VALUES = 3      # that a tuple brings into a group: the group's key, its count, a sum


def engine_constants(unit_costs: UnitCosts) -> Constants:
    """Seconds a tuple: `engine_constants(prior()).Ph` is `prior()["probe"]`, what a row takes to probe a hash table.

    Pn: a row of a table looked through. Un: a value read and its row's times worked out, and Uh: put into a hash table
    besides. Ug: a key, a count and a sum brought into a hash aggregation.
    """
    update = unit_costs["scan"] + unit_costs["times"]
    return Constants(Pn=unit_costs["look"], Ph=unit_costs["probe"], Un=update, Uh=update + unit_costs["build"],
                     Ug=GROUP_VALUES * unit_costs["group"])
