"""A plan as the statements one task runs for a run of boundaries: sources to read, temporary relations, answers to hand
over, state to write.

Everything is text and values; who runs them (a task's engine, Spark SQL, a unit test) only replaces the names of the
sources by files. Statements of a step see the relations of earlier steps, so several boundaries cost one pass over the
sources.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from optimizer.expression.types import Type
from optimizer.plan.membership import Counting, Range
from optimizer.statistics.cardinality import MERGED, PRUNED

BEGINNING = -1          # "the boundary before" of a state that does not exist yet
Columns = tuple[tuple[str, Type], ...]


class Definition(NamedTuple):
    """A name that a task defines in SQL: `Definition("input_0", "SELECT …", is_table=True)`.

    A temporary table where several statements read it, else a view.
    """

    name: str
    sql: str
    is_table: bool


@dataclass(frozen=True)
class BoundaryShare:
    """A task's run of boundaries, where tasks divide those of a batch: `BoundaryShare(after=60, last=240)`.

    It begins after boundary `after`, the last of the run before it (BEGINNING: there is none). `last` is the batch's
    last boundary: state is written as of it.
    """

    after: int
    last: int


@dataclass(frozen=True)
class StateSet:
    """A set that a plan keeps between boundaries: `StateSet("panes", 0, columns)` is kept as the table `panes0`.

    By interval (`panes`, levels, `extremes`: each row says by `_out`, or `_e`, up to which boundary it counts), or as
    of the last boundary (`totals`), each of one input; or the `answer`.
    """

    kind: str
    input: int | None
    columns: Columns

    @property
    def name(self) -> str:
        return self.kind + ("" if self.input is None else str(self.input))

    @property
    def ends(self) -> str | None:
        """The column that says up to which boundary a row counts; without one each batch replaces the set."""
        return next((name for name, _ in self.columns if name in ("_out", "_e")), None)

    @property
    def most_files(self) -> int:
        """Files before maintenance merges them: fewer where the merged file leaves out most rows."""
        return PRUNED if self.kind == "extremes" else MERGED


@dataclass(frozen=True)
class Source:
    """What a name in the SQL stands for: a stream's rows in any of the ranges, a relation's version, what a fragment
    sent, or a state set.

    `dealt`: each task reads its own share of the files; else every task reads all of them. `stamp`: the event time's
    column, if the SQL asks of a row's times only whether they are in the ranges and, with `counting`, at which
    boundaries the row counts; they need not be read where a file's bounds answer it.
    """

    name: str
    kind: str
    of: str
    ranges: tuple[Range, ...] = ()
    columns: Columns = ()
    dealt: bool = False
    stamp: str | None = None
    counting: Counting | None = None


@dataclass(frozen=True)
class Fragment:
    """What each task sends before the exchange, under a name that is a source of the program: its share of one stream,
    as partials in stored types.

    `parted`: the SQL gives, as `_part`, the task that each of them goes to; else all go to every task.
    """

    name: str
    source: Source
    sql: str
    columns: Columns
    parted: bool


@dataclass(frozen=True)
class Write:
    """A state set to write: `append` adds a file, else the new file replaces the set.

    Only task 0 writes sets that every task computes.
    """

    set: str
    sql: str
    columns: Columns
    append: bool
    every_part: bool


@dataclass(frozen=True)
class Step:
    """One boundary, or the last of several that one statement answers: relations to define, then the answer's partials
    (or rows); `number` says whose, where a program has answers of several shapes.

    `drop`: tables that no later step reads."""

    boundary: int
    define: tuple[Definition, ...]
    answer: str
    number: int = 0
    drop: tuple[str, ...] = ()


@dataclass(frozen=True)
class Codes:
    """Strings as numbers, for a run whose boundaries join and group the same rows again and again.

    `types` are enumerations, each a name and a SELECT of all its values; `tables` are made with them of others, which
    nothing reads afterwards (`drop`).
    """

    types: tuple[tuple[str, str], ...]
    tables: tuple[Definition, ...]
    drop: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    """What one task runs: `before` is sent to other tasks, `setup` defined once, and `codes` after it where there are
    any, then come the boundaries, then writes.

    `Program((Source("files_0", …),), (Definition("input_0", …),), (Step(60, (), "SELECT …"),))` is of one boundary and
    keeps nothing.
    """

    sources: tuple[Source, ...]
    setup: tuple[Definition, ...]
    steps: tuple[Step, ...]
    writes: tuple[Write, ...] = ()
    before: tuple[Fragment, ...] = ()
    codes: Codes | None = None
