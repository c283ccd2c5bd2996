"""What a newcomer sees, in a real browser: `make up`, a query by the form, a pipeline triggered, green, MLflow's charts, the data docs, `make down`."""
from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.tracking import CHARTS

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


@pytest.fixture
def there(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Where `make up` says that things are."""
    environment = {**{k: v for k, v in os.environ.items() if k != "FOREBAY_MASTER"}, "FOREBAY_UP": str(tmp_path / "up")}
    try:
        started = subprocess.run([sys.executable, "-m", "infra.up"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
        assert started.returncode == 0, started.stderr
        yield {name.lower(): value for name, value in re.findall(r"^(Airflow|MLflow|Pipelines) +(\S+)", started.stdout, re.M)} | {
            "password": re.findall(r"password (\S+)", started.stdout)[0]}
    finally:
        ended = subprocess.run([sys.executable, "-m", "infra.up", "down"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
        assert ended.returncode == 0, ended.stderr


def test_a_query_by_the_form_and_the_way_to_its_charts(there: dict[str, str], tmp_path: Path) -> None:
    chromium, node = (shutil.which(name) for name in ("chromium", "node"))
    assert chromium and node and (HERE / "node_modules").exists(), "this needs Chromium, Node.js 20 and `npm ci` in tests/browser: `make browser` says how"
    shots = Path(os.environ.get("FOREBAY_SHOTS", str(tmp_path)))
    docs = Path(there["pipelines"], "shop", "warehouse", "docs", "index.html")
    given = {"airflow": there["airflow"], "mlflow": there["mlflow"], "password": there["password"], "charts": CHARTS, "docs": docs.as_uri(),
             "shots": str(shots), "chromium": chromium}
    tour = subprocess.run([node, str(HERE / "tour.mjs"), json.dumps(given)], capture_output=True, text=True, timeout=800)
    assert tour.returncode == 0, tour.stderr
    assert {"airflow-dags", "airflow-form", "airflow-run", "mlflow-charts", "data-docs"} <= {p.stem for p in shots.glob("*.png")}
