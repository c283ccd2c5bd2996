"""What a browser finds of pipelines beside Airflow's pages: their data docs, and the way to their charts in MLflow; it
writes nothing.

`python -m infra.pages [--host HOST] [--port PORT]` serves what FOREBAY_PIPELINES names:

    /                       all pipelines
    /NAME/                  one: how it stands, its streams, its queries with their last answers, and how to read them
    /NAME/docs/             the data docs
    /NAME/mlflow[/QUERY]    goes on to MLflow: the charts of all queries, or of one
"""
from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

from expectations.derived import revealing
from jobs.batch.works import parsed
from jobs.commands.status import status
from jobs.ledger.open_pipeline import OpenPipeline, open_pipeline
from jobs.pipeline.folders import PipelineFolder, found
from jobs.pipeline.model import Pipeline
from jobs.reports import home_page, tracking_pages
from jobs.reports.docs_pages import failing, index, link
from jobs.requests import requests
from jobs.results import answers, decisions, series
from optimizer.errors import ForebayError
from optimizer.names import NAME

FILE = re.compile(r"[A-Za-z0-9_][\w.-]*\.html", re.ASCII)
# where a browser finds them; MLflow's default is MLFLOW_TRACKING_URI
AIRFLOW, MLFLOW = "AIRFLOW__API__BASE_URL", "FOREBAY_MLFLOW"
DRAWN_ROWS = 200_000     # of the newest answers, about, that are read for a picture
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache"
}
LOCAL = ("127.0.0.1", "localhost", "[::1]")


class Absent(Exception):
    """What there is nothing of yet, and what brings it about."""


def page(path: str) -> tuple[HTTPStatus, str]:
    """Status, and a document, or the address of one."""
    parts = [unquote(p) for p in urlsplit(path).path.split("/") if p]
    pipelines = {one.name: one for one in found()}
    try:
        match parts:
            case []:
                return HTTPStatus.OK, _all(list(pipelines.values()))
            case [name]:
                return HTTPStatus.OK, _home(_known(pipelines, name))
            case [name, "docs"]:
                return HTTPStatus.FOUND, f"/{_known(pipelines, name).name}/docs/index.html"
            case [name, "docs", file]:
                return HTTPStatus.OK, _document(_known(pipelines, name), file)
            case [name, "mlflow", *query] if len(query) < 2:
                return HTTPStatus.FOUND, _charts(_known(pipelines, name), *query)
        raise Absent("There is no such page.")
    except Absent as absent:
        return HTTPStatus.NOT_FOUND, index("Not here (yet)", [(str(absent), (), [[link("/", "All pipelines")]])])


def _known(pipelines: dict[str, PipelineFolder], name: str) -> Pipeline:
    one = pipelines.get(name)
    if one is None or one.pipeline is None:
        raise Absent(one.reason if one else f"There is no pipeline {name}.")
    return one.pipeline


def _home(pipeline: Pipeline) -> str:
    """What `forebay status` says, with answers; what is wrong with the tables stands on the page."""
    links = [link("/", "All pipelines"), link(f"/{pipeline.name}/docs/index.html", "Expectations"),
             link(f"/{pipeline.name}/mlflow", "Costs, plans, switches in MLflow")]
    try:
        pipe = open_pipeline(pipeline)
        document = status(pipe)
        shown = {name: _answer(pipe, name, query["rows"] or 0) for name, query in document["queries"].items()}
    except ForebayError as error:
        raise Absent(f"{pipeline.name} cannot be read: {error}") from None
    last_answers = {name: one for name, one in shown.items() if one is not None}
    return home_page.page(pipeline.name, document, last_answers, links)


