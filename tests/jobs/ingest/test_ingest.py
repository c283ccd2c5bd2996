"""What is taken in and what is not: boundaries, lateness, quarantine, formats, each input once."""
from __future__ import annotations

import datetime as dt
import gzip
import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.engine import kernel
from jobs.ingest import reading
from jobs.ingest import register as intake
from jobs.pipeline.warehouse import Warehouse
from optimizer.errors import ForebayError
from tests.jobs.ingesting import NOW, SECOND, at, content, counts, lines, parquet, pipeline, reasons, rows, stored, take

pytestmark = pytest.mark.slow


def test_parquet_gets_natural_boundaries(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path)
    parquet(pipe, "a.parquet", ts=at(25, 0, 9.999999, 10), user=pa.array(["d", "a", "b", None]),
            ms=pa.array([1, 2, 3, 4]))
    assert counts(pipe) == (1, 4, 0, 0)
    origin = ("landing/a.parquet", 0)
    assert stored(pipe, "epoch_us(_boundary) // 1000000, \"user\", ms, _source, _ingest") == [
        (10, "a", 2, *origin), (10, "b", 3, *origin), (20, None, 4, *origin), (30, "d", 1, *origin)]
    assert [b for b, in rows(pipe, "streams/views", "epoch_us(_boundary) // 1000000")
            ] == [10, 10, 20, 30], "rows lie in the order of their boundaries"


def test_the_same_content_adds_nothing(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path)
    lines(pipe, "a.jsonl", [{"ts": "1970-01-01T00:00:01Z"}, {"ts": "no time"}])
    assert counts(pipe) == (1, 1, 1, 0)
    before = content(pipe)
    assert counts(pipe) == (0, 0, 0, 0) and content(pipe) == before
    os.utime(tmp_path / "landing/a.jsonl", (1, 1))
    assert counts(pipe) == (0, 0, 0, 0), "a new time alone is no new content"
    assert counts(pipe, only={"views": [str(tmp_path / "landing/a.jsonl")]}) == (0, 0, 0, 0)
    assert stored(pipe) == [(1, 10)]


def test_other_content_under_the_same_path_is_refused(tmp_path: Path) -> None:
    """Whatever brought it: its first rows would count twice. Three ways out are named, and each is one."""
    pipe = pipeline(tmp_path)
    lines(pipe, "a.jsonl", [{"ts": "1970-01-01T00:00:01Z"}])
    counts(pipe)
    lines(pipe, "a.jsonl", [{"ts": "1970-01-01T00:00:01Z"}, {"ts": "1970-01-01T00:00:02Z"}])
    before = content(pipe)
    for only in (None, {"views": [str(tmp_path / "landing/a.jsonl")]}):
        refusal, = take(pipe, only=only)["refused"]
        assert refusal["path"] == "landing/a.jsonl" and "would count twice" in refusal["reason"]
        ways = "another name", "as it was", "`changed_files: add`", "not there yet"
        assert all(way in refusal["reason"] for way in ways)
        assert content(pipe) == before
    lines(pipe, "a.jsonl", [{"ts": "1970-01-01T00:00:01Z"}])
    assert counts(pipe) == (0, 0, 0, 0)
    lines(pipe, "b.jsonl", [{"ts": "1970-01-01T00:00:02Z"}])
    assert counts(pipe) == (1, 1, 0, 0) and stored(pipe) == [(1, 10), (2, 10)]


def test_a_changed_file_is_added_where_that_is_asked_for(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, source='{files: "landing/*", changed_files: add}')
    lines(pipe, "a.jsonl", [{"ts": "1970-01-01T00:00:01Z"}])
    counts(pipe)
    lines(pipe, "a.jsonl", [{"ts": "1970-01-01T00:00:02Z"}])
    assert counts(pipe) == (1, 1, 0, 0) and stored(pipe) == [(1, 10), (2, 10)]


