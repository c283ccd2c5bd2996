"""Paper E's workload carried out: streams of six uniform attributes, queries of `ajoin_queries` that come and go; gives
seconds only of answers found equal.

Tasks run in this process, so that a point needs no cluster, and seconds are its processor's, whatever else the machine
does; where Spark runs them, the wall's. Costs compared are of batches that are warm: windows full, a batch that is not
counted before.
"""
from __future__ import annotations

import dataclasses
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from random import Random
from typing import Any

from jobs.engine import kernel
from jobs.engine.tasks import Tasks
from jobs.ledger.open_pipeline import OpenPipeline, open_pipeline
from jobs.papers.experiments.sharing.queries import (
    ATR_MAX,
    ATTRIBUTES,
    WINDOWS,
    GeneratedQuery,
    Pattern,
    generate,
    text,
)
from jobs.pipeline.config import INLINE, load
from jobs.requests import requests
from jobs.results import answers
from jobs.run import Loop
from optimizer.errors import failed
from optimizer.expression.dialect import string

SECOND = 1_000_000
START = 1_356_998_400 * SECOND        # 2013-01-01T00:00:00Z
COUNTED = 2                           # batches whose mean is given
CHECKED = 2                           # queries whose published answers are computed again from the raw rows
HALF = Fraction(1, 2)
# queries that return rows share no work: each of them is made for itself, however many there are
STAR, GROUPED = "SELECT *, each for itself", "aggregates"
WAITING = "waiting"                   # the folder of rows that have not come yet
FORMS = (STAR, GROUPED)
NEVER = 1_000_000                        # queries of one form from which they would share
SHARE_FROM = {STAR: NEVER, GROUPED: None}      # together they are measured by `forebay bench sharing-rows`
GROUPS = 10
# of a point's time below which a neighbour is faster: seconds of one point differ so much from run to run
FASTER = 0.9
Entries = list[dict[str, Any]]


@dataclass(frozen=True)
class StreamLoad:
    """Streams, rows a second of each, distinct values of each attribute, seconds a batch, batches of rows there are,
    batches that are timed.
    """

    streams: int = 2
    rate: int = 1_000
    keys: int = ATR_MAX
    batch: int = 1
    batches: int = max(WINDOWS) + 1 + COUNTED
    counted: int = COUNTED

    @property
    def rows(self) -> int:
        """Of a batch, all streams."""
        return self.streams * self.rate * self.batch


SHORT = StreamLoad(batches=max(WINDOWS) + 2, counted=1)      # in an experiment's quick form


@dataclass(frozen=True)
class Lived:
    """A scenario carried out: seconds from event time to answer (mean, least, most over all rows), mean seconds of each
    stage, mean number of queries.
    """

    latency: tuple[float, float, float]
    stages: Mapping[str, float]
    queries: float


@contextmanager
def running(setting: StreamLoad, tasks: Tasks | None = None, come: bool = True,
            share_from: int | None = None) -> Iterator[Loop]:
    """A pipeline whose rows have come (if not: they wait to be brought by `bring`) and none of whose boundaries has
    run.
    """
    folder = tempfile.mkdtemp(prefix="forebay-ajoin-")
    columns = ", ".join(["ts: timestamp", *(f"f{k}: bigint" for k in range(ATTRIBUTES))])
    names = [f"s{k + 1}" for k in range(setting.streams)]
    streams = "".join(
        f"  {s}: {{columns: {{{columns}}}, event_time: ts, source: {{files: \"landing/{s}/*.parquet\"}}}}\n"
        for s in names)
    rt = None
    try:
        with open(os.path.join(folder, "forebay.yml"), "w", encoding="utf-8") as file:
            file.write(f"name: ajoin\nbatch: {setting.batch} seconds\nstreams:\n{streams}")
        _land(os.path.join(folder, "landing" if come else WAITING), names, setting)
        rt = open_pipeline(load(folder))
        rt = dataclasses.replace(rt, tasks=tasks or Tasks(INLINE))
        loop = Loop(rt, share_from)
        if come:
            loop.take()
        yield loop
    finally:
        if rt is not None:
            rt.tasks.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _land(folder: str, names: Sequence[str], setting: StreamLoad) -> None:
    """A file a batch and stream; each stream has its own seed."""
    con = kernel.connect()
    count, length = setting.rate * setting.batch, setting.batch * SECOND
    values = ", ".join(f"CAST(floor(random() * {setting.keys}) AS BIGINT) AS f{k}" for k in range(ATTRIBUTES))
    for salt, name in enumerate(names, 1):
        os.makedirs(os.path.join(folder, name))
        con.execute(f"SELECT setseed({salt / 100})")
        for number in range(setting.batches):
            ts = f"CAST(make_timestamp({START + number * length} + (i * {length}) // {count}) AS TIMESTAMPTZ) AS ts"
            file = string(os.path.join(folder, name, f"{number:05d}.parquet"))
            con.execute(f"COPY (SELECT {ts}, {values} FROM range({count}) AS r(i)) TO {file} (FORMAT parquet)")


