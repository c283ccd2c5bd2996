"""Window sets of paper D as continuous pipelines over Delta, keyed by device: what answering one set takes in each way.

Each window from the rows by itself, the set from shared panes, and the set with the levels (factor windows) that the
price chooses. Rows are stored once a set, and each way lives on a copy of the tables; their boundaries run in turns, a
chunk of event time each, so that a busy machine hits all alike. Answers of all ways are compared with one another and
with plain SQL over the raw rows before anything is reported.
"""
from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

from jobs.adapt.statistics import Statistics
from jobs.batch.batch import Answer
from jobs.batch.works import QueryWork, parsed
from jobs.engine import kernel
from jobs.engine.sample import SampleOrder, SampleResult
from jobs.engine.tasks import Tasks
from jobs.ledger.entries import Batch, KeptState
from jobs.ledger.open_pipeline import OpenPipeline, open_pipeline
from jobs.ledger.queries import QueryState
from jobs.papers.benches.streams import SECOND, START, stream_files
from jobs.papers.experiments.points import Point
from jobs.papers.experiments.windows.tables import SENSOR, SYNTHETIC
from jobs.pipeline.config import load as loaded
from jobs.run import Loop
from optimizer.choice.consider import Costs, with_width
from optimizer.choice.explain_windows import described
from optimizer.choice.parallelism import Parallelism
from optimizer.choice.search import every_form
from optimizer.cost.features import steady
from optimizer.cost.measured import seconds
from optimizer.coverage.algebra import Window
from optimizer.errors import failed
from optimizer.expression.dialect import string
from optimizer.plan.model import Plan, named
from optimizer.query.model import Query
from optimizer.query.shape import shape
from optimizer.statistics.cardinality import sizes

ALONE, PANES, FACTORS = "alone", "panes", "factors"      # the ways
LONGEST_TIMES = 4        # units of event time, in the set's longest range: so its longest windows end at all
CHUNKS = 5               # runs in which rows come; the first, which also starts what is cold, is not counted
QUERY, STREAM = "answer", "readings"
APART = 1_000_000        # queries from which a group would share: more than there are
PLAN = "EAP1 recompute"


