"""What expectations found, and who let what pass: warehouse/ledger/expectations and warehouse/ledger/releases; nothing
is judged here.

Only what failed is entered, so that a sound batch writes nothing. The runner alone enters findings; a release never
waits for it.
"""
from __future__ import annotations

import getpass
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from jobs.ledger.open_pipeline import OpenPipeline
from jobs.pipeline.schema import INSTANT
from jobs.storage import tables
from jobs.storage.tables import Conflict, Table
from optimizer.errors import ForebayError
from optimizer.time import instant, iso

FINDINGS_PATH, RELEASES_PATH = "ledger/expectations", "ledger/releases"
FINDINGS = pa.schema([("at", INSTANT), ("boundary", INSTANT), ("subject", pa.string()), ("expectation", pa.string()),
                      ("severity", pa.string()), ("observed", pa.string()), ("passed", pa.bool_()),
                      ("released", pa.bool_())])
RELEASES = pa.schema([("at", INSTANT), ("boundary", INSTANT), ("subject", pa.string()), ("expectation", pa.string()),
                      ("by", pa.string()), ("reason", pa.string())])
MANY = 32                # files of one of these tables before they are made one
ATTEMPTS = 100           # a release loses only to another release
LONGEST = 1000           # characters of a reason


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
        _append(pipe.table(FINDINGS_PATH, FINDINGS), rows)


def entered(pipe: OpenPipeline) -> list[dict[str, Any]]:
    """All findings that were entered, oldest first."""
    return _read(pipe, FINDINGS_PATH)


def releases(pipe: OpenPipeline) -> list[dict[str, Any]]:
    return _read(pipe, RELEASES_PATH)


def released(pipe: OpenPipeline) -> set[tuple[int, str, str]]:
    """What may pass: keys of findings."""
    return {key(row) for row in releases(pipe)}


def stops(pipe: OpenPipeline, boundary: int) -> list[dict[str, Any]]:
    """The findings that stop this boundary, as long as it has not been run: released or not, each once."""
    committed = pipe.ledger.committed()
    if committed is not None and committed >= boundary:
        return []
    at_boundary = [row for row in entered(pipe) if row["boundary"] == boundary]
    critical = [row for row in at_boundary if row["severity"] == "critical" and not row["released"]]
    return list({key(row): row for row in critical}.values())


def standing(pipe: OpenPipeline, committed: int | None) -> list[dict[str, Any]]:
    """The findings that stop boundaries now, that is later ones than the last that is committed: each once, by
    boundary.

    Whether what brought them about was mended since is found by the next run.
    """
    critical = [row for row in entered(pipe) if row["severity"] == "critical" and not row["released"]
                and (committed is None or row["boundary"] > committed)]
    passed = released(pipe) if critical else set()
    by_key = {key(row): row for row in critical if key(row) not in passed}
    return sorted(by_key.values(), key=lambda row: row["boundary"])


def release(pipe: OpenPipeline, boundary: int, reason: str, by: str | None = None) -> dict[str, Any]:
    """Lets pass what has stopped the boundary so far; waits for nobody."""
    if not reason.strip() or len(reason) > LONGEST:
        raise ForebayError("bad-usage", f"a reason has 1 to {LONGEST} characters",
                           hint='--reason "why it may pass"; the ledger keeps it')
    reason, user = reason.strip(), by or _user()
    for _ in range(ATTEMPTS):
        unreleased = [row for row in stops(pipe, boundary) if key(row) not in released(pipe)]
        if not unreleased:
            raise _nothing_to_release(pipe, boundary)
        at = pipe.clock()
        rows, listed = [], []
        for row in unreleased:
            subject, expectation = row["subject"], row["expectation"]
            rows.append({"at": instant(at), "boundary": instant(boundary), "subject": subject,
                         "expectation": expectation, "by": user, "reason": reason})
            listed.append({"subject": subject, "expectation": expectation, "observed": row["observed"]})
        try:
            _append(pipe.table(RELEASES_PATH, RELEASES), rows)
            return {"boundary": boundary, "by": user, "reason": reason, "at": at, "released": listed}
        except Conflict:
            continue
    raise Conflict("the ledger of releases is written without pause by others")


def _nothing_to_release(pipe: OpenPipeline, boundary: int) -> ForebayError:
    at, before = iso(boundary), [row for row in releases(pipe) if row["boundary"] == boundary]
    if before and stops(pipe, boundary):
        return ForebayError("nothing-stopped",
                            f"{at} is released already, by {before[-1]['by']}: {before[-1]['reason']}",
                            hint="`forebay run` runs it")
    return ForebayError("nothing-stopped", f"nothing is stopped at {at}",
                        hint="only a boundary that a critical expectation stopped can be released")


def key(row: dict[str, Any]) -> tuple[int, str, str]:
    return row["boundary"], row["subject"], row["expectation"]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):      # a container's user often has no name
        return f"user {os.getuid()}"


def _append(table: Table, rows: list[dict[str, Any]]) -> None:
    table.append(pa.Table.from_pylist(rows, table.schema), most=MANY)


def _read(pipe: OpenPipeline, path: str) -> list[dict[str, Any]]:
    """Instants as microseconds."""
    if not tables.exists(pipe.path(path)):
        return []
    rows = pipe.table(path).refresh().rows().sort_by([("at", "ascending"), ("boundary", "ascending")])
    for name in ("at", "boundary"):
        rows = rows.set_column(rows.schema.get_field_index(name), name, rows[name].cast(pa.int64()))
    return list(rows.to_pylist())
