"""`forebay status`: whether a pipeline runs, waits, is stopped or has failed, and how far its streams and answers are.

It reads what tables say, waits for nobody, changes nothing and starts no Spark.
"""
from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from jobs.adapt import adaptations
from jobs.addresses.due import published_in
from jobs.batch.works import parsed
from jobs.expectations import releases
from jobs.ingest import agreed
from jobs.ingest import register as intake
from jobs.ledger import published
from jobs.ledger.addresses import address
from jobs.ledger.entries import LedgerEntry
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.published import Publication
from jobs.ledger.queries import QueryChange, QueryState, queries_at
from jobs.maintenance import repair
from jobs.requests.boundaries import Arrivals, first_possible, next_boundary, read_streams
from jobs.storage import lock
from optimizer.query.windows import SECOND
from optimizer.time import iso

MOST_REASONS = 10        # of a stream's rows in quarantine that are told, the most frequent ones
MOST_SAID = 3            # findings or failures that are spelled out
State = Literal["running", "stopped", "failed", "waiting"]


@dataclass(frozen=True)
class Upcoming:
    """The next boundary, and what it waits for.

    `Upcoming(120, ("views",))` waits for rows of views; `Upcoming(120, is_complete=True)` can run. One that `has_begun`
    was begun by a run that did not end; `without_version` are relations that have none yet.
    """

    boundary: int | None
    waiting_for: tuple[str, ...] = ()
    without_version: tuple[str, ...] = ()
    is_complete: bool = False
    has_begun: bool = False


@dataclass(frozen=True)
class Committed:
    """How far batches have come and how far the queries' addresses have: `Committed(180, 120)` is a boundary or more
    that the next run makes public; None: nothing so far.
    """

    upto: int | None
    published: int | None

    @property
    def is_behind(self) -> bool:
        return self.upto is not None and (self.published is None or self.published < self.upto)


def status(pipe: OpenPipeline) -> dict[str, Any]:
    """INTERFACE's `status`; instants in microseconds."""
    with repair.explaining(pipe):
        agreed.streams(pipe)
        runner = lock.holder(pipe.pipeline.warehouse)      # before the tables: it may end while they are read
        last, changes = pipe.ledger.last(), pipe.ledger.all_changes()
        committed = _committed(pipe, last)
        upcoming = _upcoming(pipe, last)
        living = {name: state for name, state in sorted(queries_at(changes).items()) if state.status != "deleted"}
        stops = _stops(pipe, committed.upto, upcoming.has_begun)
        state, because = _state(pipe, upcoming, stops, _failures(living, changes), runner)
        return {
            "state": state,
            "because": because,
            "streams": _streams(pipe),
            "queries": _queries(pipe, living, changes, committed, upcoming, stops),
            "next": upcoming.boundary,
            "waiting_for": list(upcoming.waiting_for),
            "without_version": list(upcoming.without_version),
            "runner": runner,
            "committed": committed.upto,
            "published": committed.published,
            "decided": adaptations.age(pipe)
        }


def _committed(pipe: OpenPipeline, last: LedgerEntry | None) -> Committed:
    if last is None:
        return Committed(None, None)
    upto = pipe.ledger.committed() if last.is_open else last.last_boundary
    return Committed(upto, published.upto(pipe.warehouse))


def _upcoming(pipe: OpenPipeline, last: LedgerEntry | None) -> Upcoming:
    if last is not None and last.is_open:
        return Upcoming(last.batch.boundaries[0], has_begun=True)
    boundary = next_boundary(pipe)
    if boundary is None:
        return Upcoming(None)
    arrivals = Arrivals(pipe)
    arrivals.look()
    without_version = tuple(arrivals.missing(boundary))
    return Upcoming(boundary, tuple(arrivals.waiting_for(boundary)), without_version,
                    bool(arrivals.next_group(limit=1)))


def _stops(pipe: OpenPipeline, committed: int | None, has_begun: bool) -> list[dict[str, Any]]:
    """The findings that stop the next boundaries, by boundary.

    Of a stream that no query reads there any more none does; of an answer those of the batch that has begun.
    """
    stops = releases.standing(pipe, committed)
    subjects = {}
    for boundary in {row["boundary"] for row in stops}:
        subjects[boundary] = {f"stream {name}" for name in read_streams(pipe, boundary)}
    return [row for row in stops if row["subject"] in subjects[row["boundary"]]
            or has_begun and row["subject"].startswith("query ")]


def _failures(living: Mapping[str, QueryState], changes: Iterable[QueryChange]) -> dict[str, str]:
    """By query: since which boundary it has failed, and why."""
    since = {change.query: change.effective for change in changes if change.action == "fail"}
    failures = {}
    for name, state in living.items():
        boundary = since.get(name)
        if state.status == "failed" and boundary is not None:
            failures[name] = f"failed at {iso(boundary)}: {state.error}"
    return failures


def _state(pipe: OpenPipeline, upcoming: Upcoming, stops: list[dict[str, Any]], failures: Mapping[str, str],
           runner: str | None) -> tuple[State, str]:
    """What a person has to mend comes first."""
    if stops:
        return "stopped", _why_stopped(stops, pipe.pipeline.folder)
    if failures:
        return "failed", _some([f"query {name} {message}" for name, message in failures.items()])
    if runner is not None:
        return "running", f"{runner} is at work"
    if upcoming.boundary is None:
        return "waiting", _why_nothing(pipe)
    at = iso(upcoming.boundary)
    if upcoming.has_begun:
        return "running", f"boundary {at} was begun by a run that did not end: the next `forebay run` finishes it"
    if upcoming.is_complete:
        return "running", f"boundary {at} is complete: the next `forebay run` runs it"
    return "waiting", f"boundary {at} waits for {_needed(pipe, upcoming)}"


