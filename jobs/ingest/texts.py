"""Text files as lines and as rows of fields, packed or not, whichever way their lines end; no type and no table is
known here.

A line that is no row is handed over whole, with the reason; a file that is no text is refused. DuckDB's reader of CSV
drops rows and cuts bad lines where long ones lie across two of its buffers, so Arrow splits the fields, and what it
gives is counted.
"""
from __future__ import annotations

import codecs
import csv
import gzip
import io
import mmap
import os
import re
import shutil
import struct
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

import pyarrow as pa

LINE = 16 << 20                        # bytes of a line that is read as a row; a longer one is a bad one
LONGEST = 128 << 20                    # a file with a longer one is refused: it would not fit into a task's memory
BLOCK = 4 << 20                        # bytes read at once
BAD_FIELDS = "wrong number of fields"
BAD_QUOTES = "misplaced quote"
BAD_LONG = f"line of more than {LINE >> 20} MiB"
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CUT = "it is no gzip file, or one that is damaged or cut off"


class BrokenFile(Exception):
    """The file as a whole cannot be taken."""


class Dialect(NamedTuple):
    delimiter: str = ","
    quote: str = '"'
    null: str = ""                     # an unquoted field of this text is NULL


class Survey(NamedTuple):
    """A CSV file's number of lines, and whether a quote is stray: within a plain field, as in `5" pipe`, or closed by
    none.
    """

    lines: int
    stray: bool


class Part(NamedTuple):
    """Some rows of a CSV file, and the lines that are none, each with its reason."""

    rows: pa.RecordBatch | None = None
    bad: tuple[tuple[str, str], ...] = ()

    @property
    def total(self) -> int:
        return (0 if self.rows is None else self.rows.num_rows) + len(self.bad)


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """The bytes, unpacked."""
    try:
        with gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb") as file:
            yield file      # type: ignore[misc]
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BrokenFile(_CUT) from error


def lines(path: str) -> Iterator[pa.Array]:
    """The lines without their ends, many at a time."""
    number, rest = 1, b""
    with opened(path) as file:
        while block := _whole_ends(file, BLOCK):
            block = (rest + block).replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in block else rest + block
            end = block.rfind(b"\n") + 1
            rest = block[end:]
            if len(rest) > LONGEST:
                raise BrokenFile(f"line {number + block.count(10)} has more than {LONGEST >> 20} MiB")
            if end:
                yield _texts(block[:end], number)
            number += block.count(b"\n")
    yield _texts(rest, number)


def _whole_ends(file: IO[bytes], size: int) -> bytes:
    """Some bytes that do not end between CR and LF."""
    block = file.read(size)
    while block.endswith(b"\r") and (more := file.read(1)):
        block += more
    return block


def _texts(block: bytes, number: int) -> pa.Array:
    """The lines of a block, the first of which has this number."""
    from pyarrow import compute  # hundredths of a second that other formats need not pay

    block = (block.removeprefix(codecs.BOM_UTF8) if number == 1 else block).removesuffix(b"\n")
    ends = pa.py_buffer(struct.pack("<qq", 0, len(block)))      # not pa.array(…), which imports pandas
    whole = pa.Array.from_buffers(pa.large_binary(), 1, [None, ends, pa.py_buffer(block)])
    try:
        return compute.split_pattern(whole, pattern="\n").flatten().cast(pa.large_string())
    except pa.ArrowInvalid:
        _decoded(codecs.getincrementaldecoder("utf-8")(), block, number, final=True)
        raise


def _decoded(decoder: codecs.IncrementalDecoder, block: bytes, number: int, final: bool = False) -> None:
    """Refuses what is not UTF-8, by its line."""
    if number == 1 and block.startswith(UTF16):
        raise BrokenFile("it is UTF-16; convert it to UTF-8")
    try:
        decoder.decode(block, final)
    except UnicodeDecodeError as error:
        line = number + _ends(error.object[:error.start])
        byte = f"{error.object[error.start]:02X}"
        message = f"it is not UTF-8: line {line} has the byte {byte} (hexadecimal); convert it to UTF-8"
        raise BrokenFile(message) from error


def _ends(block: bytes) -> int:
    return block.count(b"\n") + (block.count(b"\r") - block.count(b"\r\n") if b"\r" in block else 0)


