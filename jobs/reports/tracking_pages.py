"""Where MLflow's server shows a pipeline's charts and a query's run: addresses, asked of its REST interface.

Mlflow is not imported, nothing is written.
"""
from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from jobs.reports.tracking_view import KEY

VARIABLE = "MLFLOW_TRACKING_URI"
# without a type of workflow MLflow begins with an empty page about traces
CHARTS = f"runs?workflowType=machine_learning&compareRunsMode=CHART&viewStateShareKey={KEY}"
TIMEOUT = 5.0             # seconds for one answer


def experiment(name: str) -> str:
    """The name of a pipeline's experiment."""
    return f"forebay/{name}"


def charts(server: str, number: str) -> str:
    """The charts of all runs of an experiment, by its number."""
    return f"{server.rstrip('/')}/#/experiments/{number}/{CHARTS}"


def found(server: str, name: str, query: str = "") -> str | None:
    """The charts of a pipeline's queries, or of one of them.

    None where nothing was logged yet. OSError: the server does not answer.
    """
    try:
        document = _request(server, f"experiments/get-by-name?experiment_name={experiment(name)}")
        number = str(document["experiment"]["experiment_id"])
    except urllib.error.HTTPError:
        return None
    if not query:
        return charts(server, number)
    wanted = f"tags.`forebay.kind` = 'query' and tags.`forebay.query` = '{query}'"
    search = {"experiment_ids": [number], "filter": wanted, "max_results": 1}
    runs = _request(server, "runs/search", search).get("runs", [])
    if not runs:
        return None
    run = f"{server.rstrip('/')}/#/experiments/{number}/runs/{runs[0]['info']['run_id']}"
    return f"{run}/model-metrics?workflowType=machine_learning"


def _request(server: str, path: str, body: Any = None) -> Any:
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{server.rstrip('/')}/api/2.0/mlflow/{path}", content,
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        return json.load(answer)
