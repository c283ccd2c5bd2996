"""SQL that evaluates COUNT and SUM of windows over events (t, v) along a graph; if its relation subtracts, hopping
windows are differences of totals.

Exact where sums are, so of integers and decimals. Instance m of a hopping window is the total up to its end less the
total up to its start, so it costs two look-ups however many panes it holds; totals run over the panes of the window it
reads, or over panes of the rows. Where the prices say that adding up each instance is cheaper, that is done, and for
windows that read instances of a hopping one which lie end to end ("tiled by").
"""
from __future__ import annotations

from math import gcd

from optimizer.coverage.algebra import Window
from optimizer.coverage.graph import Graph
from optimizer.coverage.statements import EVENTS, Statements, name, sources_first


def sums(graph: Graph, until: int) -> Statements:
    """(name, SELECT m, n, v) in an order in which what is read stands before who reads it.

    Instances without events are no rows.
    """
    statements: list[tuple[str, str]] = []
    for window, source in sources_first(graph):
        statements += _statements(window, source, until, graph.prices.subtracts(window, source))
    return tuple(statements)


def _statements(window: Window, source: Window | None, until: int, subtracts: bool) -> Statements:
    last = (until - window.range) // window.slide
    if source is not None and not source.tumbling:
        return ((name(window), _tiled(window, source, last)),)
    if window.tumbling or not subtracts:
        return ((name(window), _added(window, source, last)),)
    running = f"{name(window)}_running"
    return (running, _running(window, source)), (name(window), _subtracted(window, running, last))


def _partials(source: Window | None) -> tuple[str, str, str]:
    """Where partials are, and n and v of each."""
    return (EVENTS, "1", "v") if source is None else (name(source), "n", "v")


def _start(source: Window | None) -> str:
    return "t" if source is None else f"m * {source.slide}"


def _added(window: Window, source: Window | None, last: int) -> str:
    """Each event or pane to all the instances that hold it."""
    place, count, value = _partials(source)
    start, length = _start(source), 1 if source is None else source.range
    first = f"greatest(0, ({start} + {length} - {window.range} + {window.slide - 1}) // {window.slide})"
    each = (f"SELECT unnest(range({first}, ({start}) // {window.slide} + 1)) AS m, {count} AS n, {value} AS v FROM "
            f"{place}")
    if window.tumbling:
        each = f"SELECT ({start}) // {window.range} AS m, {count} AS n, {value} AS v FROM {place}"
    return (f"SELECT m, CAST(sum(n) AS BIGINT) AS n, CAST(sum(v) AS BIGINT) AS v FROM ({each}) AS q WHERE m <= {last} "
            "GROUP BY m")


def _tiled(window: Window, source: Window, last: int) -> str:
    """Instances of a hopping source that lie end to end from the window's start on."""
    tiles = (f"SELECT m * {source.slide} - k * {source.range} AS start, n, v FROM {name(source)}, "
             f"range({window.range // source.range}) AS r(k)")
    return (f"SELECT start // {window.slide} AS m, CAST(sum(n) AS BIGINT) AS n, CAST(sum(v) AS BIGINT) AS v "
            f"FROM ({tiles}) AS q "
            f"WHERE start >= 0 AND start % {window.slide} = 0 AND start // {window.slide} <= {last} GROUP BY 1")


def _running(window: Window, source: Window | None) -> str:
    """By each pane's end, of the events up to there: as many panes as the source has, at least of the hop's and the
    range's common divisor.
    """
    place, count, value = _partials(source)
    length = gcd(window.range, window.slide)
    panes = f"SELECT ({_start(source)}) // {length} AS p, sum({count}) AS n, sum({value}) AS v FROM {place} GROUP BY p"
    return (f"SELECT (p + 1) * {length} AS past, CAST(sum(n) OVER (ORDER BY p) AS BIGINT) AS n, "
            f"CAST(sum(v) OVER (ORDER BY p) AS BIGINT) AS v FROM ({panes}) AS q")


def _subtracted(window: Window, running: str, last: int) -> str:
    """An instance without events has the same total at both ends."""
    ends = (f"SELECT m, m * {window.slide} AS begun, m * {window.slide} + {window.range} AS ended FROM "
            f"range({last + 1}) AS r(m)")
    return (
        f"SELECT m, late.n - coalesce(early.n, 0) AS n, late.v - coalesce(early.v, 0) AS v FROM ({ends}) AS i "
        f"ASOF JOIN {running} AS late ON ended >= late.past ASOF LEFT JOIN {running} AS early ON begun >= early.past "
        "WHERE late.n > coalesce(early.n, 0)")
