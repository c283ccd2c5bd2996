"""Azure Stream Analytics' form of several windows, lifted out of a text: Windows(…), System.Window().Id, TIMESTAMP BY.

Offsets stay, nothing is planned.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from math import gcd

from optimizer.errors import ForebayError
from optimizer.query.model import NamedWindow
from optimizer.query.windows import Window, check
from optimizer.sql.text import Lifted, Source, blanked, located
from optimizer.sql.windows import length

MOST = 1_000
LONGEST_NAME = 100
FORM = "write Windows(Window('20 min', TumblingWindow(minute, 20)), Window('30 min', HoppingWindow(minute, 30, 10)))"
_ID = re.compile(r"\bSystem\s*\.\s*Window\s*\(\s*\)\s*\.\s*Id\b", re.IGNORECASE)
_SET = re.compile(r"\bWindows\s*\(", re.IGNORECASE)
_STAMP = re.compile(r"\bTIMESTAMP\s+BY\s+((?:\w+\s*\.\s*)?\w+|`x*`)", re.IGNORECASE)
_STRAY = re.compile(
    r"\bSystem\s*\.\s*Window\b|\bWindows?\s*\(|"
    r"\b(Tumbling|Hopping|Sliding|Session|Snapshot)Window\s*\(|\bTIMESTAMP\s+BY\b",
    re.IGNORECASE)
_ENTRY = re.compile(
    r"\s*Window\s*\(\s*(?P<quote>['\"])(?P<id>x*)(?P=quote)\s*,\s*(?P<kind>\w+)\s*\((?P<lengths>[^()]*)\)\s*\)\s*",
    re.IGNORECASE)


def lift(source: Source) -> Source:
    """The text with the form's parts replaced by blanks, the set by one name and every System.Window().Id by another.

    Unchanged where it has none.
    """
    sets = list(_SET.finditer(source.masked))
    if not sets:
        return _without(source)
    if len(sets) > 1:
        raise source.error("bad-window", "a query has one Windows(…)", sets[1].start(), "list all windows in one")
    start, end = sets[0].start(), _closing(source, sets[0].end())
    if not re.search(r"\bGROUP\s+BY\b", source.masked[:start], re.IGNORECASE):
        raise source.error("bad-window", "Windows(…) stands in GROUP BY", start,
                           "for instance GROUP BY device, Windows(…)")
    named = _windows(source, sets[0].end(), end - 1)
    marked = _named(source, start, end)
    ids = {start}
    for match in _ID.finditer(source.masked):
        ids.add(match.start())
        marked = _named(marked, match.start(), match.end())
    stamps = tuple(
        Lifted(m.start(), m.end(), source.plain[m.start(1):m.end(1)]) for m in _STAMP.finditer(marked.masked))
    for stamp in stamps:
        marked = blanked(marked, stamp.start, stamp.end)
    return replace(_without(marked), set=named, ids=frozenset(ids), stamps=stamps, set_start=start)


def _without(source: Source) -> Source:
    """A part of the form where it has no meaning is refused."""
    if match := _STRAY.search(source.masked):
        raise source.error(
            "bad-window",
            f"{source.plain[match.start():match.end()].strip()} … belongs to a query with Windows(…) in GROUP BY",
            match.start(), f"{FORM}; or one window after the stream: FROM stream [WINDOW 1 HOUR]")
    return source


def _named(source: Source, start: int, end: int) -> Source:
    """A plain name in the place of a part; who meets it looks at where it stands, not at what it says."""
    def put(text: str) -> str:
        return text[:start] + re.sub(r"[^\n]", " ", text[start:end]).replace(" ", "w", 1) + text[end:]
    return replace(source, plain=put(source.plain), masked=put(source.masked))


def _closing(source: Source, at: int) -> int:
    depth = 1
    for match in re.compile(r"[()]").finditer(source.masked, at):
        depth += 1 if match[0] == "(" else -1
        if not depth:
            return match.end()
    raise source.error("syntax", "Windows( is not closed", at - 1, FORM)


def _windows(source: Source, start: int, end: int) -> tuple[NamedWindow, ...]:
    windows: list[NamedWindow] = []
    for at, stop in _pieces(source.masked, start, end):
        one = _window(source, at, stop)
        if any(one.name == w.name for w in windows):
            raise source.error("duplicate-window", f"two windows are called {one.name!r}", at,
                               "their ids tell the answers apart")
        if any((one.range, one.slide) == (w.range, w.slide) for w in windows):
            raise source.error("duplicate-window", f"the window {one.name!r} is there already under another id", at,
                               "name each window once")
        windows.append(one)
    if len(windows) > MOST:
        raise source.error("too-many-windows", f"{len(windows):,} windows are given, at most {MOST:,} are possible",
                           start, "make several queries")
    return tuple(windows)


def _pieces(masked: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """What the commas outside parentheses separate, from its first character on."""
    depth, since = 0, start
    for at in range(start, end + 1):
        if at == end or masked[at] == "," and not depth:
            first = since + len(masked[since:at]) - len(masked[since:at].lstrip())
            yield min(first, at), at
            since = at + 1
        depth += (masked[at] == "(") - (masked[at] == ")")


def _window(source: Source, at: int, stop: int) -> NamedWindow:
    match = _ENTRY.fullmatch(source.masked, at, stop)
    if match is None:
        text = source.plain[at:stop].strip()
        raise source.error("bad-window", f"{text[:60]} is not a window with an id" if text else "a window is missing",
                           at, FORM)
    name, kind = source.plain[match.start("id"):match.end("id")], match["kind"].lower()
    if not 1 <= len(name) <= LONGEST_NAME or "\\" in name or "\n" in name:
        raise source.error("bad-window", f"a window's id has 1 to {LONGEST_NAME} characters and no escapes",
                           match.start("id"), "for instance '20 min'")
    lengths = [x.strip() for x in match["lengths"].split(",")]
    if kind not in ("tumblingwindow", "hoppingwindow"):
        raise source.error("not-supported", f"{match['kind']} is not accepted", match.start("kind"),
                           "there are TumblingWindow and HoppingWindow")
    if len(lengths) != (2 if kind == "tumblingwindow" else 3):
        form = "TumblingWindow(unit, length)" if kind == "tumblingwindow" else "HoppingWindow(unit, length, hop)"
        raise source.error("bad-window", f"{match['kind']} takes {form}", match.start("kind"), FORM)
    try:
        size, slide = length(lengths[1], lengths[0]), length(lengths[-1], lengths[0])
    except ForebayError as error:
        raise located(source.original, error, match.start("lengths")) from None
    if slide > size:
        raise source.error("bad-window", f"a hop of {lengths[2]} leaves gaps between windows of length {lengths[1]}",
                           match.start("lengths"), "the hop is at most the length: HoppingWindow(unit, length, hop)")
    return NamedWindow(name, size, slide)


def envelope(source: Source, batch: int) -> Window:
    """The window that holds them all: the longest range, moving by what divides every range and slide."""
    step = gcd(*(gcd(window.range, window.slide) for window in source.set))
    if step % batch:
        raise source.error(
            "bad-window", "lengths and hops of several windows must be multiples of the batch", source.set_start,
            f"{step / 1_000_000:g} s, which divides them all, is not a multiple of {batch / 1_000_000:g} s")
    whole = Window("hopping", max(w.range for w in source.set), step)
    try:
        check(whole, batch)
    except ForebayError as error:
        raise located(source.original, error, source.set_start) from None
    return whole
