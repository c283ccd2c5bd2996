"""`forebay test` as people read it."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from forebay.text.layout import Text, line, visible


def tested(document: Mapping[str, Any]) -> Text:
    """`document` as show.tested makes it."""
    def text(out: TextIO) -> None:
        tests = document["tests"]
        for test in tests:
            state = "passed" if test["passed"] else "FAILED"
            line(out, visible(f"{state}  {test['file']}: {test['test']} ({test['seconds']:.1f} s)"))
            for difference in test["differences"]:
                _show_difference(out, difference)
        failed = sum(not test["passed"] for test in tests)
        line(out, f"{len(tests):,} {'test' if len(tests) == 1 else 'tests'}, {failed:,} failed")
    return text


def _show_difference(out: TextIO, difference: Mapping[str, Any]) -> None:
    under = f" (under {difference['plan']})" if difference["plan"] is not None else ""
    line(out, visible(f"    {difference['message']}{under}"))
    _show_rows(out, "missing ", difference["missing"], difference["missing_rows"])
    _show_rows(out, "too many", difference["too_many"], difference["too_many_rows"])


def _show_rows(out: TextIO, title: str, rows: Sequence[Mapping[str, Any]], count: int) -> None:
    for row in rows:
        values = ", ".join(f"{name}: {'null' if value is None else value}" for name, value in row.items())
        line(out, visible(f"        {title}  {{{values}}}"))
    if count > len(rows):
        line(out, f"        {title}  … and {count - len(rows):,} more")
