"""How far a run is, on stderr: a bar on a terminal, elsewhere a line every few seconds."""
from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from forebay import show

PAUSE = 5.0                # seconds between two lines where stderr is no terminal
MANY = 240                 # boundaries ahead from which on a run says at once how many there are


class RunProgress:
    """Counts the boundaries of a run: `ahead` is told how many are to run, `ran` each that has; shows nothing."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.count = 0
        self.left = 0

    def ahead(self, count: int) -> None:
        self.left = count

    def ran(self, entry: Mapping[str, Any]) -> None:
        self.count += 1
        self.left = max(self.left - 1, 0)

    def line(self, entry: Mapping[str, Any]) -> str:
        return f"{self.what}: {self.count:,} boundaries, the last {show.iso(entry['boundary'])}; {self.left:,} ahead"


class LinesOfProgress(RunProgress):
    """A line at the beginning of a long run, and one every PAUSE seconds."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self._last = time.monotonic()

    def ahead(self, count: int) -> None:
        super().ahead(count)
        if not self.count and count > MANY:
            print(f"forebay: {self.what}: {count:,} boundaries are ahead", file=sys.stderr, flush=True)

    def ran(self, entry: Mapping[str, Any]) -> None:
        super().ran(entry)
        if self.left and time.monotonic() - self._last >= PAUSE:
            self._last = time.monotonic()
            print(f"forebay: {self.line(entry)}", file=sys.stderr, flush=True)


@contextmanager
def progress(what: str) -> Iterator[RunProgress]:
    """Shows what it is told, until the run ends."""
    if not sys.stderr.isatty():
        yield LinesOfProgress(what)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(what, total=None)

        class BarOfProgress(RunProgress):
            """The same as a bar."""

            def ahead(self, count: int) -> None:
                super().ahead(count)
                bar.update(task, total=self.count + count)

            def ran(self, entry: Mapping[str, Any]) -> None:
                super().ran(entry)
                bar.update(task, completed=self.count, description=self.line(entry))

        yield BarOfProgress(what)