def test_of_a_changed_file_that_tasks_share_nothing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jobs.ingest import ingest

    monkeypatch.setattr(ingest, "LARGE", 1)
    monkeypatch.setattr(ingest, "ROWS_A_TASK", 2)
    pipe = pipeline(tmp_path)
    parquet(pipe, "a.parquet", ts=at(1, 2, 3, 4, 5))
    assert counts(pipe) == (1, 5, 0, 0)
    parquet(pipe, "a.parquet", ts=at(1, 2, 3, 4, 5, 6))
    assert "would count twice" in take(pipe)["refused"][0]["reason"]
    assert len(stored(pipe)) == 5 and len(list((tmp_path / "warehouse/streams/views").glob("*.parquet"))) == 3


def test_late_rows_count_from_the_next_boundary(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, stream="lateness: 30 seconds")
    parquet(pipe, "a.parquet", ts=at(100, 99.999999, 70, 69.999999, 110))
    assert counts(pipe, last=100 * SECOND) == (1, 2, 1, 2)
    assert stored(pipe) == [(70, 110), (99, 110), (100, 110), (110, 120)] and reasons(pipe) == ["too late"]


def test_without_lateness_every_late_row_is_too_late(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path)
    parquet(pipe, "a.parquet", ts=at(100, 99.999999))
    assert counts(pipe, last=100 * SECOND) == (1, 1, 1, 0) and reasons(pipe) == ["too late"]


def test_each_reason(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, stream="ahead: 5 seconds, lateness: 1 second")
    good = "1970-01-01T02:00:00Z"
    lines(pipe, "a.jsonl", [{
        "ts": good
    }, {
        "ts": good,
        "ms": "many"
    }, {
        "ts": "yesterday"
    }, {
        "ts": None
    }, {
        "user": "u"
    }, {
        "ts": "1969-12-31T23:59:59.999999Z"
    }, {
        "ts": "1970-01-01T02:46:45.000001Z"
    }, {
        "ts": "1970-01-01T02:46:45Z"
    }, {
        "ts": good,
        "mood": "good"
    }, {
        "ts": good,
        "mood": None
    }, {
        "ts": "1970-01-01T00:00:09Z"
    }, "{broken", "[1]"])
    assert counts(pipe, last=20 * SECOND, clock=NOW) == (1, 3, 10, 0)
    assert reasons(pipe) == sorted([
        "bad type: column ms", "bad type: column ts", "event time is NULL", "event time is NULL",
        "event time before 1970", "event time ahead of the clock", "unknown column mood", "too late",
        "not a JSON object", "not a JSON object"
    ])
    kept = dict(rows(pipe, "quarantine/views", "_reason, _row"))
    assert json.loads(kept["unknown column mood"]) == {"ts": good, "mood": "good"}
    assert all(isinstance(json.loads(text), (dict, str)) for text in kept.values())
    assert {(s, i) for s, i in rows(pipe, "quarantine/views", "_source, _ingest")} == {("landing/a.jsonl", 0)}
    assert {t for t, in rows(pipe, "quarantine/views", "epoch_us(_at)")} == {NOW}


def test_quarantined_rows_move_nothing(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path)
    parquet(pipe, "a.parquet", ts=at(-1, 10**6))
    assert counts(pipe) == (1, 0, 2, 0)
    tables = Warehouse(pipe.warehouse)
    assert intake.watermarks(tables, pipe.streams) == {} and intake.first_row(tables, pipe.streams) is None
    parquet(pipe, "b.parquet", ts=at(7.25, 31.000001))
    counts(pipe, clock=NOW + 5)
    assert intake.watermarks(tables, pipe.streams) == {"views": (7_250_000, 31_000_001, NOW + 5)}
    assert intake.first_row(tables, pipe.streams) == 7_250_000


def test_unknown_columns_can_be_dropped(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, stream="unknown_columns: drop")
    lines(pipe, "a.jsonl", [{"ts": "1970-01-01T00:00:01Z", "mood": 1}])
    parquet(pipe, "b.parquet", ts=at(2), mood=pa.array([1]))
    assert counts(pipe) == (2, 2, 0, 0)


