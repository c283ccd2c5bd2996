"""Delta tables as values: versions, files with their statistics, commits; the only place that imports delta-rs. One
writer a table at a time (see jobs.storage.lock).

Files are written by whoever has the rows; a table changes only by `commit`, which adds and removes files in one Delta
version, fails when another process committed first, and carries the batch that it belongs to (`app_transactions`).
"""
from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from jobs.storage import delta_log, places
from jobs.storage.delta_log import Commit
from optimizer.errors import ForebayError, failed, first_line
from optimizer.time import instant, micros

UNKNOWN = 2**62              # more NULLs than a file can have
NANOSECONDS = {"milliseconds": 1_000_000, "microseconds": 1000, "nanoseconds": 1}      # of Parquet's units of time
OURS = "forebay.commit"      # each commit of ours carries its own version under this name
CHECKPOINT_EVERY = 50        # commits: a checkpoint takes some six milliseconds, reading fifty commits as long
# unless a table says otherwise
RETENTION = {"delta.logRetentionDuration": "interval 1 hours", "delta.deletedFileRetentionDuration": "interval 1 hours"}
MAGIC = b"PAR1"              # how a Parquet file ends
Broken = DeltaError          # what a table that cannot be read or written raises here


@dataclass(frozen=True)
class File:
    """One Parquet file of a table; `low` and `high` bound its integer and timestamp columns (integers, microseconds),
    `nulls` counts NULLs where known.

    `File("a.parquet", 2, 900, {"_boundary": 10}, {"_boundary": 20})`: two rows, of boundaries from 10 to 20.
    """

    path: str
    rows: int
    size: int
    low: Mapping[str, int] = field(default_factory=dict)
    high: Mapping[str, int] = field(default_factory=dict)
    nulls: Mapping[str, int] = field(default_factory=dict)

    def may_hold(self, column: str, first: int, last: int) -> bool:
        """Whether a row's value of the column may lie between these, both counted; without bounds it may."""
        return self.high.get(column, first) >= first and self.low.get(column, last) <= last


class Conflict(ForebayError):
    """Another process committed to the table since it was read."""

    def __init__(self, message: str) -> None:
        super().__init__("conflict", message,
                         hint="another process runs this pipeline; nothing is lost, it goes on where that one stops",
                         exit_code=3)


