"""A pipeline's life in steps, each of which can be done again: what the tests kill, and what they compare.

It runs as a process of its own: `python -m tests.chaos.scenario FOLDER [UNTIL]`, to the step of that number or to its
end.
"""
from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

import forebay
from jobs.ledger.queries import queries_at
from jobs.maintenance import compact
from jobs.results import answers
from jobs.storage import failpoints, tables
from optimizer.time import instant, micros
from tests.jobs.pipelines import restarted

SECOND = 10**6
BEGINNING = 1_767_225_600 * SECOND              # 2026-01-01T00:00:00Z
ROUNDS = 5
SPAN = 30                                       # seconds of event time a round
ROOT = Path(__file__).resolve().parents[2]
YML = """name: shop
batch: 10 seconds
streams:
  views:
    columns: {ts: timestamp, user: string, page: string, ms: bigint}
    event_time: ts
    wait: 5 seconds
    lateness: 40 seconds
    source: {files: "landing/views/*.parquet"}
  buys:
    columns: {ts: timestamp, user: string, amount: "decimal(10,2)"}
    event_time: ts
    lateness: 1 hour
    source: {files: "landing/buys/*.parquet"}
relations:
  pages: {columns: {page: string, section: string}, source: {files: "pages.csv"}}
"""
TWO = "FROM views AS v [WINDOW 40 SECONDS], buys AS b [WINDOW 20 SECONDS] WHERE v.user = b.user"
FILES = {
    "top": "SELECT v.page, COUNT(*) AS n, SUM(b.amount) AS spent, MIN(v.ms) AS least "
    "FROM views AS v [WINDOW 1 MINUTE], buys AS b [WINDOW 30 SECONDS], pages AS p "
    "WHERE v.user = b.user AND v.page = p.page AND p.section = 'news' GROUP BY v.page",
    "total": "SELECT COUNT(*) AS n, AVG(v.ms) AS mean FROM views AS v [WINDOW UNTIL NOW]",
    "pairs": "SELECT v.page, b.amount FROM views AS v [WINDOW 20 SECONDS], buys AS b [WINDOW 20 SECONDS] WHERE v.user "
             "= b.user AND v.ms > 80",
}
CREATED = {
    "running": (f"SELECT v.user, COUNT(*) AS n, SUM(v.ms) AS ms {TWO} GROUP BY v.user", "EAP11 running"),
    "expire": (f"SELECT v.page, COUNT(*) AS n, MAX(b.amount) AS most {TWO} GROUP BY v.page", "EAP11 expire"),
    "retract": (f"SELECT v.page, COUNT(*) AS n, SUM(b.amount) AS spent {TWO} GROUP BY v.page", "EAP10 retract"),
    "divides": (f"SELECT v.page, SUM(100 % v.ms) AS rest {TWO} GROUP BY v.page", None),
    "minutes": ("SELECT v.page, COUNT(*) AS n FROM views AS v [WINDOW 20 SECONDS TUMBLING] GROUP BY v.page", None),
}
IN_DOUBLES = CREATED["minutes"][0].replace("COUNT(*)", "0.5D * COUNT(*)")      # a type that begins a new history
Step = Callable[[forebay.Pipeline, Path], Any]


def boundary(seconds: int) -> int:
    return BEGINNING + seconds * SECOND


def make(folder: Path, master: str = "inline") -> None:
    (folder / "queries").mkdir(parents=True)
    (folder / "forebay.yml").write_text(YML + f"spark: {{master: {master!r}}}\n")
    for name, sql in FILES.items():
        (folder / "queries" / f"{name}.sql").write_text(sql)


def steps() -> list[Step]:
    """Rows, ingest, requests, boundaries, five times over; then what is left."""
    found: list[Step] = []
    for k in range(ROUNDS):
        found += [lambda p, f, k=k: write(f, k), lambda p, f: p.ingest()]
        found += [lambda p, f, r=r: r(p) for r in REQUESTS.get(k, ())]
        found += [lambda p, f, k=k: p.run(to=boundary(k * SPAN + 10)), lambda p, f: p.run()]
    return [*found, lambda p, f: p.run(flush=True)]