def test_sensitive_values_never_reach_the_quarantine(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, columns="{ts: timestamp, user: {type: string, sensitive: true}, ms: bigint}")
    lines(pipe, "a.jsonl", [
        {"ts": "x", "user": "SECRET"}, {"ts": "x", "user": {"deep": "SECRET"}},
        '{"ts": "x", "user": "SECRET", "user": "SECRET"}', '{"user": "SECRET"', {"ts": "x"}])
    parquet(pipe, "b.parquet", ts=at(None), user=pa.array(["SECRET"]))
    (tmp_path / "landing/c.csv").write_text("ts,user\nx,SECRET\n1970-01-01,SECRET,more\nx,\n")
    assert counts(pipe) == (3, 0, 9, 0)
    kept = [row for row, in rows(pipe, "quarantine/views", "_row")]
    assert not [row for row in kept if "SECRET" in row] and sum('"***"' in row for row in kept) == 7


def test_csv(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, source='{csv: "landing/*", delimiter: ";", "null": NA}')
    text = ('\ufeffts;user;ms\n1970-01-01 '
            '00:00:01;"a;""b\nc";1\n1970-01-01T01:00:02+01:00;NA;\n1970-01-01;"NA";NA\n;x;1\n1;2\n1;2;3;4\n')
    (tmp_path / "landing/a.txt").write_bytes(text.encode())
    assert counts(pipe) == (1, 2, 4, 0)
    assert stored(pipe, "\"user\", ms") == [('NA', None), ('a;"b\nc', 1)]
    assert reasons(pipe) == [
        "bad type: column ms", "bad type: column ts", "wrong number of fields", "wrong number of fields"
    ]


def test_gzip(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path)
    (tmp_path / "landing/a.csv.gz").write_bytes(gzip.compress(b"ts,ms\n1970-01-01,1\n"))
    (tmp_path / "landing/b.jsonl.gz").write_bytes(gzip.compress(b'{"ts": "1970-01-01"}\n'))
    assert counts(pipe) == (2, 2, 0, 0)


ALL = '{ts: timestamp, i: tinyint, l: bigint, f: float, d: double, m: "decimal(5,2)", s: string, b: boolean, day: date}'
COLUMNS = ("i", "l", "f", "d", "m", "s", "b", "day")
TEXTS: list[tuple[str, Any, Any]] = [("i", 127, 127), ("i", 128, None), ("i", -128, -128), ("i", "12", 12),
                                     ("i", 1.0, 1), ("i", 1.5, None), ("i", "0x10", None), ("i", "1_0", None),
                                     ("i", True, None), ("i", "", None), ("l", 2 ** 63 - 1, 2 ** 63 - 1),
                                     ("l", 2 ** 63, None), ("l", -2 ** 63, -2 ** 63), ("l", [1], None),
                                     ("l", {
                                         "a": 1
                                     }, None), ("l", "9" * 50, None), ("f", 1.5, 1.5), ("f", 1e39, None),
                                     ("d", 1e308, 1e308), ("d", "1e400", None), ("d", "NaN", "nan"),
                                     ("d", "-inf", "-inf"), ("d", 3, 3.0), ("d", "one", None),
                                     ("m", "123.45", Decimal("123.45")), ("m", 123.455, Decimal("123.46")),
                                     ("m", "-0.005", Decimal("-0.01")), ("m", "1000", None), ("m", "NaN", None),
                                     ("m", 7, Decimal("7.00")), ("s", "x", "x"), ("s", 1, "1"),
                                     ("s", {
                                         "a": [1]
                                     }, '{"a":[1]}'), ("s", "", ""), ("b", True, True), ("b", "FALSE", False),
                                     ("b", 1, None), ("b", "yes", None), ("day", "2020-02-29", dt.date(2020, 2, 29)),
                                     ("day", "2021-02-29", None), ("day", "2020-02-29T00:00:00", None),
                                     ("day", "infinity", None), ("day", 1, None),]


