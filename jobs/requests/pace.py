"""How many complete boundaries the next batch takes: what they bring, by the files' statistics, and how long batches
took.

`optimizer.choice.backlog` decides; nothing is begun or written here.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from jobs.adapt.statistics import Statistics, window_rows
from jobs.batch import quiet
from jobs.batch.batch import Answered
from jobs.batch.shared import QueryFamily
from jobs.batch.works import QueryWork
from jobs.engine import memory
from jobs.ledger.entries import Batch
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.requests.boundaries import active_queries
from jobs.storage import tables
from jobs.storage.tables import File
from optimizer.choice.backlog import (
    LATENCY,
    RECENT,
    BatchCosts,
    BatchLoad,
    BatchRoom,
    MeasuredBatch,
    boundaries_together,
    boundary_runs_worth,
    is_worth_coding,
    measured_factor,
)
from optimizer.choice.statements import boundaries_a_shared_statement, boundaries_a_statement
from optimizer.cost.measured import UnitCosts
from optimizer.plan.program import BEGINNING
from optimizer.query.model import Input, Query
from optimizer.query.windows import SECOND
from optimizer.statistics.model import QueryStatistics

BYTES = 16             # of a value in a task's tables, and on its way to the driver: most are 8, strings are longer
SHARE = 0.25           # of the memory of a task, and of the driver's engine, that one batch's boundaries may take
LOOKS = 16             # queries that never ran of which a look at the newest rows tells the groups: it reads two files


class Pace:
    """Remembers how long the last batches of one process took, and for what.

    `Pace(pipe, statistics).together((60, 120, 180), unit_costs)` is `(60, 120)` where a third would take too long.
    """

    def __init__(self, pipe: OpenPipeline, statistics: Statistics) -> None:
        self.pipe = pipe
        self.statistics = statistics
        self.most: int | None = None      # boundaries of which a batch is known to fit into memory, once one did not
        self._measured: list[MeasuredBatch] = []
        self._handed: float | None = None      # bytes that a boundary's answers took, lately
        self._group: tuple[int, ...] = ()      # that was last looked at, with the load of each of its beginnings
        self._loads: list[BatchLoad] = []

    def together(self, group: tuple[int, ...], unit_costs: UnitCosts) -> tuple[int, ...]:
        """Those of the complete boundaries, from the first on, that go into the next batch."""
        self._group, self._loads = group, self._loads_of(group)
        if len(group) < 2 and not self.pipe.tasks.is_open:
            return group
        costs = self._costs(group, unit_costs)
        self._place(costs, self._loads)
        if len(group) < 2:
            return group
        latency, tasks = self.pipe.pipeline.latency, self.pipe.tasks
        room = BatchRoom(SHARE * memory.size(tasks.memory), SHARE * memory.size(memory.of_process()))
        count = boundaries_together(self._loads, costs, self._measured, room,
                                    LATENCY if latency is None else latency / SECOND)
        return group[:count] if self.most is None else group[:min(count, self.most)]

    def place(self, group: tuple[int, ...], unit_costs: UnitCosts) -> None:
        """Where these boundaries are computed, if that is left to the size of their work."""
        if self.pipe.tasks.is_open:
            self._place(self._costs(group, unit_costs), self._loads_of(group))

    def _place(self, costs: BatchCosts, loads: Sequence[BatchLoad]) -> None:
        factor = measured_factor(costs, self._measured)
        self.pipe.tasks.suit(costs.added(loads[-1]) * (1.0 if factor is None else factor))

    def by_statements(self, work: QueryWork, unit_costs: UnitCosts) -> QueryWork:
        """The work, with how many of its boundaries one statement answers, whether strings are coded for them, and
        whether tasks divide the boundaries.
        """
        count = len(work.due)
        if count == 1:
            return work
        known = self._known(work.name, work.query)
        together = boundaries_a_statement(work.query, work.plan, known)
        runs = boundary_runs_worth(work.query, work.plan, known, unit_costs, work.width, count,
                                   work.previous == BEGINNING, together)
        coded = is_worth_coding(work.query, work.plan, known, -(-count // runs))
        return replace(work, together=together, coded=coded, runs=runs, parts=work.parts if runs == 1 else 1)

    def by_shared_statements(self, query_family: QueryFamily) -> QueryFamily:
        """The family, with how many of its boundaries one statement answers; of several query groups each has its own.
        """
        work, (members, *others) = query_family.works[0], query_family.family.groups
        if others or len(work.due) < 2 or members.common.returns_rows:
            return query_family
        common = replace(members.common, text=f"in common: {members.common.text}")      # looks are remembered by text
        together = boundaries_a_shared_statement(members, self.statistics.first_look(common))
        return replace(query_family, works=(replace(work, together=together),))

    def learn(self, batch: Batch, answered: Answered, seconds: float, cold: bool) -> None:
        """What a batch took; of one that was not looked at before, as in a recovery, nothing is learnt."""
        count = len(batch.boundaries)
        if not count or batch.boundaries != self._group[:count]:
            return
        load = self._loads[count - 1]
        self._measured = [*self._measured, MeasuredBatch(load, seconds, cold)][-RECENT:]
        self._handed = _bytes(answered) / count

    def _loads_of(self, group: tuple[int, ...]) -> list[BatchLoad]:
        """Of the first boundary, of the first two, and so on."""
        queries = active_queries(self.pipe, group[0])
        files = self._files(queries)
        rows = dict.fromkeys(group, 0.0)
        held = dict.fromkeys(group, 0.0)
        for stream, of_stream in files.items():
            width = len(self.pipe.pipeline.streams[stream].columns)
            for boundary, count in rows_by_boundary(of_stream, group, self.pipe.pipeline.batch).items():
                rows[boundary] += count
                held[boundary] += count * width * BYTES
        computed = _points(queries, group, files)
        handed = self._handed_by_boundary(queries, group) if len(group) > 1 else 0.0
        points = accumulate(boundary in computed for boundary in group)
        sums = zip(points, accumulate(rows.values()), accumulate(held.values()))
        return [BatchLoad(computed_so_far, came, bytes_held, count * handed)
                for count, (computed_so_far, came, bytes_held) in enumerate(sums, 1)]

    def _files(self, queries: Mapping[str, Query]) -> dict[str, list[File]]:
        streams = sorted({i.source for query in queries.values() for i in query.inputs if i.is_stream})
        stored = [stream for stream in streams if tables.exists(self.pipe.path("streams", stream))]
        return {stream: list(self.pipe.table(f"streams/{stream}").files()) for stream in stored}

    def _handed_by_boundary(self, queries: Mapping[str, Query], group: tuple[int, ...]) -> float:
        """Bytes of answers that one boundary hands to the driver: as lately, else by the groups that are expected.

        Of many queries that never ran, as many groups as their windows hold rows.
        """
        if self._handed is not None:
            return self._handed
        aggregating = {name: query for name, query in queries.items() if not query.returns_rows}
        unknown = {name for name, query in aggregating.items() if self.statistics.observed(name, query) is None}
        handed = 0.0
        for name, query in aggregating.items():
            if name in unknown and len(unknown) > LOOKS:
                groups = max(self._window(i, (group[-1],)) for i in query.inputs if i.is_stream)
            else:
                groups = self._known(name, query).groups
            handed += groups * len(query.columns) * BYTES
        return handed

    def _known(self, name: str, query: Query) -> QueryStatistics:
        return self.statistics.observed(name, query) or self.statistics.first_look(query)

    def _costs(self, group: tuple[int, ...], unit_costs: UnitCosts) -> BatchCosts:
        """As unit costs state them: each query's statements, a look at its windows, and the rows that come once.

        Windows may fill while the group runs, so they are taken as they are halfway.
        """
        queries = active_queries(self.pipe, group[0])
        fixed = unit_costs["jobs"] + unit_costs["batches"] + (1 + len(queries)) * unit_costs["commits"]
        inputs = {(i.source, i.window): i for query in queries.values() for i in query.inputs if i.is_stream}
        in_windows = {key: self._window(declared, (group[0], group[-1])) for key, declared in inputs.items()}
        looked = sum(in_windows[i.source, i.window] for query in queries.values() for i in query.inputs if i.is_stream)
        width = max((len(self.pipe.pipeline.streams[source].columns) for source, _ in inputs), default=1)
        reading = unit_costs["scan"] * width + unit_costs["times"] + unit_costs["group"] * width
        point = len(queries) * unit_costs["statements"] + looked * (unit_costs["look"] + unit_costs["group"])
        return BatchCosts(fixed, point, reading)

    def _window(self, declared: Input, boundaries: tuple[int, ...]) -> float:
        """Rows that an input's window holds at these boundaries, on average."""
        if not tables.exists(self.pipe.path("streams", declared.source)):
            return 0.0
        table = self.pipe.table(f"streams/{declared.source}")
        return sum(window_rows(table, declared, t) for t in boundaries) / len(boundaries)


