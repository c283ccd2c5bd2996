"""Answers of a query with several windows at one boundary, out of the partials that a plan has there; what these are is said elsewhere.

DESIGN, "Many windows, one state": what leaves the envelope at e counts at t in a window that is shorter by `longer` iff e ≥ t + longer. So windows that end
together are suffixes of one another: each partial gets the number of the shortest window that holds it, `_b`, partials are merged by it, and a window
is the sum of the numbers up to its own. Only of one boundary: two joined rows can be together in a long window and in none of its parts.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from optimizer.expression import dialect as d
from optimizer.expression.expr import Literal
from optimizer.expression.scalar import render
from optimizer.expression.types import STRING
from optimizer.plan.lowering import Lowering
from optimizer.plan.operators.join import group_columns, merged_answer, out_columns
from optimizer.plan.operators.levels import view_of
from optimizer.plan.program import Definition
from optimizer.query.model import WINDOW_NAME, NamedWindow

FEW = 30               # lengths beyond which telling the number of a partial by comparing takes longer than merging more numbers
Shown = Sequence[tuple[NamedWindow, int]]
Reading = Callable[[int, str], str]               # partials of a window so much shorter than the longest, out of a view
Slicing = Callable[[Sequence[int], str], str]     # the same of several, by `_b`: the place in the list, from the shortest, of the first that holds them


def answer(low: Lowering, t: int, sql: str) -> str:
    """An answer's partials at t, in the types that they are handed over in."""
    columns = ", ".join(f"CAST({n} AS {d.name(kind, low.dialect)}) AS {n}" for n, kind in out_columns(low))
    return f"SELECT CAST({t} AS BIGINT) AS _t, {columns} FROM ({sql}) AS q"


def answers(low: Lowering, n: int, t: int, one: Reading, sliced: Slicing) -> tuple[tuple[Definition, ...], str]:
    """At step n: of one window its answer, of several those that end at t, each by its name."""
    query = low.shape.query
    if not query.windows:
        return (), answer(low, t, one(0, "w0"))
    shown = sorted(query.shown(t), key=lambda pair: (view_of(low, pair[0]), -pair[1]))
    if not shown:
        return (), answer(low, t, f"SELECT * FROM ({one(0, 'w0')}) AS q WHERE FALSE")
    define: list[Definition] = []
    parts: list[str] = []
    for view, found in groupby(shown, key=lambda pair: view_of(low, pair[0])):
        mine = list(found)
        if low.plan.sharing == "each" or len(mine) == 1:
            parts += [_named(low, window, one(longer, view)) for window, longer in mine]
            continue
        lengths = sorted({longer for _, longer in mine}, reverse=True)
        define.append((f"y{n}_{len(define)}", sliced(lengths, view), True))
        parts.append(_suffixes(low, t, define[-1][0], mine, lengths))
    return tuple(define), " UNION ALL ".join(answer(low, t, sql) for sql in parts)


def number(ends: str, t: int, lengths: Sequence[int]) -> str:
    """`_b` of what counts up to and including `ends`; nobody asks of what no window holds. Of more than FEW lengths each end has a number of its own."""
    if len(lengths) > FEW:
        return f"-({ends})"
    cases = " ".join(f"WHEN {ends} >= {t + longer} THEN {place}" for place, longer in enumerate(lengths[:-1]))
    return f"CASE {cases} ELSE {len(lengths) - 1} END" if cases else "0"


def _upto(t: int, lengths: Sequence[int], longer: int) -> int:
    return -(t + longer) if len(lengths) > FEW else lengths.index(longer)


def _columns(low: Lowering) -> tuple[str, str]:
    """The group that is the window's name, and all other columns of an answer."""
    name = group_columns(low.shape)[low.shape.query.groups.index(WINDOW_NAME)]
    return name, ", ".join(n for n, _ in out_columns(low) if n != name)


def _named(low: Lowering, window: NamedWindow, sql: str) -> str:
    name, others = _columns(low)
    return f"SELECT {_quoted(low, window.name)} AS {name}, {others} FROM ({sql}) AS q"


def _suffixes(low: Lowering, t: int, slices: str, shown: Shown, lengths: Sequence[int]) -> str:
    name, others = _columns(low)
    listed = ", ".join(f"({_quoted(low, window.name)}, {_upto(t, lengths, longer)})" for window, longer in shown)
    return merged_answer(low, f"SELECT _name AS {name}, {others} FROM {slices} JOIN (VALUES {listed}) AS windows(_name, _upto) ON _b <= _upto")


def _quoted(low: Lowering, text: str) -> str:
    return render(Literal(text, STRING), low.dialect, lambda leaf: "")