@pytest.mark.parametrize("form", ["json", "csv"])
def test_values_from_texts(tmp_path: Path, form: str) -> None:
    """A value is stored as what it is, or its row is refused for its column. An empty field of a CSV file is NULL."""
    import pandas as pd  # only here, and it takes a quarter of a second

    pipe = pipeline(tmp_path, columns=ALL[:-1] + ", n: int}")
    cases = [(i, column, value) for i, (column, value, _) in enumerate(TEXTS)]
    if form == "json":
        lines(pipe, "a.jsonl", [{"ts": "1970-01-01", "n": i, column: value} for i, column, value in cases])
    else:
        texts = [{
            "ts": "1970-01-01",
            "n": i,
            column: value if isinstance(value, str) else json.dumps(value)
        } for i, column, value in cases]
        pd.DataFrame(texts).to_csv(tmp_path / "landing/a.csv", index=False)
    take(pipe)
    got = {row[0]: dict(zip(COLUMNS, row[1:])) for row in rows(pipe, "streams/views", ", ".join(["n", *COLUMNS]))}
    for (i, column, value), (_, _, expected) in zip(cases, TEXTS):
        empty = form == "csv" and value == ""
        if expected is None and not empty:
            assert i not in got, (column, value, got[i])
        elif isinstance(value, dict):
            assert json.loads(got[i][column]) == value
        else:
            assert repr(got[i][column]) == ("None" if empty else
                                            repr(float(expected) if column in "fd" else expected)), (column, value)
    assert len(reasons(pipe)) == len(TEXTS) - len(got)


INSTANTS = [("2020-01-01", 0), ("2020-01-01T00:00", 0), ("2020-01-01 00:00:00.5", 500_000),
            ("2020-01-01T00:00:00.1234569Z", 123_456), ("2020-01-01T02:00:00+02:00", 0),
            ("2020-01-01T02:00:00+0200", 0), ("2019-12-31T22:00:00-02", 0), ("2020-13-01", None),
            ("2020-01-01T25:00", None), ("2020-01-01T00:00:00+25:00", None), ("2020-01-01T00:00:00+99", None),
            ("2020-01-01T00:00:00+00:60", None), ("2020-01-01T23:59:00+2359", 0), ("2020-01-01T00:00:00+00:00", 0),
            ("2020-01-01T00:00:00.9-00:30", 1800_900_000), ("infinity", None), ("epoch", None), ("2020/01/01", None),
            ("1577836800", None), ("0000-01-01", None), ("10000-01-01", None)]


def test_instants_from_texts(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, columns="{ts: timestamp, when: timestamp, n: int}")
    lines(pipe, "a.jsonl", [{"ts": "1970-01-01", "when": text, "n": i} for i, (text, _) in enumerate(INSTANTS)])
    take(pipe)
    assert stored(pipe, 'n, epoch_us("when") - 1577836800000000') == [
        (i, us) for i, (_, us) in enumerate(INSTANTS) if us is not None
    ]


PARQUET: list[tuple[str, pa.Array, list[Any]]] = [
    ("i", pa.array([1, 127, 128, None]), [1, 127, "bad", None]),
    ("i", pa.array([1.0, 1.5, float("nan"), 1e300]), [1, "bad", "bad", "bad"]),
    ("l", pa.array([0, 2**63, 2**64 - 1, 1], pa.uint64()), [0, "bad", "bad", 1]),
    ("l", pa.array([Decimal("1.00"), Decimal("1.01"), None, Decimal("-2.00")]), [1, "bad", None, -2]),
    ("l", pa.array(["1", " 2 ", "x", "1.5"]), [1, 2, "bad", "bad"]),
    ("m", pa.array([1.25, float("nan"), float("inf"), 1000.0]), [Decimal("1.25"), "bad", "bad", "bad"]),
    ("m", pa.array([1, 999, 1000, None]), [Decimal(1), Decimal(999), "bad", None]),
    ("s", pa.array([b"a", b"\xff", None, b""]), ["a", "bad", None, ""]),
    ("s", pa.array([1, 2, 3, None]), ["1", "2", "3", None]),
    ("s", pa.array([["a"], None, [], ["b"]]), ["bad", None, "bad", "bad"]),
    ("s", pa.array(["a", "b", None, "a"]).dictionary_encode(), ["a", "b", None, "a"]),
    ("d", pa.nulls(4), [None] * 4),
    ("b", pa.array([True, False, None, True]), [True, False, None, True]),
    ("b", pa.array([1, 0, None, 2]), ["bad", "bad", None, "bad"]),
    ("day", pa.array([0, 1, None, 10**7], pa.date32()), [dt.date(1970, 1, 1), dt.date(1970, 1, 2), None, "bad"]),
    ("f", pa.array([1.5, 1e39, None, float("inf")]), [1.5, "bad", None, float("inf")]),
]


