"""State between runs: how the answer that was kept is taken up, and what each set is written from; in stored types, which lose nothing."""
from __future__ import annotations

from optimizer.expression import dialect as d
from optimizer.expression.types import Type
from optimizer.plan.division import divided
from optimizer.plan.lowering import Lowering, extremes
from optimizer.plan.operators.dominance import undominated
from optimizer.plan.operators.join import merged_answer, out_working
from optimizer.plan.operators.levels import place, shift
from optimizer.plan.operators.state import StateSet, sets, state_sets
from optimizer.plan.program import BEGINNING, Definition, Source, Write


def kept_answer(low: Lowering, previous: int) -> tuple[tuple[Source, ...], tuple[Definition, ...]]:
    """The answer as of the boundary before, under the name o; each task carries on its own share, which need not be whole groups."""
    kinds = out_working(low) | ({"_e": "BIGINT"} if low.plan.keeping == "expire" else {})
    if previous == BEGINNING:
        return (), (("o", f"SELECT {', '.join(f'CAST(NULL AS {kind}) AS {n}' for n, kind in kinds.items())} WHERE FALSE", False),)
    source = Source("ko", "state", "answer", columns=sets(low)["answer"], dealt=True)
    return (source,), (("o", f"SELECT {', '.join(f'CAST({n} AS {kind}) AS {n}' for n, kind in kinds.items())} FROM ko", False),)


def writes(low: Lowering, boundaries: tuple[int, ...], previous: int) -> tuple[Write, ...]:
    """State as of the last boundary: what came is added to sets by interval, others are replaced."""
    return tuple(_write(low, kept, boundaries[-1], len(boundaries) - 1, previous == BEGINNING) for kept in state_sets(low))


def _write(low: Lowering, kept: StateSet, last: int, n: int, anew: bool) -> Write:
    columns = ", ".join(stored(column, kind, low.dialect, last, _moved(low, kept)) for column, kind in kept.columns)
    every_part = kept.input is None or divided(low, kept.input)
    origin = _origin(low, kept, last, n)
    if anew and kept.kind == "extremes" and kept.input is not None:      # a whole window's: most of them can never be one
        chosen = undominated([c for c, _ in kept.columns], extremes(low, kept.input), f"SELECT * FROM {origin}", f"_in <= {last}")
        origin = f"({chosen}) AS window_whole"
    return Write(kept.name, f"SELECT {columns} FROM {origin}", kept.columns, kept.ends is not None, every_part)


def _origin(low: Lowering, kept: StateSet, last: int, n: int) -> str:
    """What a set is written from after step n."""
    if kept.kind == "totals":
        return f"t{kept.input}_{n}"
    if kept.kind != "answer":
        return f"n{place(low, _level(low, kept)) if low.plan.levels else kept.input} WHERE _out >= {last + _moved(low, kept)}"
    if kept.ends is None:
        return f"o_{n}"
    union = " UNION ALL ".join(f"SELECT * FROM d_{k}" for k in range(n + 1))
    return f"({merged_answer(low, union, where=f'_e >= {last}', extra=('_e',))}) AS q"


def _level(low: Lowering, kept: StateSet) -> int | None:
    return None if kept.kind == "panes" else low.plan.levels[int(kept.kind.removeprefix("level").removesuffix("_"))]


def _moved(low: Lowering, kept: StateSet) -> int:
    return shift(low, _level(low, kept)) if low.plan.levels else 0


def stored(column: str, kind: Type, dialect: str, last: int, moved: int = 0) -> str:
    """A column as it is kept; an entry long since is all the same."""
    if column == "_out" and moved:
        return f"_out - {moved} AS _out"
    if column == "_in":
        return f"CASE WHEN _in <= {last} THEN CAST(0 AS BIGINT) ELSE _in END AS _in"
    return f"CAST({column} AS {d.name(kind, dialect)}) AS {column}"
