"""Rows so old that they would open boundaries without end: which leave for quarantine, when, and what a kill leaves."""
from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.ingest import behind, register, silences
from jobs.pipeline.config import Pipeline, load
from jobs.pipeline.warehouse import Warehouse
from tests.jobs.ingesting import SECOND, at, content, lines, parquet, pipeline, process, reasons, rows, stored, take

pytestmark = pytest.mark.slow
LATE_CLOCK = 10**9 * SECOND
GAP = 100_001 * 10             # seconds from one boundary to the next with 100,000 between them
TWO = """name: test
batch: 10 seconds
{top}streams:
  views: {{columns: {{ts: timestamp, user: string}}, event_time: ts{views}}}
  buys: {{columns: {{ts: timestamp, user: string}}, event_time: ts{buys}}}
"""


def two_streams(folder: Path, views: str = "", buys: str = "", top: str = "") -> Pipeline:
    (folder / "landing").mkdir(parents=True, exist_ok=True)
    (folder / "forebay.yml").write_text(TWO.format(top=top, views=views, buys=buys))
    return load(str(folder))


def came(pipe: Pipeline, stream: str, *seconds: int) -> dict[str, Any]:
    """An ingest of rows with these event times, in a file of their own."""
    name = f"{stream}-{len(list(Path(pipe.folder, 'landing').iterdir()))}.jsonl"
    lines(pipe, name, [{"ts": f"{stamp(s)}", "user": "u"} for s in seconds])
    return take(pipe, only={stream: [str(Path(pipe.folder, "landing", name))]}, clock=LATE_CLOCK)


def stamp(seconds: int) -> str:
    from optimizer.time import iso
    return iso(seconds * SECOND)


def left(pipe: Pipeline, stream: str = "views") -> list[int]:
    return sorted(s for s, in rows(pipe, f"streams/{stream}", "epoch_us(ts) // 1000000"))


def span(pipe: Pipeline, stream: str = "views") -> tuple[int, int]:
    mark = register.watermarks(Warehouse(pipe.warehouse), [stream])[stream]
    return mark.earliest // SECOND, mark.latest // SECOND


def test_one_old_timestamp_does_not_open_boundaries_without_end(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path)
    lines(pipe, "a.jsonl", [{"ts": "1971-01-01T00:00:05Z", "user": "u", "ms": 7}, {"ts": "2000-01-01T00:00:05Z"},
                            {"ts": "2000-01-01T00:01:05Z"}])
    report = take(pipe, clock=LATE_CLOCK)
    assert report["streams"]["views"] == {"files": 1, "rows": 2, "quarantined": 1, "late": 0}
    note, = report["notes"]
    assert "1 row went to quarantine" in note and "behind: for ever" in note and "boundaries between 1971-01-01" in note
    assert reasons(pipe) == [behind.BEFORE_A_GAP] and len(stored(pipe)) == 2
    (row, source, ingest), = rows(pipe, "quarantine/views", "_row, _source, _ingest")
    assert '"user":"u"' in row and "1971-01-01" in row and (source, ingest) == ("landing/a.jsonl", 0)
    assert register.refused(Warehouse(pipe.warehouse), "views", 9) == (1, {behind.BEFORE_A_GAP: 1})
    assert span(pipe) == (946684805, 946684865)
    assert register.counts(Warehouse(pipe.warehouse)) == (2, 0, 1)
    assert take(pipe, clock=LATE_CLOCK)["streams"]["views"] == {"files": 0, "rows": 0, "quarantined": 0, "late": 0}


@pytest.mark.parametrize("more, stay", [(0, 2), (10, 1)])
def test_a_gap_is_one_of_more_than_a_hundred_thousand_boundaries(tmp_path: Path, more: int, stay: int) -> None:
    pipe = two_streams(tmp_path)
    came(pipe, "views", 5, 5 + GAP + more)
    assert len(left(pipe)) == stay


def test_rows_of_earlier_ingests_leave_when_newer_rows_show_how_old_they_are(tmp_path: Path) -> None:
    pipe = two_streams(tmp_path)
    assert came(pipe, "views", 5, 25)["notes"] == []
    report = came(pipe, "buys", 5 + 2 * GAP)
    assert report["streams"]["buys"]["rows"] == 1 and "2 rows went to quarantine" in report["notes"][0]
    assert (left(pipe), left(pipe, "buys")) == ([], [5 + 2 * GAP])
    assert register.watermarks(Warehouse(pipe.warehouse), ["views"]) == {}
    came(pipe, "views", 2 * GAP)
    assert span(pipe) == (2 * GAP, 2 * GAP)


def test_behind_counts_back_from_the_newest_row_of_any_stream(tmp_path: Path) -> None:
    pipe = two_streams(tmp_path, views=", behind: 1 minute")
    came(pipe, "views", 39, 40, 41)
    came(pipe, "buys", 1, 100)
    assert left(pipe) == [40, 41] and left(pipe, "buys") == [1, 100]
    assert reasons(pipe) == [behind.BEHIND]


def test_behind_of_the_pipeline_is_its_streams(tmp_path: Path) -> None:
    pipe = two_streams(tmp_path, views=", behind: for ever", top="behind: 1 minute\n")
    came(pipe, "views", 1, 2 * GAP)
    came(pipe, "buys", 1, 2 * GAP)
    assert left(pipe) == [1, 2 * GAP] and left(pipe, "buys") == [2 * GAP]


