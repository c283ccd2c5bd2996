"""What equation (2) needs of a join of two inputs, counted by the shared work itself from its cells: rows by selection, of their union, distinct keys."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from optimizer.lowering import Lowering
from optimizer.program import Step
from optimizer.sharing.cost import Side, cost
from optimizer.sharing.expand import CHOICE, inside
from optimizer.sharing.group import Group

UNION, KEYS = -1, -2        # beside the numbers of choices
Rows = Mapping[int, int]


def countable(group: Group) -> bool:
    """Equation (2) is of two inputs; that tasks share them by key makes their counts add up."""
    return len(group.common.inputs) == 2 and group.plan.exchange == "partition"


def counting(group: Group, low: Lowering, i: int, t: int, cells: str, prefix: str, number: int) -> Step:
    """Of input i's cells at t: (_t, choice or UNION or KEYS, rows)."""
    common = low.shape.common_key()
    assert common is not None
    keys = f"SELECT count(*) FROM (SELECT DISTINCT {common[i].name} FROM {cells}) AS d"
    if i not in group.told_apart or not group.marks[i].names:
        rows = f"SELECT n AS choice, (SELECT sum(c) FROM {cells}) AS rows FROM (VALUES (0), ({UNION})) AS v(n)"
        return _step(t, rows, keys, number)
    own, listed = ", ".join(group.marks[i].names), f"(SELECT DISTINCT * EXCLUDE (_class) FROM {prefix}k{i}) AS k"
    merged, condition = f"(SELECT {own}, sum(c) AS c FROM {cells} GROUP BY {own}) AS d", inside(group.marks[i]) or "TRUE"
    rows = (f"SELECT k.{CHOICE} AS choice, sum(c) AS rows FROM {merged} JOIN {listed} ON {condition} GROUP BY 1 "
            f"UNION ALL SELECT {UNION}, sum(c) FROM {merged} SEMI JOIN {listed} ON {condition}")
    return _step(t, rows, keys, number)


def _step(t: int, rows: str, keys: str, number: int) -> Step:
    union = f"{rows} UNION ALL SELECT {KEYS}, ({keys})"
    counts = "CAST(choice AS BIGINT) AS choice, CAST(coalesce(rows, 0) AS BIGINT) AS rows"
    return Step(t, (), f"SELECT CAST({t} AS BIGINT) AS _t, {counts} FROM ({union}) AS q", number)


@dataclass(frozen=True)
class Paper:
    """Equation (2) of a join by all members together and by each apart, in tuples."""

    together: float
    apart: float


def paper(group: Group, sides: Iterable[Rows]) -> Paper:
    """COST(Crd(∪Q.V) ⋈ Crd(∪Q.W)) and Σ COST(Crd(Q.V) ⋈ Crd(Q.W)): both sides are indexed, and no join is materialised (answers are of merged sets)."""
    left, right = sides

    def of(a: float, b: float) -> float:
        return cost(Side(a, min(a, left.get(KEYS, 0))), Side(b, min(b, right.get(KEYS, 0))))

    classes = [group.classes[number] for t in group.templates for _, number in t.members]
    return Paper(of(left.get(UNION, 0), right.get(UNION, 0)), sum(of(left.get(x, 0), right.get(y, 0)) for x, y in classes))
