"""The coverage graph of a query with several windows as text, as written and as a plan merges them, with what a
boundary reads.

No seconds, no statements.
"""
from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from optimizer.coverage.algebra import Window
from optimizer.plan.merging import Levels, instances, parent, source, step
from optimizer.plan.model import Plan
from optimizer.query.model import NamedWindow, Query
from optimizer.time import span

SHOWN = 40             # windows that are drawn; of more, the others are counted


def graphs(query: Query, plan: Plan) -> str:
    """The graph as the query is written, and if the plan shares anything, as it merges the windows."""
    drawn: list[tuple[str, Levels, str]] = [("Windows as written", (), "each")]
    if plan.levels or plan.sharing != "each":
        drawn.append(("Windows as merged", plan.kept_windows, plan.sharing))
    return "\n\n".join(_graph(query, *graph) for graph in drawn)


def reads(query: Query, levels: Levels, sharing: str) -> Fraction:
    """Panes and instances that an average boundary reads, for each group: n·M of paper D (Observation 1) over one
    period.
    """
    by_windows = [_read(query, levels, window) for window in _longest(query, levels, sharing)]
    by_levels = [_read(query, levels, level) for level in levels]
    return sum([*by_windows, *by_levels], Fraction(0))


def described(level: Window) -> str:
    """`1 h`, or `1 h every 20 min`."""
    return span(level.range) if level.tumbling else f"{span(level.range)} every {span(level.slide)}"


def _longest(query: Query, levels: Levels, sharing: str) -> tuple[NamedWindow, ...]:
    """The windows that read: of those with one source and one slide only the longest where they are read together."""
    if sharing == "each":
        return query.windows
    most: dict[tuple[Window | None, int], NamedWindow] = {}
    for w in query.windows:
        key = (source(levels, w), w.slide)
        most[key] = max(most.get(key, w), w, key=lambda x: x.range)
    return tuple(most.values())


def _read(query: Query, levels: Levels, window: NamedWindow | Window) -> Fraction:
    """Of a window of the query, or of a level, which reads a shorter one."""
    below = source(levels, window) if isinstance(window, NamedWindow) else parent(levels, window)
    count = instances(window, below, step(query))
    assert count is not None
    return Fraction(count) * Fraction(step(query), window.slide)


def _graph(query: Query, title: str, levels: Levels, sharing: str) -> str:
    how = ", those that end together in one pass" if sharing != "each" else ""
    head = f"{title}{how}: {float(reads(query, levels, sharing)):,.4g} panes and instances a boundary and group"
    return "\n".join([head, f"panes of {span(step(query))}", *_below(query, levels, None, "")])


def _below(query: Query, levels: Levels, read: Window | None, indent: str) -> Iterator[str]:
    finer = [level for level in levels if parent(levels, level) == read]
    windows = [w for w in query.windows if source(levels, w) == read]
    shown, more = windows[:SHOWN], len(windows) - SHOWN
    lines: list[tuple[str, Window | None]] = [
        (f"{described(f)} ({_role(query, f)}): {float(_read(query, levels, f)):,.4g}", f) for f in finer
    ]
    lines += [(f"{w.name}, {span(w.range)} every {span(w.slide)}: {float(_read(query, levels, w)):,.4g}", None)
              for w in shown]
    lines += [(f"{more:,} more windows", None)] if more > 0 else []
    for n, (text, level) in enumerate(lines):
        last = n == len(lines) - 1
        yield f"{indent}{'└─' if last else '├─'} {text}"
        if level is not None:
            yield from _below(query, levels, level, indent + ("   " if last else "│  "))


def _role(query: Query, level: Window) -> str:
    is_window = any((window.range, window.slide) == (level.range, level.slide) for window in query.windows)
    return "kept instances of a window" if is_window else "factor window"
