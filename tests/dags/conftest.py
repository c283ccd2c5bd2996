"""An Airflow of the tests' own: a home with a fresh database, and processes that run DAGs in it without a server."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jobs.commands import airflow_api as rest
from jobs.commands.airflow_home import ROOT, settle, surroundings
from tests.dags.driver import MARK

Run = Callable[..., list[dict[str, Any]]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One long test with an Airflow at a time (`--dist loadgroup`): two on two cores outlast each other's time limits.

    The hook is given the items of all folders.
    """
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.get_closest_marker("long"):
            item.add_marker(pytest.mark.xdist_group("airflow"))


def around(home: Path, pipelines: Path, **more: str) -> dict[str, str]:
    return surroundings(home, str(pipelines), **{
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
        "FOREBAY_MASTER": "inline",
        **more
    })


def began(home: Path, pipelines: Path, runs: list[tuple[str, dict[str, Any]]], **more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.dags.driver", json.dumps(runs)]
    return subprocess.Popen(command, cwd=ROOT, env=around(home, pipelines, **more), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err[-3000:]
    return [json.loads(line.removeprefix(MARK)) for line in out.splitlines() if line.startswith(MARK)]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Each test has a database of its own."""
    settle(tmp_path / "airflow")
    return tmp_path / "airflow"


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


@dataclass(frozen=True)
class Up:
    """What `make up` started: `place` holds its pid files and logs, `pipelines` the folders."""

    airflow: rest.Server
    place: Path
    pipelines: Path


@contextmanager
def served(place: Path, pipelines: Path | None = None) -> Iterator[Up]:
    """All of `make up`, ended whatever happens."""
    unset = ("FOREBAY_MASTER", "FOREBAY_PIPELINES")
    named = {"FOREBAY_PIPELINES": str(pipelines)} if pipelines else {}
    environment = {**{k: v for k, v in os.environ.items() if k not in unset}, "FOREBAY_UP": str(place), **named}
    try:
        started = subprocess.run([sys.executable, "-m", "infra.up"], cwd=ROOT, env=environment, capture_output=True,
                                 text=True, timeout=300)
        assert started.returncode == 0, started.stderr
        said = json.loads((place / "where.json").read_text())
        yield Up(rest.login(said["airflow"], said["user"], said["password"]), place, Path(said["pipelines"]))
    finally:
        subprocess.run([sys.executable, "-m", "infra.up", "down"], cwd=ROOT, env=environment, capture_output=True,
                       timeout=120)
