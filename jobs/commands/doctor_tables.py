"""What doctor says of a pipeline's tables: ledger, streams, results, state, and since when rows are kept.

It reads, and makes or mends nothing.
"""
from __future__ import annotations

import os
from collections.abc import Iterable

from jobs.adapt import sharing
from jobs.batch.works import parsed
from jobs.commands import rebuild
from jobs.commands.doctor import Fact
from jobs.ledger.open_pipeline import OpenPipeline, open_pipeline
from jobs.maintenance import integrity, repair, retention
from jobs.pipeline import keep
from jobs.pipeline.model import Pipeline, Stream
from jobs.requests import requests
from jobs.storage import tables as delta
from optimizer.errors import ForebayError, first_line

COPY = "restore it from a copy: it cannot be made anew"


def tables(pipeline: Pipeline) -> Iterable[Fact]:
    if not delta.exists(os.path.join(pipeline.warehouse, "ledger", "changes")):
        return [Fact("tables", True, "none yet")]
    ledger = [f for path in _public(pipeline, "ledger") if (f := _readable(path))]
    if ledger:
        return ledger
    pipe = open_pipeline(pipeline)
    broken = [f for path in _public(pipeline, "streams", "quarantine") if (f := _readable(path))]
    found = [
        *broken, *_as_left(pipe), *_results(pipe), *_states(pipe), *_long(pipe),
        *(_kept(pipe, s) for s in pipeline.streams.values() if s.keep is not None)
    ]
    return found if any(
        not f.ok for f in found) else [Fact("tables", True, "ledger, streams, results and state can be read"), *found]


def _public(pipeline: Pipeline, *kinds: str) -> list[str]:
    folders = [os.path.join(pipeline.warehouse, kind) for kind in kinds]
    paths = [
        os.path.join(folder, name) for folder in folders if os.path.isdir(folder) for name in sorted(os.listdir(folder))
    ]
    return [path for path in paths if delta.exists(path)]


def _readable(path: str) -> Fact | None:
    """A fact if the table cannot be read: its log, or a file that it names."""
    try:
        table = delta.open_table(path)
        for file in table.files():
            if not os.path.exists(os.path.join(path, file.path)):
                return Fact("table", False, f"{path} lacks its file {file.path}", COPY)
    except (ForebayError, *repair.BROKEN) as error:
        return Fact("table", False, f"{path}: {first_line(error)}", COPY)
    return None


def _as_left(pipe: OpenPipeline) -> list[Fact]:
    """Streams and relations that lost a commit, or that somebody else changed."""
    wrong = [
        d for path in integrity.checked_paths(pipe)
        if not path.startswith("results/") and (d := integrity.damage(pipe, path))
    ]
    return [Fact("table", False, f"{d.path}: {d.what}", d.remedy()) for d in wrong]


def _results(pipe: OpenPipeline) -> list[Fact]:
    paths = sorted({path for s in requests.listed(pipe) if s.status != "deleted" for path in sharing.tables_of(s)})
    wrong = {path: what for path in paths if (what := rebuild.unsound(pipe, path))}
    return [
        Fact("result", False, f"{path}: {what}",
             integrity.Damage(path, what).remedy(integrity.queries_in(pipe, path))) for path, what in wrong.items()
    ]


def _states(pipe: OpenPipeline) -> list[Fact]:
    fix = "`forebay doctor --rebuild {}` makes it anew from the stream tables"
    return [
        Fact("state", False, f"of query {query}: {wrong}", fix.format(query)) for query, wrong in repair.damaged(pipe)
    ]


def _long(pipe: OpenPipeline) -> list[Fact]:
    """Queries from before a stream had its `keep`: their streams keep what they need."""
    found = []
    for query_state in requests.listed(pipe):
        try:
            if query_state.is_active:
                keep.check(pipe.pipeline, parsed(query_state.sql, pipe.catalog))
        except ForebayError as error:
            found.append(
                Fact("keep", False, f"query {query_state.name}: {error.message}; as long as it is in force they stay",
                     error.hint or ""))
    return found


def _kept(pipe: OpenPipeline, stream: Stream) -> Fact:
    gone = retention.since(pipe, f"streams/{stream.name}")
    said = "none has left yet" if gone is None else f"they are kept since {delta.instant(gone):%Y-%m-%dT%H:%M:%SZ}"
    return Fact("keep", True, f"rows of {stream.name}: {said}")
