"""Data Docs: real suites validated by Great Expectations on the newest rows, pages that reach nothing outside, and no
value that is sensitive.
"""
from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import forebay
from jobs.commands import scheduled
from jobs.expectations import findings as expect_ledger
from jobs.reports import docs_pages as expect_pages
from jobs.reports import docs_report as expect_report
from jobs.requests.boundaries import next_boundary
from optimizer.errors import ForebayError
from tests.jobs.pipelines import COUNT, boundary, opened, pipeline, rows

CANARY = "canary7261"
PLACES = re.compile(r"""https?:|src\s*=|@import|url\(|<link|<script|//[\w-]+\.\w""", re.I)
QUERIES = {
    "per_user": "SELECT v.user, v.page, COUNT(*) AS n, SUM(v.ms) AS s FROM views AS v [WINDOW 1 MINUTE] GROUP BY "
                "v.user, v.page",
    "pages": "SELECT v.page, COUNT(*) AS n FROM views AS v [WINDOW 1 MINUTE] GROUP BY v.page",
    "each": "SELECT v.user, v.page, v.d FROM views AS v [WINDOW 1 MINUTE]"
}


def life(folder: Path) -> forebay.Pipeline:
    (folder / "queries").mkdir(parents=True)
    (folder / "expectations").mkdir()
    (folder / "forebay.yml").write_text(
        "name: docs\nbatch: 10 seconds\nspark: {master: inline}\nstreams:\n  views: {event_time: ts, columns: {ts: "
        "timestamp, "
        "user: {type: string, sensitive: true}, page: string, ms: bigint, d: \"decimal(5,2)\", day: date, b: "
        "boolean}}\n"
    )
    for name, sql in QUERIES.items():
        (folder / "queries" / f"{name}.sql").write_text(sql)
    (folder / "expectations" / "views.yml").write_text("""stream: views
expectations:
- {type: expect_column_values_to_be_between, column: ms, min_value: 0, max_value: 100, severity: critical}
- {type: expect_column_values_to_be_between, column: ts, min_value: 2020-01-01}
- {type: expect_column_values_to_be_between, column: d, min_value: 0.5, severity: row}
- {type: expect_column_max_to_be_between, column: day, max_value: 2026-12-31}
- {type: expect_column_values_to_be_in_set, column: page, value_set: [home, news]}
- {type: expect_column_values_to_be_in_set, column: b, value_set: [true]}
- {type: expect_column_values_to_match_regex, column: user, regex: "^u"}
- {type: expect_column_value_lengths_to_be_between, column: user, max_value: 5}
- {type: expect_column_values_to_be_unique, column: user}
- {type: expect_table_row_count_to_be_between, max_value: 1000}
- {type: expect_column_proportion_of_non_null_values_to_be_between, column: page, min_value: 0.5}
- {type: expect_column_mean_to_be_between, column: ms, max_value: 50}
- {type: expect_compound_columns_to_be_unique, column_list: [page]}
""")
    (folder / "expectations" / "pages.yml").write_text(
        "query: pages\nexpectations:\n- {type: expect_column_values_to_be_between, column: n, max_value: 1}\n")
    pipe = opened(folder)
    for at, ms in ((1, 5), (2, 5), (12, 101), (21, 7)):
        line = (f'{{"ts": "2026-01-01T00:00:{at:02d}Z", "user": "{CANARY}", "page": "home", "ms": {ms}, "d": 1.5, '
                f'"day": "2026-01-01", "b": false}}\n')
        (folder / f"in{at}.json").write_text(line)
        pipe.ingest("views", str(folder / f"in{at}.json"))
    return pipe


@pytest.mark.slow
def test_what_waits_is_told_and_nothing_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = life(tmp_path / "docs")
    monkeypatch.setenv("FOREBAY_MASTER", "inline")
    said = scheduled.expectations(str(tmp_path / "docs"))
    assert (said["boundaries"], said["next"], said["docs"]) == (2, "2026-01-01T00:00:10Z", None)
    assert [(f["boundary"], f["severity"], f["released"])
            for f in said["failing"]
            if "(ms, min_value: 0" in f["expectation"]] == [("2026-01-01T00:00:20Z", "critical", False)]
    assert next_boundary(pipe.runtime) == boundary(10) and pipe.runtime.ledger.begun() is None
    assert expect_ledger.entered(pipe.runtime) == []


@pytest.mark.slow
def test_a_failed_query_stands_above_what_holds(tmp_path: Path) -> None:
    pipe = pipeline(tmp_path, queries={"good": COUNT, "broken": "SELECT SUM(1 / v.x) AS s FROM views AS v "
                                                                "[WINDOW 20 SECONDS]"})
    rows(pipe, (1, 11), x=0)
    assert [failure["query"] for failure in pipe.run()["failed"]] == ["broken"]
    page = Path(str(pipe.expectations(docs=True)["docs"])).read_text()
    assert "RUNNING, BUT 1 FAILED" in page and f"forebay --pipeline {tmp_path} query resume broken" in page
    assert page.index("Query broken has failed: ") < page.index(" hold<")


