"""Runs DAGs in this process by `dag.test()`, without a server: one request a line of JSON on stdin, one answer a line
on stdout; it decides nothing.

The Spark session is kept from run to run; FOREBAY_WARM names a pipeline whose session is started while Airflow is
imported. Whatever else is printed goes to stderr.
"""
from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from jobs.engine.spark import kept


def ran(name: str, form: dict[str, Any]) -> dict[str, Any]:
    """A DAG run with a form's values; the DAG is read anew, since a test run leaves what its form said in it."""
    from airflow.dag_processing.dagbag import DagBag  # seconds, in which Spark can start

    bag = DagBag(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
    if bag.import_errors or name not in bag.dags:
        return {
            "refused": f"there is no DAG {name}; there are {', '.join(sorted(bag.dags))} {bag.import_errors or ''}"
            .strip()
        }
    try:
        run = bag.dags[name].test(run_conf=form)
    except Exception as error:      # a form's value that does not fit, said by whatever Airflow raises
        return {"refused": f"{type(error).__name__}: {error}"}
    instances = run.get_task_instances()
    return {
        "state": str(run.state),
        "tasks": {task.task_id: str(task.state) for task in instances},
        "said": {task.task_id: task.xcom_pull(task_ids=task.task_id) for task in instances},
    }


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with kept():
        _ready(os.environ.get("FOREBAY_WARM"))
        for line in sys.stdin:
            request = json.loads(line)
            os.environ.update(request.get("environment", {}))
            print(json.dumps(ran(request["dag"], request.get("form", {})), default=str), file=answers, flush=True)


def _ready(pipeline: str | None) -> None:
    """Both at once: one is a JVM's work, the other this process's.

    What goes wrong here goes wrong in the run as well, which says so.
    """
    from jobs.commands import scheduled

    with ThreadPoolExecutor(1) as beside:
        if pipeline:
            beside.submit(scheduled.warm, pipeline)
        import airflow.dag_processing.dagbag  # noqa: F401
        import airflow.sdk.definitions.dag  # noqa: F401


if __name__ == "__main__":
    main()
