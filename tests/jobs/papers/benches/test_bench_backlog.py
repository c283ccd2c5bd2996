"""The benchmark of a backlog compares the answers of both ways before it says what they take."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.papers.benches.backlog import measured, write_p1, write_p2
from jobs.papers.benches.streams import BenchSetting

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("write, boundaries", [(write_p1, 4), (write_p2, 9)])
def test_both_ways_of_a_small_backlog(tmp_path: Path, write: Callable[[str, BenchSetting, int], None],
                                      boundaries: int) -> None:
    report = measured(str(tmp_path), BenchSetting(rate=100, keys=10, groups=5), boundaries, write)
    assert report["boundaries"] == boundaries == report["one_a_batch"]["batches"]
    assert report["together"]["batches"] < boundaries
