"""Looks at the stream tables: what samples of batches cannot know of whole windows, read in one Spark job, within a
budget that the batches' own processor seconds give.

No answer depends on any of it, and nothing is decided here.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf
from random import Random
from typing import Any

from jobs.adapt import adaptations, statistics_table
from jobs.adapt.adaptations import Adaptation
from jobs.adapt.statistics import Statistics, digest, limited, window_rows
from jobs.batch.works import parsed
from jobs.engine.sample import SampleOrder, SampleResult, take
from jobs.ingest import relations
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import queries_at
from jobs.storage import places, tables
from jobs.storage.tables import File
from optimizer.errors import ForebayError
from optimizer.plan.lowering import Lowering
from optimizer.plan.membership import inside
from optimizer.plan.model import default
from optimizer.plan.sampling import Limits, window_sampling
from optimizer.query.model import Input, Query
from optimizer.query.shape import shape
from optimizer.query.windows import SECOND
from optimizer.statistics.estimate import observed as estimated
from optimizer.statistics.figures import inputs
from optimizer.statistics.samples import InputSample, Sample
from optimizer.time import iso

SHARE = 0.1              # of the batches' processor seconds since the last look: what a look may take
ROW_SECONDS = 2e-7       # processor seconds to look at a row, at least: small looks tell too little of large ones
LEAST_SHARE = 0.25       # of the rows in a query's windows: a look at fewer tells too little of them
FEW_ROWS = 200_000       # windows that hold fewer are looked at whole
FIRST_ROWS = 100_000     # of an input, that the first look at a query may read whatever the budget
FARTHEST = 100_000       # boundaries beyond which it is not said when the next look will be
LARGER = 1.5             # times what is to be read: chosen files beyond it are not read to their end
MOST_QUERIES = 64        # that one job looks at; the others are next


@dataclass(frozen=True)
class Budget:
    """Processor seconds for looks: a share of what batches took since the last one, less what that took too much.

    `Budget(spent_by_batches=80.0, boundaries=100, debt=0.0)` allows 8 s.
    """

    spent_by_batches: float
    boundaries: int
    debt: float = 0.0
    row_seconds: float = ROW_SECONDS

    @property
    def seconds(self) -> float:
        return SHARE * self.spent_by_batches - self.debt

    @property
    def rows(self) -> float:
        return max(self.seconds, 0.0) / self.row_seconds

    def boundaries_until(self, rows: float) -> int | None:
        """After how many boundaries more, as dear as those so far, so many rows are allowed; None: nothing tells."""
        a_boundary = SHARE * self.spent_by_batches / self.boundaries if self.boundaries else 0.0
        missing = rows * self.row_seconds - self.seconds
        if a_boundary <= 0 or missing > FARTHEST * a_boundary:
            return None
        return max(ceil(missing / a_boundary), 1)


@dataclass(frozen=True)
class QueryWindows:
    """A query that could be looked at, with the rows in the window of each input and the boundary of the last look.

    `QueryWindows("top", query, (3e6, 1e5), looked_at=60)`; None: nobody has looked at it yet.
    """

    name: str
    query: Query
    rows: tuple[float, ...]
    looked_at: int | None

    @property
    def wanted(self) -> float:
        """Rows that a look has to read at least."""
        return max(LEAST_SHARE * sum(self.rows), min(sum(self.rows), FEW_ROWS))

    def granted(self, rows: float) -> float:
        """Rows that it may read where so many are left; 0: too few."""
        first = sum(min(of_input, FIRST_ROWS) for of_input in self.rows) if self.looked_at is None else 0.0
        return max(min(rows, sum(self.rows)) if rows >= self.wanted else 0.0, first)


@dataclass(frozen=True)
class Looked:
    """What came of it: `due` says whether there was a look, `next` at which boundary there will be one at the latest.

    `next` is None where nothing tells: after a look, or before any row has come.
    """

    due: bool
    reason: str
    next: int | None = None
    since: int | None = None            # the boundary of the last look
    queries: tuple[str, ...] = ()       # that were looked at
    rows: int = 0
    seconds: float = 0.0
    budget: float = 0.0

    def document(self) -> dict[str, Any]:
        return {"due": self.due, "next": self.next, "reason": self.reason, "since": self.since,
                "looked_at": list(self.queries), "rows": self.rows, "seconds": self.seconds, "budget_s": self.budget}


def look(statistics: Statistics) -> Looked:
    """Looks at the windows of queries as they are at the last boundary, as far as the budget goes.

    First come those that never were looked at, then those whose last look is the oldest.
    """
    pipe = statistics.pipe
    t, last = pipe.ledger.committed(), adaptations.last(pipe, "statistics")
    since = last.boundary if last is not None else None
    if t is None:
        return Looked(False, "not due: no boundary has run yet")
    lookable = _lookable(statistics, t)
    if not lookable:
        return Looked(False, "not due: no rows have come since the last look", since=since)
    budget = _budget(pipe, last)
    grants = _grants(lookable, budget)
    if not grants:
        boundaries = budget.boundaries_until(lookable[0].wanted)
        at = None if boundaries is None else t + boundaries * pipe.pipeline.batch
        when = "when batches have taken longer" if at is None else f"at {iso(at)}"
        return Looked(False, f"not due, next {when}", at, since, budget=budget.seconds)
    return _looked(statistics, t, grants, budget)


def _lookable(statistics: Statistics, t: int) -> list[QueryWindows]:
    """The queries in force whose windows may hold other rows than at their last look: never looked at, then oldest."""
    pipe = statistics.pipe
    rows_by_input: dict[tuple[str, object], float] = {}      # queries that share read the same windows
    lookable = []
    for name, query_state in queries_at(pipe.ledger.all_changes(), t).items():
        query = parsed(query_state.sql, pipe.catalog)
        before = statistics.look(name, query)
        if query_state.is_active and (before is None or before.at < t and _has_come(pipe, query, before.at)):
            for declared in query.inputs:
                if (declared.source, declared.window) not in rows_by_input:
                    rows_by_input[declared.source, declared.window] = _rows_of(pipe, declared, t)
            rows = tuple(rows_by_input[declared.source, declared.window] for declared in query.inputs)
            if all(rows):
                lookable.append(QueryWindows(name, query, rows, before.at if before is not None else None))
    return sorted(lookable, key=lambda c: (c.looked_at is not None, c.looked_at or 0, c.name))


def _has_come(pipe: OpenPipeline, query: Query, after: int) -> bool:
    """Whether any row of the query's streams was first counted later than that."""
    streams = {i.source for i in query.inputs if i.is_stream}
    files = [file for stream in streams for file in pipe.table(f"streams/{stream}").refresh().files()]
    return any(file.high.get("_boundary", after + 1) > after for file in files)