def create(name: str, sql: str, plan: str | None = None, replace: bool = False,
           new_history: bool = False) -> Callable[[forebay.Pipeline], None]:
    """Unless a process that was killed has done it."""
    def request(p: forebay.Pipeline) -> None:
        known = queries_at(p.runtime.ledger.all_changes()).get(name)
        if known is None or known.sql != sql or not known.is_active:
            p.create(name, sql, replace, new_history)
        if plan and queries_at(p.runtime.ledger.all_changes())[name].pin != plan:
            p.change(name, "pin", plan)
    return request


def change(name: str, action: str, state: str) -> Callable[[forebay.Pipeline], None]:
    def request(p: forebay.Pipeline) -> None:
        if queries_at(p.runtime.ledger.all_changes())[name].status != state:
            p.change(name, action)
    return request


def pin(name: str, plan: str) -> Callable[[forebay.Pipeline], None]:
    def request(p: forebay.Pipeline) -> None:
        if queries_at(p.runtime.ledger.all_changes())[name].pin != plan:
            p.change(name, "pin", plan)
    return request


REQUESTS: dict[int, tuple[Callable[[forebay.Pipeline], None], ...]] = {
    0: tuple(create(name, *CREATED[name]) for name in ("running", "expire", "divides")),
    1: (create("retract", *CREATED["retract"]), create("minutes",
                                                       *CREATED["minutes"]), change("running", "pause", "paused")),
    2: (change("running", "resume", "active"), pin("expire", "EAP01 running"), pin("total", "EAP1 running")),
    3: (change("minutes", "delete", "deleted"), pin("retract", "EAP11 expire"),
        create("expire", f"SELECT v.page, COUNT(*) AS n {TWO} GROUP BY v.page", replace=True)),
    4: (change("divides", "resume", "active"), create("minutes", IN_DOUBLES, None, True, True)),
}


def write(folder: Path, k: int) -> None:
    """Round k of both streams: some rows late, some too late.

    In round 2 one that cannot be divided by, and another version of the relation.
    """
    rnd = random.Random(k)
    seconds = [k * SPAN + rnd.uniform(0, SPAN)
               for _ in range(60)] + [max(0.0, k * SPAN - rnd.uniform(0, 120)) for _ in range(10)]
    users = [[f"u{rnd.randrange(12)}" for _ in seconds] for _ in range(2)]
    ms = [0 if k == 2 and i == 7 else rnd.randrange(1, 100) for i in range(len(seconds))]
    stamps = pa.array([instant(boundary(0) + round(s * SECOND)) for s in seconds], pa.timestamp("us", "UTC"))
    amounts = pa.array([Decimal(rnd.randrange(1000)) / 100 for _ in seconds], pa.decimal128(10, 2))
    seen = [rnd.choice(["home", "about", "shop"]) for _ in seconds]
    _put(folder / "landing/views" / f"{k}.parquet",
         pa.table({
             "ts": stamps,
             "user": users[0],
             "page": seen,
             "ms": pa.array(ms, pa.int64())
         }))
    _put(folder / "landing/buys" / f"{k}.parquet", pa.table({"ts": stamps, "user": users[1], "amount": amounts}))
    pages = pa.table({"page": ["home", "about", "shop"], "section": ["news", "info", "info" if k < 2 else "news"]})
    pc.write_csv(pages, folder / "pages.new")
    os.replace(folder / "pages.new", folder / "pages.csv")


