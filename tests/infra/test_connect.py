"""A Connect server that has a token answers to nobody else, and no command line shows it."""
from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from infra import connect
from jobs.engine.spark import TOKEN
from tests.servers import free_port, waited

ROOT = Path(__file__).parents[2]
SECRET = "abc-of-this-test"
PATIENCE = 100.0
CLIENT = ("import sys; from jobs.engine import spark; s = spark.session(sys.argv[1]); print(s.range(3).count()); "
          "s.stop()")


@pytest.fixture
def server() -> Iterator[tuple[int, int]]:
    """Its port and pid."""
    port = free_port()
    environment = {**os.environ, TOKEN: SECRET, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    child = subprocess.Popen(connect.command("127.0.0.1", port), env=environment, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    try:
        waited(lambda: _open(port) or child.poll() is not None, PATIENCE)
        assert child.poll() is None, "the server has ended"
        yield port, child.pid
    finally:
        child.terminate()
        child.wait(timeout=60)


def _open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.spark
def test_only_who_has_the_token_is_answered(server: tuple[int, int]) -> None:
    port, pid = server
    assert SECRET not in " ".join(psutil.Process(pid).cmdline())
    plain = {k: v for k, v in os.environ.items() if k != TOKEN}
    answers = {}
    for token in (SECRET, "another", None):
        environment = plain if token is None else {**plain, TOKEN: token}
        command = [sys.executable, "-c", CLIENT, f"sc://localhost:{port}"]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE)
        answers[token] = (done.returncode, done.stdout.strip(), "UNAUTHENTICATED" in done.stderr)
    assert answers == {SECRET: (0, "3", False), "another": (1, "", True), None: (1, "", True)}
