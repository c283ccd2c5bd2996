"""What lies on the disk after many boundaries: a bounded number of files, and tables that open as fast as before."""
from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.ledger import ledger
from jobs.maintenance import compact
from jobs.requests import boundaries
from jobs.storage import tables
from tests.jobs.pipelines import COUNT, equal, opened, pipeline, ran, rows

pytestmark = pytest.mark.slow

TOTAL = "SELECT COUNT(*) AS n, SUM(v.x) AS x FROM views AS v [WINDOW 1 MINUTE]"


@pytest.fixture(autouse=True)
def _short_lived(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing that left a table has to stay for readers, so that an hour need not pass.

    Each boundary is a batch of its own.
    """
    monkeypatch.setattr(tables, "RETENTION", dict.fromkeys(tables.RETENTION, "interval 0 seconds"))
    monkeypatch.setattr(compact, "GRACE", 0.0), monkeypatch.setattr(compact, "GRACE_HOURS", 0)
    monkeypatch.setattr(compact, "versions_hours", lambda pipeline: 0)
    monkeypatch.setattr(boundaries, "GROUP_BOUNDARIES", 1)
    yield


def lived(folder: Path, first: int, count: int) -> None:
    """So many boundaries, ten rows each, run as they come by one process, with upkeep as every run brings it after a
    quarter of an hour.
    """
    pipe = opened(folder)
    for start in range(first, first + count, 25):
        rows(pipe, [10 * boundary + second for boundary in range(start, start + 25) for second in range(1, 10)])
        ran(pipe, flush=True)
        (folder / "warehouse" / ".swept").unlink(missing_ok=True)
    pipe.run()
    pipe.close()


def files(folder: Path) -> Counter[str]:
    """How many there are, by table and kind."""
    found = [p.relative_to(folder / "warehouse") for p in (folder / "warehouse").rglob("*") if p.is_file()]
    return Counter(f"{'/'.join(p.parts[:2])} {p.suffix}" for p in found)


def opening(folder: Path) -> float:
    """Processor seconds to open a pipeline, read its ledger and an answer: the least of five."""
    taken = []
    for _ in range(5):
        start = time.process_time()
        opened(folder).result("count")
        taken.append(time.process_time() - start)
    return min(taken)


def test_a_warehouse_of_constant_state_has_a_bounded_number_of_files(tmp_path: Path,
                                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "CHECKPOINT_EVERY", 10), monkeypatch.setattr(ledger, "MANY", 10)
    pipe = pipeline(tmp_path, queries={"count": COUNT, "total": TOTAL}, top="keep_versions: 1 second\n")
    pipe.close()
    lived(tmp_path, 0, 50)
    before = files(tmp_path)
    lived(tmp_path, 50, 50)
    after = files(tmp_path)
    assert sum(after.values()) <= sum(before.values()) + 2 * tables.CHECKPOINT_EVERY, after - before
    assert max(n for kind, n in after.items() if kind.endswith(".json")) <= 3 * tables.CHECKPOINT_EVERY, after
    assert equal(opened(tmp_path))


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_after_ten_thousand_boundaries_it_opens_as_fast_as_after_five_hundred(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"count": COUNT}, top="keep_versions: 1 second\n")
    pipe.close()
    lived(tmp_path, 0, 500)
    before, took_before = files(tmp_path), opening(tmp_path)
    lived(tmp_path, 500, 9_500)
    after, took_after = files(tmp_path), opening(tmp_path)
    print(
        f"{sum(before.values())} files after 500 boundaries, {sum(after.values())} after 10,000; opening "
        f"{took_before:.3f} s, then {took_after:.3f} s"
    )
    assert sum(after.values()) <= 2 * sum(before.values()), after - before
    assert took_after <= 2 * took_before
