"""Brings to each query's address what batches have committed, and its last answer to the table beside it.

A batch commits the answers of queries that share their work in one private table, those of a query that is alone at its
address. Here they all become public: rows that share are copied (never computed again), the last answers are written,
and last of all a row for each boundary in `ledger/boundaries`. Each table has the number of the last batch whose rows
it has, so whatever a crash left is gone on with, and nothing comes twice.
"""
from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from jobs.addresses import rows as copies
from jobs.addresses.columns import BOUNDARY, prepared
from jobs.addresses.due import published_in
from jobs.addresses.rows import SharedRows
from jobs.batch.batch import COMMITTERS, Answered
from jobs.batch.shared import PRIVATE
from jobs.engine import row_counts
from jobs.ledger import published
from jobs.ledger.addresses import address, latest_path
from jobs.ledger.entries import Batch
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.published import Publication
from jobs.ledger.queries import QueryState, address_of, queries_at
from jobs.maintenance import integrity
from jobs.storage import failpoints, places, tables
from jobs.storage.tables import Table

SELDOM = 20.0           # while batches go on, the addresses wait as many times as long as they took last
FIRST_GUESS = 1.0       # seconds that they took, before they ever did
NOTHING = -1            # a boundary before all


@dataclass(frozen=True)
class Unpublished:
    """What is committed and not yet public: the boundaries `after` < t <= `upto`, the last of them of batch `number`.
    """

    after: int
    upto: int
    number: int


@dataclass(frozen=True)
class Standing:
    """How a query has answered since its address was last brought up: for which creation, and with others or alone."""

    creation: int
    shares: bool


