"""A standalone cluster out of Spark's wheel: a master, and workers of one core each."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyspark

from tests.servers import free_port, waited

CLASS = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
PATIENCE, OFTEN = 120.0, 0.2      # seconds


class Cluster(NamedTuple):
    """Its address, where its master tells of itself, and how many workers it has."""

    master: str
    page: str
    workers: int

    def told(self, key: str) -> int:
        with urllib.request.urlopen(f"{self.page}/json/") as answer:
            return int(json.load(answer)[key])

    def ready(self) -> bool:
        """A page that is served already may not be there yet."""
        try:
            return self.told("aliveworkers") == self.workers
        except OSError:
            return False

    def executors(self) -> int:
        """Each has one core."""
        return self.told("coresused")


@contextmanager
def running(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """Each worker has a folder of its own for what Spark keeps on its disk."""
    port, page = free_port(), free_port()
    found = Cluster(f"spark://127.0.0.1:{port}", f"http://127.0.0.1:{page}", workers)
    shared = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1",
              "SPARK_DAEMON_MEMORY": "256m"}
    processes = [_started(["master.Master", "--port", str(port), "--webui-port", str(page)], shared)]
    for number in range(workers):
        own = folder / f"worker{number}"
        own.mkdir(parents=True)
        processes.append(_started(["worker.Worker", "--webui-port", str(free_port()), "--cores", "1", "--memory", "1g",
                                   found.master],
                                  {**shared, "SPARK_WORKER_DIR": str(own / "work"), "SPARK_LOCAL_DIRS": str(own)}))
    try:
        waited(found.ready, PATIENCE, OFTEN)
        yield found
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(timeout=60)


def _started(command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    kind, *more = command
    return subprocess.Popen([CLASS, f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1", *more], env=environment,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
