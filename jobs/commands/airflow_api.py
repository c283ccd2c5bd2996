"""Airflow's REST API as far as it is used here: log in, make pools, trigger runs, wait for them.

It knows no pipeline and keeps nothing but a token.
"""
from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from optimizer.errors import ForebayError

TIMEOUT = 30.0          # seconds for one answer
LOOK = 0.2              # seconds between two looks at a run
CONFLICT = 409
ENDED = ("success", "failed")


@dataclass(frozen=True)
class Server:
    """Where it is, and the token that it gave."""

    url: str
    token: str = ""


def login(url: str, user: str, password: str) -> Server:
    return Server(url, str(call(Server(url), "/auth/token", {"username": user, "password": password})["access_token"]))


def request_document(server: Server, path: str, body: Any = None) -> tuple[int, Any]:
    """Status and document of an answer, also of a refusal; a GET, or a POST of `body`."""
    headers = {"Content-Type": "application/json"}
    if server.token:
        headers["Authorization"] = f"Bearer {server.token}"
    request = urllib.request.Request(server.url + path, None if body is None else json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            return int(answer.status), _document(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, _document(error.read())


def call(server: Server, path: str, body: Any = None) -> Any:
    status, document = request_document(server, path, body)
    if status >= 400:
        raise _refused(path, status, document)
    return document


def pool(server: Server, name: str) -> None:
    """Makes a pool of one slot; a pool that exists already is not changed."""
    slots = {"name": name, "slots": 1, "description": "one runner a pipeline", "include_deferred": False}
    status, document = request_document(server, "/api/v2/pools", slots)
    if status >= 400 and status != CONFLICT:
        raise _refused("/api/v2/pools", status, document)


def trigger(server: Server, dag: str, form: Mapping[str, Any] | None = None) -> str:
    """The run's id."""
    run = {"logical_date": None, "conf": dict(form or {})}
    return str(call(server, f"/api/v2/dags/{dag}/dagRuns", run)["dag_run_id"])


def ended(server: Server, dag: str, run: str, patience: float) -> dict[str, Any]:
    """The run's document once it has ended, or when patience is over.

    A busy server may leave a look without an answer.
    """
    end = time.monotonic() + patience
    while True:
        try:
            report: dict[str, Any] = call(server, f"/api/v2/dags/{dag}/dagRuns/{run}")
            if report["state"] in ENDED or time.monotonic() > end:
                return report
        except OSError:
            if time.monotonic() > end:
                raise
        time.sleep(LOOK)


def tasks(server: Server, dag: str, run: str) -> list[dict[str, Any]]:
    return list(call(server, f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances")["task_instances"])


def _document(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.decode(errors="replace")


def _refused(path: str, status: int, document: Any) -> ForebayError:
    detail = document.get("detail", document) if isinstance(document, dict) else document
    return ForebayError("airflow-refused", f"Airflow answers {path} with {status}: {detail}", hint="its log says more",
                        exit_code=1)
