"""One runner a pipeline: an OS lock that the kernel releases with the process, so a killed runner never blocks the
next.

It reads no table.
"""
from __future__ import annotations

import fcntl
import hashlib
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from jobs.storage import disk
from optimizer.errors import ForebayError

PATIENCE = 2.0       # seconds a second runner waits before it gives up (INTERFACE: exits 3 within 5 s)


@contextmanager
def held(warehouse: str, patience: float = PATIENCE) -> Iterator[None]:
    """Holds the pipeline, or raises an error that names the process that does.

    Between machines the ledger's put-if-absent decides; this is the fast path on one.
    """
    path = _lock_file(warehouse)
    with disk.writing(os.path.dirname(path)):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        file = open(path, "a+", encoding="utf-8")
    with file:
        _take(file.fileno(), path, time.monotonic() + patience)
        file.truncate(0)
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        file.write(f"process {os.getpid()} on {socket.gethostname()} since {now}")
        file.flush()
        try:
            yield
        finally:
            fcntl.flock(file.fileno(), fcntl.LOCK_UN)


def holder(warehouse: str) -> str | None:
    """Who holds the pipeline at this moment, as the lock's file says; None: nobody.

    It waits for nobody, and who takes the lock in this instant tries again.
    """
    try:
        with open(_lock_file(warehouse), encoding="utf-8") as file:
            try:
                fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return file.read() or "another process"
    except (FileNotFoundError, PermissionError):
        pass
    return None


def _lock_file(warehouse: str) -> str:
    """A store has no locks: its pipelines have theirs on this machine, for this user, by the warehouse's name."""
    if "://" not in warehouse:
        return os.path.join(warehouse, "ledger", ".lock")
    name = hashlib.blake2b(warehouse.encode(), digest_size=16).hexdigest()
    return os.path.join(tempfile.gettempdir(), f"forebay-locks-{os.getuid()}", f"{name}.lock")


def _take(handle: int, path: str, deadline: float) -> None:
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                with open(path, encoding="utf-8") as file:
                    holder = file.read() or "another process"
                raise ForebayError("held", f"the pipeline is held by {holder}",
                                   hint="wait for it, or end that process; `query …` and `pin` never wait",
                                   exit_code=3) from None
            time.sleep(0.05)
