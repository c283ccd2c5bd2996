"""A stream whose nature changes: what choosing plans by price costs over five phases, in both modes of `decide`, beside
every fixed plan and the best fixed plan of each phase; and how often plans change while nothing does.

Windows grow from 1 to 100 million rows a stream, groups to 100 times as many, a selection passes a twentieth. The same
rows are landed once for all; boundary after boundary each plan has its turn, so that all meet the same machine. Figures
are seconds of batches with all commits; ingest, and what `forebay adapt` takes, apart. A fixed plan leaves at the
boundary for which it is predicted to take longer than HOPELESS, or after one that did.
"""
from __future__ import annotations

import dataclasses
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from jobs.commands.adapt import adapt
from jobs.engine import kernel
from jobs.ledger.open_pipeline import open_pipeline
from jobs.papers.benches.streams import SECOND, START
from jobs.papers.model_error.worlds import link_or_copy
from jobs.pipeline.config import load
from jobs.requests import requests
from jobs.run import Loop
from optimizer.plan.model import candidates

BATCH, WINDOW, KEYS = 20, 200, 2_000      # seconds, seconds, distinct join values
QUERY = f"""SELECT s1.g, COUNT(*) AS n, SUM(s1.a) AS sum_a, SUM(s2.b) AS sum_b FROM s1 [WINDOW {WINDOW} SECONDS], s2
    [WINDOW {WINDOW} SECONDS]
WHERE s1.j = s2.j AND s1.v < 50 GROUP BY s1.g"""
PIPELINE = f"""name: drift
batch: {BATCH} seconds
decide: batch
streams:
  s1: {{columns: {{ts: timestamp, g: string, j: string, a: bigint, v: bigint}}, event_time: ts,
      source: {{files: "landing/s1/*.parquet"}}}}
  s2: {{columns: {{ts: timestamp, j: string, b: bigint}}, event_time: ts, source: {{files: "landing/s2/*.parquet"}}}}
"""
HOPELESS = 5.0           # seconds a batch
# In the place of a fixed plan's name: plans are chosen by price, and decided on in batches, or by `forebay adapt`.
CHOSEN = {"chosen by batches": "batch", "chosen by adapt": "task"}
ADAPT = 5                # boundaries between two runs of `adapt`
STATIONARY = 200         # boundaries of a stream whose nature stays


@dataclass(frozen=True)
class Phase:
    """Rows a second and stream, groups, and the share of rows that the selection passes."""

    name: str
    rate: int
    groups: int
    share: float


def phases(rate: int = 5_000) -> tuple[Phase, ...]:
    """Written down before any plan was tuned to them: windows of 1, 10 and 100 million rows at the default rate."""
    return (Phase("as it begins", rate, 20, 1.0), Phase("rate × 10, groups × 100", 10 * rate, 2_000, 1.0),
            Phase("selectivity ÷ 20", 10 * rate, 2_000, 0.05), Phase("rate × 100", 100 * rate, 20, 1.0),
            Phase("back", rate, 20, 1.0))


@dataclass
class DriftRun:
    """One life of the pipeline; `plan` is pinned, or one of CHOSEN."""

    loop: Loop
    plan: str
    phases: list[list[float]] = field(default_factory=list)      # seconds of each batch
    plans: list[str] = field(default_factory=list)               # in force at each
    adapting: float = 0.0                                        # seconds that `adapt` took

    def turn(self) -> None:
        if CHOSEN.get(self.plan) == "task" and self.plans and len(self.plans) % ADAPT == 0:
            started = time.perf_counter()
            adapt(open_pipeline(load(self.loop.pipe.pipeline.folder)))
            self.adapting += time.perf_counter() - started
        (entry,) = self.loop.run(flush=True, limit=1)["ran"]
        self.phases[-1].append(entry["seconds"])
        self.plans.append(entry["plans"]["answer"])

    def predicted(self) -> dict[str, float]:
        decision = self.loop.chooser.queries["answer"].decision
        return {c.plan.name: c.seconds for c in decision.candidates if c.refused is None} if decision else {}

    @property
    def switches(self) -> list[dict[str, Any]]:
        pairs = enumerate(zip(self.plans, self.plans[1:]), 1)
        return [{"batch": n, "from": a, "to": b} for n, (a, b) in pairs if a != b]

    @property
    def total(self) -> float:
        return sum(map(sum, self.phases))


def drift(length: int = 14, rate: int = 5_000, fixed: Sequence[str] | None = None,
          stationary: int = STATIONARY) -> dict[str, Any]:
    """`length` batches a phase; `fixed` names the plans to run beside, all by default."""
    root = tempfile.mkdtemp(prefix="forebay-drift-")
    try:
        origin = _landed(os.path.join(root, "origin"), phases(rate), length)
        with _runs(origin, root, _plan_names(origin) if fixed is None else fixed) as runs:
            left = _race(runs, len(phases()), length)
            report = _report(runs, left, rate)
        shutil.rmtree(root)
        return {**report, "stationary": _stationary(root, rate, stationary)}
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _stationary(root: str, rate: int, length: int) -> dict[str, Any]:
    """Switches in both modes while nothing changes; after the first ones, while statistics are few, none is needed."""
    origin = _landed(os.path.join(root, "origin"), phases(rate)[:1], length)
    with _runs(origin, root, ()) as runs:
        _race(runs, 1, length)
        return {"boundaries": length, "switches": {name: run.switches for name, run in runs.items()}}