class Table:
    """A handle that follows one table; `files` costs nothing while no other process writes."""

    def __init__(self, path: str, handle: DeltaTable) -> None:
        self.path = path
        self.handle = handle
        self._known: dict[str, File] | None = None
        self._checkpoint: int | None = None
        self._transactions: dict[str, int] = {}      # of the version beside it: asking again takes half a millisecond
        self._transactions_of = -1
        self._metadata: dict[str, object] = {}       # of the version beside it
        self._metadata_of = -1

    @property
    def paths(self) -> tuple[str, ...]:
        """Where its files are."""
        return tuple(places.join(self.path, file.path) for file in self.files())

    @property
    def version(self) -> int:
        return int(self.handle.version())

    @property
    def schema(self) -> pa.Schema:
        return pa.schema(self.handle.schema().to_arrow())

    @property
    def features(self) -> frozenset[str]:
        """Reader features the kernel would have to know.

        Tables of an older protocol say column mapping by a property alone.
        """
        named = frozenset(self.handle.protocol().reader_features or ()) - {"timestampNtz"}
        mapping = self.properties.get("delta.columnMapping.mode", "none")
        return named if mapping == "none" else named | {"columnMapping"}

    @property
    def properties(self) -> dict[str, str]:
        return {k: v for k, v in (self.handle.metadata().configuration or {}).items() if v is not None}

    def files(self) -> tuple[File, ...]:
        if self._known is None:
            files = {}
            for row in _actions(self.handle).to_pylist():
                low, high = _integers_under(row, "min."), _integers_under(row, "max.")
                nulls = _integers_under(row, "null_count.")
                path = row["path"]
                files[path] = File(path, row["num_records"] or 0, row["size_bytes"], low, high, nulls)
            self._known = files
        return tuple(self._known.values())

    def complete(self) -> frozenset[str]:
        """Columns in which no row of the table is NULL, as far as every file says."""
        files = self.files()
        if not files:
            return frozenset()
        complete = frozenset(files[0].nulls)
        for file in files:
            complete &= {name for name, count in file.nulls.items() if count == 0}
        return complete

    def at(self, version: int) -> Table:
        """The same table as it was."""
        return self if version == self.version else Table(self.path, _handle(self.path, version))

    def stands(self) -> bool:
        """Whether the log still has the commit that the handle is at: a table can be deleted, and made anew, while it
        is open.
        """
        return places.is_file(delta_log.commit_path(self.path, self.version))

    def _is_newest(self) -> bool:
        """Whether a look at two names tells that nobody has committed since; a look at the whole log takes a hundred
        times as long. In a store neither is cheap."""
        if isinstance(self.path, places.Remote):
            return False
        return self.stands() and not places.is_file(delta_log.commit_path(self.path, self.version + 1))

    def outside(self) -> tuple[Commit, ...]:
        """The commits after the last one of ours: somebody else's, or torn ones."""
        last_of_ours = max(self.transaction(OURS), 0)
        return tuple(delta_log.read(self.path, version) for version in range(last_of_ours + 1, self.version + 1))

    def written_outside(self) -> list[File]:
        """Files that others have put in the place of ours since our last commit, as OPTIMIZE does."""
        added = frozenset(name for commit in self.outside() for name in commit.added)
        return [f for f in self.files() if f.path in added] if added else []

    def changed_outside(self) -> Commit | None:
        """The last commit of somebody else that changed rows, unless its changes were taken back: comments, properties
        and files that were only put together differently change none."""
        commits = self.outside()
        if not commits:
            return None
        before = {file.path for file in self.at(commits[0].version - 1).files()}
        changed = before ^ {file.path for file in self.files()}
        return next((c for c in reversed(commits) if c.torn or c.hides_rows or c.data_files & changed), None)

    def refresh(self) -> Table:
        if self._is_newest():
            return self
        before = self.version
        self.handle.update_incremental()
        if self.version != before:
            self._known = None
        return self

    def transaction(self, app: str) -> int:
        """The highest number committed under this name, −1 if none."""
        version = self.version
        if self._transactions_of != version:
            self._transactions, self._transactions_of = {}, version
        if app not in self._transactions:
            number = self.handle.transaction_version(app)
            self._transactions[app] = -1 if number is None else int(number)
        return self._transactions[app]

    @property
    def foreign(self) -> bool:
        """Whether the last commit is not ours."""
        return self.version > 0 and self.transaction(OURS) != self.version

    def trim(self) -> bool:
        """Every CHECKPOINT_EVERY commits a checkpoint, with which delta-rs removes the commits before it that are older
        than the table's retention; so opening it takes no longer with its age, and its log stays short. Gives whether
        one was made."""
        if self._checkpoint is None:
            self._checkpoint = _last_checkpoint(self.path)
        if self.version - self._checkpoint < CHECKPOINT_EVERY:
            return False
        missing = {key: value for key, value in RETENTION.items() if key not in self.properties}
        if missing:      # made before tables said how long their logs stay
            self.set_properties(missing)
        self.handle.create_checkpoint()
        self._checkpoint = self.version
        return True

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """The new commit repeats the metadata of the last one, since readers take them from the last one."""
        metadata = {key: str(value) for key, value in self.metadata().items() if key.startswith("forebay")}
        try:
            self.handle.alter.set_table_properties(dict(properties), commit_properties=self._properties(None, metadata))
        except CommitFailedError as error:
            raise Conflict(f"{self.path}: {error}") from error
        self.refresh()

    def broken(self, names: Iterable[str] | None = None) -> list[str]:
        """Of the table's files (or of these) those that are not on the disk as they were written: a power cut may have
        left less of one than the log knows. Ends and sizes are looked at, not contents."""
        files = list(self.files())
        if names is not None:
            chosen = frozenset(names)
            files = [file for file in files if file.path in chosen]
        return [file.path for file in files if not whole(places.join(self.path, file.path), file.size)]

    def metadata(self) -> dict[str, object]:
        """The metadata of the last commit."""
        if self._metadata_of != self.version:
            self._metadata, self._metadata_of = dict(self.handle.history(1)[0]), self.version
        return dict(self._metadata)

    def history(self, limit: int) -> list[dict[str, object]]:
        """The metadata of the last commits, newest first."""
        return [dict(entry) for entry in self.handle.history(limit)]

    def left(self, hours: int) -> list[str]:
        """Files that a commit took out longer ago than this; some may be gone from the disk already."""
        paths = self.handle.vacuum(retention_hours=hours, dry_run=True, enforce_retention_duration=False)
        return [str(path) for path in paths]

    def partitions(self) -> dict[str, dict[str, str | None]]:
        """Each file's partition values as text; they are not in the file."""
        values_by_path = {}
        for row in _actions(self.handle).to_pylist():
            values = {name.removeprefix("partition."): value for name, value in row.items()
                      if name.startswith("partition.")}
            texts = {name: None if value is None else str(value) for name, value in values.items()}
            values_by_path[str(row["path"])] = texts
        return values_by_path

    def commit(self, add: Iterable[File] = (), remove: Iterable[str] = (), transaction: tuple[str, int] | None = None,
               metadata: Mapping[str, str] | None = None, changes_data: bool = True) -> int:
        """Files that come and files that leave, as one version.

        With `changes_data` false the rows stay what they were, or leave for good (`keep`): the feed of changes says
        nothing of it, and who follows the table need not look.
        """
        add, remove, now = tuple(add), tuple(remove), int(time.time() * 1000)
        actions: list[AddAction | RemoveAction] = [*self._additions(add, now, changes_data)]
        size_by_path = {file.path: file.size for file in self.files()} if remove else {}
        # With size and partition, though they are known already: no reader of the feed takes a removal without them.
        actions += [RemoveAction(path, changes_data, now, size_by_path.get(path, 0), {}) for path in remove]
        self._write(actions, "append", self.handle.schema(), transaction, metadata)
        if self._known is not None:
            for path in remove:
                self._known.pop(path, None)
            self._known.update((f.path, f) for f in add)
        return self.version

    def replace(self, files: Iterable[File], schema: pa.Schema, transaction: tuple[str, int] | None = None) -> int:
        """These files in the place of all others, and these columns, as one version."""
        files = tuple(files)
        actions = [*self._additions(files, int(time.time() * 1000), changes_data=True, schema=schema)]
        self._write(actions, "overwrite", Schema.from_arrow(schema), transaction)
        if self._known is not None:
            self._known = {file.path: file for file in files}
        return self.version

    def add_columns(self, columns: pa.Schema) -> int:
        """Columns that are NULL in all rows so far, as one version."""
        try:
            self.handle.alter.add_columns(list(Schema.from_arrow(columns).fields),
                                          commit_properties=self._properties(None, None))
        except CommitFailedError as error:
            raise places.explained(self.path, error) or Conflict(f"{self.path}: {error}") from error
        self.handle.update_incremental()
        return self.version

    def _additions(self, files: Iterable[File], now: int, changes_data: bool,
                   schema: pa.Schema | None = None) -> list[AddAction]:
        schema = schema or self.schema
        return [AddAction(f.path, f.size, {}, now, changes_data, json.dumps(statistics(f, schema))) for f in files]

    def _properties(self, transaction: tuple[str, int] | None, metadata: Mapping[str, str] | None) -> CommitProperties:
        ours = [Transaction(OURS, self.version + 1), *([Transaction(*transaction)] if transaction else [])]
        return CommitProperties(custom_metadata=dict(metadata or {}), max_commit_retries=0, app_transactions=ours)

    def _write(self, actions: list[AddAction | RemoveAction], mode: str, schema: Schema,
               transaction: tuple[str, int] | None, metadata: Mapping[str, str] | None = None) -> None:
        """One version; the files known so far are forgotten if somebody else's came with it."""
        before = self.version
        try:
            self.handle.create_write_transaction(actions, mode=mode, schema=schema,
                                                 commit_properties=self._properties(transaction, metadata))
        except CommitFailedError as error:
            raise places.explained(self.path, error) or Conflict(f"{self.path}: {error}") from error
        self.handle.update_incremental()      # the handle does not follow its own commits
        if self.version != before + 1:
            self._known = None

    def rows(self) -> pa.Table:
        """All rows of a small table; older files may lack columns, or say of others that they have no NULL."""
        contents = [pq.ParquetFile(places.opened(path)).read() for path in self.paths]
        if not contents:
            return self.schema.empty_table()
        return pa.concat_tables(contents, promote_options="default").select(self.schema.names).cast(self.schema)

    def append(self, rows: pa.Table, transaction: tuple[str, int] | None = None,
               metadata: Mapping[str, str] | None = None, most: int | None = None) -> int:
        """Writes rows as one file and commits it.

        Where there are `most` files of a small table already, they become one with it in the same commit.
        """
        replaced = self.files() if most is not None and len(self.files()) >= most else ()
        rows = pa.concat_tables([self.rows(), rows.cast(self.schema)]) if replaced else rows.cast(self.schema)
        written = [write(self.path, rows, unique("rows"))] if rows.num_rows else []
        return self.commit(written, [file.path for file in replaced], transaction, metadata)


