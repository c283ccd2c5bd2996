"""The in-process vectorised engine: the only place that imports DuckDB.

A connection is one thread's, sees no network and loads no extension.
"""
from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import duckdb
import pyarrow as pa

from jobs.engine.memory import of_process
from jobs.storage import store
from jobs.storage.places import Remote
from optimizer.expression.dialect import string
from optimizer.expression.scalar import DUCKDB_SETTINGS

MEMORY = of_process()      # of an engine whose task was told nothing else; beyond it an engine spills
SPILL = os.path.join(tempfile.gettempdir(), f"forebay-spill-{os.getuid()}")      # a folder of each process below it
Connection = duckdb.DuckDBPyConnection
Error = duckdb.Error

# What a row or an answer can bring about, as opposed to a broken file, disk or program.
DATA_ERRORS = (duckdb.OutOfRangeException, duckdb.ConversionException, duckdb.InvalidInputException)
# our mistakes; a damaged file can bring about any other
PROGRAM_ERRORS = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)
EXHAUSTED = (duckdb.OutOfMemoryException,)      # what cannot be spilled did not fit
INTERRUPTED = (duckdb.InterruptException,)
_SHARED: dict[int, Connection] = {}                        # by process: an engine does not survive a fork
# by process: what its engine may take, also the next one after an error
_GIVEN: dict[int, str] = {}
BATCH_ROWS = 50_000
_QUIET = "SET enable_progress_bar = false"                 # it would draw on stdout, which is for answers


def connect(threads: int = 1, memory: str = MEMORY) -> Connection:
    """A fresh engine in UTC; insertion order is not kept, since no answer depends on it and spilling needs it gone."""
    con = duckdb.connect(
        config={
            "threads": threads,
            "memory_limit": memory,
            "temp_directory": _spill_folder(os.getpid()),
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "preserve_insertion_order": "false"
        })
    # global: a cursor inherits those only
    for setting in (*(re.sub("^SET ", "SET GLOBAL ", s) for s in DUCKDB_SETTINGS), _QUIET):
        con.execute(setting)
    return con


@lru_cache(maxsize=1)
def _spill_folder(process: int) -> str:
    """This process's own (a worker is a fork); what processes left behind that were killed goes first."""
    for name in os.listdir(SPILL) if os.path.isdir(SPILL) else []:
        if name.isdigit() and not _lives(int(name)):
            shutil.rmtree(os.path.join(SPILL, name), ignore_errors=True)
    os.makedirs(SPILL, mode=0o700, exist_ok=True)
    folder = os.path.join(SPILL, str(process))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def own_folder() -> str:
    """For files of this process alone, which leave the disk with it."""
    return _spill_folder(os.getpid())


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def give(memory_limit: str) -> None:
    """What this process's shared engine may take from here on."""
    if _GIVEN.get(os.getpid()) != memory_limit:
        _GIVEN[os.getpid()] = memory_limit
        con = shared()
        con.execute(f"SET memory_limit = '{memory_limit}'")
        con.close()


def shared() -> Connection:
    """A connection to this process's one-thread engine, 60 times cheaper than an engine.

    Temporary tables are its own, rows keep the order of their file.
    """
    if os.getpid() not in _SHARED:
        _SHARED[os.getpid()] = connect(memory=_GIVEN.get(os.getpid(), MEMORY))
        _SHARED[os.getpid()].execute("SET preserve_insertion_order = true")
    con = _SHARED[os.getpid()].cursor()
    con.execute(_QUIET)
    return con


@contextmanager
def interrupted_at(con: Connection, until: float | None) -> Iterator[None]:
    """A statement that the connection still runs at this second since 1970 ends with INTERRUPTED; None: never."""
    if until is None:
        yield
        return
    alarm = threading.Timer(max(until - time.time(), 0.0), con.interrupt)
    alarm.daemon = True
    alarm.start()
    try:
        yield
    finally:
        alarm.cancel()


def discard() -> None:
    """Ends the shared engine, and what it has spilled: after some errors it answers nothing more."""
    if os.getpid() in _SHARED:
        _SHARED.pop(os.getpid()).close()
    shutil.rmtree(os.path.join(SPILL, str(os.getpid())), ignore_errors=True)


def table(con: Connection, sql: str) -> pa.Table:
    return con.sql(sql).to_arrow_table()


def batches(con: Connection, sql: str) -> Iterator[pa.RecordBatch]:
    """The rows a batch at a time; the connection lives as long as there are any."""
    yield from con.sql(sql).to_arrow_reader(BATCH_ROWS)
    con.close()


def about_data(error: Exception) -> bool:
    """Whether a value brought the error about (the query is at fault), not a file, the disk or this program."""
    is_about_files = any(word in str(error) for word in ("magic bytes", "arquet", "TProtocol", "No files found"))
    return isinstance(error, DATA_ERRORS) and not is_about_files


def files(con: Connection, paths: tuple[str, ...]) -> str:
    """Paths as read_parquet takes them; a folder called `a=b` gives its rows no column a."""
    return f"{listed(con, paths)}, hive_partitioning = false"


def listed(con: Connection, paths: tuple[str, ...]) -> str:
    """Paths as a list, after the engine has learnt to reach the stores they are in."""
    for settings in {path.settings for path in paths if isinstance(path, Remote)}:
        if not con.filesystem_is_registered(store.protocol(settings)):
            from jobs.storage.store_files import Files  # a third of a second that local warehouses need not pay

            con.register_filesystem(Files(settings))
    return file_list(paths)


def file_list(paths: tuple[str, ...]) -> str:
    return "[" + ", ".join(string(_escaped(path)) for path in paths) + "]"


def _escaped(path: str) -> str:
    """A path as the engine is to read it: it takes every path for a pattern, and `a[1].parquet` for a1.parquet."""
    if isinstance(path, Remote):
        return f"{store.protocol(path.settings)}://{path.key}"
    return "".join(f"[{c}]" if c in "[*?" else c for c in path)