def test_values_from_parquet(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, columns=ALL)
    for k, (column, values, _) in enumerate(PARQUET):
        parquet(pipe, f"{k:02d}.parquet", ts=at(1, 2, 3, 4), **{column: values})
    take(pipe)
    for k, (column, values, expected) in enumerate(PARQUET):
        found = rows(pipe, "streams/views", f"_source, epoch_us(ts) // 1000000, {column}")
        kept = sorted(r[1:] for r in found if r[0] == f"landing/{k:02d}.parquet")
        assert kept == [(i + 1, value) for i, value in enumerate(expected) if value != "bad"], (column, values.type)
        aside = [
            reason for reason, origin in rows(pipe, "quarantine/views", "_reason, _source")
            if origin == f"landing/{k:02d}.parquet"
        ]
        assert aside == [f"bad type: column {column}"] * expected.count("bad")


EVENTS: list[tuple[pa.DataType, list[Any], list[int]]] = [(pa.timestamp("us"), [1, 2], [1, 2]),
                                                          (pa.timestamp("us", "Europe/Paris"), [1, 2], [1, 2]),
                                                          (pa.timestamp("ms"), [1, 2], [1000, 2000]),
                                                          (pa.timestamp("s"), [1, 2], [10 ** 6, 2 * 10 ** 6]),
                                                          (pa.timestamp("ns"), [9_999_999_999, 1999], [1, 9_999_999]),
                                                          (pa.timestamp("ns", "UTC"), [9_999_999_999,
                                                                                       1999], [1, 9_999_999]),
                                                          (pa.date32(), [0, 0], [0, 0]),
                                                          (pa.string(), ["1970-01-01", "x"], [0]),
                                                          (pa.int64(), [1, 2], [])]


def test_event_times_from_parquet(tmp_path: Path) -> None:
    """Instants of every unit, cut to microseconds towards the past: a nanosecond before a boundary stays before it."""
    pipe = pipeline(tmp_path)
    for k, (kind, values, _) in enumerate(EVENTS):
        parquet(pipe, f"{k}.parquet", ts=pa.array(values, kind))
    take(pipe)
    expected = [
        (f"landing/{k}.parquet", us, 10 * SECOND) for k, (_, _, instants) in enumerate(EVENTS) for us in instants
    ]
    assert stored(pipe, "_source, epoch_us(ts), epoch_us(_boundary)") == expected


