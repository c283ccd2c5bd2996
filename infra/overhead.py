"""What a run costs through Airflow beside the same two commands: `python -m infra.overhead [RUNS]`, with servers of its
own; prints medians and a split.

Runs and commands take turns on one pipeline, each with one new boundary of a few rows, so what is left is overhead;
figures are of one machine and one hour.
"""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from statistics import median
from typing import Any

from jobs.commands import airflow_api as rest
from jobs.commands.airflow_home import ROOT
from jobs.engine.spark import TOKEN
from jobs.ledger.open_pipeline import open_pipeline
from jobs.pipeline.config import load
from optimizer.time import instant

DAG = "forebay__shop"
PATIENCE = 240.0        # seconds for one run
# runs and commands at the beginning that are not counted: data docs are made, imports are read from disk
WARM = 1
BATCH = 10              # minutes: the example's
FIRST = datetime.fromisoformat("2025-01-01T12:00:00+00:00")
TASK = "batches"


@dataclass(frozen=True)
class There:
    """What `up` said of itself."""

    airflow: rest.Server
    spark: str
    token: str
    folder: Path


@contextmanager
def servers() -> Iterator[There]:
    with tempfile.TemporaryDirectory(prefix="forebay-overhead-") as place:
        environment = {**os.environ, "FOREBAY_UP": place}
        for setting in ("FOREBAY_MASTER", "FOREBAY_PIPELINES"):
            environment.pop(setting, None)
        command = [sys.executable, "-m", "infra.up"]
        try:
            started = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
            if started.returncode:
                raise SystemExit(started.stderr)
            where = json.loads(Path(place, "where.json").read_text())
            print(started.stdout.splitlines()[-1], flush=True)
            airflow = rest.login(where["airflow"], where["user"], where["password"])
            yield There(airflow, where["spark"], where["token"], Path(where["pipelines"], "shop"))
        finally:
            subprocess.run([*command, "down"], cwd=ROOT, env=environment, capture_output=True, timeout=120)


def lay(folder: Path, step: int) -> None:
    """A row of each stream, one boundary after the last."""
    at = datetime.fromtimestamp(FIRST.timestamp() + 60 * BATCH * step, FIRST.tzinfo).strftime("%Y-%m-%dT%H:%M:%SZ")
    (folder / "landing" / "views" / f"o{step}.csv").write_text(f"ts,user,page,ms\n{at},u1,news,{700 + step}\n")
    purchase = json.dumps({"ts": at, "user": "u1", "amount": "1.50"})
    (folder / "landing" / "purchases" / f"o{step}.json").write_text(f"{purchase}\n")


def by_airflow(there: There) -> dict[str, Any]:
    """Seconds of one triggered run, as a person sees it, and where they went."""
    began = time.perf_counter()
    run = rest.trigger(there.airflow, DAG)
    outcome = rest.ended(there.airflow, DAG, run, PATIENCE)
    seconds = time.perf_counter() - began
    parts = sorted(rest.tasks(there.airflow, DAG, run), key=lambda t: str(t["start_date"]))
    started = next(part["start_date"] for part in parts if part["task_id"] == TASK)
    last_batch = open_pipeline(load(str(there.folder))).ledger.committed_batches(1)[-1]
    to_commit = instant(last_batch.committed_at).timestamp() - _time(started)
    return {"state": outcome["state"], "seconds": seconds, **_split(outcome, parts), "to_commit": to_commit}


def _split(run: Mapping[str, Any], parts: list[dict[str, Any]]) -> dict[str, float]:
    """Until the first task is queued, tasks in the queue, tasks at work, between tasks and after the last."""
    queued = sum(
        _time(t["start_date"]) - _time(t["queued_when"]) for t in parts if t["start_date"] and t["queued_when"])
    work = {f"task {t['task_id']}": float(t["duration"] or 0.0) for t in parts}
    before = min(_time(t["queued_when"]) for t in parts if t["queued_when"]) - _time(run["queued_at"])
    whole = _time(run["end_date"]) - _time(run["queued_at"])
    return {"before the first task": before, "tasks queued": queued, "tasks at work": sum(work.values()),
            "between and after": whole - before - queued - sum(work.values()), **work}


def by_commands(there: There) -> dict[str, float]:
    environment = {**os.environ, "FOREBAY_MASTER": there.spark, TOKEN: there.token, "PYTHONPATH": str(ROOT)}
    took = {}
    for name in ("ingest", "run"):
        began = time.perf_counter()
        command = [sys.executable, "-m", "forebay.cli", name, "--pipeline", str(there.folder)]
        command_run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        if command_run.returncode:
            raise SystemExit(f"forebay {name}: {command_run.stderr}")
        took[name] = time.perf_counter() - began
    return {"seconds": sum(took.values()), **took}


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _in_words(figures: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value:.2f}" if isinstance(value, float) else str(value) for key, value in figures.items())


def _medians(runs: list[dict[str, Any]]) -> dict[str, float]:
    names = [name for name in runs[0] if name != "state"]
    return {name: round(median(map(itemgetter(name), runs)), 2) for name in names}


def measure(runs: int) -> dict[str, Any]:
    """Also of fewer, where it is ended before: servers are ended then too."""
    mine, theirs = list[dict[str, Any]](), list[dict[str, float]]()
    with suppress(KeyboardInterrupt), servers() as there:
        for n in range(runs + WARM):
            lay(there.folder, 2 * n)
            mine.append(by_airflow(there))
            # a run brings about another one, which logs plans and statistics into MLflow
            runs_left = f"/api/v2/dags/{DAG}__adapt/dagRuns?state=running&state=queued"
            while rest.call(there.airflow, runs_left)["total_entries"]:
                time.sleep(rest.LOOK)
            lay(there.folder, 2 * n + 1)
            theirs.append(by_commands(there))
            print(n, _in_words(mine[-1]), "commands:", _in_words(theirs[-1]), flush=True)
    return _report(mine[WARM:], theirs[WARM:])


def _report(mine: list[dict[str, Any]], theirs: list[dict[str, float]]) -> dict[str, Any]:
    states = dict(Counter(m["state"] for m in mine))
    if not mine or not theirs:
        return {"runs": states}
    a, c = _medians(mine), _medians(theirs)
    overhead, times = round(a["seconds"] - c["seconds"], 2), round(a["seconds"] / c["seconds"], 2)
    return {"runs": states, "airflow_s": a, "commands_s": c, "overhead_s": overhead, "times": times}


def _interrupted(*_: Any) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupted)
    print(json.dumps(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 10), indent=2))
