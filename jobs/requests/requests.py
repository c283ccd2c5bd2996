"""Requests to a pipeline: create, delete, pause, resume, pin, unpin; each one row in the ledger, in force from a
boundary that it names.

Nothing here waits for a runner.
"""
from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from jobs.adapt.sharing import Sharer
from jobs.batch.works import parsed
from jobs.ingest import agreed
from jobs.ledger.addresses import Address, address, before_path, changed_columns, columns_in, latest_path
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import ADOPT, DECIDE, FROM_FILE, QueryChange, QueryState, from_files, never_before, queries_at
from jobs.pipeline import keep
from jobs.requests.boundaries import first_possible
from optimizer.errors import ForebayError
from optimizer.names import NAME
from optimizer.plan.model import candidates, named

MOST_QUERIES = 10_000
APPLY = "`forebay plan` shows what follows from the files, `forebay apply` does it"


@dataclass(frozen=True)
class Notice:
    """Something in queries/ that is reported, not applied."""

    query: str
    message: str


def create(pipe: OpenPipeline, name: str, sql: str, replace: bool = False, reason: str | None = None,
           new_history: bool = False) -> QueryState:
    """In force at the first boundary not yet begun; answers at once from the history that is there.

    Answers so far stay where they are; with `new_history` they move to a table beside it.
    """
    create_together(pipe, {name: sql}, replace, reason, new_history)
    return show(pipe, name)


def create_together(pipe: OpenPipeline, texts: Mapping[str, str], replace: bool = False, reason: str | None = None,
                    new_history: bool = False) -> dict[str, int | None]:
    """Many queries by one request, or none of them; gives the boundary from which each is in force."""
    for name in texts:
        check_name(name)
    agreed.streams(pipe)
    columns = {name: _columns_of(pipe, _subject(name, reason, len(texts)), sql) for name, sql in texts.items()}

    def make(begun: int | None, changes: Iterable[QueryChange]) -> list[QueryChange]:
        queries, at = queries_at(changes), effective(pipe, begun)
        check_room({name for name, query in queries.items() if query.is_active}, texts.keys())
        return [creation(pipe, changes, queries.get(name), name, at, columns[name], sql, replace, reason, new_history)
                for name, sql in texts.items()]

    return {change.query: change.effective for change in pipe.ledger.request_together(make)}


def creation(pipe: OpenPipeline, changes: Iterable[QueryChange], old: QueryState | None, name: str, at: int | None,
             columns: str, sql: str, is_replaced: bool, reason: str | None, new_history: bool = False) -> QueryChange:
    """The request for a query with this text, in force `at` a boundary, or when its name allows it; `old` had the name.

    Refused where the name is taken, or where the answers so far cannot be followed by its.
    """
    _check_new(name, old, columns, is_replaced)
    if old is None:
        return QueryChange(name, "create", at, sql, None, columns, None, reason)
    boundary, kept = never_before(changes, name, at), None
    if new_history:
        kept = before_path(name, boundary) if boundary is not None else None
    else:
        _check_columns(name, address(changes, name, boundary), columns)
    return QueryChange(name, "create", boundary, sql, _pin_after(pipe, old, sql), columns, kept, reason)


def _subject(name: str, reason: str | None, of: int) -> str:
    """With what an error of one of several texts begins."""
    if reason == FROM_FILE:
        return f"queries/{name}.sql: "
    return f"{name}: " if of > 1 else ""


def _columns_of(pipe: OpenPipeline, subject: str, sql: str) -> str:
    try:
        return columns_of(pipe, sql)
    except ForebayError as error:
        raise replace(error, message=f"{subject}{error.message}") from None


def _pin_after(pipe: OpenPipeline, old: QueryState, sql: str) -> str | None:
    """The plan that the name was pinned to, where the new text has that plan too."""
    if old.pin is None:
        return None
    possible = {c.plan.name for c in candidates(parsed(sql, pipe.catalog)) if c.refused is None}
    return old.pin if old.pin in possible else None


def change(pipe: OpenPipeline, name: str, action: str, plan: str | None = None) -> QueryState:
    """delete, pause, resume, pin or unpin."""
    def make(begun: int | None, changes: Iterable[QueryChange]) -> QueryChange:
        old = existing(queries_at(changes), name)
        _check_action(old, action)
        if action == "resume":
            keep.check(pipe.pipeline, parsed(old.sql, pipe.catalog))
        boundary = never_before(changes, name, effective(pipe, begun))
        pin = named(parsed(old.sql, pipe.catalog), plan).name if plan else None
        return QueryChange(name, action, boundary, plan=pin)

    pipe.ledger.request(make)
    return show(pipe, name)


def show(pipe: OpenPipeline, name: str) -> QueryState:
    return existing(queries_at(pipe.ledger.all_changes()), name)


def listed(pipe: OpenPipeline) -> list[QueryState]:
    return sorted(queries_at(pipe.ledger.all_changes()).values(), key=lambda s: s.name)


def effective(pipe: OpenPipeline, begun: int | None) -> int | None:
    """The first boundary not yet begun, None while the pipeline has no row."""
    return begun + pipe.pipeline.batch if begun is not None else first_possible(pipe)


def failing(pipe: OpenPipeline) -> list[QueryState]:
    """The queries that have failed, and were neither mended nor ended."""
    return [state for state in listed(pipe) if state.status == "failed"]


