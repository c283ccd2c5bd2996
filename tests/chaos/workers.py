"""One boundary on 1, 2 and 4 workers of a standalone cluster that have only a store in common (paper E, Fig. 15): what
its tasks read from the store, how many rows they hand over, and the processor time that they take.

    python -m tests.chaos.workers

Wall time is not told: on a machine with fewer cores than workers it says nothing about them.
"""
from __future__ import annotations

import json
import socket
import statistics
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import forebay
from jobs.engine.tasks import Tasks
from jobs.engine.work import TaskResult
from tests.cluster import OFTEN, PATIENCE, running
from tests.jobs.pipelines import pipeline
from tests.servers import free_port, waited
from tests.stores import new_bucket, serving, settings

WORKERS = (1, 2, 4)
BATCH, WINDOW = 10, 60            # seconds
ALONE = ("SELECT v.k % 10 AS g, COUNT(*) AS n, SUM(b.x) AS s FROM views AS v [WINDOW 1 MINUTE], buys AS b [WINDOW 1 "
         "MINUTE] WHERE v.k = b.k GROUP BY v.k % 10")
SHARED = ALONE.replace(" GROUP BY", " AND v.x < {bound} GROUP BY")
QUERIES = 20                      # that share


@dataclass(frozen=True)
class Load:
    """What the tasks of one boundary did: `Load(2, 0.3, 0.58, 120_000, 40, 3.1)` is of two tasks."""

    tasks: int
    slowest_s: float
    all_s: float
    rows_read: int
    rows_handed_over: int
    megabytes: float      # from the store


class Meter:
    """Passes bytes between those who ask the store and the store, and counts what the store sends.

    In a process of its own: delta-rs holds the interpreter's lock while it waits for some answers.
    """

    def __init__(self, store: int) -> None:
        context, port = get_context("spawn"), free_port()
        self._sent = context.Value("q", 0)
        self._process = context.Process(target=_serve, args=(port, store, self._sent), daemon=True)
        self._process.start()
        waited(lambda: not socket.socket().connect_ex(("127.0.0.1", port)), PATIENCE, OFTEN)
        self.url = f"http://127.0.0.1:{port}"

    @property
    def sent(self) -> int:
        """Bytes so far."""
        return int(self._sent.value)

    def close(self) -> None:
        self._process.terminate()


def _serve(port: int, store: int, sent: Any) -> None:
    listening = socket.create_server(("127.0.0.1", port))
    while True:
        asking, _ = listening.accept()
        answering = socket.create_connection(("127.0.0.1", store))
        threading.Thread(target=_pass, args=(asking, answering, None), daemon=True).start()
        threading.Thread(target=_pass, args=(answering, asking, sent), daemon=True).start()


def _pass(source: socket.socket, target: socket.socket, counted: Any) -> None:
    try:
        while data := source.recv(1 << 16):
            if counted is not None:
                with counted.get_lock():
                    counted.value += len(data)
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:      # the other side is gone
        pass


def measured(folder: Path, meter: Meter, workers: int, rate: int, boundaries: int = 4) -> dict[str, Load]:
    """By kind of work: the loads of the last boundaries, their medians."""
    with running(folder / "cluster", workers) as cluster:
        bucket = new_bucket(meter.url)
        told = {**settings(meter.url), "spark.executor.memory": "512m", "spark.executor.cores": "1",
                "spark.cores.max": str(workers)}
        pipe = pipeline(folder / "pipeline", {stream: "" for stream in ("views", "buys")},
                        top=f"warehouse: s3a://{bucket}/w\n",
                        spark=json.dumps({"master": cluster.master, "settings": told}))
        with closing(pipe):
            return _lived(pipe, meter, rate, boundaries)


