"""What infra.pages shows: data docs and nothing else of a folder, the way to MLflow's charts, and in words what is not
there yet.
"""
from __future__ import annotations

import json
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from infra import pages
from jobs.pipeline.folders import SETTING
from jobs.reports import line_picture
from jobs.reports.tracking_pages import CHARTS
from jobs.results.series import PlottedAnswer
from tests.jobs.pipelines import pipeline

YML = "name: {name}\nbatch: 10 seconds\nstreams:\n  views: {{columns: {{ts: timestamp}}, event_time: ts}}\n"


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pipeline with data docs, one without, and a broken one."""
    for name in ("shop", "bare"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "forebay.yml").write_text(YML.format(name=name))
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "forebay.yml").write_text("name: bad\nbatches: 7\n")
    docs = tmp_path / "shop" / "warehouse" / "docs"
    docs.mkdir(parents=True)
    (docs / "index.html").write_text("<h1>docs of shop</h1>")
    (docs / "built.json").write_text("{}")
    (docs.parent / "secret.html").write_text("secret")
    monkeypatch.setenv(SETTING, str(tmp_path))
    for variable in ("MLFLOW_TRACKING_URI", pages.AIRFLOW, pages.MLFLOW):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class Tracking(BaseHTTPRequestHandler):
    """As much of MLflow as is asked."""

    def do_GET(self) -> None:
        known = self.path.endswith("experiment_name=forebay/shop")
        self._say(200 if known else 404, {"experiment": {"experiment_id": "7"}})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._say(
            200, {
                "runs": [{
                    "info": {
                        "run_id": "r1"
                    }
                }] if "'totals'" in asked["filter"] and asked["experiment_ids"] == ["7"] else []
            })

    def _say(self, status: int, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_all_pipelines_are_listed_with_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(pages.AIRFLOW, "http://127.0.0.1:8080")
    status, said = pages.page("/")
    assert status == HTTPStatus.OK and said.count("<tr>") == 4 and '<a href="/shop/">shop</a>' in said
    assert "http://127.0.0.1:8080/dags/forebay__shop" in said
    assert said.count("<td>waiting</td>") == 2 and '<strong class="bad">broken</strong>' in said
    assert "/shop/docs/index.html" in said and "/bare/docs" not in said and "no data docs yet" in said
    assert "http://127.0.0.1:8080/dags/forebay__shop__queries" in said and "did you mean &#x27;batch&#x27;" in said


def test_only_documents_are_read() -> None:
    assert pages.page("/shop/docs/") == (HTTPStatus.FOUND, "/shop/docs/index.html")
    assert pages.page("/shop/docs/index.html") == (HTTPStatus.OK, "<h1>docs of shop</h1>")
    for path in ("/shop/docs/built.json", "/shop/docs/../secret.html", "/shop/docs/%2e%2e%2fsecret.html",
                 "/shop/docs/..%5csecret.html", "/shop/secret.html", "/bare/docs/index.html", "/nobody/docs/index.html",
                 "/bad/docs/index.html", "/shop/docs/a/b.html", "/%00"):
        status, said = pages.page(path)
        assert status == HTTPStatus.NOT_FOUND and "secret" not in said.replace("secret.html", ""), path
    assert "the first run after a boundary" in pages.page("/bare/docs/index.html")[1] and "batch" in pages.page(
        "/bad/docs/index.html")[1]


def test_the_way_to_the_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "in no server" in pages.page("/shop/mlflow")[1]
    with serving(Tracking) as server:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", server)
        assert pages.page("/shop/mlflow") == (HTTPStatus.FOUND, f"{server}/#/experiments/7/{CHARTS}")
        assert pages.page("/shop/mlflow/totals")[1].startswith(f"{server}/#/experiments/7/runs/r1/model-metrics")
        for path, told in (("/bare/mlflow", "forebay__bare__adapt"), ("/shop/mlflow/others", "Nothing of others"),
                           ("/shop/mlflow/x'y", "no such query")):
            status, said = pages.page(path)
            assert status == HTTPStatus.NOT_FOUND and told in said, path
        monkeypatch.setenv(pages.MLFLOW, "https://mlflow.example")
        assert pages.page("/shop/mlflow")[1].startswith("https://mlflow.example/#/experiments/7/")
    assert "does not answer" in pages.page("/shop/mlflow")[1]


def test_foreign_names_of_this_machine_are_refused() -> None:
    """A page elsewhere can give its name our address; a browser then says that name."""
    with serving(pages.Handler) as server:
        with urllib.request.urlopen(f"{server}/shop/docs/") as answer:
            assert answer.read(
            ) == b"<h1>docs of shop</h1>" and "default-src 'none'" in answer.headers["Content-Security-Policy"]
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(server, headers={"Host": "evil.example"}))
        assert refused.value.code == HTTPStatus.FORBIDDEN


CANARY = "canary7261"


@pytest.mark.slow
def test_the_page_of_a_pipeline_has_all_that_its_reader_looks_for(tmp_path: Path) -> None:
    columns = "{ts: timestamp, who: {type: string, sensitive: true}, x: bigint}"
    sql = {"n": "SELECT COUNT(*) AS n, SUM(v.x) AS total FROM views AS v [WINDOW 1 MINUTE]",
           "by_who": "SELECT v.who, COUNT(*) AS n FROM views AS v [WINDOW 1 MINUTE] GROUP BY v.who"}
    pipe = pipeline(tmp_path / "life", columns=columns, queries=sql)
    (tmp_path / "life" / "forebay.yml").write_text(
        (tmp_path / "life" / "forebay.yml").read_text().replace("name: test", "name: life"))
    (tmp_path / "a.csv").write_text(f"ts,who,x\n2026-01-01T00:00:01Z,{CANARY},1\n2026-01-01T00:00:25Z,{CANARY},two\n"
                                    f"2026-01-01T00:00:26Z,b,3\n")
    pipe.ingest("views", str(tmp_path / "a.csv"))
    pipe.run(flush=True)
    pipe.create("none", "SELECT COUNT(*) AS n FROM views AS v [WINDOW 1 MINUTE]")
    status, said = pages.page("/life/")
    assert status == HTTPStatus.OK and "WAITING" in said and "2026-01-01T00:00:26Z" in said
    assert "1 bad type: column x" in said and "<svg" in said and "2026-01-01T00:00:30Z" in said
    for reader in ("DuckDB", "Spark", "pandas", "Polars", "BI"):
        assert f"<dt>{reader}</dt>" in said
    assert f"delta_scan(&#x27;{tmp_path}/life/warehouse/results/n&#x27;)" in said
    assert CANARY not in said and "Values of who are sensitive" in said
    assert "no boundary of it is public yet" in said
    assert not re.search(r"https?:|<script|<link|src=", said)
    assert "life cannot be read" not in said and pages.page("/life")[0] == HTTPStatus.OK


def test_a_picture_has_round_times_and_a_colour_a_group() -> None:
    start = datetime(2026, 1, 1, 23, 30, tzinfo=timezone.utc)
    points = [(start + timedelta(minutes=10 * n), float(n)) for n in range(7)]
    both = PlottedAnswer({"n": {"a": points, "<b>": points[2:]}, "x": {"<b>": points}}, omitted=3)
    drawn = line_picture.svg(both)
    first, second = line_picture.COLOURS[:2]
    assert drawn.count("<polyline") == 3      # a line, a circle for each point and a square of the legend
    assert (drawn.count(first), drawn.count(second)) == (1 + 7 + 1, 2 + 5 + 7 + 1)
    assert "01-01 23:30" in drawn and ">01-02 00:00<" in drawn and "and 3 more groups" in drawn
    assert line_picture.svg(PlottedAnswer({"n": {}})) == ""
    assert "<polyline" in line_picture.svg(PlottedAnswer({"n": {"": points[:1] + [(points[1][0], float("nan"))]}}))
