"""`import forebay` as its users call it: times as they come to hand, whole numbers that stay whole, and only
ForebayErrors for a wrong use.
"""
from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import forebay
from tests.jobs.pipelines import COUNT, boundary, pipeline, rows

pytestmark = pytest.mark.slow

pytestmark = pytest.mark.slow
LARGE = 2**53 + 1
TEN = "2026-01-01T00:00:10Z"
WRONG: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "time": ("bad-time", lambda pipe: pipe.result("q", at="noon")),
    "until": ("bad-time", lambda pipe: pipe.run(to=[])),
    "none": ("bad-usage", lambda pipe: pipe.run(batches=0)),
    "no data": ("bad-usage", lambda pipe: pipe.ingest("views")),
    "no stream": ("bad-usage", lambda pipe: pipe.ingest(data="a.csv")),
    "no text": ("bad-usage", lambda pipe: pipe.create("x", None)),
    "no change": ("bad-usage", lambda pipe: pipe.change("q", "stop")),
    "no plan": ("bad-usage", lambda pipe: pipe.change("q", "pin")),
    "no query": ("unknown-query", lambda pipe: pipe.explain("nosuch")),
    "no pipeline": ("no-pipeline", lambda pipe: forebay.open("/nowhere"))
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> forebay.Pipeline:
    pipe = pipeline(tmp_path_factory.mktemp("python"), queries={
        "q": COUNT,
        "sums": "SELECT SUM(v.x) AS x FROM views AS v [WINDOW 5 SECONDS]"
    })
    rows(pipe, [7, 25], x=LARGE)
    pipe.run()
    return pipe


@pytest.mark.parametrize("at", [
    boundary(10), TEN,
    datetime(2026, 1, 1, 0, 0, 10),
    datetime(2026, 1, 1, 0, 0, 10, tzinfo=timezone.utc),
    pd.Timestamp(TEN)
])
def test_a_time_is_given_in_any_of_its_forms(ran: forebay.Pipeline, at: object) -> None:
    assert ran.result("q", at=at)["n"].to_list() == [1]
    assert ran.run(to=at)["ran"] == []


def test_whole_numbers_beside_null_stay_whole(ran: forebay.Pipeline) -> None:
    found = ran.result("sums", every=True)["x"]
    assert found[0] == LARGE and found.isna().to_list() == [False, True] and found.dtype == pd.Int64Dtype()


@pytest.mark.parametrize(("code", "call"), WRONG.values(), ids=WRONG)
def test_a_wrong_use_is_a_forebay_error(ran: forebay.Pipeline, code: str, call: Callable[[Any], Any]) -> None:
    with pytest.raises(forebay.ForebayError) as caught:
        call(ran)
    assert (caught.value.code, caught.value.exit_code) == (code, 2) and caught.value.hint


def test_what_could_not_be_taken_is_raised_after_the_rest(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path / "pipe")
    rows(pipe, [7])
    broken, sound = tmp_path / "broken.csv", tmp_path / "sound.csv"
    broken.write_bytes(b"\xff\xfe\x00nonsense")
    sound.write_text("ts,k,x\n2026-01-01T00:00:08Z,1,1\n")
    with pytest.raises(forebay.ForebayError, match="broken.csv of stream views") as caught:
        pipe.ingest("views", [str(broken), str(sound)])
    assert (caught.value.code, caught.value.exit_code) == ("not-taken", 1)
    assert "views 1 rows" in (caught.value.hint or "")
    assert pipe.runtime.table("streams/views").refresh().files()[-1].rows == 1


def test_a_run_says_how_many_boundaries_are_ahead(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [7, 55])
    ahead, after = list[int](), list[int]()
    pipe.run(batches=1, progress=lambda entry: after.append(entry["boundary"]), ahead=ahead.append)
    assert (ahead, after) == ([1], [boundary(10)])
    ahead.clear()
    pipe.run(flush=True, ahead=ahead.append)
    assert ahead[0] == 5 and ahead == sorted(ahead, reverse=True)
