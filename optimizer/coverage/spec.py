"""A window set as people write it, `20,30,40` or `20/5,60/10`, and the document that describes it: checked and priced.

No files and no printing.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from optimizer.coverage.algebra import ALONE, Window, relation
from optimizer.coverage.factors import with_factors
from optimizer.coverage.graph import Graph, Number, as_written, cheapest, prices
from optimizer.coverage.search import best
from optimizer.errors import ForebayError

MOST = 1_000
LONGEST = 10**12              # beyond it looking for divisors takes seconds
FORM = "write ranges and slides as whole numbers of one unit, such as 20,30,40 (tumbling) or 20/5,60/10 (hopping)"
_ITEM = re.compile(r"\s*(\S*?)\s*(?:/\s*(\S*?)\s*)?")


def parse(text: str) -> tuple[Window, ...]:
    """The windows in the order in which they are written; each at most once."""
    items = text.split(",")
    if len(items) > MOST:
        raise ForebayError("too-many-windows", f"{len(items):,} windows are given, at most {MOST:,} are possible",
                           hint="leave some out, or ask in parts")
    windows: dict[Window, None] = {}
    at = 1
    for item in items:
        column = at + len(item) - len(item.lstrip())
        window = _window(item, column)
        if window in windows:
            raise ForebayError("duplicate-window", f"the window {window} is given twice", 1, column,
                               "name each window once")
        windows[window] = None
        at += len(item) + 1
    return tuple(windows)


def _window(item: str, column: int) -> Window:
    match = _ITEM.fullmatch(item)
    if not item.strip() or match is None:
        raise ForebayError("bad-window", f"{item.strip()!r} is not a window" if item.strip() else "a window is missing",
                           1, column, FORM)
    size = _length(match[1], column)
    slide = size if match[2] is None else _length(match[2], column + match.start(2) - match.start(1))
    if slide > size:
        raise ForebayError("bad-window", f"a slide of {slide} leaves gaps between windows of length {size}", 1, column,
                           f"the slide is at most the range: {slide}/{size}, or {size} for a tumbling window")
    return Window(size, slide)


def _length(text: str, column: int) -> int:
    if re.fullmatch(r"[+-]?[0-9]+", text):
        if len(text.lstrip("+-0")) <= len(str(LONGEST)) and 0 < int(text) <= LONGEST:
            return int(text)
        is_positive = not text.startswith("-") and text.strip("+-0") != ""
        limit = f"a length is at most {LONGEST:,}" if is_positive else "a length is positive"
        raise ForebayError("bad-window", f"the length {text[:40]} is not possible: {limit}", 1, column,
                           "use a larger unit" if is_positive else FORM)
    hint = FORM
    if re.fullmatch(r"[+-]?[0-9]*\.[0-9]+", text):
        hint = "use a smaller unit instead of a fraction: 90 (minutes), not 1.5 (hours)"
    raise ForebayError("bad-window", f"{text[:40]!r} is not a whole number" if text else "a length is missing", 1,
                       column, hint)


def rate(text: str) -> Fraction:
    """η: events a unit of time."""
    if not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,9})?|\.[0-9]{1,9}", text.strip()) or not Fraction(text.strip()):
        raise ForebayError("bad-rate", f"the rate {text[:40]!r} is not a positive number",
                           hint="events a unit of time, such as 1, 100 or 0.5")
    return Fraction(text.strip())


def described(windows: Sequence[Window], function: str = "SUM", events: Fraction = Fraction(1)) -> dict[str, Any]:
    """INTERFACE's document of `forebay windows`, and more: the paper's own choice of factor windows, and what is
    cheaper still beyond its two relations.
    """
    model = prices(windows, relation(function), events)
    written, shared, paper = as_written(windows, model), cheapest(windows, model), with_factors(windows, model)
    search = best(windows, model)
    factored = search.graph
    costs = {"original": number(written.cost), "shared": number(shared.cost), "factored": number(factored.cost)}
    return {
        "R": model.period,
        "cost": costs,
        "factors": [str(f) for f in sorted(factored.factors)],
        "edges": edges(factored),
        "relation": model.relation.name,
        "function": function.strip().upper(),
        "rate": number(events),
        "search": "exact" if search.exact else "heuristic",
        "graphs": {
            "original": drawn(written),
            "shared": drawn(shared),
            "factored": drawn(factored)
        },
        "paper": {
            "factored": number(paper.cost),
            "factors": [str(f) for f in sorted(paper.factors)]
        },
        "beyond": _beyond(windows, function, events)
    }


def _beyond(windows: Sequence[Window], function: str, events: Fraction) -> dict[str, Any] | None:
    looser = relation(function, beyond=True)
    if looser == ALONE:
        return None
    graph = best(windows, prices(windows, looser, events)).graph
    return {
        "relation": looser.name,
        "cost": number(graph.cost),
        "factors": [str(f) for f in sorted(graph.factors)],
        "edges": edges(graph)
    }


def edges(graph: Graph) -> list[list[str]]:
    return [[str(fine), str(coarse)] for fine, coarse in graph.edges]


def drawn(graph: Graph) -> list[dict[str, Any]]:
    """Every window with what it reads (null: the rows) and what it costs."""
    return [{
        "window": str(w),
        "reads": None if source is None else str(source),
        "cost": number(graph.price(w)),
        "factor": w in graph.factors
    } for w, source in graph.reads]


def number(cost: Number) -> int | float:
    """A mean over periods can be a fraction; beyond 2**53 a float has none, and beyond 1e308 there is no float."""
    if cost.denominator == 1:
        return int(cost)
    return float(cost) if cost < 2**53 else round(cost)
