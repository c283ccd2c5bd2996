"""Scheduler, task or Spark server killed at random moments while runs are triggered: everything comes back by itself, and in the end nobody can tell."""
from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

import forebay
from tests.jobs.pipelines import equal

ROOT = Path(__file__).resolve().parent.parent.parent
DAG = "forebay__shop"
KILLS = int(os.environ.get("FOREBAY_KILLS", "20"))
VICTIMS = ("scheduler", "task", "spark")


class Airflow:
    """The REST API of what `make up` started."""

    def __init__(self, url: str, password: str) -> None:
        self.url, self.token = url, ""
        self.token = self.call("/auth/token", {"username": "admin", "password": password})["access_token"]

    def call(self, path: str, body: Any = None) -> Any:
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {self.token}"} if self.token else {})}
        request = urllib.request.Request(self.url + path, None if body is None else json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())

    def trigger(self, **form: Any) -> str:
        return str(self.call(f"/api/v2/dags/{DAG}/dagRuns", {"logical_date": None, "conf": form})["dag_run_id"])

    def ended(self, run: str, patience: float) -> str:
        end = time.monotonic() + patience
        while time.monotonic() < end:
            state = str(self.call(f"/api/v2/dags/{DAG}/dagRuns/{run}")["state"])
            if state in ("success", "failed"):
                return state
            time.sleep(0.5)
        return "not ended"


@pytest.fixture
def there(tmp_path: Path) -> Iterator[tuple[Airflow, Path]]:
    place = tmp_path / "up"
    environment = {**{k: v for k, v in os.environ.items() if k != "FOREBAY_MASTER"}, "FOREBAY_UP": str(place)}
    try:
        started = subprocess.run([sys.executable, "-m", "infra.up"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
        assert started.returncode == 0, started.stderr
        url, password = re.findall(r"Airflow +(\S+) .*password (\S+)", started.stdout)[0]
        yield Airflow(url, password), place
    finally:
        subprocess.run([sys.executable, "-m", "infra.up", "down"], cwd=ROOT, env=environment, capture_output=True, timeout=120)


def kill(place: Path, victim: str, rnd: random.Random) -> bool:
    """Of the scheduler or Spark the leading process; of the tasks any process that works for the scheduler."""
    leader = psutil.Process(int((place / f"{'spark' if victim == 'spark' else 'scheduler'}.pid").read_text().split()[0]))
    chosen = rnd.choice(leader.children(recursive=True) or [leader]) if victim == "task" else leader
    with suppress(psutil.NoSuchProcess):
        chosen.send_signal(signal.SIGKILL)
        return True
    return False


def more(folder: Path, minute: int) -> None:
    at = f"2025-01-01T{11 + minute // 60:02d}:{minute % 60:02d}:00Z"
    (folder / "landing" / "views" / f"m{minute}.csv").write_text(f"ts,user,page,ms\n{at},u1,news,{700 + minute}\n")
    (folder / "landing" / "purchases" / f"m{minute}.json").write_text(json.dumps({"ts": at, "user": "u1", "amount": "1.50"}) + "\n")


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_kills_leave_no_trace(there: tuple[Airflow, Path], seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    (airflow, place), rnd = there, random.Random(seed)
    folder, states, killed = place / "pipelines" / "shop", list[str](), list[str]()
    for n in range(KILLS):
        more(folder, 5 * n)
        run = airflow.trigger()
        time.sleep(rnd.uniform(0.0, 8.0))
        victim = rnd.choice(VICTIMS)
        if kill(place, victim, rnd):
            killed.append(victim)
        states.append(airflow.ended(run, 240))
        print(n, victim, states[-1], flush=True)
    assert airflow.ended(airflow.trigger(flush=True), 240) == "success"
    print(states, killed)
    assert "not ended" not in states and len(killed) == KILLS
    monkeypatch.setenv("FOREBAY_MASTER", "inline")
    assert equal(forebay.open(str(folder)))
