"""From the papers' symbols to what is observed and back: what a file of statistics says, and what was measured as such
a file would say it.

λ is a rate, w = λ·range rows, g distinct values of grouping attributes, σ = 1/distinct join values (paper A, Table 1).
A set has min(w, g/σ) rows, so g/σ stands for the distinct combinations of an input.
"""
from __future__ import annotations

from dataclasses import replace

from optimizer.expression.expr import inputs
from optimizer.papers.statistics import PaperStream, Setting
from optimizer.query.model import Query
from optimizer.query.shape import Shape, shape
from optimizer.statistics.observed import ClassObserved, InputObserved, Observed

SMALLEST = 1e-12


def told(query: Query, setting: Setting, known: Observed) -> Observed:
    """What a file of statistics says, with uniform and independent keys as the papers have them.

    Of what is known, only the batch serves.
    """
    asked = shape(query)
    found = tuple(_input(asked, i, s) for i, s in enumerate(setting.streams))
    classes = tuple(
        ClassObserved(max(1 / min(setting.streams[i].selectivity for i, _ in members), 1)) for members in asked.keys)
    groups = 1.0
    for s in setting.streams:
        groups *= min(s.groups, max(s.window, 1))
    return replace(known, inputs=found, classes=classes, groups=groups, fanout=None)


def symbols(query: Query, observed: Observed) -> dict[str, PaperStream]:
    """What was measured, in the paper's symbols, by alias.

    Rows that an input's own selections drop are not there for the paper.
    """
    asked = shape(query)
    return {x.alias: _stream(asked, observed, i) for i, x in enumerate(query.inputs)}


def _stream(asked: Shape, observed: Observed, i: int) -> PaperStream:
    declared, seen = asked.query.inputs[i], observed.inputs[i]
    keys = max([c.keys for c, members in zip(observed.classes, asked.keys) if any(j == i for j, _ in members)],
               default=1.0)
    window = seen.rows * seen.selectivity
    groups = max(min(seen.combinations, max(window, 1)) / keys, 1.0) if _grouped(asked, i) else 1.0
    leaving = declared.window is None or declared.window.kind in ("sliding", "hopping")
    return PaperStream(declared.alias, seen.rate * seen.selectivity, window, groups, max(1 / max(keys, 1), SMALLEST),
                       leaving)


def _input(asked: Shape, i: int, stream: PaperStream) -> InputObserved:
    return InputObserved(stream.rate if asked.query.inputs[i].window else 0.0, stream.window, 1.0,
                         max(_combinations(asked, i, stream), 1.0))


def _combinations(asked: Shape, i: int, stream: PaperStream) -> float:
    groups = stream.groups if _grouped(asked, i) else 1.0
    return groups / stream.selectivity if asked.key_attributes(i) else groups


def _grouped(asked: Shape, i: int) -> bool:
    return any(i in inputs(e) for e in asked.query.groups)
