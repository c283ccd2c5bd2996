"""Moves a warehouse of the first round to its addresses, once: rows that were in tables of queries that share
(`results/shared-…`), or of replacements with other columns (`results/NAME.2`), come to `results/NAME`.

What of it is published stays so: afterwards `ledger/boundaries` names every boundary. Each step is one commit with a
number, so it can be stopped and gone on with; the old folders go when all is done.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jobs.addresses.columns import BOUNDARY, prepared
from jobs.batch.shared import digest
from jobs.engine import kernel
from jobs.engine.work import write_file
from jobs.ledger import published
from jobs.ledger.addresses import address
from jobs.ledger.open_pipeline import OpenPipeline
from jobs.ledger.queries import QueryChange, address_of, from_boundary, in_order
from jobs.storage import failpoints, places, tables
from jobs.storage.tables import File, Table
from optimizer.expression.dialect import identifier, string
from optimizer.sharing.group import OWNER

MOVED = "moved"      # the transaction that counts the creations of a query whose rows have come to its address


@dataclass(frozen=True)
class Creation:
    """A text of a query that answered at boundaries `begin` <= t < `end`: the number-th of them.

    Its rows were in `table` while it was alone, and in `shared` while it shared.
    """

    number: int
    query: str
    begin: int
    end: int
    table: str
    shared: str


def move(pipe: OpenPipeline) -> None:
    """Nothing to do for a warehouse whose answers are public by their addresses, nor for a new one."""
    if published.upto(pipe.warehouse) is not None:
        return
    committed = pipe.ledger.committed()
    if committed is None:
        return
    changes = pipe.ledger.all_changes()
    for query in dict.fromkeys(change.query for change in changes if change.action == "create"):
        for creation in _creations(changes, query, committed):
            table = pipe.warehouse.latest(address_of(query)) if tables.exists(pipe.path(address_of(query))) else None
            if table is None or table.transaction(MOVED) < creation.number:
                _move(pipe, creation, changes)
                failpoints.at("address.after-move")


def _creations(changes: Sequence[QueryChange], query: str, committed: int) -> list[Creation]:
    """In the order in which they answered; boundaries that are not committed are left to the batch that has begun."""
    of_query = [c for c in in_order(c for c in changes if c.query == query) if c.action == "create"]
    ends = [*(from_boundary(creation) for creation in of_query[1:]), committed + 1]
    return [Creation(number, query, from_boundary(creation), min(end, committed + 1),
                     creation.table or address_of(query), f"results/shared-{digest(creation.columns or '[]')}")
            for number, (creation, end) in enumerate(zip(of_query, ends))]


def _move(pipe: OpenPipeline, creation: Creation, changes: Iterable[QueryChange]) -> None:
    if creation.begin >= creation.end:
        return
    table = prepared(pipe, address(changes, creation.query, creation.begin))
    files: list[File] = []
    if creation.table != address_of(creation.query):
        files += _copied(pipe, creation.table, table, creation, None)
    files += _copied(pipe, creation.shared, table, creation, creation.query)
    table.commit(files, (), (MOVED, creation.number))


def _copied(pipe: OpenPipeline, source: str, target: Table, creation: Creation, owner: str | None) -> list[File]:
    """The creation's rows of a table, as a file of another."""
    if not tables.exists(pipe.path(source)):
        return []
    table = pipe.warehouse.latest(source)
    files = tuple(places.join(table.path, file.path) for file in table.files()
                  if file.may_hold(BOUNDARY, creation.begin, creation.end - 1))
    if not files:
        return []
    con = kernel.connect()
    try:
        columns = ", ".join(identifier(name) for name in table.schema.names if name != OWNER or owner is None)
        where = f"epoch_us({BOUNDARY}) >= {creation.begin} AND epoch_us({BOUNDARY}) < {creation.end}"
        where += f" AND {OWNER} = {string(owner)}" if owner is not None else ""
        rows = f"SELECT {columns} FROM read_parquet({kernel.files(con, files)}) WHERE {where} ORDER BY {BOUNDARY}"
        return write_file(con, rows, target.path, "moved")
    finally:
        con.close()
