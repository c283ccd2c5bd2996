"""A store as a file system that DuckDB reads from.

It writes nothing (files are sent whole, see jobs.storage.places).
"""
from __future__ import annotations

import io
from datetime import datetime
from typing import Any

from fsspec import AbstractFileSystem

from jobs.storage import store
from optimizer.time import EPOCH

UNCHANGED = EPOCH      # our files are written once, under names of their own
MOST = 100_000


class Files(AbstractFileSystem):      # type: ignore[misc]
    """A small file is fetched whole: three requests (its end, its footer, its columns) cost more than its few bytes."""

    cachable = False                  # fsspec's cache of instances lives as long as the process and goes by arguments

    def __init__(self, key: store.Settings) -> None:
        super().__init__()
        self.protocol = store.protocol(key)
        self.arrow = store.filesystem(key)
        self.sizes: dict[str, int] = {}

    def _strip_protocol(self, path: str) -> str:      # type: ignore[override]
        return path.split("://", 1)[-1]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        return {"name": path, "size": self.size(path), "type": "file", "mtime": UNCHANGED}

    def size(self, path: str) -> int:
        """As it was when it was opened: DuckDB asks several times, and each would be a request."""
        if path not in self.sizes:
            info = self.arrow.get_file_info(self._strip_protocol(path))
            if not info.is_file:
                raise FileNotFoundError(path)
            self.sizes[path] = info.size
        return self.sizes[path]

    def modified(self, path: str) -> datetime:
        return UNCHANGED

    def exists(self, path: str, **_: Any) -> bool:
        return path in self.sizes or bool(self.arrow.get_file_info(self._strip_protocol(path)).is_file)

    def glob(self, path: str, **_: Any) -> list[str]:
        """Paths are given one by one, never as patterns."""
        return [path]

    def open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        if mode != "rb":
            raise PermissionError(f"{path} is only read here")
        file = self.arrow.open_input_file(self._strip_protocol(path))
        if len(self.sizes) >= MOST:
            self.sizes.clear()
        self.sizes[path] = file.size()
        if self.sizes[path] > store.WHOLE:
            return file
        with file:
            return io.BytesIO(file.read())
