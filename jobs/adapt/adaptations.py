"""warehouse/ledger/adaptations: when `forebay adapt` last took statistics and decided plans, and what that cost; for
the next one, and for people to query.

It may lose rows: then statistics are taken earlier than they need be.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from jobs.ledger.open_pipeline import OpenPipeline
from jobs.storage import tables
from jobs.storage.tables import Conflict

PATH = "ledger/adaptations"
STAMP = pa.timestamp("us", "UTC")
SCHEMA = pa.schema([("at", STAMP), ("kind", pa.string()), ("boundary", STAMP), ("batch", pa.int64()),
                    ("seconds", pa.float64()), ("rows", pa.int64()), ("balance", pa.float64()),
                    ("decisions", pa.int64())])
MANY = 64               # files before they are merged
ATTEMPTS = 20           # to append a row while others do
Kind = Literal["statistics", "decisions"]


@dataclass(frozen=True)
class Adaptation:
    """One time that statistics were taken or plans decided: `Adaptation("statistics", at, 120, 7, seconds=0.4)`.

    `at` is the clock's, `boundary` and `batch` the last ones committed then. `seconds` of processor time were spent on
    `rows` that were read; `balance` is what is left of the budget then, negative where more was spent. `decisions`
    counts those that were entered.
    """

    kind: Kind
    at: int
    boundary: int | None
    batch: int
    seconds: float = 0.0
    rows: int = 0
    balance: float = 0.0
    decisions: int = 0


def append(pipe: OpenPipeline, adaptation: Adaptation) -> None:
    table, rows = pipe.table(PATH, SCHEMA), pa.Table.from_pylist([vars(adaptation)], schema=SCHEMA)
    for _ in range(ATTEMPTS):
        try:
            table.refresh().append(rows, most=MANY)
            table.trim()
            return
        except Conflict:
            continue


def exist(pipe: OpenPipeline) -> bool:
    """Whether `forebay adapt` has ever run here."""
    return tables.exists(pipe.path(PATH))


def last(pipe: OpenPipeline, kind: Kind) -> Adaptation | None:
    """The newest of a kind, None before the first."""
    return _newest(_all(pipe), kind)


def _all(pipe: OpenPipeline) -> list[Adaptation]:
    if not exist(pipe):
        return []
    # Instants as numbers: as Python values they make Arrow import pandas.
    rows: Any = tables.open_table(pipe.path(PATH)).rows()
    for name in ("at", "boundary"):
        column = rows.schema.get_field_index(name)
        rows = rows.set_column(column, name, rows[name].cast(pa.int64()))
    return [Adaptation(**row) for row in rows.to_pylist()]


def _newest(adaptations: list[Adaptation], kind: Kind) -> Adaptation | None:
    of_kind = [one for one in adaptations if one.kind == kind]
    return max(of_kind, key=lambda one: (one.at, one.batch), default=None)


def age(pipe: OpenPipeline) -> dict[str, Any]:
    """When plans were last decided and statistics last taken by `forebay adapt`, by the clock and by boundaries.

    None where that was never done; where batches decide, they do both themselves.
    """
    adaptations = _all(pipe)
    decisions, statistics = _newest(adaptations, "decisions"), _newest(adaptations, "statistics")
    return {
        "mode": pipe.pipeline.decide,
        "at": decisions.at if decisions else None,
        "boundary": decisions.boundary if decisions else None,
        "statistics_at": statistics.at if statistics else None,
        "statistics_boundary": statistics.boundary if statistics else None
    }
