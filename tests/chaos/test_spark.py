"""Real masters: Spark's JVM, a worker, or the driver's Python dies in the middle of a batch.

A cluster of two workers and a Connect server give the same answers as everywhere.
"""
from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from tests.chaos.scenario import ROOT, committed_twice
from tests.chaos.sparked import prepared
from tests.servers import free_port, waited

pytestmark = [pytest.mark.spark, pytest.mark.slow]
PATIENCE = 240.0


def started(folder: Path, failpoint: str | None = None) -> subprocess.Popen[str]:
    environment = {
        k: v for k, v in os.environ.items() if k != "FOREBAY_FAILPOINT"
    } | ({
        "FOREBAY_FAILPOINT": failpoint
    } if failpoint else {})
    return subprocess.Popen([sys.executable, "-m", "tests.chaos.sparked", str(folder)], cwd=ROOT, env=environment,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def children(root: int, word: str) -> list[int]:
    """Processes below this one with the word in their command line."""
    parents, said = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                said[int(entry.name)] = (entry / "cmdline").read_bytes().decode(errors="replace")
            except (OSError, IndexError):
                continue
    below, found = {root}, []
    while below:
        below = {pid for pid, parent in parents.items() if parent in below}
        found += [pid for pid in below if word in said[pid]]
    return found


def entries(folder: Path) -> int:
    """Commits of the ledger's batches: an odd one after the first is an intent."""
    return len(list((folder / "warehouse/ledger/batches/_delta_log").glob("*.json")))


def right(running: subprocess.Popen[str], folder: Path) -> None:
    out, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, err
    *batches, said = out.splitlines()
    assert set(batches) <= {"batch"}, "something else writes to stdout"
    assert {
        n: (q["boundaries"], q["differences"]) for n, q in json.loads(said).items()
    } == {
        "q": (6, []),
        "pairs": (6, [])
    }
    assert committed_twice(folder) == []


def test_a_worker_is_killed_in_the_middle_of_a_batch(tmp_path: Path) -> None:
    prepared(tmp_path, '{master: "local-cluster[2,1,1024]"}')
    running = started(tmp_path)
    # creation, then intent and commit by turns: an intent is open
    waited(lambda: entries(tmp_path) >= 4 and entries(tmp_path) % 2 == 0, PATIENCE)
    workers = children(running.pid, "CoarseGrainedExecutorBackend")
    assert len(workers) >= 2
    os.kill(max(workers), signal.SIGKILL)
    right(running, tmp_path)


def test_the_jvm_is_killed_and_python_lives(tmp_path: Path) -> None:
    prepared(tmp_path, '{master: "local[2]"}')
    running = started(tmp_path)
    waited(lambda: entries(tmp_path) >= 4 and entries(tmp_path) % 2 == 0, PATIENCE)
    for jvm in children(running.pid, "SparkSubmit"):
        os.kill(jvm, signal.SIGKILL)
    out, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 1, (out, err)
    assert json.loads(out.splitlines()[-1])["error"]["code"] == "spark-failed"
    right(started(tmp_path), tmp_path)


def test_python_is_killed_and_the_jvm_lives(tmp_path: Path) -> None:
    prepared(tmp_path, '{master: "local[2]"}')
    for failpoint in ("batch.after-tasks:2", "batch.after-table"):
        killed = started(tmp_path, failpoint)
        killed.communicate(timeout=PATIENCE)
        assert killed.returncode == -signal.SIGKILL
    right(started(tmp_path), tmp_path)


@pytest.fixture
def connect() -> Iterator[int]:
    """A Connect server out of the wheel; its port."""
    port = free_port()
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    command = [
        str(submit), "--master", "local[2]", "--driver-memory", "1g", "--class",
        "org.apache.spark.sql.connect.service.SparkConnectServer", "--conf", "spark.ui.enabled=false", "--conf",
        "spark.log.level=ERROR", "--conf", "spark.connect.grpc.binding.address=127.0.0.1", "--conf",
        f"spark.connect.grpc.binding.port={port}", "spark-internal"
    ]
    server = subprocess.Popen(command, env={
        **os.environ, "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1"
    }, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        waited(lambda: _open(port) or server.poll() is not None, PATIENCE)
        assert server.poll() is None, "the server has ended"
        yield port
    finally:
        server.terminate()
        server.wait(timeout=60)


def _open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_everything_works_through_connect(connect: int, tmp_path: Path) -> None:
    prepared(tmp_path, f'{{remote: "sc://127.0.0.1:{connect}", settings: {{forebay.tasks: "2"}}}}')
    right(started(tmp_path), tmp_path)
