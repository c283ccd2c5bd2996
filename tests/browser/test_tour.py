"""What a newcomer sees, in a real browser: `make up`, a query by the form, a pipeline triggered, green, MLflow's
charts, the data docs, `make down`.
"""
from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.commands import airflow_api as rest
from tests.dags.conftest import Up, served
from tests.dags.test_server import lay

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
HERE = Path(__file__).resolve().parent
DAG = "forebay__shop"
STEPS = 4               # runs before, so that charts have a past
PATIENCE = 240.0
PICTURES = {
    "airflow-dags", "airflow-form", "airflow-run", "airflow-task", "pages", "data-docs", "data-docs-suite"
}


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Up]:
    with served(tmp_path / "up") as up:
        for step in range(STEPS):
            lay(up.pipelines / "shop", step)
            assert rest.ended(up.airflow, DAG, rest.trigger(up.airflow, DAG), PATIENCE)["state"] == "success"
        lay(up.pipelines / "shop", STEPS)
        yield up


def test_a_query_by_the_form_and_the_way_to_its_charts(there: Up, tmp_path: Path) -> None:
    chromium, node = (shutil.which(name) for name in ("chromium", "node"))
    assert chromium and node and (HERE / "node_modules").exists(
    ), "this needs Chromium, Node.js 20 and `npm ci` in tests/browser: `make browser` says how"
    shots = Path(os.environ.get("FOREBAY_SHOTS", str(tmp_path)))
    said = json.loads((there.place / "where.json").read_text())
    given = {
        "airflow": said["airflow"],
        "pages": said["pages"],
        "password": said["password"],
        "shots": str(shots),
        "chromium": chromium
    }
    tour = subprocess.run([node, str(HERE / "tour.mjs"), json.dumps(given)], capture_output=True, text=True,
                          timeout=800)
    assert tour.returncode == 0, tour.stderr
    assert PICTURES <= {p.stem for p in shots.glob("*.png")}
