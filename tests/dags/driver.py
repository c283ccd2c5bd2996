"""Runs DAGs by `dag.test()` in a process of its own, since Airflow reads its surroundings when it is imported; says one JSON document for each on stdout."""
from __future__ import annotations

import json
import os
import sys
from typing import Any

MARK = "forebay-test: "


def ran(bag: Any, name: str, given: dict[str, Any]) -> dict[str, Any]:
    try:
        run = bag.dags[name].test(run_conf=given)
    except Exception as error:
        return {"refused": f"{type(error).__name__}: {error}"}
    found = run.get_task_instances()
    return {"state": str(run.state), "tasks": {t.task_id: str(t.state) for t in found}, "said": {t.task_id: t.xcom_pull(task_ids=t.task_id) for t in found}}


def events() -> list[dict[str, Any]]:
    from airflow.models.asset import AssetEvent, AssetModel
    from airflow.utils.session import create_session

    with create_session() as session:
        rows = session.query(AssetEvent, AssetModel).join(AssetModel, AssetModel.id == AssetEvent.asset_id).order_by(AssetEvent.id).all()
        return [{"uri": asset.uri, "extra": event.extra} for event, asset in rows]


def main() -> None:
    from airflow.dag_processing.dagbag import DagBag

    for name, given in json.loads(sys.argv[1]):
        bag = DagBag(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])      # each time: a test run leaves what its form said in the DAG
        assert not bag.import_errors, bag.import_errors
        print(MARK + json.dumps({"events": events()} if name == "events" else ran(bag, name, given), default=str), flush=True)


if __name__ == "__main__":
    main()
