"""SQL that makes one file of a state set's many: partials that count at the same boundaries are merged, ended ones are left out; no answer changes by it."""
from __future__ import annotations

from optimizer.expression import dialect as d
from optimizer.plan.lowering import Lowering, extremes
from optimizer.plan.operators.dominance import undominated
from optimizer.plan.operators.join import merged_answer
from optimizer.plan.operators.keep import stored
from optimizer.plan.operators.sets import grouped
from optimizer.plan.operators.state import StateSet, state_sets


def compaction(low: Lowering, name: str, source: str, boundary: int) -> str:
    """The rows of set `name` in relation `source`, as of the boundary to which the state was brought, in the set's stored types."""
    kept = next(s for s in state_sets(low) if s.name == name)
    if kept.ends is None:
        raise ValueError(f"{name} is replaced by each batch: there is nothing to merge")
    columns = ", ".join(f"CAST({c} AS {d.name(kind, low.dialect)}) AS {c}" for c, kind in kept.columns)
    collapsed = ", ".join(stored(c, kind, low.dialect, boundary) if c == "_in" else c for c, kind in kept.columns)
    return f"SELECT {columns} FROM ({_merged(low, kept, f'(SELECT {collapsed} FROM {source} WHERE {kept.ends} >= {boundary}) AS live')}) AS merged"


def _merged(low: Lowering, kept: StateSet, live: str) -> str:
    if kept.input is None:
        return merged_answer(low, f"SELECT * FROM {live}", extra=("_e",))
    if kept.kind != "extremes":
        return grouped(low, kept.input, live, ("_in", "_out"))
    own = extremes(low, kept.input)
    keys = [c for c, _ in kept.columns if c not in {m.name for m in own}]
    values = [f"{m.kind}({m.name}) AS {m.name}" for m in own]
    return undominated([c for c, _ in kept.columns], own, f"SELECT {', '.join(keys + values)} FROM {live} GROUP BY {', '.join(keys)}", "_in = 0")
