"""From the papers' symbols to statistics and back: what a file of statistics says, and what was measured as such
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
from optimizer.statistics.model import InputStatistics, KeyStatistics, QueryStatistics

SMALLEST = 1e-12


def from_symbols(query: Query, setting: Setting, measured: QueryStatistics) -> QueryStatistics:
    """What a file of statistics says, with uniform and independent keys as the papers have them.

    Of what was measured, only the batch serves.
    """
    query_shape = shape(query)
    inputs = tuple(_input(query_shape, i, stream) for i, stream in enumerate(setting.streams))
    classes = []
    for joined in query_shape.joined_inputs():
        selectivity = min(setting.streams[i].selectivity for i in joined)
        classes.append(KeyStatistics(max(1 / selectivity, 1)))
    groups = 1.0
    for stream in setting.streams:
        groups *= min(stream.groups, max(stream.window, 1))
    return replace(measured, inputs=inputs, classes=tuple(classes), groups=groups, fanout=None)


def symbols(query: Query, statistics: QueryStatistics) -> dict[str, PaperStream]:
    """What was measured, in the paper's symbols, by alias.

    Rows that an input's own selections drop are not there for the paper.
    """
    query_shape = shape(query)
    return {x.alias: _stream(query_shape, statistics, i) for i, x in enumerate(query.inputs)}


def _stream(query_shape: Shape, statistics: QueryStatistics, i: int) -> PaperStream:
    declared, measured = query_shape.query.inputs[i], statistics.inputs[i]
    joined_inputs = query_shape.joined_inputs()
    keys = max([key.keys for key, joined in zip(statistics.classes, joined_inputs) if i in joined], default=1.0)
    window = measured.rows * measured.selectivity
    groups = max(min(measured.combinations, max(window, 1)) / keys, 1.0) if _is_grouped_by(query_shape, i) else 1.0
    leaving = declared.window is None or declared.window.kind in ("sliding", "hopping")
    return PaperStream(declared.alias, measured.rate * measured.selectivity, window, groups,
                       max(1 / max(keys, 1), SMALLEST), leaving)


def _input(query_shape: Shape, i: int, stream: PaperStream) -> InputStatistics:
    rate = stream.rate if query_shape.query.inputs[i].window else 0.0
    combinations = stream.groups if _is_grouped_by(query_shape, i) else 1.0
    if query_shape.key_attributes(i):
        combinations /= stream.selectivity
    return InputStatistics(rate, stream.window, 1.0, max(combinations, 1.0))


def _is_grouped_by(query_shape: Shape, i: int) -> bool:
    return any(i in inputs(e) for e in query_shape.query.groups)
