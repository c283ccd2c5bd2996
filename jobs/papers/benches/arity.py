"""What queries that join other streams on other keys cost as one work, beside a work for each form and one for each
query: paper E's example queries, Q1 to Q7, and the same with other constants.

V are videos, W views of them, C comments and R reactions of users. Answers are compared with DuckDB's; nothing asserts
on seconds.
"""
from __future__ import annotations

import dataclasses
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from statistics import median
from typing import Any

from jobs.engine import kernel
from jobs.engine.tasks import Tasks
from jobs.ledger.open_pipeline import open_pipeline
from jobs.papers.benches.sharing import SECOND, START
from jobs.papers.benches.streams import stream_files
from jobs.pipeline.config import load
from jobs.requests import requests
from jobs.results import answers
from jobs.run import Loop
from jobs.verify import recompute as oracle

MEASURED = 3                          # batches of each way, after one that is not counted
ALL_APART = 10**6                     # queries of a form from which on it is a group: none has as many
Report = dict[str, Any]
# The streams of the paper's section 1; `emojis`, `duration` and `length` are 0 … 19.
COLUMNS = {
    "v": "vid: bigint, length: bigint, geo: string, lang: string",
    "w": "usr: bigint, vid: bigint, duration: bigint, geo: string",
    "c": "usr: bigint, length: bigint, photo: bigint, emojis: bigint",
    "r": "usr: bigint, reaction: string",
}
ON_VIDEO, ON_USER, ON_REACTION = "v.vid = w.vid", "w.usr = c.usr", "c.usr = r.usr"
# The joins of the paper's queries: what they show, their streams, what is equal in each joined row.
JOINS = {
    "v w": ("v.lang AS g, COUNT(*) AS n, SUM(w.duration) AS s", ON_VIDEO, "v.lang"),
    "v w c": ("w.geo AS g, COUNT(*) AS n, MAX(c.length) AS s", f"{ON_VIDEO} AND {ON_USER}", "w.geo"),
    "w c r": ("w.geo AS g, COUNT(*) AS n, SUM(c.emojis) AS s", f"{ON_USER} AND {ON_REACTION}", "w.geo"),
    "w c": ("w.geo AS g, COUNT(*) AS n, SUM(c.length) AS s", ON_USER, "w.geo"),
}
# Figs 1, 7a and section 4: each query's join and its selections.
PAPER = {
    "Q1": ("v w", "w.geo = 'GER' AND v.lang = 'ENG'"),
    "Q2": ("v w c", "c.length > 5 AND v.geo = 'US' AND w.duration < 10"),
    "Q3": ("w c r", "w.geo = 'EU' AND r.reaction = 'angry' AND c.emojis > 0"),
    "Q4": ("v w", "v.lang = 'FRE' AND w.geo = 'CAN'"),
    "Q5": ("v w", "v.lang = 'ENG' AND w.geo = 'GER'"),
    "Q6": ("v w c", "v.geo = 'FRA' AND w.geo <> 'EU' AND c.photo IS NOT NULL"),
    "Q7": ("w c", "w.duration < 8 AND c.length > 9"),
}
VALUES = {"geo": ("GER", "US", "EU", "CAN", "FRA"), "lang": ("ENG", "FRE", "GER", "ESP"),
          "reaction": ("angry", "like", "love")}


@dataclass(frozen=True)
class AritySetting:
    """Rows a second and stream, window and batch in seconds, values of each key; how often each of the paper's queries
    stands, with constants of its own after the first.
    """

    rate: int = 2_000
    window: int = 30
    batch: int = 5
    keys: int = 20_000
    copies: tuple[int, ...] = (1, 5, 20)

    @property
    def batches(self) -> int:
        return self.window // self.batch + 3 * (MEASURED + 1) * len(self.copies) + 1


def query(join: str, where: str, window: int) -> str:
    """The text of a query of one of the joins."""
    shown, on, by = JOINS[join]
    sources = ", ".join(f"{stream} [WINDOW {window} SECONDS]" for stream in join.split())
    return f"SELECT {shown} FROM {sources} WHERE {on} AND {where} GROUP BY {by}"


def paper_queries(window: int, copies: int = 1) -> dict[str, str]:
    """Q1 to Q7, and as many more of each join with other constants."""
    texts = {name: query(join, where, window) for name, (join, where) in PAPER.items()}
    choice = Random(1)
    for number in range(1, copies):
        for name, (join, _) in PAPER.items():
            numbers = {"w": f"w.duration < {choice.randrange(5, 20)}", "c": f"c.length > {choice.randrange(15)}",
                       "r": f"r.reaction = '{choice.choice(VALUES['reaction'])}'",
                       "v": f"v.lang = '{choice.choice(VALUES['lang'])}'"}
            where = " AND ".join(numbers[stream] for stream in join.split())
            texts[f"{name}_{number}"] = query(join, where, window)
    return texts


