"""How often a join repeats the rows that an aggregate counts: looked up in the stream tables, or taken from statistics.

It is for people who are about to read such an answer; no answer depends on it.
"""
from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from jobs.adapt.statistics import Statistics, window_rows
from jobs.engine import kernel
from jobs.engine.reach import files_meeting
from jobs.engine.work import relation
from jobs.ingest import relations
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.storage import places, tables
from optimizer.choice.repeats import WAY_OUT, Repeatable, count_of_repeats, repeatable
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import default
from optimizer.plan.program import Source
from optimizer.query.model import Query
from optimizer.query.shape import shape
from optimizer.statistics.figures import fanout
from optimizer.time import iso

MOST_ROWS = 2_000_000      # in the windows of a join that is looked at
SAMPLE = 2_000             # rows of an input that are followed through the join
MOST_SECONDS = 1.0         # that a look may take


@dataclass(frozen=True)
class Repeated:
    """An input whose rows a join repeats, or may repeat: aggregates of it count each `times` times on average.

    `Repeated("b", "purchases", ("SUM(b.amount)",), 5.4, at, "…")`; `times` None: it is not known.
    """

    alias: str
    source: str
    aggregates: tuple[str, ...]
    times: float | None
    at: int | None
    message: str

    def document(self) -> dict[str, Any]:
        return {**asdict(self), "aggregates": list(self.aggregates)}


def repeated(statistics: Statistics, query: Query, name: str | None = None) -> list[Repeated]:
    """By input, where the join repeats its rows or nothing tells yet; none where each counts once.

    `name` is the query's, where it has run: what it measured counts where its windows are too large for a look.
    """
    answers = []
    for one in repeatable(query):
        at = _newest_boundary(statistics.pipe, query)
        times = None if at is None else _looked_up(statistics.pipe, query, one.input, at)
        least = None
        if times is None and name is not None:
            least = _at_least(statistics, query, one.input, name)
        if times is None or times > 1:
            answers.append(_told(query, one, times, least, at))
    return answers


def _told(query: Query, one: Repeatable, times: float | None, least: float | None, at: int | None) -> Repeated:
    declared, what = query.inputs[one.input], " and ".join(one.aggregates)
    often_counted = times if times is not None else least
    if often_counted is None:
        message = (f"{what}: whether the join repeats rows of {declared.source} is not known yet; where it does, each "
                   "is counted as often")
        return Repeated(declared.alias, declared.source, one.aggregates, None, None, message)
    when = f" (at {iso(at)})" if times is not None and at is not None else " (in full windows, as measured)"
    often = f"{'' if times is not None else 'at least '}{often_counted:.3g} times"
    within_group = " within a group" if query.groups else ""
    message = (f"{what}: each row of {declared.source} that the join finds is counted {often} on average{within_group}"
               f"{when}, once for each combination of the others that it meets; if each is to count once, {WAY_OUT}")
    looked_at = at if times is not None else None
    return Repeated(declared.alias, declared.source, one.aggregates, often_counted, looked_at, message)


def _newest_boundary(pipe: OpenPipeline, query: Query) -> int | None:
    """The last boundary up to which every stream read has rows, at which the query is due; None without rows."""
    lasts = []
    for stream in {i.source for i in query.inputs if i.is_stream}:
        if not tables.exists(pipe.path("streams", stream)):
            return None
        files = pipe.table(f"streams/{stream}").refresh().files()
        lasts.append(max((file.high.get("_boundary", 0) for file in files), default=0))
    newest = min(lasts) // query.every * query.every
    return newest or None


def _looked_up(pipe: OpenPipeline, query: Query, i: int, t: int) -> float | None:
    """Joined rows for each row of input i that is joined, at boundary t; None: that cannot be told, or is too dear."""
    if not _is_readable(pipe, query, t):
        return None
    low = Lowering(shape(query), default(query), narrow=False)
    con = kernel.shared()
    try:
        for source in count_of_repeats(low, i, t).sources:
            files = _files(pipe, query, source)
            con.execute(f"CREATE OR REPLACE TEMP VIEW {source.name} AS {relation(con, source, files)}")
        with kernel.interrupted_at(con, time.time() + MOST_SECONDS):
            joined, rows = _counted(con, low, i, t)
        return joined / rows if rows else None
    except kernel.Error as error:
        if not kernel.about_data(error) and not isinstance(error, kernel.INTERRUPTED):
            kernel.discard()
        return None
    finally:
        con.close()


def _counted(con: kernel.Connection, low: Lowering, i: int, t: int) -> tuple[int, int]:
    """Joined rows, and rows among them; of many rows every so-manieth is followed, and all if none of those joins."""
    (rows,), = con.execute(count_of_repeats(low, i, t).rows).fetchall()
    for step in dict.fromkeys((max(rows // SAMPLE, 1), 1)):
        joined, distinct = con.execute(count_of_repeats(low, i, t, step).joined).fetchall()[0]
        if distinct:
            break
    return joined, distinct


def _is_readable(pipe: OpenPipeline, query: Query, t: int) -> bool:
    """Whether a look is allowed by what the windows hold, and the kernel may read all tables."""
    rows = 0.0
    versions = relations.versions(pipe.warehouse, pipe.pipeline.relations)
    for declared in query.inputs:
        if declared.is_stream:
            table = pipe.table(f"streams/{declared.source}")
            if table.features:
                return False
            rows += window_rows(table, declared, t)
        elif declared.source in versions:
            rows += relations.version_file(pipe.warehouse, declared.source, versions[declared.source]).rows
        else:
            return False
    return rows <= MOST_ROWS


def _files(pipe: OpenPipeline, query: Query, source: Source) -> tuple[str, ...]:
    if source.kind == "relation":
        version = relations.versions(pipe.warehouse, [source.of])[source.of]
        return (pipe.path("relations", source.of, relations.version_file(pipe.warehouse, source.of, version).path),)
    table = pipe.table(f"streams/{source.of}")
    stamp = next(i.event_time for i in query.inputs if i.source == source.of) or ""
    return tuple(places.join(table.path, file.path) for file in files_meeting(table.files(), stamp, source))


def _at_least(statistics: Statistics, query: Query, i: int, name: str) -> float | None:
    """Joined rows of full windows for each row of input i that could be joined: those that meet none make it less."""
    observed = statistics.observed(name, query)
    if observed is None or observed.fanout is None:
        return None
    rows = observed.inputs[i].rows * observed.inputs[i].selectivity
    times = fanout(observed) / rows if rows else 0.0
    return times if times > 1 else None
