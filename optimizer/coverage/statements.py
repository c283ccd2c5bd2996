"""SQL that evaluates windows over events (t, v), MIN only: a statement a window, from the events, from the window it
reads (paper D, §III-C) or from slices.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator

from optimizer.coverage.algebra import Window
from optimizer.coverage.graph import Graph

EVENTS = "events"
Statements = tuple[tuple[str, str], ...]


def statements(graph: Graph, until: int) -> Statements:
    """(name, SELECT) in an order in which what is read stands before who reads it.

    `until`: only instances that end by then.
    """
    return tuple((name(window), _select(window, source, until)) for window, source in sources_first(graph))


def sources_first(graph: Graph) -> Iterator[tuple[Window, Window | None]]:
    """(window, what it reads), each window after the one that it reads."""
    waiting = dict(graph.reads)
    there: set[Window | None] = {None}
    while waiting:
        for window in [window for window, source in waiting.items() if source in there]:
            yield window, waiting.pop(window)
            there.add(window)


def slicing(windows: Iterable[Window], until: int) -> Statements:
    """Stream slicing (Scotty: Traub et al., EDBT 2019, §4): events are merged between any two neighbouring edges of
    windows, once, and windows from slices.
    """
    chosen = sorted(windows)
    series = {(0, window.slide) for window in chosen}
    series |= {(window.range % window.slide, window.slide) for window in chosen}
    edges = " UNION ".join(f"SELECT unnest(range({first}, {until}, {slide})) AS edge"
                           for first, slide in sorted(series))
    spans = f"SELECT edge, lead(edge, 1, {until}) OVER (ORDER BY edge) AS past FROM ({edges}) AS e"
    places = f"SELECT edge AS start, unnest(range(edge, past)) AS t FROM ({spans}) AS q"
    slices = f"SELECT start, min(v) AS v FROM {EVENTS} JOIN places USING (t) GROUP BY start"
    answers = [(name(w), _within(w, "slices", "start", 1, until, w.tumbling)) for w in chosen]
    return (("places", places), ("slices", slices), *answers)


def name(window: Window) -> str:
    return f"w{window.range}_{window.slide}"


def _select(window: Window, source: Window | None, until: int) -> str:
    if source is None:
        return _within(window, EVENTS, "t", 1, until, window.tumbling)
    disjoint = window.tumbling and source.tumbling
    return _within(window, name(source), f"m * {source.slide}", source.range, until, disjoint)


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
