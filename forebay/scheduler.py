"""A scheduler for one folder without a server: a process that runs the folder's DAGs on request (dags/local.py), with
an Airflow database of its own.
"""
from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.commands.airflow_home import ROOT, settle, surroundings
from optimizer.errors import failed

SHOWN = 2000        # characters of a log in an error


class Killed(Exception):
    """The process ended by a signal; the next request goes to the one that stands by, or starts another."""

    def __init__(self, signal: int) -> None:
        super().__init__(f"ended by signal {signal}")
        self.signal = signal


@dataclass
class Scheduler:
    """`home` is Airflow's; `pipelines` the folder whose DAGs are run, a pipeline."""

    home: Path
    pipelines: Path
    _process: subprocess.Popen[str] | None = None
    _successor: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Begins to import Airflow and to start Spark; the first run waits for both."""
        settle(self.home)
        self._process = self._started()

    def stand_by(self) -> None:
        """Has a second process ready, in case the first is killed."""
        self._successor = self._started()

    def _started(self) -> subprocess.Popen[str]:
        environment = surroundings(
            self.home,
            str(self.pipelines),
            AIRFLOW__LOGGING__LOGGING_LEVEL="WARNING",
            FOREBAY_WARM=str(self.pipelines),
            # Great Expectations takes as long to import as two runs; `forebay expectations
            # --docs` makes them
            FOREBAY_DOCS="off")
        with open(self.home / "scheduler.log", "a", encoding="utf-8") as log:
            return subprocess.Popen([sys.executable, "-m", "dags.local"], cwd=ROOT, env=environment,
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)

    def run(self, dag: str, form: Mapping[str, Any] | None = None, **environment: str) -> dict[str, Any]:
        """What each task of the run said; a run that fails is an error."""
        self.ask(dag, form, **environment)
        return self.answer(dag)

    def ask(self, dag: str, form: Mapping[str, Any] | None = None, **environment: str) -> None:
        """Begins a run; `answer` comes before the next."""
        if self._process is None:
            self.start()
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(json.dumps({"dag": dag, "form": dict(form or {}), "environment": environment}) + "\n")
        self._process.stdin.flush()

    def answer(self, dag: str) -> dict[str, Any]:
        """What each task of the run that was asked for said."""
        assert self._process is not None and self._process.stdout is not None
        answer = self._process.stdout.readline()
        if not answer:
            raise self._ended()
        report: dict[str, Any] = json.loads(answer)
        if report.get("state") != "success":
            raise failed("dag-failed", f"{dag}: {report.get('refused') or report['tasks']}",
                         f"its log is {self.home / 'scheduler.log'}")
        return dict(report["said"])

    def _ended(self) -> Exception:
        assert self._process is not None
        code, self._process, self._successor = self._process.wait(), self._successor, None
        if code < 0:
            return Killed(-code)
        return failed("scheduler-failed", f"the process that runs DAGs ended with {code}",
                      (self.home / "scheduler.log").read_text()[-SHOWN:])

    def stop(self) -> None:
        for process in (self._process, self._successor):
            if process is not None and process.stdin is not None:
                process.stdin.close()
                process.wait(timeout=60)
        self._process = self._successor = None
