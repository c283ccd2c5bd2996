"""`latency` in forebay.yml: a boundary that took too long is followed by one on more tasks, with the same answers and a
decision that says so.
"""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import forebay
from jobs.engine.tasks import Tasks
from tests.jobs.pipelines import equal, opened, pipeline, ran, rows

pytestmark = pytest.mark.slow

JOINED = ("SELECT a.k, COUNT(*) AS n, SUM(10 % b.x) AS x FROM views AS a [WINDOW 20 SECONDS], clicks AS b [WINDOW 30 "
          "SECONDS] WHERE a.k = b.k GROUP BY a.k")
QUERIES = {
    "one": JOINED,
    **{
        f"q{n}": f"SELECT COUNT(*) AS n FROM views AS v [WINDOW 20 SECONDS] WHERE v.x > {n}" for n in range(4)
    }
}


def asked(pipe: forebay.Pipeline, until: int, times: int = 1, after: Callable[[], object] = lambda: None) -> list[int]:
    """Tasks of each boundary, of three rows a stream or so many times as many; `after` is called after each."""
    found = []
    for at in range(1, until, 10):
        for stream in ("views", "clicks"):
            rows(pipe, [at, at + 1, at + 2] * times, stream, k=[0, 1, 2] * times, x=[1 + at % 3, 1, 2] * times)
        for _ in ran(pipe):
            last = pipe.runtime.ledger.last()
            assert last is not None
            found.append(last.batch.parts)
            after()
    return found


def parts(folder: Path, patch: pytest.MonkeyPatch, latency: str) -> list[int]:
    """Tasks of each boundary, on a session that runs four at once."""
    patch.setattr(Tasks, "width", property(lambda _: 4))
    pipe = pipeline(folder, {"views": "", "clicks": ""}, queries=QUERIES, top=f"latency: {latency}\n")
    found = asked(pipe, 62)
    assert equal(pipe) and equal(opened(folder))
    reasons = [str(d["reason"]) for d in pipe.plans("one")["decisions"]]
    assert any("instead of 1" in r for r in reasons) == (max(found) > 1)
    return found


def test_a_boundary_that_took_too_long_is_followed_by_one_on_more_tasks(tmp_path: Path,
                                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    found = parts(tmp_path, monkeypatch, "1 millisecond")
    assert found[0] == 1 and found[-1] == 4


def test_one_task_is_enough_where_a_boundary_may_take_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(parts(tmp_path, monkeypatch, "1 hour")) == {1}