def _put(path: Path, rows: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def live(folder: Path, before: Callable[[int], object] = lambda number: None, until: int | None = None) -> None:
    """Goes on at the step after the last finished one.

    The one a kill interrupted is done again. `before` is told each step's number.
    """
    done = folder / "done"
    todo = steps()[:until]
    pipe = forebay.open(str(folder))
    restarted(pipe, clock=lambda: boundary(10**6))
    usual = compact.STATE_FILES, compact.SMALL_FILES
    compact.STATE_FILES = compact.SMALL_FILES = 4
    try:
        for number in range(int(done.read_text() or 0) if done.exists() else 0, len(todo)):
            before(number)
            todo[number](pipe, folder)
            done.write_text(str(number + 1))
    finally:
        compact.STATE_FILES, compact.SMALL_FILES = usual
        pipe.close()


def published(folder: Path) -> dict[str, Any]:
    """All that a user can see: answers by query and boundary, changes and where they took effect, rows counted, and
    what was refused.
    """
    pipe = forebay.open(str(folder))
    rt = pipe.runtime
    known = sorted(queries_at(rt.ledger.all_changes()))
    said = {
        name: [[str(b) for b in answers.published(rt, name)],
               sorted(map(repr,
                          answers.read(rt, name, every=True).to_pylist()))] for name in known
    }
    changes = [repr((c.query, c.action, c.effective, c.plan, c.table, c.reason)) for c in rt.ledger.all_changes()]
    stored = {
        s: sorted(f"{r['_boundary']} {r['ts']} {r['user']}"
                  for r in _rows(folder / "warehouse/streams" / s))
        for s in rt.pipeline.streams
    }
    aside = {
        s: sorted(f"{r['_reason']} {r['_row']}"
                  for r in _rows(folder / "warehouse/quarantine" / s))
        for s in rt.pipeline.streams
    }
    return {"answers": said, "changes": changes, "stored": stored, "quarantine": aside, "begun": rt.ledger.begun(),
            "tables": {f"{kind}/{path.name}": sorted(map(repr, _rows(path))) for kind in ("results", "latest")
                       for path in sorted((folder / "warehouse" / kind).glob("*"))},
            "boundaries": sorted(repr((row["query"], row["boundary"], row["revision"], row["rows"], row["batch"]))
                                 for row in _rows(folder / "warehouse/ledger/boundaries"))}


def committed_twice(folder: Path) -> list[int]:
    """Boundaries with more than one commit, or more than one intent by number."""
    spans = [r for r in _rows(folder / "warehouse/ledger/batches") if r["phase"] == "commit"]
    count = Counter(r["first"] + k * timedelta(seconds=10) for r in spans for k in range(r["boundaries"]))
    return [micros(b) for b, n in count.items() if n > 1]


def _rows(path: Path) -> list[dict[str, Any]]:
    if not tables.exists(str(path)):
        return []
    return [
        row for f in tables.open_table(str(path)).files()
        for row in pq.read_table(path / f.path, partitioning=None).to_pylist()
    ]


def process(folder: Path, failpoint: str | None = None, until: int | None = None,
            **environment: str) -> subprocess.CompletedProcess[str]:
    """The scenario, or what is left of it, in a process of its own."""
    clean = {k: v for k, v in os.environ.items() if k != "FOREBAY_FAILPOINT"}
    told = {**clean, **environment, **({"FOREBAY_FAILPOINT": failpoint} if failpoint else {})}
    command = [sys.executable, "-m", "tests.chaos.scenario", str(folder), *([str(until)] if until is not None else [])]
    return subprocess.run(command, cwd=ROOT, env=told, capture_output=True, text=True, timeout=600)


def watched(folder: Path, kept: Path) -> dict[str, list[int]]:
    """Runs the scenario here, undisturbed, and keeps the folder as it was before each step.

    In which step each failpoint is passed, time after time.
    """
    passes: dict[str, list[int]] = defaultdict(list)
    plain, step = failpoints.at, [0]

    def before(number: int) -> None:
        step[0] = number
        shutil.copytree(folder, kept / str(number))

    failpoints.at = lambda name: (passes[name].append(step[0]), plain(name))[1]
    try:
        live(folder, before)
    finally:
        failpoints.at = plain
    return dict(passes)


if __name__ == "__main__":
    live(Path(sys.argv[1]), until=int(sys.argv[2]) if len(sys.argv) > 2 else None)
    print(json.dumps(forebay.open(sys.argv[1]).verify()))