def _rows_of(pipe: OpenPipeline, declared: Input, t: int) -> float:
    """Rows in an input's window at t, by the bounds of files; 0 where tasks cannot read them, or there are none."""
    if not declared.is_stream:
        version = relations.versions(pipe.warehouse, [declared.source]).get(declared.source)
        return 0.0 if version is None else float(relations.version_file(pipe.warehouse, declared.source, version).rows)
    if not tables.exists(pipe.path("streams", declared.source)):
        return 0.0
    table = pipe.table(f"streams/{declared.source}").refresh()
    return 0.0 if table.features else window_rows(table, declared, t)


def _budget(pipe: OpenPipeline, last: Adaptation | None) -> Budget:
    """What batches took is in their ledger, what looks took in that of adaptations."""
    batches = [b for b in pipe.ledger.committed_batches() if last is None or b.number > last.batch]
    spent = sum(seconds for batch in batches for seconds in batch.task_seconds.values())
    boundaries = sum(batch.boundary_count for batch in batches)
    if last is None:
        return Budget(spent, boundaries)
    row_seconds = max(last.seconds / last.rows if last.rows >= FIRST_ROWS else 0.0, ROW_SECONDS)
    return Budget(spent, boundaries, max(-last.balance, 0.0), row_seconds)


def _grants(lookable: Iterable[QueryWindows], budget: Budget) -> list[tuple[QueryWindows, float]]:
    """Who may read how many rows."""
    grants, rows = list[tuple[QueryWindows, float]](), budget.rows
    for windows in lookable:
        granted = windows.granted(rows)
        if granted and len(grants) < MOST_QUERIES:
            grants.append((windows, granted))
            rows = max(rows - granted, 0.0)
    return grants


def _looked(statistics: Statistics, t: int, grants: Sequence[tuple[QueryWindows, float]], budget: Budget) -> Looked:
    """One job for all; what it found is kept before it is noted what it took."""
    pipe = statistics.pipe
    orders = []
    for windows, granted in grants:
        share = min(granted / sum(windows.rows), 1.0)
        orders += [_order(statistics, windows, i, t, share) for i in range(len(windows.rows))]
    pipe.tasks.suit(sum(granted for _, granted in grants) * ROW_SECONDS)
    results = pipe.tasks.map(take, orders)
    kept, new_rows = [], list[dict[str, Any]]()
    for windows, granted in grants:
        by_input = {result.input: result for result in results if result.query == windows.name}
        rows_of_query = _rows_to_keep(pipe, windows, t, granted >= sum(windows.rows), by_input)
        kept += [windows.name] if rows_of_query else []
        new_rows += rows_of_query
    if new_rows:
        statistics_table.append(pipe, new_rows)
    rows = sum(result.sample.rows for result in results if result.sample is not None)
    seconds = sum(result.seconds for result in results)
    last = pipe.ledger.last()
    adaptations.append(pipe, Adaptation("statistics", pipe.clock(), t, last.batch.number if last else -1, seconds, rows,
                                        min(budget.seconds - seconds, 0.0)))
    statistics.begin()
    missing = f"; {len(grants) - len(kept)} could not be looked at" if len(kept) < len(grants) else ""
    whole = sum(sum(windows.rows) for windows, _ in grants)
    queries = "1 query" if len(kept) == 1 else f"{len(kept)} queries"
    reason = f"looked at {rows:,} of {whole:,.0f} rows in the windows of {queries} in {seconds:.2f} s{missing}"
    return Looked(True, reason, None, t, tuple(kept), rows, seconds, budget.seconds)


