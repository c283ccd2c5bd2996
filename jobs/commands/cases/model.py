"""A test of a pipeline as frozen values: rows that come, runs, the answers that are expected then, and what differs.

Where tests are written and how they are run is not known here.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from optimizer.expression.types import Type

Value = int | float | Decimal | str | date | None       # an instant is its microseconds since 1970
Row = tuple[Value, ...]
TextRow = Mapping[str, str | None]                      # as it is written; NULL is None


@dataclass(frozen=True)
class IngestStep:
    """Rows or a file for each stream or relation that is named.

    `IngestStep({"clicks": ({"ts": "2025-01-01T09:00:03Z", "page": None},)})` gives one row to clicks. `quarantined`
    says how many rows of which stream are to go to quarantine; of others none may.
    """

    rows: Mapping[str, tuple[TextRow, ...]]
    files: Mapping[str, str] = field(default_factory=dict)
    quarantined: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class RunStep:
    """What `forebay run` takes: `RunStep(flush=True)` treats the input as ended; `to` in microseconds."""

    to: int | None = None
    flush: bool = False


@dataclass(frozen=True)
class ExpectedAnswer:
    """The whole answer of a query at a boundary, in any order, on these columns.

    `ExpectedAnswer("top", 60_000_000, (("n", BIGINT),), ((3,),))` is one row.
    """

    query: str
    boundary: int
    columns: tuple[tuple[str, Type], ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class PipelineTest:
    """One test of a file: its steps in order, then the answers. `every_plan`: repeated under each plan."""

    file: str
    name: str
    steps: tuple[IngestStep | RunStep, ...]
    answers: tuple[ExpectedAnswer, ...]
    every_plan: bool = False


@dataclass(frozen=True)
class Difference:
    """Why a test fails, in words, with the rows that are missing and those that are too many: at most a few of each,
    and how many there are.

    `step` counts from 1; `boundary` is in microseconds; `plan` is named where the test runs under each.
    """

    message: str
    step: int | None = None
    query: str | None = None
    boundary: int | None = None
    plan: str | None = None
    missing: tuple[Mapping[str, object], ...] = ()
    too_many: tuple[Mapping[str, object], ...] = ()
    missing_rows: int = 0
    too_many_rows: int = 0
