"""Who let what pass that a critical expectation stops, and why: warehouse/ledger/releases.

A release never waits for the runner.
"""
from __future__ import annotations

import getpass
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from jobs.expectations.findings import append, entered, key, read, stops
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.pipeline.schema import INSTANT
from jobs.storage.tables import Conflict
from optimizer.errors import ForebayError, suggestion
from optimizer.time import instant, iso

RELEASES_PATH = "ledger/releases"
RELEASES = pa.schema([("at", INSTANT), ("boundary", INSTANT), ("subject", pa.string()), ("expectation", pa.string()),
                      ("by", pa.string()), ("reason", pa.string())])
ANY = "*"                # of a range: whatever fails at these boundaries, or an expectation of any subject
ATTEMPTS = 100           # a release loses only to another release
LONGEST = 1000           # characters of a reason
MOST_BOUNDARIES = 10_000      # of a range: each has a row
Key = tuple[int, str, str]


@dataclass(frozen=True)
class Releases:
    """What may pass: `(60, "stream views", "unique(order_id)") in releases`, for one finding or a range of boundaries.
    """

    keys: frozenset[Key] = frozenset()

    def __contains__(self, finding: Key) -> bool:
        boundary, _, expectation = finding
        of_ranges = {(boundary, ANY, ANY), (boundary, ANY, expectation), (boundary, ANY, _kind(expectation))}
        return finding in self.keys or not of_ranges.isdisjoint(self.keys)


def entries(pipe: OpenPipeline) -> list[dict[str, Any]]:
    """All releases, oldest first."""
    return read(pipe, RELEASES_PATH)


def released(pipe: OpenPipeline) -> Releases:
    return Releases(frozenset(key(row) for row in entries(pipe)))


def standing(pipe: OpenPipeline, committed: int | None) -> list[dict[str, Any]]:
    """The findings that stop boundaries now, that is later ones than the last that is committed: each once, by
    boundary.

    Whether what brought them about was mended since is found by the next run.
    """
    critical = [row for row in entered(pipe) if row["severity"] == "critical" and not row["released"]
                and (committed is None or row["boundary"] > committed)]
    passed = released(pipe) if critical else Releases()
    by_key = {key(row): row for row in critical if key(row) not in passed}
    return sorted(by_key.values(), key=lambda row: row["boundary"])


def release(pipe: OpenPipeline, boundary: int, reason: str, by: str | None = None, until: int | None = None,
            expectation: str | None = None) -> dict[str, Any]:
    """Lets pass what has stopped the boundary so far, or one expectation of it; waits for nobody.

    With `until` also whatever will stop a boundary up to that one, which the run finds only when it comes there.
    """
    reason, user = _checked(reason), by or _user()
    boundaries = _range(pipe, boundary, until)
    for _ in range(ATTEMPTS):
        passed = released(pipe)
        unreleased = _of_expectation([row for row in stops(pipe, boundaries) if key(row) not in passed], expectation)
        if not unreleased:
            raise _nothing_to_release(pipe, boundary)
        keys = [key(row) for row in unreleased]
        if until is not None:
            keys = [(t, ANY, expectation or ANY) for t in boundaries]
        at = pipe.clock()
        try:
            append(pipe.table(RELEASES_PATH, RELEASES), _rows(keys, at, user, reason))
            listed = [{name: row[name] for name in ("subject", "expectation", "observed")} for row in unreleased]
            return {"boundary": boundary, "until": until, "expectation": expectation, "by": user, "reason": reason,
                    "at": at, "released": listed}
        except Conflict:
            continue
    raise Conflict("the ledger of releases is written without pause by others")


def _checked(reason: str) -> str:
    if not reason.strip() or len(reason) > LONGEST:
        raise ForebayError("bad-usage", f"a reason has 1 to {LONGEST} characters",
                           hint='--reason "why it may pass"; the ledger keeps it')
    return reason.strip()


def _range(pipe: OpenPipeline, boundary: int, until: int | None) -> Sequence[int]:
    if until is None:
        return (boundary,)
    step = pipe.pipeline.batch
    boundaries = range(-(-boundary // step) * step, until + 1, step)
    if not boundaries or len(boundaries) > MOST_BOUNDARIES:
        raise ForebayError("bad-usage", f"{iso(boundary)} to {iso(until)} are {len(boundaries):,} boundaries",
                           hint=f"a range has 1 to {MOST_BOUNDARIES:,} of them")
    return boundaries


def _of_expectation(findings: Sequence[dict[str, Any]], expectation: str | None) -> list[dict[str, Any]]:
    """Those of one expectation: by its whole text, or by what stands before its bracket."""
    names = {name for row in findings for name in (row["expectation"], _kind(row["expectation"]))}
    if expectation is not None and findings and expectation not in names:
        raise ForebayError("unknown-expectation", f"{expectation!r} stops nothing here",
                           hint=suggestion(expectation, names) or f"what does is {_listed(names)}")
    return [row for row in findings if expectation in (None, row["expectation"], _kind(row["expectation"]))]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _kind(expectation: str) -> str:
    return expectation.partition("(")[0]


def _rows(keys: Iterable[Key], at: int, user: str, reason: str) -> list[dict[str, Any]]:
    return [{"at": instant(at), "boundary": instant(boundary), "subject": subject, "expectation": expectation,
             "by": user, "reason": reason} for boundary, subject, expectation in keys]


def _nothing_to_release(pipe: OpenPipeline, boundary: int) -> ForebayError:
    at, before = iso(boundary), [row for row in entries(pipe) if row["boundary"] == boundary]
    if before and stops(pipe, (boundary,)):
        return ForebayError("nothing-stopped",
                            f"{at} is released already, by {before[-1]['by']}: {before[-1]['reason']}",
                            hint="`forebay run` runs it")
    return ForebayError("nothing-stopped", f"nothing is stopped at {at}",
                        hint="only a boundary that a critical expectation stopped can be released")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):      # a container's user often has no name
        return f"user {os.getuid()}"