def test_broken_files_are_named_and_the_others_go_on(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path)
    parquet(pipe, "good.parquet", ts=at(1), user=pa.array(["x" * 2000]))
    whole = (tmp_path / "landing/good.parquet").read_bytes()
    (tmp_path / "landing/cut.parquet").write_bytes(whole[:-20])
    (tmp_path / "landing/damaged.parquet").write_bytes(whole[:4] + b"\xff" * 60 + whole[64:])
    (tmp_path / "landing/text.parquet").write_text("hello")
    (tmp_path / "landing/picture.json").write_bytes(b"\x89PNG\n\x00\x01\n")
    (tmp_path / "landing/list.json").write_text("not json\nnor this\n")
    (tmp_path / "landing/empty.csv").write_text("")
    (tmp_path / "landing/twice.csv").write_text("ts,ts\n1,2\n")
    (tmp_path / "landing/other.csv").write_text("time,user\n1,2\n")
    (tmp_path / "landing/latin.csv").write_bytes(b"ts,user\n1970-01-01,\xe9\n")
    (tmp_path / "landing/what.xml").write_text("<a/>")
    (tmp_path / "landing/_SUCCESS").write_text("")
    parquet(pipe, "zero.parquet", ts=at())
    said = take(pipe)
    assert said["streams"]["views"] == {"files": 2, "rows": 1, "quarantined": 0, "late": 0}
    refused = {r["path"]: r["reason"] for r in said["refused"]}
    assert set(refused) == {
        f"landing/{n}" for n in ("cut.parquet", "damaged.parquet", "text.parquet", "picture.json", "list.json",
                                 "empty.csv", "twice.csv", "other.csv", "latin.csv", "what.xml")
    }
    assert "no column ts" in refused["landing/other.csv"] and "time, user" in refused["landing/other.csv"]
    assert "header" in refused["landing/empty.csv"] and "twice" in refused["landing/twice.csv"]
    folder = set(os.listdir(tmp_path / "warehouse/streams/views")) - {"_delta_log"}
    assert len(folder) == 1, "nothing of a refused file stays"
    (tmp_path / "landing/other.csv").write_text("ts,user\n1970-01-01,2\n")
    assert take(pipe)["streams"]["views"]["rows"] == 1, "a mended file is taken"


ENGINES = ("Error", "TProtocol", "codec", "LINE 1", "duckdb", "Arrow", "Invalid")


def test_an_odd_file_is_refused_in_words_and_alone(tmp_path: Path) -> None:
    """Each of these stopped the whole ingest, or was refused in an engine's words."""
    pipe = pipeline(tmp_path)
    parquet(pipe, "good.parquet", ts=at(1), user=pa.array(["x" * 2000]))
    whole = (tmp_path / "landing/good.parquet").read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    damaged = {"cut": whole[:-20], "footer": whole[:footer] + b"\xff" * 20 + whole[footer + 20:],
               "pages": whole[:4] + b"\xff" * 60 + whole[64:], "text": b"hello", "empty": b""}
    for name, raw in damaged.items():
        (tmp_path / f"landing/{name}.parquet").write_bytes(raw)
    headers = {"case.csv": "ts,k,K", "nameless.csv": "ts,,k", "twice.csv": "ts,k,k"}
    for name, header in headers.items():
        (tmp_path / "landing" / name).write_text(f"{header}\n1970-01-01,1,2\n")
    for name, column in (("case", "K"), ("nameless", "")):
        pq.write_table(pa.table([at(1), pa.array([1]), pa.array([2])], ["ts", "k", column]),
                       tmp_path / f"landing/{name}.parquet")
    (tmp_path / "landing/latin.csv").write_bytes(b"ts,user\n" + b"1970-01-01,a\n" * 2000 + b"1970-01-01,\xe9\n")
    (tmp_path / "landing/latin.jsonl").write_bytes(b'{"ts": "1970-01-01"}\n{"ts": "1970-01-01", "user": "\xe9"}\n')
    (tmp_path / "landing/cut.csv.gz").write_bytes(gzip.compress(b"ts,user\n" + b"1970-01-01,a\n" * 200)[:-9])
    said = take(pipe)
    assert said["streams"]["views"] == {"files": 1, "rows": 1, "quarantined": 0, "late": 0} and said["ignored"] == []
    refused = {r["path"].removeprefix("landing/"): r["reason"] for r in said["refused"]}
    parquets = {f"{name}.parquet" for name in (*damaged, "case", "nameless")}
    assert set(refused) == {*parquets, *headers, "latin.csv", "latin.jsonl", "cut.csv.gz"}
    assert not [reason for reason in refused.values() if any(word in reason for word in (*ENGINES, str(tmp_path)))]
    assert "k and K" in refused["case.csv"] and "k and K" in refused["case.parquet"]
    assert "column 2 of 3" in refused["nameless.csv"]
    assert "line 2002 has the byte E9" in refused["latin.csv"] and "damaged" in refused["pages.parquet"]


