"""A small pipeline with a query of each kind, whose warehouse older code writes and today's code must open.

It uses only what every version has: files and `import forebay`. See tests/fixtures/warehouses/README.md.
"""
from __future__ import annotations

import os
import random
import socket
import sys
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

import forebay

BEGINNING = datetime(2025, 1, 1, tzinfo=timezone.utc)
SPAN = 30                   # seconds of event time a round
WRITTEN = 4                 # rounds in the fixtures
YML = """name: shop
batch: 10 seconds
spark: {master: inline}
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
SHARED = ("SELECT v.user, COUNT(*) AS n, SUM(v.ms) AS ms "
          "FROM views AS v [WINDOW 20 SECONDS], buys AS b [WINDOW 30 SECONDS] "
          "WHERE v.user = b.user AND v.ms > {least} GROUP BY v.user")
QUERIES = {
    "news": "SELECT v.page, COUNT(*) AS n, SUM(b.amount) AS spent, MIN(v.ms) AS least "
            "FROM views AS v [WINDOW 1 MINUTE], buys AS b [WINDOW 30 SECONDS], pages AS p "
            "WHERE v.user = b.user AND v.page = p.page AND p.section = 'news' GROUP BY v.page",
    "total": "SELECT COUNT(*) AS n, AVG(v.ms) AS mean FROM views AS v [WINDOW UNTIL NOW]",
    "pairs": "SELECT v.page, b.amount FROM views AS v [WINDOW 20 SECONDS], buys AS b [WINDOW 20 SECONDS] "
             "WHERE v.user = b.user AND v.ms > 80",
    "windows": "SELECT v.page, System.Window().Id, COUNT(*) AS n, MAX(v.ms) AS most FROM views v "
               "GROUP BY v.page, Windows("
               "Window('20 s', TumblingWindow(second, 20)), Window('1 min', HoppingWindow(second, 60, 20)))",
    "running": f"SELECT v.user, COUNT(*) AS n, SUM(v.ms) AS ms, MAX(v.ms) AS most {TWO} GROUP BY v.user",
    "expire": f"SELECT v.page, COUNT(*) AS n, MAX(b.amount) AS most {TWO} GROUP BY v.page",
    "retract": f"SELECT v.page, COUNT(*) AS n, SUM(b.amount) AS spent {TWO} GROUP BY v.page",
    "divides": f"SELECT v.page, SUM(100 % v.ms) AS rest {TWO} GROUP BY v.page",
    **{f"shared{n}": SHARED.format(least=10 * n) for n in range(4)},
}
PINS = {"running": "EAP11 running", "expire": "EAP11 expire", "retract": "EAP10 retract", "divides": "EAP11 recompute",
        "windows": "EAP1 recompute"}
REQUESTS = {1: (("total", "pause"),), 3: (("total", "resume"), ("shared3", "delete"))}


def make(folder: Path) -> None:
    """The folder, without rows."""
    folder.mkdir(parents=True)
    (folder / "forebay.yml").write_text(YML)
    pipe = forebay.open(str(folder))
    for name, sql in QUERIES.items():
        pipe.create(name, sql)
    for name, plan in PINS.items():
        pipe.change(name, "pin", plan)
    pipe.close()


def land(folder: Path, number: int) -> None:
    """Files of a round: rows of both streams, some of them late.

    In round 2 there is one that cannot be divided by, and another version of the relation.
    """
    rnd = random.Random(number)
    times = [number * SPAN + rnd.uniform(0, SPAN) for _ in range(40)]
    times += [max(0.0, number * SPAN - rnd.uniform(0, 60)) for _ in range(5)]
    stamps = pa.array([BEGINNING + timedelta(seconds=s) for s in times], pa.timestamp("us", "UTC"))
    users = [[f"u{rnd.randrange(8)}" for _ in times] for _ in range(2)]
    pages = [rnd.choice(("home", "about", "shop")) for _ in times]
    ms = [0 if number == 2 and i == 7 else rnd.randrange(1, 100) for i in range(len(times))]
    amounts = pa.array([Decimal(rnd.randrange(1000)) / 100 for _ in times], pa.decimal128(10, 2))
    views = pa.table({"ts": stamps, "user": users[0], "page": pages, "ms": pa.array(ms, pa.int64())})
    _put(folder / f"landing/views/{number}.parquet", views, number)
    buys = pa.table({"ts": stamps, "user": users[1], "amount": amounts})
    _put(folder / f"landing/buys/{number}.parquet", buys, number)
    sections = {"page": ["home", "about", "shop"], "section": ["news", "info", "info" if number < 2 else "news"]}
    csv.write_csv(pa.table(sections), folder / "pages.csv")
    _date(folder / "pages.csv", number // 2)


def _put(path: Path, rows: pa.Table, number: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path)
    _date(path, number)


def _date(path: Path, number: int) -> None:
    """In whole seconds, which archives keep: a file with another date would be another file."""
    at = int(BEGINNING.timestamp()) + 60 * number
    os.utime(path, (at, at))


def live(folder: Path, rounds: range) -> None:
    for number in rounds:
        land(folder, number)
        pipe = forebay.open(str(folder))
        pipe.ingest()
        for name, action in REQUESTS.get(number, ()):
            pipe.change(name, action)
        pipe.run()
        pipe.close()


if __name__ == "__main__":
    socket.gethostname = lambda: "node1"      # the ledger names it
    here, first, last = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    if not here.exists():
        make(here)
    live(here, range(first, last))
