"""A query's text before the parser sees it: size and characters checked, typography made plain, windows and EVERY
lifted out.

Offsets stay.
"""
from __future__ import annotations

import re
from dataclasses import dataclass, replace

from optimizer.errors import ForebayError
from optimizer.query.model import NamedWindow

MOST_CHARACTERS = 100_000
MOST_PARENTHESES = 100
_QUOTES = {"'": "'", '"': '"', "`": "`", "\u2018": "\u2019", "\u201c": "\u201d"}
_PLAIN = {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'}
_SPACES = "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000\ufeff"
_ALLOWED = re.compile(r"[A-Za-z0-9_ \t\r\n.,()+\-*/%=<>!|;:\[\]&^~]")
_ESCAPES = "ntr\\'\"%_"
_TWO = {"!": "!=", ":": "::"}
_EVERY = re.compile(r"\bEVERY\s+([^\s,()]+)\s+(\w+)\s*\Z", re.IGNORECASE)


@dataclass(frozen=True)
class Lifted:
    """A bracket or clause taken out of the text: where it stood and what it said."""

    start: int
    end: int
    content: str


@dataclass(frozen=True)
class Source:
    """`plain` has the length of `original`, with blanks where `windows`, `every` and comments were; `masked` has x for
    what is quoted, too.

    `set`, `stamps` and `ids` are the parts of the multi-window form: Windows(…), TIMESTAMP BY, and where the window's
    id is named.
    """

    original: str
    plain: str
    masked: str
    windows: tuple[Lifted, ...]
    every: Lifted | None
    set: tuple[NamedWindow, ...] = ()
    stamps: tuple[Lifted, ...] = ()
    ids: frozenset[int] = frozenset()
    set_start: int | None = None

    def error(self, code: str, message: str, offset: int | None, hint: str | None = None) -> ForebayError:
        return located(self.original, ForebayError(code, message, hint=hint), offset)


def located(text: str, error: ForebayError, offset: int | None) -> ForebayError:
    """The error with the line and column of an offset, if it has none yet."""
    if offset is not None and error.line is None:
        before = text[:offset]
        error.line, error.column = before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
    return error


def read(text: str) -> Source:
    """The text, checked and made plain."""
    if len(text) > MOST_CHARACTERS:
        raise located(
            text,
            ForebayError("query-too-long", f"the query has {len(text):,} characters",
                         hint=f"at most {MOST_CHARACTERS:,} are accepted"), MOST_CHARACTERS)
    plain, masked = _Scan(text).run()
    _check_depth(text, masked)
    plain, masked = _trim_semicolons(text, plain, masked)
    windows = tuple(_windows(text, plain, masked))
    for window in windows:
        plain, masked = _blank(plain, window.start, window.end), _blank(masked, window.start, window.end)
    every = _every(text, plain, masked, windows)
    if every:
        plain, masked = _blank(plain, every.start, every.end), _blank(masked, every.start, every.end)
    return Source(text, plain, masked, windows, every)


def blanked(source: Source, start: int, end: int) -> Source:
    return replace(source, plain=_blank(source.plain, start, end), masked=_blank(source.masked, start, end))


def _blank(text: str, start: int, end: int) -> str:
    return text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]