def _lived(pipe: forebay.Pipeline, meter: Meter, rate: int, boundaries: int) -> dict[str, Load]:
    pipe.create("alone", ALONE)
    pipe.change("alone", "pin", "EAP11 recompute")
    choice = Random(1)
    pipe.runtime.tasks.width      # starts the session
    loads: dict[str, list[Load]] = {"one query, `EAP11 recompute`": [], f"{QUERIES} queries that share": []}
    for number in range(WINDOW // BATCH + 2 * boundaries + 2):
        if number == WINDOW // BATCH + boundaries + 1:
            pipe.create_together({f"q{n}": SHARED.format(bound=choice.randrange(100, 1000)) for n in range(QUERIES)})
            pipe.change("alone", "delete")
        _land(pipe, number, rate)
        with watched(meter) as batch:
            pipe.run(flush=True)
        kind = [*loads][number > WINDOW // BATCH + boundaries]
        loads[kind] += batch
    assert pipe.verify("q0")["queries"]["q0"]["differences"] == 0
    return {kind: _median(of_kind[-boundaries:]) for kind, of_kind in loads.items()}


def _land(pipe: forebay.Pipeline, number: int, rate: int) -> None:
    """A batch of both streams."""
    choice, count = Random(number), rate * BATCH
    for stream in ("views", "buys"):
        stamps = [(1_767_225_600 + number * BATCH) * 10**6 + n * 10**6 // rate for n in range(count)]
        pipe.ingest(stream, pa.table({
            "ts": pa.array(stamps, pa.timestamp("us", "UTC")),
            "k": [choice.randrange(1_000) for _ in range(count)],
            "x": [choice.randrange(1_000) for _ in range(count)]
        }))


@contextmanager
def watched(meter: Meter) -> Iterator[list[Load]]:
    """Within, the jobs that answer queries are measured."""
    loads: list[Load] = []
    usual = Tasks.map

    def recorded(tasks: Tasks, function: Any, items: Iterable[Any], width: int | None = None) -> list[Any]:
        before = meter.sent
        results = usual(tasks, function, items, width)
        answered = [result for result in results if isinstance(result, TaskResult)]
        if answered:
            loads.append(_load(answered, (meter.sent - before) / 2**20))
        return results

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tasks, "map", recorded)
        yield loads


def _load(results: list[TaskResult], megabytes: float) -> Load:
    seconds: dict[int, float] = {}
    for result in results:
        seconds[result.part] = seconds.get(result.part, 0.0) + result.seconds
    numbers = {number for result in results for number in (0, *result.further)}
    handed = sum(result.row_count(number) for result in results for number in numbers)
    return Load(len(seconds), max(seconds.values()), sum(seconds.values()),
                sum(sum(result.read_rows.values()) for result in results), handed, megabytes)


def _median(loads: list[Load]) -> Load:
    def of(name: str) -> float:
        return statistics.median(getattr(load, name) for load in loads)

    return Load(int(of("tasks")), of("slowest_s"), of("all_s"), int(of("rows_read")), int(of("rows_handed_over")),
                of("megabytes"))


def table(by_workers: Mapping[int, Mapping[str, Load]]) -> str:
    heads = ("work", "workers", "tasks", "slowest task, processor s", "all tasks", "rows read", "rows handed over",
             "MB from the store")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for kind in next(iter(by_workers.values())):
        for workers, loads in by_workers.items():
            load = loads[kind]
            lines.append(f"| {kind} | {workers} | {load.tasks} | {load.slowest_s:.2f} | {load.all_s:.2f} | "
                         f"{load.rows_read:,} | {load.rows_handed_over:,} | {load.megabytes:.1f} |")
    return "\n".join(lines)


@contextmanager
def metered(folders: Any) -> Iterator[Meter]:
    server = serving(folders)
    meter = Meter(int(next(server).rpartition(":")[2]))
    try:
        yield meter
    finally:
        meter.close()
        next(server, None)


class Folders:
    """Where pytest gives folders, outside of pytest."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def mktemp(self, name: str) -> Path:
        (self.root / name).mkdir()
        return self.root / name


def main(rate: int = 10_000) -> None:
    with tempfile.TemporaryDirectory() as folder, metered(Folders(Path(folder))) as meter:
        print(table({workers: measured(Path(folder) / str(workers), meter, workers, rate) for workers in WORKERS}))


if __name__ == "__main__":
    main()