def whole(path: str, size: int) -> bool:
    """Whether a Parquet file is there with this size and a footer; of a store's files always."""
    if isinstance(path, places.Remote):
        return True
    try:
        with open(path, "rb") as file:
            if file.seek(0, os.SEEK_END) != size:
                return False
            file.seek(-len(MAGIC), os.SEEK_END)
            return file.read() == MAGIC
    except OSError:
        return False


def exists(path: str) -> bool:
    """Whether there is a commit: a process that is killed while it makes a table leaves an empty log."""
    return places.holds(places.join(path, "_delta_log"), lambda name: name[:20].isdigit())


def open_table(path: str, version: int | None = None) -> Table:
    try:
        return Table(path, _handle(path, version))
    except TableNotFoundError as error:
        raise failed("no-table", f"{path} is not a Delta table",
                     "forebay doctor lists the tables of a warehouse") from error
    except (DeltaError, OSError) as error:
        damaged = failed("damaged-table", f"{path} cannot be read: {first_line(error)}",
                         "run `forebay doctor`; state tables can be rebuilt from the stream tables")
        raise places.explained(path, error) or damaged from error


def create(path: str, schema: pa.Schema, properties: Mapping[str, str] | None = None) -> Table:
    """Opens the table, made first if there is none; then it gets these properties."""
    if exists(path):
        return open_table(path)
    places.make_folder(path)
    configuration = {**RETENTION, **(properties or {})}
    try:
        handle = DeltaTable.create(path, schema=schema, mode="ignore", storage_options=places.options(path),
                                   configuration=configuration, raise_if_key_not_exists=False)
        return Table(path, handle)
    except (DeltaError, OSError) as error:
        raise places.explained(path, error) or error


