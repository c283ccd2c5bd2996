"""The ledger: which changes are in force from which boundary, which boundaries have begun and are committed; the only transaction over several tables.

Two Delta logs, each a compare-and-swap register. `changes` takes requests and a mark when boundaries begin: a request commits only on top
of the marks that it has seen, so the boundary it names is exact, and it never waits. `batches` takes intent, then commit, of each batch.
"""
from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.engine import kernel
from jobs.storage import delta_log, failpoints, places, tables
from jobs.storage.lock import held
from jobs.storage.tables import Conflict, Table
from optimizer.errors import failed

STAMP = pa.timestamp("us", "UTC")
CHANGES = pa.schema([("sequence", pa.int64()), ("at", STAMP), ("query", pa.string()), ("action", pa.string()), ("effective", STAMP),
                     ("sql", pa.string()), ("plan", pa.string()), ("columns", pa.string()), ("table", pa.string()), ("reason", pa.string())])
BATCHES = pa.schema([("batch", pa.int64()), ("phase", pa.string()), ("first", STAMP), ("boundary", STAMP), ("boundaries", pa.int64()),
                     ("plans", pa.string()), ("relations", pa.string()), ("failed", pa.string()),
                     ("seconds", pa.float64()), ("measured", pa.string()), ("runner", pa.string()), ("at", STAMP)])
CHANGES_PATH = "ledger/changes"
BEGUN = "forebay.begun"
MANY = 64                # small files of one of these tables before they are merged
SMALL = 2**20            # bytes; a larger file stays as it is
ATTEMPTS = 1000          # a request loses only to a boundary that begins or another request, each a few milliseconds long


@dataclass(frozen=True)
class Change:
    """One request, or one thing that the runner found; `effective` None: from the first boundary."""

    query: str
    action: str
    effective: int | None
    sql: str | None = None
    plan: str | None = None
    columns: str | None = None
    table: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class State:
    """Where a query's state stands: made anew at boundary `epoch` under `plan`, brought to boundary `at`, with these relation versions."""

    plan: Mapping[str, Any]
    epoch: int
    at: int
    relations: Mapping[str, int] = field(default_factory=dict)
    batch: int = -1      # the one that brought it there: its tables must say the same


@dataclass(frozen=True)
class Batch:
    """What a batch is: enough to run it again and get the same rows. `states` are as before it, `versions` those of the state tables it reads.

    `shared` are the groups of queries that one work answers, by a name of their own; each member's plan is the group's. `weighed` says of each what was
    expected of it and of its members apart. `parts`: tasks that share a query's work, 0 for as many as run at once."""

    number: int
    boundaries: tuple[int, ...]
    plans: Mapping[str, Mapping[str, Any]]
    relations: Mapping[str, int]
    states: Mapping[str, State]
    versions: Mapping[str, int]
    shared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    weighed: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    parts: int = 0


@dataclass(frozen=True)
class Told:
    """What a committed batch says of itself: plans' names and seconds in tasks by query; `at` is when it was committed.

    `runner` is host and process, then what made it run, if that was no command: a kind of trigger and a DAG run."""

    number: int
    at: int
    first: int
    boundaries: int
    plans: Mapping[str, str]
    seconds: float
    measured: Mapping[str, float]
    runner: str = ""


