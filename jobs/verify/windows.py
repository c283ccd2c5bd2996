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
    return tuple(_variant(around, one) for one in ONE.finditer(windows["list"]))


def _variant(around: tuple[str, str], one: re.Match[str]) -> Variant:
    constant, unit = f"CAST('{one['name']}' AS STRING)", UNITS[one["unit"].lower()]
    before, after = (re.sub(NAMED, lambda _: constant, SELECTED.sub(lambda m: f"{m[1]}{constant} AS Id", part),
                            flags=re.I) for part in around)
    return Variant(f"{before}{constant}{after}", (int(one["range"]) * unit, int(one["hop"] or one["range"]) * unit))