def _order(statistics: Statistics, windows: QueryWindows, i: int, t: int, share: float) -> SampleOrder:
    """What to read of one input's window."""
    pipe, query = statistics.pipe, windows.query
    declared, low = query.inputs[i], Lowering(shape(query), default(query))
    batches = [sample for sample in statistics.samples(windows.name, query) if sample.dialect == "duckdb"]
    before = statistics.look(windows.name, query) or (batches[0] if batches else None)
    limits = limited(before, i) if before is not None and declared.is_stream else Limits()
    statements = window_sampling(low, i, pipe.pipeline.batch, t, limits)
    if not declared.is_stream:
        version = relations.versions(pipe.warehouse, [declared.source])[declared.source]
        file = relations.version_file(pipe.warehouse, declared.source, version)
        return SampleOrder(windows.name, i, statements, (pipe.path("relations", declared.source, file.path),))
    table = pipe.table(f"streams/{declared.source}")
    files, most = _files_of_window(table.files(), declared, t), None
    if share < 1.0:
        rows = ceil(share * windows.rows[i])
        files = chosen_files(files, rows, seed=t)
        if sum(file.rows for file in files) > LARGER * rows:      # a limit costs more than some rows beyond it
            most = rows
    paths = tuple(places.join(table.path, file.path) for file in files)
    return SampleOrder(windows.name, i, statements, paths, most=most)


def _files_of_window(files: Iterable[File], declared: Input, t: int) -> list[File]:
    """Those that may hold rows of the window at t."""
    assert declared.window is not None and declared.event_time is not None
    times = inside(declared.window, t)
    return [file for file in files if file.may_hold(declared.event_time, times.since, min(times.until, t) - 1)
            and file.may_hold("_boundary", times.after, t)]


def chosen_files(files: Iterable[File], rows: float, seed: int) -> list[File]:
    """The newest files, up to half of so many rows, then others by chance until there are enough.

    The same seed gives the same choice.
    """
    newest_first = sorted(files, key=lambda file: (-file.high.get("_boundary", 0), file.path))
    if sum(file.rows for file in newest_first) <= rows:
        return newest_first
    chosen, count = [], 0
    while newest_first and count < rows / 2:
        chosen.append(newest_first.pop(0))
        count += chosen[-1].rows
    others = sorted(newest_first, key=lambda file: file.path)
    Random(seed).shuffle(others)
    while others and count < rows:
        chosen.append(others.pop())
        count += chosen[-1].rows
    return chosen


def _rows_to_keep(pipe: OpenPipeline, windows: QueryWindows, t: int, is_whole: bool,
                  by_input: Mapping[int, SampleResult]) -> list[dict[str, Any]]:
    """A look as rows of the table; none if it was not taken of all inputs, or says something impossible."""
    query, samples = windows.query, []
    for i, declared in enumerate(query.inputs):
        sample = by_input[i].sample
        if sample is None:
            return []
        in_window = float(sample.rows) if is_whole else max(windows.rows[i], float(sample.rows))
        samples.append(_of_window(pipe, declared, sample, in_window, t))
    whole = Sample(t, pipe.pipeline.batch / SECOND, tuple(samples))
    try:
        observed = estimated(shape(query), [whole], pipe.pipeline.batch)
    except (ForebayError, ArithmeticError):
        return []
    if observed is None:
        return []
    return statistics_table.rows(windows.name, f"{digest(query)}{statistics_table.LOOK}", whole,
                                 inputs(query, observed))


def _of_window(pipe: OpenPipeline, declared: Input, sample: InputSample, in_window: float, t: int) -> InputSample:
    """The sample with the seconds that its rows took to come: as much of the window's time as it has of its rows."""
    if declared.window is None:
        version = relations.versions(pipe.warehouse, [declared.source])[declared.source]
        return replace(sample, window=float(sample.rows), version=version)
    assert declared.event_time is not None
    times = inside(declared.window, t)
    files = _files_of_window(pipe.table(f"streams/{declared.source}").files(), declared, t)
    first = min((file.low.get(declared.event_time, inf) for file in files), default=inf)
    began = times.since if first == inf else max(times.since, first)
    seconds = max(min(times.until, t) - began, pipe.pipeline.batch) / SECOND
    return replace(sample, window=in_window, seconds=seconds * max(sample.rows, 1) / max(in_window, 1.0))
