"""Texts as lines and rows: whatever their ends, quotes and lengths, each line is a row, or a bad line and whole."""
from __future__ import annotations

import csv
import gzip
import io
import random
from pathlib import Path

import pytest

from jobs.engine import kernel
from jobs.ingest import reading, texts
from jobs.ingest.texts import BAD_FIELDS, BAD_LONG, BAD_QUOTES, BrokenFile

ENDS = ("\n", "\r\n", "\r")
Row = tuple[str | None, ...]


def read(folder: Path, name: str, content: bytes, **options: str) -> tuple[list[Row], list[tuple[str, str]]]:
    """The rows of a file, and its bad lines with their reasons."""
    path = folder / name
    path.write_bytes(content)
    con = kernel.shared()
    item = reading.IngestInput("files", name, str(path), "json" if "json" in name else "csv", options=options)
    source = reading.open_input(con, item, ("a", "b"), frozenset())
    columns = ", ".join(sql for sql, _ in source.columns.values())
    rows = con.execute(f"SELECT {source.broken}, line, {columns} FROM {source.rows}").fetchall()
    bad = [(line, reason) for reason, line, *_ in rows if reason is not None]
    return [row[2:] for row in rows if row[0] is None], bad


@pytest.mark.parametrize("ends", [
    ("\r\n", "\r\n", "\n"), ("\n", "\r\n", "\r\n"), ("\r", "\n", "\r\n"), ("\r", "\r", "\r"), ("\n", "\n", "")])
def test_lines_of_a_csv_file_end_as_they_like(tmp_path: Path, ends: tuple[str, str, str]) -> None:
    content = "".join(line + end for line, end in zip(("a,b", '1,"x\ny"', "2,z"), ends))
    assert read(tmp_path, "a.csv", content.encode()) == ([("1", "x\ny"), ("2", "z")], [])


@pytest.mark.parametrize("seed", range(20))
def test_what_a_writer_of_csv_wrote_is_read(tmp_path: Path, seed: int) -> None:
    """Random fields with quotes, delimiters, line ends; each row with an end of its own; bad lines between them."""
    dice = random.Random(seed)
    out, rows, bad = io.StringIO("a,b\n"), list[Row](), list[str]()
    out.seek(0, io.SEEK_END)
    for _ in range(dice.randrange(60)):
        if dice.random() < 0.2:
            bad.append(dice.choice(["x", "1,2,3", '"a"b,2', 'a,"b" c']))
            out.write(bad[-1] + dice.choice(ENDS))
        else:
            fields = ["".join(dice.choices('ab,"\n\r;é ', k=dice.randrange(1, 6))) for _ in range(2)]
            csv.writer(out, lineterminator=dice.choice(ENDS), quoting=csv.QUOTE_ALL).writerow(fields)
            rows.append(tuple(fields))
    bad.append('1,"never closed')
    out.write(bad[-1])
    good, aside = read(tmp_path, "a.csv", out.getvalue().encode())
    assert (good, sorted(line for line, _ in aside)) == (rows, sorted(bad))


def test_bad_lines_are_whole_and_say_why(tmp_path: Path) -> None:
    wide = "1,\x00\x01" + "x" * 20_000 + ",3"
    content = f'a,b\n{wide}\n1\n"1"x,2\n"1"""x,2\n1,"2\n3,4\n'
    good, bad = read(tmp_path, "a.csv", content.encode())
    assert good == [("3", "4")]
    assert sorted(bad) == sorted([(wide, BAD_FIELDS), ("1", BAD_FIELDS), ('"1"x,2', BAD_QUOTES),
                                  ('"1"""x,2', BAD_QUOTES), ('1,"2', BAD_QUOTES)])


def test_a_last_line_whose_quote_nothing_closes_is_bad(tmp_path: Path) -> None:
    assert read(tmp_path, "a.csv", b'a,b\n1,2\n1,"cut of') == ([("1", "2")], [('1,"cut of', BAD_QUOTES)])


def test_a_quote_within_a_plain_field_is_a_character(tmp_path: Path) -> None:
    assert read(tmp_path, "a.csv", b'a,b\n5" pipe,x"y"\n') == ([('5" pipe', 'x"y"')], [])


