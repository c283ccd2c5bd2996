"""From the papers' symbols to what is observed and back: what a file of statistics says, what is stated where nothing is known, what was measured.

λ is a rate, w = λ·range rows, g distinct values of grouping attributes, σ = 1/distinct join values (paper A, Table 1). A set has min(w, g/σ) rows, so g/σ
stands for the distinct combinations of an input.
"""
from __future__ import annotations

from dataclasses import replace

from optimizer.cost.document import DEFAULT
from optimizer.cost.statistics import Setting, Stream
from optimizer.expr import inputs
from optimizer.observed import ClassObserved, InputObserved, Observed
from optimizer.query import Query
from optimizer.shape import Shape, shape
from optimizer.windows import SECOND

LANDMARK = 3600.0        # seconds that UNTIL NOW is taken to hold where nothing is known
RELATION = 1000.0        # rows of a relation of which nothing is known
SMALLEST = 1e-12


def assumed(query: Query) -> Observed:
    """Paper A's setting where nothing is known at all; it weighs nothing."""
    asked = shape(query)
    found = tuple(_input(asked, i, DEFAULT) for i in range(len(query.inputs)))
    return Observed(found, tuple(ClassObserved(1 / DEFAULT.selectivity) for _ in asked.keys), query.every / SECOND, _groups(asked))


def told(query: Query, setting: Setting, known: Observed | None = None) -> Observed:
    """What a file of statistics says; `known` serves for the late share and the batch."""
    asked = shape(query)
    found = tuple(_input(asked, i, s) for i, s in enumerate(setting.streams))
    classes = tuple(ClassObserved(max(1 / min(setting.streams[i].selectivity for i, _ in members), 1)) for members in asked.keys)
    start = known or assumed(query)
    groups = 1.0
    for s in setting.streams:
        groups *= min(s.groups, max(s.window, 1))
    return replace(start, inputs=found, classes=classes, groups=groups, fanout=None)


def symbols(query: Query, observed: Observed) -> dict[str, Stream]:
    """What was measured, in the paper's symbols, by alias; rows that an input's own selections drop are not there for the paper."""
    asked = shape(query)
    return {x.alias: _stream(asked, observed, i) for i, x in enumerate(query.inputs)}


def _stream(asked: Shape, observed: Observed, i: int) -> Stream:
    declared, seen = asked.query.inputs[i], observed.inputs[i]
    keys = max([c.keys for c, members in zip(observed.classes, asked.keys) if any(j == i for j, _ in members)], default=1.0)
    window = seen.rows * seen.selectivity
    groups = max(min(seen.combinations, max(window, 1)) / keys, 1.0) if _grouped(asked, i) else 1.0
    leaving = declared.window is None or declared.window.kind in ("sliding", "hopping")
    return Stream(declared.alias, seen.rate * seen.selectivity, window, groups, max(1 / max(keys, 1), SMALLEST), leaving)


def _input(asked: Shape, i: int, stream: Stream) -> InputObserved:
    declared = asked.query.inputs[i]
    if declared.window is None:
        return InputObserved(0.0, stream.window if stream is not DEFAULT else RELATION, 1.0, max(_combinations(asked, i, stream), 1.0))
    seconds = declared.window.range / SECOND if declared.window.range else LANDMARK
    rows = stream.window if stream is not DEFAULT else stream.rate * seconds
    return InputObserved(stream.rate, rows, 1.0, max(_combinations(asked, i, stream), 1.0))


def _combinations(asked: Shape, i: int, stream: Stream) -> float:
    groups = stream.groups if _grouped(asked, i) else 1.0
    return groups / stream.selectivity if asked.key_attributes(i) else groups


def _grouped(asked: Shape, i: int) -> bool:
    return any(i in inputs(e) for e in asked.query.groups)


def _groups(asked: Shape) -> float:
    return DEFAULT.groups if asked.query.groups else 1.0