class Ledger:
    def __init__(self, warehouse: str, asked_by: str = "") -> None:
        self.warehouse = warehouse
        self.asked_by = asked_by
        paths = [places.join(warehouse, "ledger", name) for name in ("changes", "batches")]
        _mend_ends(warehouse, paths)
        self.changes, self.batches = (tables.create(path, schema) for path, schema in zip(paths, (CHANGES, BATCHES)))
        self._read: dict[str, list[tuple[int, Change]]] = {}
        self._told: tuple[Change, ...] = ()
        self._steady = False
        self._last: tuple[int, tuple[str, Batch, Mapping[str, State]] | None] = (-1, None)
        self._relied: Mapping[str, int] = {}
        self._first: int | None = None

    @contextmanager
    def steady(self) -> Iterator[int]:
        """Within, what was asked is as it is now: one look at the table serves a whole batch. Gives what `asked` gives."""
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
        lost = self.changes.version < self._relied.get(CHANGES_PATH, 0)
        if lost or last is not None and (begun or -1) < last[1].boundaries[-1]:
            raise failed("damaged-ledger", f"{self.changes.path} knows less than {self.batches.path}: a commit of it is gone",
                         "restore warehouse/ledger from a copy; see `forebay doctor`")
        return begun

    def all_changes(self) -> tuple[Change, ...]:
        """In the order in which they were made."""
        return self._told if self._steady else self._asked_so_far()

    def _asked_so_far(self) -> tuple[Change, ...]:
        files = {f.path for f in self.changes.refresh().files()}
        if files != self._read.keys():      # a mark brings none
            kept = {path: rows for path, rows in self._read.items() if path in files}
            self._read = {**kept, **_changes(self.changes, files - kept.keys())}
            self._told = tuple(change for _, change in sorted((row for rows in self._read.values() for row in rows), key=lambda row: row[0]))
        return self._told

    def request(self, make: Any) -> Change:
        """Appends make(last begun boundary, changes so far), made again whenever somebody else was faster."""
        for _ in range(ATTEMPTS):
            known = self._asked_so_far()
            change: Change = make(_instant(self.changes), known)      # of the version just read: a mark made since then is a conflict
            failpoints.at("request.before-commit")
            try:
                self.changes.append(_rows(CHANGES, [{**asdict(change), "sequence": self.changes.version + 1, "at": _now()}]))
                places.sync(self.warehouse)      # it is said to be in force
                failpoints.at("request.after-commit")
                return change
            except Conflict:
                continue
        raise Conflict("the ledger of changes is written without pause by others")

    def asked(self) -> int:
        """A number that differs whenever anything was asked, or has begun, in between."""
        return self.changes.refresh().version

    def begin(self, boundary: int, asked: int) -> bool:
        """Marks all boundaries up to this one as begun, unless something was asked since: what is to run may then be something else."""
        if self.asked() != asked:
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

    def last(self) -> tuple[str, Batch, Mapping[str, State]] | None:
        """The newest entry of `batches`: phase, batch, and the states after it (before it, for an intent)."""
        version = self.batches.refresh().version
        if version != self._last[0]:
            said = self.batches.metadata().get("forebay")
            entry = None if said is None else json.loads(str(said))
            self._relied = {} if entry is None else entry.get("tables", {})      # what was written before tables were named
            self._last = (version, None if entry is None else _told(entry))
        return self._last[1]

    def relied(self) -> Mapping[str, int]:
        """By path under the warehouse: the version of a table that the newest entry rests on. A table that knows less has lost commits."""
        self.last()
        return self._relied

    def rely(self, versions: Mapping[str, int]) -> None:
        """Tables that were mended are as they are now."""
        last = self.last()
        if last is not None:
            self._relied = {**self._relied, **versions}
            self.batches.commit(metadata={"forebay": self._entry(*last)})

    def intent(self, batch: Batch) -> None:
        """Put-if-absent: a second runner that saw the same ledger loses here."""
        self._enter("intent", batch, batch.states, {}, 0.0, {})

    def commit(self, batch: Batch, states: Mapping[str, State], failed: Mapping[str, str], seconds: float, measured: Mapping[str, float],
               versions: Mapping[str, int] | None = None) -> None:
        """`measured`: seconds of each query's tasks; `versions`: of the tables that are open, which from here on must be there."""
        self._relied = {**self._relied, **(versions or {}), CHANGES_PATH: self.changes.version}
        self._enter("commit", batch, states, failed, seconds, measured)

    def _enter(self, phase: str, batch: Batch, states: Mapping[str, State], failed: Mapping[str, str], seconds: float, measured: Mapping[str, float]) -> None:
        row = {"batch": batch.number, "phase": phase, "first": batch.boundaries[0], "boundary": batch.boundaries[-1], "boundaries": len(batch.boundaries),
               "plans": json.dumps({q: p["name"] for q, p in batch.plans.items()}),
               "relations": json.dumps(dict(batch.relations)), "failed": json.dumps(dict(failed)), "seconds": seconds, "measured": json.dumps(dict(measured)),
               "runner": f"{socket.gethostname()}:{os.getpid()} {self.asked_by}".strip(), "at": _now()}
        self.batches.append(_rows(BATCHES, [row]), transaction=("batch", 2 * batch.number + (phase == "commit")),
                            metadata={"forebay": self._entry(phase, batch, states)})

    def _entry(self, phase: str, batch: Batch, states: Mapping[str, State]) -> str:
        """`vars`, not `asdict`: of hundreds of queries the latter copies every plan, which takes longer than all the rest of a commit."""
        return json.dumps({"phase": phase, "batch": vars(batch), "states": dict(states), "tables": dict(self._relied)}, default=vars)

    def committed(self) -> int | None:
        """The last boundary whose answers may be read."""
        found = self._ask("SELECT max(epoch_us(boundary)) FROM batches WHERE phase = 'commit'")
        return found[0][0] if found else None

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

    def told(self, last: int | None = None) -> list[Told]:
        """Of each committed batch, or of the last few, oldest first."""
        few = "" if last is None else f" LIMIT {last}"
        rows = self._ask(f"""SELECT batch, epoch_us("at"), epoch_us("first"), boundaries, plans, seconds, measured, runner FROM batches
                             WHERE phase = 'commit' ORDER BY batch DESC{few}""")
        return [Told(number, at, first, count, json.loads(plans), seconds, json.loads(measured), runner)
                for number, at, first, count, plans, seconds, measured, runner in reversed(rows)]

    def let_go(self, query: str) -> None:
        """Forgets where a query's state stands: its next batch makes it anew, or the one that is to be run again."""
        last = self.last()
        if last is not None:
            phase, batch, states = last
            left = {q: s for q, s in states.items() if q != query}
            self.batches.commit(metadata={"forebay": self._entry(phase, replace(batch, states=left) if phase == "intent" else batch, left)})

    def tidy(self) -> None:
        """Makes one file of many small ones in both tables; the newest entry goes on saying what it says."""
        entry = self.batches.metadata().get("forebay")      # as last read: what another process entered since is a conflict
        for table, order, metadata in ((self.changes.refresh(), "sequence", {}), (self.batches, "batch, phase DESC", {"forebay": str(entry)})):
            small = [f for f in table.files() if f.size < SMALL]
            if len(small) <= MANY:
                continue
            con = kernel.shared()
            paths = tuple(places.join(table.path, f.path) for f in small)
            rows = kernel.table(con, f"SELECT * FROM read_parquet({kernel.files(con, paths)}) ORDER BY {order}")
            con.close()
            try:
                table.commit([tables.write(table.path, rows.cast(table.schema), tables.unique("merged"))], [f.path for f in small], None, metadata)
            except Conflict:
                continue      # somebody asked something in between: next time

    def _ask(self, sql: str) -> list[tuple[Any, ...]]:
        """A question to the table of batches, for people's commands: a runner needs only its newest entry."""
        paths = _paths(self.batches.refresh())
        if not paths:
            return []
        con = kernel.shared()
        try:
            return con.execute(f"WITH batches AS (FROM read_parquet({kernel.files(con, paths)})) {sql}").fetchall()
        finally:
            con.close()