@pytest.mark.slow
@pytest.mark.parametrize("packed", [False, True])
def test_no_row_is_lost_where_lines_are_long(tmp_path: Path, packed: bool) -> None:
    """Engines that read a file by buffers lost rows and cut lines where one lay across two of them."""
    dice, rows, bad = random.Random(7), 0, 0
    lines = ["a,b"]
    for _ in range(60):
        text = "x" * dice.choice((10, 1 << 20, 3 << 20))
        good = dice.random() < 0.6
        lines.append(f"1,{text}" if good else f"{text}")
        rows, bad = rows + good, bad + (not good)
    lines.append("1," + "y" * texts.LINE)
    content = "\n".join(lines).encode()
    name, content = ("a.csv.gz", gzip.compress(content, 1)) if packed else ("a.csv", content)
    good_rows, bad_lines = read(tmp_path, name, content)
    assert (len(good_rows), len(bad_lines)) == (rows, bad + 1)
    expected = [len(line) for line in lines[1:] if not line.startswith("1,x")]
    assert sorted(len(line) for line, _ in bad_lines) == sorted(expected)
    assert [reason for line, reason in bad_lines if line.startswith("1,y")] == [BAD_LONG]


@pytest.mark.slow
def test_a_long_line_of_json_is_bad_alone_and_whole(tmp_path: Path) -> None:
    long = '{"a": "' + "x" * texts.LINE + '"}'
    just = '{"a": "' + "x" * (texts.LINE - 9) + '"}'
    good, bad = read(tmp_path, "a.jsonl", f'{{"a": 1}}\n{long}\n{just}\n{{"a": 2}}'.encode())
    assert [len(row[0] or "") for row in good] == [1, texts.LINE - 9, 1] and bad == [(long, BAD_LONG)]


def test_lines_of_json_are_whole_whatever_is_in_them(tmp_path: Path) -> None:
    content = '\ufeff{"a": 1}\r\n\r\n{"a": "x\x01y"}\r{"a": 2}\nz\x00\x01z'
    bad = [('{"a": "x\x01y"}', reading.BAD_LINE), ("z\x00\x01z", reading.BAD_LINE)]
    assert read(tmp_path, "a.jsonl", content.encode()) == ([("1", None), ("2", None)], bad)


def test_lines_across_blocks_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(str(i), "é\r" * (i % 7)) for i in range(200)]
    for size in (1, 2, 7, 64):
        monkeypatch.setattr(texts, "BLOCK", size)
        content = "".join(f'{{"a": {a}, "b": "{"é" * (int(a) % 9)}"}}' + ENDS[i % 3] for i, (a, _) in enumerate(rows))
        assert read(tmp_path, "a.jsonl", content.encode()) == ([(a, "é" * (int(a) % 9)) for a, _ in rows], [])


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
@pytest.mark.parametrize(("content", "word"), [
    (b'a,b\n{"a": 1}\n\xe9,2\n', "line 3 has the byte E9"),
    (b"a,b\r\n1,2\r\n" * 5000 + b"1,\xff\r\n", "line 10001 has the byte FF"),
    ("a,b\n1,2\n".encode("utf-16"), "UTF-16"), (b"a,b\n1,\xc3", "line 2 has the byte C3")])
def test_what_is_not_utf_8_is_refused_by_its_line(tmp_path: Path, name: str, content: bytes, word: str) -> None:
    with pytest.raises(BrokenFile, match=word):
        read(tmp_path, name, content)


@pytest.mark.parametrize("name", ["a.csv.gz", "a.jsonl.gz"])
@pytest.mark.parametrize("content", [
    b"hello", gzip.compress(b"a,b\n1,2\n" * 1000, mtime=0)[:-12], gzip.compress(b"a,b\n1,2\n", mtime=0)[:14]])
def test_a_damaged_packed_file_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    with pytest.raises(BrokenFile, match="gzip"):
        read(tmp_path, name, content)


@pytest.mark.parametrize(("content", "word"), [("", "no header line"), ("\na,b\n", "no header line"),
                                               ("a,b,A\n", "columns a and A differ only in case"),
                                               ("a,b,a\n", "names the column a twice"),
                                               ("a,,b\n", "column 2 of 3 has no name"),
                                               (",,b\n", "column 2 of 3 has no name"),
                                               ("a,\n", "column 2 of 2 has no name"),
                                               ('""\n1\n', "column 1 of 1 has no name"),
                                               ("a," + "b" * 200_000 + "\n", "header line")])
def test_a_header_that_names_no_columns_is_refused(tmp_path: Path, content: str, word: str) -> None:
    with pytest.raises(BrokenFile, match=word):
        read(tmp_path, "a.csv", content.encode())


def test_an_index_without_a_name_is_left_out(tmp_path: Path) -> None:
    assert read(tmp_path, "a.csv", b",a,b\n0,1,2\n1,3,4\nx,5\n") == ([("1", "2"), ("3", "4")], [("x,5", BAD_FIELDS)])
