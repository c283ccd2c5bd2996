"""Java's patterns of dates and times, 'yyyy-MM-dd HH:mm:ss', as what DuckDB has: only letters that mean the same.

`pieces("yyyy/MM")` is `(LetterRun("y", 4), Separator("/"), LetterRun("M", 2))`; `written` gives the SQL that writes a
time so, `TextForm.of` the regular expression and the rewriting that read it.
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Union

from optimizer.errors import ForebayError
from optimizer.expression.dialect import string


@dataclass(frozen=True)
class LetterRun:
    """So many of one letter."""

    letter: str
    count: int


@dataclass(frozen=True)
class Separator:
    """What stands for itself."""

    text: str


FormPiece = Union[LetterRun, Separator]

# DuckDB's strftime of each run of letters, years of four digits as the calendar has them
_WRITTEN = {
    ("M", 1): "%-m", ("M", 2): "%m", ("M", 3): "%b", ("M", 4): "%B", ("d", 1): "%-d", ("d", 2): "%d", ("H", 1): "%-H",
    ("H", 2): "%H", ("h", 1): "%-I", ("h", 2): "%I", ("m", 1): "%-M", ("m", 2): "%M", ("s", 1): "%-S", ("s", 2): "%S",
    ("E", 1): "%a", ("E", 2): "%a", ("E", 3): "%a", ("E", 4): "%A", ("a", 1): "%p", ("D", 3): "%j", ("D", 1): "%-j",
    ("y", 2): "%y"}
_CONSTANT = {("X", 1): "Z", ("X", 2): "Z", ("X", 3): "Z", ("x", 1): "+00", ("x", 2): "+0000", ("x", 3): "+00:00",
             ("Z", 1): "+0000", ("Z", 2): "+0000", ("Z", 3): "+0000", ("z", 1): "UTC", ("V", 2): "UTC"}
_YEARS = {("y", 4), ("y", 1)}
YEAR = "([0-9]{4})"
# A text that Spark reads as a year before 1 or after 9999: a sign says that there may be more digits.
FAR_YEAR = r"(-[0-9]{4,10}|\+[0-9]{5,10}|0000)"
# How each run of letters is read: exactly so many digits, each in its range. Java's resolver is strict.
_READ = {("y", 4): YEAR, ("M", 2): "(0[1-9]|1[0-2])", ("d", 2): "(0[1-9]|[12][0-9]|3[01])",
         ("H", 2): "([01][0-9]|2[0-3])", ("m", 2): "([0-5][0-9])", ("s", 2): "([0-5][0-9])"}
_DEFAULTS = {"y": "1970", "M": "01", "d": "01", "H": "00", "m": "00", "s": "00", "S": "0"}
WRITABLE = ("y yyyy yy M MM MMM MMMM d dd D DDD E EEE EEEE H HH h hh m mm s ss S to SSSSSS a X XXX xxx Z z, and what "
            "is in "
            "quotes or no letter")
READABLE = "yyyy MM dd HH mm ss and S to SSSSSS, each once, and what is in quotes or no letter"


@lru_cache(maxsize=1024)
def pieces(pattern: str) -> tuple[FormPiece, ...]:
    """A pattern in runs."""
    runs: list[FormPiece] = []
    for run in re.finditer(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+|'", pattern):
        if run[0] == "'":
            raise _refused(pattern, "a quote that is not closed")
        if run[1] is not None:
            runs.append(Separator(run[1].replace("''", "'") or "'"))
        elif run[2]:
            runs.append(LetterRun(run[2], len(run[0])))
        elif re.search(r"[\[\]{}#]", run[0]):
            raise _refused(pattern, f"{run[0]!r}, which Java keeps for itself")
        else:
            runs.append(Separator(run[0]))
    return tuple(runs)


def _refused(pattern: str, what: str, accepted: str = WRITABLE) -> ForebayError:
    return ForebayError("bad-pattern", f"the pattern {pattern!r} has {what}", hint=f"accepted are {accepted}")


def check_written(pattern: str) -> None:
    """Refuses what cannot be written alike."""
    for piece in pieces(pattern):
        if isinstance(piece, LetterRun):
            run = (piece.letter, piece.count)
            fraction = piece.letter == "S" and piece.count <= 6
            if not fraction and run not in _WRITTEN and run not in _CONSTANT and run not in _YEARS:
                raise _refused(pattern, piece.letter * piece.count)


def written(pattern: str, moment: str) -> str:
    """The SQL of a TIMESTAMP in this form."""
    parts = [f"left(strftime({moment}, '%Y'), 0)"]      # NULL of NULL, whatever follows
    return f"({' || '.join([*parts, *(_part(piece, moment) for piece in pieces(pattern))])})"


def _part(piece: FormPiece, moment: str) -> str:
    if isinstance(piece, Separator):
        return string(piece.text)
    run = (piece.letter, piece.count)
    if run in _YEARS:
        return f"lpad(CAST(year({moment}) AS VARCHAR), {piece.count}, '0')" if piece.count > 1 else (
            f"CAST(year({moment}) AS VARCHAR)")
    if piece.letter == "S":
        return f"left(strftime({moment}, '%f'), {piece.count})"
    return string(_CONSTANT[run]) if run in _CONSTANT else f"strftime({moment}, '{_WRITTEN[run]}')"


@dataclass(frozen=True)
class TextForm:
    """How a text is read: the whole of it matches `regex`, `rewriting` makes '2000-02-29 12:34:56.7' of it.

    `beyond` matches texts that are times to Spark, but in no year of the calendar.
    """

    regex: str
    rewriting: str
    beyond: str

    @classmethod
    def of(cls, pattern: str) -> TextForm:
        regex = ""
        numbers: dict[str, int] = {}
        before: FormPiece | None = None
        for piece in pieces(pattern):
            if isinstance(piece, Separator):
                if any(c.isdigit() for c in piece.text):
                    raise _refused(pattern, "digits of its own", READABLE)
                regex += _literal(piece.text)
            else:
                regex += _read(pattern, piece, before)
                if piece.letter in numbers:
                    raise _refused(pattern, f"{piece.letter} twice", READABLE)
                numbers[piece.letter] = len(numbers) + 1
            before = piece
        parts = {letter: f"\\{numbers[letter]}" if letter in numbers else text for letter, text in _DEFAULTS.items()}
        if "y" not in numbers or "d" in numbers and "M" not in numbers:
            raise _refused(pattern, "no year, or a day without a month", READABLE)
        rewriting = "{y}-{M}-{d} {H}:{m}:{s}.{S}".format(**parts)
        return cls(f"(?s)^{regex}$", rewriting, f"(?s)^{regex.replace(YEAR, FAR_YEAR)}$")


def _read(pattern: str, piece: LetterRun, before: FormPiece | None) -> str:
    if piece.letter == "S" and piece.count <= 6 and isinstance(before, Separator):
        return f"([0-9]{{1,{piece.count}}})"
    if (piece.letter, piece.count) not in _READ:
        raise _refused(pattern, piece.letter * piece.count, READABLE)
    return _READ[piece.letter, piece.count]


def _literal(text: str) -> str:
    """LetterRun in either case, as Spark reads them."""
    return "".join(f"[{c.lower()}{c.upper()}]" if c.isascii() and c.isalpha() else f"\\x{{{ord(c):x}}}" for c in text)
