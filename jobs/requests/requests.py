"""Requests to a pipeline: create, delete, pause, resume, pin, unpin; each one row in the ledger, in force from a
boundary that it names.

Nothing here waits for a runner.
"""
from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from jobs.adapt.sharing import Sharer
from jobs.batch.works import parsed
from jobs.ingest import agreed
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import QueryChange, QueryState, never_before, queries_at
from jobs.pipeline import keep
from jobs.requests.boundaries import first_possible
from optimizer.errors import ForebayError
from optimizer.names import NAME
from optimizer.plan.model import candidates, named

MOST_QUERIES = 10_000
FROM_FILE = "queries/"        # the reason of a creation that a file in that folder brought about


@dataclass(frozen=True)
class Notice:
    """Something in queries/ that is reported, not applied."""

    query: str
    message: str


def create(pipe: OpenPipeline, name: str, sql: str, replace: bool = False, reason: str | None = None) -> QueryState:
    """In force at the first boundary not yet begun; answers at once from the history that is there."""
    check_name(name)
    agreed.streams(pipe)
    columns = columns_of(pipe, sql)

    def make(begun: int | None, changes: Iterable[QueryChange]) -> QueryChange:
        queries = queries_at(changes)
        old = queries.get(name)
        _check_new(name, old, columns, replace, sum(query.is_active for query in queries.values()))
        boundary = never_before(changes, name, effective(pipe, begun))
        return QueryChange(name, "create", boundary, sql, _pin(pipe, old, sql), columns, _table(name, old, columns),
                           reason)

    pipe.ledger.request(make)
    return show(pipe, name)


def _pin(pipe: OpenPipeline, old: QueryState | None, sql: str) -> str | None:
    """What the name was pinned to, where the new text has that plan too."""
    if old is None or old.pin is None:
        return None
    return old.pin if any(
        c.plan.name == old.pin and c.refused is None for c in candidates(parsed(sql, pipe.catalog))) else None


def change(pipe: OpenPipeline, name: str, action: str, plan: str | None = None) -> QueryState:
    """delete, pause, resume, pin or unpin."""
    def make(begun: int | None, changes: Iterable[QueryChange]) -> QueryChange:
        old = _existing(queries_at(changes), name)
        _check_action(old, action)
        if action == "resume":
            keep.check(pipe.pipeline, parsed(old.sql, pipe.catalog))
        boundary = never_before(changes, name, effective(pipe, begun))
        pin = named(parsed(old.sql, pipe.catalog), plan).name if plan else None
        return QueryChange(name, action, boundary, plan=pin)

    pipe.ledger.request(make)
    return show(pipe, name)


def show(pipe: OpenPipeline, name: str) -> QueryState:
    return _existing(queries_at(pipe.ledger.all_changes()), name)


def listed(pipe: OpenPipeline) -> list[QueryState]:
    return sorted(queries_at(pipe.ledger.all_changes()).values(), key=lambda s: s.name)


def effective(pipe: OpenPipeline, begun: int | None) -> int | None:
    """The first boundary not yet begun, None while the pipeline has no row."""
    return begun + pipe.pipeline.batch if begun is not None else first_possible(pipe)


def document(pipe: OpenPipeline, query_state: QueryState, sharer: Sharer) -> dict[str, Any]:
    """INTERFACE's `query show`."""
    changes = [c for c in pipe.ledger.all_changes() if c.query == query_state.name]
    effective = changes[-1].effective if changes[-1].effective is not None else _beginning(pipe)
    shown = {
        "query": query_state.name,
        "state": query_state.status,
        "effective": effective,
        "table": query_state.table,
        "sql": query_state.sql,
        "columns": [{
            "name": n,
            "type": t
        } for n, t in json.loads(query_state.columns)],
        "pinned": query_state.pin
    }
    return {**shown, **sharer.document(query_state), **({"error": query_state.error} if query_state.error else {})}


def _beginning(pipe: OpenPipeline) -> int | None:
    """What a request made before the first row is in force from: the first boundary, once there is one."""
    first = pipe.ledger.first()
    return first if first is not None else first_possible(pipe)


