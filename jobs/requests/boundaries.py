"""Which boundaries can run: the next one, how far the streams' rows let it go, what it waits for, how many go together; nothing is begun or written here."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jobs.batch.works import parsed
from jobs.ingest import register as intake
from jobs.ingest import relations
from jobs.ingest.register import Watermark
from jobs.ledger.queries import Standing, next_change, standings
from jobs.storage import places, tables
from optimizer.query.model import Query

if TYPE_CHECKING:
    from jobs.ledger.open_pipeline import OpenPipeline

GROUP_BOUNDARIES = 240       # boundaries committed together at most
GROUP_ROWS = 20_000          # rows that may come with them: more, and each boundary is worth its own batch


@dataclass
class Arrivals:
    """What is remembered of how far rows have come."""

    marks: Mapping[str, Watermark] = field(default_factory=dict)      # by stream, as of the last ingest
    versioned: frozenset[str] = frozenset()      # relations known to have a version: they never lose it
    beginning: int | None = None      # the first boundary that was ever run, once looked up


def active(rt: OpenPipeline, boundary: int) -> dict[str, Standing]:
    return {name: s for name, s in standings(rt.ledger.all_changes(), boundary).items() if s.active}


def next_boundary(rt: OpenPipeline) -> int | None:
    """The first boundary not yet begun at which any query is in force, None while there is no row or no query."""
    first = first_possible(rt)
    if first is None:
        return None
    if active(rt, first):
        return first
    changes = rt.ledger.all_changes()
    later = next_change(changes, first)
    while later is not None and not active(rt, later):
        later = next_change(changes, later)
    return later


def first_possible(rt: OpenPipeline) -> int | None:
    """The boundary after the last batch; before any, the first multiple of the batch after the earliest row.

    Not after the last begun one: a crash between mark and intent leaves boundaries that have begun and were never run.
    """
    last = rt.ledger.last()
    if last is not None:
        return last[1].boundaries[-1] + rt.pipeline.batch
    earliest = intake.first_row(rt.warehouse, rt.pipeline.streams)
    return None if earliest is None else (earliest // rt.pipeline.batch + 1) * rt.pipeline.batch


def _queries_at(rt: OpenPipeline, boundary: int) -> dict[str, Query]:
    return {name: parsed(s.sql, rt.catalog) for name, s in active(rt, boundary).items()}


def read_streams(rt: OpenPipeline, boundary: int) -> set[str]:
    return {i.source for q in _queries_at(rt, boundary).values() for i in q.inputs if i.is_stream}


def missing(rt: OpenPipeline, boundary: int) -> list[str]:
    """Relations read that have no version yet: a boundary names the version that it uses, so it waits for the first."""
    read = {i.source for q in _queries_at(rt, boundary).values() for i in q.inputs if not i.is_stream}
    if not read <= rt.memory(Arrivals).versioned:
        rt.memory(Arrivals).versioned = frozenset(relations.versions(rt.warehouse, rt.pipeline.relations))
    return sorted(read - rt.memory(Arrivals).versioned)


def _complete_until(rt: OpenPipeline, boundary: int, flush: bool) -> int:
    """The last complete boundary, seen from this one: each stream read has a row at or after T + wait, or has been silent for `idle`."""
    read, batch = read_streams(rt, boundary), rt.pipeline.batch
    last = max(((m.latest // batch + 1) * batch for s, m in rt.memory(Arrivals).marks.items() if s in read), default=0)
    if flush:
        return last
    return min((_reached(rt, s) // batch * batch for s in read if not _silent(rt, s)), default=last)


def _reached(rt: OpenPipeline, stream: str) -> int:
    """The last instant that this stream lets pass as a boundary."""
    return rt.memory(Arrivals).marks[stream].latest - rt.pipeline.streams[stream].wait if stream in rt.memory(Arrivals).marks else -1


def _silent(rt: OpenPipeline, stream: str) -> bool:
    idle = rt.pipeline.streams[stream].idle
    return idle is not None and (stream not in rt.memory(Arrivals).marks or rt.clock() - rt.memory(Arrivals).marks[stream].arrived > idle)


def waiting_for(rt: OpenPipeline, boundary: int | None) -> list[str]:
    """The streams that hold a boundary up, and the relations."""
    if boundary is None:
        return []
    return sorted(s for s in read_streams(rt, boundary) if not _silent(rt, s) and _reached(rt, s) < boundary) + missing(rt, boundary)


def next_group(rt: OpenPipeline, to: int | None, flush: bool, limit: int | None) -> tuple[int, ...]:
    """The next boundary, and after it as many as bring few rows and no change: an empty one then costs next to nothing."""
    first = next_boundary(rt)
    if first is None or missing(rt, first):
        return ()
    last = _complete_until(rt, first, flush)
    last = min(last, to) if to is not None else last
    change = next_change(rt.ledger.all_changes(), first)
    last = min(last, change - rt.pipeline.batch) if change is not None else last
    most = 1 if rt.engine == "jvm" else min(GROUP_BOUNDARIES, limit or GROUP_BOUNDARIES)
    group = tuple(range(first, last + 1, rt.pipeline.batch)[:most])
    while len(group) > 1 and _rows_between(rt, first - rt.pipeline.batch, group[-1]) > GROUP_ROWS:
        group = group[:max(1, len(group) // 2)]
    return group


def _rows_between(rt: OpenPipeline, after: int, upto: int) -> int:
    """At most how many rows these boundaries bring, by the files' statistics."""
    files = (f for s in read_streams(rt, upto) if tables.exists(places.join(rt.pipeline.warehouse, "streams", s)) for f in rt.table(f"streams/{s}").files())
    return sum(f.rows for f in files if f.high.get("_boundary", upto) > after and f.low.get("_boundary", upto) <= upto)
