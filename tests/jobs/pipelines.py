"""Small pipelines that run in this process, with rows given as seconds of event time."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forebay
from jobs.adapt import sharing
from jobs.adapt.choice import Chooser
from jobs.batch.works import parsed
from jobs.run import Loop
from optimizer.plan.model import Plan, named
from optimizer.sharing.price import STATED
from optimizer.time import instant, micros

SECOND = 10**6
BEGINNING = 1_767_225_600 * SECOND              # 2026-01-01T00:00:00Z
COUNT = "SELECT COUNT(*) AS n FROM views AS v [WINDOW 20 SECONDS]"


def boundary(seconds: float) -> int:
    return BEGINNING + round(seconds * SECOND)


def pipeline(folder: Path, streams: Mapping[str, str] | None = None, batch: str = "10 seconds",
             queries: Mapping[str, str] | None = None, top: str = "", spark: str = "{master: inline}",
             columns: str = "{ts: timestamp, k: bigint, x: bigint}") -> forebay.Pipeline:
    """Streams with a time, a key and a value, or other columns; more settings by stream."""
    (folder / "queries").mkdir(parents=True, exist_ok=True)
    given = {"views": ""} if streams is None else streams
    told = "".join(f"  {name}: {{columns: {columns}, event_time: ts{', ' + more if more else ''}}}\n"
                   for name, more in given.items())
    (folder / "forebay.yml").write_text(f"name: test\nbatch: {batch}\nspark: {spark}\n{top}streams:\n{told}")
    for name, sql in (queries or {}).items():
        (folder / "queries" / f"{name}.sql").write_text(sql)
    return opened(folder)


def opened(folder: Path) -> forebay.Pipeline:
    return restarted(forebay.open(str(folder)), clock=lambda: boundary(10**9))


def restarted(pipe: forebay.Pipeline, share_from: int | None = None, **changes: Any) -> forebay.Pipeline:
    """The same, with nothing remembered, as another process would open it.

    `changes` are of its OpenPipeline: another clock, other tasks.
    """
    pipe.loop = Loop(dataclasses.replace(pipe.runtime, **changes), share_from)
    return pipe


def forced(patch: pytest.MonkeyPatch, form: Callable[[Plan], Plan]) -> None:
    """A pinned plan runs in a form of the test's own choosing, whatever that costs."""
    def plan(chooser: Chooser, standing: Any, state: Any, parallel: Any) -> Plan:
        return form(named(parsed(standing.sql, chooser.pipe.catalog), standing.pin))
    patch.setattr(Chooser, "plan", plan)


def cheap_sharing(patch: pytest.MonkeyPatch) -> None:
    """Two queries share wherever they can: what a work takes, whatever it reads, is priced at a fraction."""
    patch.setattr(sharing, "machine_costs", lambda unit_costs: dataclasses.replace(STATED, shared=0.005, form=0.005))


def rows(pipe: forebay.Pipeline, seconds: Iterable[float], stream: str = "views", k: int | list[int] = 1,
         x: int | list[int] = 1) -> dict[str, Any]:
    """Takes rows with these event times, in a file of their own; k and x for each row, or one for all."""
    folder = Path(pipe.runtime.pipeline.folder)
    times = list(seconds)
    path = folder / f"{stream}-{len(list(folder.glob('*.parquet')))}.parquet"
    stamps = pa.array([instant(boundary(s)) for s in times], pa.timestamp("us", "UTC"))
    numbers = {
        name: pa.array(given if isinstance(given, list) else [given] * len(times), pa.int64())
        for name, given in (("k", k), ("x", x))
    }
    pq.write_table(pa.table({"ts": stamps, **numbers}), path)
    return pipe.ingest(stream, str(path))


def ran(pipe: forebay.Pipeline, **options: Any) -> list[float]:
    """The boundaries that a run ran, in seconds."""
    return [(entry["boundary"] - BEGINNING) / SECOND for entry in pipe.run(**options)["ran"]]


def answers(pipe: forebay.Pipeline, name: str) -> list[tuple[Any, ...]]:
    """(boundary in seconds, values …) of every answer; NULL is None, which equals itself."""
    frame = pipe.result(name, every=True).astype(object)
    return [((micros(row[0].to_pydatetime()) - BEGINNING) / SECOND, *row[1:])
            for row in frame.where(frame.notna(), None).itertuples(index=False)]


def equal(pipe: forebay.Pipeline) -> bool:
    """Whether every answer is what plain SQL over the raw rows says."""
    said = pipe.verify()["queries"]
    return bool(said) and not any(q["differences"] for q in said.values())
