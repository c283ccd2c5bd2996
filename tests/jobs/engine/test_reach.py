"""Which files' times need not be read: only those of which every row is as its bounds say, for whatever the source asks
of them.
"""
from __future__ import annotations

import pytest

from jobs.engine.reach import MOMENT_ROWS, MOMENTS, MOST_MOMENTS, split
from jobs.engine.work import TimedFiles
from jobs.storage.tables import File
from optimizer.plan.membership import Counting, Range
from optimizer.plan.program import Source
from optimizer.query.windows import ALWAYS, Window

BATCH = 10
SLIDING = Counting(Window("sliding", 60), BATCH)
CAME = Source("s0", "stream", "views", (Range(100, 200),), stamp="ts", counting=SLIDING)
WINDOW = Source("s0", "stream", "views", (Range(-ALWAYS, 200, 140),), stamp="ts")


def file(name: str, boundaries: tuple[int, int], stamps: tuple[int, int], rows: int = 5) -> File:
    return File(name, rows, 1, {
        "_boundary": boundaries[0],
        "ts": stamps[0]
    }, {
        "_boundary": boundaries[1],
        "ts": stamps[1]
    })


def found(source: Source, *files: File) -> tuple[tuple[str, ...], tuple[TimedFiles, ...]]:
    return split(files, source, lambda f: f.path)


def test_rows_that_leave_together_are_told_by_one_time() -> None:
    assert found(CAME, file("a", (110, 110), (100, 109))) == ((), (TimedFiles(("a",), 110, 100),))


@pytest.mark.parametrize("why, doubtful", [("two boundaries", file("a", (110, 120), (100, 109))),
                                           ("two panes", file("a", (110, 110), (100, 110))),
                                           ("no rows", file("a", (110, 110), (100, 109), 0)),
                                           ("no bounds", File("a", 5, 1)),
                                           ("only lower bounds", File("a", 5, 1, {
                                               "_boundary": 110,
                                               "ts": 100
                                           }, {}))])
def test_in_doubt_times_are_read(why: str, doubtful: File) -> None:
    assert found(CAME, doubtful) == (("a",), ())


def test_files_of_one_moment_stand_together() -> None:
    files = [file("a", (110, 110), (101, 103)), file("b", (110, 110), (105, 109)), file("c", (110, 110), (90, 95))]
    assert found(CAME, *files) == ((), (TimedFiles(("a", "b"), 110, 101), TimedFiles(("c",), 110, 90)))


def test_a_file_half_in_a_range_is_read() -> None:
    leaving = Source("s0", "stream", "views", (Range(100, 200), Range(-ALWAYS, 200, 30, 45)), stamp="ts",
                     counting=SLIDING)
    assert found(leaving, file("a", (50, 50), (41, 48)), file("b", (50, 50), (41, 44))) == (("a",), (TimedFiles(
        ("b",), 50, 41),))


def test_of_a_window_alone_all_certain_files_are_one() -> None:
    files = [file("a", (150, 190), (141, 180)), file("b", (150, 150), (139, 145)), file("c", (160, 200), (140, 199))]
    assert found(WINDOW, *files) == (("b",), (TimedFiles(("a", "c"), 200, 140),))


def test_a_source_that_asks_for_times_gets_them() -> None:
    assert found(Source("s0", "stream", "views", (Range(100, 200),)), file("a", (110, 110), (100, 109))) == (("a",), ())


def moments(count: int, rows: int) -> list[File]:
    return [file(f"{n:04}", (110, 110), (-n * BATCH, -n * BATCH + 3), rows) for n in range(count)]


def test_moments_of_few_rows_are_not_worth_a_branch_each() -> None:
    rest, timed = found(CAME, *moments(MOMENTS + 2, MOMENT_ROWS - 1))
    assert (rest, len(timed)) == ((f"{MOMENTS:04}", f"{MOMENTS + 1:04}"), MOMENTS)


def test_moments_of_many_rows_are() -> None:
    rest, timed = found(CAME, *moments(MOST_MOMENTS + 2, MOMENT_ROWS))
    assert (rest, len(timed)) == ((f"{MOST_MOMENTS:04}", f"{MOST_MOMENTS + 1:04}"), MOST_MOMENTS)
