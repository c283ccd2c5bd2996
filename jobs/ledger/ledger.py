"""The ledger: which changes are in force from which boundary, which boundaries have begun and are committed; the only
transaction over several tables.

Two Delta logs, each a compare-and-swap register. `changes` takes requests and a mark when boundaries begin: a request
commits only on top of the marks that it has seen, so the boundary it names is exact, and it never waits. `batches`
takes intent, then commit, of each batch.
"""
from __future__ import annotations

import os
import socket
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.engine import small_tables
from jobs.engine.small_tables import ask
from jobs.ledger.codec import COMMITTED, decode_committed, decode_entry, decode_plan_names, encode_entry, encode_row
from jobs.ledger.entries import Batch, CommittedBatch, KeptState, LedgerEntry, TimeSpent, TriedPlan
from jobs.ledger.queries import QueryChange
from jobs.storage import delta_log, failpoints, places, tables
from jobs.storage.lock import held
from jobs.storage.tables import Conflict, Table
from optimizer.errors import failed

STAMP = pa.timestamp("us", "UTC")
CHANGES = pa.schema([("sequence", pa.int64()), ("at", STAMP), ("query", pa.string()), ("action", pa.string()),
                     ("effective", STAMP), ("sql", pa.string()), ("plan", pa.string()), ("columns", pa.string()),
                     ("table", pa.string()), ("reason", pa.string())])
BATCHES = pa.schema([("batch", pa.int64()), ("phase", pa.string()), ("first", STAMP), ("boundary", STAMP),
                     ("boundaries", pa.int64()), ("plans", pa.string()), ("relations", pa.string()),
                     ("failed", pa.string()), ("seconds", pa.float64()), ("measured", pa.string()),
                     ("runner", pa.string()), ("at", STAMP)])
CHANGES_PATH = "ledger/changes"
BEGUN = "forebay.begun"
MANY = small_tables.MANY      # small files of one of these tables before they are merged
# A request loses only to a boundary that begins or another request, each a few milliseconds long.
ATTEMPTS = 1000


