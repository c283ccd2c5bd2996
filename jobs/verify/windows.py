"""A query with several windows as one text a window, each answered at its own ends.

By its own rules, sharing nothing with the planner.
"""
from __future__ import annotations

import re
from dataclasses import dataclass

from jobs.verify.sql import UNITS, straight

SET = re.compile(r"\bwindows\s*\((?P<list>(?:[^()']|'[^']*'|\((?:[^()']|'[^']*'|\([^()]*\))*\))*)\)", re.I)
ONE = re.compile(
    r"\bwindow\s*\(\s*'(?P<name>[^']*)'\s*,\s*\w+window\s*\(\s*(?P<unit>\w+?)s?\s*,"
    r"\s*(?P<range>\d+)\s*(?:,\s*(?P<hop>\d+)\s*)?\)\s*\)",
    re.I)
STAMP = re.compile(r"\btimestamp\s+by\s+(?:\w+\s*\.\s*)?(?:\w+|`[^`]*`)", re.I)
NAMED = r"\bsystem\s*\.\s*window\s*\(\s*\)\s*\.\s*id\b"
SELECTED = re.compile(rf"(\bselect\s+|,\s*){NAMED}(?=\s*(?:,|\bfrom\b))", re.I)


@dataclass(frozen=True)
class Variant:
    """One window's query, with the window's range and slide in microseconds for all streams.

    None where the text says windows itself.
    """

    text: str
    window: tuple[int, int] | None = None


def variants(text: str) -> tuple[Variant, ...]:
    """The text itself, or one for each of its windows: the id becomes a constant that is also grouped by."""
    plain = straight(text)
    windows = SET.search(re.sub(r'"([^"]*)"', r"'\1'", plain))
    if not windows:
        return (Variant(text),)
    around = STAMP.sub(" ", plain[:windows.start()]), STAMP.sub(" ", plain[windows.end():])
    return tuple(_variant(around, window) for window in ONE.finditer(windows["list"]))


def _variant(around: tuple[str, str], window: re.Match[str]) -> Variant:
    """The text with the id of one of its windows as a constant, and the range and slide of that window."""
    constant, unit = f"CAST('{window['name']}' AS STRING)", UNITS[window["unit"].lower()]
    parts = []
    for part in around:
        with_output = SELECTED.sub(lambda match: f"{match[1]}{constant} AS Id", part)
        parts.append(re.sub(NAMED, lambda _: constant, with_output, flags=re.I))
    length, slide = int(window["range"]), int(window["hop"] or window["range"])
    return Variant(constant.join(parts), (length * unit, slide * unit))