def _race(runs: dict[str, DriftRun], count: int, length: int) -> dict[str, str]:
    """Takes turns boundary by boundary; says which fixed plans left, and why."""
    left: dict[str, str] = {}
    for n in range(count * length):
        for run in runs.values():
            if n % length == 0:
                run.phases.append([])
            if run.plan not in left:
                run.turn()
                if run.plan not in CHOSEN and run.phases[-1][-1] > HOPELESS:
                    left[run.plan] = f"at batch {n + 1}, after one that took {run.phases[-1][-1]:.1f} s"
        for name, seconds in runs[next(iter(CHOSEN))].predicted().items():
            if seconds > HOPELESS and name not in left:
                left[name] = f"at batch {n}, predicted to take {seconds:.1f} s"
    return left


@contextmanager
def _runs(origin: str, root: str, fixed: Sequence[str]) -> Iterator[dict[str, DriftRun]]:
    """All that take part, on one Spark session; data files are shared, since none is ever changed."""
    first = open_pipeline(load(origin))
    first.tasks.map(len, [()] * first.tasks.width)      # Spark's start is nobody's
    try:
        runs: dict[str, DriftRun] = {}
        for number, name in enumerate((*CHOSEN, *fixed)):
            folder = os.path.join(root, str(number))
            shutil.copytree(origin, folder, copy_function=link_or_copy)
            if name in CHOSEN:
                _decide(folder, CHOSEN[name])
            rt = open_pipeline(load(folder))
            rt = dataclasses.replace(rt, tasks=first.tasks)
            requests.synchronise(rt)
            if name not in CHOSEN:
                requests.change(rt, "answer", "pin", name)
            runs[name] = DriftRun(Loop(rt), name)
        yield runs
    finally:
        first.tasks.stop()


def _decide(folder: str, mode: str) -> None:
    """The file is a link to the others': a new one takes its place."""
    path = os.path.join(folder, "forebay.yml")
    os.remove(path)
    with open(path, "w", encoding="utf-8") as file:
        file.write(PIPELINE.replace("decide: batch", f"decide: {mode}"))


def _report(runs: dict[str, DriftRun], left: dict[str, str], rate: int) -> dict[str, Any]:
    """The best of a phase is among those that ran it wholly."""
    fixed = {name: run for name, run in runs.items() if name not in CHOSEN}
    names, length = [p.name for p in phases(rate)], max(len(run.phases[0]) for run in runs.values())
    best = []
    for n in range(len(names)):
        whole_runs = {name: run for name, run in fixed.items() if len(run.phases[n]) == length}
        best.append(min((sum(run.phases[n]), name) for name, run in whole_runs.items()))
    hindsight = sum(s for s, _ in best)
    whole = {name: run.total for name, run in fixed.items() if name not in left}
    return {
        "batches": length * len(names),
        "hindsight_s": hindsight,
        "best_of_phase": {phase: {"plan": plan, "seconds": s} for phase, (s, plan) in zip(names, best)},
        "fixed_s": dict(sorted(whole.items(), key=lambda item: item[1])),
        "left": left,
        **{name: _of_mode(runs[name], hindsight, whole, names) for name in CHOSEN}
    }


def _of_mode(run: DriftRun, hindsight: float, whole: dict[str, float], names: Sequence[str]) -> dict[str, Any]:
    last = run.loop.pipe.ledger.last()
    assert last is not None
    return {
        "seconds": run.total,
        "over_hindsight": run.total / hindsight,
        "over_best_fixed": run.total / min(whole.values()) if whole else None,
        "of_phase": dict(zip(names, map(sum, run.phases))),
        "switches": run.switches,
        "trying_share": last.time_spent.trying / last.time_spent.seconds,
        "adapt_s": run.adapting
    }


def _landed(folder: str, wanted: tuple[Phase, ...], length: int) -> str:
    os.makedirs(os.path.join(folder, "queries"))
    for name, text in (("forebay.yml", PIPELINE), (os.path.join("queries", "answer.sql"), QUERY)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    for n, phase in enumerate(wanted):
        for batch in range(n * length, (n + 1) * length):
            _rows(folder, phase, batch)
    rt = open_pipeline(load(folder))
    Loop(rt).take()
    rt.tasks.stop()
    return folder


def _rows(folder: str, phase: Phase, batch: int) -> None:
    con, count, start = kernel.connect(threads=2, memory="2GB"), phase.rate * BATCH, START + batch * BATCH * SECOND
    con.execute(f"SELECT setseed({batch % 997 / 997})")
    passes = f"CASE WHEN random() < {phase.share} THEN floor(random() * 50) ELSE 50 + floor(random() * 50) END"
    streams = {
        "s1": f"'g' || floor(random() * {phase.groups})::INT AS g, 'k' || floor(random() * {KEYS})::INT AS j, "
              f"floor(random() * 100)::BIGINT AS a, CAST({passes} AS BIGINT) AS v",
        "s2": f"'k' || floor(random() * {KEYS})::INT AS j, floor(random() * 100)::BIGINT AS b",
    }
    for stream, columns in streams.items():
        os.makedirs(os.path.join(folder, "landing", stream), exist_ok=True)
        ts = f"CAST(make_timestamp({start} + (i * {BATCH * SECOND}) // {count}) AS TIMESTAMPTZ) AS ts"
        file = f"{folder}/landing/{stream}/{batch:05d}.parquet"
        con.execute(f"COPY (SELECT {ts}, {columns} FROM range({count}) AS r(i)) TO '{file}' (FORMAT parquet)")
    con.close()


def _plan_names(folder: str) -> list[str]:
    from jobs.batch.works import parsed
    rt = open_pipeline(load(folder))
    return [c.plan.name for c in candidates(parsed(QUERY, rt.catalog)) if c.refused is None]
