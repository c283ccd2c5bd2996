"""The stream tables that settings run on: a few worlds of generated rows, each landed and ingested once.

Attributes differ in how many values they have, so one world serves many settings: `j50` and `j1m` are join keys of 50
and of a million values, `g20` and `g2m` groups, `jz` keys of which few have most rows. The same world has the same rows
in each run.
"""
from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from jobs.engine import kernel
from jobs.engine.tasks import Tasks
from jobs.ledger.open_pipeline import OpenPipeline, open_pipeline
from jobs.ledger.queries import QueryChange
from jobs.pipeline.config import load
from jobs.requests import requests
from jobs.run import Loop
from optimizer.expression.types import TIMESTAMP, Type, parse_type

SECOND = 1_000_000
START = 1_356_998_400 * SECOND        # 2013-01-01T00:00:00Z
# Rows of a file of the past, which maintenance has merged; the newest batches have a file each.
MERGED_ROWS = 500_000
NEWEST = 12              # batches before the measured ones that have a file each
WHOLE = {"g20": ("string", "'g' || floor(random() * 20)::INT"),
         "g300": ("string", "'g' || floor(random() * 300)::INT"),
         "g20k": ("string", "'g' || floor(random() * 20000)::INT"),
         "g2m": ("bigint", "floor(random() * 2000000)::BIGINT"),
         "j50": ("string", "'k' || floor(random() * 50)::INT"),
         "j1k": ("string", "'k' || floor(random() * 1000)::INT"),
         "j20k": ("string", "'k' || floor(random() * 20000)::INT"),
         "j1m": ("bigint", "floor(random() * 1000000)::BIGINT"),
         "jz": ("string", "'k' || floor(2000 * pow(random(), 3))::INT"),
         "c500": ("string", "'c' || floor(random() * 500)::INT"),
         "a": ("bigint", "floor(random() * 1000)::BIGINT"),
         "v": ("bigint", "floor(random() * 1000)::BIGINT")}


@dataclass(frozen=True)
class World:
    """Streams s1, s2, … alike: `World("medium", batch=5, rate=20_000, reach=400, streams=3)` has 20,000 rows a second
    and stream, a boundary every five seconds, and room for windows of 400 seconds.
    """

    name: str
    batch: int              # seconds
    rate: int               # rows a second and stream
    reach: int              # seconds of the longest window that is full when plans are measured
    streams: int = 2
    measured: int = 16      # batches after the longest windows are full
    columns: tuple[str, ...] = tuple(WHOLE)

    @property
    def first(self) -> int:
        """The number of the first batch that is measured."""
        return self.reach // self.batch

    @property
    def batches(self) -> int:
        return self.first + self.measured

    def files(self) -> list[range]:
        """The batches of each landed file."""
        together = max(MERGED_ROWS // (self.rate * self.batch), 1)
        newest = max(self.first - NEWEST, 0)
        merged = [range(n, min(n + together, newest)) for n in range(0, newest, together)]
        return merged + [range(n, n + 1) for n in range(newest, self.batches)]

    def boundary(self, number: int) -> int:
        """What batch `number` completes."""
        return START + (number + 1) * self.batch * SECOND


WORLDS: Mapping[str, World] = {world.name: world for world in (
    World("tiny", batch=1, rate=1_000, reach=1_000),
    World("small", batch=5, rate=2_000, reach=240, streams=4),
    World("medium", batch=5, rate=20_000, reach=400, streams=3),
    World("huge batches", batch=60, rate=10_000, reach=600),
    World("large", batch=5, rate=200_000, reach=500, measured=9, columns=("g300", "g2m", "j1k", "j20k", "a", "v")),
)}


def types(world: World) -> tuple[tuple[str, Type], ...]:
    """The columns of each stream of a world."""
    return (("ts", TIMESTAMP), *((name, parse_type(WHOLE[name][0])) for name in world.columns))


def made(world: World, root: str, tasks: Tasks) -> str:
    """The folder of the world's pipeline under `root`; if it is there already, nothing is done."""
    folder = os.path.join(root, world.name.replace(" ", "-"))
    done = os.path.join(folder, "made")
    if os.path.exists(done):
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, "queries"))
    with open(os.path.join(folder, "forebay.yml"), "w", encoding="utf-8") as file:
        file.write(_document(world))
    for number in range(1, world.streams + 1):
        _land(world, os.path.join(folder, "landing", f"s{number}"), number)
    Loop(opened(folder, tasks)).take()
    shutil.rmtree(os.path.join(folder, "landing"))
    with open(done, "w", encoding="utf-8"):
        return folder


def copied(folder: str, to: str, tasks: Tasks, sql: str, first: int) -> OpenPipeline:
    """A life of its own for one plan: the same stream tables, and a query `answer` from the boundary `first` on.

    Data files are linked, since none is ever changed.
    """
    shutil.copytree(folder, to, copy_function=link_or_copy)
    pipe = opened(to, tasks)
    creation = QueryChange("answer", "create", first, sql, None, requests.columns_of(pipe, sql), "results/answer")
    pipe.ledger.request(lambda begun, changes: creation)
    return pipe


def opened(folder: str, tasks: Tasks) -> OpenPipeline:
    """On the session of `tasks`, which all worlds and plans share."""
    return dataclasses.replace(open_pipeline(load(folder)), tasks=tasks)


def link_or_copy(source: str, target: str) -> None:
    """Data files are linked, logs copied."""
    if source.endswith(".parquet"):
        os.link(source, target)
    else:
        shutil.copy2(source, target)


def _document(world: World) -> str:
    columns = ", ".join(f"{name}: {WHOLE[name][0]}" for name in world.columns)
    streams = []
    for number in range(1, world.streams + 1):
        streams.append(f"  s{number}: {{columns: {{ts: timestamp, {columns}}}, event_time: ts,\n"
                       f"       source: {{files: \"landing/s{number}/*.parquet\"}}}}\n")
    return f"name: prices\nbatch: {world.batch} seconds\nstreams:\n{''.join(streams)}"


def _land(world: World, folder: str, stream: int) -> None:
    os.makedirs(folder)
    con, length = kernel.connect(threads=2, memory="4GB"), world.batch * SECOND
    values = ", ".join(f"{WHOLE[name][1]} AS {name}" for name in world.columns)
    for batches in world.files():
        count = world.rate * world.batch * len(batches)
        since, span = START + batches[0] * length, len(batches) * length
        con.execute(f"SELECT setseed({(batches[0] * 7 + stream * 311) % 9973 / 9973})")
        ts = f"CAST(make_timestamp({since} + (i * {span}) // {count}) AS TIMESTAMPTZ) AS ts"
        file = f"{folder}/{batches[0]:05d}.parquet"
        con.execute(f"COPY (SELECT {ts}, {values} FROM range({count}) AS r(i)) TO '{file}' (COMPRESSION snappy)")
    con.close()
