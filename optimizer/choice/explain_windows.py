"""The coverage graph of a query with several windows as text, as written and as a plan merges them, with what a
boundary reads.

No seconds, no statements.
"""
from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from optimizer.plan.merging import parent, source, step
from optimizer.plan.model import Plan
from optimizer.query.model import NamedWindow, Query
from optimizer.time import span

SHOWN = 40             # windows that are drawn; of more, the others are counted


def graphs(query: Query, plan: Plan) -> str:
    """The graph as the query is written, and if the plan shares anything, as it merges the windows."""
    drawn: list[tuple[str, tuple[int, ...], str]] = [("Windows as written", (), "each")]
    if plan.levels or plan.sharing != "each":
        drawn.append(("Windows as merged", plan.levels, plan.sharing))
    return "\n\n".join(_graph(query, *graph) for graph in drawn)


def reads(query: Query, levels: tuple[int, ...], sharing: str) -> Fraction:
    """Panes and instances that an average boundary reads, for each group: n·M of paper D (Observation 1) over one
    period.
    """
    by_windows = [_window(query, levels, window) for window in _longest(query, levels, sharing)]
    by_levels = [_level(query, levels, length) for length in levels]
    return sum([*by_windows, *by_levels], Fraction(0))


def _longest(query: Query, levels: tuple[int, ...], sharing: str) -> tuple[NamedWindow, ...]:
    """The windows that read: of those with one source and one slide only the longest where they are read together."""
    if sharing == "each":
        return query.windows
    most: dict[tuple[int | None, int], NamedWindow] = {}
    for w in query.windows:
        key = (source(levels, w), w.slide)
        most[key] = max(most.get(key, w), w, key=lambda x: x.range)
    return tuple(most.values())


def _window(query: Query, levels: tuple[int, ...], window: NamedWindow) -> Fraction:
    return Fraction(window.range, source(levels, window) or step(query)) * Fraction(step(query), window.slide)


def _level(query: Query, levels: tuple[int, ...], length: int) -> Fraction:
    return Fraction(length, parent(levels, length) or step(query)) * Fraction(step(query), length)


def _graph(query: Query, title: str, levels: tuple[int, ...], sharing: str) -> str:
    how = ", those that end together in one pass" if sharing != "each" else ""
    head = f"{title}{how}: {float(reads(query, levels, sharing)):,.4g} panes and instances a boundary and group"
    return "\n".join([head, f"panes of {span(step(query))}", *_below(query, levels, None, "")])


def _below(query: Query, levels: tuple[int, ...], read: int | None, indent: str) -> Iterator[str]:
    finer = [f for f in levels if parent(levels, f) == read]
    windows = [w for w in query.windows if source(levels, w) == read]
    shown, more = windows[:SHOWN], len(windows) - SHOWN
    lines: list[tuple[str, int | None]] = [
        (f"{span(f)} ({_role(query, f)}): {float(_level(query, levels, f)):,.4g}", f) for f in finer
    ]
    lines += [(f"{w.name}, {span(w.range)} every {span(w.slide)}: {float(_window(query, levels, w)):,.4g}", None)
              for w in shown]
    lines += [(f"{more:,} more windows", None)] if more > 0 else []
    for n, (text, level) in enumerate(lines):
        last = n == len(lines) - 1
        yield f"{indent}{'└─' if last else '├─'} {text}"
        if level is not None:
            yield from _below(query, levels, level, indent + ("   " if last else "│  "))


def _role(query: Query, length: int) -> str:
    is_window = any(window.range == window.slide == length for window in query.windows)
    return "kept instances of a window" if is_window else "factor window"
