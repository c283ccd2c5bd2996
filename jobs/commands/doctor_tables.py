"""What doctor says of a pipeline's tables: ledger, streams, results, state, and since when rows are kept.

It reads, and makes or mends nothing.
"""
from __future__ import annotations

import os
from collections.abc import Iterable

from jobs.batch.works import parsed
from jobs.commands import rebuild
from jobs.commands.doctor import Fact
from jobs.expectations import releases
from jobs.ledger.open_pipeline import OpenPipeline, open_pipeline
from jobs.maintenance import integrity, repair, retention
from jobs.pipeline import keep
from jobs.pipeline.model import Pipeline
from jobs.requests import requests
from jobs.storage import tables as delta
from optimizer.errors import ForebayError, first_line
from optimizer.time import iso

COPY = "restore it from a copy: it cannot be made anew"


def tables(pipeline: Pipeline) -> Iterable[Fact]:
    if not delta.exists(os.path.join(pipeline.warehouse, "ledger", "changes")):
        return [Fact("tables", True, "none yet")]
    ledger = [fact for path in _public(pipeline, "ledger") if (fact := _unreadable(path))]
    if ledger:
        return ledger
    pipe = open_pipeline(pipeline)
    broken = [fact for path in _public(pipeline, "streams", "quarantine") if (fact := _unreadable(path))]
    facts = [*broken, *_damaged_inputs(pipe), *_damaged_results(pipe)]
    for query, damage in repair.damaged(pipe):
        facts.append(Fact("state", False, f"of query {query}: {damage}",
                          f"`forebay doctor --rebuild {query}` makes it anew from the stream tables"))
    facts += _failures(pipe)
    facts += _queries_beyond_keep(pipe)
    for stream in pipeline.streams.values():
        if stream.keep is not None:
            gone = retention.since(pipe, f"streams/{stream.name}")
            since = f"they are kept since {delta.instant(gone):%Y-%m-%dT%H:%M:%SZ}" if gone is not None else ""
            facts.append(Fact("keep", True, f"rows of {stream.name}: {since or 'none has left yet'}"))
    if any(not fact.ok for fact in facts):
        return facts
    return [Fact("tables", True, "ledger, streams, results and state can be read"), *facts]


def _failures(pipe: OpenPipeline) -> list[Fact]:
    """Queries that have failed, and expectations that stop a boundary."""
    facts = []
    for state in requests.failing(pipe):
        facts.append(Fact("query", False, f"{state.name} has failed: {state.error}",
                          f"mend it, then `forebay query resume {state.name}`, or delete it"))
    for row in releases.standing(pipe, pipe.ledger.committed()):
        at = iso(row["boundary"])
        facts.append(Fact("stop", False, f"{at}: {row['subject']} expects {row['expectation']}, observed: "
                          f"{row['observed']}", f'mend it, or `forebay release {at} --reason "…"`'))
    return facts


def _public(pipeline: Pipeline, *kinds: str) -> list[str]:
    """Paths of the tables in these folders of the warehouse."""
    paths = []
    for kind in kinds:
        folder = os.path.join(pipeline.warehouse, kind)
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        paths += [os.path.join(folder, name) for name in names]
    return [path for path in paths if delta.exists(path)]


def _unreadable(path: str) -> Fact | None:
    """A fact if the table cannot be read: its log, or a file that it names."""
    try:
        table = delta.open_table(path)
        for file in table.files():
            if not os.path.exists(os.path.join(path, file.path)):
                return Fact("table", False, f"{path} lacks its file {file.path}", COPY)
    except (ForebayError, *repair.BROKEN) as error:
        return Fact("table", False, f"{path}: {first_line(error)}", COPY)
    return None


def _damaged_inputs(pipe: OpenPipeline) -> list[Fact]:
    """Streams and relations that lost a commit, or that somebody else changed."""
    facts = []
    for path in integrity.checked_paths(pipe):
        damage = None if path.startswith("results/") else integrity.damage(pipe, path)
        if damage:
            facts.append(Fact("table", False, f"{damage.path}: {damage.what}", damage.remedy()))
    return facts


def _damaged_results(pipe: OpenPipeline) -> list[Fact]:
    query_states = [query_state for query_state in requests.listed(pipe) if query_state.status != "deleted"]
    facts = []
    for path in sorted(query_state.address for query_state in query_states):
        what = rebuild.unsound(pipe, path)
        if what:
            remedy = integrity.Damage(path, what).remedy(integrity.queries_in(pipe, path))
            facts.append(Fact("result", False, f"{path}: {what}", remedy))
    return facts


def _queries_beyond_keep(pipe: OpenPipeline) -> list[Fact]:
    """Queries from before a stream had its `keep`: their streams keep what they need."""
    facts = []
    for query_state in requests.listed(pipe):
        try:
            if query_state.is_active:
                keep.check(pipe.pipeline, parsed(query_state.sql, pipe.catalog))
        except ForebayError as error:
            message = f"query {query_state.name}: {error.message}; as long as it is in force they stay"
            facts.append(Fact("keep", False, message, error.hint or ""))
    return facts
