"""How documents are laid out: lines, tables, a line of progress; control characters never reach the terminal."""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from forebay import show

if TYPE_CHECKING:
    from rich.console import Console

Text = Callable[[TextIO], None]
PIPED = 10_000               # a pipe has no width: no line is cut there


def console(out: TextIO) -> Console:
    from rich.console import Console  # a tenth of a second that --json need not pay

    return Console(file=out, markup=False, highlight=False, emoji=False, soft_wrap=True,
                   width=None if out.isatty() else PIPED)


def table(out: TextIO, names: Sequence[str], rows: Iterable[Sequence[Any]],
          right: Sequence[bool] | None = None) -> None:
    from rich import box
    from rich.table import Table

    layout = Table(box=box.SIMPLE_HEAD if out.isatty() else None, pad_edge=False, show_edge=False, header_style="bold")
    for i, name in enumerate(names):
        layout.add_column(visible(name), justify="right" if right and right[i] else "left", overflow="fold")
    for row in rows:
        layout.add_row(*map(cell, row))
    console(out).print(layout)


def cell(value: Any) -> str:
    return "NULL" if value is None else visible(str(value).lower() if isinstance(value, bool) else str(value))


def line(out: TextIO, text: str) -> None:
    console(out).print(text)


def visible(value: str) -> str:
    """Control characters of a value must not steer the terminal."""
    return value if value.isprintable() else "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in value)


@contextmanager
def progress(what: str) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """A line on the terminal that counts boundaries; nothing where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield lambda entry: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(what, total=None)
        count = 0

        def count_boundary(entry: Mapping[str, Any]) -> None:
            nonlocal count
            count += 1
            bar.update(task, description=f"{what}: {count} boundaries, the last {show.iso(entry['boundary'])}")

        yield count_boundary
