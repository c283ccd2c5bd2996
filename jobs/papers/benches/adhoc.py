"""Queries that come and go while everything runs, in real time: how long after its request a query has its first answer
(paper E, SC1 and SC2).

    forebay bench ad-hoc

A runner takes in each batch's rows when they are due and runs the boundary; another process asks for queries at a given
rate, by the same call as `pipe.create`. Nothing asserts on seconds.
"""
from __future__ import annotations

import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from random import Random
from typing import Any

import pyarrow as pa

from jobs.engine import kernel
from jobs.engine.small_tables import ask
from jobs.ledger import published
from jobs.ledger.open_pipeline import OpenPipeline, open_pipeline
from jobs.papers.benches.streams import SECOND, START, stream_files
from jobs.pipeline.config import load
from jobs.requests import requests
from jobs.results import answers
from jobs.run import Loop
from jobs.verify import recompute as oracle
from optimizer.errors import failed

ATTRIBUTES, VALUES = 6, 500
CHECKED = 5           # queries whose answers are computed again by plain SQL
AFTER = 3             # boundaries that still run when the last query has been asked for
SLACK = 1.2           # times the boundary's batch, and one second more: within that a first answer is on time
WAITING = "waiting"   # the folder of rows that have not come yet
ASKED = "asked.jsonl"
Say = Callable[[str], object]
Report = dict[str, Any]


@dataclass(frozen=True)
class AdhocSetting:
    """`rate` rows a second and stream; `asked` queries are created every second until `most` are in force.

    With `deleting` (SC2) the `asked` oldest are deleted, and as many created, every so many seconds, `rounds` times.
    `together`: all queries of a second are one request. `is_rows`: queries return joined rows, as the paper's do.
    """

    asked: int
    most: int
    deleting: int = 0
    rounds: int = 5
    together: bool = False
    is_rows: bool = False
    joined: int = 2
    rate: int = 2_000
    window: int = 30
    batch: int = 5

    @property
    def name(self) -> str:
        scenario = f"SC2, deleted every {self.deleting} s" if self.deleting else "SC1"
        what = f"{self.joined}-way {'rows' if self.is_rows else 'aggregates'}"
        by = "one request a second" if self.together else "one request a query"
        return f"{scenario}, {self.asked} a second up to {self.most}, {what}, {by}"

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(f"s{k + 1}" for k in range(self.joined))

    def bounds(self, number: int) -> tuple[int, int]:
        first, second = Random(number).choices(range(50, VALUES), k=2)
        return first, second

    def text(self, number: int) -> str:
        """Query `number`: Fig. 14's template, with selections on two of the streams."""
        first, second = self.bounds(number)
        sources = ", ".join(f"{s} [WINDOW {self.window} SECONDS]" for s in self.streams)
        joins = " AND ".join(f"{a}.f0 = {b}.f0" for a, b in zip(self.streams, self.streams[1:]))
        last = self.streams[-1]
        if self.is_rows:      # of each stream one row in five hundred
            chosen = " AND ".join(f"{s}.f{n + 1} = {(first + n * second) % VALUES}" for n, s in enumerate(self.streams))
            return f"SELECT * FROM {sources} WHERE {joins} AND {chosen}"
        return (f"SELECT s1.f3 % 10 AS g, COUNT(*) AS n, SUM({last}.f4) AS total FROM {sources} WHERE {joins} AND "
                f"s1.f1 < {first} AND {last}.f2 < {second} GROUP BY s1.f3 % 10")


def ad_hoc(settings: tuple[AdhocSetting, ...], say: Say = lambda _: None) -> Report:
    """By scenario: seconds of requests, of batches, and from the end of a query's first boundary to its answer."""
    reports = {}
    for setting in settings:
        reports[setting.name] = _lived(setting)
        say(f"{setting.name}: {reports[setting.name]}")
    return reports