def bring(loop: Loop, number: int) -> None:
    """The rows of a batch come, and are ingested."""
    rt = loop.pipe
    for stream in rt.pipeline.streams:
        landing = os.path.join(rt.pipeline.folder, "landing", stream)
        os.makedirs(landing, exist_ok=True)
        shutil.move(os.path.join(rt.pipeline.folder, WAITING, stream, f"{number:05d}.parquet"), landing)
    loop.take()


def workload(setting: StreamLoad, count: int, similarity: Fraction = HALF, joined: int | None = None,
             seed: int = 0) -> list[GeneratedQuery]:
    """Queries so similar to a pattern over all streams of the load, selections of about a half.

    `joined`: of so many streams only.
    """
    choice = Random(seed)
    pattern = Pattern(
        tuple((choice.randrange(ATTRIBUTES), choice.randrange(ATTRIBUTES)) for _ in range(setting.streams - 1)))
    queries: list[GeneratedQuery] = []
    while len(queries) < count:
        query = generate(pattern, similarity, choice)
        if joined is None or len(query.streams) == joined:
            selections = []
            for attribute, _, _ in query.selections:      # "approximately 0.5" of the rows pass, section 7.2
                operator, bound = choice.choice(("<", ">=")), round(setting.keys * choice.uniform(0.4, 0.6))
                selections.append((attribute, operator, bound))
            queries.append(replace(query, selections=tuple(selections)))
    return queries


def sql(query: GeneratedQuery, form: str) -> str:
    """Fig. 14's template as it stands, or with aggregates over it."""
    if form == STAR:
        return text(query)
    first, last = (f"s{k + 1}" for k in (query.streams[0], query.streams[-1]))
    return text(query, f"{first}.f3 % {GROUPS} AS g, COUNT(*) AS n, SUM({last}.f4) AS total", f"{first}.f3 % {GROUPS}")


def create(rt: OpenPipeline, queries: Mapping[str, str]) -> float:
    """Seconds of the requests."""
    began = time.process_time()
    for name, text_ in queries.items():
        requests.create(rt, name, text_)
    return time.process_time() - began


def named(queries: Sequence[GeneratedQuery], form: str, first: int = 0) -> dict[str, str]:
    return {f"q{k}": sql(query, form) for k, query in enumerate(queries, first)}


def advanced(loop: Loop, count: int) -> Entries:
    """So many boundaries, one after another, as they come."""
    return [entry for _ in range(count) for entry in loop.run(flush=True, limit=1)["ran"]]


def steady(loop: Loop, setting: StreamLoad) -> float:
    """Mean seconds of a batch over full windows; the boundaries before are one batch, and the next is not counted."""
    loop.run(flush=True, to=START + max(WINDOWS) * SECOND)
    advanced(loop, 1)
    return statistics.mean(timed(loop) for _ in range(setting.counted))


def timed(loop: Loop) -> float:
    """Seconds of the next boundary."""
    clock = time.process_time if loop.pipe.tasks.inline else time.perf_counter
    began = clock()
    advanced(loop, 1)
    return clock() - began


def checked(rt: OpenPipeline) -> None:
    """Some queries by plain SQL over the raw rows: no figure stands on a wrong answer."""
    names = [s.name for s in requests.listed(rt) if s.is_active]
    for name in names[::max(len(names) // CHECKED, 1)][:CHECKED]:
        for verdict in answers.verify(rt, name)["queries"].values():
            if verdict["differences"] or not verdict["boundaries"]:
                raise failed("wrong-answer", f"{name} differs from its SQL over the raw rows: {verdict}",
                             "please report this")


def measured(setting: StreamLoad, queries: Mapping[str, str], share_from: int | None = None) -> float:
    """Seconds of a batch with all these queries in force from the beginning."""
    with running(setting, share_from=share_from) as loop:
        create(loop.pipe, queries)
        seconds = steady(loop, setting)
        checked(loop.pipe)
    return seconds


def lived(setting: StreamLoad, queries: Sequence[str], scenario: Iterable[tuple[int, Mapping[str, int]]]) -> Lived:
    """Each batch: what is asked, what came, the boundary.

    A boundary that is due before the last is done waits for it, and its rows with it.
    """
    waiting, waits, counts, stages = iter(enumerate(queries)), list[float](), list[int](), dict[str, list[float]]()
    alive: list[str] = []
    ended = 0.0
    with running(setting, come=False) as loop:
        rt = loop.pipe
        for number, change in scenario:
            began, used = time.perf_counter(), time.process_time()
            gone, alive = alive[:change["delete"]], alive[change["delete"]:]
            for name in gone:
                requests.change(rt, name, "delete")
            for query_number, text_ in islice(waiting, change["create"]):
                requests.create(rt, f"q{query_number}", text_)
                alive.append(f"q{query_number}")
            lap = loop.laps.lap("requests", began)
            bring(loop, number)
            lap = loop.laps.lap("ingest", lap)
            advanced(loop, 1)
            due = (number + 1) * setting.batch
            ended = max(ended, due) + time.process_time() - used
            waits.append(ended - due)
            counts.append(len(alive))
        stages = {stage: took[1:] or took for stage, took in loop.laps.by_stage.items()}
        checked(rt)
    late, counted = waits[1:], {stage: statistics.mean(took) for stage, took in stages.items()}
    return Lived((statistics.mean(late) + setting.batch / 2, min(late), max(late) + setting.batch), counted,
                 statistics.mean(counts))
