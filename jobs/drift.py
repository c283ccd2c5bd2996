"""A stream whose nature changes: what choosing plans by price costs over four phases, beside every fixed plan and the best fixed plan of each phase.

Rate × 10, groups × 100, a selection that passes a twentieth, and back. The same rows are landed once and copied for each run; figures are seconds of
batches with all commits, ingest apart. A fixed plan of which a batch is predicted to take longer than HOPELESS in some phase is not run.
"""
from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from typing import Any

from jobs import kernel, requests, runner
from jobs.bench_data import SECOND, START
from jobs.config import load
from optimizer.plan import candidates

BATCH, WINDOW, KEYS = 20, 200, 2_000      # seconds, seconds, distinct join values
QUERY = f"""SELECT s1.g, COUNT(*) AS n, SUM(s1.a) AS sum_a, SUM(s2.b) AS sum_b FROM s1 [WINDOW {WINDOW} SECONDS], s2 [WINDOW {WINDOW} SECONDS]
WHERE s1.j = s2.j AND s1.v < 50 GROUP BY s1.g"""
PIPELINE = f"""name: drift
batch: {BATCH} seconds
streams:
  s1: {{columns: {{ts: timestamp, g: string, j: string, a: bigint, v: bigint}}, event_time: ts, source: {{files: "landing/s1/*.parquet"}}}}
  s2: {{columns: {{ts: timestamp, j: string, b: bigint}}, event_time: ts, source: {{files: "landing/s2/*.parquet"}}}}
"""
HOPELESS = 5.0           # seconds a batch


@dataclass(frozen=True)
class Phase:
    """Rows a second and stream, groups, and the share of rows that the selection passes."""

    name: str
    rate: int
    groups: int
    share: float


def phases(rate: int = 2_000) -> tuple[Phase, ...]:
    return (Phase("as it begins", rate, 20, 1.0), Phase("rate × 10", 10 * rate, 20, 1.0), Phase("groups × 100", 10 * rate, 2_000, 1.0),
            Phase("selectivity ÷ 20", 10 * rate, 2_000, 0.05), Phase("back", rate, 20, 1.0))


def drift(length: int = 16, rate: int = 2_000) -> dict[str, Any]:
    """`length` batches a phase."""
    root = tempfile.mkdtemp(prefix="forebay-drift-")
    try:
        origin = _landed(os.path.join(root, "origin"), phases(rate), length)
        chosen = _run(origin, os.path.join(root, "chosen"), None, length)
        worst = {name: max(phase.get(name, 0.0) for phase in chosen["predicted"]) for name in _names(origin)}
        fixed = {name: _run(origin, os.path.join(root, "fixed"), name, length) for name, seconds in worst.items() if seconds <= HOPELESS}
        return {**_report(chosen, fixed, rate, length), "not_run": {name: round(s, 1) for name, s in worst.items() if s > HOPELESS}}
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _landed(folder: str, wanted: tuple[Phase, ...], length: int) -> str:
    os.makedirs(os.path.join(folder, "queries"))
    for name, text in (("forebay.yml", PIPELINE), (os.path.join("queries", "answer.sql"), QUERY)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    for n, phase in enumerate(wanted):
        for batch in range(n * length, (n + 1) * length):
            _rows(folder, phase, batch)
    rt = runner.runtime(load(folder))
    runner.take(rt)
    rt.tasks.stop()
    return folder


def _rows(folder: str, phase: Phase, batch: int) -> None:
    con, count, start = kernel.connect(threads=2, memory="2GB"), phase.rate * BATCH, START + batch * BATCH * SECOND
    con.execute(f"SELECT setseed({batch % 997 / 997})")
    passes = f"CASE WHEN random() < {phase.share} THEN floor(random() * 50) ELSE 50 + floor(random() * 50) END"
    for stream, own in (("s1", f"'g' || floor(random() * {phase.groups})::INT AS g, 'k' || floor(random() * {KEYS})::INT AS j, "
                               f"floor(random() * 100)::BIGINT AS a, CAST({passes} AS BIGINT) AS v"),
                        ("s2", f"'k' || floor(random() * {KEYS})::INT AS j, floor(random() * 100)::BIGINT AS b")):
        os.makedirs(os.path.join(folder, "landing", stream), exist_ok=True)
        ts = f"CAST(make_timestamp({start} + (i * {BATCH * SECOND}) // {count}) AS TIMESTAMPTZ) AS ts"
        con.execute(f"COPY (SELECT {ts}, {own} FROM range({count}) AS r(i)) TO '{folder}/landing/{stream}/{batch:05d}.parquet' (FORMAT parquet)")
    con.close()


def _names(folder: str) -> list[str]:
    from jobs.works import parsed
    rt = runner.runtime(load(folder))
    return [c.plan.name for c in candidates(parsed(QUERY, rt.catalog)) if c.refused is None]


def _run(origin: str, folder: str, plan: str | None, length: int) -> dict[str, Any]:
    """Seconds of each batch by phase, plans in force, predictions at each phase's end; boundary by boundary, as they come in a running pipeline."""
    shutil.copytree(origin, folder)
    rt = runner.runtime(load(folder))
    try:
        requests.synchronise(rt)
        if plan is not None:
            requests.change(rt, "answer", "pin", plan)
        seconds: list[list[float]] = []
        plans: list[str] = []
        predicted: list[dict[str, float]] = []
        for _ in phases():
            seconds.append([])
            for _ in range(length):
                (entry,) = runner.run(rt, flush=True, limit=1)["ran"]
                seconds[-1].append(entry["seconds"])
                plans.append(entry["plans"]["answer"])
            decision = rt.choices.queries["answer"].decision
            predicted.append({c.plan.name: c.seconds for c in decision.candidates if c.refused is None} if decision else {})
        return {"phases": seconds, "plans": plans, "predicted": predicted}
    finally:
        rt.tasks.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _report(chosen: dict[str, Any], fixed: dict[str, dict[str, Any]], rate: int, length: int) -> dict[str, Any]:
    total = sum(map(sum, chosen["phases"]))
    best = [min((sum(run["phases"][n]), name) for name, run in fixed.items()) for n in range(len(phases(rate)))]
    hindsight = sum(s for s, _ in best)
    switches = [(n, a, b) for n, (a, b) in enumerate(zip(chosen["plans"], chosen["plans"][1:]), 1) if a != b]
    names = [p.name for p in phases(rate)]
    return {"batches": len(chosen["plans"]), "chosen_s": total, "hindsight_s": hindsight, "chosen_over_hindsight": total / hindsight,
            "best_of_phase": dict(zip(names, ({"plan": plan, "seconds": s} for s, plan in best))),
            "chosen_of_phase": dict(zip(names, map(sum, chosen["phases"]))),
            "fixed_s": {name: sum(map(sum, run["phases"])) for name, run in sorted(fixed.items(), key=lambda item: sum(map(sum, item[1]["phases"])))},
            "switches": [{"batch": n, "from": a, "to": b} for n, a, b in switches]}
