"""Where the answers of a query are, for ever: `results/NAME`, whoever it shares its work with, however often it is
replaced; and which columns the table has. All of it follows from the requests in the ledger; no table is read here.

A replacement may add columns, drop some, and widen types. Where a type changes otherwise, a new history begins at the
same address, and the rows of the old one stay in a table beside it.
"""
from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from jobs.ledger.queries import BEFORE_ALL, QueryChange, address_of, from_boundary, in_order
from optimizer.expression.types import Type, holds, parse_type
from optimizer.time import instant

Column = tuple[str, Type]
BEFORE = ".before-"      # `results/top.before-20250101T100000Z` has the rows of top before that boundary
PRIVATE = "shared"       # the folder of the tables in which answers of queries that share wait until they are public


@dataclass(frozen=True)
class Address:
    """The table of a query's answers as of a boundary.

    `Address("top", (("page", STRING), ("n", BIGINT)))` is `results/top` with these columns and `boundary`: those of
    every text that the query has had since its history began. `since` is the boundary at which that was, if rows of
    an earlier history are kept in `before`.
    """

    query: str
    columns: tuple[Column, ...]
    since: int = BEFORE_ALL
    before: str | None = None

    @property
    def path(self) -> str:
        return address_of(self.query)


@dataclass(frozen=True)
class ChangedColumn:
    """A column of whose type a replacement makes one that cannot hold all of its values; or that it spells otherwise.
    """

    before: Column
    after: Column

    def __str__(self) -> str:
        return f"{self.before[0]} {self.before[1]} becomes {self.after[0]} {self.after[1]}"


def latest_path(query: str) -> str:
    """Of the rows of the last published boundary."""
    return f"latest/{query}"


def before_path(query: str, boundary: int) -> str:
    """Of the history that ended before this boundary."""
    return f"{address_of(query)}{BEFORE}{instant(boundary):%Y%m%dT%H%M%SZ}"


def address(changes: Iterable[QueryChange], query: str, boundary: int | None = None) -> Address:
    """The query's address as of a boundary; None: as of all that was ever requested."""
    table = Address(query, ())
    for creation in _effective(changes, query, boundary):
        columns = columns_in(creation.columns)
        begins_anew = BEFORE in (creation.table or "") or bool(changed_columns(table.columns, columns))
        if begins_anew and table.columns:
            since = from_boundary(creation)
            table = Address(query, columns, since, before_path(query, since))
        else:
            table = Address(query, together(table.columns, columns), table.since, table.before)
    return table


def _effective(changes: Iterable[QueryChange], query: str, boundary: int | None) -> list[QueryChange]:
    """The creations that have answered, or will: of several at one boundary the last."""
    by_boundary = {}
    for change in in_order(change for change in changes if change.query == query):
        if change.action == "create" and (boundary is None or from_boundary(change) <= boundary):
            by_boundary[from_boundary(change)] = change
    return list(by_boundary.values())


@lru_cache(maxsize=4096)
def columns_in(text: str | None) -> tuple[Column, ...]:
    """Columns as the ledger writes them."""
    return tuple((name, parse_type(kind)) for name, kind in json.loads(text or "[]"))


def together(columns: Iterable[Column], more: Iterable[Column]) -> tuple[Column, ...]:
    """The columns, widened by those of another text, and after them what it adds."""
    kinds = dict(columns)
    return tuple({**kinds, **dict(more)}.items())


def changed_columns(columns: Iterable[Column], later: Iterable[Column]) -> list[ChangedColumn]:
    """What keeps answers with the later columns from standing in one table with those before."""
    column_by_name = {name.lower(): (name, kind) for name, kind in columns}
    changed = []
    for name, kind in later:
        before = column_by_name.get(name.lower())
        if before is not None and (before[0] != name or not holds(kind, before[1])):
            changed.append(ChangedColumn(before, (name, kind)))
    return changed
