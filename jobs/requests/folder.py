"""The files of queries/ as what is to be in force: what has to change for that, entered as one request.

A query belongs to a file if queries/ has one of its name, or if its last text came from one; all others stay as they
are, unless somebody names them. Nothing here waits for a runner.
"""
from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from jobs.ingest import agreed
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import ADOPT, FROM_FILE, QueryChange, QueryState, Status, from_files, never_before, queries_at
from jobs.requests.requests import (
    check_name,
    check_room,
    columns_of,
    creation,
    effective,
    existing,
    is_same_text,
    query_files,
)
from optimizer.errors import ForebayError, failed


@dataclass(frozen=True)
class QueryFile:
    """The text of a file of queries/, and its answers' columns as the ledger writes them."""

    sql: str
    columns: str


@dataclass(frozen=True)
class FolderChange:
    """The request that makes one query what its file says.

    `FolderChange("delete", request, "paused")` ends one that was paused; `before` None: nobody has used the name yet.
    """

    action: Literal["create", "replace", "delete"]
    request: QueryChange
    before: Status | None


@dataclass(frozen=True)
class FolderPlan:
    """What follows from the files: `changes`, all in force at one boundary.

    `FolderPlan((), ("top",), ("mine",))` changes no answer: of `top` it is noted that it belongs to its file; `mine`
    belongs to none.
    """

    changes: tuple[FolderChange, ...]
    adopted: tuple[str, ...]
    other: tuple[str, ...]

    @property
    def requests(self) -> list[QueryChange]:
        notes = [QueryChange(name, ADOPT, None, reason=FROM_FILE) for name in self.adopted]
        return [*(change.request for change in self.changes), *notes]


def plan(pipe: OpenPipeline) -> FolderPlan:
    """What `apply` would do now; nothing is changed."""
    agreed.streams(pipe)
    files = _parsed(pipe, query_files(pipe.pipeline.folder))
    return _plan(pipe, files, pipe.ledger.begun(), pipe.ledger.all_changes(), False)


def apply(pipe: OpenPipeline, adopt: Collection[str] = (), delete_others: bool = False) -> FolderPlan:
    """Enters what follows from the files in one commit: all of it or nothing. Refused before anything is written.

    Of queries to `adopt` the files are written first: after a kill between the two, the next one notes the rest, and no
    query is taken for one whose file is gone.
    """
    agreed.streams(pipe)
    texts = query_files(pipe.pipeline.folder)
    new_texts = _texts_to_write(pipe, texts, adopt)
    files = _parsed(pipe, {**texts, **new_texts})
    _plan(pipe, files, pipe.ledger.begun(), pipe.ledger.all_changes(), delete_others)
    for name, sql in new_texts.items():
        _write(os.path.join(pipe.pipeline.folder, "queries"), name, sql)
    plans = list[FolderPlan]()

    def make(begun: int | None, changes: tuple[QueryChange, ...]) -> list[QueryChange]:
        plans.append(_plan(pipe, files, begun, changes, delete_others))
        return plans[-1].requests

    pipe.ledger.request_together(make)
    return plans[-1]


def _parsed(pipe: OpenPipeline, texts: Mapping[str, str]) -> dict[str, QueryFile]:
    """Refused if one is wrong; the error names all that are."""
    files, errors = dict[str, QueryFile](), dict[str, ForebayError]()
    for name, sql in texts.items():
        try:
            files[name] = QueryFile(sql, columns_of(pipe, sql))
        except ForebayError as error:
            errors[name] = error
    if errors:
        (name, first), *others = errors.items()
        also = f" (also wrong: {', '.join(_path(other) for other, _ in others)})" if others else ""
        raise replace(first, message=f"{_path(name)}: {first.message}{also}")
    return files


