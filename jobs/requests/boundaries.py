"""Which boundaries can run: the next one, how far rows have come, what it waits for, which are complete with it.

Nothing is begun or written here.
"""
from __future__ import annotations

from collections.abc import Mapping

from jobs.batch.works import parsed
from jobs.ingest import register as intake
from jobs.ingest import relations
from jobs.ingest.register import Watermark
from jobs.ingest.silences import LONG, Silence, long_silences
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import QueryState, next_change, queries_at
from jobs.requests.passing import ActiveQuery, Passing, passings
from optimizer.query.model import Query

GROUP_BOUNDARIES = 240       # boundaries of one batch at most: each is a statement more in its programs


def active(pipe: OpenPipeline, boundary: int) -> dict[str, QueryState]:
    return {name: s for name, s in queries_at(pipe.ledger.all_changes(), boundary).items() if s.is_active}


def first_possible(pipe: OpenPipeline) -> int | None:
    """The boundary after the last batch; before any, the first multiple of the batch after the earliest row.

    Not after the last begun one: a crash between mark and intent leaves boundaries that have begun and were never run.
    """
    last = pipe.ledger.last()
    if last is not None:
        return last.last_boundary + pipe.pipeline.batch
    earliest = intake.first_row(pipe.warehouse, pipe.pipeline.streams)
    return None if earliest is None else (earliest // pipe.pipeline.batch + 1) * pipe.pipeline.batch


def next_boundary(pipe: OpenPipeline) -> int | None:
    """The first boundary not yet begun at which any query is in force, None while there is no row or no query."""
    first = first_possible(pipe)
    if first is None:
        return None
    if active(pipe, first):
        return first
    changes = pipe.ledger.all_changes()
    later = next_change(changes, first)
    while later is not None and not active(pipe, later):
        later = next_change(changes, later)
    return later


def active_queries(pipe: OpenPipeline, boundary: int) -> dict[str, Query]:
    return {name: parsed(s.sql, pipe.catalog) for name, s in active(pipe, boundary).items()}


def read_streams(pipe: OpenPipeline, boundary: int) -> set[str]:
    return {i.source for q in active_queries(pipe, boundary).values() for i in q.inputs if i.is_stream}


class Arrivals:
    """How far the rows of each stream have come, as of the last look; and from that, which boundaries are complete.

    `Arrivals(pipe)` knows of no row before `look`: then nothing is complete.
    """

    def __init__(self, pipe: OpenPipeline) -> None:
        self.pipe = pipe
        self._watermarks: Mapping[str, Watermark] = {}
        self._files = intake.ArrivedFiles()
        self._versioned: frozenset[str] = frozenset()      # relations known to have a version: they never lose it
        self._silences: dict[frozenset[str], list[Silence]] = {}      # by streams that are read
        self.ahead = 0      # boundaries that are complete and not begun, as of the last `next_group`

    def look(self) -> None:
        """Reads how far rows have come; only an ingest changes it, and none can run while the pipeline is held."""
        self._watermarks = self._files.watermarks(self.pipe.warehouse, self.pipe.pipeline.streams)
        self._silences = {}

    def newest(self, stream: str) -> int | None:
        """The greatest event time of a stream; None where it has no row."""
        return self._watermarks[stream].latest if stream in self._watermarks else None

    def missing(self, boundary: int) -> list[str]:
        """Relations read that have no version yet.

        A boundary names the version that it uses, so it waits for the first.
        """
        pipe = self.pipe
        queries = active_queries(pipe, boundary).values()
        relations_read = {i.source for q in queries for i in q.inputs if not i.is_stream}
        if not relations_read <= self._versioned:
            self._versioned = frozenset(relations.versions(pipe.warehouse, pipe.pipeline.relations))
        return sorted(relations_read - self._versioned)

    def waiting_for(self, boundary: int | None) -> list[str]:
        """The streams that hold a boundary up, and the relations."""
        if boundary is None:
            return []
        streams = read_streams(self.pipe, boundary)
        late = sorted(s for s in streams if not self._is_silent(s) and self._reached(s) < boundary)
        return late + self.missing(boundary)

    def next_group(self, to: int | None = None, flush: bool = False, limit: int | None = None) -> tuple[int, ...]:
        """The next boundary, and after it those that are complete too, up to the next change of what is in force.

        How many of them one batch takes is decided by `jobs.requests.pace`.
        """
        pipe, step = self.pipe, self.pipe.pipeline.batch
        first = next_boundary(pipe)
        if first is None or self.missing(first):
            return ()
        last = self._complete_until(first, flush)
        last = min(last, to) if to is not None else last
        change = next_change(pipe.ledger.all_changes(), first)
        last = min(last, change - step) if change is not None else last
        last = last // step * step
        passed = self._passings(first, last)
        spared = sum((each.last - each.first) // step for each in passed)
        self.ahead = max((last - first) // step + 1, 0) - spared
        if passed and passed[0].first == first:
            return (passed[0].last,)
        last = passed[0].first - step if passed else last
        most = 1 if pipe.engine == "jvm" else min(GROUP_BOUNDARIES, limit or GROUP_BOUNDARIES)
        return tuple(range(first, last + 1, step)[:most])

    def _passings(self, first: int, last: int) -> list[Passing]:
        """The boundaries of long silences that need not run; streams are looked into where there may be one."""
        pipe, step = self.pipe, self.pipe.pipeline.batch
        if (last - first) // step < LONG:
            return []
        streams = frozenset(read_streams(pipe, first))
        if streams not in self._silences:
            self._silences[streams] = long_silences(pipe.warehouse, streams, step, first)
        in_force = [ActiveQuery(parsed(state.sql, pipe.catalog), state.since or 0)
                    for state in active(pipe, first).values()]
        return passings(self._silences[streams], in_force, first, last, step)

    def _complete_until(self, boundary: int, flush: bool) -> int:
        """The last complete boundary, seen from this one.

        Each stream read has a row at or after T + wait, or was silent for `idle`.
        """
        streams, step = read_streams(self.pipe, boundary), self.pipe.pipeline.batch
        last = max(((m.latest // step + 1) * step for s, m in self._watermarks.items() if s in streams), default=0)
        if flush:
            return last
        return min((self._reached(s) // step * step for s in streams if not self._is_silent(s)), default=last)

    def _reached(self, stream: str) -> int:
        """The last instant that this stream lets pass as a boundary."""
        newest = self.newest(stream)
        return -1 if newest is None else newest - self.pipe.pipeline.streams[stream].wait

    def _is_silent(self, stream: str) -> bool:
        idle, mark = self.pipe.pipeline.streams[stream].idle, self._watermarks.get(stream)
        return idle is not None and (mark is None or self.pipe.clock() - mark.arrived > idle)
