"""Every table of a pipeline, by its path under the warehouse.

Each is opened once and followed from then on, since opening one reads its log anew.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from jobs.storage import places, tables
from jobs.storage.tables import Table


class Warehouse:
    """The tables under one root, a folder or a URI, with the handles that this process has open.

    `Warehouse("/data/shop/warehouse").table("streams/views")` opens the table of a stream; asked again it gives the
    same handle, which costs nothing. Following a table with `latest` costs one look for its next commit.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self._handles: dict[str, Table] = {}

    def path(self, *parts: str) -> str:
        """Where a table or a folder of them lies: `warehouse.path("streams", "views")`."""
        return places.join(self.root, *parts)

    def table(self, path: str, schema: pa.Schema | None = None, properties: Mapping[str, str] | None = None) -> Table:
        """As this process last saw it; created if there is none and a schema is given."""
        if path not in self._handles:
            place = self.path(path)
            handle = tables.open_table(place) if schema is None else tables.create(place, schema, properties)
            self._handles[path] = handle
        return self._handles[path]

    def latest(self, path: str, schema: pa.Schema | None = None, properties: Mapping[str, str] | None = None) -> Table:
        """As it is now. One handle serves everybody: a table that was given out before moves along."""
        handle = self._handles.get(path)
        if handle is not None and handle.stands():
            return handle.refresh()
        self._handles.pop(path, None)
        return self.table(path, schema, properties)

    def refresh(self) -> None:
        """All open tables as they are now, for other processes may have written; those that are gone are forgotten."""
        for path, table in list(self._handles.items()):
            if table.stands():
                table.refresh()
            else:
                del self._handles[path]

    def is_open(self, path: str) -> bool:
        return path in self._handles

    def open_tables(self) -> Iterator[Table]:
        return iter(list(self._handles.values()))

    def versions(self, kinds: tuple[str, ...]) -> dict[str, int]:
        """Of the open tables whose path begins like one of `kinds`: `versions(("streams/",))`."""
        return {path: table.version for path, table in self._handles.items() if path.startswith(kinds)}