def _lived(setting: AdhocSetting) -> Report:
    with _with_full_windows(setting) as loop:
        asker = _begin_asking(loop.pipe, setting)
        began, seconds, due = time.time(), dict[int, float](), dict[int, float]()
        left = AFTER
        for number in count(setting.window // setting.batch + 1):
            left -= not asker.is_alive()
            if left < 0:
                break
            boundary = START + (number + 1) * setting.batch * SECOND
            due[boundary] = began + len(due) * setting.batch + setting.batch
            _bring(loop, setting, number, until=due[boundary])
            for entry in loop.run(flush=True)["ran"]:
                seconds[entry["boundary"]] = entry["seconds"]
        asker.join()
        _check(loop.pipe, setting)
        return _report(loop.pipe, setting, seconds, due)


@contextmanager
def _with_full_windows(setting: AdhocSetting) -> Iterator[Loop]:
    """A pipeline with one query, over full windows, and one batch after."""
    folder = tempfile.mkdtemp(prefix="forebay-adhoc-")
    columns = ", ".join(["ts: timestamp", *(f"f{k}: bigint" for k in range(ATTRIBUTES))])
    declared = "".join(
        f"  {s}: {{columns: {{{columns}}}, event_time: ts, source: {{files: \"landing/{s}/*.parquet\"}}}}\n"
        for s in setting.streams)
    with open(os.path.join(folder, "forebay.yml"), "w", encoding="utf-8") as file:
        file.write(f"name: adhoc\nbatch: {setting.batch} seconds\nstreams:\n{declared}")
    pipe = open_pipeline(load(folder))
    loop = Loop(pipe)
    try:
        for number in range(setting.window // setting.batch + 1):
            _bring(loop, setting, number)
        requests.create(pipe, "q0", setting.text(0))
        loop.run(flush=True)
        yield loop
    finally:
        pipe.tasks.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _bring(loop: Loop, setting: AdhocSetting, number: int, until: float = 0.0) -> None:
    """Makes a batch's rows, and takes them in when they are due."""
    folder, length = loop.pipe.pipeline.folder, setting.batch * SECOND
    rows, values = setting.rate * setting.batch, ", ".join(
        f"floor(random() * {VALUES})::BIGINT AS f{k}" for k in range(ATTRIBUTES))
    con = kernel.connect()
    for salt, stream in enumerate(setting.streams):
        for place in (WAITING, os.path.join("landing", stream)):
            os.makedirs(os.path.join(folder, place), exist_ok=True)
        con.execute(f"SELECT setseed({(number * 7 + salt) % 997 / 997})")
        ts = f"CAST(make_timestamp({START + number * length} + (i * {length}) // {rows}) AS TIMESTAMPTZ) AS ts"
        con.execute(f"COPY (SELECT {ts}, {values} FROM range({rows}) AS r(i)) TO '{folder}/{WAITING}/{stream}' "
                    "(FORMAT parquet)")
    con.close()
    time.sleep(max(until - time.time(), 0.0))
    for stream in setting.streams:
        os.rename(f"{folder}/{WAITING}/{stream}", f"{folder}/landing/{stream}/{number:05d}.parquet")
    loop.take()


def _begin_asking(pipe: OpenPipeline, setting: AdhocSetting) -> BaseProcess:
    """A process of its own, as users are; it has opened the pipeline when this returns."""
    context = get_context("spawn")
    is_open = context.Event()
    asker = context.Process(target=_ask, args=(pipe.pipeline.folder, setting, is_open))
    asker.start()
    while not is_open.wait(1.0):
        if not asker.is_alive():
            raise failed("no-requests", "the process that asks for queries has ended before its first request")
    return asker


def _ask(folder: str, setting: AdhocSetting, is_open: Any) -> None:
    """In another process: creates and deletes queries when it is time, and notes how long each request took."""
    pipe = open_pipeline(load(folder))
    is_open.set()
    began = time.time()
    with open(os.path.join(folder, ASKED), "w", encoding="utf-8") as file:
        for second, (gone, come) in enumerate(_schedule(setting)):
            time.sleep(max(began + second - time.time(), 0.0))
            for name in gone:
                requests.change(pipe, name, "delete")
            texts = {f"q{number}": setting.text(number) for number in come}
            for group in [texts] if setting.together else [{name: sql} for name, sql in texts.items()]:
                asked = time.time()
                requests.create_together(pipe, group)
                note = {"queries": [*group], "due": began + second, "asked": asked, "done": time.time()}
                file.write(json.dumps(note) + "\n")


def _schedule(setting: AdhocSetting) -> Iterator[tuple[list[str], range]]:
    """Of each second: who is deleted, and the numbers of those that are created."""
    created = 1
    while created < setting.most:
        last = min(created + setting.asked, setting.most)
        yield [], range(created, last)
        created = last
    for round_ in range(setting.rounds if setting.deleting else 0):
        for _ in range(setting.deleting - 1):
            yield [], range(0)
        oldest = range(round_ * setting.asked + 1, (round_ + 1) * setting.asked + 1)
        yield [f"q{number}" for number in oldest], range(created, created + setting.asked)
        created += setting.asked


def _report(pipe: OpenPipeline, setting: AdhocSetting, seconds: Mapping[int, float],
            due: Mapping[int, float]) -> Report:
    with open(os.path.join(pipe.pipeline.folder, ASKED), encoding="utf-8") as file:
        asked = [json.loads(line) for line in file]
    table = pipe.warehouse.latest(published.PATH)
    rows = ask(table, "boundaries",
               "SELECT query, min(epoch_us(boundary)), min(epoch_us(published_at)) FROM boundaries GROUP BY query")
    first = {query: (boundary, at / SECOND) for query, boundary, at in rows}
    asked_at = {query: request["asked"] for request in asked for query in request["queries"]}
    answered = {query: first[query] for query in asked_at if query in first}
    waits = {query: at - due[boundary] for query, (boundary, at) in answered.items()}
    over = [wait - SLACK * seconds[answered[query][0]] - 1 for query, wait in waits.items()]
    took = [request["done"] - request["asked"] for request in asked]
    return {
        "queries": len(asked_at), "answered": len(answered),
        "request_s": {"median": statistics.median(took), "last": took[-1], "most": max(took)},
        "asked_late_s": max(request["done"] - request["due"] for request in asked),
        "batch_s": {"median": statistics.median(seconds.values()), "last": [*seconds.values()][-1],
                    "most": max(seconds.values())},
        "request_to_answer_s": _spread([at - asked_at[query] for query, (_, at) in answered.items()]),
        "boundary_to_answer_s": _spread([*waits.values()]),
        "within 1.2 × batch + 1 s": f"{sum(beyond <= 0 for beyond in over)} of {len(over)}",
        "farthest_beyond_s": max(over),
        "query_rows_per_s": setting.most * setting.joined * setting.rate * setting.batch / [*seconds.values()][-1],
    }


def _spread(values: list[float]) -> Report:
    return {"median": statistics.median(values), "most": max(values)}


def _check(pipe: OpenPipeline, setting: AdhocSetting) -> None:
    """Some queries over the raw rows: no figure stands on a wrong answer."""
    names = [query.name for query in requests.listed(pipe) if query.is_active]
    for name in names[::max(len(names) // CHECKED, 1)][:CHECKED]:
        if setting.is_rows:
            verdict = answers.verify(pipe, name)["queries"][name]
            is_equal = bool(verdict["boundaries"]) and not verdict["differences"]
        else:
            t = answers.published(pipe, name)[-1]
            ours = answers.read(pipe, name, t).drop_columns(["boundary"])
            is_equal = not oracle.compare(_by_expert(pipe, setting, int(name[1:]), t), ours)
        if not is_equal:
            raise failed("wrong-answer", f"{name} differs from its SQL over the raw rows", "please report this")


def _by_expert(pipe: OpenPipeline, setting: AdhocSetting, number: int, t: int) -> pa.Table:
    """An aggregate of sets by key: the joined rows themselves would be up to 10¹³."""
    first, second = setting.bounds(number)
    con, sets, last = kernel.connect(threads=os.cpu_count() or 2), list[str](), setting.streams[-1]
    for stream in setting.streams:
        files = kernel.file_list(stream_files(pipe, stream))
        where = f"epoch_us(ts) >= {t - setting.window * SECOND} AND epoch_us(ts) < {t}"
        where += f" AND f1 < {first}" if stream == "s1" else f" AND f2 < {second}" if stream == last else ""
        group = ", f3 % 10 AS g" if stream == "s1" else ""
        sets.append(f"{stream} AS (SELECT f0, CAST(count(*) AS HUGEINT) AS c, sum(f4) AS b{group} "
                    f"FROM read_parquet({files}) WHERE {where} GROUP BY ALL)")
    counts = " * ".join(f"{stream}.c" for stream in setting.streams)
    total = " * ".join([*(f"{stream}.c" for stream in setting.streams[:-1]), f"{last}.b"])
    using = " ".join(f"JOIN {stream} USING (f0)" for stream in setting.streams[1:])
    return kernel.table(con, f"WITH {', '.join(sets)} SELECT g, CAST(sum({counts}) AS BIGINT) AS n, CAST(sum({total}) "
                             f"AS BIGINT) AS total FROM s1 {using} GROUP BY g")


def scenarios(quick: bool) -> tuple[AdhocSetting, ...]:
    """SC1 at 1, 10 and 100 a second, SC2, row queries, more streams."""
    if quick:
        return (AdhocSetting(5, 20), AdhocSetting(5, 20, is_rows=True))
    hundred = AdhocSetting(100, 500)
    return (AdhocSetting(1, 60), AdhocSetting(10, 500), hundred, replace(hundred, together=True),
            AdhocSetting(10, 100, deleting=5), AdhocSetting(10, 100, is_rows=True),
            AdhocSetting(10, 100, deleting=5, is_rows=True),
            *(AdhocSetting(10, 100, joined=joined) for joined in (3, 4, 5)),
            AdhocSetting(10, 50, joined=3, is_rows=True))
