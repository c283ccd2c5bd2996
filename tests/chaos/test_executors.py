"""A real master, two workers and dynamic allocation: executors come when `latency` asks for more tasks and go when they
idle.

Answers are the same.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pyspark
import pytest

from tests.jobs.pipelines import equal, opened, pipeline, ran, rows
from tests.jobs.test_parallelism_run import QUERIES, asked
from tests.servers import free_port, waited

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(600)]
CLASS = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
PATIENCE, OFTEN = 120.0, 0.2      # seconds
IDLE = 4          # seconds after which an executor without tasks goes


class Cluster(NamedTuple):
    """Its address, and where its master tells of itself."""

    master: str
    page: str

    def told(self, key: str) -> int:
        with urllib.request.urlopen(f"{self.page}/json/") as answer:
            return int(json.load(answer)[key])

    def ready(self) -> bool:
        """A page that is served already may not be there yet."""
        try:
            return self.told("aliveworkers") == 2
        except OSError:
            return False

    def executors(self) -> int:
        """Each has one core."""
        return self.told("coresused")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A master and two workers of one core, out of the wheel."""
    port, page, *others = (free_port() for _ in range(4))
    found = Cluster(f"spark://127.0.0.1:{port}", f"http://127.0.0.1:{page}")
    environment = {
        **os.environ, "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
        "SPARK_DAEMON_MEMORY": "256m"
    }
    master = ["master.Master", "--port", str(port), "--webui-port", str(page)]
    workers = [["worker.Worker", "--webui-port",
                str(other), "--cores", "1", "--memory", "1g", found.master] for other in others]
    running = [
        subprocess.Popen([CLASS, f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1", *more], env=environment,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for kind, *more in (master, *workers)
    ]
    try:
        waited(found.ready, PATIENCE, OFTEN)
        yield found
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(timeout=60)


def test_executors_come_and_go_with_the_tasks_that_latency_asks_for(cluster: Cluster, tmp_path: Path) -> None:
    """It begins with one task, so with one executor; boundaries that take longer than a millisecond make it two, and
    one that waits a second brings the other executor: so the join is of hundreds of millions of pairs."""
    settings = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "1",
        "spark.dynamicAllocation.maxExecutors": "2",
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
        "spark.dynamicAllocation.executorIdleTimeout": f"{IDLE}s",
        "spark.dynamicAllocation.schedulerBacklogTimeout": "1s"
    }
    folder = tmp_path / "pipeline"
    pipe = pipeline(folder, {"views": "", "clicks": ""}, queries=QUERIES, top="latency: 1 millisecond\n",
                    spark=json.dumps({"master": cluster.master, "settings": settings}))
    seen = list[int]()
    with closing(pipe):      # a session that outlived its cluster would keep the next test waiting for ever
        pipe.create("one", QUERIES["one"])
        pipe.change("one", "pin", "LAP recompute")
        tasks = asked(pipe, 62, 4000, lambda: seen.append(cluster.executors()))
        print("tasks asked for", tasks, "executors", seen)
        assert tasks[0] == 1 and tasks[-1] == 2 and max(seen) == 2
        waited(lambda: cluster.executors() == 1, PATIENCE, OFTEN)
        rows(pipe, [75], "views"), rows(pipe, [75], "clicks")
        assert ran(pipe) == [70] and equal(pipe)
    assert equal(opened(folder))
