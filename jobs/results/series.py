"""The newest answers of a query as lines over time, one for each group: what pictures draw."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa

from jobs.batch.works import parsed
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.requests import requests
from jobs.results import answers
from optimizer.expression.expr import AggregateRef
from optimizer.query.model import references

BOUNDARIES = 500          # the newest ones that are drawn
LINES, PANELS = 8, 4      # groups with the largest last values, and figures, that are drawn
Series = dict[str, list[tuple[datetime, float]]]


@dataclass(frozen=True)
class PlottedAnswer:
    """What is drawn: by figure the points of each group's line; `omitted` groups are not."""

    series: Mapping[str, Series]
    omitted: int = 0


def newest(pipe: OpenPipeline, name: str, boundaries: int = BOUNDARIES) -> tuple[pa.Table, list[str]]:
    """The answers at the newest boundaries, and which of their columns are groups; of a row query only when its rows
    were published.
    """
    state = requests.show(pipe, name)
    query = parsed(state.sql, pipe.catalog)
    rows = answers.rows(pipe, state, answers.published(pipe, name)[-boundaries:])
    if query.returns_rows:
        return rows.select(["boundary"]), []
    if query.above is not None or query.blocks is not None:      # texts tell rows apart, numbers are their values
        return rows, [column for column, kind in query.columns if not kind.numeric]
    aggregated = {column for column, expr in query.outputs
                  if any(isinstance(leaf, AggregateRef) for leaf in references(expr))}
    return rows, [column for column, _ in query.outputs if column not in aggregated]


def plotted(answers_: pa.Table, groups: Sequence[str]) -> PlottedAnswer:
    """Of the answers at many boundaries: `groups` are the columns that tell lines apart.

    Without a column of numbers, the rows of each boundary are counted.
    """
    times = [datetime.fromtimestamp(us / 1e6, timezone.utc) for us in answers_["boundary"].cast(pa.int64()).to_pylist()]
    labels = [", ".join(map(str, key)) for key in zip(*(answers_[name].to_pylist() for name in groups))]
    labels = labels or [""] * len(times)
    figures = [field.name for field in answers_.schema if field.name not in (*groups, "boundary")
               and _is_number(field.type)][:PANELS]
    if not figures:
        counts: dict[datetime, float] = {}
        for time in times:
            counts[time] = counts.get(time, 0.0) + 1
        return PlottedAnswer({"rows": {"": sorted(counts.items())}})
    series = {name: _lines(times, labels, answers_[name].to_pylist()) for name in figures}
    largest = sorted(series[figures[0]], key=lambda label: -series[figures[0]][label][-1][1])[:LINES]
    kept = {name: {label: lines[label] for label in largest if label in lines} for name, lines in series.items()}
    return PlottedAnswer(kept, len(series[figures[0]]) - len(largest))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _lines(times: Sequence[datetime], labels: Sequence[str], values: Sequence[Any]) -> Series:
    lines: Series = {}
    for time, label, value in zip(times, labels, values):
        if value is not None:
            lines.setdefault(label, []).append((time, float(value)))
    return {label: sorted(points) for label, points in lines.items()}