def test_what_stands_across_the_cutoff_in_one_file_is_divided(tmp_path: Path) -> None:
    """Values stay what they are, in both tables; a sensitive one is not shown."""
    pipe = pipeline(tmp_path, "{ts: timestamp, user: {type: string, sensitive: true}, ms: 'decimal(10,2)'}",
                    "behind: 10 seconds")
    from decimal import Decimal

    import pyarrow as pa
    parquet(pipe, "a.parquet", ts=at(1, 2, 50.25, 51), user=pa.array(["a", None, "c", "d"]),
            ms=pa.array([Decimal("1.50"), Decimal("2.00"), None, Decimal("4.25")]))
    take(pipe)
    assert stored(pipe, "epoch_us(ts), user, CAST(ms AS VARCHAR), epoch_us(_boundary)") == [
        (50_250_000, "c", None, 60 * SECOND), (51 * SECOND, "d", "4.25", 60 * SECOND)]
    told = sorted(row for row, in rows(pipe, "quarantine/views", "_row"))
    assert len(told) == 2 and all('"a"' not in row for row in told) and '"***"' in told[0] + told[1]
    assert any('"1.50"' in row for row in told)


def test_once_a_boundary_has_begun_lateness_decides(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, stream="behind: 10 seconds, lateness: 1 hour")
    lines(pipe, "a.jsonl", [{"ts": stamp(1)}, {"ts": stamp(300)}])
    assert take(pipe, last=100 * SECOND)["streams"]["views"] == {"files": 1, "rows": 1, "quarantined": 0, "late": 1}


POINTS = ("ingest.before-depart", "ingest.after-depart", "ingest.before-quarantine:2", "ingest.after-quarantine:2",
          "ingest.before-files:2", "ingest.after-files:2")


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_loses_and_doubles_no_row(tmp_path: Path, point: str) -> None:
    calm, shaken = (pipeline(tmp_path / name, stream="behind: 10 seconds") for name in ("calm", "shaken"))
    for pipe in (calm, shaken):
        lines(pipe, "a.jsonl", [{"ts": stamp(s), "user": f"u{s}"} for s in (1, 5, 42, 45, 50)] + ["broken"])
    assert process(calm) == 0 and process(shaken, point) == -9
    for again in ("ingest.before-recover", "ingest.after-recover"):
        process(shaken, again)
    assert process(shaken) == 0
    assert stored(shaken) == stored(calm) and reasons(shaken) == reasons(calm)
    assert register.counts(Warehouse(shaken.warehouse)) == register.counts(Warehouse(calm.warehouse)) == (3, 0, 3)
    assert span(shaken) == span(calm) == (42, 50)


def test_a_departure_of_which_files_are_torn_is_taken_back_and_done_again(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, stream="behind: 10 seconds")
    lines(pipe, "a.jsonl", [{"ts": stamp(s), "user": f"u{s}"} for s in (1, 45, 50)])
    assert process(pipe, "ingest.after-depart") == -9
    newest = max(Path(pipe.warehouse, "streams", "views").glob("*.parquet"), key=lambda path: path.stat().st_mtime)
    newest.write_bytes(newest.read_bytes()[:-9])
    take(pipe)
    assert left(pipe) == [45, 50] and reasons(pipe) == [behind.BEHIND]


SECONDS = st.lists(st.integers(0, 400), min_size=1, max_size=4)


@given(lives=st.lists(st.tuples(st.sampled_from(["views", "buys"]), SECONDS), min_size=1, max_size=4),
       views=st.sampled_from([None, 30, "for ever"]), buys=st.sampled_from([None, 70]), number=st.integers(0, 2**40))
def test_random_ingests_keep_what_the_rule_keeps(tmp_path_factory: pytest.TempPathFactory, lives: Any, views: Any,
                                                 buys: Any, number: int) -> None:
    """Against the rule in plain Python; a gap is one of more than 5 boundaries here."""
    limits = {"views": views, "buys": buys}
    with pytest.MonkeyPatch.context() as patch:
        for module in (behind, silences):
            patch.setattr(module, "LONG", 5)
        settings = {name: "" if limit is None else f", behind: {limit} seconds".replace("for ever seconds", "for ever")
                    for name, limit in limits.items()}
        pipe = two_streams(tmp_path_factory.mktemp("random"), **settings)
        stored_by_stream: dict[str, list[int]] = {"views": [], "buys": []}
        for stream, seconds in lives:
            random.Random(number).shuffle(seconds)
            came(pipe, stream, *seconds)
            stored_by_stream = kept({**stored_by_stream, stream: stored_by_stream[stream] + seconds}, limits)
            for name, expected in stored_by_stream.items():
                assert left(pipe, name) == sorted(expected)
                assert not expected or span(pipe, name) == (min(expected), max(expected))


def kept(seconds: dict[str, list[int]], limits: dict[str, Any]) -> dict[str, list[int]]:
    newest = max(s for of_stream in seconds.values() for s in of_stream)
    after = {}
    for name, of_stream in seconds.items():
        limit = limits[name] if isinstance(limits[name], int) else 10**9
        after[name] = [s for s in of_stream if s >= newest - limit]
    boundaries = sorted({s // 10 for of_stream in after.values() for s in of_stream})
    first = max((late for early, late in zip(boundaries, boundaries[1:]) if late - early - 1 > 5), default=0)
    return {name: [s for s in of_stream if limits[name] is not None or s // 10 >= first]
            for name, of_stream in after.items()}


def test_content_of_the_ledger_adds_up(tmp_path: Path) -> None:
    pipe = two_streams(tmp_path)
    came(pipe, "views", 5, 5 + 2 * GAP)
    told = [row for row in content(pipe)["ledger/files"] if "behind:" in row]
    assert len(told) == 1 and ", -1, 0, 1, 1," in told[0]