class Ledger:
    """What was requested of a warehouse and what has run.

    `Ledger("/data/shop/warehouse").last()` is the newest batch.
    """

    def __init__(self, warehouse: str, asked_by: str = "") -> None:
        self.warehouse = warehouse
        self.asked_by = asked_by
        paths = [places.join(warehouse, "ledger", name) for name in ("changes", "batches")]
        if any(map(delta_log.torn, paths)):      # a power cut has left torn commits at the end of a log
            with held(warehouse):
                for path in paths:
                    delta_log.mend_end(path)
        self.changes, self.batches = (tables.create(path, schema) for path, schema in zip(paths, (CHANGES, BATCHES)))
        self._read: dict[str, list[tuple[int, QueryChange]]] = {}
        self._all_changes: tuple[QueryChange, ...] = ()
        self._steady = False
        self._last: tuple[int, LedgerEntry | None] = (-1, None)      # with the version of `batches` that it is in
        self._first: int | None = None
        self._base: int | None = None      # see build_on; None: whatever was read last

    @contextmanager
    def steady(self) -> Iterator[int]:
        """Within, all requests are as they are now: one look at the table serves a whole batch.

        Gives `changes_version`.
        """
        self.all_changes()
        self._steady = True
        try:
            yield self.changes.version
        finally:
            self._steady = False

    def begun(self) -> int | None:
        """The last boundary that has begun: requests and late rows come after it."""
        last = self.last()
        begun = _instant(self.changes.refresh())
        lost = last is not None and self.changes.version < last.table_versions.get(CHANGES_PATH, 0)
        if lost or last is not None and (begun or -1) < last.last_boundary:
            raise failed("damaged-ledger",
                         f"{self.changes.path} knows less than {self.batches.path}: a commit of it is gone",
                         "restore warehouse/ledger from a copy; see `forebay doctor`")
        return begun

    def all_changes(self) -> tuple[QueryChange, ...]:
        """In the order in which they were made."""
        return self._all_changes if self._steady else self._changes_so_far()

    def _changes_so_far(self) -> tuple[QueryChange, ...]:
        files = {f.path for f in self.changes.refresh().files()}
        if files != self._read.keys():      # a mark brings none
            still_there = {path: rows for path, rows in self._read.items() if path in files}
            self._read = {**still_there, **_changes(self.changes, files - still_there.keys())}
            numbered = sorted((row for rows in self._read.values() for row in rows), key=lambda row: row[0])
            self._all_changes = tuple(change for _, change in numbered)
        return self._all_changes

    def request(self, make: Any) -> QueryChange:
        """Appends make(last begun boundary, changes so far), made again whenever somebody else was faster."""
        return self.request_together(lambda begun, so_far: [make(begun, so_far)])[0]

    def request_together(self, make: Any) -> list[QueryChange]:
        """Appends all the changes that make(last begun boundary, changes so far) gives, in one commit: all or none."""
        for _ in range(ATTEMPTS):
            so_far = self._changes_so_far()
            # Of the version just read: a mark made since then is a conflict.
            changes: list[QueryChange] = make(_instant(self.changes), so_far)
            if not changes:
                return []
            failpoints.at("request.before-commit")
            try:
                common = {"sequence": self.changes.version + 1, "at": _now()}
                self.changes.append(_rows(CHANGES, [{**asdict(change), **common} for change in changes]))
                places.sync(self.warehouse)      # before the caller says that it is in force
                failpoints.at("request.after-commit")
                return changes
            except Conflict:
                continue
        raise Conflict("the ledger of changes is written without pause by others")

    def changes_version(self) -> int:
        """A number that differs whenever anything was requested, or has begun, in between."""
        return self.changes.refresh().version

    def begin(self, boundary: int, changes_version: int) -> bool:
        """Marks all boundaries up to this one as begun, unless there was a request since.

        What is to run may be something else.
        """
        if self.changes_version() != changes_version:
            return False
        if (_instant(self.changes) or -1) >= boundary:
            return True
        try:
            self.changes.commit(transaction=(BEGUN, boundary))
        except Conflict:
            return False
        return True

    @property
    def position(self) -> int:
        """A number that differs whenever anybody entered anything in `batches`; as last read."""
        return self.batches.version

    def build_on(self, entry: int) -> None:
        """What this process enters from here on is made from the entry at this position, and from its own after it.

        Whatever another process enters in between makes the next one a conflict, however often `batches` is read
        meanwhile.
        """
        self._base = entry

    def is_overtaken(self) -> bool:
        """Whether another process has entered something, as last read, that this one did not build on."""
        return self._base is not None and self.position != self._base

    def refuse_if_overtaken(self) -> None:
        if self.is_overtaken():
            raise Conflict(f"another process has written to the ledger of batches in {self.warehouse} since this one "
                           "read it")

    def last(self) -> LedgerEntry | None:
        """The newest entry of `batches`."""
        version = self.batches.refresh().version
        if version != self._last[0]:
            text = self.batches.metadata().get("forebay")
            self._last = (version, None if text is None else decode_entry(str(text)))
        return self._last[1]

    def relied(self) -> Mapping[str, int]:
        """By path under the warehouse: the version of a table that the newest entry rests on.

        A table that knows less has lost commits.
        """
        last = self.last()
        return last.table_versions if last is not None else {}

    def rely(self, versions: Mapping[str, int]) -> None:
        """Tables that were mended are as they are now."""
        last = self.last()
        if last is not None:
            self._replace(replace(last, table_versions={**last.table_versions, **versions}))

    def intent(self, batch: Batch) -> None:
        """Put-if-absent: a second runner that saw the same ledger loses here."""
        entry = LedgerEntry("intent", batch, batch.states, self._table_versions(), batch.tried, self.time_spent())
        self._enter(entry, {}, 0.0, {})

    def commit(self, batch: Batch, states: Mapping[str, KeptState], failures: Mapping[str, str], seconds: float,
               task_seconds: Mapping[str, float], versions: Mapping[str, int] | None = None,
               tried: Mapping[str, TriedPlan] | None = None, trying_seconds: float = 0.0) -> None:
        """`states`, and the plans that are tried, are as after the batch.

        `versions` are those of the open tables, which from here on must be there. Of its seconds the batch spent
        `trying_seconds` on trying plans.
        """
        table_versions = {**self._table_versions(), **(versions or {}), CHANGES_PATH: self.changes.version}
        spent = self.time_spent()
        spent = TimeSpent(spent.seconds + seconds, spent.trying + trying_seconds)
        self._enter(LedgerEntry("commit", batch, states, table_versions, tried or {}, spent), failures, seconds,
                    task_seconds)

    @property
    def known(self) -> LedgerEntry | None:
        """The newest entry as it was last read, without a look at the table: a batch asks it for each query."""
        return self._last[1]

    def time_spent(self) -> TimeSpent:
        """By all batches so far, as the entry says that was last read."""
        return self.known.time_spent if self.known is not None else TimeSpent()

    def _table_versions(self) -> Mapping[str, int]:
        """On top of the entry that was last read: an entry that another process made since then is a conflict."""
        last = self._last[1]
        return last.table_versions if last is not None else {}

    def _enter(self, entry: LedgerEntry, failures: Mapping[str, str], seconds: float,
               task_seconds: Mapping[str, float]) -> None:
        runner = f"{socket.gethostname()}:{os.getpid()} {self.asked_by}".strip()
        row = encode_row(entry, failures, seconds, task_seconds, runner, _now())
        number = 2 * entry.batch.number + (entry.phase == "commit")
        metadata = {"forebay": encode_entry(entry)}
        self.refuse_if_overtaken()
        # What is newest then is read, not assumed: another process that finished the same batch may have gone on since.
        before = self.position
        self.batches.append(_rows(BATCHES, [row]), transaction=("batch", number), metadata=metadata)
        self._base = None if self._base is None else before + 1

    def _replace(self, entry: LedgerEntry) -> None:
        """The newest entry says something else from now on."""
        self.batches.commit(metadata={"forebay": encode_entry(entry)})

    def committed(self) -> int | None:
        """The last boundary whose answers may be read."""
        rows = self._ask("SELECT max(epoch_us(boundary)) FROM batches WHERE phase = 'commit'")
        return rows[0][0] if rows else None

    def first(self) -> int | None:
        """The first boundary that was ever run; once there is one, it stays."""
        if self._first is None:
            rows = self._ask('SELECT min(epoch_us("first")) FROM batches')
            self._first = rows[0][0] if rows else None
        return self._first

    def relation_versions(self, name: str) -> list[tuple[int, int]]:
        """(boundary, version): which version of a relation was used from which boundary on."""
        rows = self._ask(f"""SELECT epoch_us("first"), CAST(json_extract(relations, '$.{name}') AS BIGINT) AS v
                             FROM batches WHERE phase = 'commit' AND v IS NOT NULL ORDER BY batch""")
        return [pair for k, pair in enumerate(rows) if k == 0 or pair[1] != rows[k - 1][1]]

    def committed_batches(self, last: int | None = None) -> list[CommittedBatch]:
        """Every committed batch, or the last few, oldest first."""
        rows = self._ask(COMMITTED if last is None else f"{COMMITTED} LIMIT {last}")
        return [decode_committed(row) for row in reversed(rows)]

    def plan_names(self, batches: Collection[int]) -> dict[int, Mapping[str, str]]:
        """By batch: the names of the plans that it committed answers by, by query."""
        numbers = ", ".join(map(str, sorted(batches)))
        rows = self._ask(f"SELECT batch, plans FROM batches WHERE phase = 'commit' AND batch IN ({numbers})") \
            if batches else []
        return {number: decode_plan_names(plans) for number, plans in rows}

    def let_go(self, query: str) -> None:
        """Forgets a query's state: its next batch, or the one that is to be run again, makes it anew."""
        last = self.last()
        if last is not None:
            states = {name: state for name, state in last.states.items() if name != query}
            tried = {name: tried_plan for name, tried_plan in last.tried.items() if name != query}
            batch = replace(last.batch, states=states, tried=tried) if last.is_open else last.batch
            self._replace(replace(last, batch=batch, states=states, tried=tried))

    def tidy(self) -> None:
        """Makes one file of many small ones in both tables; the newest entry goes on saying what it says."""
        # As last read: what another process entered since is a conflict.
        entry = self.batches.metadata().get("forebay")
        of_changes = self.changes.refresh(), "sequence", dict[str, str]()
        of_batches = self.batches, "batch, phase DESC", {"forebay": str(entry)}
        small_tables.merge(*of_changes, MANY)
        if not self.is_overtaken():
            before = self.position
            is_merged = small_tables.merge(*of_batches, MANY)
            self._base = before + 1 if is_merged and self._base is not None else self._base

    def _ask(self, sql: str) -> list[tuple[Any, ...]]:
        """A question to the table of batches, for people's commands: a runner needs only its newest entry."""
        return ask(self.batches.refresh(), "batches", sql)


def _instant(changes: Table) -> int | None:
    number = changes.transaction(BEGUN)
    return None if number < 0 else number


def _changes(table: Table, files: Iterable[str]) -> dict[str, list[tuple[int, QueryChange]]]:
    """By file; read without an engine, a dataset or instants as Python values (these make Arrow import pandas).

    A command often reads no more than this.
    """
    changes_by_file = {}
    for path in files:
        with places.opened(places.join(table.path, path)) as file:
            content = pq.ParquetFile(file).read().drop_columns(["at"])
        column = content.schema.get_field_index("effective")
        rows = content.set_column(column, "effective", content["effective"].cast(pa.int64())).to_pylist()
        changes_by_file[path] = [(row.pop("sequence"), QueryChange(**row)) for row in rows]
    return changes_by_file


def _rows(schema: pa.Schema, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=schema)


def _now() -> int:
    return time.time_ns() // 1000
