"""A scheduler for one folder without a server: a process that runs the folder's DAGs on request (dags/local.py), with an Airflow database of its own."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optimizer.errors import failed

ROOT = Path(__file__).resolve().parent.parent
EMPTY = Path(sys.prefix, "share", "forebay", "airflow")      # a migrated database: making one takes eight seconds
SHOWN = 2000                                                 # characters of a log in an error


class Killed(Exception):
    """The process ended by a signal; the next request starts another."""

    def __init__(self, signal: int) -> None:
        super().__init__(f"ended by signal {signal}")
        self.signal = signal


@dataclass
class Scheduler:
    """`home` is Airflow's; `pipelines` the folder whose DAGs are run."""

    home: Path
    pipelines: Path
    _process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Begins to import Airflow; the first run waits for it."""
        _database(self.home, _surroundings(self.home, self.pipelines))
        with open(self.home / "scheduler.log", "a", encoding="utf-8") as log:
            self._process = subprocess.Popen([sys.executable, "-m", "dags.local"], cwd=ROOT, env=_surroundings(self.home, self.pipelines),
                                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)

    def run(self, dag: str, form: Mapping[str, Any] | None = None, **environment: str) -> dict[str, Any]:
        """What each task of the run said; a run that fails is an error."""
        if self._process is None:
            self.start()
        assert self._process is not None and self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"dag": dag, "form": dict(form or {}), "environment": environment}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise self._ended()
        said: dict[str, Any] = json.loads(answer)
        if said.get("state") != "success":
            raise failed("dag-failed", f"{dag}: {said.get('refused') or said['tasks']}", f"its log is {self.home / 'scheduler.log'}")
        return dict(said["said"])

    def _ended(self) -> Exception:
        assert self._process is not None
        code, self._process = self._process.wait(), None
        if code < 0:
            return Killed(-code)
        return failed("scheduler-failed", f"the process that runs DAGs ended with {code}", (self.home / "scheduler.log").read_text()[-SHOWN:])

    def stop(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait(timeout=60)
            self._process = None


def _surroundings(home: Path, pipelines: Path) -> dict[str, str]:
    """Airflow reads these when it is imported."""
    own = {"AIRFLOW_HOME": str(home), "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"), "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
           "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING", "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}",
           "PYTHONPATH": str(ROOT), "FOREBAY_PIPELINES": str(pipelines), "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
    return {**{k: v for k, v in os.environ.items() if not k.startswith(("AIRFLOW", "FOREBAY_FAILPOINT"))}, **own}


def _database(home: Path, environment: Mapping[str, str]) -> None:
    """A copy of an empty one, which is made at the first use."""
    home.mkdir(parents=True, exist_ok=True)
    if (home / "airflow.db").exists():
        return
    if not (EMPTY / "airflow.db").exists():
        draft = EMPTY.with_name(f"airflow-{os.getpid()}")
        draft.mkdir(parents=True)
        there = {**environment, "AIRFLOW_HOME": str(draft), "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{draft / 'airflow.db'}"}
        done = subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], env=there, cwd=draft, capture_output=True, text=True, timeout=240)
        if done.returncode:
            raise failed("no-scheduler", f"Airflow's database could not be made: {done.stderr[-SHOWN:]}", "`make install` makes the environment whole")
        shutil.rmtree(EMPTY, ignore_errors=True)
        draft.rename(EMPTY)
    shutil.copy(EMPTY / "airflow.db", home / "airflow.db")
