"""Answers of any length are written as their rows come: the same text as from one batch, and no batch is asked for
before the one before it is written.
"""
from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forebay import formats

ROWS = pa.table({
    "boundary": pa.array([datetime(2026, 1, 1, 0, 0, n, tzinfo=timezone.utc) for n in range(6)],
                         pa.timestamp("us", "UTC")),
    "n": [1, None, -3, 2 ** 62, 5, 6],
    "x": [0.5, float("nan"), None, float("-inf"), 1e300, -0.0],
    "m": [Decimal("1.50"), None, Decimal("0.00"), *[Decimal("7.25")] * 3],
    "s": ["plain", 'quo"ted', "", None, "a,b", "line\nend"],
    "b": [True, False, None, True, False, True],
    "d": [date(2026, 1, 1), None, *[date(1999, 12, 31)] * 4]
})


def written(form: str, rows_a_batch: int) -> bytes:
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
    formats.writer("q", reader(rows_a_batch), form, None)(out)
    out.flush()
    buffer = out.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue()


def reader(rows_a_batch: int) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(ROWS.schema, ROWS.to_batches(rows_a_batch))


@pytest.mark.parametrize("form", ["csv", "json", "table"])
def test_the_text_is_the_same_in_whatever_batches_rows_come(form: str) -> None:
    assert written(form, 6) == written(form, 1) == written(form, 4)


def test_every_value_is_as_documents_have_it() -> None:
    document = json.loads(written("json", 2))
    assert document["columns"] == ROWS.column_names and len(document["rows"]) == 6
    assert document["rows"][0] == ["2026-01-01T00:00:00Z", 1, 0.5, "1.50", "plain", True, "2026-01-01"]
    assert document["rows"][1] == ["2026-01-01T00:00:01Z", None, "NaN", None, 'quo"ted', False, None]
    lines = written("csv", 2).decode().splitlines()
    assert lines[1] == "2026-01-01T00:00:00Z,1,0.5,1.50,plain,true,2026-01-01"
    assert lines[
        3] == '2026-01-01T00:00:02Z,-3,,0.00,"",,1999-12-31', "NULL is an empty field, an empty text is in quotes"


def test_parquet_goes_to_a_pipe_in_batches() -> None:
    got = pq.read_table(io.BytesIO(written("parquet", 2)))
    # as text, since NaN does not equal itself
    assert got.schema.equals(ROWS.schema) and str(got.to_pydict()) == str(ROWS.to_pydict())


def test_without_rows_there_is_still_a_header() -> None:
    empty = pa.RecordBatchReader.from_batches(ROWS.schema, [])
    out = io.StringIO()
    formats.writer("q", empty, "json", None)(out)
    assert json.loads(out.getvalue()) == {"query": "q", "columns": ROWS.column_names, "rows": []}


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_batch_is_written_before_the_next_is_asked_for(form: str) -> None:
    out, lengths = io.StringIO(), list[int]()

    def coming() -> Iterator[pa.RecordBatch]:
        for batch in ROWS.to_batches(2):
            lengths.append(len(out.getvalue()))
            yield batch

    formats.writer("q", pa.RecordBatchReader.from_batches(ROWS.schema, coming()), form, None)(out)
    assert lengths == sorted(set(lengths)), f"each batch adds to the text before the next comes: {lengths}"


def test_below_the_first_page_of_a_table_columns_keep_their_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forebay.text.answering.PAGE", 2)
    out = io.StringIO()
    formats.writer("q", reader(3), "table", None)(out)
    lines = out.getvalue().splitlines()
    assert len(lines) == 7 and {line.index("2026-01-01T") for line in lines[1:]} == {0}
    assert lines[6].index(" 6 ") == lines[1].index(" 1 "), "numbers stay right in their column"
