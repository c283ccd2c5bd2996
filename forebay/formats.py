"""An answer as CSV, JSON or Parquet on a stream or in a file; the same values in each."""
from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from forebay import show, text
from jobs.storage import disk
from optimizer.errors import ForebayError

if TYPE_CHECKING:
    import pyarrow as pa

SPECIAL = re.compile(r'[",\r\n]|^$|^\s|\s$')


def writer(name: str, batches: pa.RecordBatchReader, form: str, output: str | None) -> Callable[[TextIO], None]:
    """What writes the answer, a batch of rows at a time: to the stream it gets, or to `output`."""
    if form == "parquet":
        return lambda out: _parquet(batches, out, output)
    write: Callable[[TextIO], None] = {
        "table": text.result(batches),
        "csv": lambda out: _csv(batches, out),
        "json": lambda out: as_json(name, batches, out)
    }[form]
    return write if output is None else lambda _: _to_file(write, output)


def _csv(batches: pa.RecordBatchReader, out: TextIO) -> None:
    """NULL is an empty field, an empty text is "" in quotes."""
    out.write(",".join(map(_field, batches.schema.names)) + "\n")
    for batch in batches:
        fields = []
        for column in batch.columns:
            values = show.column_values(column)
            are_numbers = all(value.__class__ in (int, float) for value in values)
            fields.append(list(map(str if are_numbers else _field, values)))
        out.writelines(f"{','.join(row)}\n" for row in zip(*fields))


def _field(value: Any) -> str:
    if value is None:
        return ""
    written = ("true" if value else "false") if isinstance(value, bool) else str(value)
    return '"' + written.replace('"', '""') + '"' if SPECIAL.search(written) else written


def as_json(name: str, batches: pa.RecordBatchReader, out: TextIO) -> None:
    """One document, {"query": …, "columns": […], "rows": [[…], …]}, written as its rows come."""
    encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
    head = encoder.encode({"query": name, "columns": batches.schema.names})
    out.write(f'{head[:-1]}, "rows": [')
    separator = ""
    for batch in batches:
        rows = encoder.encode(list(zip(*(show.column_values(column) for column in batch.columns))))
        if batch.num_rows:
            out.write(separator + rows[1:-1])
            separator = ", "
    out.write("]}\n")


def _parquet(batches: pa.RecordBatchReader, out: TextIO, output: str | None) -> None:
    import pyarrow.parquet as pq

    if output is None and out.isatty():
        raise ForebayError("bad-usage", "Parquet is not for a terminal", hint="name a file with -o, or pipe it")
    # stdout stays open: whoever called flushes it
    with _opened(output) if output else nullcontext(out.buffer) as sink:
        with pq.ParquetWriter(_Open(sink), batches.schema) as file:
            for batch in batches:
                file.write_batch(batch)
        sink.flush()


class _Open:
    """A stream that a writer may not close, and that need not tell where it is: a pipe cannot."""

    def __init__(self, sink: Any) -> None:
        self.sink, self.closed, self._written = sink, False, 0

    def write(self, chunk: Any) -> int:
        self._written += len(chunk)
        self.sink.write(chunk)
        return len(chunk)

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        self.sink.flush()

    def close(self) -> None:
        self.sink.flush()

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


def _to_file(write: Callable[[TextIO], None], path: str) -> None:
    with _opened(path, "w") as file:
        write(file)
    print(f"forebay: wrote {path}", file=sys.stderr)


@contextmanager
def _opened(path: str, mode: str = "wb") -> Iterator[Any]:
    try:
        opened = open(path, mode) if "b" in mode else open(path, mode, encoding="utf-8", newline="")
    except OSError as error:
        raise ForebayError("bad-file", f"{path} cannot be written: {error.strerror}",
                           hint="name a file in a folder that exists") from None
    with disk.writing(path), opened:
        yield opened


def document(path: Path) -> dict[str, Any]:
    """A JSON file that a person wrote."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ForebayError("no-file", f"{path} cannot be read: {error.strerror}",
                           hint="give the path of a JSON file") from error
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        line, column = getattr(error, "lineno", None), getattr(error, "colno", None)
        raise ForebayError("bad-json", f"{path} is not JSON: {error}", line, column,
                           "write it as {\"streams\": {\"s1\": {\"rate\": 300}}}") from error
    if not isinstance(content, dict):
        raise ForebayError("bad-json", f"{path} holds no object", hint="write {\"streams\": {\"s1\": {\"rate\": 300}}}")
    return content