@dataclass(frozen=True)
class WindowLoad:
    """A window set and its rows: `WindowLoad((Window(20, 20), Window(30, 30)), rate=100, events=4_000_000)`.

    A unit is a second; each device sends `rate` events a unit. `sensor`: values like a machine's power (Table II).
    """

    windows: tuple[Window, ...]
    rate: int
    events: int
    sensor: bool = False

    @property
    def step(self) -> int:
        """The batch: what divides all lengths."""
        return gcd(*(gcd(window.range, window.slide) for window in self.windows))

    @property
    def chunk(self) -> int:
        """Units of one run, a multiple of the batch."""
        return -(-LONGEST_TIMES * max(w.range for w in self.windows) // CHUNKS // self.step) * self.step

    @property
    def units(self) -> int:
        return self.chunk * CHUNKS

    @property
    def devices(self) -> int:
        return max(self.events // (self.rate * self.units), 1)

    def upto(self, chunk: int) -> int:
        """The boundary that ends a chunk."""
        return (START // SECOND // self.step * self.step + (chunk + 1) * self.chunk) * SECOND


class FixedPlans(Loop):
    """A loop whose queries share nothing and have the plan that `plan_of` says; no samples are taken of them."""

    def __init__(self, pipe: OpenPipeline, plan_of: Mapping[str, Plan]) -> None:
        super().__init__(pipe, share_from=APART)
        self.plan_of = plan_of
        self.statistics = Unsampled(pipe)

    def _plan(self, query_state: QueryState, state: KeptState | None, parallel: Parallelism) -> Plan:
        return self.plan_of[query_state.name]


class Unsampled(Statistics):
    """Samples would be taken of each query: of windows by themselves many times."""

    def wanted(self, batch: Batch, works: Iterable[QueryWork]) -> list[SampleOrder]:
        return []

    def keep(self, batch: Batch, answers: Iterable[Answer], results: Sequence[SampleResult]) -> None:
        pass


@dataclass
class Life:
    """One way's pipeline, and what its chunks took: by the wall, of processors in tasks, of processors in all."""

    loop: Loop
    queries: tuple[str, ...]
    wall: float = 0.0
    tasks: float = 0.0
    processor: float = 0.0

    def run(self, to: int, counted: bool) -> None:
        inline = self.loop.pipe.tasks.inline
        began, before = time.perf_counter(), _processors(inline)
        self.loop.run(to=to, flush=True)
        took, after = time.perf_counter() - began, _processors(inline)
        if counted:
            self.wall += took
            self.tasks += after[0] - before[0]
            self.processor += after[1] - before[1]

    @property
    def point(self) -> Point:
        return {"wall_s": round(self.wall, 3), "tasks_s": round(self.tasks, 3), "processor_s": round(self.processor, 3)}


def lived(load: WindowLoad, folder: str, tasks: Tasks) -> Point:
    """What each way took of one set, its answers compared first."""
    stored = os.path.join(folder, "stored")
    _write(stored, load)
    pipe = opened(stored, tasks)
    Loop(pipe).take()
    shutil.rmtree(os.path.join(stored, "landing"))
    of_set = {QUERY: text(load.windows)}
    each = {f"w{window.range}_{window.slide}": text((window,)) for window in load.windows}
    panes, factors = chosen(pipe, parsed(of_set[QUERY], pipe.catalog))
    raw = {name: replace(named(parsed(sql, pipe.catalog), PLAN), layout="raw") for name, sql in each.items()}
    lives = {ALONE: _life(folder, ALONE, tasks, each, raw), PANES: _life(folder, PANES, tasks, of_set, {QUERY: panes})}
    if factors != panes:
        lives[FACTORS] = _life(folder, FACTORS, tasks, of_set, {QUERY: factors})
    for chunk in range(CHUNKS):
        for life in lives.values():
            life.run(load.upto(chunk), counted=chunk > 0)
    _compare(load, pipe, lives)
    took = {way: life.point for way, life in lives.items()}
    boundaries = load.units // load.step
    return {**took, FACTORS: took.get(FACTORS, took[PANES]), "levels": list(map(described, factors.kept_windows)),
            "sharing": factors.sharing, "devices": load.devices, "units": load.units, "boundaries": boundaries}


def text(windows: Sequence[Window]) -> str:
    listed = ", ".join(f"Window('{w}', HoppingWindow(second, {w.range}, {w.slide}))" for w in windows)
    return (f"SELECT device, System.Window().Id AS name, MIN(v) AS least FROM {STREAM} "
            f"GROUP BY device, Windows({listed})")


def chosen(pipe: OpenPipeline, query: Query) -> tuple[Plan, Plan]:
    """The cheapest plans by price: of those from shared panes, and of those with levels too."""
    statistics, loop = Statistics(pipe).first_look(query), Loop(pipe)
    costs, width = loop.chooser.coefficients, pipe.tasks.width
    query_sizes = sizes(query, statistics)
    forms = [plan for plan in every_form(shape(query), named(query, PLAN), with_width(Costs(costs), width).forms)
             if plan.layout == "panes"]

    def price(plan: Plan) -> float:
        return seconds(steady(query, plan, statistics, plan.parts or width, query_sizes).total, costs)

    return min((plan for plan in forms if not plan.levels), key=price), min(forms, key=price)


def opened(folder: str, tasks: Tasks) -> OpenPipeline:
    """On the session of `tasks`, which all share."""
    return replace(open_pipeline(loaded(folder)), tasks=tasks)


def _life(folder: str, way: str, tasks: Tasks, queries: Mapping[str, str], plans: Mapping[str, Plan]) -> Life:
    """On a copy of the stored rows."""
    copy = os.path.join(folder, way)
    shutil.copytree(os.path.join(folder, "stored"), copy)
    for name, sql in queries.items():
        with open(os.path.join(copy, "queries", f"{name}.sql"), "w", encoding="utf-8") as file:
            file.write(sql)
    return Life(FixedPlans(opened(copy, tasks), plans), tuple(queries))


def _write(folder: str, load: WindowLoad) -> None:
    """The pipeline and its rows, a file a chunk."""
    landing = os.path.join(folder, "landing")
    os.makedirs(os.path.join(folder, "queries"))
    os.makedirs(landing)
    with open(os.path.join(folder, "forebay.yml"), "w", encoding="utf-8") as file:
        file.write(f"name: windows\nbatch: {load.step} seconds\nstreams:\n  {STREAM}: {{columns: {{ts: timestamp, "
                   "device: bigint, v: bigint}, event_time: ts, source: {files: \"landing/*.parquet\"}}\n")
    con, values = kernel.connect(threads=2, memory="4GB"), SENSOR if load.sensor else SYNTHETIC
    count = load.rate * load.devices * load.chunk
    for chunk in range(CHUNKS):
        stamp = f"{load.upto(chunk - 1)} + (n * {load.chunk * SECOND}) // {count}"
        rows = (f"SELECT CAST(make_timestamp({stamp}) AS TIMESTAMPTZ) AS ts, n % {load.devices} AS device, v FROM "
                f"(SELECT i - {chunk * count} AS n, {values} AS v FROM range({chunk * count}, {(chunk + 1) * count}) "
                "AS r(i))")
        path = string(os.path.join(landing, f"{chunk:03d}.parquet"))
        con.execute(f"COPY ({rows}) TO {path} (FORMAT parquet, COMPRESSION snappy)")
    con.close()


def _compare(load: WindowLoad, pipe: OpenPipeline, lives: Mapping[str, Life]) -> None:
    """No figure stands on a wrong answer."""
    right = _by_plain_sql(load, pipe)
    for way, life in lives.items():
        digests = _published(life.loop.pipe, life.queries)
        if digests != right:
            wrong = sorted(name for name in right if digests.get(name) != right[name])
            raise failed("wrong-answer", f"{way} gives other answers of {', '.join(wrong)}", "please report this")


DIGEST = "count(*), sum(least), sum(hash(t, device, least) % 1000000007)"


def _published(pipe: OpenPipeline, queries: Iterable[str]) -> dict[str, list[int]]:
    """By window a digest of all answers that were published."""
    digests: dict[str, list[int]] = {}
    for query in queries:
        con = kernel.connect(threads=2, memory="4GB")
        files = kernel.file_list(published_files(pipe, query))
        rows = con.execute(f"SELECT name, {DIGEST} FROM (SELECT name, epoch_us(boundary) AS t, device, least FROM "
                           f"read_parquet({files})) AS q GROUP BY name").fetchall()
        digests |= {name: list(map(int, numbers)) for name, *numbers in rows}
        con.close()
    return digests


def published_files(pipe: OpenPipeline, query: str) -> tuple[str, ...]:
    """Of all answers of a query."""
    table = pipe.table(f"results/{query}").refresh()
    return tuple(os.path.join(table.path, file.path) for file in table.files())


def _by_plain_sql(load: WindowLoad, pipe: OpenPipeline) -> dict[str, list[int]]:
    """The same from the raw rows."""
    con, step = kernel.connect(threads=2, memory="4GB"), load.step * SECOND
    files, last = kernel.file_list(stream_files(pipe, STREAM)), load.upto(CHUNKS - 1)
    con.execute(f"CREATE TABLE pieces AS SELECT epoch_us(ts) // {step} * {step} AS began, device, min(v) AS v FROM "
                f"read_parquet({files}) GROUP BY ALL")
    digests = {}
    for window in load.windows:
        hop, length = window.slide * SECOND, window.range * SECOND
        ends = f"unnest(range((began // {hop} + 1) * {hop}, (began + {length}) // {hop} * {hop} + 1, {hop}))"
        answers = (f"SELECT t, device, min(v) AS least FROM (SELECT {ends} AS t, device, v FROM pieces) AS q "
                   f"WHERE t <= {last} GROUP BY ALL")
        row = con.execute(f"SELECT {DIGEST} FROM ({answers}) AS q").fetchone()
        assert row is not None
        digests[str(window)] = list(map(int, row))
    con.close()
    return digests


def _processors(inline: bool) -> tuple[float, float]:
    """Processor seconds so far: of the tasks, and of all processes of this one, Spark's included."""
    if inline:
        return time.process_time(), time.process_time()
    import psutil  # comes with MLflow

    in_tasks, in_all = 0.0, time.process_time()
    for process in psutil.Process().children(recursive=True):
        try:
            used, is_task = sum(process.cpu_times()[:4]), "pyspark.daemon" in " ".join(process.cmdline())
        except psutil.Error:      # it has ended meanwhile; who began it counts it
            continue
        in_all += used
        in_tasks += used if is_task else 0.0
    return in_tasks, in_all
