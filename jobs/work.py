"""One task's work on one query: run a program's statements over files, hand over the answer's partials, write state files; commits nothing.

Pure but for the files it reads and adds: the same order gives the same rows, in a Spark task or in this process.
"""
from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from jobs import kernel, places, tables
from optimizer import dialect as d
from optimizer.program import Program, Source, Write
from optimizer.types import Type


@dataclass(frozen=True)
class Order:
    """`narrow` computes sums in 64 bits and is tried first, `wide` in 128. `files` are absolute paths by source name, in a store with how it is reached (see jobs.places);
    `folders` where each state set is kept.

    `rows_to` is the folder in which a row query's answer is written by the task itself.
    """

    query: str
    part: int
    narrow: Program
    wide: Program
    files: Mapping[str, tuple[str, ...]]
    folders: Mapping[str, str]
    label: str
    rows_to: str | None = None


@dataclass(frozen=True)
class Outcome:
    """`failed` is the query's own error (a value of its answer cannot be computed), not the task's."""

    query: str
    part: int
    partials: pa.Table | None = None
    written: tuple[tuple[str, tables.File], ...] = ()
    failed: str | None = None
    seconds: float = 0.0
    read_rows: Mapping[str, int] = field(default_factory=dict)


def perform(order: Order) -> Outcome:
    """Narrow first; what overflows there, or fails, is decided by the wide form."""
    started = time.perf_counter()
    for program, last in ((order.narrow, order.narrow == order.wide), (order.wide, True)):
        try:
            partials, written = _run(order, program)
            return Outcome(order.query, order.part, partials, tuple(written), seconds=time.perf_counter() - started)
        except kernel.Error as error:
            if not kernel.about_data(error):
                kernel.discard()
                raise
            if last:
                return Outcome(order.query, order.part, failed=str(error).splitlines()[0], seconds=time.perf_counter() - started)
    raise AssertionError("unreachable")


def _run(order: Order, program: Program) -> tuple[pa.Table | None, list[tuple[str, tables.File]]]:
    con = kernel.shared()
    try:
        for source in program.sources:
            con.execute(f"CREATE TEMP VIEW {source.name} AS {relation(con, source, order.files.get(source.name, ()))}")
        _define(con, program.setup)
        answers = []
        for step in program.steps:
            _define(con, step.define)
            answers.append(step.answer if order.rows_to else kernel.table(con, step.answer))
        written = [("", f) for f in _write_rows(con, order, answers)] if order.rows_to else []
        partials = None if order.rows_to else pa.concat_tables(answers)
        return partials, written + [(w.set, f) for w in program.writes if w.every_part or order.part == 0 for f in _write(con, order, w)]
    finally:
        con.close()


def _define(con: kernel.Connection, relations: tuple[tuple[str, str, bool], ...]) -> None:
    for name, sql, kept in relations:
        con.execute(f"CREATE TEMP {'TABLE' if kept else 'VIEW'} {name} AS {sql}")


def relation(con: kernel.Connection, source: Source, files: tuple[str, ...]) -> str:
    """The SQL of a source: its files, or an empty relation of its columns."""
    if files:
        return f"SELECT * FROM read_parquet({kernel.files(con, files)})"
    return f"SELECT {', '.join(_null(n, t) for n, t in source.columns) or '1 AS _nothing'} WHERE FALSE"


def _null(name: str, type_: Type) -> str:
    quoted = name.replace('"', '""')
    return f'CAST(NULL AS {d.name(type_, "duckdb")}) AS "{quoted}"'


def _write(con: kernel.Connection, order: Order, write: Write) -> list[tables.File]:
    return write_file(con, write.sql, order.folders[write.set], f"{order.label}-{order.part}")


def _write_rows(con: kernel.Connection, order: Order, answers: list[str]) -> list[tables.File]:
    union = " UNION ALL ".join(f"({a})" for a in answers)
    assert order.rows_to is not None
    return write_file(con, f"SELECT {d.from_micros('_t', 'duckdb')} AS boundary, * EXCLUDE (_t) FROM ({union}) AS q", order.rows_to, f"{order.label}-{order.part}")


def write_file(con: kernel.Connection, sql: str, folder: str, label: str) -> list[tables.File]:
    """Writes a query's rows as one file, none for no rows. The name is unique: a task may run twice, and only what the driver commits exists."""
    name = tables.unique(label)
    with places.draft(folder) as here:
        path = os.path.join(here, name)
        count = con.execute(f"COPY ({sql}) TO {kernel.quoted(path)} (FORMAT parquet, COMPRESSION snappy)").fetchone()
        if not count or not count[0]:
            os.unlink(path)
            return []
        return [tables.describe(here, name)]