def _answer(pipe: OpenPipeline, name: str, count: int) -> home_page.ShownAnswer | None:
    """A query's last answer, of so many rows; None where none can be read. Columns that can show a sensitive value are
    left out, and where they tell groups apart only numbers of rows are drawn.
    """
    try:
        state = requests.show(pipe, name)
        published = answers.published(pipe, name)
        if not published:
            return None
        hidden = revealing(parsed(state.sql, pipe.catalog), pipe.pipeline.sensitive)
        rows, groups = series.newest(pipe, name, max(min(series.BOUNDARIES, DRAWN_ROWS // max(count, 1)), 2))
        last = answers.rows(pipe, state, published[-1:], home_page.MOST_ROWS)
        regret = decisions.document(pipe, name)["regret_s"]
    except ForebayError:
        return None
    columns = [column for column in last.column_names if column not in (*hidden, "boundary")]
    texts = zip(*(map(_text, last[column].to_pylist()) for column in columns))
    drawn = rows.select(["boundary"]) if hidden.intersection(groups) else rows.drop_columns(
        [column for column in rows.column_names if column in hidden])
    plot = series.plotted(drawn, [group for group in groups if group in drawn.column_names])
    return home_page.ShownAnswer(tuple(columns), list(texts), max(count - last.num_rows, 0), plot,
                                 pipe.path(state.address), tuple(sorted(hidden)), regret)


def _text(value: object) -> str:
    return "NULL" if value is None else value.isoformat() if hasattr(value, "isoformat") else str(value)


def _document(pipeline: Pipeline, file: str) -> str:
    wanted = Path(pipeline.beside("docs"), file)
    if not FILE.fullmatch(file) or not wanted.is_file():
        raise Absent("These data docs are not made yet: the first run after a boundary was published makes them; "
                     f"`forebay expectations --docs --pipeline {pipeline.folder}` does so at once.")
    return wanted.read_text(encoding="utf-8")


def _charts(pipeline: Pipeline, query: str = "") -> str:
    """Where a browser finds what the server has."""
    server = os.environ.get(tracking_pages.VARIABLE) or pipeline.tracking or ""
    if not server.startswith("http"):
        raise Absent(f"The charts of {pipeline.name} are in no server: docs/mlflow.md says how to look at them.")
    if query and not re.fullmatch(NAME, query):
        raise Absent("There is no such query.")
    try:
        there = tracking_pages.found(server, pipeline.name, query)
    except OSError as error:
        raise Absent(f"MLflow does not answer: {error}.") from None
    if there is None:
        raise Absent(
            f"Nothing of {query or pipeline.name} is in MLflow yet: forebay__{pipeline.name}__adapt brings it there, "
            "after a run that published."
        )
    return there.replace(server.rstrip("/"), os.environ.get(MLFLOW, server).rstrip("/"), 1)


def _all(pipelines: Sequence[PipelineFolder]) -> str:
    airflow = os.environ.get(AIRFLOW, "").rstrip("/")
    rows = list[tuple[str, ...]]()
    for one in pipelines:
        dag = f"forebay__{one.name}"
        name = link(f"/{one.name}/", one.name) if one.pipeline is not None else one.name
        runs = link(f"{airflow}/dags/{dag}", "runs") if airflow else ""
        queries = link(f"{airflow}/dags/{dag}__queries", "create, pause, pin … by form") if airflow else ""
        if one.pipeline is None:
            rows.append((name, failing("broken"), one.reason, "", "", runs, ""))
            continue
        state, because = _state(one.pipeline)
        has_docs = Path(one.pipeline.beside("docs"), "index.html").is_file()
        docs = link(f"/{one.name}/docs/index.html", "data docs") if has_docs else "no data docs yet"
        rows.append((name, state, because, docs, link(f"/{one.name}/mlflow", "costs, plans, switches"), runs,
                     queries))
    columns = ("pipeline", "state", "because", "expectations", "MLflow", "Airflow", "queries")
    return index("Pipelines", [("In Airflow, checked by expectations, seen in MLflow", columns, rows)])


def _state(pipeline: Pipeline) -> tuple[str, str]:
    """As `forebay status` says it."""
    try:
        document = status(open_pipeline(pipeline))
    except ForebayError as error:
        return failing(error.code), str(error)
    state = str(document["state"])
    return failing(state) if state in ("stopped", "failed") else state, str(document["because"])


class Handler(BaseHTTPRequestHandler):
    """GET and HEAD for this machine's names, so that no foreign page reads through a browser what is here."""

    server_version = "forebay"
    sys_version = ""

    def do_GET(self) -> None:
        allowed = {*LOCAL, *os.environ.get("FOREBAY_HOSTS", "").split()}
        host = re.sub(r":\d+$", "", self.headers.get("Host", ""))
        code, content = page(self.path) if host in allowed else (HTTPStatus.FORBIDDEN, "")
        body = b"" if code == HTTPStatus.FOUND else content.encode()
        self.send_response(code)
        more = {"Location": content} if code == HTTPStatus.FOUND else {"Content-Type": "text/html; charset=utf-8"}
        for key, value in {**HEADERS, **more, "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        """A look at a page is no event."""


def main() -> None:
    given = argparse.ArgumentParser(description="Serves the data docs of pipelines, and the way to their charts.")
    given.add_argument("--host", default="127.0.0.1")
    given.add_argument("--port", type=int, default=8090)
    arguments = given.parse_args()
    ThreadingHTTPServer((arguments.host, arguments.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
