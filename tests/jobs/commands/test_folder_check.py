"""`pipe.check()`: what is wrong in forebay.yml's sources, queries/ and expectations/, without running anything."""
from __future__ import annotations

from pathlib import Path

import pytest

from optimizer.errors import ForebayError
from tests.jobs.pipelines import COUNT, opened, pipeline, ran, rows

pytestmark = pytest.mark.slow

SUM = "SELECT SUM(v.x) AS total FROM views AS v [WINDOW 20 SECONDS]"
OF_QUERY = "query: {query}\nexpectations:\n- {{type: expect_column_values_to_not_be_null, column: {column}}}\n"


def expected(folder: Path, query: str, column: str) -> None:
    (folder / "expectations").mkdir(exist_ok=True)
    (folder / "expectations" / "mine.yml").write_text(OF_QUERY.format(query=query, column=column))


def test_what_is_right_is_counted_and_nothing_is_entered(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, {"views": "", "clicks": ""}, queries={"q": COUNT, "r": SUM})
    expected(tmp_path, "q", "n")
    document = pipe.check()
    assert document == {"pipeline": "test", "streams": ["clicks", "views"], "relations": [], "queries": ["q", "r"],
                        "expectations": 1, "notes": []}
    assert pipe.queries() == [] and pipe.runtime.ledger.changes_version() == 0


def test_expectations_are_held_against_the_files_not_against_what_runs(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"q": COUNT})
    rows(pipe, [1, 25])
    ran(pipe)
    (tmp_path / "queries" / "q.sql").write_text(SUM)
    expected(tmp_path, "q", "total")
    assert opened(tmp_path).check()["expectations"] == 1
    expected(tmp_path, "q", "n")
    with pytest.raises(ForebayError, match="there is no column 'n'") as caught:
        opened(tmp_path).check()
    assert caught.value.exit_code == 2 and caught.value.message.startswith("expectations/mine.yml: ")
    expected(tmp_path, "nobody", "n")
    with pytest.raises(ForebayError, match="there is no query 'nobody'"):
        opened(tmp_path).check()


def test_a_source_that_matches_nothing_is_a_note(tmp_path: Path) -> None:
    streams = {"views": "source: {files: 'landing/*.csv'}", "copies": "source: {delta: elsewhere}", "hand": ""}
    pipeline(tmp_path, streams,
             top="relations:\n  pages: {columns: {page: string}, source: {files: 'pages.csv'}}\n")
    notes = opened(tmp_path).check()["notes"]
    assert notes == [f"stream views: no file matches {tmp_path}/landing/*.csv",
                     f"stream copies: there is no table {tmp_path}/elsewhere",
                     f"relation pages: no file matches {tmp_path}/pages.csv"]
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "a.csv").write_text("ts,k,x\n")
    (tmp_path / "pages.csv").write_text("page\nhome\n")
    assert opened(tmp_path).check()["notes"] == notes[1:2]