def document(pipe: OpenPipeline, query_state: QueryState, sharer: Sharer) -> dict[str, Any]:
    """INTERFACE's `query show`."""
    changes = [c for c in pipe.ledger.all_changes() if c.query == query_state.name and c.action not in (DECIDE, ADOPT)]
    effective = changes[-1].effective
    if effective is None:      # a request made before the first row is in force from the first boundary on
        effective = pipe.ledger.first()
    if effective is None:
        effective = first_possible(pipe)
    shown = {
        "query": query_state.name,
        "state": query_state.status,
        "effective": effective,
        "table": query_state.address,
        "latest": latest_path(query_state.name),
        "path": pipe.path(query_state.address),
        "sql": query_state.sql,
        "columns": [{"name": name, "type": kind} for name, kind in json.loads(query_state.columns)],
        "pinned": query_state.pin,
        **sharer.document(query_state)
    }
    before = address(pipe.ledger.all_changes(), query_state.name).before
    if before is not None:
        shown["before"] = before
    return {**shown, "error": query_state.error} if query_state.error else shown


def synchronise(pipe: OpenPipeline) -> list[Notice]:
    """A new file in queries/ becomes a query; a changed or removed one is reported, not applied."""
    files = query_files(pipe.pipeline.folder)
    queries = queries_at(pipe.ledger.all_changes())
    if new := sorted(files.keys() - queries.keys()):
        create_together(pipe, {name: files[name] for name in new}, reason=FROM_FILE)
    notices = []
    for name in sorted(files.keys() & queries.keys()):
        if queries[name].status != "deleted" and not is_same_text(files[name], queries[name].sql):
            notices.append(Notice(name, f"queries/{name}.sql differs from the query in force: {APPLY}"))
    belonging = from_files(pipe.ledger.all_changes())
    for name in sorted(belonging - files.keys()):
        if name in queries and queries[name].is_active:
            notices.append(Notice(name, f"queries/{name}.sql is gone but the query is in force: {APPLY}"))
    return notices


def query_files(folder: str) -> dict[str, str]:
    """Query texts by name."""
    path = os.path.join(folder, "queries")
    texts = {}
    for entry in sorted(os.listdir(path)) if os.path.isdir(path) else []:
        if entry.endswith(".sql"):
            check_name(entry[:-4], f"queries/{entry} is called {entry[:-4]!r}, which")
            try:
                with open(os.path.join(path, entry), encoding="utf-8") as file:
                    texts[entry[:-4]] = file.read()
            except (OSError, UnicodeDecodeError) as error:
                raise ForebayError("bad-file", f"queries/{entry} cannot be read: {error}",
                                   hint="it must be a UTF-8 text that you may read") from None
    return texts


def is_same_text(one: str, other: str) -> bool:
    """Whether two texts are one query: files end with a line's end, and are read with the line ends of this machine."""
    texts = [text.replace("\r\n", "\n").replace("\r", "\n").strip() for text in (one, other)]
    return texts[0] == texts[1]


def check_name(name: str, subject: str = "") -> None:
    """`subject` begins the message: what has this name, where it is not one that a person gave in a command."""
    if not re.fullmatch(NAME, name):
        raise ForebayError("bad-name", f"{subject or repr(name)} is not a query's name",
                           hint="an ASCII letter or _, then up to 63 letters, digits and _")


def columns_of(pipe: OpenPipeline, sql: str) -> str:
    query = parsed(sql, pipe.catalog)
    keep.check(pipe.pipeline, query)
    return json.dumps([[n, str(t)] for n, t in query.columns])


def existing(queries: Mapping[str, QueryState], name: str) -> QueryState:
    if name not in queries:
        names = ", ".join(sorted(queries)) or "none yet; make one with `forebay query create`"
        raise ForebayError("unknown-query", f"there is no query {name!r}", hint=f"there are {names}")
    return queries[name]


def check_room(active: Set[str], names: Set[str]) -> None:
    if len(active | names) > MOST_QUERIES:
        raise ForebayError("too-many-queries",
                           f"there are {len(active):,} queries in force, at most {MOST_QUERIES:,} are possible",
                           hint="delete some first")


def _check_new(name: str, old: QueryState | None, columns: str, replace: bool) -> None:
    if old is not None and not replace:
        if old.status != "deleted":
            raise ForebayError("query-exists", f"there is a query {name!r} already ({old.status})",
                               hint="give --replace, or another name")
        if old.columns != columns:
            raise ForebayError("columns-differ", f"{name!r} was a query with other columns, and its answers are kept",
                               hint="give --replace, or another name")


def _check_columns(name: str, table: Address, columns: str) -> None:
    """Answers of the new text must fit into the table that has the old ones."""
    changed = changed_columns(table.columns, columns_in(columns))
    if changed:
        raise ForebayError("columns-changed",
                           f"answers of {name!r} are in {table.path}, and cannot go on there: "
                           f"{'; '.join(map(str, changed))}",
                           hint="cast the column to what it was, give it another name, or give --new-history, which "
                                f"keeps the answers so far in {table.path}.before-TIME")


def _check_action(old: QueryState, action: str) -> None:
    living = ("active", "paused", "failed")
    allowed_by_action = {"delete": living, "pause": ("active",), "resume": ("paused", "failed"), "pin": living,
                         "unpin": living}
    allowed = allowed_by_action[action]
    if old.status not in allowed:
        raise ForebayError("wrong-state", f"query {old.name!r} is {old.status}, so it cannot be changed by {action}",
                           hint=f"{action} takes a query that is {' or '.join(allowed)}")
