"""A real master, two workers and dynamic allocation: executors come when `latency` asks for more tasks and go when they
idle.

Answers are the same.
"""
from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cluster import OFTEN, PATIENCE, Cluster, running
from tests.jobs.pipelines import equal, opened, pipeline, ran, rows
from tests.jobs.test_parallelism_run import QUERIES, asked
from tests.servers import waited

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(600)]
IDLE = 4          # seconds after which an executor without tasks goes


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A master and two workers."""
    with running(tmp_path / "cluster") as found:
        yield found


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
