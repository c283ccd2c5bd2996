"""A stream whose nature changes: what choosing plans by price costs over four phases, beside every fixed plan and the
best fixed plan of each phase.

Rate × 10, groups × 100, a selection that passes a twentieth, and back. The same rows are landed once for all; boundary
after boundary each plan has its turn, so that all meet the same machine. Figures are seconds of batches with all
commits, ingest apart. A fixed plan leaves at the boundary for which it is predicted to take longer than HOPELESS.
"""
from __future__ import annotations

import dataclasses
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from jobs.engine import kernel
from jobs.ledger.open_pipeline import open_pipeline
from jobs.papers.bench_data import SECOND, START
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
streams:
  s1: {{columns: {{ts: timestamp, g: string, j: string, a: bigint, v: bigint}}, event_time: ts,
      source: {{files: "landing/s1/*.parquet"}}}}
  s2: {{columns: {{ts: timestamp, j: string, b: bigint}}, event_time: ts, source: {{files: "landing/s2/*.parquet"}}}}
"""
HOPELESS = 5.0           # seconds a batch
CHOSEN = ""              # in the place of a fixed plan's name


@dataclass(frozen=True)
class Phase:
    """Rows a second and stream, groups, and the share of rows that the selection passes."""

    name: str
    rate: int
    groups: int
    share: float


def phases(rate: int = 2_000) -> tuple[Phase, ...]:
    return (Phase("as it begins", rate, 20, 1.0), Phase("rate × 10", 10 * rate, 20, 1.0),
            Phase("groups × 100", 10 * rate, 2_000, 1.0), Phase("selectivity ÷ 20", 10 * rate, 2_000,
                                                                0.05), Phase("back", rate, 20, 1.0))


@dataclass
class DriftRun:
    """One life of the pipeline; `plan` is pinned, or CHOSEN."""

    loop: Loop
    plan: str
    phases: list[list[float]] = field(default_factory=list)      # seconds of each batch
    plans: list[str] = field(default_factory=list)               # in force at each

    def turn(self) -> None:
        (entry,) = self.loop.run(flush=True, limit=1)["ran"]
        self.phases[-1].append(entry["seconds"])
        self.plans.append(entry["plans"]["answer"])

    def predicted(self) -> dict[str, float]:
        decision = self.loop.chooser.queries["answer"].decision
        return {c.plan.name: c.seconds for c in decision.candidates if c.refused is None} if decision else {}


def drift(length: int = 16, rate: int = 2_000, fixed: Sequence[str] | None = None) -> dict[str, Any]:
    """`length` batches a phase; `fixed` names the plans to run beside, all by default."""
    root = tempfile.mkdtemp(prefix="forebay-drift-")
    try:
        origin = _landed(os.path.join(root, "origin"), phases(rate), length)
        with _runs(origin, root, _plan_names(origin) if fixed is None else fixed) as runs:
            left = _race(runs, len(phases()), length)
            return _report(runs, left, rate)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _race(runs: dict[str, DriftRun], count: int, length: int) -> dict[str, str]:
    """Takes turns boundary by boundary; says which fixed plans left, and why."""
    left: dict[str, str] = {}
    for n in range(count * length):
        for run in runs.values():
            if n % length == 0:
                run.phases.append([])
            if run.plan not in left:
                run.turn()
        for name, seconds in runs[CHOSEN].predicted().items():
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
        for number, name in enumerate((CHOSEN, *fixed)):
            folder = os.path.join(root, str(number))
            shutil.copytree(origin, folder, copy_function=link_or_copy)
            rt = open_pipeline(load(folder))
            rt = dataclasses.replace(rt, tasks=first.tasks)
            requests.synchronise(rt)
            if name != CHOSEN:
                requests.change(rt, "answer", "pin", name)
            runs[name] = DriftRun(Loop(rt), name)
        yield runs
    finally:
        first.tasks.stop()


def _report(runs: dict[str, DriftRun], left: dict[str, str], rate: int) -> dict[str, Any]:
    """The best of a phase is among those that ran it wholly."""
    chosen, fixed = runs[CHOSEN], {name: run for name, run in runs.items() if name != CHOSEN}
    names, total = [p.name for p in phases(rate)], sum(map(sum, chosen.phases))
    length = len(chosen.phases[0])
    best = []
    for n in range(len(names)):
        whole_runs = {name: run for name, run in fixed.items() if len(run.phases[n]) == length}
        best.append(min((sum(run.phases[n]), name) for name, run in whole_runs.items()))
    hindsight = sum(s for s, _ in best)
    whole = {name: sum(map(sum, run.phases)) for name, run in fixed.items() if name not in left}
    switches = [(n, a, b) for n, (a, b) in enumerate(zip(chosen.plans, chosen.plans[1:]), 1) if a != b]
    return {
        "batches": len(chosen.plans),
        "chosen_s": total,
        "hindsight_s": hindsight,
        "chosen_over_hindsight": total / hindsight,
        "chosen_over_best_fixed": total / min(whole.values()) if whole else None,
        "best_of_phase": {phase: {"plan": plan, "seconds": s} for phase, (s, plan) in zip(names, best)},
        "chosen_of_phase": dict(zip(names, map(sum, chosen.phases))),
        "fixed_s": dict(sorted(whole.items(), key=lambda item: item[1])),
        "left": left,
        "switches": [{"batch": n, "from": a, "to": b} for n, a, b in switches]
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