def _plan(pipe: OpenPipeline, files: Mapping[str, QueryFile], begun: int | None, changes: tuple[QueryChange, ...],
          delete_others: bool) -> FolderPlan:
    states, belonging = queries_at(changes), from_files(changes)
    living = {name: state for name, state in states.items() if state.status != "deleted"}
    different = sorted(name for name, file in files.items()
                       if name not in living or not is_same_text(file.sql, living[name].sql))
    without_file = living.keys() - files.keys()
    ended = sorted(without_file if delete_others else without_file & belonging)
    _check_folder(pipe, belonging.intersection(ended))
    if different:
        active = {name for name, state in living.items() if state.is_active}
        check_room(active - set(ended), set(different))
    at = _boundary(pipe, begun, changes, [*different, *ended])
    text_changes = [_text_change(pipe, changes, states.get(name), name, at, files[name]) for name in different]
    deletions = [FolderChange("delete", QueryChange(name, "delete", at), living[name].status) for name in ended]
    adopted = (files.keys() & living.keys()) - belonging - set(different)
    return FolderPlan((*text_changes, *deletions), tuple(sorted(adopted)), tuple(sorted(without_file - set(ended))))


def _boundary(pipe: OpenPipeline, begun: int | None, changes: tuple[QueryChange, ...],
              names: Collection[str]) -> int | None:
    """One for all: the first that no query's earlier request is later than."""
    at = effective(pipe, begun)
    if at is None:
        return None
    return max([at, *(never_before(changes, name, at) or at for name in names)])


def _text_change(pipe: OpenPipeline, changes: tuple[QueryChange, ...], old: QueryState | None, name: str,
                 at: int | None, file: QueryFile) -> FolderChange:
    """A paused or failed query answers again: its text is another one."""
    try:
        request = creation(pipe, changes, old, name, at, file.columns, file.sql, True, FROM_FILE)
    except ForebayError as error:      # the columns do not fit the answers so far
        hint = (f"cast the column to what it was, give it another name, or begin a new history: `forebay query create "
                f"{name} -f {_path(name)} --replace --new-history`")
        raise replace(error, message=f"{_path(name)}: {error.message}", hint=hint) from None
    before = old.status if old is not None else None
    return FolderChange("create" if before in (None, "deleted") else "replace", request, before)


def _check_folder(pipe: OpenPipeline, ended: Collection[str]) -> None:
    """A folder that is not there says nothing: it may be a copy that is not whole."""
    if ended and not os.path.isdir(os.path.join(pipe.pipeline.folder, "queries")):
        raise ForebayError("no-folder", f"{pipe.pipeline.folder} has no folder queries/, from which {len(ended)} of "
                                        f"its queries came: {', '.join(sorted(ended))}",
                           hint="bring it back; or make an empty one, if all of them are to end")


def _texts_to_write(pipe: OpenPipeline, texts: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    """Of the queries that are named, those that have no file yet."""
    states, new_texts = queries_at(pipe.ledger.all_changes()), dict[str, str]()
    for name in names:
        check_name(name)
        state = existing(states, name)
        if state.status == "deleted":
            raise ForebayError("wrong-state", f"query {name!r} is deleted, so no file is written of it",
                               hint="adopt a query that `forebay plan` names as one without a file")
        if name not in texts:
            new_texts[name] = state.sql
        elif not is_same_text(texts[name], state.sql):
            raise ForebayError("file-exists", f"{_path(name)} is there, with another text than query {name!r} has",
                               hint="remove the file to keep the query's text; without --adopt the file's is applied")
    return new_texts


def _write(folder: str, name: str, sql: str) -> None:
    """Whole or not at all: half a text would be another query."""
    path = os.path.join(folder, f"{name}.sql")
    try:
        os.makedirs(folder, exist_ok=True)
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            file.write(f"{sql.strip()}\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{path}.new", path)
    except OSError as error:
        raise failed("bad-file", f"{_path(name)} cannot be written: {error.strerror}",
                     "see that this user may write there and that there is room; nothing was applied") from None


def _path(name: str) -> str:
    return f"queries/{name}.sql"