def _last_checkpoint(path: str) -> int:
    """The version of the newest checkpoint, −1 if there is none."""
    try:
        with places.opened(places.join(path, "_delta_log", "_last_checkpoint")) as file:
            return int(json.load(file)["version"])
    except (OSError, ValueError, LookupError):
        return -1


def _handle(path: str, version: int | None) -> DeltaTable:
    return DeltaTable(path, version=version, storage_options=places.options(path))


def unique(label: str) -> str:
    """A file name that no other process makes."""
    return f"{label}-{os.urandom(8).hex()}.parquet"


def write(root: str, rows: pa.Table, name: str) -> File:
    """Floats get no bounds: Arrow leaves NaN out of them, and the engine would skip or keep whole files by bounds that
    are none.
    """
    bounded = [column.name for column in rows.schema if not pa.types.is_floating(column.type)]
    with places.draft(root) as here:
        pq.write_table(rows, os.path.join(here, name), compression="snappy", write_statistics=bounded)
        return describe(here, name)


def describe(root: str, name: str) -> File:
    """A file as its Parquet footer tells it."""
    path = places.join(root, name)
    footer = pq.read_metadata(places.opened(path) if isinstance(path, places.Remote) else path)
    low: dict[str, int] = {}
    high: dict[str, int] = {}
    nulls: dict[str, int] = {}
    unsure = set()
    for group in range(footer.num_row_groups):
        for index in range(footer.num_columns):
            column = footer.row_group(group).column(index)
            key, bounds, stats = column.path_in_schema, _bounds(column.statistics), column.statistics
            null_count = stats.null_count if stats is not None and stats.has_null_count else UNKNOWN
            nulls[key] = nulls.get(key, 0) + null_count
            if bounds is None:
                unsure.add(key)      # bounds that hold for some of the rows only would lose the others
                continue
            low[key] = min(low.get(key, bounds[0]), bounds[0])
            high[key] = max(high.get(key, bounds[1]), bounds[1])
    size, _ = places.size_and_time(path)
    for key in unsure & low.keys():
        del low[key], high[key]
    return File(name, footer.num_rows, size, low, high,
                {key: count for key, count in nulls.items() if count < UNKNOWN})


