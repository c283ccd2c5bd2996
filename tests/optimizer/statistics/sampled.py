"""Rows of a few streams in the kernel, sampled pane by pane by the statements that tasks run.

And the same questions answered exactly by plain SQL.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy
import pyarrow as pa

from jobs.engine import kernel
from jobs.engine.sample import follow
from optimizer.expression.types import BIGINT, TIMESTAMP
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import default
from optimizer.plan.sampling import Limits, sampling
from optimizer.query.model import Catalog, Query
from optimizer.query.shape import shape
from optimizer.sql.parse import parse
from optimizer.statistics.samples import InputSample, Sample

SECOND = 10**6
BATCH = 10 * SECOND
START = 1_767_225_600 * SECOND
COLUMNS = (("ts", TIMESTAMP), ("k", BIGINT), ("g", BIGINT), ("x", BIGINT))
CATALOG = Catalog(BATCH, tuple((name, "ts", COLUMNS) for name in "abcd"), (("names", (("k", BIGINT), ("g", BIGINT))),))
FROM = {
    "a": "a [WINDOW 40 SECONDS]",
    "b": "b [WINDOW 40 SECONDS]",
    "c": "c [WINDOW 40 SECONDS]",
    "d": "d [WINDOW 40 SECONDS]",
    "names": "names"
}


def joined(names: str, where: str = "TRUE") -> Query:
    """COUNT(*) of the inputs' equi-join on k, by a.g."""
    inputs = names.split()
    equal = " AND ".join(f"{inputs[0]}.k = {n}.k" for n in inputs[1:]) or "TRUE"
    return parse(
        f"SELECT a.g, COUNT(*) AS n FROM {', '.join(FROM[n] for n in inputs)} WHERE {equal} AND {where} GROUP BY a.g",
        CATALOG)


def pane(number: int, keys: Iterable[int], groups: Iterable[int]) -> pa.Table:
    """Rows that came with boundary `number` (from 1)."""
    k, g = numpy.asarray(keys, numpy.int64), numpy.asarray(groups, numpy.int64)
    at = START + (number - 1) * BATCH + numpy.arange(len(k)) % BATCH
    instants = [
        pa.array(v, pa.int64()).cast(pa.timestamp("us", "UTC"))
        for v in (at, numpy.full(len(k), START + number * BATCH))
    ]
    return pa.table({"ts": instants[0], "k": k, "g": g, "x": (k * 7 + g) % 100, "_boundary": instants[1]})


class Rows:
    """Tables by source name."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self.con = kernel.connect()
        for name, rows in tables.items():
            self.con.register(name, rows)

    def sample(self, query: Query, number: int, panes: int = 1, limits: Mapping[int, Limits] | None = None) -> Sample:
        """Of the last `panes` up to boundary `number`."""
        low = Lowering(shape(query), default(query))
        ends = (START + (number - panes) * BATCH, START + number * BATCH)
        found = [self._one(low, i, ends, (limits or {}).get(i, Limits())) for i in range(len(query.inputs))]
        return Sample(ends[1], panes * BATCH / SECOND, tuple(found))

    def _one(self, low: Lowering, i: int, ends: tuple[int, int], limits: Limits) -> InputSample:
        asked = sampling(low, i, BATCH, *ends, limits)

        def define(name: str, sql: str, kept: bool) -> None:
            self.con.execute(f"CREATE OR REPLACE TEMP {'TABLE' if kept else 'VIEW'} {name} AS {sql}")

        found = follow(asked, define, lambda sql: self.con.execute(sql).fetchall(), f"SELECT * FROM {asked.source.of}")
        return InputSample(**{**vars(found), "version": None if low.window(i) else 1, "window": float(found.rows)})

    def pairs(self, names: str) -> float:
        """COUNT(*) of the equi-join on k, from each table's counts by k: joined row by row, skewed ones would be
        billions.
        """
        counts = [f"(SELECT k, count(*) AS n FROM {name} GROUP BY k) AS {name}" for name in names.split()]
        source = " JOIN ".join([counts[0], *(f"{c} USING (k)" for c in counts[1:])])
        return float(
            self.exact(f"SELECT sum(CAST(1 AS HUGEINT) * {' * '.join(f'{n}.n' for n in names.split())}) FROM {source}"))

    def exact(self, sql: str) -> Any:
        return self.con.execute(sql).fetchall()[0][0]
