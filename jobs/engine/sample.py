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
from optimizer.plan.sampling import Sampling, input_sample
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


def take(order: SampleOrder) -> SampleResult:
    """Takes a sample by DuckDB; whatever goes wrong, there is none."""
    started = time.process_time()
    con = kernel.shared()

    def define(name: str, sql: str, materialised: bool) -> None:
        con.execute(f"CREATE TEMP {'TABLE' if materialised else 'VIEW'} {name} AS {sql}")

    try:
        rows = relation(con, order.sampling.source, order.files)
        source = rows if order.most is None else f"SELECT * FROM ({rows}) AS q LIMIT {order.most}"
        sample = follow(order.sampling, define, lambda sql: con.execute(sql).fetchall(), source)
        return SampleResult(order.query, order.input, sample, time.process_time() - started)
    except kernel.Error as error:
        if not kernel.about_data(error):
            kernel.discard()
        return SampleResult(order.query, order.input, None, time.process_time() - started)
    finally:
        con.close()


def follow(sampling: Sampling, define: Callable[[str, str, bool], Any], ask: Callable[[str], Iterable[Sequence[Any]]],
           source: str | None) -> InputSample:
    """Runs the statements of a sampling in their order, by whichever engine; a `source` is defined before them."""
    before: tuple[Definition, ...] = (Definition(sampling.source.name, source, False),) if source else ()
    for name, sql, materialised in (*before, *sampling.define):
        define(name, sql, materialised)
    (counts,) = ask(sampling.counts)
    frequent = dict(sampling.frequent)
    keys = {}
    for c, sql in sampling.keys:
        keys[c] = list(ask(sql))      # those with the smallest hashes
    for c, smallest in keys.items():
        is_complete = len(smallest) < KEYS and sampling.limits.key(c) == SPACE
        if not is_complete:
            smallest += ask(frequent[c])
    combinations = ask(sampling.combinations) if sampling.combinations else ()
    return input_sample(sampling, counts, combinations, keys, ask(sampling.groups) if sampling.groups else ())
