"""Scheduler, task or Spark server killed at random moments while runs are triggered: everything comes back by itself,
and in the end nobody can tell.
"""
from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

import forebay
from jobs.commands import airflow_api as rest
from tests.dags.conftest import Up, served
from tests.jobs.pipelines import equal

DAG = "forebay__shop"
KILLS = int(os.environ.get("FOREBAY_KILLS", "20"))
MINUTES = float(os.environ.get("FOREBAY_MINUTES", "40"))        # as long as it goes on killing
VICTIMS = ("scheduler", "task", "spark")


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Up]:
    with served(tmp_path / "up") as up:
        yield up


def ended(up: Up, run: str, patience: float) -> str:
    state = str(rest.ended(up.airflow, DAG, run, patience)["state"])
    return state if state in rest.ENDED else "not ended"


def kill(place: Path, victim: str, rnd: random.Random) -> bool:
    """Of the scheduler or Spark the leading process; of the tasks any process that works for the scheduler."""
    leader = psutil.Process(int(
        (place / f"{'spark' if victim == 'spark' else 'scheduler'}.pid").read_text().split()[0]))
    chosen = rnd.choice(leader.children(recursive=True) or [leader]) if victim == "task" else leader
    with suppress(psutil.NoSuchProcess):
        chosen.send_signal(signal.SIGKILL)
        return True
    return False


def more(folder: Path, minute: int) -> None:
    at = f"2025-01-01T{11 + minute // 60:02d}:{minute % 60:02d}:00Z"
    (folder / "landing" / "views" / f"m{minute}.csv").write_text(f"ts,user,page,ms\n{at},u1,news,{700 + minute}\n")
    (folder / "landing" / "purchases"
     / f"m{minute}.json").write_text(json.dumps({
         "ts": at,
         "user": "u1",
         "amount": "1.50"
     }) + "\n")


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_kills_leave_no_trace(there: Up, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rnd, folder, states, killed = random.Random(seed), there.pipelines / "shop", list[str](), list[str]()
    end = time.monotonic() + 60 * MINUTES
    for n in range(KILLS):
        if time.monotonic() > end:
            break
        more(folder, 5 * n)
        began, run = time.monotonic(), rest.trigger(there.airflow, DAG)
        time.sleep(rnd.uniform(0.0, 8.0))
        victim = rnd.choice(VICTIMS)
        if kill(there.place, victim, rnd):
            killed.append(victim)
        states.append(ended(there, run, 240))
        print(n, victim, states[-1], f"{time.monotonic() - began:.0f} s", flush=True)
    assert ended(there, rest.trigger(there.airflow, DAG, {"flush": True}), 240) == "success"
    print(states, killed)
    assert states == ["success"] * len(killed) and killed
    monkeypatch.setenv("FOREBAY_MASTER", "inline")
    assert equal(forebay.open(str(folder)))
