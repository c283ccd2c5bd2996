"""Coarser panes of a query with several windows (paper D's factor windows, kept as state): the SQL that fills them from panes, and what reads which.

A level of length f holds instances [u, u + f), u a multiple of f, each merged from the level below when it ends; a row that comes later is a partial of its
own. A working row of any level has `_out` = u + R, R the longest range, so a window's condition is the same at all levels; in state `_out` says how long
something reads it, and files leave early. Instances are disjoint, which is right for every function that has partials.
"""
from __future__ import annotations

from optimizer.expression import dialect as d
from optimizer.plan.lowering import Lowering
from optimizer.plan.membership import INTERVAL
from optimizer.plan.merging import keeps, longest, parent, source
from optimizer.plan.operators.sets import grouped, names, stored_columns, working
from optimizer.plan.program import BEGINNING, Definition, Source
from optimizer.query.model import NamedWindow


def place(low: Lowering, level: int | None) -> str:
    """The end of the names of a level's relations."""
    return "0" if level is None else f"0_{low.plan.levels.index(level)}"


def view_of(low: Lowering, window: NamedWindow) -> str:
    """What a window is merged from, without any level its input's view."""
    return f"w{place(low, source(low.plan.levels, window))}"


def shift(low: Lowering, level: int | None) -> int:
    """How much earlier than its working `_out` a row leaves state."""
    return longest(low.shape.query) - keeps(low.shape.query, low.plan.levels)[level] if low.plan.levels else 0


def filled(low: Lowering, boundaries: tuple[int, ...], previous: int, dealt: bool) -> tuple[tuple[Source, ...], tuple[Definition, ...]]:
    """For each level n0_{k}: what this run adds to it, and w0_{k}: all of it."""
    sources: list[Source] = []
    defined: list[Definition] = []
    columns = ", ".join([*names(low, 0), "_in", "_out"])
    for k, length in enumerate(low.plan.levels):
        defined.append((f"n0_{k}", _new(low, length, boundaries[-1], previous), True))
        sources += [Source(f"k0_{k}", "state", f"level{k}_0", columns=stored_columns(low, 0) + INTERVAL, dealt=dealt)] if previous != BEGINNING else []
        kept = f" UNION ALL {kept_rows(low, length, boundaries[0])}" if previous != BEGINNING else ""
        defined.append((f"w0_{k}", f"SELECT {columns} FROM n0_{k}{kept}", len(boundaries) > 1))
    return tuple(sources), tuple(defined)


def kept_rows(low: Lowering, level: int | None, since: int) -> str:
    """What state holds of a level, as working rows."""
    moved = shift(low, level)
    return f"SELECT {', '.join(working(low, 0))}, _in, {f'_out + {moved} AS _out' if moved else '_out'} FROM k{place(low, level)} WHERE _out >= {since}"


def _new(low: Lowering, length: int, last: int, previous: int) -> str:
    """Instances that end now, and what came too late for those that have ended; where none ends, only rows of this run are looked at."""
    ends, far, listed = previous == BEGINNING or last // length > previous // length, longest(low.shape.query), ", ".join(names(low, 0))
    below = f"{'w' if ends else 'n'}{place(low, parent(low.plan.levels, length))}"
    begun = f"SELECT {listed}, _in, {d.div(f'_out - {far}', length, low.dialect)} * {length} AS _u FROM {below}"
    ended = (f"SELECT {listed}, greatest(_in, _u + {length}) AS _in, _u + {far} AS _out FROM ({begun}) AS q "
             f"WHERE _u + {length} <= {last} AND (_u + {length} > {previous} OR _in > {previous})")
    return grouped(low, 0, f"({ended}) AS q", ("_in", "_out"))
