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
from optimizer.plan.program import Program, Source
from optimizer.plan.tree import program
from optimizer.query.shape import shape

WARM, TIMES = 3, 7                          # empty jobs before those that count, and those
SENT = (50_000, 200_000, 400_000)           # rows that cross an exchange
RATES = (500, 5_000)                        # rows a second and stream of the settings that the JVM runs
PLANS = ("LAP recompute", "EAP01 recompute", "EAP11 recompute", "EAP11 running", "EAP11 expire")
ROWS = "SELECT 'g' || (i % 150) AS g, 'k' || (i % 1000) AS j, i AS c, i * 3 AS x FROM range({n}) AS r(i)"


def calibrated(tasks: Tasks, known: UnitCosts, say: Callable[[str], object] = lambda _: None) -> UnitCosts:
    """`known` with Spark's own costs in the place of stated ones."""
    say("Spark jobs and exchanges")
    job = _job(tasks)
    known = _with(known, {"jobs": job, "exchange": _exchange(tasks)})
    say("plans in the JVM")
    return fit(known, [m for rate in RATES for m in _plans(tasks, rate)], forgetting=0.0)


def _with(known: UnitCosts, found: dict[str, float]) -> UnitCosts:
    """What was measured by itself replaces what was stated, with the doubt of a piece."""
    def doubt(a: str, b: str, old: float) -> float:
        if a not in found and b not in found:
            return old
        return (SPREAD * found[a]) ** 2 if a == b else 0.0

    covariance = tuple(tuple(doubt(a, b, old) for b, old in zip(NAMES, row)) for a, row in zip(NAMES, known.covariance))
    return replace(known, mean=tuple(found.get(name, mean) for name, mean in zip(NAMES, known.mean)),
                   covariance=covariance)


def _job(tasks: Tasks) -> float:
    """Wall seconds of a job that does nothing."""
    seconds = [_timed(lambda: tasks.map(len, [()] * tasks.width)) for _ in range(WARM + TIMES)]
    return statistics.median(seconds[WARM:])


def _exchange(tasks: Tasks) -> float:
    """Seconds a row that arrives, beyond those of making it."""
    def once(n: int) -> float:
        items = [(n, k, tasks.width) for k in range(tasks.width)]
        sent = min(_timed(lambda: tasks.exchange(_sending, items, _received, tasks.width)) for _ in range(WARM))
        return sent - min(_timed(lambda: tasks.map(_made, items)) for _ in range(WARM))

    return max(linear_regression([n / tasks.width for n in SENT], [once(n) for n in SENT]).slope, 1e-9)


def _made(item: tuple[int, int, int]) -> int:
    return _rows(item).num_rows


def _rows(item: tuple[int, int, int]) -> pa.Table:
    """A task's share of n rows."""
    n, _, width = item
    con = kernel.shared()
    rows = kernel.table(con, ROWS.format(n=n // width))
    con.close()
    return rows


def _sending(item: tuple[int, int, int]) -> list[tuple[int, bytes]]:
    """Cut evenly for all."""
    rows, width = _rows(item), item[2]
    step = -(-rows.num_rows // width)
    return [(to, packed(rows.slice(to * step, step))) for to in range(width)]


def _received(to: int, payloads: list[bytes]) -> int:
    return sum(pa.ipc.open_stream(p).read_all().num_rows for p in payloads)


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
            first, *later = _ran(tasks, trial.TrialRun(data, plan, os.path.join(data.root, "state", name)), versions)
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


def _ran(tasks: Tasks, trial_run: trial.TrialRun, versions: dict[str, int]) -> list[float]:
    first = trial_run.data.setting.full
    return [_batch(tasks, trial_run, versions, number) for number in range(first, first + trial.WARM)]


def _batch(tasks: Tasks, trial_run: trial.TrialRun, versions: dict[str, int], number: int) -> float:
    low, t = Lowering(shape(trial_run.data.setting.query), trial_run.plan, "spark",
                      narrow=False), trial.boundary(number)
    made = program(low, (t,), trial_run.previous)
    outcome = jvm.perform(tasks.session, _order(trial_run, made, versions, number))
    if outcome.failed:
        raise RuntimeError(f"{trial_run.plan.name}: {outcome.failed}")
    trial.keep(trial_run, made, outcome, t)
    trial_run.previous = t
    return outcome.seconds


def _order(trial_run: trial.TrialRun, made: Program, versions: dict[str, int], number: int) -> jvm.SparkOrder:
    streams = {
        s.name: (os.path.join(trial_run.data.root, s.of), versions[s.of]) for s in made.sources if s.kind == "stream"
    }
    files = {s.name: _state(trial_run, s) for s in made.sources if s.kind == "state"}
    return jvm.SparkOrder("q", made, streams, files,
                          {w.set: os.path.join(trial_run.folder, w.set) for w in made.writes}, f"b{number}")


def _state(trial_run: trial.TrialRun, source: Source) -> tuple[str, ...]:
    return tuple(os.path.join(trial_run.folder, source.of, f.path) for f in trial_run.state.get(source.of, []))
