"""Runs DAGs by `dag.test()` in a process of its own, since Airflow reads its surroundings when it is imported.

Says one JSON document for each on stdout.
"""
from __future__ import annotations

import json
import sys
from typing import Any

MARK = "forebay-test: "


def events() -> list[dict[str, Any]]:
    from airflow.models.asset import AssetEvent, AssetModel
    from airflow.utils.session import create_session

    with create_session() as session:
        rows = session.query(AssetEvent,
                             AssetModel).join(AssetModel,
                                              AssetModel.id == AssetEvent.asset_id).order_by(AssetEvent.id).all()
        return [{"uri": asset.uri, "extra": event.extra} for event, asset in rows]


def main() -> None:
    from dags.local import ran  # Airflow takes seconds to import, and whoever wants MARK does not need it

    for name, given in json.loads(sys.argv[1]):
        print(MARK + json.dumps({"events": events()} if name == "events" else ran(name, given), default=str),
              flush=True)


if __name__ == "__main__":
    main()
