"""A pattern names the same files on this machine and in a store."""
from __future__ import annotations

from pathlib import Path

import pytest

from jobs.patterns import _fits, matching

NAMES = ("a.csv", "b.txt", "in/a.csv", "in/deep/a.csv", "in/deep/er/b.csv", "in/x1/a.csv", "in/x22/a.csv")
PATTERNS = ("*.csv", "in/*.csv", "in/*/a.csv", "in/**/*.csv", "**/*.csv", "in/x?/*", "in/x[0-9]*/a.csv", "in/deep/er/b.csv", "in/**/er/**/b.csv")


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_store_is_asked_as_a_folder_is(tmp_path: Path, pattern: str) -> None:
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = [str(Path(p).relative_to(tmp_path)) for p in matching(str(tmp_path / pattern))]
    assert found and found == sorted(n for n in NAMES if _fits(n.split("/"), pattern.split("/")))
