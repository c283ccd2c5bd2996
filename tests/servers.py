"""What tests that start servers need: a port that nobody has, and patience until something is so."""
from __future__ import annotations

import socket
import time
from collections.abc import Callable


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def waited(condition: Callable[[], object], patience: float, every: float = 0.01) -> None:
    """Seconds, both."""
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(every)