def survey(path: str, dialect: Dialect) -> Survey:
    """A look at every byte of a CSV file, far quicker than reading its rows."""
    quote, ends = (re.escape(text.encode()) for text in (dialect.quote, f"{dialect.delimiter}\r\n"))
    inside = re.compile(b"%b(?<=[^%b%b]%b)(?:%b%b)*+[^%b%b]" % (quote, quote, ends, quote, quote, quote, quote, ends))
    decoder, number, before, stray, quotes = codecs.getincrementaldecoder("utf-8")(), 1, b"\n", False, 0
    with opened(path) as file:
        while block := _whole_ends(file, BLOCK):
            _decoded(decoder, block, number)
            stray = stray or inside.search(before + block) is not None
            number, before, quotes = number + _ends(block), block[-2:], quotes + block.count(dialect.quote.encode())
    _decoded(decoder, b"", number, final=True)
    return Survey(number - before.endswith((b"\n", b"\r")), stray or quotes % 2 == 1)


def header(path: str, dialect: Dialect) -> list[str]:
    """The names in the first line."""
    with opened(path) as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        try:
            names = next(csv.reader(text, delimiter=dialect.delimiter, quotechar=dialect.quote), [])
        except csv.Error as error:
            raise BrokenFile("its header line cannot be read as names with delimiters between them") from error
    if not names:
        raise BrokenFile("it has no header line")
    return names


def rows(path: str, width: int, dialect: Dialect, block: int = BLOCK) -> Iterator[Part]:
    """The rows after the header as texts c0, c1 ….

    It ends early, without an error, at a row that does not fit into a block.
    """
    from pyarrow import csv as arrow  # hundredths of a second that other formats need not pay

    names, bad = [f"c{i}" for i in range(width)], list[tuple[str, str]]()

    def aside(row: Any) -> str:
        bad.append((row.text, BAD_FIELDS))
        return "skip"

    read = arrow.ReadOptions(column_names=names, skip_rows_after_names=1, block_size=block, use_threads=False)
    parse = arrow.ParseOptions(delimiter=dialect.delimiter, quote_char=dialect.quote, newlines_in_values=True,
                               invalid_row_handler=aside)
    convert = arrow.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), null_values=[dialect.null],
                                   strings_can_be_null=True, quoted_strings_can_be_null=False)
    with opened(path) as file:
        try:
            for batch in arrow.open_csv(file, read, parse, convert):
                yield Part(batch, tuple(bad))
                bad.clear()
        except pa.ArrowInvalid:
            pass
    yield Part(None, tuple(bad))


def strict_rows(path: str, width: int, dialect: Dialect) -> Iterator[Part]:
    """The same for a file that `rows` cannot be trusted with: misplaced quotes, fields of several lines, very long
    lines.

    Each line is first held against the form of a row. A quote that nothing closes is one bad line; the next is read
    again.
    """
    with tempfile.TemporaryDirectory(prefix="forebay-text-") as folder:
        clean = os.path.join(folder, "clean.csv")
        with _mapped(path, folder) as whole, open(clean, "wb") as out:
            for begin, end, reason in _strained(whole, dialect):
                if reason is None:
                    out.write(whole[begin:end])
                else:
                    yield Part(None, ((whole[begin:end].rstrip(b"\r\n").decode(), reason),))
            out.write(b"\n")
        yield from rows(clean, width, dialect, 2 * LINE)


@contextmanager
def _mapped(path: str, folder: str) -> Iterator[mmap.mmap]:
    if path.endswith(".gz"):
        with opened(path) as packed, open(os.path.join(folder, "unpacked"), "wb") as out:
            shutil.copyfileobj(packed, out, BLOCK)
        path = out.name
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
        yield whole


def _strained(whole: mmap.mmap, dialect: Dialect) -> Iterator[tuple[int, int, str | None]]:
    """Begin and end of each line, or of each row of several lines, and why it is none."""
    delimiter, quote = (re.escape(text.encode()) for text in (dialect.delimiter, dialect.quote))
    quoted = b"%b[^%b]*+(?:%b%b[^%b]*+)*+%b" % ((quote,) * 6)
    field = b"(?:%b|(?!%b)[^%b\r\n]*+)" % (quoted, quote, delimiter)
    row = re.compile(b"%b(?:%b%b)*+(?:\r\n?|\n|\\Z)" % (field, delimiter, field))
    line = re.compile(b"[^\r\n]*+(?:\r\n?|\n|\\Z)")
    begin = len(codecs.BOM_UTF8) if whole[:3] == codecs.BOM_UTF8 else 0
    while begin < len(whole):
        match = row.match(whole, begin)
        end = (match or line.match(whole, begin)).end()      # type: ignore[union-attr]
        if end - begin > LONGEST:
            raise BrokenFile(f"it has a line of more than {LONGEST >> 20} MiB")
        yield begin, end, BAD_QUOTES if match is None else BAD_LONG if end - begin > LINE else None
        begin = end