def rows_by_boundary(files: list[File], group: tuple[int, ...], step: int) -> dict[int, float]:
    """Rows that each boundary counts first, by the files' bounds; those of a file of several are taken as spread
    evenly.
    """
    counts: dict[int, float] = {}
    for file in files:
        if not file.may_hold("_boundary", group[0] - step + 1, group[-1]):
            continue
        low = max(file.low.get("_boundary", group[0]), 0)
        high = file.high.get("_boundary", group[-1])
        spread = max((high - low) // step + 1, 1)
        first = max(-(-low // step) * step, group[0])
        for boundary in range(first, min(high, group[-1]) + 1, step):
            counts[boundary] = counts.get(boundary, 0.0) + file.rows / spread
    return counts


def _points(queries: Mapping[str, Query], group: tuple[int, ...], files: Mapping[str, list[File]]) -> set[int]:
    """The boundaries at which any query is computed: the others repeat an answer, or none is due."""
    if len(group) <= 2:
        return set(group)
    computed: set[int] = set()
    kinds = {(query.inputs, query.every, query.returns_rows, bool(query.windows)): query for query in queries.values()}
    for query in kinds.values():
        due = tuple(t for t in group if t % query.every == 0)
        stored = {i.source: files.get(i.source, []) for i in query.inputs if i.is_stream}
        if due and len(computed) < len(group):
            computed.update(quiet.points(query, due, stored) if len(due) > 2 else due)
    return computed


def _bytes(answered: Answered) -> float:
    """Of the answers that the driver holds, and what they were merged from; tasks keep those of many groups."""
    of_queries = [rows for answer in answered.answers for rows in (answer.partials, answer.rows)]
    of_families = [rows for family in answered.shared for one in family.answers for rows in (one.partials, one.rows)]
    return float(sum(rows.nbytes for rows in (*of_queries, *of_families) if rows is not None))