@pytest.mark.slow
def test_documents_say_what_held_and_show_nothing_sensitive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = life(tmp_path / "docs")
    with pytest.raises(ForebayError, match="is stopped"):
        pipe.run()
    index = Path(str(pipe.expectations(docs=True)["docs"]))
    open_page = index.read_text()
    assert "STOPPED AT 2026-01-01T00:00:20Z BECAUSE" in open_page
    assert f"forebay --pipeline {tmp_path / 'docs'} release 2026-01-01T00:00:20Z" in open_page
    assert re.search(r"\d+ of \d+ hold, but 1 stops a boundary", open_page)
    assert "STOPPED AT" in (index.parent / "stream_views.html").read_text()
    assert "STOPPED AT" not in (index.parent / "query_pages.html").read_text()
    pipe.release(boundary(20), "the <b>sensor</b> was reset")
    pipe.run()
    monkeypatch.setenv("FOREBAY_MASTER", "inline")
    said = scheduled.expectations(str(tmp_path / "docs"))
    folder = Path(pipe.runtime.pipeline.beside("docs"))
    assert said["docs"] == f"file://{folder}/index.html"
    pages = {p.name: p.read_text() for p in folder.glob("*.html")}
    assert set(pages) == {
        "index.html", "stream_views.html", "stream_views__sensitive.html", "query_pages.html", "query_per_user.html",
        "query_per_user__sensitive.html", "query_each.html"
    }
    for name, page in pages.items():
        assert CANARY not in page and not PLACES.search(page), (name, PLACES.search(page))
    index = pages["index.html"]
    assert "<strong>RUNNING</strong>" in index and "STOPPED" not in index
    for told in ("the &lt;b&gt;sensor&lt;/b&gt; was reset", "critical, released", "groups_unique", "query_pages.html",
                 "1 of 1 rows fail"):
        assert told in index, told
    assert "101" in pages["stream_views.html"] and "1 of 1" not in pages["stream_views__sensitive.html"]
    passed = dict(re.findall(r'href="(\w+)\.html">.*?(\d+ of \d+) hold', index))
    assert passed == {
        "stream_views": "10 of 13",
        "stream_views__sensitive": "2 of 4",
        "query_pages": "3 of 4",
        "query_per_user": "2 of 2",
        "query_per_user__sensitive": "1 of 1",
        "query_each": "1 of 1"
    }
    assert "\\u" not in index and "class=\"bad\"" in index


@pytest.mark.slow
def test_documents_are_made_again_only_where_something_changed(tmp_path: Path) -> None:
    pipe = life(tmp_path / "docs")
    pipe.run(batches=1)
    rt = pipe.runtime
    built = Path(str(expect_report.docs(rt)))
    at = built.stat().st_mtime_ns
    assert expect_report.docs(rt) == str(built) and built.stat().st_mtime_ns == at
    with pytest.raises(ForebayError, match="is stopped"):
        pipe.run()
    assert expect_report.docs(rt) == str(built) and built.stat().st_mtime_ns != at


@pytest.mark.slow
def test_what_cannot_be_documented_keeps_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = life(tmp_path / "docs")
    pipe.run(batches=1)
    monkeypatch.setenv("FOREBAY_MASTER", "inline")
    (tmp_path / "docs" / "warehouse" / f"docs.{os.getpid()}").write_text("in the way")
    assert scheduled.expectations(str(tmp_path / "docs"))["docs"] is None


@pytest.mark.slow
def test_a_boundary_without_rows_is_no_failure(tmp_path: Path) -> None:
    """Of no rows nothing can be said: those of the newest boundary that has some are shown, until they are too old."""
    pipe = pipeline(tmp_path, queries={"q": "SELECT COUNT(*) AS n FROM views AS v [WINDOW 20 SECONDS]"})
    rows(pipe, [1, 2, 3]), rows(pipe, [35])
    pipe.run()
    assert pipe.runtime.ledger.committed() == boundary(30)
    built = Path(str(expect_report.docs(pipe.runtime)))
    assert 'href="stream_views.html">stream_views</a></td><td><span class="good">' in built.read_text()
    page = (built.parent / "stream_views.html").read_text()
    assert "<h1>stream_views</h1>" in page and "NaN" not in page and "NaT" not in page and "Data asset" not in page
    rows(pipe, [500])
    pipe.run()
    stale = Path(str(expect_report.docs(pipe.runtime, anew=True)))
    assert '<span class="bad">3 of 4 hold' in stale.read_text() and "NaT" not in (stale.parent
                                                                                  / "stream_views.html").read_text()


def test_a_page_is_cleaned() -> None:
    page = """<html><head><link href="https://a.b/c.css"></head>
        <body onload="x()"><script src="https://a.b/c.js"></script>
        <script>fetch("//evil.org")</script>
        <p onclick='y()'>kept</p>
        <a href="https://greatexpectations.io/x">read</a><a href="../../../expectations/s.html">suite</a>
        <img src="http://x.y/z.png"></body>"""
    made = expect_pages.offline(page)
    assert not PLACES.search(made) and "onload" not in made and "onclick" not in made
    assert "kept" in made and "read" in made and 'href="index.html">suite' in made
