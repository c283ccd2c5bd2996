"""An answer's partials on their way from the tasks that make them to whoever merges them: in memory where they are few,
where they are many in a file by task, divided by a hash of their group.

A merging task reads its share of every task's file, so no process holds all of them. Files, not Spark's shuffle: there
each row would pass through the JVM's memory, which is the driver's where Spark runs on one machine.
"""
from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from jobs.engine import kernel
from jobs.engine.sums import Sums, added, sums
from jobs.storage import places
from optimizer.expression.dialect import part_of

BUCKETS = 128            # of a file; a merging task takes one or more of them
CHUNK = 1 << 18          # rows that are divided at once: 2,000 of a bucket lie together


@dataclass(frozen=True)
class PartialsGrouping:
    """What is known of one answer's partials: `PartialsGrouping(("g0",), ("_t",), ("c", "m0_sum"))`.

    `keys` tell its groups apart; of `summed` columns sums are taken by the columns `by`.
    """

    keys: tuple[str, ...]
    by: tuple[str, ...]
    summed: tuple[str, ...]


@dataclass(frozen=True)
class DividedPartials:
    """One task's partials of an answer in a file of Arrow's: `buckets` has each record batch's.

    `size` are the bytes that they take in memory, `sums` what they sum to by boundary.
    """

    path: str
    rows: int
    size: int
    buckets: tuple[int, ...]
    sums: Sums


@dataclass(frozen=True)
class Handover:
    """When and where a task leaves partials in files: of each answer, by its number, from more than `most` bytes on.

    `merge_here`: the task has whole groups, so it merges the file itself and hands over what that gives. `is_wanted`:
    false where the plan is only tried, and nobody is to have its answer.
    """

    folder: str
    most: int
    groupings: Mapping[int, PartialsGrouping]
    merge_here: Callable[[DividedPartials], tuple[Any, ...]] | None = None
    is_wanted: bool = True


class Collected:
    """One answer's partials as a task computes them, boundary by boundary.

    `with Collected(handover, 0) as partials: partials.add(rows)`, then `partials.in_memory()` or `partials.divided`.
    What is in a file is whole when the block has ended well; after an error it is deleted.
    """

    def __init__(self, handover: Handover | None, number: int) -> None:
        self._grouping = handover.groupings.get(number) if handover else None
        self._handover = handover
        self._tables: list[pa.Table] = []
        self._size = 0
        self._file: _DividedFile | None = None
        self.divided: DividedPartials | None = None

    def __enter__(self) -> Collected:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self._file is not None:
            self.divided = self._file.close(failed=kind is not None)

    def add(self, rows: pa.Table) -> None:
        if self._handover is not None and not self._handover.is_wanted:
            return
        if self._file is not None:
            self._file.write(rows)
            return
        self._tables.append(rows)
        self._size += rows.nbytes
        if self._grouping is not None and self._handover is not None and self._size > self._handover.most:
            folder = self._handover.folder if self._handover.merge_here is None else kernel.own_folder()
            self._file = _DividedFile(folder, self._grouping, rows.schema)
            for table in self._tables:
                self._file.write(table)
            self._tables = []

    def in_memory(self) -> pa.Table | None:
        """What was not written, None where all was."""
        return pa.concat_tables(self._tables) if self._tables else None


class _DividedFile:
    """A file that is being written."""

    def __init__(self, folder: str, grouping: PartialsGrouping, schema: pa.Schema) -> None:
        self._name = f"{os.urandom(16).hex()}.partials"
        self._path, self._grouping = places.join(folder, self._name), grouping
        self._draft = ExitStack()
        self._local = os.path.join(self._draft.enter_context(places.draft(folder)), self._name)
        number = os.open(self._local, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._sink = open(number, "wb")
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        self._writer = pa.ipc.new_file(self._sink, schema, options=options)
        self._rows, self._size, self._sums = 0, 0, Sums()
        self._buckets: list[int] = []

    def write(self, rows: pa.Table) -> None:
        grouping = self._grouping
        self._rows += rows.num_rows
        self._size += rows.nbytes
        self._sums = added([self._sums, sums(rows, grouping.by, grouping.summed)])
        for start in range(0, rows.num_rows, CHUNK):
            self._write_chunk(rows.slice(start, CHUNK).combine_chunks())

    def _write_chunk(self, rows: pa.Table) -> None:
        buckets = _buckets(rows, self._grouping.keys)
        in_order = rows.take(pc.sort_indices(buckets))
        counts = pc.value_counts(buckets).to_pylist()
        start = 0
        for bucket, count in sorted((each["values"], each["counts"]) for each in counts):
            for batch in in_order.slice(start, count).to_batches():
                self._writer.write_batch(batch)
                self._buckets.append(bucket)
            start += count

    def close(self, failed: bool) -> DividedPartials | None:
        try:
            self._writer.close()
        finally:
            self._sink.close()
            if failed:
                os.unlink(self._local)
            self._draft.close()
        if failed:
            return None
        return DividedPartials(self._path, self._rows, self._size, tuple(self._buckets), self._sums)


def _buckets(rows: pa.Table, keys: Collection[str]) -> pa.ChunkedArray:
    """Of each row, in their order: the engine's hash, which is the same in each task."""
    con = kernel.shared()
    try:
        con.register("chunk", rows)
        sql = f"SELECT CAST({part_of(list(keys), BUCKETS, 'duckdb')} AS UTINYINT) AS bucket FROM chunk"
        return kernel.table(con, sql)["bucket"]
    finally:
        con.close()


def divided(rows: pa.Table, handover: Handover, number: int) -> DividedPartials:
    """Partials that were handed over in memory, as a file beside the others."""
    grouping = handover.groupings[number]
    file = _DividedFile(handover.folder, grouping, rows.schema)
    try:
        file.write(rows)
    except BaseException:
        file.close(failed=True)
        raise
    in_file = file.close(failed=False)
    assert in_file is not None
    return in_file


def read(files: Iterable[DividedPartials], buckets: Collection[int]) -> pa.Table:
    """The rows of these buckets in all files."""
    batches: list[pa.RecordBatch] = []
    schema = None
    for file in files:
        with places.in_parts(file.path) as source:
            reader = pa.ipc.open_file(source)
            schema = schema or reader.schema
            batches += [reader.get_batch(n) for n, bucket in enumerate(file.buckets) if bucket in buckets]
    return pa.Table.from_batches(batches, schema)


def shares(files: Collection[DividedPartials], least: int, most_bytes: int) -> list[range]:
    """The buckets of all files in runs: at least so many where there are so many, each of about so many bytes at most.
    """
    size = sum(file.size for file in files)
    count = min(max(least, -(-size // most_bytes), 1), BUCKETS)
    bounds = [n * BUCKETS // count for n in range(count + 1)]
    return [range(start, end) for start, end in zip(bounds, bounds[1:])]


def delete(files: Iterable[DividedPartials]) -> None:
    for file in files:
        places.delete(file.path)