def _bounds(stats: pq.Statistics | None) -> tuple[int, int] | None:
    if stats is None or not stats.has_min_max:
        return None
    if stats.logical_type.type == "TIMESTAMP":      # as numbers: an instant as a Python value makes Arrow import pandas
        unit = NANOSECONDS[json.loads(stats.logical_type.to_json())["timeUnit"]]
        return stats.min_raw * unit // 1000, stats.max_raw * unit // 1000
    low, high = _integer(stats.min), _integer(stats.max)
    return None if low is None or high is None else (low, high)


def _integer(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return micros(value) if isinstance(value, datetime) else None


def _actions(handle: DeltaTable) -> pa.Table:
    """Neither pa.table(…) nor an instant with a zone as a Python value: both make Arrow import pandas, a large part of
    a short command's time.
    """
    actions = pa.RecordBatchReader.from_stream(handle.get_add_actions(flatten=True)).read_all()
    fields = []
    for column in actions.schema:
        fields.append(pa.field(column.name, pa.timestamp("us") if pa.types.is_timestamp(column.type) else column.type))
    return actions.cast(pa.schema(fields))


def _integers_under(row: Mapping[str, object], prefix: str) -> dict[str, int]:
    """Those values of a row that are integers or instants, of the columns whose names begin so."""
    values = {name.removeprefix(prefix): _integer(value) for name, value in row.items() if name.startswith(prefix)}
    return {name: value for name, value in values.items() if value is not None}


def statistics(file: File, schema: pa.Schema) -> dict[str, object]:
    """Delta's file statistics. Others keep timestamps to the millisecond there; to the microsecond, a file whose last
    row is just before a boundary is known to end before it."""
    types = {column.name: column.type for column in schema}

    def as_json(bounds: Mapping[str, int]) -> dict[str, object]:
        values: dict[str, object] = {}
        for name, bound in bounds.items():
            if pa.types.is_timestamp(types.get(name, pa.null())):
                values[name] = instant(bound).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            elif pa.types.is_integer(types.get(name, pa.null())):
                values[name] = bound
        return values

    return {"numRecords": file.rows, "minValues": as_json(file.low), "maxValues": as_json(file.high),
            "nullCount": {name: count for name, count in file.nulls.items() if name in types}}
