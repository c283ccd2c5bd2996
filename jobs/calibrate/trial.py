"""One query's plans run for real over generated files, one task in this process, state carried as the runner carries
it; no Delta, ledger or Spark.

What it gives is a task's processor seconds: what the measured cost model predicts but for commits and Spark jobs.
"""
from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from jobs.engine import kernel
from jobs.engine.reach import files_meeting, split
from jobs.engine.work import TaskOrder, TaskResult, TimedFiles, perform
from jobs.storage import tables
from jobs.storage.tables import File
from optimizer.expression.types import BIGINT, STRING, TIMESTAMP
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import Plan
from optimizer.plan.program import BEGINNING, Program, Source
from optimizer.plan.tree import program
from optimizer.query.model import Catalog, Query
from optimizer.query.shape import shape
from optimizer.sql.parse import parse

SECOND = 1_000_000
START = 1_356_998_400 * SECOND        # 2013-01-01T00:00:00Z
BATCH = 5                             # seconds
WARM = 3                              # batches after the one that builds
SPREAD = 0.3                 # doubt about a unit cost that was measured by itself, not in a plan
COLUMNS = (("ts", TIMESTAMP), ("g", STRING), ("j", STRING), ("k", STRING), ("a", BIGINT))


@dataclass(frozen=True)
class TrialStream:
    """Rows a second, the window's text and how far back it reaches in seconds, distinct keys and groups.

    Key = ⌊keys · uniform^skew⌋.
    """

    rate: int
    window: str
    reach: int
    keys: int = 100
    groups: int = 10
    skew: float = 1.0