class Addresses:
    """The addresses of a pipeline's queries.

    `Addresses(pipe).bring_up()` makes public what is committed. It remembers which tables stand ready for their
    queries' columns, and what was committed since; a crash loses nothing with it.
    """

    def __init__(self, pipe: OpenPipeline) -> None:
        self.pipe = pipe
        self._ready: dict[str, int] = {}               # by query: the creation for whose columns its table stands ready
        self._behind: dict[str, Standing] = {}         # queries that have answered since
        self._batch_by_boundary: dict[int, int] = {}   # of this process, since
        self._brought_at = time.monotonic()
        self._took = FIRST_GUESS

    def make_ready(self, batch: Batch, answered: Answered) -> None:
        """Before a batch is stored: the tables of queries that are alone in it have the columns that they need.

        A query that was replaced since, or shared until now, has its rows so far at its address first.
        """
        standings = _standings(answered)
        if any(self._behind.get(name, standing) != standing for name, standing in standings.items()):
            self.bring_up()
        for answer in answered.answers:
            self._table(answer.work.query_state, batch.boundaries[0])

    def committed(self, batch: Batch, answered: Answered) -> None:
        """A batch was committed: its answers are to be made public."""
        self._behind |= _standings(answered)
        self._batch_by_boundary |= dict.fromkeys(batch.boundaries, batch.number)

    def is_due(self) -> bool:
        """Whether enough time has passed, while batches go on, to make answers public in between."""
        return time.monotonic() - self._brought_at > SELDOM * self._took

    def bring_up(self) -> tuple[str, ...]:
        """Everything that is committed becomes public; gives the queries of which something did."""
        began = time.monotonic()
        pending = self._pending()
        due = published_in(self.pipe, pending.after, pending.upto) if pending is not None else {}
        if pending is not None:
            failpoints.at("address.before")
            self._publish(pending, due)
        self._behind, self._batch_by_boundary = {}, {}
        self._brought_at, self._took = time.monotonic(), time.monotonic() - began
        return tuple(due)

    def _pending(self) -> Unpublished | None:
        """None where everything is public."""
        entry, after = self.pipe.ledger.last(), published.upto(self.pipe.warehouse)
        if entry is None:
            return None
        upto = self.pipe.ledger.committed() if entry.is_open else entry.last_boundary
        if upto is None or upto == after:
            return None
        return Unpublished(NOTHING if after is None else after, upto, entry.batch.number - entry.is_open)

    def _publish(self, pending: Unpublished, due: Mapping[str, Sequence[int]]) -> None:
        pipe = self.pipe
        changes = pipe.ledger.all_changes()
        states = queries_at(changes, pending.upto)
        opened = {name: self._table(states[name], boundaries[-1]) for name, boundaries in due.items()}
        integrity.check(pipe, (states[name].address for name in due if opened[name].foreign))
        private = self._private_tables()
        shared = copies.shared_rows(pipe, private, pending.after, pending.upto, states)
        self._bring_rows(pending, opened, shared)
        failpoints.at("address.after-results")
        self._bring_latest(pending, opened, shared, due, states)
        failpoints.at("address.after-latest")
        publications = self._publications(pending, due, opened)
        places.sync(pipe.pipeline.warehouse)      # what is said to be published is on the disk
        versions = {path: pipe.table(path).version for name in due for path in (address_of(name), latest_path(name))}
        published.enter(pipe.warehouse, publications, pending.upto, versions)
        failpoints.at("address.after-boundaries")
        for table in private:
            copies.let_go(table, pending.upto)

    def _table(self, query_state: QueryState, boundary: int) -> Table:
        """The table at a query's address, with the columns of its text at a boundary."""
        name = query_state.name
        if self._ready.get(name) != query_state.creation:
            prepared(self.pipe, address(self.pipe.ledger.all_changes(), name, boundary))
            self._ready[name] = query_state.creation
        return self.pipe.table(query_state.address)

    def _private_tables(self) -> list[Table]:
        """Of queries that share; one whose rows are all public has no files."""
        return [self.pipe.warehouse.latest(f"{PRIVATE}/{name}") for name in places.listed(self.pipe.path(PRIVATE))
                if tables.exists(self.pipe.path(PRIVATE, name))]

    def _bring_rows(self, pending: Unpublished, opened: Mapping[str, Table], shared: SharedRows) -> None:
        """Rows of queries that share come to their addresses, one commit each."""
        lacking = {name: opened[name] for name in shared.queries if name in opened and _lacks(opened[name], pending)}
        files = copies.address_files(self.pipe.tasks, shared, lacking, f"b{pending.number}")

        def commit(name: str) -> None:
            if files[name]:
                lacking[name].commit(files[name], (), ("batch", pending.number))
                failpoints.at("address.after-table")

        _each(lacking, commit)

    def _bring_latest(self, pending: Unpublished, opened: Mapping[str, Table], shared: SharedRows,
                      due: Mapping[str, Sequence[int]], states: Mapping[str, QueryState]) -> None:
        """The rows of each query's last boundary in the place of those of the one before."""
        tables_by_query = {name: copies.latest_table(self.pipe, states[name]) for name in due}
        lacking = {name: table for name, table in tables_by_query.items() if _lacks(table, pending)}
        files = copies.latest_files(self.pipe, lacking, opened, shared,
                                    {name: boundaries[-1] for name, boundaries in due.items()}, states,
                                    f"b{pending.number}")

        def replace(name: str) -> None:
            copies.fit_latest(lacking[name], copies.latest_schema(states[name]))
            lacking[name].replace(files[name], copies.latest_schema(states[name]), ("batch", pending.number))
            failpoints.at("address.after-table")

        _each(lacking, replace)

    def _publications(self, pending: Unpublished, due: Mapping[str, Sequence[int]],
                      opened: Mapping[str, Table]) -> list[Publication]:
        now, batches, publications = self.pipe.clock(), self._batches(pending), []
        for name, boundaries in due.items():
            rows: Counter[int] = Counter()
            for boundary, count in row_counts.by_boundary(opened[name], pending.after, pending.upto, BOUNDARY):
                rows[boundary] += count
            publications += [Publication(name, t, rows[t], now, batches.get(t, pending.number)) for t in boundaries]
        return publications

    def _batches(self, pending: Unpublished) -> dict[int, int]:
        """By boundary; of what another process committed the ledger knows."""
        if pending.upto in self._batch_by_boundary and min(self._batch_by_boundary) <= pending.after + 1:
            return self._batch_by_boundary
        step, numbers = self.pipe.pipeline.batch, dict[int, int]()
        for batch in self.pipe.ledger.committed_batches():
            last = batch.first_boundary + (batch.boundary_count - 1) * step
            if last > pending.after:
                numbers |= dict.fromkeys(range(batch.first_boundary, last + 1, step), batch.number)
        return numbers


def _lacks(table: Table, pending: Unpublished) -> bool:
    return table.transaction("batch") < pending.number


def _each(names: Iterable[str], act: Callable[[str], None]) -> None:
    """At the same time: each waits for the disk or the store, not for the processor."""
    with ThreadPoolExecutor(COMMITTERS) as pool:
        list(pool.map(act, names))


def _standings(answered: Answered) -> dict[str, Standing]:
    standings = {answer.work.name: Standing(answer.work.query_state.creation, False) for answer in answered.answers}
    for family in answered.shared:
        for name in family.answered:
            standings[name] = Standing(family.family.query_states[name].creation, True)
    return standings