def synchronise(pipe: OpenPipeline) -> list[Notice]:
    """A new file in queries/ becomes a query; a changed or removed one is reported, not applied."""
    files = query_files(pipe.pipeline.folder)
    known = queries_at(pipe.ledger.all_changes())
    new = sorted(files.keys() - known.keys())
    for name in new:
        _check_file(pipe, name, files[name])
    for name in new:
        create(pipe, name, files[name], reason=FROM_FILE)
    notices = [
        Notice(
            n,
            f"queries/{n}.sql differs from the query in force; apply it with `forebay query create {n} -f "
            f"queries/{n}.sql --replace`"
        )
        for n in sorted(files.keys() & known.keys())
        if known[n].status != "deleted" and files[n].strip() != known[n].sql.strip()
    ]
    removed = [n for n in _from_files(pipe) if n not in files and known[n].is_active]
    return notices + [
        Notice(n, f"queries/{n}.sql is gone but the query is in force; end it with `forebay query delete {n}`")
        for n in sorted(removed)
    ]


def _check_file(pipe: OpenPipeline, name: str, sql: str) -> None:
    """Before any of them becomes a query; the error names the file."""
    try:
        columns_of(pipe, sql)
    except ForebayError as error:
        raise replace(error, message=f"queries/{name}.sql: {error.message}") from None


def query_files(folder: str) -> dict[str, str]:
    """Query texts by name."""
    path = os.path.join(folder, "queries")
    found = {}
    for entry in sorted(os.listdir(path)) if os.path.isdir(path) else []:
        if entry.endswith(".sql"):
            check_name(entry[:-4], f"queries/{entry} is called {entry[:-4]!r}, which")
            try:
                with open(os.path.join(path, entry), encoding="utf-8") as file:
                    found[entry[:-4]] = file.read()
            except (OSError, UnicodeDecodeError) as error:
                raise ForebayError("bad-file", f"queries/{entry} cannot be read: {error}",
                                   hint="it must be a UTF-8 text that you may read") from None
    return found


def _from_files(pipe: OpenPipeline) -> set[str]:
    """Queries whose latest creation was a file in queries/."""
    return {
        name for name, reason in {
            c.query: c.reason for c in pipe.ledger.all_changes() if c.action == "create"
        }.items() if reason == FROM_FILE
    }


def check_name(name: str, said: str = "") -> None:
    if not re.fullmatch(NAME, name):
        raise ForebayError("bad-name", f"{said or repr(name)} is not a query's name",
                           hint="an ASCII letter or _, then up to 63 letters, digits and _")


def columns_of(pipe: OpenPipeline, sql: str) -> str:
    query = parsed(sql, pipe.catalog)
    keep.check(pipe.pipeline, query)
    return json.dumps([[n, str(t)] for n, t in query.columns])


def _existing(known: Mapping[str, QueryState], name: str) -> QueryState:
    if name not in known:
        raise ForebayError(
            "unknown-query", f"there is no query {name!r}",
            hint=f"there are {', '.join(sorted(known)) or 'none yet; make one with `forebay query create`'}")
    return known[name]


def _check_new(name: str, old: QueryState | None, columns: str, replace: bool, count: int) -> None:
    if old is not None and not replace:
        if old.status != "deleted":
            raise ForebayError("query-exists", f"there is a query {name!r} already ({old.status})",
                               hint="give --replace, or another name")
        if old.columns != columns:
            raise ForebayError("columns-differ", f"{name!r} was a query with other columns, and its answers are kept",
                               hint="give --replace, or another name")
    if count >= MOST_QUERIES:
        raise ForebayError("too-many-queries",
                           f"there are {count:,} queries in force, at most {MOST_QUERIES:,} are possible",
                           hint="delete some first")


def _check_action(old: QueryState, action: str) -> None:
    living = ("active", "paused", "failed")
    allowed = {
        "delete": living,
        "pause": ("active",),
        "resume": ("paused", "failed"),
        "pin": living,
        "unpin": living
    }[action]
    if old.status not in allowed:
        raise ForebayError("wrong-state", f"query {old.name!r} is {old.status}, so it cannot be changed by {action}",
                           hint=f"{action} takes a query that is {' or '.join(allowed)}")


def _table(name: str, old: QueryState | None, columns: str) -> str:
    """The table of the name.

    Another one beside it when a replaced query had other columns, whose answers stay readable.
    """
    if old is None or old.columns == columns:
        return old.table if old else f"results/{name}"
    base, _, number = old.table.rpartition(".")
    return f"{base}.{int(number) + 1}" if base and number.isdigit() else f"{old.table}.2"
