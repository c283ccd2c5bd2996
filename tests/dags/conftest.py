"""An Airflow of the tests' own: a home with a fresh database, and processes that run DAGs in it without a server."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.dags.driver import MARK

ROOT = Path(__file__).resolve().parent.parent.parent
Run = Callable[..., list[dict[str, Any]]]


def surroundings(home: Path, pipelines: Path, **more: str) -> dict[str, str]:
    given = {"AIRFLOW_HOME": str(home), "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"), "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
             "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING", "PYTHONPATH": str(ROOT), "FOREBAY_PIPELINES": str(pipelines), "FOREBAY_MASTER": "inline"}
    return {**os.environ, **given, **more}


def began(home: Path, pipelines: Path, runs: list[tuple[str, dict[str, Any]]], **more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.dags.driver", json.dumps(runs)]
    return subprocess.Popen(command, cwd=ROOT, env=surroundings(home, pipelines, **more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err[-3000:]
    return [json.loads(line.removeprefix(MARK)) for line in out.splitlines() if line.startswith(MARK)]


@pytest.fixture(scope="session")
def fresh_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("airflow")
    environment = surroundings(home, home)
    made = subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], cwd=home, env=environment, capture_output=True, text=True, timeout=240)
    assert made.returncode == 0, made.stderr[-3000:]
    return home


@pytest.fixture
def home(fresh_home: Path, tmp_path: Path) -> Path:
    """Each test has a database of its own."""
    copied = Path(shutil.copytree(fresh_home, tmp_path / "airflow"))
    (copied / "airflow.cfg").write_text((copied / "airflow.cfg").read_text().replace(str(fresh_home), str(copied)))
    return copied


@pytest.fixture
def pipelines(tmp_path: Path) -> Path:
    """A folder with the example shop."""
    from forebay.examples import copy

    copy("shop", str(tmp_path / "pipelines" / "shop"))
    return tmp_path / "pipelines"


@pytest.fixture
def dags(home: Path, pipelines: Path) -> Run:
    """dags((name, form), …) runs them one after the other in one process."""
    return lambda *runs, **more: ended(began(home, pipelines, list(runs), **more))
