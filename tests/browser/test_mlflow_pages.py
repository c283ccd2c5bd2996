"""MLflow answers at first sight: after the demo its pages show what was predicted beside what was measured, without a
setting to change.
"""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from jobs.reports.tracking_pages import charts
from tests.servers import free_port

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
HERE = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent
PICTURES = {"mlflow-charts", "mlflow-runs", "mlflow-run", "mlflow-plan", "mlflow-candidates", "mlflow-compare"}
PATIENCE = 120.0


@contextmanager
def server(warehouse: Path) -> Iterator[str]:
    port = free_port()
    store = f"sqlite:///{warehouse}/mlflow/mlflow.db"
    quiet = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    process = subprocess.Popen([str(BIN / "mlflow"), "server", "--host", "127.0.0.1", "--port", str(port), "--workers",
                                "1", "--backend-store-uri", store], env=quiet)
    try:
        yield _answering(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(30)


def _answering(address: str) -> str:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with suppress(OSError), urllib.request.urlopen(f"{address}/health", timeout=5):
            return address
        time.sleep(0.5)
    raise TimeoutError(address)


def test_predicted_stands_beside_measured_on_every_page(tmp_path: Path) -> None:
    chromium, node = (shutil.which(name) for name in ("chromium", "node"))
    assert chromium and node and (HERE / "node_modules").exists(
    ), "this needs Chromium, Node.js 20 and `npm ci` in tests/browser: `make browser` says how"
    folder, shots = tmp_path / "demo", Path(os.environ.get("FOREBAY_SHOTS", str(tmp_path)))
    demo = subprocess.run([str(BIN / "forebay"), "demo", str(folder), "--json"], capture_output=True, text=True,
                          timeout=300)
    assert demo.returncode == 0, demo.stderr
    experiment = json.loads(demo.stdout)["mlflow"]["experiment"]
    with server(folder / "warehouse") as address:
        given = {"mlflow": address, "page": charts(address, experiment), "experiment": experiment, "shots": str(shots),
                 "chromium": chromium}
        tour = subprocess.run([node, str(HERE / "mlflow.mjs"), json.dumps(given)], capture_output=True, text=True,
                              timeout=300)
    assert tour.returncode == 0, tour.stderr
    assert PICTURES <= {picture.stem for picture in shots.glob("*.png")}
