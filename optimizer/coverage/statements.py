"""SQL that evaluates windows over events (t, v), MIN only: a statement a window, from the events, from the window it
reads (paper D, §III-C) or from slices.
"""
from __future__ import annotations

from collections.abc import Iterable

from optimizer.coverage.algebra import Window
from optimizer.coverage.graph import Graph

EVENTS = "events"
Statements = tuple[tuple[str, str], ...]


def statements(graph: Graph, until: int) -> Statements:
    """(name, SELECT) in an order in which what is read stands before who reads it.

    `until`: only instances that end by then.
    """
    waiting, found = dict(graph.reads), []
    done: set[Window | None] = {None}
    while waiting:
        for window in [w for w, source in waiting.items() if source in done]:
            found.append((name(window), _select(window, waiting.pop(window), until)))
            done.add(window)
    return tuple(found)


def slicing(windows: Iterable[Window], until: int) -> Statements:
    """Stream slicing (Scotty.

    Traub et al., EDBT 2019, §4): events are merged between any two neighbouring edges of windows, once, and windows
    from slices.
    """
    chosen = sorted(windows)
    edges = " UNION ".join(f"SELECT unnest(range({first}, {until}, {slide})) AS edge"
                           for first, slide in sorted({(x, w.slide) for w in chosen for x in (0, w.range % w.slide)}))
    spans = f"SELECT edge, lead(edge, 1, {until}) OVER (ORDER BY edge) AS past FROM ({edges}) AS e"
    places = f"SELECT edge AS start, unnest(range(edge, past)) AS t FROM ({spans}) AS q"
    slices = f"SELECT start, min(v) AS v FROM {EVENTS} JOIN places USING (t) GROUP BY start"
    return ("places", places), ("slices", slices), *((name(w), _within(w, "slices", "start", 1, until, w.tumbling))
                                                     for w in chosen)


def name(window: Window) -> str:
    return f"w{window.range}_{window.slide}"


def _select(window: Window, source: Window | None, until: int) -> str:
    if source is None:
        return _within(window, EVENTS, "t", 1, until, window.tumbling)
    return _within(window, name(source), f"m * {source.slide}", source.range, until, window.tumbling
                   and source.tumbling)


def _within(window: Window, origin: str, start: str, length: int, until: int, disjoint: bool) -> str:
    """Instance m is [m·slide, m·slide + range).

    What lies within it are instances (events, slices) whose start and end do.
    """
    last = (until - window.range) // window.slide
    if disjoint:
        return (f"SELECT m, min(v) AS v FROM (SELECT ({start}) // {window.range} AS m, v FROM {origin}) AS q WHERE m "
                f"<= {last} GROUP BY m")
    first = f"greatest(0, ({start} + {length} - {window.range} + {window.slide - 1}) // {window.slide})"
    each = f"SELECT unnest(range({first}, ({start}) // {window.slide} + 1)) AS m, v FROM {origin}"
    return f"SELECT m, min(v) AS v FROM ({each}) AS q WHERE m <= {last} GROUP BY m"
