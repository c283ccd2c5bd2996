"""Brings to each query's address what batches have committed, and its last answer to the table beside it.

A batch commits the answers of queries that share their work in one private table, those of a query that is alone at its
address. Here they all become public: rows that share are copied (never computed again), the last answers are written,
and last of all a row for each boundary in `ledger/boundaries`. Each table has the number of the last batch whose rows
it has, so whatever a crash left is gone on with, and nothing comes twice.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from jobs.addresses import rows as copies
from jobs.addresses.columns import prepared
from jobs.addresses.due import published_in
from jobs.addresses.place import Place
from jobs.addresses.rows import SharedRows
from jobs.batch.batch import COMMITTERS, Answered
from jobs.ledger import published
from jobs.ledger.addresses import PRIVATE, address
from jobs.ledger.entries import Batch, LedgerEntry
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.published import Publication
from jobs.ledger.queries import queries_at
from jobs.storage import failpoints, places, tables
from jobs.storage.tables import Table

SELDOM = 20.0           # while batches go on, the addresses wait as many times as long as they took last
FIRST_GUESS = 1.0       # seconds that they took, before they ever did
TIDIED_EVERY = 32       # versions of a table that is not opened otherwise: half as many as make small files too many


@dataclass(frozen=True)
class Pending:
    """What is committed and not yet public: the boundaries `after` < t <= `upto`, the last of them of batch `number`.
    """

    after: int
    upto: int
    number: int

    @property
    def label(self) -> str:
        """With which names of files begin."""
        return f"b{self.number}"


@dataclass(frozen=True)
class Standing:
    """How a query has answered since its address was last brought up: for which creation, and with others or alone."""

    creation: int
    shares: bool


class Addresses:
    """The addresses of a pipeline's queries.

    `Addresses(pipe).bring_up(pipe.ledger.last())` makes public what is committed. It remembers which tables stand ready
    for their queries' columns, and what was committed since; a crash loses nothing with it.
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
            # Not the newest entry: what another runner has entered since makes the commit of this batch a conflict.
            self.bring_up(self.pipe.ledger.known)
        for answer in answered.answers:
            state = answer.work.query_state
            if self._ready.get(state.name) == state.creation:
                self.pipe.warehouse.latest(state.address)      # rows may have come to it that were shared
            else:
                prepared(self.pipe, address(self.pipe.ledger.all_changes(), state.name, batch.boundaries[0]))
                self._ready[state.name] = state.creation

    def committed(self, batch: Batch, answered: Answered) -> None:
        """A batch was committed: its answers are to be made public."""
        self._behind |= _standings(answered)
        self._batch_by_boundary |= dict.fromkeys(batch.boundaries, batch.number)

    def is_due(self) -> bool:
        """Whether enough time has passed, while batches go on, to make answers public in between."""
        return time.monotonic() - self._brought_at > SELDOM * self._took

    def bring_up(self, entry: LedgerEntry | None) -> list[str]:
        """What is committed by this entry of the ledger becomes public.

        Gives the queries whose tables are to be tidied: those that were opened, and of the others some each time.
        """
        began, pending = time.monotonic(), self._pending(entry)
        places_by_query = self._publish(pending) if pending is not None else {}
        self._behind, self._batch_by_boundary = {}, {}
        self._brought_at, self._took = time.monotonic(), time.monotonic() - began
        return [name for name, place in places_by_query.items()
                if place.was_opened or place.ends().results % TIDIED_EVERY == 0]

    def _pending(self, entry: LedgerEntry | None) -> Pending | None:
        """None where everything is public."""
        if entry is None:
            return None
        after = published.upto(self.pipe.warehouse)
        upto = self.pipe.ledger.committed() if entry.is_open else entry.last_boundary
        if upto is None or after is not None and upto <= after:
            return None
        return Pending(published.NOTHING if after is None else after, upto, entry.batch.number - entry.is_open)

    def _publish(self, pending: Pending) -> dict[str, Place]:
        pipe = self.pipe
        failpoints.at("address.before")
        due = published_in(pipe, pending.after, pending.upto)
        places_by_query = self._places(pending, due)
        private = self._private_tables()
        shared = copies.shared_rows(pipe, private, pending.after, pending.upto, places_by_query)
        shared = shared.without_rows(place for name, place in places_by_query.items() if self._shares(name))
        with_rows = {name: place for name, place in places_by_query.items() if shared.has_rows(name)}
        files = copies.address_files(pipe.tasks, shared, with_rows, pending.label)
        _each(with_rows, lambda name: with_rows[name].add(files[name]))
        failpoints.at("address.after-results")
        last_boundaries = {name: boundaries[-1] for name, boundaries in due.items()}
        latest = copies.latest_files(pipe, shared, places_by_query, last_boundaries, pending.label, files)
        _each(places_by_query, lambda name: places_by_query[name].show(latest[name]))
        failpoints.at("address.after-latest")
        publications = self._publications(pending, due, places_by_query, shared)
        ends = {name: place.ends() for name, place in places_by_query.items()}
        places.sync(pipe.pipeline.warehouse)      # what is said to be published is on the disk
        published.enter(pipe.warehouse, publications, pending.after, pending.upto, ends)
        failpoints.at("address.after-boundaries")
        for table in private:
            copies.let_go(table, pending.upto)
        return places_by_query

    def _places(self, pending: Pending, due: Mapping[str, Sequence[int]]) -> dict[str, Place]:
        """Each query as of the last boundary at which it has answered: a replacement in force since, and due later, may
        have other columns.
        """
        changes, known = self.pipe.ledger.all_changes(), published.known_ends(self.pipe.warehouse)
        states = {t: queries_at(changes, t) for t in {boundaries[-1] for boundaries in due.values()}}
        return {name: Place(self.pipe, states[boundaries[-1]][name], address(changes, name, boundaries[-1]),
                            known.get(name), pending.number) for name, boundaries in due.items()}

    def _shares(self, query: str) -> bool:
        """As far as this process knows: otherwise its table is asked."""
        return query in self._behind and self._behind[query].shares

    def _private_tables(self) -> list[Table]:
        """Of queries that share; one whose rows are all public has no files."""
        return [self.pipe.warehouse.latest(f"{PRIVATE}/{name}") for name in places.listed(self.pipe.path(PRIVATE))
                if tables.exists(self.pipe.path(PRIVATE, name))]

    def _publications(self, pending: Pending, due: Mapping[str, Sequence[int]], places_by_query: Mapping[str, Place],
                      shared: SharedRows) -> list[Publication]:
        now, batches, publications = self.pipe.clock(), self._batches(pending), []
        for name, boundaries in due.items():
            rows = copies.counted(shared, places_by_query[name], name)
            publications += [Publication(name, t, rows.get(t, 0), now, batches.get(t, pending.number))
                             for t in boundaries]
        return publications

    def _batches(self, pending: Pending) -> dict[int, int]:
        """By boundary; of what another process committed the ledger knows."""
        step, numbers = self.pipe.pipeline.batch, self._batch_by_boundary
        if numbers and min(numbers) - step <= pending.after:
            return numbers
        numbers = {}
        for batch in self.pipe.ledger.committed_batches():
            last = batch.first_boundary + (batch.boundary_count - 1) * step
            if last > pending.after:
                numbers |= dict.fromkeys(range(batch.first_boundary, last + 1, step), batch.number)
        return numbers


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
