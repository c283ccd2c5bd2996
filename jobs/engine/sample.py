"""One item beside a batch's orders: the sample of one input's rows, taken in the same tasks.

Whatever fails here is no sample, never a failed batch.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.engine import kernel
from jobs.engine.work import Joining, TaskOrder, TaskResult, relation
from optimizer.plan.program import Definition
from optimizer.plan.sampling import Sampling, taken
from optimizer.statistics.samples import KEYS, SPACE, InputSample


@dataclass(frozen=True)
class SampleOrder:
    """A sampling with the files that it reads, or the stream's table at a version, for the JVM.

    `most` rows are read, None: all.
    """

    query: str
    input: int
    sampling: Sampling
    files: tuple[str, ...]
    stream: tuple[str, int] | None = None
    most: int | None = None


@dataclass(frozen=True)
class SampleResult:
    """`seconds` of processor time that it cost."""

    query: str
    input: int
    sample: InputSample | None
    seconds: float = 0.0


@dataclass(frozen=True)
class TaskItem:
    """Does an order's work, or takes a sample: both kinds share a Spark job."""

    joining: Joining

    def __call__(self, item: TaskOrder | SampleOrder) -> TaskResult | SampleResult:
        return take(item) if isinstance(item, SampleOrder) else self.joining(item)


def take(asked: SampleOrder) -> SampleResult:
    started = time.process_time()
    con = kernel.shared()

    def define(name: str, sql: str, kept: bool) -> None:
        con.execute(f"CREATE TEMP {'TABLE' if kept else 'VIEW'} {name} AS {sql}")

    try:
        found = follow(asked.sampling, define, lambda sql: con.execute(sql).fetchall(), _source(con, asked))
        return SampleResult(asked.query, asked.input, found, time.process_time() - started)
    except kernel.Error as error:
        if not kernel.about_data(error):
            kernel.discard()
        return SampleResult(asked.query, asked.input, None, time.process_time() - started)
    finally:
        con.close()


def _source(con: kernel.Connection, asked: SampleOrder) -> str:
    rows = relation(con, asked.sampling.source, asked.files)
    return rows if asked.most is None else f"SELECT * FROM ({rows}) AS q LIMIT {asked.most}"


def follow(asked: Sampling, define: Callable[[str, str, bool], Any], ask: Callable[[str], Iterable[Sequence[Any]]],
           source: str | None) -> InputSample:
    """The statements in their order, by whichever engine."""
    before: tuple[Definition, ...] = (Definition(asked.source.name, source, False),) if source else ()
    for name, sql, kept in (*before, *asked.define):
        define(name, sql, kept)
    (counts,) = ask(asked.counts)
    smallest, frequent = {c: list(ask(sql)) for c, sql in asked.keys}, dict(asked.frequent)
    whole = {c for c, found in smallest.items() if len(found) < KEYS and asked.limits.key(c) == SPACE}
    keys = {c: found if c in whole else found + list(ask(frequent[c])) for c, found in smallest.items()}
    return taken(asked, counts, ask(asked.combinations) if asked.combinations else (), keys)
