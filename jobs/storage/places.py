"""Where bytes are: a local path is a plain string, and a `Remote` is a URI that carries how its store is reached; no
table and no row is known here.

Each function takes either. A local path costs one check of its class; all that a store needs is imported when the first
remote path is used.
"""
from __future__ import annotations

import ctypes
import io
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from jobs.storage import disk, store
from optimizer.errors import ForebayError


class Remote(str):
    """A URI with its store's settings: it is pickled with them, so that a task elsewhere reads and writes as the driver
    does.

    Shown, it has no secret.
    """

    settings: store.Settings

    def __new__(cls, uri: str, settings: store.Settings) -> Remote:
        remote = super().__new__(cls, uri)
        remote.settings = settings
        return remote

    def __reduce__(self) -> tuple[type[Remote], tuple[str, store.Settings]]:
        return Remote, (str(self), self.settings)

    @property
    def key(self) -> str:
        """Bucket and key, as Arrow wants them."""
        return self.split("://", 1)[1].rstrip("/")


def place(path: str, settings: Mapping[str, str]) -> str:
    """What a warehouse is called in forebay.yml, as this module's functions take it."""
    return Remote(path.rstrip("/"), store.settings(path, settings)) if "://" in path else path


def join(root: str, *parts: str) -> str:
    return Remote("/".join((root, *parts)), root.settings) if isinstance(root, Remote) else os.path.join(root, *parts)


def options(path: str) -> dict[str, str] | None:
    """delta-rs's storage options."""
    return store.options(path.settings) if isinstance(path, Remote) else None


def make_folder(path: str) -> None:
    """A store has none."""
    if not isinstance(path, Remote):
        with disk.writing(path):
            os.makedirs(path, exist_ok=True)


def holds(path: str, accept: Callable[[str], bool]) -> bool:
    """Whether a folder has a name like this; it looks no further than the first. A store has no empty folders."""
    if isinstance(path, Remote):
        return bool(_info(path).type.name == "Directory")
    try:
        with os.scandir(path) as entries:
            return any(accept(entry.name) for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return False


def is_file(path: str) -> bool:
    return bool(_info(path).is_file) if isinstance(path, Remote) else os.path.isfile(path)


def listed(path: str) -> list[str]:
    """Names in a folder, none where there is no folder."""
    if isinstance(path, Remote):
        return sorted(entry.base_name for entry in _under(path, deep=False))
    return sorted(os.listdir(path)) if os.path.isdir(path) else []


def newest(path: str) -> float:
    """When the file, or the last file in the folder, was written: seconds since 1970, 0 where there is none."""
    if isinstance(path, Remote):
        entries = [_info(path), *_under(path, deep=True)]
        return max((entry.mtime_ns / 1e9 for entry in entries if entry.mtime_ns), default=0.0)
    if not os.path.isdir(path):
        return os.path.getmtime(path)
    files = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]
    return max((os.path.getmtime(file) for file in files), default=0.0)


def size_and_time(path: str) -> tuple[int, int]:
    """Bytes, and nanoseconds since 1970."""
    if isinstance(path, Remote):
        info = _info(path)
        if info.size is None:
            raise FileNotFoundError(f"{path} is not there")
        return info.size, info.mtime_ns or 0
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


def opened(path: str) -> Any:
    """A binary file to read."""
    if not isinstance(path, Remote):
        return open(path, "rb")
    with store.reached(path):
        return io.BytesIO(store.whole(path.settings, path.key))


@contextmanager
def in_parts(path: str) -> Iterator[Any]:
    """A binary file of which only parts are read, wherever they lie in it."""
    if not isinstance(path, Remote):
        with open(path, "rb") as local:
            yield local
        return
    with store.reached(path), store.filesystem(path.settings).open_input_file(path.key) as file:
        yield file


@contextmanager
def fetched(path: str) -> Iterator[str]:
    """A local file with the same bytes and ending: what parses texts jumps about in them, and unpacks."""
    if not isinstance(path, Remote):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="forebay-fetched-") as here:
        local = os.path.join(here, os.path.basename(path))
        with store.reached(path), open(local, "wb") as file:
            file.write(store.whole(path.settings, path.key))
        yield local


def sync(path: str) -> None:
    """Everything written so far to the file system of this folder is on its disk when this returns; what a store takes
    is kept when it says so.

    One call for all files: each by itself costs four milliseconds on a disk, all together hardly more than one."""
    if isinstance(path, Remote):
        return
    if not hasattr(_libc(), "syncfs"):      # not Linux
        return os.sync()
    folder = os.open(path, os.O_RDONLY)
    try:
        if _libc().syncfs(folder) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
    finally:
        os.close(folder)


@lru_cache(maxsize=1)
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def delete(path: str) -> None:
    """Whether it is there or not."""
    try:
        store.filesystem(path.settings).delete_file(path.key) if isinstance(path, Remote) else os.unlink(path)
    except FileNotFoundError:
        pass


def delete_folder(path: str) -> None:
    if isinstance(path, Remote):
        for entry in _under(path, deep=True):
            if entry.is_file:
                store.filesystem(path.settings).delete_file(entry.path)
    else:
        shutil.rmtree(path, ignore_errors=True)


def copy(source: str, target: str) -> None:
    """The same bytes under another name."""
    if isinstance(source, Remote) and isinstance(target, Remote):
        store.filesystem(source.settings).copy_file(source.key, target.key)
    else:
        make_folder(os.path.dirname(target))
        shutil.copyfile(source, target)


def move(source: str, target: str) -> None:
    if isinstance(source, Remote) and isinstance(target, Remote):
        store.filesystem(source.settings).move(source.key, target.key)
    else:
        os.rename(source, target)


@contextmanager
def draft(folder: str) -> Iterator[str]:
    """A local folder to write files into: the folder itself, or one whose files are sent to the store when all went
    well.

    A whole file is one request, or a few; a writer on the store itself makes one for each of its writes, and the footer
    has to be read back.
    """
    if not isinstance(folder, Remote):
        make_folder(folder)
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="forebay-draft-") as here:
        yield here
        with store.reached(folder):
            for name in sorted(os.listdir(here)):
                store.send(folder.settings, os.path.join(here, name), f"{folder.key}/{name}")


def explained(path: str, error: BaseException) -> ForebayError | None:
    """The error as a person needs it, where a store or the file system is at fault; else None."""
    error_of_store = store.explained(path, error) if isinstance(path, Remote) else None
    return error_of_store or disk.explained(error, path)


def _info(path: Remote) -> Any:
    with store.reached(path):
        return store.filesystem(path.settings).get_file_info(path.key)


def _under(path: Remote, deep: bool) -> list[Any]:
    with store.reached(path):
        return store.under(path.settings, path.key, deep)