def test_an_index_that_pandas_wrote_is_left_out_and_told(tmp_path: Path) -> None:
    import pandas as pd  # only here, and it takes a quarter of a second

    pipe = pipeline(tmp_path)
    pd.DataFrame({"ts": ["1970-01-01", "1970-01-01"], "ms": [1, 2]}).to_csv(tmp_path / "landing/a.csv")
    (tmp_path / "landing/b.csv").write_text("ts,ms\n1970-01-01,3\n")
    said = take(pipe)
    assert said["refused"] == []
    assert [(note["stream"], note["path"]) for note in said["ignored"]] == [("views", "landing/a.csv")]
    assert "first column has no name" in said["ignored"][0]["reason"] and stored(pipe, "ms") == [(1,), (2,), (3,)]
    assert take(pipe)["ignored"] == [], "told once"


def test_quarantined_lines_are_whole(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path)
    lines(pipe, "a.jsonl", ['{"ts": "1970-01-01"}', 'x\x01y\x00z', '{"ts": "' + "w" * 20_000])
    long = "1970-01-01\x01" + "v" * 20_000
    (tmp_path / "landing/b.csv").write_text(f"ts,user\r\n1970-01-01,a\r\n{long}\n1970-01-01,b\n")
    assert counts(pipe) == (2, 3, 3, 0)
    whole = [long, "x\x01y\x00z", '{"ts": "' + "w" * 20_000]
    assert sorted(json.loads(row) for row, in rows(pipe, "quarantine/views", "_row")) == whole


def test_given_files_are_checked_before_anything_changes(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path)
    parquet(pipe, "a.parquet", ts=at(1))
    good = str(tmp_path / "landing/a.parquet")
    (tmp_path / "a.xml").write_text("")
    mistakes = [({
        "view": [good]
    }, "unknown-stream"), ({
        "views": [good, "nowhere.parquet"]
    }, "no-file"), ({
        "views": [str(tmp_path)]
    }, "no-file"), ({
        "views": [str(tmp_path / "a.xml")]
    }, "unknown-format"), ({
        "views": [42]
    }, "bad-frame")]
    for only, code in mistakes:
        with pytest.raises(ForebayError) as caught:
            take(pipe, only=only)
        assert caught.value.code == code and caught.value.exit_code == 2 and caught.value.hint
    assert stored(pipe) == []


def test_data_frames(tmp_path: Path) -> None:
    import pandas as pd  # only here, and it takes a quarter of a second

    pipe = pipeline(tmp_path, source="")
    frame = pd.DataFrame({"ts": pd.to_datetime([1, 2], unit="s"), "user": ["a", None], "ms": [1, 2]})
    assert counts(pipe, only={"views": [frame]}) == (1, 2, 0, 0)
    assert counts(pipe, only={"views": [frame, pa.Table.from_pandas(
        frame.assign(ms=3))]}) == (1, 2, 0, 0), "the same frame once, the other one too"
    assert all(source.startswith("hand:") for source, in rows(pipe, "streams/views", "_source"))
    assert not os.path.exists(tmp_path / "warehouse/staging/views") or not os.listdir(
        tmp_path / "warehouse/staging/views")
    assert take(pipe)["streams"]["views"]["files"] == 0, "a stream without a source takes nothing by itself"
    with pytest.raises(ForebayError) as caught:
        take(pipe, only={"views": [pd.DataFrame({"ts": [1, "x"]})]})
    assert caught.value.code == "bad-frame"


