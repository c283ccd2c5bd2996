"""What a plan keeps between boundaries, as sets with their columns; no statements here."""
from __future__ import annotations

from dataclasses import dataclass

from optimizer.expression.types import BIGINT
from optimizer.plan.lowering import Lowering, extremes
from optimizer.plan.membership import INTERVAL
from optimizer.plan.operators.join import out_columns
from optimizer.plan.operators.sets import stored_columns
from optimizer.plan.program import Columns


@dataclass(frozen=True)
class StateSet:
    """What is kept between boundaries: `panes`, levels and `extremes` by interval, `totals` as of the last boundary, each of one input; or the `answer`."""

    kind: str
    input: int | None
    columns: Columns

    @property
    def name(self) -> str:
        return self.kind + ("" if self.input is None else str(self.input))

    @property
    def ends(self) -> str | None:
        """The column that says up to which boundary a row counts; without one the set stands for one boundary, and is replaced."""
        return next((c for c, _ in self.columns if c in ("_out", "_e")), None)


def state_sets(low: Lowering) -> tuple[StateSet, ...]:
    """What the plan keeps between boundaries."""
    found: list[StateSet] = []
    for i in low.inputs:
        if not low.early(i) or low.window(i) is None:
            continue
        if low.plan.keeping == "running":
            found.append(StateSet("totals", i, stored_columns(low, i, extremes_too=False)))
            found += [StateSet("extremes", i, extreme_columns(low, i))] if extremes(low, i) else []
        elif low.plan.keeping != "recompute" or low.plan.layout == "panes":
            found.append(StateSet("panes", i, stored_columns(low, i) + INTERVAL))
            found += [StateSet(f"level{k}_", i, stored_columns(low, i) + INTERVAL) for k in range(len(low.plan.levels))]
    if low.plan.keeps_answer:
        found.append(StateSet("answer", None, out_columns(low) + ((("_e", BIGINT),) if low.plan.keeping == "expire" else ())))
    return tuple(found)


def sets(low: Lowering) -> dict[str, Columns]:
    """The names of the state sets, with their schemas."""
    return {s.name: s.columns for s in state_sets(low)}


def extreme_columns(low: Lowering, i: int) -> Columns:
    return tuple((a.name, a.expr.type) for a in low.shape.attributes[i]) + tuple((m.name, m.type) for m in extremes(low, i)) + INTERVAL