def _why_stopped(stops: list[dict[str, Any]], folder: str) -> str:
    at = iso(stops[0]["boundary"])
    findings = [f"{row['subject']} expects {row['expectation']}, observed: {row['observed']}" for row in stops
                if row["boundary"] == stops[0]["boundary"]]
    return (f"boundary {at} is stopped: {_some(findings)}; mend what brought it about, or let it pass: "
            f"forebay --pipeline {folder} release {at} --reason \"…\"")


def _some(texts: list[str]) -> str:
    more = f" (and {len(texts) - MOST_SAID} more)" if len(texts) > MOST_SAID else ""
    return "; ".join(texts[:MOST_SAID]) + more


def _why_nothing(pipe: OpenPipeline) -> str:
    if first_possible(pipe) is None:
        return "there is no row yet: `forebay ingest` takes what the sources have"
    from jobs.requests import requests  # with all that requests need, a tenth of the time that `status` takes

    if requests.query_files(pipe.pipeline.folder).keys() - queries_at(pipe.ledger.all_changes()).keys():
        return "there is no query in force: the next `forebay run` takes in those of queries/"
    return "there is no query in force: put one into queries/, or `forebay query create`"


def _needed(pipe: OpenPipeline, upcoming: Upcoming) -> str:
    """What has to come before the next boundary is complete."""
    assert upcoming.boundary is not None
    relations = [f"a first version of {name}" for name in upcoming.without_version]
    streams = [name for name in upcoming.waiting_for if name not in upcoming.without_version]
    if not streams and not relations:      # all of them are silent, so none holds it up alone
        streams = sorted(read_streams(pipe, upcoming.boundary))
    flush = " (`forebay run --flush` treats the input as ended)"
    rows = [f"newer rows of {' and '.join(streams)}{flush}"] if streams else []
    return ", and for ".join([*rows, *relations])


def _streams(pipe: OpenPipeline) -> dict[str, dict[str, Any]]:
    marks, late = intake.watermarks(pipe.warehouse, pipe.pipeline.streams), intake.late(pipe.warehouse)
    now, streams = pipe.clock(), dict[str, dict[str, Any]]()
    for name in pipe.pipeline.streams:
        quarantined, reasons = intake.refused(pipe.warehouse, name, MOST_REASONS)
        mark = marks.get(name)
        streams[name] = {
            "last_row": mark.latest if mark else None,
            "arrived": mark.arrived if mark else None,
            "lag_s": (now - mark.latest) / SECOND if mark else None,
            "late": late.get(name, 0),
            "quarantined": quarantined,
            "reasons": reasons
        }
    return streams


def _queries(pipe: OpenPipeline, living: Mapping[str, QueryState], changes: Collection[QueryChange],
             committed: Committed, upcoming: Upcoming, stops: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    last = _last_publications(pipe, living, changes, committed)
    plan_names = pipe.ledger.plan_names({publication.batch for publication in last.values()})
    problems = _problems(pipe, living, upcoming, stops) | _failures(living, changes)
    waiting = _waiting(pipe, committed)
    queries = {}
    for name, state in living.items():
        answer = last.get(name)
        queries[name] = {
            "state": state.status,
            "boundary": answer.boundary if answer else None,
            "rows": answer.rows if answer else None,
            "plan": plan_names.get(answer.batch, {}).get(name) if answer else None,
            "pinned": state.pin,
            "problem": problems.get(name),
            "address": state.address,
            "unpublished": waiting.get(name, 0)
        }
    return queries


def _last_publications(pipe: OpenPipeline, living: Mapping[str, QueryState], changes: Collection[QueryChange],
                       committed: Committed) -> dict[str, Publication]:
    """What `forebay result` would show: of a query that began a new history nothing that was before it."""
    last = published.last_publications(pipe.warehouse)
    for name in {change.query for change in changes if change.table is not None} & living.keys() & last.keys():
        if last[name].boundary < address(changes, name, committed.upto).since:
            del last[name]
    return last


def _waiting(pipe: OpenPipeline, committed: Committed) -> dict[str, int]:
    """By query: boundaries that are committed and not yet at its address."""
    if committed.upto is None or not committed.is_behind:
        return {}
    after = published.NOTHING if committed.published is None else committed.published
    return {name: len(boundaries) for name, boundaries in published_in(pipe, after, committed.upto).items()}


def _problems(pipe: OpenPipeline, living: Mapping[str, QueryState], upcoming: Upcoming,
              stops: Sequence[dict[str, Any]]) -> dict[str, str]:
    """By query: what keeps it from answering."""
    problems = {}
    for name, state in living.items():
        if state.is_active and upcoming.without_version:
            read = {declared.source for declared in parsed(state.sql, pipe.catalog).inputs}
            lacking = [relation for relation in upcoming.without_version if relation in read]
            if lacking:
                problems[name] = f"waits for a first version of {' and '.join(lacking)}"
    for row in reversed(stops):      # the first boundary's stays
        kind, _, name = row["subject"].partition(" ")
        if kind == "query":
            problems[name] = (f"stopped at {iso(row['boundary'])}: expects {row['expectation']}, observed: "
                              f"{row['observed']}")
    return problems