class _Scan:
    """One pass over the text.

    `plain` goes to the parser, `masked` is the same with the content of quotes replaced, for looking at.
    """

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.plain: list[str] = []
        self.masked: list[str] = []

    def run(self) -> tuple[str, str]:
        while self.at < len(self.text):
            self._step(self.text[self.at])
        return "".join(self.plain), "".join(self.masked)

    def _step(self, char: str) -> None:
        two = self.text[self.at:self.at + 2]
        if char in _QUOTES:
            self._quoted(char)
        elif two == "--":
            end = self.text.find("\n", self.at)
            self._drop(len(self.text) if end < 0 else end)
        elif two == "/*":
            self._drop(self._comment_end())
        elif char in _SPACES:
            self._keep(" ", " ")
        else:
            self._check(char, two)
            self._keep(char, char)
            if char in _TWO:
                self._keep(char, char) if char != "!" else self._keep("=", "=")

    def _keep(self, plain: str, masked: str) -> None:
        self.plain.append(plain)
        self.masked.append(masked)
        self.at += 1

    def _drop(self, end: int) -> None:
        blank = _blank(self.text[self.at:end], 0, end - self.at)
        for char in self.text[self.at:end]:
            self._refuse_control(char)
        self.plain.append(blank)
        self.masked.append(blank)
        self.at = end

    def _comment_end(self) -> int:
        """Bracketed comments nest, as in Spark."""
        if self.text.startswith("/*+", self.at):
            raise self._error("hint", "hints are not accepted",
                              "leave the /*+ … */ out: plans are chosen by forebay, see `forebay pin`")
        depth, start = 0, self.at
        for match in re.compile(r"/\*|\*/").finditer(self.text, start):
            depth += 1 if match[0] == "/*" else -1
            if not depth:
                return match.end()
        raise self._error("syntax", "a comment is not closed", "end it with */")

    def _quoted(self, opening: str) -> None:
        """A string or a quoted identifier.

        A doubled quote inside a string is written as an escaped one, which has the same length.
        """
        start, closing = self.at, _QUOTES[opening]
        mark = _PLAIN.get(opening, opening)
        self._keep(mark, mark)
        while self.at < len(self.text):
            char, following = self.text[self.at], self.text[self.at + 1:self.at + 2]
            self._refuse_control(char)
            if char == closing or char == mark:
                if following != char or opening != mark:
                    return self._keep(mark, mark)
                self._keep("\\" if mark != "`" else "`", "x")
                self._keep(mark, "x")
            elif char == "\\" and mark != "`":
                self._escape(following)
            else:
                self._keep(char, "\n" if char == "\n" else "x")
        self.at = start
        raise self._error("syntax", f"the quote {opening} is not closed", f"end it with {closing}")

    def _escape(self, following: str) -> None:
        if not following or following not in _ESCAPES:
            raise self._error("bad-literal", f"\\{following} is not an escape",
                              "known are \\n \\t \\r \\\\ \\' \\\" \\% and \\_")
        self._keep("\\", "x")
        self._keep(following, "x")

    def _check(self, char: str, two: str) -> None:
        self._refuse_control(char)
        arrow = two in ("->", "|>") or two == "=>" and self.text[self.at - 1:self.at] != "<"
        if not _ALLOWED.match(char) or arrow or char in _TWO and two != _TWO[char]:
            name = f"{char!r}" if ord(char) < 128 else f"{char!r} (U+{ord(char):04X})"
            hint = "quote names with other letters in backticks" if char.isalpha() else None
            raise self._error("bad-character", f"{two if char in _TWO or arrow else name} has no meaning here", hint)

    def _refuse_control(self, char: str) -> None:
        if (ord(char) < 32 and char not in "\t\r\n") or 127 <= ord(char) < 160 or 0xD800 <= ord(char) < 0xE000:
            raise self._error("bad-character", f"a control character (U+{ord(char):04X}) is not accepted",
                              "tab and line ends are")

    def _error(self, code: str, message: str, hint: str | None = None) -> ForebayError:
        return located(self.text, ForebayError(code, message, hint=hint), self.at)


def _check_depth(text: str, masked: str) -> None:
    depth = 0
    for match in re.finditer(r"[()]", masked):
        depth += 1 if match[0] == "(" else -1
        if depth > MOST_PARENTHESES:
            raise located(
                text,
                ForebayError("query-too-deep", f"more than {MOST_PARENTHESES} nested parentheses",
                             hint="write it with fewer"), match.start())


def _trim_semicolons(text: str, plain: str, masked: str) -> tuple[str, str]:
    """A trailing one is forgiven, another one would begin a second statement."""
    end = len(masked.rstrip(" \t\r\n;"))
    at = masked.find(";", 0, end)
    if at >= 0:
        raise located(
            text,
            ForebayError("several-statements", "a query is one SELECT; ';' begins another statement",
                         hint="one query a file"), at)
    return plain[:end] + plain[end:].replace(";", " "), masked[:end] + masked[end:].replace(";", " ")


def _windows(text: str, plain: str, masked: str) -> list[Lifted]:
    windows, at = [], 0
    for match in re.finditer(r"[\[\]]", masked):
        if match.start() < at:
            continue
        bracket = re.compile(r"\[\s*WINDOW\b([^\[\]]*)\]", re.IGNORECASE).match(masked, match.start())
        if not bracket:
            raise located(
                text,
                ForebayError(
                    "bad-window", f"{match[0]!r} is not a window",
                    hint="a window is [WINDOW 1 HOUR], [WINDOW 1 HOUR TUMBLING], "
                    "[WINDOW 1 HOUR SLIDE 10 MINUTES] or [WINDOW UNTIL NOW]"), match.start())
        at = bracket.end()
        windows.append(Lifted(match.start(), at, plain[bracket.start(1):bracket.end(1)]))
    return windows


def _every(text: str, plain: str, masked: str, windows: tuple[Lifted, ...]) -> Lifted | None:
    """The last clause of the statement."""
    match = _EVERY.search(masked)
    unfinished = re.search(r"\bEVERY(\s+[0-9.]+)?\s*\Z", masked, re.IGNORECASE)
    misplaced = match and any(w.start > match.start() for w in windows)
    if unfinished or misplaced:
        start = next(m.start() for m in (match, unfinished) if m)
        raise located(
            text,
            ForebayError("bad-every", "EVERY is the last clause and takes a length", hint="for instance EVERY 1 HOUR"),
            start)
    return Lifted(match.start(), match.end(), plain[match.start():match.end()]) if match else None
