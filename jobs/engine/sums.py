"""Sums of columns by boundary, as doubles: by them what tasks hand over is held against what is published.

Sums of parts of the rows, added, are sums of all.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Key = tuple[Any, ...]                           # a boundary, where more than one query has rows: (owner, boundary)
Sums = dict[Key, tuple[tuple[float, float], ...]]      # of each column: Σx and Σ|x|


def sums(rows: pa.Table, by: Sequence[str], columns: Sequence[str]) -> Sums:
    """By these columns, the last of which is a boundary, of each of the others: Σx and Σ|x|."""
    keys = {f"k{n}": rows[name] for n, name in enumerate(by[:-1])}
    keys[f"k{len(by) - 1}"] = rows[by[-1]].cast(pa.int64())
    values = {}
    for k, column in enumerate(columns):
        # beyond 2^53 rounded, which whoever compares them has to allow for
        values[f"x{k}"] = pc.fill_null(rows[column].cast(pa.float64(), safe=False), 0.0)
        values[f"a{k}"] = pc.abs(values[f"x{k}"])
    grouped = pa.table({**keys, **values}).group_by(list(keys), use_threads=False)
    totals = grouped.aggregate([(name, "sum") for name in values]).to_pydict()
    pairs = [zip(totals[f"x{k}_sum"], totals[f"a{k}_sum"]) for k in range(len(columns))]
    return dict(zip(zip(*(totals[key] for key in keys)), zip(*pairs)))


def added(parts: Iterable[Sums]) -> Sums:
    """Of all parts together."""
    total: Sums = {}
    for part in parts:
        for key, pairs in part.items():
            before = total.get(key)
            total[key] = pairs if before is None else tuple(
                (x + more_x, a + more_a) for (x, a), (more_x, more_a) in zip(before, pairs))
    return total
