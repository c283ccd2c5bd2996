"""Unit costs of what only Spark does: a job, an exchange between tasks, and the JVM's lowering by plans of small
settings.

Wall time, in a warm session.
"""
from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from statistics import linear_regression

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.calibrate import trial
from jobs.calibrate.exact import observe
from jobs.calibrate.trial import SPREAD
from jobs.engine import jvm, kernel
from jobs.engine.tasks import Tasks
from jobs.engine.work import packed
from jobs.storage import tables
from optimizer.cost.features import building, steady
from optimizer.cost.fitting import fit
from optimizer.cost.measured import NAMES, Measurement, UnitCosts
from optimizer.plan.lowering import Lowering
from optimizer.plan.model import named
from optimizer.plan.program import Program
from optimizer.plan.tree import program
from optimizer.query.shape import shape

WARM, TIMES = 3, 7                          # empty jobs before those that count, and those
SENT = (50_000, 200_000, 400_000)           # rows that cross an exchange
RATES = (500, 5_000)                        # rows a second and stream of the settings that the JVM runs
PLANS = ("LAP recompute", "EAP01 recompute", "EAP11 recompute", "EAP11 running", "EAP11 expire")
ROWS = "SELECT 'g' || (i % 150) AS g, 'k' || (i % 1000) AS j, i AS c, i * 3 AS x FROM range({n}) AS r(i)"


def calibrated(tasks: Tasks, stated: UnitCosts, say: Callable[[str], object] = lambda _: None) -> UnitCosts:
    """The stated unit costs, with Spark's as they are measured here."""
    say("Spark jobs and exchanges")
    empty_jobs = [_timed(lambda: tasks.map(len, [()] * tasks.width)) for _ in range(WARM + TIMES)]
    measured = {"jobs": statistics.median(empty_jobs[WARM:]), "exchange": _exchange(tasks)}
    coefficients = _with(stated, measured)
    say("plans in the JVM")
    measurements = [measurement for rate in RATES for measurement in _plans(tasks, rate)]
    return fit(coefficients, measurements, forgetting=0.0)


def _with(stated: UnitCosts, measured: dict[str, float]) -> UnitCosts:
    """Unit costs that were measured by themselves replace stated ones, with the doubt of a piece."""
    def covariance_of(a: str, b: str, before: float) -> float:
        if a not in measured and b not in measured:
            return before
        return (SPREAD * measured[a]) ** 2 if a == b else 0.0

    covariance = []
    for a, row in zip(NAMES, stated.covariance):
        covariance.append(tuple(covariance_of(a, b, before) for b, before in zip(NAMES, row)))
    mean = tuple(measured.get(name, before) for name, before in zip(NAMES, stated.mean))
    return replace(stated, mean=mean, covariance=tuple(covariance))


def _exchange(tasks: Tasks) -> float:
    """Seconds a row that arrives, beyond those of making it."""
    def once(n: int) -> float:
        items = [(n, k, tasks.width) for k in range(tasks.width)]
        sent = min(_timed(lambda: tasks.exchange(_send_evenly, items, _count_rows, tasks.width)) for _ in range(WARM))
        return sent - min(_timed(lambda: tasks.map(_make_rows, items)) for _ in range(WARM))

    return max(linear_regression([n / tasks.width for n in SENT], [once(n) for n in SENT]).slope, 1e-9)


def _make_rows(item: tuple[int, int, int]) -> int:
    return _rows(item).num_rows


def _rows(item: tuple[int, int, int]) -> pa.Table:
    """A task's share of n rows."""
    n, _, width = item
    con = kernel.shared()
    rows = kernel.table(con, ROWS.format(n=n // width))
    con.close()
    return rows


def _send_evenly(item: tuple[int, int, int]) -> list[tuple[int, bytes]]:
    """The same number of rows to each task."""
    rows, width = _rows(item), item[2]
    step = -(-rows.num_rows // width)
    return [(to, packed(rows.slice(to * step, step))) for to in range(width)]


def _count_rows(to: int, payloads: list[bytes]) -> int:
    return sum(pa.ipc.open_stream(payload).read_all().num_rows for payload in payloads)


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _plans(tasks: Tasks, rate: int) -> Iterator[Measurement]:
    """First and later batches of each plan."""
    stream = trial.TrialStream(rate, "30 SECONDS", 30, 500, 20)
    setting = trial.TrialSetting("calibration", (stream, stream), "s1.g, COUNT(*) AS n, SUM(s1.a) AS x, SUM(s2.a) AS y")
    with _deltas(setting) as (data, versions):
        observed, query = observe(data, setting.full), setting.query
        for name in PLANS:
            plan = replace(named(query, name), place="jvm")
            trial_run = trial.TrialRun(data, plan, os.path.join(data.root, "state", name))
            numbers = range(setting.full, setting.full + trial.WARM)
            first, *later = [_batch(tasks, trial_run, versions, number) for number in numbers]
            yield Measurement(building(query, plan, observed).in_task, first)
            yield Measurement(steady(query, plan, observed, age=trial.WARM - 1).in_task, min(later))


@contextmanager
def _deltas(setting: trial.TrialSetting) -> Iterator[tuple[trial.Data, dict[str, int]]]:
    """The trial's files as Delta tables, which the JVM reads."""
    with trial.generated(setting) as data:
        versions = {}
        for stream, files in data.rows.items():
            folder = os.path.join(data.root, stream)
            table = tables.create(folder, pq.read_schema(os.path.join(folder, files[0].path)))
            table.commit(files)
            versions[stream] = table.version
        yield data, versions


def _batch(tasks: Tasks, trial_run: trial.TrialRun, versions: dict[str, int], number: int) -> float:
    """The seconds that the batch took."""
    low = Lowering(shape(trial_run.data.setting.query), trial_run.plan, "spark", narrow=False)
    t = trial.boundary(number)
    statements = program(low, (t,), trial_run.previous)
    result = jvm.perform(tasks.session, _order(trial_run, statements, versions, number))
    if result.failed:
        raise RuntimeError(f"{trial_run.plan.name}: {result.failed}")
    trial.keep(trial_run, statements, result, t)
    trial_run.previous = t
    return result.seconds


def _order(trial_run: trial.TrialRun, statements: Program, versions: dict[str, int], number: int) -> jvm.SparkOrder:
    streams, files = {}, {}
    for source in statements.sources:
        if source.kind == "stream":
            streams[source.name] = os.path.join(trial_run.data.root, source.of), versions[source.of]
        elif source.kind == "state":
            files[source.name] = trial.state_paths(trial_run, source)
    folders = {write.set: os.path.join(trial_run.folder, write.set) for write in statements.writes}
    return jvm.SparkOrder("q", statements, streams, files, folders, f"b{number}")
