"""The same ingest in Spark's tasks."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.engine.tasks import Tasks
from tests.jobs.ingesting import content, lines, pipeline, refreshed, rows, stored, take

RELATIONS = "relations:\n  pages: {columns: {page: string}, source: {files: pages.csv}}\n"


@pytest.fixture(scope="module")
def tasks() -> Iterator[Tasks]:
    made = Tasks("local[2]")
    yield made
    made.stop()


@pytest.mark.spark
def test_spark_tasks_do_what_this_process_does(tmp_path: Path, tasks: Tasks) -> None:
    folders = [
        pipeline(tmp_path / name, stream="lateness: 1 minute", relations=RELATIONS) for name in ("here", "spark")
    ]
    for pipe in folders:
        for i in range(5):
            lines(pipe, f"{i}.jsonl", [{"ts": f"1970-01-01T00:0{i}:00Z", "ms": i}, {"ts": "x"}])
        Path(pipe.folder, "landing", "broken.parquet").write_text("broken")
        Path(pipe.folder, "pages.csv").write_text("page\nhome\n")
    here = take(folders[0], last=200 * 10**6)
    there = take(folders[1], last=200 * 10**6, tasks=tasks)
    assert here == there and there["streams"]["views"] == {
        "files": 5,
        "rows": 1,
        "late": 1,
        "quarantined": 8
    } and len(there["refused"]) == 1
    assert content(folders[0]) == content(folders[1])
    frame = tasks.session.sql("SELECT TIMESTAMP'1970-01-01 00:05:00' AS ts, 'u' AS user")
    assert take(folders[1], only={"views": [frame]}, tasks=tasks)["streams"]["views"]["rows"] == 1
    assert stored(folders[1])[-1] == (300, 310)
    assert refreshed(folders[1], tasks).versions == {
        "pages": 0
    } and rows(folders[1], "relations/pages", "page") == [("home",)]
