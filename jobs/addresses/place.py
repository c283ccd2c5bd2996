"""A query's two tables while they are brought up to a batch: rows are added to its address, and its last answer takes
the place of the one before.

Where it is known how far the tables have come they are not opened, which is most of what hundreds of queries cost.
"""
from __future__ import annotations

import pyarrow as pa

from jobs.addresses.columns import prepared, properties, schema_of
from jobs.ledger.addresses import Address, columns_in, latest_path
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.published import LogEnds
from jobs.ledger.queries import QueryState
from jobs.maintenance import integrity
from jobs.storage import failpoints, log_end
from jobs.storage.tables import File, Table

BATCH = "batch"          # the transaction that says of a table which batch it is brought up to


class Place:
    """The tables of one query, to be brought up to batch `number`.

    `Place(pipe, state, address, known, 7).add(file)` adds a file of rows, once however often it is done. `known` is how
    far they had come when answers were last published; it counts while the query has the columns that it had then.
    """

    def __init__(self, pipe: OpenPipeline, state: QueryState, address: Address, known: LogEnds | None,
                 number: int) -> None:
        self.state = state
        self.schema = schema_of(address.columns)
        self.latest_schema = schema_of(columns_in(state.columns))
        self.was_opened = False
        self._pipe = pipe
        self._address = address
        self._number = number
        self._known = known if known is not None and known.creation == state.creation else None
        self._results = self._known.results if self._known is not None else None
        self._latest: tuple[int, File | None] | None = None

    @property
    def folder(self) -> str:
        return self._pipe.path(self.state.address)

    @property
    def latest_folder(self) -> str:
        return self._pipe.path(latest_path(self.state.name))

    def table(self) -> Table:
        """At the address, with all columns that it needs; refused where somebody else has changed rows of it."""
        table = prepared(self._pipe, self._address)
        damage = integrity.changed_outside(self.state.address, table) if table.foreign else None
        if damage is not None:
            raise damage.error(self._pipe.pipeline.warehouse, [self.state.name])
        self._results, self.was_opened = table.version, True
        return table

    def add(self, file: File | None) -> None:
        """Rows come to the address."""
        if self._known is None:
            self._known = self._begun()
        known, transaction, files = self._known, (BATCH, self._number), _listed(file)
        if known is not None and log_end.commit_after(self.folder, known.results, self.schema, files, (), transaction):
            self._results = known.results + 1
        else:
            table = self.table()
            if table.transaction(BATCH) < self._number:
                table.commit(files, (), transaction)
            self._results = table.version
        failpoints.at("address.after-table")

    def _begun(self) -> LogEnds | None:
        """Of a query that never answered: both tables, empty; None where there is anything already."""
        if self._address.before is not None or self.schema != self.latest_schema:
            return None
        wanted = properties(self._pipe.pipeline)
        both = [log_end.begin(folder, self.schema, wanted) for folder in (self.folder, self.latest_folder)]
        return LogEnds(self.state.creation, 0, 0) if all(both) else None

    def show(self, file: File | None) -> None:
        """These rows, or none, are the last answer."""
        known, transaction, files = self._known, (BATCH, self._number), _listed(file)
        before = [File(known.file, 0, known.size)] if known is not None and known.file is not None else []
        if known is not None and log_end.commit_after(self.latest_folder, known.latest, self.latest_schema, files,
                                                      before, transaction):
            self._latest = known.latest + 1, file
        else:
            table = self._latest_table()
            if table.transaction(BATCH) < self._number:
                table.replace(files, self.latest_schema, transaction)
            self._latest = table.version, next(iter(table.files()), None)
        failpoints.at("address.after-table")

    def _latest_table(self) -> Table:
        table = self._pipe.warehouse.latest(latest_path(self.state.name), self.latest_schema,
                                            properties(self._pipe.pipeline))
        if table.schema != self.latest_schema and table.transaction(BATCH) < self._number:
            _make_room(table, self.latest_schema)
        return table

    def ends(self) -> LogEnds:
        """How far the tables have come now."""
        results = self._results if self._results is not None else self.table().version
        version, file = self._latest or (0, None)
        return LogEnds(self.state.creation, results, version, file.path if file else None, file.size if file else 0)


def _listed(file: File | None) -> list[File]:
    return [file] if file is not None else []


def _make_room(table: Table, schema: pa.Schema) -> None:
    """Before a last answer of other columns: no column changes while rows are there that have it, or who follows the
    table would see other rows leave than came.

    Columns that come are NULL in these rows; where one changes its type, or leaves, the rows leave before.
    """
    present = table.schema
    missing = [column for column in schema if column.name not in present.names]
    if [column for column in schema if column.name in present.names] != list(present):
        table.commit((), [file.path for file in table.files()])
    elif table.files():
        table.add_columns(pa.schema(missing))
