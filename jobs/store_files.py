"""A store as a file system that DuckDB reads from; it writes nothing (files are sent whole, see jobs.places)."""
from __future__ import annotations

import io
from typing import Any

from fsspec import AbstractFileSystem

from jobs import store


class Files(AbstractFileSystem):      # type: ignore[misc]
    """A small file is fetched whole: three requests (its end, its footer, its columns) cost more than its few bytes."""

    cachable = False                  # fsspec's cache of instances lives as long as the process and goes by arguments

    def __init__(self, key: store.Settings) -> None:
        super().__init__()
        self.protocol = store.protocol(key)
        self.arrow = store.filesystem(key)
        self.key = key

    def _strip_protocol(self, path: str) -> str:      # type: ignore[override]
        return path.split("://", 1)[-1]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        found = self.arrow.get_file_info(self._strip_protocol(path))
        if not found.is_file:
            raise FileNotFoundError(path)
        return {"name": path, "size": found.size, "type": "file", "mtime": found.mtime}

    def modified(self, path: str) -> Any:
        return self.info(path)["mtime"]

    def exists(self, path: str, **_: Any) -> bool:
        return bool(self.arrow.get_file_info(self._strip_protocol(path)).is_file)

    def glob(self, path: str, **_: Any) -> list[str]:
        """Paths are given one by one, never as patterns."""
        return [path]

    def open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        if mode != "rb":
            raise PermissionError(f"{path} is only read here")
        name = self._strip_protocol(path)
        file = self.arrow.open_input_file(name)
        if file.size() > store.WHOLE:
            return file
        with file:
            return _Known(file.read())


class _Known(io.BytesIO):
    """DuckDB asks for the length by seeking to the end."""
