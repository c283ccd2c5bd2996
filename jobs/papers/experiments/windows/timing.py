"""Processor seconds of statements over one table of events, each distinct statement timed once: a plan costs the sum of
its own, whoever else has them too.

What a statement reads is what it would read in any plan, an answer of a window, so its time is taken once for all
plans, sets and setups that contain it. Every statement that makes a window must give what the first one gave, else
nothing is reported.
"""
from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from jobs.engine import kernel
from jobs.papers.experiments.points import Point, Points, point, save
from optimizer.coverage.algebra import Window
from optimizer.coverage.statements import EVENTS, Statements, name
from optimizer.errors import failed

LONG = 1.0                    # seconds; what takes longer is run once, else twice, and the lesser counts
TIMED = "timed"
Digest = list[object]


@dataclass(frozen=True)
class Weights:
    """Nanoseconds for an event or an instance read, for an instance made, for a window evaluated at all."""

    read: int
    making: int
    fixed: int


@dataclass(frozen=True)
class TimedStatements:
    """One table of events.

    `points` holds seconds by statement and a digest by window, and outlives an interruption. `_there`: windows made in
    this process.
    """

    con: kernel.Connection
    points: Points
    data: str
    _there: set[str] = field(default_factory=set)

    def seconds(self, statements: Statements) -> float:
        """Of a plan: what it makes is made here if it must be read to time something."""
        seconds = sum(self._statement(table, sql, dict(statements)) for table, sql in statements)
        save(self.points)
        return seconds

    def digest(self, windows: Sequence[Window]) -> list[Digest]:
        """Of windows that some plan has made."""
        return [list(self.points.measured[self._key(name(w))]["digest"]) for w in windows]

    def weights(self, events: int) -> Weights:
        return Weights(**point(self.points, self._key("weights"), lambda: vars(measured(self.con, events))))

    def point(self, what: str, measure: Callable[[], float]) -> float:
        return float(point(self.points, self._key(what), lambda: {"seconds": measure()})["seconds"])

    def _key(self, what: str) -> str:
        return f"{self.data}: {what}"

    def _statement(self, table: str, sql: str, statements: Mapping[str, str]) -> float:
        timed = self.points.measured.get(self._key(sql))
        if timed is None:
            self._sources(sql, statements)
            timed = self.points.measured[self._key(sql)] = self._run(table, sql)
        return float(timed["seconds"])

    def _sources(self, sql: str, statements: Mapping[str, str]) -> None:
        """What an earlier process made is made again, beside the clock."""
        for table in statements:
            if table not in self._there and re.search(rf"FROM {table}\b", sql):
                self._sources(statements[table], statements)
                self.con.execute(f"CREATE TEMP TABLE {table} AS {statements[table]}")
                self._there.add(table)

    def _run(self, table: str, sql: str) -> Point:
        seconds = once_or_twice(lambda: _created(self.con, sql))
        answer = digest(self.con, TIMED)
        if self.points.measured.setdefault(self._key(table), {"digest": answer})["digest"] != answer:
            raise failed("wrong-answer", f"{table} by {sql} has other answers than before", "please report this")
        self.con.execute(f"DROP TABLE {TIMED}" if table in self._there else f"ALTER TABLE {TIMED} RENAME TO {table}")
        self._there.add(table)
        return {"seconds": seconds}


def once_or_twice(run: Callable[[], float]) -> float:
    first = run()
    return first if first > LONG else min(first, run())


def _created(con: kernel.Connection, sql: str) -> float:
    began = time.process_time()
    con.execute(f"CREATE OR REPLACE TEMP TABLE {TIMED} AS {sql}")
    return time.process_time() - began


def digest(con: kernel.Connection, table: str) -> Digest:
    return list(
        con.execute(f"SELECT count(*), CAST(bit_xor(hash(m, v)) AS VARCHAR), CAST(sum(v) AS VARCHAR) FROM {table}")
        .fetchall()[0])


def run(con: kernel.Connection, statements: Statements, windows: Sequence[Window]) -> tuple[float, list[Digest]]:
    """Seconds of all statements, one after the other, and a digest of each window's answer."""
    began = time.process_time()
    for table, sql in statements:
        con.execute(f"CREATE TEMP TABLE {table} AS {sql}")
    seconds = time.process_time() - began
    answers = [digest(con, name(w)) for w in windows]
    for table, _ in statements:
        con.execute(f"DROP TABLE {table}")
    return seconds, answers


def measured(con: kernel.Connection, events: int) -> Weights:
    few, many = (_least(
        con,
        f"SELECT t // {length} AS m, min(v) AS v FROM (SELECT v, hash(t) % {events} AS t FROM {EVENTS}) AS q GROUP BY m"
    ) for length in (events // 10, 2))
    fixed = _least(con, f"SELECT t // 2 AS m, min(v) AS v FROM {EVENTS} WHERE t < 0 GROUP BY m")
    return Weights(round((few - fixed) / events * 1e9), max(round((many - few) / (events / 2) * 1e9), 0),
                   round(fixed * 1e9))


def _least(con: kernel.Connection, sql: str) -> float:
    """The least of three runs."""
    fastest = min(_created(con, sql) for _ in range(3))
    con.execute(f"DROP TABLE {TIMED}")
    return fastest
