"""What expectations found: warehouse/ledger/expectations; nothing is judged here.

Only what failed is entered, so that a sound batch writes nothing. The runner alone enters findings.
"""
from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from jobs.ledger.open_pipeline import OpenPipeline
from jobs.pipeline.schema import INSTANT
from jobs.storage import tables
from jobs.storage.tables import Table
from optimizer.time import instant

FINDINGS_PATH = "ledger/expectations"
FINDINGS = pa.schema([("at", INSTANT), ("boundary", INSTANT), ("subject", pa.string()), ("expectation", pa.string()),
                      ("severity", pa.string()), ("observed", pa.string()), ("passed", pa.bool_()),
                      ("released", pa.bool_())])
MANY = 32                # files of one of these tables before they are made one


@dataclass(frozen=True)
class Finding:
    """An expectation that did not hold at a boundary. `subject` is `stream NAME` or `query NAME`."""

    boundary: int
    subject: str
    expectation: str
    observed: str
    severity: str
    released: bool = False

    @property
    def key(self) -> tuple[int, str, str]:
        return self.boundary, self.subject, self.expectation


def enter(pipe: OpenPipeline, findings: Iterable[Finding]) -> None:
    """One commit for all of them, none for none."""
    rows = []
    for finding in findings:
        times = {"boundary": instant(finding.boundary), "at": instant(pipe.clock())}
        rows.append({**asdict(finding), **times, "passed": False})
    if rows:
        append(pipe.table(FINDINGS_PATH, FINDINGS), rows)


def entered(pipe: OpenPipeline) -> list[dict[str, Any]]:
    """All findings that were entered, oldest first."""
    return read(pipe, FINDINGS_PATH)


def stops(pipe: OpenPipeline, boundaries: Collection[int]) -> list[dict[str, Any]]:
    """The findings that stop these boundaries, as long as they have not been run: released or not, each once."""
    committed = pipe.ledger.committed()
    not_run = [row for row in entered(pipe) if row["boundary"] in boundaries
               and (committed is None or row["boundary"] > committed)]
    critical = [row for row in not_run if row["severity"] == "critical" and not row["released"]]
    return list({key(row): row for row in critical}.values())


def key(row: dict[str, Any]) -> tuple[int, str, str]:
    return row["boundary"], row["subject"], row["expectation"]


def append(table: Table, rows: list[dict[str, Any]]) -> None:
    table.append(pa.Table.from_pylist(rows, table.schema), most=MANY)


def read(pipe: OpenPipeline, path: str) -> list[dict[str, Any]]:
    """Instants as microseconds."""
    if not tables.exists(pipe.path(path)):
        return []
    rows = pipe.table(path).refresh().rows().sort_by([("at", "ascending"), ("boundary", "ascending")])
    for name in ("at", "boundary"):
        rows = rows.set_column(rows.schema.get_field_index(name), name, rows[name].cast(pa.int64()))
    return list(rows.to_pylist())