@dataclass(frozen=True)
class TrialSetting:
    """A query over streams s1, s2, … joined as `joins` says, and the rows that these streams have."""

    name: str
    streams: tuple[TrialStream, ...]
    select: str = "s1.g, COUNT(*) AS n, SUM(s1.a) AS x, SUM(s2.a) AS y"
    joins: str = "s1.j = s2.j"
    also: str = ""
    group: str = "s1.g"
    every: str = ""

    @property
    def sql(self) -> str:
        sources = ", ".join(f"s{n} [WINDOW {s.window}]" for n, s in enumerate(self.streams, 1))
        grouped = f" GROUP BY {self.group}" if self.group else ""
        where = " AND ".join(x for x in (self.joins, self.also) if x)
        return (f"SELECT {self.select} FROM "
                f"{sources}{f' WHERE {where}' if where else ''}{grouped}{f' EVERY {self.every}' if self.every else ''}")

    @property
    def query(self) -> Query:
        names = tuple((f"s{n}", "ts", COLUMNS) for n in range(1, len(self.streams) + 1))
        return parse(self.sql, Catalog(BATCH * SECOND, names, ()))

    @property
    def warm(self) -> int:
        """Batches that are measured: three, or a whole period of tumbling windows, whose batches differ."""
        periods = [s.reach // BATCH // self.step for s in self.streams if "TUMBLING" in s.window]
        return max((p for p in periods if p > 1), default=WARM)

    @property
    def step(self) -> int:
        """Batches from one boundary of the query to the next."""
        return self.query.every // (BATCH * SECOND)

    @property
    def full(self) -> int:
        """The batch whose boundary is the first with full windows."""
        return max(s.reach for s in self.streams) // BATCH - 1


def boundary(number: int) -> int:
    """What batch `number` completes."""
    return START + (number + 1) * BATCH * SECOND


@dataclass(frozen=True)
class Data:
    """A setting's files by stream."""

    setting: TrialSetting
    root: str
    rows: dict[str, list[File]] = field(default_factory=dict)

    def paths(self, stream: str) -> tuple[str, ...]:
        return tuple(os.path.join(self.root, stream, f.path) for f in self.rows[stream])


@dataclass
class TrialRun:
    """A plan's state between its batches, in a folder of its own, and the seconds that they took."""

    data: Data
    plan: Plan
    folder: str
    state: dict[str, list[File]] = field(default_factory=dict)
    previous: int = BEGINNING
    seconds: list[float] = field(default_factory=list)


@contextmanager
def generated(setting: TrialSetting) -> Iterator[Data]:
    """Files until the warm batches after the windows are full; the folder is gone afterwards."""
    data = Data(setting, tempfile.mkdtemp(prefix="forebay-trial-"))
    try:
        numbers = range(setting.full + setting.warm * setting.step + 1)
        for n, stream in enumerate(setting.streams, 1):
            data.rows[f"s{n}"] = [_write(data, f"s{n}", stream, number) for number in numbers]
        yield data
    finally:
        shutil.rmtree(data.root, ignore_errors=True)


def _write(data: Data, name: str, stream: TrialStream, number: int) -> File:
    folder = os.path.join(data.root, name)
    os.makedirs(folder, exist_ok=True)
    con = kernel.shared()
    con.execute(f"SELECT setseed({(number * 7 + len(name) + int(name[1:]) * 31) % 997 / 997})")
    count, start, length = stream.rate * BATCH, boundary(number - 1), BATCH * SECOND
    sql = (f"SELECT CAST(make_timestamp({start} + (i * {length}) // {count}) AS TIMESTAMPTZ) AS ts, "
           f"'g' || floor(random() * {stream.groups})::INT AS g, "
           f"'k' || floor({stream.keys} * pow(random(), {stream.skew}))::INT AS j, "
           f"'k' || floor(random() * {stream.keys})::INT AS k, "
           f"floor(random() * 1000)::BIGINT AS a, "
           f"CAST(make_timestamp({boundary(number)}) AS TIMESTAMPTZ) AS _boundary FROM range({count}) AS r(i)")
    con.execute(f"COPY ({sql}) TO '{folder}/{number:05d}.parquet' (FORMAT parquet, COMPRESSION zstd)")
    con.close()
    return tables.describe(folder, f"{number:05d}.parquet")


def run(data: Data, plans: Sequence[Plan]) -> dict[str, tuple[float, float]]:
    """By plan's name, seconds of the batch that builds its state when windows are full, and of a warm batch: the least,
    since other work of the machine only adds; for tumbling windows the mean, since their batches differ. Plans take
    turns batch by batch, so that a busy moment hits all alike."""
    setting = data.setting
    runs = [TrialRun(data, plan, os.path.join(data.root, "state", str(n))) for n, plan in enumerate(plans)]
    for number in range(setting.full, setting.full + setting.warm * setting.step + 1, setting.step):
        for trial_run in runs:
            _batch(trial_run, number)
    shutil.rmtree(os.path.join(data.root, "state"), ignore_errors=True)
    of_warm_batches = min if setting.warm == WARM else statistics.mean
    return {trial_run.plan.name: (trial_run.seconds[0], of_warm_batches(trial_run.seconds[1:])) for trial_run in runs}


def _batch(trial_run: TrialRun, number: int) -> None:
    low, t = Lowering(shape(trial_run.data.setting.query), trial_run.plan), boundary(number)
    narrow = program(replace(low, narrow=True), (t,), trial_run.previous)
    wide = program(replace(low, narrow=False), (t,), trial_run.previous)
    order = _order(trial_run, narrow, wide, number)
    started = time.process_time()
    result = perform(order)
    trial_run.seconds.append(time.process_time() - started)
    if result.failed:
        raise RuntimeError(f"{trial_run.plan.name} of {low.shape.query.text}: {result.failed}")
    keep(trial_run, narrow, result, t)
    trial_run.previous = t


def _order(trial_run: TrialRun, narrow: Program, wide: Program, number: int) -> TaskOrder:
    files: dict[str, tuple[str, ...]] = {}
    certain: dict[str, tuple[TimedFiles, ...]] = {}
    for source in narrow.sources:
        if source.kind == "state":
            files[source.name], certain[source.name] = state_paths(trial_run, source), ()
        else:
            stored = files_meeting(trial_run.data.rows[source.of], "ts", source)
            folder = os.path.join(trial_run.data.root, source.of)
            paths = {file.path: os.path.join(folder, file.path) for file in stored}
            files[source.name], certain[source.name] = split(stored, source, lambda file: paths[file.path])
    folders = {write.set: os.path.join(trial_run.folder, write.set) for write in narrow.writes}
    return TaskOrder("q", 0, 1, narrow, wide, files, folders, f"b{number}", certain=certain)


def state_paths(trial_run: TrialRun, source: Source) -> tuple[str, ...]:
    files = trial_run.state.get(source.of, [])
    return tuple(os.path.join(trial_run.folder, source.of, file.path) for file in files)


def keep(trial_run: TrialRun, statements: Program, result: TaskResult, last: int) -> None:
    """Files in which everything has ended leave with the batch; sets that stand for one boundary are replaced."""
    for write in statements.writes:
        new = [file for name, file in result.written if name == write.set]
        old = trial_run.state.get(write.set, []) if write.append else []
        ends = next((column for column in ("_out", "_e") if column in dict(write.columns)), None)
        trial_run.state[write.set] = [file for file in old + new if ends is None or file.high[ends] >= last]