def _mend_ends(warehouse: str, paths: Iterable[str]) -> None:
    """Who opens a ledger after a power cut takes torn commits off the ends of its logs."""
    if any(map(delta_log.torn, paths)):
        with held(warehouse):
            for path in paths:
                delta_log.mend_end(path)


def _instant(changes: Table) -> int | None:
    number = changes.transaction(BEGUN)
    return None if number < 0 else number


def _changes(table: Table, files: Iterable[str]) -> dict[str, list[tuple[int, Change]]]:
    """By file; read without an engine, a dataset or instants as Python values (these make Arrow import pandas): a command often reads no more than this."""
    found = {}
    for path in files:
        read = _rows_of(places.join(table.path, path)).drop_columns(["at"])
        at = read.schema.get_field_index("effective")
        rows = read.set_column(at, "effective", read["effective"].cast(pa.int64())).to_pylist()
        found[path] = [(row.pop("sequence"), Change(**row)) for row in rows]
    return found


def _rows_of(path: str) -> pa.Table:
    with places.opened(path) as file:
        return pq.ParquetFile(file).read()


def _paths(table: Table) -> tuple[str, ...]:
    return tuple(places.join(table.path, f.path) for f in table.files())


def _rows(schema: pa.Schema, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=schema)


def _batch(said: dict[str, Any]) -> Batch:
    return Batch(said["number"], tuple(said["boundaries"]), said["plans"], said["relations"], _states(said["states"]), said["versions"],
                 {name: tuple(names) for name, names in said.get("shared", {}).items()}, said.get("weighed", {}), said.get("parts", 0))


def _told(said: dict[str, Any]) -> tuple[str, Batch, Mapping[str, State]]:
    return said["phase"], _batch(said["batch"]), _states(said["states"])


def _states(said: dict[str, Any]) -> dict[str, State]:
    return {q: State(**s) for q, s in said.items()}


def _now() -> int:
    return time.time_ns() // 1000
