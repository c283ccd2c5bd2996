"""SQL that evaluates a graph's windows over events (t, v): a statement a window, from the events or from the window it reads (paper D, §III-C); MIN only."""
from __future__ import annotations

from optimizer.coverage.algebra import Window
from optimizer.coverage.graph import Graph

EVENTS = "events"


def statements(graph: Graph, until: int) -> tuple[tuple[str, str], ...]:
    """(name, SELECT) in an order in which what is read stands before who reads it. `until`: only instances that end by then."""
    waiting, found = dict(graph.reads), []
    done: set[Window | None] = {None}
    while waiting:
        for window in [w for w, source in waiting.items() if source in done]:
            found.append((name(window), _select(window, waiting.pop(window), until)))
            done.add(window)
    return tuple(found)


def name(window: Window) -> str:
    return f"w{window.range}_{window.slide}"


def _select(window: Window, source: Window | None, until: int) -> str:
    """Instance m is [m·slide, m·slide + range); what lies within it are instances (or events) whose start and end do."""
    start, length, origin = ("t", 1, EVENTS) if source is None else (f"m * {source.slide}", source.range, name(source))
    last = (until - window.range) // window.slide
    if window.tumbling and (source is None or source.tumbling):
        return f"SELECT m, min(v) AS v FROM (SELECT ({start}) // {window.range} AS m, v FROM {origin}) AS q WHERE m <= {last} GROUP BY m"
    first = f"greatest(0, ({start} + {length} - {window.range} + {window.slide - 1}) // {window.slide})"
    each = f"SELECT unnest(range({first}, ({start}) // {window.slide} + 1)) AS m, v FROM {origin}"
    return f"SELECT m, min(v) AS v FROM ({each}) AS q WHERE m <= {last} GROUP BY m"
