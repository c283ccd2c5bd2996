"""How documents are laid out: lines and tables; control characters never reach the terminal."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

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