def sharing_arity(setting: AritySetting = AritySetting(), tell: Callable[[str], None] = lambda _: None,
                  master: str | None = None) -> Report:
    """Seconds a batch, and the tasks' processor seconds, by how often the paper's queries stand: as prices say, with a
    work for each form, and each query for itself.
    """
    report: Report = {}
    with pipeline(setting, master) as loop:
        loop.take()
        created = 0
        loop.run(flush=True, to=START + setting.window * SECOND)
        for copies in setting.copies:
            texts = paper_queries(setting.window, copies)
            for name in list(texts)[created:]:
                requests.create(loop.pipe, name, texts[name])
            created = len(texts)
            level: Report = {}
            for way, share_from in (("as priced", None), ("a work a form", 2), ("each for itself", ALL_APART)):
                level[way] = _measured(Loop(loop.pipe, share_from=share_from))
            level["equal"] = _equal(loop, texts, setting.window)
            report[f"{created} queries"] = level
            tell(f"{created} queries: {level}")
    return report


def _measured(loop: Loop) -> Report:
    """The median batch of some; `processor_s` counts only what this process takes, so all of it where tasks run here.
    """
    seconds, used = [], []
    for _ in range(MEASURED + 1):
        began = time.process_time()
        seconds += [entry["seconds"] for entry in loop.run(flush=True, limit=1)["ran"]]
        used.append(time.process_time() - began)
    last = loop.pipe.ledger.last()
    groups = {} if last is None else last.batch.query_groups
    prices = {} if last is None else last.batch.query_group_prices
    report: Report = {"seconds": median(seconds[1:]), "works": len(groups), "members": sum(map(len, groups.values()))}
    if loop.pipe.tasks.inline:
        report["processor_s"] = median(used[1:])
    priced = [(p.together_s, p.apart_s) for name, p in prices.items() if name in groups]
    return {**report, "priced": priced}


def _equal(loop: Loop, texts: Mapping[str, str], window: int) -> bool:
    """Whether each query's last answer is what DuckDB says of the windows' rows."""
    con = kernel.connect(threads=os.cpu_count() or 2, memory="4GB")
    t = answers.published(loop.pipe, "Q1")[-1]
    for stream in COLUMNS:
        files = kernel.file_list(stream_files(loop.pipe, stream))
        con.execute(f"CREATE VIEW {stream} AS SELECT * FROM read_parquet({files}) WHERE "
                    f"epoch_us(ts) >= {t - window * SECOND} AND epoch_us(ts) < {t}")
    for name, text in texts.items():
        plain = re.sub(r" \[WINDOW [^]]*\]", "", text)
        expected = kernel.table(con, f"SELECT g, n, CAST(s AS BIGINT) AS s FROM ({plain}) AS q")
        if oracle.compare(expected, answers.read(loop.pipe, name, t).drop_columns(["boundary"])):
            return False
    return True


@contextmanager
def pipeline(setting: AritySetting, master: str | None = None) -> Iterator[Loop]:
    """A pipeline over the four streams, with their files in its landing folder and no query yet."""
    folder = tempfile.mkdtemp(prefix="forebay-bench-")
    written(folder, setting)
    make(os.path.join(folder, "landing"), setting)
    pipe = open_pipeline(load(folder))
    if master is not None:
        pipe = dataclasses.replace(pipe, tasks=Tasks(master))
    try:
        yield Loop(pipe)
    finally:
        pipe.tasks.stop()
        shutil.rmtree(folder, ignore_errors=True)


def written(folder: str, setting: AritySetting, more: str = "") -> None:
    """The pipeline's forebay.yml, with `more` lines."""
    streams = ""
    for stream, columns in COLUMNS.items():
        streams += (f"  {stream}: {{columns: {{ts: timestamp, {columns}}}, event_time: ts, "
                    f"source: {{files: \"landing/{stream}/*.parquet\"}}}}\n")
    with open(os.path.join(folder, "forebay.yml"), "w", encoding="utf-8") as file:
        file.write(f"name: bench\nbatch: {setting.batch} seconds\n{more}streams:\n{streams}")


def make(folder: str, setting: AritySetting) -> None:
    """A file a batch and stream, the same rows each time; keys are uniform, as the paper's attributes are."""
    con = kernel.connect(threads=2, memory="4GB")
    count, length = setting.rate * setting.batch, setting.batch * SECOND
    for salt, (stream, columns) in enumerate(COLUMNS.items()):
        os.makedirs(os.path.join(folder, stream), exist_ok=True)
        values = ", ".join(f"{_value(column.split(':')[0].strip(), setting.keys)}" for column in columns.split(","))
        for number in range(setting.batches):
            con.execute(f"SELECT setseed({(number * 4 + salt) % 997 / 997})")
            ts = f"CAST(make_timestamp({START + number * length} + (i * {length}) // {count}) AS TIMESTAMPTZ) AS ts"
            con.execute(f"COPY (SELECT {ts}, {values} FROM range({count}) AS r(i)) TO '{folder}/{stream}/"
                        f"{number:05d}.parquet' (FORMAT parquet)")


def _value(column: str, keys: int) -> str:
    """SQL of a random value: keys, one of the listed words, a photo in half of the comments, else 0 … 19."""
    if column in ("vid", "usr"):
        return f"floor(random() * {keys})::BIGINT AS {column}"
    if column in VALUES:
        words = ", ".join(f"'{word}'" for word in VALUES[column])
        return f"([{words}])[1 + floor(random() * {len(VALUES[column])})::INT] AS {column}"
    if column == "photo":
        return "CASE WHEN random() < 0.5 THEN 1::BIGINT END AS photo"
    return f"floor(random() * 20)::BIGINT AS {column}"