def test_large_files_are_shared_by_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jobs.ingest import ingest
    monkeypatch.setattr(ingest, "LARGE", 1)
    monkeypatch.setattr(ingest, "ROWS_A_TASK", 1000)
    pipe = pipeline(tmp_path)
    parquet(pipe, "a.parquet", ts=at(*(i / 100 for i in range(3500)), -1), ms=pa.array(range(3501)))
    assert counts(pipe) == (1, 3500, 1, 0)
    assert stored(pipe, "ms") == [(i,) for i in range(3500)] and len(rows(pipe, "ledger/files", "path")) == 1
    os.utime(tmp_path / "landing/a.parquet", (1, 1))
    assert counts(pipe) == (0, 0, 0, 0) and len(stored(pipe)) == 3500


def test_many_files_are_many_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jobs.ingest import ingest
    monkeypatch.setattr(ingest, "FILES_A_COMMIT", 2)
    monkeypatch.setattr(intake, "MANY", 3)
    pipe = pipeline(tmp_path)
    for i in range(9):
        lines(pipe, f"{i}.jsonl", [{"ts": f"1970-01-01T00:00:0{i}Z"}])
    assert counts(pipe) == (9, 9, 0, 0)
    assert sorted(rows(pipe, "streams/views", "_ingest")) == [(i // 2,) for i in range(9)]
    assert len(rows(pipe, "ledger/files", "path")) == 9 and counts(pipe) == (0, 0, 0, 0)


def test_changed_columns_are_refused(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path)
    parquet(pipe, "a.parquet", ts=at(1))
    counts(pipe)
    with pytest.raises(ForebayError) as caught:
        take(pipeline(tmp_path, columns="{ts: timestamp, user: string, ms: string}"))
    assert caught.value.code == "columns-changed" and "ms" in caught.value.message


def test_a_delta_reader_sees_the_declared_types(tmp_path: Path) -> None:
    from jobs.pipeline.schema import stream_schema
    from jobs.storage import tables
    pipe = pipeline(tmp_path, columns=ALL)
    lines(pipe, "a.jsonl", [{"ts": "1970-01-01", "i": 1, "m": 1}])
    counts(pipe)
    read = tables.open_table(str(tmp_path / "warehouse/streams/views")).handle.to_pyarrow_table()
    assert {
        f.name: f.type for f in read.schema
    } == {
        f.name: f.type for f in stream_schema(pipe.streams["views"].columns)
    } and read.num_rows == 1


def test_a_folder_can_be_moved(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path / "here")
    parquet(pipe, "a.parquet", ts=at(1))
    counts(pipe)
    os.rename(tmp_path / "here", tmp_path / "there")
    moved = pipeline(tmp_path / "there")
    assert counts(moved) == (0, 0, 0, 0) and stored(moved) == [(1, 10)]


def test_nan_is_no_number_between_a_file_s_bounds(tmp_path: Path) -> None:
    """Arrow's footers say 0 … 1 of a column with NaN, and the engine believes them: to it nothing would be above 1."""
    pq.write_table(pa.table({"d": [0.0, float("nan"), 1.0]}), tmp_path / "a.parquet")
    con = kernel.shared()
    source = reading.IngestInput("files", "a", str(tmp_path / "a.parquet"), "parquet")
    rows_ = reading.open_input(con, source, ("d",), frozenset())
    value, _ = rows_.columns["d"]
    asked = (f"SELECT count(*) FILTER ({value} > 1), CAST(max({value}) AS VARCHAR) FROM {rows_.rows} WHERE NOT {value} "
             "= 0")
    assert con.execute(asked).fetchall() == [(1, "nan")]


def test_files_of_the_quarantine_have_one_schema(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path)
    parquet(pipe, "a.parquet", ts=at(None))
    lines(pipe, "b.jsonl", [{"ts": "1970-01-01"}, {"ts": "x"}])
    (tmp_path / "landing/c.csv").write_text("ts\nx\n")
    assert counts(pipe) == (3, 1, 3, 0)
    files = (tmp_path / "warehouse/quarantine/views").glob("*.parquet")
    assert len({str(pq.read_schema(file)) for file in files}) == 1
